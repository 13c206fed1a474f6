package main

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	"gdr-features/internal/report"
	"gdr-features/internal/uevent"
)

// reopenAfter is how long after a failure of the kernel's socket it is opened again.
const reopenAfter = 10 * time.Second

// partsOf has the parts of the machine that events are about, by subsystem.
var partsOf = map[string]report.Parts{
	"pci": report.PCI, "infiniband": report.RDMA, "net": report.RDMA, "module": report.Drivers,
}

// events sends the parts of the machine that may have changed, until ctx ends. Parts that
// have not been received yet are merged with those that follow.
func events(ctx context.Context, log logrus.FieldLogger, listen func() (uevent.Run, error)) <-chan report.Parts {
	to := make(chan report.Parts, 1)
	handle := func(e uevent.Event) {
		parts := partsOf[e.Subsystem]
		if e == uevent.Lost {
			parts = report.All
		}
		if parts == 0 {
			return
		}
		log.WithFields(logrus.Fields{"action": e.Action, "subsystem": e.Subsystem, "device": e.Path}).Debug("kernel event")
		for {
			select {
			case to <- parts:
				return
			case before := <-to:
				parts |= before
			}
		}
	}
	failed := false // the socket failed and has not worked for reopenAfter since
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		run, err := listen()
		if err == nil {
			if failed {
				handle(uevent.Lost) // anything may have happened meanwhile
			}
			works := time.After(reopenAfter)
			err = run(ctx, handle)
			select {
			case <-works:
				failed = false
			default:
			}
		}
		// Logged once: some sandboxes never allow the socket, or close it at once each
		// time.
		if err != nil && !failed {
			log.WithError(err).Warn("cannot receive kernel events; changes are noticed at the next interval")
			failed = true
		}
	}, reopenAfter)
	return to
}
