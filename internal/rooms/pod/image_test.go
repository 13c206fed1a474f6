package pod_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"gdr-features/internal/finding"
	"gdr-features/internal/rooms/pod"
	"gdr-features/test/library"
	"gdr-features/tristate"
)

// ionicNIC has AMD's NICs, and efaNIC those of AWS.
var (
	ionicNIC = strings.ReplaceAll(roce, "15b3:1021", "1dd8:1002")
	efaNIC   = strings.ReplaceAll(roce, "15b3:1021", "1d0f:efa3")
)

// bonded has a bond of two ports instead of a NIC.
var bonded = strings.Replace(roce, "rdma=mlx5_0\n", "rdma=mlx5_bond_0\n", 1)

// withImage judges an image in which all is right, after a change to it.
func withImage(change func(files fstest.MapFS)) func(c *container) {
	return func(c *container) {
		files := library.Image("56.1", 34, []string{library.RegisterDMABuf}, "mlx5", "efa", "ionic")
		if change != nil {
			change(files)
		}
		c.image = files
	}
}

// onlyDMABuf: the node has no peer memory client.
func onlyDMABuf(c *container) { c.remove("sys/module/nvidia_peermem") }

// has adds a package of Debian's.
func has(name, version string) func(files fstest.MapFS) {
	return func(files fstest.MapFS) {
		files["var/lib/dpkg/status"] = &fstest.MapFile{Data: []byte("Package: " + name + "\nVersion: " + version + "\n")}
	}
}

