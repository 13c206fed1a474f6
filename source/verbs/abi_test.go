package verbs

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gdr-features/source/family"
)

// mlx5 is the driver of most tests.
var mlx5 = family.Known().NICs[0].Uverbs

// numbers are what this package says and the C expression for the same.
var numbers = []struct {
	here uint64
	c    string
}{
	{ioctlNumber, "RDMA_VERBS_IOCTL"},

	{uint64(unsafe.Sizeof(header{})), "sizeof(struct ib_uverbs_ioctl_hdr)"},
	{uint64(unsafe.Offsetof(header{}.length)), "offsetof(struct ib_uverbs_ioctl_hdr, length)"},
	{uint64(unsafe.Offsetof(header{}.object)), "offsetof(struct ib_uverbs_ioctl_hdr, object_id)"},
	{uint64(unsafe.Offsetof(header{}.method)), "offsetof(struct ib_uverbs_ioctl_hdr, method_id)"},
	{uint64(unsafe.Offsetof(header{}.attributes)), "offsetof(struct ib_uverbs_ioctl_hdr, num_attrs)"},
	{uint64(unsafe.Offsetof(header{}.reserved1)), "offsetof(struct ib_uverbs_ioctl_hdr, reserved1)"},
	{uint64(unsafe.Offsetof(header{}.driver)), "offsetof(struct ib_uverbs_ioctl_hdr, driver_id)"},
	{uint64(unsafe.Offsetof(header{}.reserved2)), "offsetof(struct ib_uverbs_ioctl_hdr, reserved2)"},
	{uint64(unsafe.Offsetof(request{}.attributes)), "offsetof(struct ib_uverbs_ioctl_hdr, attrs)"},

	{uint64(unsafe.Sizeof(attribute{})), "sizeof(struct ib_uverbs_attr)"},
	{uint64(unsafe.Offsetof(attribute{}.id)), "offsetof(struct ib_uverbs_attr, attr_id)"},
	{uint64(unsafe.Offsetof(attribute{}.length)), "offsetof(struct ib_uverbs_attr, len)"},
	{uint64(unsafe.Offsetof(attribute{}.flags)), "offsetof(struct ib_uverbs_attr, flags)"},
	{uint64(unsafe.Offsetof(attribute{}.reserved)), "offsetof(struct ib_uverbs_attr, attr_data)"},
	{uint64(unsafe.Offsetof(attribute{}.data)), "offsetof(struct ib_uverbs_attr, data)"},
	{mandatory, "UVERBS_ATTR_F_MANDATORY"},

	{objectDevice, "UVERBS_OBJECT_DEVICE"},
	{objectMR, "UVERBS_OBJECT_MR"},
	{methodInvokeWrite, "UVERBS_METHOD_INVOKE_WRITE"},
	{methodQueryPort, "UVERBS_METHOD_QUERY_PORT"},
	{methodGetContext, "UVERBS_METHOD_GET_CONTEXT"},
	{methodRegDMABufMR, "UVERBS_METHOD_REG_DMABUF_MR"},
	{methodNone, "(unsigned short)~UVERBS_ID_NS_MASK"},

	{attrCoreIn, "UVERBS_ATTR_CORE_IN"},
	{attrCoreOut, "UVERBS_ATTR_CORE_OUT"},
	{attrWriteCmd, "UVERBS_ATTR_WRITE_CMD"},
	{attrUHWIn, "UVERBS_ATTR_UHW_IN"},
	{attrUHWOut, "UVERBS_ATTR_UHW_OUT"},
	{attrPortNumber, "UVERBS_ATTR_QUERY_PORT_PORT_NUM"},
	{attrPort, "UVERBS_ATTR_QUERY_PORT_RESP"},
	{uint64(unsafe.Sizeof(request{}.port)), "sizeof(struct ib_uverbs_query_port_resp_ex)"},
	{activeMTU, "offsetof(struct ib_uverbs_query_port_resp_ex, legacy_resp.active_mtu)"},
	{attrHandle, "UVERBS_ATTR_REG_DMABUF_MR_HANDLE"},
	{attrPDHandle, "UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE"},
	{attrOffset, "UVERBS_ATTR_REG_DMABUF_MR_OFFSET"},
	{attrLength, "UVERBS_ATTR_REG_DMABUF_MR_LENGTH"},
	{attrIOVA, "UVERBS_ATTR_REG_DMABUF_MR_IOVA"},
	{attrFD, "UVERBS_ATTR_REG_DMABUF_MR_FD"},
	{attrAccess, "UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS"},
	{attrLKey, "UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY"},
	{attrRKey, "UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY"},

	{cmdAllocPD, "IB_USER_VERBS_CMD_ALLOC_PD"},
	{8, "sizeof(struct ib_uverbs_alloc_pd)"},
	{uint64(unsafe.Sizeof(request{}.pd)), "sizeof(struct ib_uverbs_alloc_pd_resp)"},
	{0, "offsetof(struct ib_uverbs_alloc_pd_resp, pd_handle)"},

	{driverRXE, "RDMA_DRIVER_RXE"},
}

