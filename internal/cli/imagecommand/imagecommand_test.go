package imagecommand_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/imagecommand"
	"gdr-features/test/library"
)

// TestImage: what the command prints of an image in which all is right, and of one without
// providers.
func TestImage(t *testing.T) {
	files := library.Image("56.1", 34, []string{library.RegisterDMABuf}, "mlx5")
	right, wrong := t.TempDir(), t.TempDir()
	library.Write(t, right, files)
	delete(files, library.Lib+"/libibverbs/libmlx5-rdmav34.so")
	library.Write(t, wrong, files)
	run := func(args ...string) (string, error) {
		var out strings.Builder
		c := imagecommand.New(&out, func(string) string { return "" })
		c.SetArgs(args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		return out.String(), err
	}
	said, err := run(right)
	if err != nil || !strings.Contains(said, "libibverbs  56.1  with DMA-BUF") || !strings.Contains(said, "provider    mlx5  kernel ABI 1 to 1") {
		t.Errorf("%v\n%s", err, said)
	}
	said, err = run(wrong)
	if status := cli.Status(0); !errors.As(err, &status) || status != 2 || !strings.Contains(said, "WRONG: listed, and not here") {
		t.Errorf("%v\n%s", err, said)
	}
	said, err = run("-o", "json", right)
	var read struct {
		Libibverbs struct {
			Version string
			DMABuf  bool
		}
		Providers []struct{ ABI []int }
	}
	if err != nil || json.Unmarshal([]byte(said), &read) != nil || read.Libibverbs.Version != "56.1" || !read.Libibverbs.DMABuf || len(read.Providers) != 1 || len(read.Providers[0].ABI) != 2 {
		t.Errorf("%v %+v\n%s", err, read, said)
	}
}
