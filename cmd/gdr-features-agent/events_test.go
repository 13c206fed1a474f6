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
