package verdict_test

import (
	"slices"
	"testing"

	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// world is a machine on which nothing is unknown. Groups are numbers, 0 for none, as the pointers
// are that the driver compares.
type world struct {
	release   string
	parameter int
	gpu, nic  int
	bridge    bool
}

// maps is the C code of the release, for a GPU that shares memory with its CPU.
func (w world) maps() bool {
	switch w.release {
	case "565.57.01":
		return true // over C2C: there is no other mapping
	case "570.86.15", "575.57.08":
		return w.parameter != 0 || w.gpu == w.nic
	case "580.65.06", "590.48.01":
		switch w.parameter {
		case 1:
			return true
		case 2:
			return false
		}
		return w.gpu == w.nic
	case "595.45.04":
		return w.gpu == w.nic
	}
	if w.gpu == w.nic {
		return true
	}
	if w.nic == 0 {
		return w.bridge
	}
	return false
}

// Releases whose parameters list GrdmaPciTopoCheckOverride, and those whose do not.
var (
	listing = []string{"570.86.15", "575.57.08", "580.65.06", "590.48.01", "595.45.04"}
	lacking = []string{"595.91.07", "610.57.04", "615.71.09"}
)

// TestDirectPCI: for every combination of what can be read, the answer is that of all machines
// which look like this, where these agree, and otherwise unknown.
func TestDirectPCI(t *testing.T) {
	groups := map[int][]int{4: {4}, 7: {7}, pci.None: {0}, pci.Unread: {0, 4, 7, 9}}
	bridges := map[tristate.State][]bool{yes: {true}, no: {false}, unknown: {true, false}}
	parameters := map[verdict.TopoCheck][]int{
		0: {0}, 1: {1}, 2: {2}, 3: {3},
		verdict.TopoCheckUnread:      {0, 1, 2, 3},
		verdict.TopoCheckNotRecorded: {0, 1}, // no published node refuses all places
		verdict.TopoCheckNotListed:   {0, 1}, // of a release that would list it: as if not recorded
	}
	n := 0
	for _, release := range slices.Concat([]string{"", "565.57.01"}, listing, lacking) {
		for parameter, values := range parameters {
			for gpu, gpus := range groups {
				for nic, nics := range groups {
					for bridge, bools := range bridges {
						n++
						d := verdict.DirectPCI{Version: release, Parameter: parameter, GPU: gpu, NIC: nic, Bridge: bridge}
						if got, want := d.Valid(), inAll(looksLike(release, parameter), values, gpus, nics, bools); got != want {
							t.Errorf("%+v: %v, want %v", d, got, want)
						}
					}
				}
			}
		}
	}
	if want := 10 * 7 * 16 * 3; n != want {
		t.Errorf("%d combinations, want %d", n, want)
	}
}

// inAll is the answer of all machines with one of each of these.
func inAll(releases []string, values, gpus, nics []int, bridges []bool) tristate.State {
	var answers []bool
	for _, release := range releases {
		for _, value := range values {
			for _, gpu := range gpus {
				for _, nic := range nics {
					for _, bridge := range bridges {
						answers = append(answers, world{release, value, gpu, nic, bridge}.maps())
					}
				}
			}
		}
	}
	switch {
	case len(answers) == 0:
		return unknown
	case !slices.Contains(answers, false):
		return yes
	case !slices.Contains(answers, true):
		return no
	}
	return unknown
}

// looksLike lists the releases that a driver may be of. From 595 on, the parameter tells which
// rule a release has; nothing is said of a driver without a version.
func looksLike(release string, parameter verdict.TopoCheck) []string {
	switch early := []string{"595.45.04"}; {
	case release == "":
		return nil
	case !slices.Contains(lacking, release) && release != "595.45.04":
		return []string{release}
	case parameter >= 0:
		return early
	case parameter == verdict.TopoCheckNotListed:
		return lacking
	default:
		return slices.Concat(early, lacking)
	}
}
