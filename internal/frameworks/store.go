package frameworks

import (
	"encoding/json"
	"slices"
	"strings"

	"gdr-features/internal/assign"
)

const (
	storeDevice = "MOONCAKE_DEVICE"
	storeSwitch = "MC_MS_AUTO_DISC"
	storeAuto   = "auto-discovery"
)

// writeStore lists the near NICs for Mooncake's store, names without ports
// (kvcache-ai/Mooncake 3b5a594, mooncake-wheel/mooncake/mooncake_config.py, load_from_env;
// mooncake-store/src/client_service.cpp, ParseDeviceNames and InitTransferEngine). It does not
// read the file of MC_CUSTOM_TOPO_JSON then, which is for its own choice
// (mooncake-transfer-engine/src/transfer_engine_impl.cpp). In SGLang the value may be the JSON
// of SGLang's file instead, with an entry for each rank (sgl-project/sglang 00fe477,
// python/sglang/srt/mem_cache/storage/mooncake_store/mooncake_store.py, MooncakeStore).
func writeStore(m *assign.Assignment) Settings {
	nics := m.Near()
	if len(nics) == 0 {
		return Settings{}
	}
	var s Settings
	s.set(storeDevice, strings.Join(namesOf(nics), ","))
	s.useEngine(m)
	s.note(storeSwitch + "=1 must not be set: Mooncake's store would choose itself.")
	s.perProcess(m, storeDevice)
	return s
}

// judgeStore reads the list, or what SGLang takes in its place.
func judgeStore(j *judge, f *Finding) {
	text := strings.TrimSpace(j.Variables[storeDevice])
	switch {
	case text == storeAuto:
		return
	case j.Variables[storeSwitch] == "1":
		f.wrong("Mooncake's store ignores it, because %s=1 is set", storeSwitch)
	}
	if strings.HasPrefix(text, "{") {
		var ranks sglangFile
		if err := json.Unmarshal([]byte(text), &ranks); err != nil {
			f.wrong("SGLang cannot read this JSON: %v", err)
			return
		}
		j.sets(f, j.byNumber(f, ranks))
		slices.Sort(f.Problems)
		return
	}
	j.listOfProcess(f, j.names(f, storeDevice, entries(text)))
}