func imageFailures() []podFailure {
	const fail, warn = finding.StatusFail, finding.StatusWarn
	dir := library.Lib + "/libibverbs/"
	without := func(name string) func(c *container) {
		return withImage(func(files fstest.MapFS) { delete(files, name) })
	}
	provider := func(private int, least, most uint32, symbols ...string) func(c *container) {
		return withImage(func(files fstest.MapFS) {
			files[dir+"libmlx5-rdmav34.so"].Data = library.Provider("mlx5", private, least, most, symbols...)
		})
	}
	on := func(changes ...func(c *container)) func(c *container) {
		return func(c *container) {
			for _, change := range changes {
				change(c)
			}
		}
	}
	with := func(set string) func(c *container) {
		return func(c *container) {
			name, value, _ := strings.Cut(set, "=")
			c.variables[name] = value
		}
	}
	asking := func(framework string) func(c *container) { return func(c *container) { c.framework = framework } }
	mooncake := func(version string) func(files fstest.MapFS) {
		return func(files fstest.MapFS) {
			files["usr/lib/python3/dist-packages/mooncake_transfer_engine-"+version+".dist-info/METADATA"] = &fstest.MapFile{}
		}
	}
	return []podFailure{
		{name: "image: that of a static program", broken: without(library.Loader), status: warn, code: "LibrariesNotSeen", text: "the job's libraries are not judged", evidence: "/lib64/ld-linux-x86-64.so.2=absent", fix: "--image"},
		{name: "image: no libibverbs", broken: without(library.Lib + "/libibverbs.so.1"), status: fail, code: "NoLibibverbs", text: "NCCL uses TCP", evidence: "no libibverbs.so.1", fix: "ibverbs-providers"},
		{name: "image: libibverbs beside", broken: withImage(func(files fstest.MapFS) {
			files["opt/conda/lib/libibverbs.so.1"] = files[library.Lib+"/libibverbs.so.1.14.56.1"]
			delete(files, library.Lib+"/libibverbs.so.1")
		}), status: warn, code: "NoLibibverbs", text: "run path leads to /opt/conda/lib", evidence: "/opt/conda/lib/libibverbs.so.1=present", fix: "LD_LIBRARY_PATH"},
		{name: "image: an older C library", broken: withImage(func(files fstest.MapFS) {
			files[library.CLibrary].Data = library.Library{Defines: []string{"GLIBC_2.2.5"}}.Bytes()
		}), status: fail, code: "LibraryRefused", text: "GLIBC_2.34 of libc.so.6", evidence: "needs GLIBC_2.34", fix: "libibverbs1"},
		{name: "image: old, where DMA-BUF is the only way", broken: on(onlyDMABuf, func(c *container) { c.image = library.Image("33.2", 33, nil, "mlx5") }), status: fail, code: "LibibverbsTooOld", text: "libibverbs 33.2 has no ibv_reg_dmabuf_mr", evidence: "no ibv_reg_dmabuf_mr@IBVERBS_1.12", fix: "rdma-core 34"},
		{name: "image: no provider", broken: without(dir + "libmlx5-rdmav34.so"), status: fail, code: "NoVerbsProvider", text: "libmlx5-rdmav34.so", evidence: "libmlx5-rdmav34.so=absent", fix: "ibverbs-providers"},
		{name: "image: a release before the family", on: ionicNIC, broken: without(dir + "libionic-rdmav34.so"), status: fail, code: "NoVerbsProvider", text: "libionic-rdmav34.so", fix: "ionic needs rdma-core 61"},
		{name: "image: a provider of another release", broken: withImage(func(files fstest.MapFS) {
			files[dir+"libmlx5-rdmav65.so"] = files[dir+"libmlx5-rdmav34.so"]
			delete(files, dir+"libmlx5-rdmav34.so")
		}), status: fail, code: "ProviderMismatch", text: "libmlx5-rdmav34.so is looked for, and /" + dir + "libmlx5-rdmav65.so is here", evidence: "libmlx5-rdmav65.so=present", fix: "from one source"},
		{name: "image: a provider that was made for another libibverbs", broken: provider(65, 1, 1), status: fail, code: "ProviderMismatch", text: "IBVERBS_PRIVATE_65 of libibverbs.so.1", evidence: "libmlx5-rdmav34.so=mlx5", fix: "from one source"},
		{name: "image: a provider that is not listed", broken: without("etc/libibverbs.d/mlx5.driver"), status: fail, code: "ProviderNotListed", text: "no file in /etc/libibverbs.d names it", evidence: "libmlx5-rdmav34.so", fix: "driver NAME"},
		{name: "image: rdma-core's library with the vendor's driver", on: ionicNIC, broken: on(withImage(nil), func(c *container) {
			c.write("sys/class/infiniband_verbs/uverbs0/abi_version", "4\n")
			c.write("sys/class/infiniband_verbs/uverbs1/abi_version", "4\n")
		}), status: fail, code: "ProviderKernelABI", text: "mlx5_0 has ABI 4, and libionic supports 1 to 1", evidence: "abi_version=4", fix: "libionic"},
		{name: "image: no data-direct functions", on: dataDirect(), broken: withImage(nil), status: warn, code: "NoDataDirect", text: "mlx5dv_reg_dmabuf_mr, mlx5dv_get_data_direct_sysfs_path", evidence: "no mlx5dv_reg_dmabuf_mr@MLX5_1.25", fix: "rdma-core 54"},
		{name: "image: no plugin for EFA", on: efaNIC, broken: withImage(has("libnccl2", "2.27.3-1+cuda12.9")), status: fail, code: "NoNCCLPlugin", text: "aws-ofi-nccl", evidence: "no libnccl-net.so", fix: "LD_LIBRARY_PATH"},
		{name: "image: a plugin without libfabric", on: efaNIC, broken: on(asking("nccl"), withImage(func(files fstest.MapFS) {
			has("libnccl2", "2.27.3-1+cuda12.9")(files)
			files[library.Lib+"/libnccl-net.so"] = &fstest.MapFile{}
		})), status: fail, code: "NoNCCLPlugin", text: "needs libfabric", evidence: "no libfabric.so.1", fix: "libfabric"},
		{name: "image: a libfabric without librdmacm", on: efaNIC, broken: withImage(func(files fstest.MapFS) {
			has("libnccl2", "2.27.3-1+cuda12.9")(files)
			files[library.Lib+"/libnccl-net.so"] = &fstest.MapFile{}
			files[library.Lib+"/libfabric.so.1"] = &fstest.MapFile{Data: library.Library{Needs: map[string][]string{"librdmacm.so.1": nil}}.Bytes()}
		}), status: fail, code: "LibraryRefused", text: "librdmacm.so.1", fix: "librdmacm1"},
		{name: "ways: Mooncake by peermem on a node with DMA-BUF alone", broken: on(onlyDMABuf, withImage(mooncake("0.3.12"))), status: fail, code: "NoCommonWay", text: "mooncake 0.3.12 registers GPU memory by peermem; this node has DMA-BUF", evidence: "mooncake_transfer_engine-0.3.12.dist-info=0.3.12", fix: "WITH_NVIDIA_PEERMEM=0"},
		{name: "ways: an old NCCL on a node with DMA-BUF alone", broken: on(onlyDMABuf, withImage(has("libnccl2", "2.11.4-1+cuda11.6"))), status: fail, code: "NoCommonWay", text: "nccl 2.11.4 registers GPU memory by peermem", fix: "docs/mechanisms.md"},
		{name: "ways: an old UCX beside a new NCCL", broken: on(onlyDMABuf, withImage(func(files fstest.MapFS) {
			has("libucx0", "1.13.1-1")(files)
			files["var/lib/dpkg/status.d/libnccl2"] = &fstest.MapFile{Data: []byte("Package: libnccl2\nVersion: 2.27.3-1\n")}
		})), status: warn, code: "NoCommonWay", text: "ucx 1.13.1 registers GPU memory by peermem", fix: "docs/mechanisms.md"},
		{name: "ways: NIXL through an old UCX", broken: on(onlyDMABuf, asking("nixl"), withImage(has("libucx0", "1.13.1-1"))), status: fail, code: "NoCommonWay", text: "nixl through ucx 1.13.1", fix: "docs/mechanisms.md"},
		{name: "ways: vLLM through NCCL, and through NIXL and an old UCX", broken: on(onlyDMABuf, asking("vllm"), withImage(func(files fstest.MapFS) {
			has("libucx0", "1.13.1-1")(files)
			files["var/lib/dpkg/status.d/libnccl2"] = &fstest.MapFile{Data: []byte("Package: libnccl2\nVersion: 2.27.3-1\n")}
			files["opt/venv/lib/python3.12/site-packages/nixl-1.3.2.dist-info/METADATA"] = &fstest.MapFile{}
			files["opt/venv/lib/python3.12/site-packages/vllm-0.20.0.dist-info/METADATA"] = &fstest.MapFile{}
		})), status: warn, code: "NoCommonWay", text: "vllm through ucx 1.13.1 registers GPU memory by peermem", fix: "docs/mechanisms.md"},
		{name: "Mooncake's GID index", broken: on(withImage(nil), with("MC_GID_INDEX=5")), status: fail, code: "GIDIndexWrong", text: "MC_GID_INDEX=5 on mlx5_0/1", evidence: "MC_GID_INDEX=5", fix: "remove the variable"},
		{name: "gin: no virtual memory management", broken: on(withImage(nil), with("NCCL_GIN_TYPE=2"), with("NCCL_CUMEM_ENABLE=0")), status: fail, code: "GINImpossible", text: "NCCL_CUMEM_ENABLE=0", evidence: "NCCL_CUMEM_ENABLE=0", fix: "spec.containers[].env"},
		{name: "gin: GDAKI on other NICs", on: ionicNIC, broken: on(withImage(nil), with("NCCL_GIN_TYPE=3")), status: fail, code: "GINImpossible", text: "for mlx5 NICs alone; there are ionic", evidence: "NCCL_GIN_TYPE=3", fix: "proxy"},
		{name: "gin: an old rdma-core", broken: on(with("NCCL_GIN_TYPE=2"), func(c *container) {
			c.image = library.Image("39.0", 34, []string{library.RegisterDMABuf}, "mlx5")
		}), status: fail, code: "GINImpossible", text: "rdma-core 39.0 (44)", evidence: "libibverbs.so.1.14.39.0=39.0", fix: "versions"},
		{name: "gin: EFA-GDA with an old libfabric", on: efaNIC, broken: on(with("NCCL_GIN_TYPE=5"), withImage(has("libfabric1-aws", "2.4.0amzn1.0"))), status: fail, code: "GINImpossible", text: "libfabric 2.4.0amzn1.0 (2.6)", fix: "versions"},
		{name: "gin: EFA without GDRCopy", on: efaNIC, broken: on(with("NCCL_GIN_TYPE=2"), withImage(nil)), status: fail, code: "GINImpossible", text: "/dev/gdrdrv cannot be used", evidence: "/dev/gdrdrv=absent", fix: "gdrcopy.enabled=true"},
		{name: "gin: two ports of a card", on: strings.Replace(roce, "rdma=mlx5_0\n", "rdma=mlx5_0\n      0000:14:00.1 eth 15b3:1021 rdma=mlx5_2\n", 1), broken: on(with("NCCL_GIN_TYPE=2"), withImage(nil)), status: warn, code: "GINFusedNICs", text: "mlx5_0 and mlx5_2", fix: "NCCL_IB_MERGE_NICS=0"},
		{name: "gin: EFA-GDA on a machine without it", on: efaNIC, broken: on(with("NCCL_GIN_TYPE=5"), withImage(nil), func(c *container) {
			c.write("dev/gdrdrv", "")
			c.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n")
			c.write("sys/class/dmi/id/product_name", "p5.48xlarge\n")
		}), status: fail, code: "GINImpossible", text: "of type p5.48xlarge has no EFA-GDA", evidence: "product_name=p5.48xlarge", fix: "p5en"},
		{name: "gin: GDAKI by DMA-BUF with an older kernel", broken: on(onlyDMABuf, with("NCCL_GIN_TYPE=3"), withImage(nil), func(c *container) {
			c.write("proc/sys/kernel/osrelease", "5.15.0-134-generic\n")
		}), status: warn, code: "GINImpossible", text: "this kernel is 5.15.0-134-generic, with DMA-BUF alone", evidence: "/proc/sys/kernel/osrelease=5.15.0-134-generic", fix: "nvidia-peermem"},
		{name: "ucx: a bond", on: bonded, broken: withImage(has("libucx0", "1.18.1+ds-2")), status: warn, code: "UCXOnBond", text: "UCX 1.18.1+ds may crash when it registers memory with mlx5_bond_0", evidence: "/sys/class/infiniband/mlx5_bond_0", fix: "UCX_TLS=^gga"},
		{name: "ucx: a bond, and gga among the transports", on: bonded, broken: on(asking("nixl"), with("UCX_TLS=ib,cuda"), withImage(has("libucx0", "1.19.0-1"))), status: warn, code: "UCXOnBond", text: "UCX 1.19.0 may", evidence: "UCX_TLS=ib,cuda", fix: "UCX_TLS=^gga"},
		{name: "ucx: a bond, and a UCX of which nothing is known", on: bonded, broken: on(asking("ucx"), withImage(nil)), status: warn, code: "UCXOnBond", text: "UCX of unknown version may", evidence: "mlx5_bond_0", fix: "UCX_TLS=^gga"},
		{name: "ways: expandable_segments", broken: on(withImage(nil), with("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128, expandable_segments:True")), status: warn, code: "ExpandableSegments", text: "Bad address", evidence: "PYTORCH_CUDA_ALLOC_CONF=", fix: "remove expandable_segments"},
	}
}

