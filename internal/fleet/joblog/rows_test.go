package joblog

import (
	"bufio"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// known is a line of testdata/strings.txt: what a warning or a message says about GPUDirect
// RDMA, who prints it, and its format.
type known struct{ effect, level, repo, file, text string }

func knownStrings(t *testing.T) []known {
	t.Helper()
	f, err := os.Open("testdata/strings.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []known
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		col := strings.Split(s.Text(), "\t")
		if len(col) != 4 {
			t.Fatalf("%q has not four columns", s.Text())
		}
		from := strings.Fields(col[2])
		all = append(all, known{col[0], col[1], from[0], from[1], col[3]})
	}
	return all
}

var verbs = regexp.MustCompile(`%[-#0-9.]*(?:l|ll|z|h)*[a-zA-Z]`)

// fill puts values into a format.
func fill(format string) string {
	return verbs.ReplaceAllStringFunc(format, func(verb string) string {
		if strings.HasSuffix(verb, "s") {
			return "x"
		}
		return "1"
	})
}

// nixl is the line that NIXL prints.
func (k known) nixl() []byte {
	return []byte(k.level[:1] + "1124 11:01:23.123456    1234 " + path.Base(k.file) + ":645] " + fill(k.text))
}

// TestStrings: every warning of the network code of NCCL, RCCL and their plugins, and every
// message that says that something is disabled, cannot be opened or is too far, has a row. What
// the row says of it stands in the list, so that a row that takes in too much is seen.
func TestStrings(t *testing.T) {
	effects := map[effect]string{harmless: "harmless", wentOn: "went-on", doubtful: "doubtful", failed: "failed"}
	count := map[string]int{}
	for _, k := range knownStrings(t) {
		count[k.repo]++
		got := "other" // counted, and the first one shown
		if text := []byte(fill(k.text)); k.repo == "ai-dynamo/nixl" {
			got = "harmless"
			if r, _ := nixlRow(k.nixl()); r != nil {
				got = effects[r.effect]
			}
		} else if k.level == "WARN" {
			if r := rowOf([]byte(k.file+":12 N"), text); r != nil {
				got = effects[r.effect]
			}
		} else {
			l := newLog()
			l.reason(nil, text)
			got = map[bool]string{true: "reason", false: "harmless"}[len(l.hints) > 0]
		}
		if got != k.effect {
			t.Errorf("%s\t%s\t%s %s\t%s", got, k.level, k.repo, k.file, k.text)
		}
	}
	for repo, least := range map[string]int{"NVIDIA/nccl": 500, "ROCm/rccl": 20, "aws/aws-ofi-nccl": 800, "Mellanox/nccl-rdma-sharp-plugins": 80, "ai-dynamo/nixl": 400} {
		if count[repo] < least {
			t.Errorf("%d strings of %s, want %d", count[repo], repo, least)
		}
	}
}

// TestRowsAreUsed: no row is for a string that nobody prints.
func TestRowsAreUsed(t *testing.T) {
	used := map[*row]bool{}
	for _, k := range knownStrings(t) {
		if k.repo == "ai-dynamo/nixl" {
			if r, _ := nixlRow(k.nixl()); r != nil {
				used[r] = true
			}
			continue
		}
		for _, value := range []string{"x", "Cannot allocate memory", "Bad address", "IBV_WC_RETRY_EXC_ERR"} {
			for _, number := range []string{"1", "12"} {
				text := strings.NewReplacer("%s", value, "%d", number).Replace(k.text)
				if r := rowOf([]byte(k.file+":12 N"), []byte(text)); r != nil && k.level == "WARN" {
					used[r] = true
				}
			}
		}
	}
	for _, table := range [...][]row{rows, nixlRows} {
		for i := range table {
			if !used[&table[i]] {
				t.Errorf("no string of the sources: %+v", table[i])
			}
		}
	}
}