// contexts are the requests for a context of each family in C, with the kernel's own
// numbers and structures, filled in as rdma-core does.
var contexts = map[string]struct {
	since           string // the first Linux whose headers have all of it
	driver, header  string
	request, filled string // type and initializer; "" for a driver that takes none
	response        string // "" for a driver that gives none
}{
	"mlx5": {
		"5.12", "RDMA_DRIVER_MLX5", "mlx5-abi.h", "struct mlx5_ib_alloc_ucontext_req_v2",
		".total_num_bfregs = 16, .num_low_latency_bfregs = 4, .lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR",
		"struct mlx5_ib_alloc_ucontext_resp",
	},
	"efa": {
		"5.12", "RDMA_DRIVER_EFA", "efa-abi.h", "struct efa_ibv_alloc_ucontext_cmd",
		".comp_mask = EFA_ALLOC_UCONTEXT_CMD_COMP_TX_BATCH | EFA_ALLOC_UCONTEXT_CMD_COMP_MIN_SQ_WR",
		"struct efa_ibv_alloc_ucontext_resp",
	},
	"bnxt_re": {
		"6.12", "RDMA_DRIVER_BNXT_RE", "bnxt_re-abi.h", "struct bnxt_re_uctx_req",
		".comp_mask = BNXT_RE_COMP_MASK_REQ_UCNTX_POW2_SUPPORT | BNXT_RE_COMP_MASK_REQ_UCNTX_VAR_WQE_SUPPORT",
		"struct bnxt_re_uctx_resp",
	},
	"ionic": {"6.18", "RDMA_DRIVER_IONIC", "ionic-abi.h", "struct ionic_ctx_req", ".rsvd = {0}", "struct ionic_ctx_resp"},
	"irdma": { // 1 << 3 is IRDMA_SUPPORT_WQE_FORMAT_V2 of Linux 6.18
		"6.1", "RDMA_DRIVER_IRDMA", "irdma-abi.h", "struct irdma_alloc_ucontext_req",
		".userspace_ver = 5, .comp_mask = IRDMA_ALLOC_UCTX_USE_RAW_ATTR | 1 << 3",
		"struct irdma_alloc_ucontext_resp",
	},
	"mana_ib": {since: "6.9", driver: "RDMA_DRIVER_MANA", header: "mana-abi.h"},
}

// asked are the families of NICs that are asked.
func asked() []*family.NIC {
	return slices.DeleteFunc(family.Every().NICs, func(n *family.NIC) bool { return n.Uverbs.Driver == 0 })
}

// A C program with the kernel's own headers agrees with every number here.
func TestNumbers(t *testing.T) {
	var body strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&body, "printf(\"%%llu %s\\n\", (unsigned long long)(%s));\n", n.c, n.c)
	}
	var want strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&want, "%d %s\n", n.here, n.c)
	}
	if diff := cmp.Diff(want.String(), runC(t, "", body.String())); diff != "" {
		t.Errorf("(-here +kernel's headers):\n%s", diff)
	}
}

// TestContexts: a driver's part of a request fits, and is sent through a pointer as the
// kernel expects of more than eight bytes (kernel: drivers/infiniband/core/
// uverbs_ioctl.c, uverbs_attr_ptr_is_inline).
func TestContexts(t *testing.T) {
	const inlineWords = 2
	for _, n := range asked() {
		if words := len(n.Uverbs.Context); words > 0 && words <= inlineWords || words > len(request{}.context) {
			t.Errorf("%s: the request for a context has %d words", n.Name, words)
		}
	}
}

// All requests are, byte for byte, those that a C program makes with the kernel's
// own structures, but for the addresses, which are zero here. What a driver's structure
// lacks of the fewest bytes that a pointer may have is zero.
func TestRequests(t *testing.T) {
	for _, n := range asked() {
		t.Run(n.Name, func(t *testing.T) { compareRequests(t, n) })
	}
}

