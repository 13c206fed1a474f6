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

// events tells which parts of the machine may have changed, until ctx ends. What
// nobody has taken yet is put together with what follows.
func events(ctx context.Context, log logrus.FieldLogger) <-chan report.Parts {
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
		for ctx.Err() == nil {
			l, err := uevent.Listen()
			if err == nil {
				err = l.Run(ctx, hear)
			}
			if err != nil {
				log.WithError(err).Warn("the kernel's events cannot be heard; changes show at the next interval")
			}
			select {
			case <-time.After(relisten):
				hear(uevent.Lost)
			case <-ctx.Done():
			}
		}
	}()
	return to
}
