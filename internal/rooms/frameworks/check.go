package frameworks

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Environment is what is to be checked: the variables and files that frameworks would read.
type Environment struct {
	// Variables by name. An empty value counts as none.
	Variables map[string]string
	// Files are the contents of files by the name of the framework.
	Files map[string][]byte
	// Networks are the network devices that UCX_NET_DEVICES may name too; nil where unknown.
	Networks []string
	// UnknownGPUs says why it is not known which of the GPUs in question the process uses; ""
	// where it uses all of them.
	UnknownGPUs string
	// Foreign: the variables are of another place, where other files may be.
	Foreign bool

	unread error // why the file that a variable names could not be read
}

// ReadFiles reads the files that variables name.
func (g *Environment) ReadFiles(read func(name string) ([]byte, error)) {
	if name := g.Variables[mooncakeVariable]; name != "" {
		data, err := read(name)
		if g.unread = err; err == nil {
			g.Files = map[string][]byte{"mooncake": data}
		}
	}
}

// Finding judges one variable, or the file of a framework.
type Finding struct {
	Name string // that of the variable, or of the framework whose file it is
	Judgement
	// Want is what would be right; "" where nothing can be.
	Want string
	// GPUs judge it for each GPU, where it is about GPUs. Notes say what is no problem by itself.
	GPUs  []OfGPU
	Notes []string
	// Harmless: it is wrong, and yet each GPU uses the NIC that it should, because entries name
	// nothing here.
	Harmless bool
	// MayBeMeant: it is wrong for some GPU, and may be meant so: UCX is told to use TCP, or the
	// list is that of one GPU of several.
	MayBeMeant bool
	// Aside: the variable is not about GPU memory here, so that it is no mistake. Problems say why.
	Aside bool
}

// Mild reports whether a variable that is wrong is no more than a warning.
func (f *Finding) Mild() bool { return f.Harmless || f.MayBeMeant || f.Part }

// Text is the name, what is wrong, and what would be right.
func (f *Finding) Text() string {
	text := f.Name
	if len(f.Problems) > 0 {
		text += ": " + strings.Join(f.Problems, "; ")
	}
	if f.State == tristate.False && f.Want != "" {
		text += "; right: " + f.Want
	}
	return text
}

// Check judges what is given for the GPUs in question. No finding means that nothing is given.
func Check(m *assign.Assignment, given Environment) []*Finding {
	var all []*Finding
	for _, f := range All {
		j := judge{Assignment: m, Environment: given, want: f.Write(m)}
		j.judgeVariables(f.Name)
		j.judgeFile(&f)
		for _, finding := range j.findings {
			if finding.State == tristate.True {
				finding.Want = ""
			}
			if finding.State == tristate.Unknown && given.UnknownGPUs != "" {
				finding.Problems = append(finding.Problems, "which GPUs the process uses is not known: "+given.UnknownGPUs)
			}
		}
		all = append(all, j.findings...)
	}
	return all
}

// judge looks at the variables and the file of one framework.
type judge struct {
	*assign.Assignment
	Environment
	want     Settings
	findings []*Finding
}

func (j *judge) about(name, want string) *Finding {
	f := &Finding{Name: name, Judgement: Judgement{State: tristate.True}, Want: want}
	j.findings = append(j.findings, f)
	return f
}

func (j *judge) judgeVariables(framework string) {
	want := j.want.values()
	for _, row := range judges {
		if row.framework == framework && row.judge != nil && j.Variables[row.variable] != "" {
			row.judge(j, j.about(row.variable, want[row.variable]))
		}
	}
}

func (j *judge) judgeFile(framework *Framework) {
	data, ok := j.Files[framework.Name]
	if !ok || framework.judgeFile == nil {
		return
	}
	want, _ := json.Marshal(j.want.File) // strings and lists of them
	f := j.about(framework.Name, string(want))
	if err := framework.judgeFile(j, f, data); err != nil {
		f.wrong("%s cannot read this file: %v", framework.Name, err)
	}
	slices.Sort(f.Problems) // the keys of JSON have no order
}

