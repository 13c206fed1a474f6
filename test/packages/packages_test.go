//go:build packages

// Package packages tests the Debian package on a machine of its own: Debian with systemd, in
// QEMU. build.sh makes it.
package packages

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdr-features/test/pages"
)

// TestDebian: guest.sh passes. It installs, uses, upgrades, removes and purges the package.
func TestDebian(t *testing.T) {
	script, err := os.ReadFile("guest.sh")
	if err != nil {
		t.Fatal(err)
	}
	page, err := pages.Read("../..", "deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := page.Commands("dpkg", "systemctl")
	if len(shown) != 4 {
		t.Errorf("the page shows %q", shown)
	}
	for _, command := range shown {
		command = strings.Replace(command, "gdr-features_1.0.0-1_amd64.deb", "/test/gdr-features.deb", 1)
		if !strings.Contains(string(script), "\n"+command) {
			t.Errorf("deploy/README.md says %q, and guest.sh does not run it", command)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	console, result := filepath.Join(t.TempDir(), "console"), filepath.Join(t.TempDir(), "result")
	c := exec.CommandContext(ctx, "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1536",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", ".bin/vmlinuz", "-initrd", ".bin/initrd", "-append", "console=ttyS0 panic=-1 no_timer_check systemd.mask=serial-getty@ttyS0.service",
		"-serial", "file:"+console, "-serial", "file:"+result)
	out, err := c.CombinedOutput()
	said, _ := os.ReadFile(result)
	for line := range strings.Lines(string(said)) {
		t.Log(strings.TrimRight(line, "\r\n"))
	}
	if err != nil || !bytes.Contains(said, []byte("\nPASSED")) {
		boot, _ := os.ReadFile(console)
		t.Errorf("error %v %s; the console ends with\n%s", err, out, boot[max(0, len(boot)-4000):])
	}
}
