package main

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"gdr-features/internal/report"
	"gdr-features/internal/uevent"
)

// relisten is how long after the kernel's socket failed it is opened again.
const relisten = 10 * time.Second

// concerns gives the parts of the machine that an event is about; 0 for none.
func concerns(e uevent.Event) report.Parts {
	switch e.Subsystem {
	case "pci":
		return report.PCI
	case "infiniband", "net":
		return report.RDMA
	case "module":
		return report.Drivers
	}
	if e == uevent.Lost {
		return report.All
	}
	return 0
}

// listener is what uevent.Listen gives.
type listener interface {
	Run(ctx context.Context, hear func(uevent.Event)) error
}

// listen is uevent.Listen.
func listen() (listener, error) { return uevent.Listen() }

// events tells which parts of the machine may have changed, until ctx ends. What
// nobody has taken yet is put together with what follows.
func events(ctx context.Context, log logrus.FieldLogger, listen func() (listener, error)) <-chan report.Parts {
	to := make(chan report.Parts, 1)
	hear := func(e uevent.Event) {
		parts := concerns(e)
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
	go func() {
		deaf := false // the socket failed and has not worked for a while since
		for ctx.Err() == nil {
			l, err := listen()
			if err == nil {
				if deaf {
					hear(uevent.Lost) // what happened meanwhile
				}
				works := time.After(relisten)
				err = l.Run(ctx, hear)
				select {
				case <-works:
					deaf = false
				default:
				}
			}
			// Once for each loss: some sandboxes never allow the socket, or close
			// it at once each time.
			if err != nil && !deaf {
				log.WithError(err).Warn("the kernel's events cannot be heard; changes show at the next interval")
				deaf = true
			}
			select {
			case <-time.After(relisten):
			case <-ctx.Done():
			}
		}
	}()
	return to
}
