package frameworks_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/frameworks/recorded"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// TestAnswers compares what vLLM's, SGLang's, Mooncake's and ModelExpress's own code made of the map of every
// machine ("hack/check.sh frameworks" recorded it) with the map. A machine that is new, or whose map is no longer
// that of the record, has no answers before somebody with the sources of these frameworks records them.
func TestAnswers(t *testing.T) {
	writers := map[string]func(*testing.T, *assign.Assignment, frameworks.Settings) string{"vllm": vllmAnswer, "sglang": sglangAnswer, "mooncake": mooncakeAnswer, "modelexpress": modelExpressAnswer}
	kept := map[string]map[string]recorded.Answer{}
	for name := range writers {
		var err error
		if kept[name], err = recorded.Read("../../../testdata/frameworks/" + name + ".txt"); err != nil {
			t.Fatal(err)
		}
	}
	compared := map[string]int{}
	for _, described := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		t.Run(described.Name, func(t *testing.T) {
			m := mapOf(t, described.Tree(t, described.Ready()))
			now := hashOf(t, m)
			for name, write := range writers {
				said, ok := kept[name][described.Name]
				switch {
				case !ok:
					t.Logf("%s: no answer is recorded (test/frameworks/README.md)", name)
				case said.Map != now, name == "mooncake" && !slices.Equal(given(t, said.Lines), slices.Sorted(slices.Values(names(m.NICs)))):
					t.Logf("%s: the map has changed since the answer was recorded; record it again (test/frameworks/README.md)", name)
				default:
					compared[name]++
					if diff := gocmp.Diff(write(t, m, frameworks.Named(name).Write(m)), said.Lines); diff != "" {
						t.Errorf("%s (-map +recorded answer; test/frameworks/README.md says how it was asked):\n%s", name, diff)
					}
				}
			}
		})
	}
	for name := range writers {
		if compared[name] == 0 && !testsize.Partial() {
			t.Errorf("%s: every recorded answer is about another map", name)
		}
	}
}

// given are the NICs in the file that Mooncake was given: all of the machine, which the hash of the map, with
// those of the GPUs, does not tell.
func given(t *testing.T, answer string) []string {
	t.Helper()
	line, _, _ := strings.Cut(strings.TrimPrefix(answer, "given "), "\n")
	var file map[string][2][]string
	if err := json.Unmarshal([]byte(line), &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, lists := range file {
		for _, nic := range slices.Concat(lists[0], lists[1]) {
			all[nic] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// hashOf is the hash of a map, as it stands beside a recorded answer.
func hashOf(t *testing.T, m *assign.Assignment) string {
	t.Helper()
	document, err := json.Marshal(frameworks.NewDocument(m, nil))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := recorded.Hash(document)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// gpuLines has a line for each GPU: what it is given, or that the framework stops.
func gpuLines(m *assign.Assignment, say func(assign.Choice) string) string {
	var text strings.Builder
	for i, c := range m.Choices {
		words := "stops"
		if c.NIC != nil {
			words = say(c)
		}
		fmt.Fprintf(&text, "gpu %d %s\n", i, words)
	}
	return text.String()
}

// vllmAnswer: vLLM sets the variables that are listed for each of its workers.
func vllmAnswer(_ *testing.T, m *assign.Assignment, s frameworks.Settings) string {
	var given string
	var set []string
	for _, v := range s.Variables {
		given += "given " + v.Name + "=" + v.Value + "\n"
		if v.Name == "VLLM_NIC_SELECTION_VARS" {
			set = strings.Split(v.Value, ",")
		}
	}
	if given == "" {
		return ""
	}
	slices.Sort(set)
	return given + gpuLines(m, func(c assign.Choice) string {
		var words []string
		for _, entry := range set {
			name, port, _ := strings.Cut(entry, ":")
			words = append(words, name+"="+c.NIC.RDMA+":"+port)
		}
		return strings.Join(words, " ")
	})
}

// modelExpressAnswer: each worker has an entry.
func modelExpressAnswer(_ *testing.T, m *assign.Assignment, s frameworks.Settings) string {
	var given string
	for _, v := range s.Variables {
		given += "given " + v.Name + "=" + v.Value + "\n"
	}
	if given == "" {
		return ""
	}
	return given + gpuLines(m, func(c assign.Choice) string { return fmt.Sprintf("%s:%d", c.NIC.RDMA, c.NIC.Port) })
}

func names(nics []*assign.NIC) []string {
	var list []string
	for _, nic := range nics {
		list = append(list, nic.RDMA)
	}
	return list
}

func sglangAnswer(t *testing.T, m *assign.Assignment, s frameworks.Settings) string {
	t.Helper()
	return "given " + jsonLine(t, s.File) + gpuLines(m, func(c assign.Choice) string { return strings.Join(names(c.Near), ",") })
}

// mooncakeAnswer: the preferred NICs of each name, and the others.
func mooncakeAnswer(t *testing.T, _ *assign.Assignment, s frameworks.Settings) string {
	t.Helper()
	var file map[string][2][]string
	given := jsonLine(t, s.File)
	if err := json.Unmarshal([]byte(given), &file); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("given " + given)
	for _, name := range slices.Sorted(maps.Keys(file)) {
		list := func(at int) string { return cmp.Or(strings.Join(file[name][at], ","), "-") }
		fmt.Fprintf(&text, "%s %s %s\n", name, list(0), list(1))
	}
	return text.String()
}

func jsonLine(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}