// TestImageRight: images in which all is right, in several ways, give nothing but OK.
func TestImageRight(t *testing.T) {
	tests := map[string]func(c *container){
		"modern":                      withImage(nil),
		"old, on a node with peermem": func(c *container) { c.image = library.Image("33.2", 33, nil, "mlx5") },
		"Mooncake by DMA-BUF": func(c *container) {
			onlyDMABuf(c)
			c.framework, c.variables["WITH_NVIDIA_PEERMEM"] = "mooncake", "0"
			withImage(func(files fstest.MapFS) {
				files["usr/lib/python3/dist-packages/mooncake_transfer_engine-0.3.12.dist-info/METADATA"] = &fstest.MapFile{}
			})(c)
		},
		"GIN": func(c *container) {
			withImage(nil)(c)
			c.variables["NCCL_GIN_TYPE"], c.variables["NCCL_CROSS_NIC"] = "3", "1"
		},
		"segments that are not expandable":          func(c *container) { c.variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:False" },
		"a framework that nobody knows the ways of": withImage(has("nvshmem", "3.3.9")),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, roce)
			change(c)
			r := c.read()
			if found := r.notOK(); len(found) > 0 || pod.Ready(r.all) != tristate.True || len(r.Problems) > 0 {
				t.Errorf("%+v, problems %v", found, r.Problems)
			}
		})
	}
}