// device returns the usable NIC of this name, with this port where it is not 0. Otherwise it
// says what is wrong with the entry and returns nil.
func (j *judge) device(f *Finding, entry, name string, port int) *assign.NIC {
	nic := j.Find(name)
	switch {
	case nic == nil:
		j.unusable(f, entry, name)
	case port < 0:
		f.wrong("%q: no port of %s has this number", entry, name)
	case port != 0 && !slices.Contains(nic.Active, port):
		f.wrong("%q: port %d of %s is not active", entry, port, name)
	default:
		return nic
	}
	return nil
}

// at is the index of the RDMA device of a name, usable or not; -1 for none.
func (j *judge) at(name string) int {
	return slices.IndexFunc(j.Matrix.NICs, func(n topology.NIC) bool { return n.RDMA != nil && n.RDMA.Name == name })
}

// unusable says why no usable NIC has a name.
func (j *judge) unusable(f *Finding, entry, name string) {
	at := j.at(name)
	switch {
	case slices.Contains(j.Unknown, name):
		f.unknown("%q: the ports of %s could not be read", entry, name)
	case slices.Contains(j.Hidden, name):
		f.wrong("%q: %s has no device node in /dev/infiniband here, or is in another network namespace", entry, name)
	case at < 0:
		j.missing(f, "%q: there is no RDMA device %q", entry, name)
	case j.Matrix.NICs[at].Excluded():
		f.wrong("%q: %s is excluded (--nic-exclude)", entry, name)
	case !j.Matrix.NICs[at].Counts():
		f.wrong("%q: %s cannot do GPUDirect RDMA", entry, name)
	default:
		f.wrong("%q: no port of %s is active here", entry, name)
	}
}

// missing says that something is not there: unknown if not everything could be read.
func (j *judge) missing(f *Finding, format string, args ...any) {
	if j.Incomplete {
		f.unknown(format+", as far as the machine could be read", args...)
	} else {
		f.wrong(format, args...)
	}
}

// with is a list of NICs with another one, if it is none of them and not nil.
func with(nics []*assign.NIC, nic *assign.NIC) []*assign.NIC {
	if nic == nil || slices.Contains(nics, nic) {
		return nics
	}
	return append(nics, nic)
}

// list judges a variable with which each GPU uses those of some NICs that are near it.
func (j *judge) list(f *Finding, allowed func(*assign.NIC) bool) {
	gpus, given := make([]int, len(j.Choices)), make([][]*assign.NIC, len(j.Choices))
	for i, c := range j.Choices {
		gpus[i] = c.Index
	}
	for i, c := range j.Assign(gpus, allowed).Choices {
		given[i] = c.Near
	}
	before := len(f.Problems)
	j.sets(f, given)
	f.Harmless = f.State == tristate.False && len(f.Problems) == before
}

// listOfProcess judges the list of a process, of which each GPU uses the NICs near it.
func (j *judge) listOfProcess(f *Finding, listed []*assign.NIC) {
	before := len(f.Problems)
	j.list(f, func(nic *assign.NIC) bool { return slices.Contains(listed, nic) })
	if before == 0 && f.State == tristate.False {
		f.MayBeMeant = j.ofOneProcess(listed)
	}
}

// ofOneProcess reports whether a list is right for some but not all of the GPUs in question:
// it is one NIC, nearest to one of them, or all that are near it. The variable is for one
// process, and a container may start one for each GPU.
func (j *judge) ofOneProcess(listed []*assign.NIC) bool {
	return len(j.Choices) > 1 && slices.ContainsFunc(j.Choices, func(c assign.Choice) bool {
		if len(listed) == 1 {
			return c.NIC != nil && c.Level != topology.Unknown && j.Level(c, listed[0]) == c.Level
		}
		outside := func(nic *assign.NIC) bool { return !slices.Contains(listed, nic) }
		return len(listed) > 1 && len(listed) == len(c.Near) && !slices.ContainsFunc(c.Near, outside)
	})
}

// pairs judges the one NIC that each GPU is given, against that which it should use.
func (j *judge) pairs(f *Finding, given [][]*assign.NIC) {
	j.each(f, given)
	j.balanced(f, given)
}

// balanced adds a problem for each NIC that more GPUs share than need be.
func (j *judge) balanced(f *Finding, given [][]*assign.NIC) {
	users := map[*assign.NIC]int{}
	for _, nic := range slices.Concat(given...) {
		users[nic]++
	}
	for _, nic := range j.NICs {
		if users[nic] > max(j.Users(nic), 1) {
			j.shared(f, given, nic, users)
		}
	}
}

