//go:build image

// Package image tests the archive that `make image` built: what is in it, and
// that it works when it runs as the DaemonSet's Pod does. It needs root, Debian's
// runc, and CGO_ENABLED=0, as `hack/check.sh image` has it.
package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const archiveFile = "../../bin/gdr-features-image.tar"

// machines are the architectures that there must be an image for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// most is how large the files may be, in bytes.
// What calls reflect's MethodByName, as text/template does, takes 1.6 MB of gdr-features.
var most = map[string]int{
	"gdr-features": 9_000_000, "gdr-features-agent": 24 << 20,
	"licenses/": 0, "licenses/LICENSE": 16 << 10, "licenses/THIRD-PARTY-LICENSES": 256 << 10,
}

func load(t *testing.T) (string, []image) {
	t.Helper()
	name, images, err := readArchive(archiveFile)
	if err != nil {
		t.Fatal(err)
	}
	return name, images
}

// native returns the image that this machine can run.
func native(t *testing.T) image {
	t.Helper()
	_, images := load(t)
	for _, i := range images {
		if i.Platform.Architecture == runtime.GOARCH {
			return i
		}
	}
	t.Fatalf("no image for %s", runtime.GOARCH)
	return image{}
}

func TestImage(t *testing.T) {
	name, images := load(t)
	seen := map[string]bool{}
	for _, i := range images {
		arch := i.Platform.Architecture
		seen[arch] = true
		t.Run(arch, func(t *testing.T) {
			machine, ok := machines[arch]
			if !ok || i.Platform.OS != "linux" || i.config.Architecture != arch || i.config.OS != "linux" {
				t.Fatalf("for %v, its configuration for %s/%s", i.Platform, i.config.OS, i.config.Architecture)
			}
			checkConfig(t, name, i.config)
			checkFiles(t, i)
			for _, f := range i.files {
				if !strings.Contains(f.Name, "/") {
					checkProgram(t, f, machine)
				}
			}
		})
	}
	if len(seen) != len(machines) || len(images) != len(machines) {
		t.Errorf("%d images for %v", len(images), seen)
	}
}

func checkConfig(t *testing.T, name string, c config) {
	t.Helper()
	if c.Config.User != "65532:65532" {
		t.Errorf("user %q", c.Config.User)
	}
	if diff := cmp.Diff([]string{"/gdr-features", "run"}, append(c.Config.Entrypoint, c.Config.Cmd...)); diff != "" || len(c.Config.Cmd) != 1 {
		t.Errorf("entry point and command (-want +got):\n%s", diff)
	}
	for _, env := range c.Config.Env {
		if !strings.HasPrefix(env, "PATH=") {
			t.Errorf("environment %s", env)
		}
	}
	if len(c.Config.ExposedPorts) > 0 || len(c.Config.Volumes) > 0 {
		t.Errorf("ports %v, volumes %v", c.Config.ExposedPorts, c.Config.Volumes)
	}
	for _, label := range []string{"title", "description", "licenses", "version", "revision", "created"} {
		if c.Config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("no label %s", label)
		}
	}
	if want := "gdr-features:" + c.Config.Labels["org.opencontainers.image.version"]; name != want {
		t.Errorf("the image is named %q, want %q", name, want)
	}
}

// checkFiles reports unexpected and missing files, and files that others than root
// could change.
func checkFiles(t *testing.T, i image) {
	t.Helper()
	found := map[string]bool{}
	for _, f := range i.files {
		limit, known := most[f.Name]
		mode := fs.FileMode(0o755)
		if f.Typeflag == tar.TypeDir {
			mode |= fs.ModeDir
		} else if strings.HasPrefix(f.Name, "licenses/") {
			mode = 0o644
		}
		switch {
		case !known || found[f.Name]:
			t.Errorf("%s is in the image", f.Name)
		case f.FileInfo().Mode() != mode || f.Uid != 0 || f.Gid != 0:
			t.Errorf("%s: mode %v, owner %d:%d", f.Name, f.FileInfo().Mode(), f.Uid, f.Gid)
		case len(f.body) > limit:
			t.Errorf("%s has %d bytes", f.Name, len(f.body))
		case !f.ModTime.Equal(i.config.Created):
			t.Errorf("%s is from %v, the image from %v: no build gives the same again", f.Name, f.ModTime, i.config.Created)
		}
		found[f.Name] = true
	}
	if len(found) != len(most) {
		t.Errorf("files %v", found)
	}
}

// checkProgram reports a program for another architecture, and one that needs a
// dynamic linker.
func checkProgram(t *testing.T, f file, machine elf.Machine) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(f.body))
	if err != nil {
		t.Errorf("%s: %v", f.Name, err)
		return
	}
	defer program.Close()
	if program.Machine != machine || program.Type != elf.ET_EXEC && program.Type != elf.ET_DYN {
		t.Errorf("%s is %v for %v", f.Name, program.Type, program.Machine)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s is not static: %v", f.Name, p.Type)
		}
	}
}
