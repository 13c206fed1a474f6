package snapshot

import "testing"

func TestIdentifiers(t *testing.T) {
	ids := newScrubber([]string{
		"MT2310XZ0ABC", "MT2310XZ0ABC9Y" /* begins like another */, "123456",
		"mlx5_core", "000000", "FFFFFF", "00:00:00", "0000:18", "a/1234567", "", // may be something else
	})
	for _, tt := range []struct{ text, want string }{
		{"b8:3f:d2:a1:c2:e4", "00:00:00:00:00:01"},
		{"B8-3F-D2-A1-C2-E4", "00-00-00-00-00-01"},
		{"b83f.d2a1.c2e4", "0000.0000.0001"},
		{"enxb83fd2a1c2e4", "enx000000000001"},
		{"b83f:d203:00a1:c2e4", "0000:0000:0000:0002"},
		{"guid=\"0xB83FD20300A1C2E4\"", "guid=\"0x0000000000000002\""},
		{"fe80::b83f:d203:00a1:c2e4", "fe80::0000:0000:0000:0002"},
		{"GPU-6f1b0c9e-3d52-4a7b-9c81-25e0d4f7ab36.", "GPU-00000000-0000-0000-0000-000000000003."},
		{"6F1B0C9E3D524A7B9C8125E0D4F7AB36", "00000000000000000000000000000003"},
		{"serial mt2310xz0abc, MT2310XZ0ABC2", "serial 000000000004, 0000000000005"},
		{"(MT2310XZ0ABC9Y) 123456 x-123456.y", "(00000000000006) 000007 x-000007.y"},
		{"00:00:00:00:00:01", "00:00:00:00:00:01"}, // given before
		{"enx000000a1b2c3", "enx000000000008"},
		// What is not an identifier:
		{"0000:0000:0000:0000 ff:ff:ff:ff:ff:ff", "0000:0000:0000:0000 ff:ff:ff:ff:ff:ff"},
		{"../../devices/pci0000:15/0000:15:01.0/10000:e1:00.0", "../../devices/pci0000:15/0000:15:01.0/10000:e1:00.0"},
		{"pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00", "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00"},
		{"570.86.15 28.42.1000 24.10-1.1.4 6.8.0-1021-nvidia", "570.86.15 28.42.1000 24.10-1.1.4 6.8.0-1021-nvidia"},
		{"Thu Feb 22 01:44:30 UTC 2024 2024-02-22T01:44:30", "Thu Feb 22 01:44:30 UTC 2024 2024-02-22T01:44:30"},
		{"6.11.0-rc4-00123-g47ac09b91bef", "6.11.0-rc4-00123-g47ac09b91bef"},
		{"1234567 x123456 123456f pci:v000123456d", "1234567 x123456 123456f pci:v000123456d"},
		{"10de:2330 15b3:1021 mlx5_core", "10de:2330 15b3:1021 mlx5_core"},
	} {
		text := []byte(tt.text)
		ids.clean(text)
		if string(text) != tt.want {
			t.Errorf("%s became %s, want %s", tt.text, text, tt.want)
		}
	}
}

func TestHideUsers(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		found      int
	}{
		{"Release Build  (root@node-7.example.com)  Thu", "Release Build  (xxxx@xxxxxxxxxxxxxxxxxx)  Thu", 1},
		{"(a@b) (c@d)", "(x@x) (x@x)", 2},
		{"pcie@20000000", "pcie@20000000", 0},
		{"(not @ one)", "(not @ one)", 0},
		{"(gar\x01bage@\xff)", "(gar\x01bage@\xff)", 0},
		{"(open@end", "(open@end", 0},
	} {
		text := []byte(tt.text)
		s := newScrubber(nil)
		if s.hideUsers(text); s.users != tt.found || string(text) != tt.want {
			t.Errorf("%s became %s, %d found", tt.text, text, s.users)
		}
	}
}
