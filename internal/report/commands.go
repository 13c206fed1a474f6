package report

import (
	"gdr-features/internal/expect"
	"gdr-features/source/pci"
)

// What each command reads of a machine.
var (
	ForLabels = Options{Detail: pci.Needed, OnlyWithGPU: true}
	ForCheck  = Options{Detail: pci.Advised}
	ForTopo   = Options{Detail: pci.Everything} // and explain, and the overview
)

// Commands are all of them, the one that reads most first: what a snapshot has to
// hold, so that what is expected of a machine can be compared with it too.
var Commands = [...]Options{ForTopo.Expecting(anything), ForCheck, ForLabels}

// anything expects nothing: it has read what every expectation rests on.
func anything() (*expect.File, error) { return &expect.File{}, nil }

// Expecting gives options that compare with what is expected as well.
func (o Options) Expecting(want func() (*expect.File, error)) Options {
	o.Expect = want
	return o
}
