package main

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
)

// What must not be in a snapshot, written without separators.
const (
	serial  = "mt2310xz0abc"
	uuid    = "6f1b0c9e3d524a7b9c8125e0d4f7ab36"
	uuid2   = "7a2c1d0f4e635b8cad9236f1e508bc47"
	guid    = "b83fd20300a1c2e4"
	mac     = "b83fd2a1c2e4"
	gid     = "fe80000000000000b83fd20300a1c2e4"
	address = "ffffffffc0de1234"
	node    = "gpunode17"
)

var identities = []string{serial, uuid, uuid2, guid, mac, gid, address, node}

// Other spellings of them.
const (
	uuidText  = "6F1B0C9E-3d52-4a7b-9c81-25e0d4f7ab36"
	guidText  = "b83f:d203:00A1:c2e4"
	gidText   = "fe80:0000:0000:0000:b83f:d203:00a1:c2e4"
	gidShort  = "fe80::b83f:d203:00a1:c2e4"
	macColons = "B8:3F:D2:A1:C2:E4"
	macDashes = "b8-3f-d2-a1-c2-e4"
	macDots   = "b83f.d2a1.c2e4"
)

// keywords makes vital product data.
func keywords(product string, pairs ...string) string {
	size := func(s string) string { return string([]byte{byte(len(s)), byte(len(s) >> 8)}) }
	body := ""
	for i := 0; i < len(pairs); i += 2 {
		body += pairs[i] + string(rune(len(pairs[i+1]))) + pairs[i+1]
	}
	rw := "YA\x0c" + strings.ToUpper(serial) + "RW\x10" + strings.ToUpper(serial) + "\x00\x00\x00\x00"
	return "\x82" + size(product) + product + "\x90" + size(body) + body + "\x91" + size(rw) + rw + "\x78" + serial
}

// identified is a machine with identifiers wherever there can be one.
const identified = `
nodes 1
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a acs=0000
    0000:16:00.0 switch 15b3:197c acs=001d
      0000:17:00.0 port 15b3:197c acs=0000
        0000:18:00.0 gpu 10de:2330
      0000:17:01.0 port 15b3:197c acs=0000
        0000:19:00.0 ib 15b3:1023 rdma=ibxb83fd20300a1c2e4
        0000:19:00.1 ib 15b3:1023 rdma=mlx5_1
        0000:19:00.2 dma 15b3:2100
        0000:19:00.3 dma 15b3:2100
        0000:1a:00.0 ib 15b3:1021 rdma=mlx5_2 width=16
`

// identify writes the identities into a machine's files.
func identify(t *testing.T, dir string) {
	t.Helper()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	of := func(address, file string) string { return "sys/bus/pci/devices/" + address + "/" + file }
	sn := strings.ToUpper(serial)
	for address, text := range map[string]string{
		"0000:19:00.0": keywords("ConnectX "+sn, "PN", "900-9X81Q "+macDots, "EC", "A2 "+serial, "SN", sn, "V3", uuid, "VA", "MLX:SN="+sn+":UUID=V3", "RV", "\x00\x00"),
		"0000:19:00.1": keywords("ConnectX", "SN", sn, "VU", uuid2+"MLNXS0D0F0", "V3", uuid, "V1", macDashes, "RV", "\x00"),
		"0000:19:00.2": keywords("ConnectX data direct", "SN", sn, "V3", uuid),
		"0000:19:00.3": keywords("ConnectX data direct", "VU", uuid2+"MLNXS0D0F0"),
		"0000:1a:00.0": keywords("ConnectX", "V9", "SMDL=SW_MNG:SN="+sn),
		"0000:18:00.0": "\x7f" + sn + uuid, // garbage
	} {
		write(of(address, "vpd"), text)
	}
	// The capability device serial number comes before that of ACS.
	config, err := os.ReadFile(filepath.Join(dir, of("0000:16:00.0", "config")))
	if err != nil {
		t.Fatal(err)
	}
	copy(config[0x100:], "\x03\x00\x81\x14\xe4\xc2\xa1\x00\x03\xd2\x3f\xb8")
	write(of("0000:16:00.0", "config"), string(config))
	// A conventional function of 256 bytes with a piece of the VPD in its registers.
	config = make([]byte, 256)
	config[6], config[0x34], config[0x40] = 0x10, 0x40, 0x03
	copy(config[0x44:], sn[:4])
	write(of("0000:17:00.0", "config"), string(config))
	write(of("0000:19:00.0", "net/enxb83fd2a1c2e4/address"), macColons+"\n")
	write("sys/class/dmi/id/product_name", "Server "+serial+" 9000\n")
	write("sys/class/dmi/id/sys_vendor", "Example "+uuidText+"\n")
	write("sys/class/dmi/id/board_vendor", macDashes+" "+macColons+" "+macDots+" "+mac+"\n")
	write("sys/class/dmi/id/bios_vendor", guidText+" 0x"+strings.ToUpper(guid)+" "+gidText+" "+gidShort+" GPU-"+uuidText+"\n")
	write("sys/class/infiniband/mlx5_1/fw_ver", gidText+"\n")
	write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (root@"+node+")\nUUID: "+uuid+"\n")
	write("proc/kallsyms", address+" T _text\n"+address+" t ib_umem_dmabuf_get\t[ib_uverbs]\n"+
		address+" t ib_register_peer_memory_client\t[ib_uverbs]\n0000000000000000 t mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]\n")
	write("var/run/nvidia-topologyd/virtualTopology.xml", `<system><cpu numaid="0" host_hash="0x`+guid+`"><pci busid="0000:18:00.0"/>
<pci busid="0000:19:00.0"><nic><net name="ibx`+guid+`" guid="0x`+strings.ToUpper(guid)+`"/></nic></pci></cpu></system>`)
}

