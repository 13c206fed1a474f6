package proof_test

import (
	"fmt"
	"strings"

	"gdr-features/internal/rooms/proof"
)

// The texts that perftest prints, by its formats at a release. Which files and commits those are says
// the table in side.go.

const (
	gpu  = "0000:1b:00.0"
	bus  = "--use_cuda_bus_id=" + gpu
	rest = "ib_write_bw -d mlx5_0 -i 1 -s 65536 -D 5 -F --report_gbits"
)

// said is a side of a transfer.
type said struct {
	asked          string
	memory         string // lines about it
	device         string
	local, remote  string
	unit           string
	bytes          int
	iterations     int
	gbits          float64 // 10^9 bits a second
	errs, rc       string
	noResult, torn bool
	server         bool
}

// cuda are the lines about a buffer of GPU memory.
func cuda(release string, dmabuf bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Got PCIe address of: %s\ninitializing CUDA\nFinding PCIe BUS %s\nPicking GPU number 0\n", gpu, gpu)
	b.WriteString("initializing CUDA\nListing all CUDA devices in system:\nCUDA device 0: PCIe address is 1B:00\n\nPicking device No. 0\n" +
		"[pid = 9, dev = 0] device name = [a GPU]\ncreating CUDA Ctx\nmaking it the current CUDA Ctx\n")
	switch release {
	case "4.5", "23.07":
		b.WriteString("cuMemAlloc() of a 131072 bytes GPU buffer\nallocated GPU buffer address at 00007f2b2f000000 pointer=0x7f2b2f000000\n")
	default:
		b.WriteString("CUDA device integrated: 0\n")
	}
	if dmabuf {
		b.WriteString("using DMA-BUF for GPU buffer address at 0x7f2b2f000000 aligned at 0x7f2b2f000000 with aligned size 131072\n")
	}
	if release != "4.5" && release != "23.07" {
		b.WriteString("allocated GPU buffer of a 131072 address at 0x7f2b2f000000 for type CUDA_MEM_DEVICE\n")
	}
	if dmabuf {
		b.WriteString("Calling ibv_reg_dmabuf_mr(offset=0, size=131072, addr=0x7f2b2f000000, fd=12) for QP #0\n")
	}
	return b.String()
}

func rocm(bus string) string {
	return "Using ROCm Device with ID: 1, Name: AMD Instinct MI300X, PCI Bus ID: 0x" + bus + ", GCN Arch: gfx942\n" +
		"allocated 131072 bytes of GPU buffer at 0x7f2b2f000000\n"
}

const line = "---------------------------------------------------------------------------------------\n"

func (s *said) out() string {
	var b strings.Builder
	if s.server {
		b.WriteString("\n************************************\n* Waiting for client to connect... *\n************************************\n")
	}
	b.WriteString(s.memory)
	if s.noResult {
		return b.String()
	}
	fmt.Fprintf(&b, line+"                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : %s\n Number of qps   : 1\t\tTransport type : IB\n", s.device)
	b.WriteString(" Mtu             : 4096[B]\n Link type       : IB\n" + line)
	fmt.Fprintf(&b, " local address: LID 0x01 QPN %s PSN 0x6729ee RKey 0x00020f VAddr 0x007f2fde19a000\n", s.local)
	fmt.Fprintf(&b, " remote address: LID 0x01 QPN %s PSN 0x6729ee RKey 0x000383 VAddr 0x007fe12244a000\n"+line, s.remote)
	fmt.Fprintf(&b, " #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n", s.unit, s.unit)
	rate := s.gbits
	if s.unit != "Gb/sec" {
		rate = s.gbits * 1e9 / 8 / (1 << 20)
	}
	fmt.Fprintf(&b, " %-7d    %-10d       %-7.2f            %-7.2f\t\t     %-7.6f\n", s.bytes, s.iterations, 0.0, rate, s.gbits*1e3/8/float64(s.bytes))
	if !s.torn {
		b.WriteString(line)
	}
	return b.String()
}

// transfer are both sides of one with a rate, and memory of the kind that was asked for.
func transfer(asked, memory string, gbits float64) (server, client said) {
	s := said{asked: rest + " -p 18601 " + asked, memory: memory, device: "mlx5_0", unit: "Gb/sec", bytes: 65536, iterations: 300000, gbits: gbits, rc: "0"}
	server, client = s, s
	server.server, server.local, server.remote = true, "0x0011", "0x0012"
	client.asked += " 127.0.0.1"
	client.local, client.remote = "0x0012", "0x0011"
	return server, client
}

func hostOnly() (server, client said) { return transfer("", "", 100) }

// files are those of a folder.
func files(name string, server, client said) (all []proof.File) {
	for _, of := range []struct {
		side string
		said
	}{{"s", server}, {"c", client}} {
		for _, file := range []proof.File{
			{Name: "cmd", Text: of.asked + "\n"}, {Name: "out", Text: of.out()}, {Name: "err", Text: of.errs}, {Name: "rc", Text: of.rc + "\n"},
		} {
			file.Name = name + "." + of.side + "." + file.Name
			all = append(all, file)
		}
	}
	return all
}

// listed is the file with the list of the steps.
func listed(lines ...string) proof.File {
	return proof.File{Name: "plan", Text: "gdr-features proof 1\n" + strings.Join(lines, "\n") + "\nend\n"}
}