// TestBondRight: bonds are no problem to a UCX that does not use gga, and to other frameworks.
func TestBondRight(t *testing.T) {
	tests := map[string]struct {
		transports, ucx string
		says            string
	}{
		"without gga":      {"^gga", "1.20.0-1", "UCX does not use gga on mlx5_bond_0"},
		"without gga_mlx5": {"^gga_mlx5,tcp", "1.20.0-1", "UCX does not use gga on mlx5_bond_0"},
		"by name":          {"rc,ud,cuda", "1.20.0-1", "UCX does not use gga on mlx5_bond_0"},
		"an older UCX":     {"all", "1.17.0-1", "UCX does not use gga on mlx5_bond_0"},
		"no UCX":           {"all", "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, bonded)
			withImage(nil)(c)
			if c.variables["UCX_TLS"] = tt.transports; tt.ucx != "" {
				withImage(has("libucx0", tt.ucx))(c)
			}
			r := c.read()
			said := ""
			for _, f := range r.all {
				if f.Check == "ucx-bond" {
					said = f.Detail
				}
			}
			if found := r.notOK(); len(found) > 0 || said != tt.says {
				t.Errorf("%q, want %q; %+v", said, tt.says, found)
			}
		})
	}
}

// TestImageUnknown: what is not known of the framework that somebody asks for is unknown.
func TestImageUnknown(t *testing.T) {
	c := newContainer(t, roce)
	onlyDMABuf(c)
	withImage(nil)(c)
	c.framework = "mooncake"
	r := c.read()
	found := r.notOK()
	if len(found) != 1 || found[0].Status != finding.StatusUnknown || !strings.Contains(found[0].FixText(), "WITH_NVIDIA_PEERMEM=0") || pod.Ready(r.all) != tristate.Unknown {
		t.Errorf("%+v", found)
	}
}

// dataDirect describes a machine whose NICs have data-direct functions.
func dataDirect() string {
	description, err := os.ReadFile(filepath.Join(machinesDir, "gb300-datadirect.txt"))
	if err != nil {
		panic(err)
	}
	return string(description)
}
