package kmod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/tristate"
)

const (
	kernelRel = "6.8.0-60-generic"
	relFile   = "proc/sys/kernel/osrelease"
	depFile   = "lib/modules/" + kernelRel + "/modules.dep"
	ctrDep    = "run/nvidia/driver/" + depFile
	other     = "kernel/net/tls/tls.ko:\nkernel/fs/peerfs.ko.zst: kernel/net/tls/tls.ko\n"
)

// TestModuleFile: the module's file is found where depmod lists it, in the
// driver's container and on the host, and what it depends on tells how it was
// built.
func TestModuleFile(t *testing.T) {
	stub := ModuleFile{Listed: tristate.True, Name: "nvidia_peermem", Dep: []string{"/" + depFile}}
	full := stub
	full.Needs = []string{"ib_uverbs", "nvidia"}
	inContainer := full
	inContainer.Dep = []string{"/" + ctrDep}
	old := full
	old.Name = "nv_peer_mem"
	const line = "updates/dkms/nvidia-peermem.ko.zst: updates/dkms/ib_uverbs.ko.zst updates/dkms/nvidia.ko.zst\n"
	oldLine := strings.Replace(line, "nvidia-peermem", "nv_peer_mem", 1)
	for _, tc := range []struct {
		name     string
		files    map[string]string
		want     ModuleFile
		problems []string
	}{
		{"no release", map[string]string{depFile: line}, ModuleFile{}, nil},
		{"a release that is a path", map[string]string{relFile: "../../x\n", depFile: line}, ModuleFile{}, nil},
		{"no modules.dep", map[string]string{relFile: kernelRel + "\n"}, ModuleFile{}, nil},
		{"not listed", map[string]string{relFile: kernelRel, depFile: other}, ModuleFile{Listed: tristate.False, Dep: []string{"/" + depFile}}, nil},
		{"a stub", map[string]string{relFile: kernelRel, depFile: other + "updates/nvidia-peermem.ko.xz:\n"}, stub, nil},
		{"without newline", map[string]string{relFile: kernelRel, depFile: other + "nvidia-peermem.ko:"}, stub, nil},
		{"a whole one", map[string]string{relFile: kernelRel, depFile: other + line + other}, full, nil},
		{"as a dependency only", map[string]string{relFile: kernelRel, depFile: "x.ko: updates/nvidia-peermem.ko\n"}, ModuleFile{Listed: tristate.False, Dep: []string{"/" + depFile}}, nil},
		{"first as a dependency", map[string]string{relFile: kernelRel, depFile: "x.ko: updates/nvidia-peermem.ko\n" + line}, full, nil},
		{"in the container", map[string]string{relFile: kernelRel, depFile: other, ctrDep: line}, inContainer, nil},
		{"in neither", map[string]string{relFile: kernelRel, depFile: other, ctrDep: other}, ModuleFile{Listed: tristate.False, Dep: []string{"/" + ctrDep, "/" + depFile}}, nil},
		{"the old name", map[string]string{relFile: kernelRel, depFile: oldLine}, old, nil},
		{"the old name in the container, the new one on the host", map[string]string{relFile: kernelRel, ctrDep: oldLine, depFile: line}, full, nil},
		{"one of two is unreadable", map[string]string{relFile: kernelRel, ctrDep: isDir, depFile: other}, ModuleFile{Dep: []string{"/" + depFile}}, []string{"read /" + ctrDep}},
		{"garbage", map[string]string{relFile: kernelRel, depFile: "\x7fELF peer\x00peer"}, ModuleFile{Listed: tristate.False, Dep: []string{"/" + depFile}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			st := advise(t, tc.files)
			if diff := cmp.Diff(tc.want, st.Advice.File); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wantProblems(t, st.Problems, tc.problems...)
		})
	}
}

// FuzzNeedsOf: any text ends the search, and only a line that begins with the
// module's file counts.
func FuzzNeedsOf(f *testing.F) {
	f.Add("updates/nvidia-peermem.ko.zst: a/ib_core.ko b/nvidia.ko\n")
	f.Add("peer\npeer: \nnvidia-peermem.ko:")
	f.Fuzz(func(t *testing.T, text string) {
		needs, ok := needsOf(text, "nvidia_peermem")
		if ok && !strings.Contains(text, "peermem") {
			t.Errorf("found in %q", text)
		}
		for _, name := range needs {
			if strings.ContainsAny(name, "-/ \n") {
				t.Errorf("%q is no name of a module", name)
			}
		}
	})
}

func advise(t *testing.T, files map[string]string) State {
	t.Helper()
	fs := tree(t, withKernel(files))
	functions, table := machine("nvidia", "mlx5", "mlx4")
	return Advise(fs, functions, table, source.What{}, Scan(fs, functions, table, source.What{}))
}