func compareRequests(t *testing.T, n *family.NIC) {
	c, ok := contexts[n.Name]
	if !ok {
		t.Fatal("there is no C program for it")
	}
	if installed := runC(t, "", `printf("%d.%d", LINUX_VERSION_CODE >> 16, LINUX_VERSION_CODE >> 8 & 0xff);`); older(installed, c.since) {
		t.Skipf("the kernel's headers here are of Linux %s, and those from %s on have what is compared (CPATH names others)", installed, c.since)
	}
	const program = `
	static struct { struct ib_uverbs_ioctl_hdr h; struct ib_uverbs_attr a[9]; } r;
#define begin(o, m) do { memset(&r, 0, sizeof r); r.h.driver_id = DRIVER; r.h.object_id = o; r.h.method_id = m; } while (0)
#define attr(i, l) do { struct ib_uverbs_attr *a = &r.a[r.h.num_attrs++]; a->attr_id = i; a->len = l; a->flags = UVERBS_ATTR_F_MANDATORY; } while (0)
#define value(type, v) do { type x = v; memcpy(&r.a[r.h.num_attrs - 1].data, &x, sizeof x); } while (0)
#define dump(p, n) do { for (size_t i = 0; i < n; i++) printf("%02x", ((unsigned char *)p)[i]); puts(""); } while (0)
#define end() do { r.h.length = sizeof r.h + r.h.num_attrs * sizeof r.a[0]; dump(&r, r.h.length); } while (0)

	begin(UVERBS_OBJECT_MR, 0xfff);
	end();
	begin(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	end();
	begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
#ifdef REQUEST
	union { REQUEST fields; unsigned char least[16]; } c = { .fields = { FILLED } };
	attr(UVERBS_ATTR_UHW_IN, sizeof c);
#endif
	attr(UVERBS_ATTR_UHW_OUT, 256);
	end();
#ifdef REQUEST
	dump(&c, sizeof c);
#endif
#ifdef RESPONSE
	_Static_assert(sizeof(RESPONSE) <= 256, "the driver's answer is cut off");
#endif
	begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	attr(UVERBS_ATTR_WRITE_CMD, sizeof(__u64)); value(__u64, IB_USER_VERBS_CMD_ALLOC_PD);
	attr(UVERBS_ATTR_CORE_IN, sizeof(struct ib_uverbs_alloc_pd));
	attr(UVERBS_ATTR_CORE_OUT, sizeof(struct ib_uverbs_alloc_pd_resp));
	attr(UVERBS_ATTR_UHW_OUT, 256);
	end();
	begin(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	attr(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	attr(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(__u32));
	attr(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(__u32));
	attr(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0); value(__u64, 77);
	attr(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, sizeof(__u64));
	attr(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, sizeof(__u64));
	attr(UVERBS_ATTR_REG_DMABUF_MR_IOVA, sizeof(__u64));
	attr(UVERBS_ATTR_REG_DMABUF_MR_FD, sizeof(__u32)); value(__s32, -1);
	attr(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, sizeof(__u32));
	end();
`
	var sent bytes.Buffer
	f := &fake{driver: n.Uverbs.Driver, pd: 77, register: unix.EBADF, seen: func(r *request) {
		plain := *r
		for i := range plain.attributes {
			if a := &plain.attributes[i]; r.inside(a.data) {
				a.data = 0
			}
		}
		fmt.Fprintln(&sent, hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(&plain)), r.header.length)))
		if r.header.method == methodGetContext && len(n.Uverbs.Context) > 0 {
			fmt.Fprintln(&sent, hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(&r.context)), 4*len(n.Uverbs.Context))))
		}
	}}
	if got := ask(f, []family.Uverbs{n.Uverbs}, nil); got.Err != nil {
		t.Fatal(got.Err)
	}
	headers := "#include <rdma/" + c.header + ">\n#define DRIVER " + c.driver + "\n"
	if c.request != "" {
		headers += "#define REQUEST " + c.request + "\n#define FILLED " + c.filled + "\n#define RESPONSE " + c.response + "\n"
	}
	if diff := cmp.Diff(runC(t, headers, program), sent.String()); diff != "" {
		t.Errorf("(-C +here):\n%s", diff)
	}
}

// older reports whether a version, "6.1", is older than another.
func older(version, than string) bool {
	var a, b [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &a[0], &a[1])
	_, _ = fmt.Sscanf(than, "%d.%d", &b[0], &b[1])
	return slices.Compare(a[:], b[:]) < 0
}

// inside reports whether an address is one of the request itself.
func (r *request) inside(address uint64) bool {
	start := uint64(uintptr(unsafe.Pointer(r)))
	return address >= start && address < start+uint64(unsafe.Sizeof(*r))
}

// runC compiles the body of a C program that has the kernel's headers, and further
// ones, runs it and returns what it printed.
func runC(t *testing.T, headers, body string) string {
	t.Helper()
	const common = `
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <linux/version.h>
#include <sys/ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
`
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatal("no C compiler: install gcc, libc6-dev and linux-libc-dev")
	}
	program := filepath.Join(t.TempDir(), "program")
	compile := exec.Command(gcc, "-Wall", "-Werror", "-x", "c", "-o", program, "-")
	compile.Stdin = strings.NewReader(common + headers + "int main(void) {\n" + body + "return 0; }\n")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v (the headers are in linux-libc-dev, 5.12 or newer)\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
