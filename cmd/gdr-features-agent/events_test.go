package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"gdr-features/internal/report"
	"gdr-features/internal/uevent"
)

// A failure to receive kernel events is logged once and causes no reading; when they
// can be received again, everything is read.
func TestNoSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		log, hook := logtest.NewNullLogger()
		var allowed atomic.Bool
		to := events(ctx, log, func() (uevent.Run, error) {
			if !allowed.Load() {
				return nil, errors.New("permission denied")
			}
			return func(ctx context.Context, handle func(uevent.Event)) error {
				handle(uevent.Event{Action: "add", Subsystem: "infiniband"})
				<-ctx.Done()
				return nil
			}, nil
		})
		time.Sleep(time.Hour)
		if n := len(hook.AllEntries()); n != 1 || len(to) != 0 {
			t.Errorf("%d lines logged, %d events", n, len(to))
		}
		allowed.Store(true)
		time.Sleep(reopenAfter)
		synctest.Wait()
		if parts := <-to; parts != report.All {
			t.Errorf("parts %b are to be read, want all", parts)
		}
		end()
		synctest.Wait()
	})
}

// Each failure of a socket that has worked is logged once. One that opens and fails again at
// once is not logged again.
func TestEachFailureLogged(t *testing.T) {
	failed := errors.New("recvfrom: bad file descriptor")
	for _, tt := range []struct {
		name  string
		works time.Duration // how long each socket works
		want  int           // lines logged while four sockets fail
	}{
		{"sockets that work for an hour", time.Hour, 4},
		{"sockets that fail at once", 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				log, hook := logtest.NewNullLogger()
				opened := 0
				events(ctx, log, func() (uevent.Run, error) {
					if opened++; opened == 5 {
						end()
						return nil, ctx.Err()
					}
					return func(context.Context, func(uevent.Event)) error {
						time.Sleep(tt.works)
						return failed
					}, nil
				})
				<-ctx.Done()
				n := 0
				for _, entry := range hook.AllEntries() {
					if err, is := entry.Data["error"].(error); is && errors.Is(err, failed) {
						n++
					}
				}
				if n != tt.want {
					t.Errorf("%d lines logged, want %d", n, tt.want)
				}
				synctest.Wait()
			})
		})
	}
}
