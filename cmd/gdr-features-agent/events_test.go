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

type listens func(context.Context, func(uevent.Event)) error

func (l listens) Run(ctx context.Context, hear func(uevent.Event)) error { return l(ctx, hear) }

// Where the kernel's events cannot be heard that is said once, and nothing is
// read for it; when they can be heard again, everything is.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		log, hook := logtest.NewNullLogger()
		var heard atomic.Bool
		to := events(ctx, log, func() (listener, error) {
			if !heard.Load() {
				return nil, errors.New("permission denied")
			}
			return listens(func(ctx context.Context, hear func(uevent.Event)) error {
				hear(uevent.Event{Action: "add", Subsystem: "infiniband"})
				<-ctx.Done()
				return nil
			}), nil
		})
		time.Sleep(time.Hour)
		if n := len(hook.AllEntries()); n != 1 || len(to) != 0 {
			t.Errorf("%d lines logged, %d events", n, len(to))
		}
		heard.Store(true)
		time.Sleep(relisten)
		synctest.Wait()
		if parts := <-to; parts != report.All {
			t.Errorf("%b is to be read, not everything", parts)
		}
		end()
		synctest.Wait()
	})
}

// Each loss of a socket that has worked is logged once. One that opens and fails
// again at once is no new loss.
func TestEachLossIsLogged(t *testing.T) {
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
				events(ctx, log, func() (listener, error) {
					if opened++; opened == 5 {
						end()
						return nil, ctx.Err()
					}
					return listens(func(context.Context, func(uevent.Event)) error {
						time.Sleep(tt.works)
						return failed
					}), nil
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