// TestAdvice reads everything else that advice needs.
func TestAdvice(t *testing.T) {
	const module = "sys/module/nvidia_peermem/"
	files := map[string]string{
		module + "initstate": "live\n", module + "version": "570.86.15\n", module + "refcnt": "7\n",
		module + "parameters/peerdirect_support": "1\n", module + "parameters/persistent_api_support": "0\n",
		"sys/kernel/mm/memory_peers/nv_mem_nc/version": "570.86.15\n",
		"sys/module/ib_uverbs/holders/nvidia_peermem":  isDir,
		"sys/module/ib_uverbs/holders/mlx5_ib":         isDir,
		"proc/driver/nvidia/params":                    "Other: 1\nGrdmaPciTopoCheckOverride: 2\n",
		"sys/module/gdrdrv":                            isDir,
		"run/nvidia/validations/.driver-ctr-ready":     "GDS_ENABLED: false\nGPU_DIRECT_RDMA_ENABLED: true\n",
		"run/mellanox/drivers/.driver-ready":           "x",
		relFile:                                        kernelRel, depFile: "nvidia-peermem.ko:\n", // not looked for while loaded
	}
	want := &Advice{
		Peermem:     PeermemModule{Version: tristate.True, LegacyAPI: "1", PersistentAPI: "0", Users: 7},
		NCCLClient:  tristate.True,
		Holders:     map[string][]string{"ib_uverbs": {"mlx5_ib", "nvidia_peermem"}},
		NICVersions: map[string]string{}, VerbsABI: map[string]VerbsABI{},
		GDRCopy:   tristate.True,
		Operators: Operators{GPU: tristate.True, DriverReady: tristate.True, RDMA: tristate.True, MOFEDReady: tristate.True},
	}
	st := advise(t, files)
	if diff := cmp.Diff(want, st.Advice); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantProblems(t, st.Problems)
	if st := scan(t, files); st.Advice != nil {
		t.Errorf("advice that nobody asked for: %+v", st.Advice)
	}
	// On a bare tree nothing is known, and nothing is a problem.
	st = advise(t, nil)
	want = &Advice{
		Peermem: PeermemModule{Users: -1}, NCCLClient: tristate.False, Holders: map[string][]string{},
		NICVersions: map[string]string{}, VerbsABI: map[string]VerbsABI{},
		GDRCopy: tristate.False, Operators: Operators{GPU: tristate.False, MOFEDReady: tristate.False},
	}
	if diff := cmp.Diff(want, st.Advice); diff != "" {
		t.Errorf("bare (-want +got):\n%s", diff)
	}
	wantProblems(t, st.Problems)
}

// TestOperators: an empty mark of an older driver only says that it is ready.
func TestOperators(t *testing.T) {
	const mark = "run/nvidia/validations/.driver-ctr-ready"
	for text, want := range map[string]Operators{
		"":                                      {GPU: tristate.True, DriverReady: tristate.True, MOFEDReady: tristate.False},
		"GPU_DIRECT_RDMA_ENABLED:\n":            {GPU: tristate.True, DriverReady: tristate.True, MOFEDReady: tristate.False},
		"GPU_DIRECT_RDMA_ENABLED: false":        {GPU: tristate.True, DriverReady: tristate.True, RDMA: tristate.False, MOFEDReady: tristate.False},
		"A: b\nGPU_DIRECT_RDMA_ENABLED: true\n": {GPU: tristate.True, DriverReady: tristate.True, RDMA: tristate.True, MOFEDReady: tristate.False},
		"GPU_DIRECT_RDMA_ENABLED: maybe\n":      {GPU: tristate.True, DriverReady: tristate.True, MOFEDReady: tristate.False},
		"GPU_DIRECT_RDMA_ENABLED\n":             {GPU: tristate.True, DriverReady: tristate.True, MOFEDReady: tristate.False},
		isDir:                                   {GPU: tristate.True, MOFEDReady: tristate.False},
	} {
		st := advise(t, map[string]string{mark: text})
		if diff := cmp.Diff(want, st.Advice.Operators); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestNICAdvice: versions are read of the drivers that MOFED does not include,
// and the interfaces to user space where the family compares them.
func TestNICAdvice(t *testing.T) {
	const class = "sys/class/infiniband_verbs/"
	files := map[string]string{
		"sys/module/efa/version": "3.1.0g\n", "sys/module/bnxt_re/version": isDir, "sys/module/mlx5_core/version": "24.10-1.1.4\n",
		class + "abi_version":         "6\n",
		class + "uverbs0/ibdev":       "bnxt_re0\n",
		class + "uverbs0/abi_version": "8\n",
		class + "uverbs1/ibdev":       "bnxt_re1\n", // no version
		class + "uverbs2/ibdev":       "bnxt_re2\n",
		class + "uverbs2/abi_version": "eight\n",
	}
	for _, tt := range []struct {
		nics     []string
		versions map[string]string
		abi      map[string]VerbsABI
		problems []string
	}{
		{[]string{"mlx5"}, map[string]string{}, map[string]VerbsABI{}, nil},
		{[]string{"efa"}, map[string]string{"efa": "3.1.0g"}, map[string]VerbsABI{}, nil},
		{
			[]string{"efa", "bnxt_re"},
			map[string]string{"efa": "3.1.0g"},
			map[string]VerbsABI{"bnxt_re0": {8, "/" + class + "uverbs0/abi_version"}},
			[]string{"read /sys/module/bnxt_re/version: is a directory"},
		},
		{[]string{"irdma"}, map[string]string{"irdma": ""}, map[string]VerbsABI{}, nil},
	} {
		functions, table := machine(append(tt.nics, "nvidia")...)
		fs := tree(t, withKernel(files))
		a := Advise(fs, functions, table, source.What{}, Scan(fs, functions, table, source.What{}))
		if diff := cmp.Diff(tt.versions, a.Advice.NICVersions); diff != "" {
			t.Errorf("%v, versions (-want +got):\n%s", tt.nics, diff)
		}
		if diff := cmp.Diff(tt.abi, a.Advice.VerbsABI); diff != "" {
			t.Errorf("%v, interfaces (-want +got):\n%s", tt.nics, diff)
		}
		wantProblems(t, a.Problems, tt.problems...)
	}
}
