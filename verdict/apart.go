package verdict

import (
	"gdr-features/topology"
	"gdr-features/tristate"
)

// apart returns what one GPU and one NIC lack together of the steps before GPU memory, and the
// pairs that come furthest. It matters where the driver maps GPU memory for some pairs alone: the
// port of one NIC does not help the GPU of another. Elsewhere nothing is lacking.
func (j *judge) apart() (lack Step, pairs []*topology.Pair) {
	met, mixed := Step{"port", tristate.True, NoActivePort}, false
	j.each(func(of *topology.Pair) { mixed = mixed || of.Allowed != tristate.True })
	if !mixed || j.Reachable != tristate.True {
		return met, nil
	}
	most := -1
	j.each(func(of *topology.Pair) {
		steps := j.stepsOf(of)
		n := progress(steps)
		if n > most {
			most, lack, pairs = n, met, nil
			if n < len(steps) {
				lack = steps[n]
			} else if n == len(steps) {
				lack.Met = tristate.Unknown
			}
		}
		if n == most {
			pairs = append(pairs, of)
		}
	})
	lack.Met = j.unlessUnidentified(lack.Met)
	return lack, pairs
}

// stepsOf are the steps before GPU memory, asked of one GPU and one NIC.
func (j *judge) stepsOf(of *topology.Pair) []Step {
	gpu, nic := j.Matrix.GPUs[of.GPU].Function, &j.Matrix.NICs[of.NIC]
	return []Step{
		{"hardware", of.Allowed, PlatformForbidsP2P},
		{"gpu-driver", j.driven[gpu], GPUDriverNotLoaded},
		{"nic-driver", j.bound(nic.Function), NICDriverNotLoaded},
		{"rdma-device", j.unlessHidden(tristate.Of(nic.RDMA != nil)), NoRDMADevice},
		{"port", j.unlessHidden(HasActivePort(nic)), NoActivePort},
	}
}

// unlessHidden makes False unknown where RDMA devices may be hidden.
func (j *judge) unlessHidden(no tristate.State) tristate.State {
	if no == tristate.False && !j.RDMA.Complete {
		return tristate.Unknown
	}
	return no
}
