package label

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestValue(t *testing.T) {
	long := strings.Repeat("x", 62)
	tests := []struct {
		name, in, want string
	}{
		{"a version", "24.10-1.1.4", "24.10-1.1.4"},
		{"a word", "InfiniBand", "InfiniBand"},
		{"every kind of character", "aZ09-_.x", "aZ09-_.x"},
		{"one character", "1", "1"},
		{"empty", "", ""},
		{"spaces", "H100 SXM5 80GB", "H100_SXM5_80GB"},
		{"each one on its own", "a  b\tc", "a__b_c"},
		{"what may not stand in a value", "a/b:c,d+e=f", "a_b_c_d_e_f"},
		{"other scripts: one for each character", "GPU-ä-字", "GPU"},
		{"other scripts in the midst", "aä字b", "a__b"},
		{"no UTF-8: one for each byte", "a\xff\xfeb", "a__b"},
		{"the ends", "-_.a.b._-", "a.b"},
		{"the ends, of what became an underscore", " a b\n", "a_b"},
		{"nothing left", "-_. /", ""},
		{"63 characters", long + "1", long + "1"},
		{"64 characters", long + "12", long + "1"},
		{"cut off behind what may not be the end", long + ".1", long},
		{"cut off behind many such", strings.Repeat("x", 60) + "..........1", strings.Repeat("x", 60)},
		{"characters of several bytes count once", "x" + strings.Repeat("ä", 61) + "1", "x" + strings.Repeat("_", 61) + "1"},
	}
	for _, tt := range tests {
		if got := Value(tt.in); got != tt.want {
			t.Errorf("%s: Value(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestValueCharacters(t *testing.T) {
	const allowed = "-_.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	for c := range rune(256) {
		want := "x" + string(c) + "x"
		if !strings.ContainsRune(allowed, c) {
			want = "x_x"
		}
		if got := Value("x" + string(c) + "x"); got != want {
			t.Errorf("Value(%q) = %q, want %q", "x"+string(c)+"x", got, want)
		}
		// At an end only letters and digits stay.
		if got, alone := Value(string(c)), strings.Trim(want[1:len(want)-1], "-_."); got != alone {
			t.Errorf("Value(%q) = %q, want %q", string(c), got, alone)
		}
	}
}

// validValue is what Kubernetes accepts.
var validValue = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)

func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		"", "24.10-1.1.4", "H100 SXM5 80GB", "-_.a.b._-", "\xff\xfe", "ä字", "\x00", strings.Repeat("x", 64), strings.Repeat("x.", 40), "/sys/kernel",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Value(text)
		if !validValue.MatchString(got) || len(got) > 63 {
			t.Errorf("%q is no label value", got)
		}
		if again := Value(got); again != got {
			t.Errorf("%q changes into %q", got, again)
		}
		if validValue.MatchString(text) && len(text) <= 63 && got != text {
			t.Errorf("a valid value changes into %q", got)
		}
		if utf8.RuneCountInString(got) > utf8.RuneCountInString(text) {
			t.Errorf("%q is longer", got)
		}
	})
}

func TestPrefixedAndNames(t *testing.T) {
	s := Set{Ready: "true", GPUs: "8", Level: "PIX"}
	tests := map[string]map[string]string{
		DefaultPrefix: {
			"feature.node.kubernetes.io/gpudirect.rdma": "true",
			"feature.node.kubernetes.io/gdr.gpus":       "8",
			"feature.node.kubernetes.io/gdr.level":      "PIX",
		},
		"":             {"gpudirect.rdma": "true", "gdr.gpus": "8", "gdr.level": "PIX"},
		"example.com/": {"example.com/gpudirect.rdma": "true", "example.com/gdr.gpus": "8", "example.com/gdr.level": "PIX"},
	}
	for prefix, want := range tests {
		if diff := cmp.Diff(want, s.Prefixed(prefix)); diff != "" {
			t.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
		}
	}
	before := maps.Clone(s)
	s.Prefixed("x/")[Ready] = "changed"
	if diff := cmp.Diff(before, s); diff != "" {
		t.Errorf("Prefixed changes its set (-want +got):\n%s", diff)
	}
	if want := []string{"gdr.gpus", "gdr.level", "gpudirect.rdma"}; !slices.Equal(s.Names(), want) {
		t.Errorf("Names() = %q, want %q", s.Names(), want)
	}
	if got := (Set{}).Prefixed(DefaultPrefix); got == nil || len(got) != 0 {
		t.Errorf("an empty set with prefix: %v", got)
	}
	if got := (Set{}).Names(); len(got) != 0 {
		t.Errorf("names of an empty set: %q", got)
	}
}

// Only our own labels are read back, and values that could have been published.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		key, value, name string
		ok               bool
	}{
		{DefaultPrefix + Level, "PIX", Level, true},
		{DefaultPrefix + Ready, "false", Ready, true},
		{DefaultPrefix + "gdr.of-another-version", "x", "gdr.of-another-version", true},
		{Level, "PIX", "", false},
		{DefaultPrefix + "gdr", "PIX", "", false},
		{DefaultPrefix + "pci-10de.present", "true", "", false},
		{"example.com/" + Level, "PIX", "", false},
		{DefaultPrefix + MOFED, "", "", false},
		{DefaultPrefix + MOFED, "-24.10", "", false},
		{DefaultPrefix + MOFED, "24 10", "", false},
	} {
		if name, ok := Parse(test.key, test.value); ok != test.ok || ok && name != test.name {
			t.Errorf("%s=%q: %q %v", test.key, test.value, name, ok)
		}
	}
}