// TestSnapshotScrubbed: no identifier of the machine is in its snapshot in any
// spelling, but the facts that follow from identifiers are.
func TestSnapshotScrubbed(t *testing.T) {
	m, err := machine.Parse(identified)
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	identify(t, dir)
	file := takeSnapshot(t, dir)
	text := read(t, file)
	if !strings.Contains(text, "570.86.15") || !strings.Contains(bytesOf(t, text), "900-9X81Q") {
		t.Fatalf("what tells nothing is missing:\n%s", text)
	}
	for _, where := range []string{text, bytesOf(t, text)} {
		flat := strings.NewReplacer(":", "", "-", "", ".", "").Replace(strings.ToLower(where))
		for _, identity := range append(identities, "\xe4\xc2\xa1\x00", "e4c2a100", strings.ToUpper(serial[:4]), serial[:4]) {
			if strings.Contains(flat, identity) {
				t.Errorf("%q is in the snapshot", identity)
			}
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	compareForms(t, dir, file, []string{"labels", "labels -o json"})
	onMachine, onSnapshot := scan(t, dir), scan(t, file)
	if diff := cmp.Diff(pairs(onMachine), pairs(onSnapshot)); diff != "" {
		t.Errorf("NICs and their data-direct functions (-machine +snapshot):\n%s", diff)
	}
	if want := "0000:19:00.0 0000:19:00.2\n0000:19:00.1 0000:19:00.3\nmanagement 0000:1a:00.0\n"; pairs(onMachine) != want {
		t.Errorf("on the machine itself:\n%s", pairs(onMachine))
	}
	if vpd := onSnapshot.Find(pci.Address{Bus: 0x19}).VPD; vpd == nil || vpd.Fields["SN"] == "" || len(vpd.Fields["SN"]) != len(serial) {
		t.Errorf("VPD: %v", vpd)
	}
	if vpd := onSnapshot.Find(pci.Address{Bus: 0x18}).VPD; vpd != nil {
		t.Errorf("garbage became VPD: %v", vpd)
	}
}

var hexLine = regexp.MustCompile(`"hex":"([0-9a-f]+)"`)

// bytesOf returns the bytes that a snapshot shows in hexadecimal.
func bytesOf(t *testing.T, text string) string {
	t.Helper()
	var all bytes.Buffer
	for _, line := range hexLine.FindAllStringSubmatch(text, -1) {
		data, err := hex.DecodeString(line[1])
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	if all.Len() < 500 {
		t.Fatal("no bytes found")
	}
	return all.String()
}

func scan(t *testing.T, root string) *pci.Inventory {
	t.Helper()
	fs, err := snapshot.Open(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	inv, err := pci.Scan(fs, family.Known(), source.What{Details: true})
	if err != nil {
		t.Fatal(err)
	}
	return &inv
}

// pairs returns the facts that follow from identifiers.
func pairs(inv *pci.Inventory) string {
	var all strings.Builder
	for i := range inv.Functions {
		f := &inv.Functions[i]
		if f.DataDirect != nil {
			all.WriteString(f.Address.String() + " " + f.DataDirect.String() + "\n")
		}
		if f.NVLinkManagement {
			all.WriteString("management " + f.Address.String() + "\n")
		}
	}
	return all.String()
}