// sets judges the NICs that each GPU is given, against those near it: none of these should be
// left out. One that another GPU is given, or should use in another process, is not.
func (j *judge) sets(f *Finding, given [][]*assign.NIC) {
	j.each(f, given)
	type share struct{ left, near int }
	out, gpus := map[share][]*assign.NIC{}, map[share][]string{}
	used := slices.Concat(given...)
	for i, c := range j.Choices {
		near := j.meant(c, used)
		left := slices.DeleteFunc(slices.Clone(near), func(n *assign.NIC) bool { return j.has(used, n) || j.OfOthers(n) })
		s := share{len(left), len(near)}
		switch {
		case len(given[i]) == 0 || len(left) == 0 && len(near) > 0:
		case s.left < s.near:
			out[s], gpus[s] = append(out[s], left...), append(gpus[s], c.GPU.Address.String())
			one := &f.GPUs[i].Judgement
			j.ofGPUs(one, one.leave)(leftOut+"%s; bandwidth lost: %d%%", strings.Join(namesOf(left), ", "), 100*s.left/s.near)
		case given[i][0].Aside != "" && !given[i][0].OtherLayer && j.Level(c, given[i][0]).Rank() <= c.Level.Rank():
			j.ofGPUs(&f.Judgement, f.wrong)("the GPU %v is given only %s (%s)", c.GPU.Address, given[i][0].RDMA, given[i][0].Aside)
		}
	}
	most := func(a, b share) int { return cmp.Or(b.left*a.near-a.left*b.near, a.near-b.near) }
	for _, s := range slices.SortedFunc(maps.Keys(out), most) {
		slices.SortFunc(out[s], inVerbsOrder)
		j.ofGPUs(&f.Judgement, f.leave)(leftOut+"%s; bandwidth lost by %s: %d%%", strings.Join(namesOf(slices.Compact(out[s])), ", "),
			plural(gpus[s]), 100*s.left/s.near)
	}
	if len(out) == 0 {
		j.balanced(f, given)
	}
}

func plural(gpus []string) string {
	if len(gpus) == 1 {
		return "the GPU " + gpus[0]
	}
	return "the GPUs " + strings.Join(gpus, ", ")
}

// has reports whether a NIC, or a virtual function of it, is among some.
func (j *judge) has(some []*assign.NIC, nic *assign.NIC) bool {
	return slices.ContainsFunc(some, func(n *assign.NIC) bool { return n == nic || j.Physical(n) == nic })
}

// shared adds a problem if a GPU that shares a NIC is not given one as near with fewer users.
func (j *judge) shared(f *Finding, given [][]*assign.NIC, nic *assign.NIC, users map[*assign.NIC]int) {
	used := slices.Concat(given...)
	for i, c := range j.Choices {
		if !slices.Contains(given[i], nic) {
			continue
		}
		for _, other := range j.NICs {
			if users[other]+1 < users[nic] && slices.Contains(j.meant(c, used), other) && !slices.Contains(given[i], other) && j.Level(c, other) == j.Level(c, nic) {
				j.ofGPUs(&f.Judgement, f.wrong)("%d GPUs share %s, while %s is as near to the GPU %v", users[nic], nic.RDMA, other.RDMA, c.GPU.Address)
				return
			}
		}
	}
}

// numberedByAddress adds a problem if CUDA may number the GPUs in another order.
func (j *judge) numberedByAddress(f *Finding) {
	if len(j.Choices) > 1 && len(ordered(j.Assignment)) > 0 && j.Variables[deviceOrder] != byAddress {
		f.wrong("GPUs are counted, and %s=%s is not set", deviceOrder, byAddress)
	}
}

func entries(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

// trimmed splits a list at commas, with blanks around them.
func trimmed(list string) []string {
	all := strings.Split(list, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// splitPort splits "mlx5_0:1". port is 0 where the entry has none, and -1 where it is not the
// number of any port, "0" or "x". What follows a second colon is not looked at.
func splitPort(entry string) (name string, port int) {
	name, rest, _ := strings.Cut(entry, ":")
	text, _, _ := strings.Cut(rest, ":")
	if text == "" {
		return name, 0
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 {
		port = -1
	}
	return name, port
}
