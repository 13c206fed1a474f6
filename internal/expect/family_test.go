package expect_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/report"
)

// TestDriverOfFamily: on a node with GPUs of two vendors the driver is that of the models that
// are named, and otherwise that of the GPUs that the node is judged by, which have no driver
// here but NVIDIA's.
func TestDriverOfFamily(t *testing.T) {
	text := strings.Replace(rails, "0000:9a:00.0 gpu 10de:2330", "0000:9a:00.0 120000 1002:74a1 driver=amdgpu", 1)
	dir := tree(t, text, "ready", map[string]string{"sys/module/amdgpu/initstate": "live", "sys/module/amdgpu/version": "6.12.12"})
	for _, tc := range []struct{ gpus, driver, want string }{
		{"count: 2", "570.86.15", ""},
		{"count: 2", "6.12.12", "driver: 570.86.15"},
		{"model: 1002:74a1", "6.12.12", ""},
		{"model: 1002:74a1", "570.86.15", "driver: 6.12.12"},
		{"model: 10de:2330", "570.86.15", ""},
		{"model: 10de:2330", "6.12.12", "driver: 570.86.15"},
	} {
		expected := "types:\n  - name: two\n    match:\n      gpu: 10de:2330\n    expect:\n      gpus:\n        " + tc.gpus + "\n      driver: \"" + tc.driver + "\"\n"
		if tc.gpus != "count: 2" {
			expected = strings.Replace(expected, "      driver", "        count: 1\n      driver", 1)
		}
		r := read(t, dir, expected, report.ForCheck)
		list := slices.DeleteFunc(odd(r.Expected), func(s string) bool { return !strings.HasPrefix(s, "driver") })
		if got := strings.Join(list, " "); got != tc.want {
			t.Errorf("%s, driver %s: %q, want %q", tc.gpus, tc.driver, got, tc.want)
		}
	}
}
