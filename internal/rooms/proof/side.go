package proof

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// side is one side of a transfer: what was asked for, and what perftest printed.
type side struct {
	name   string // "server" or "client"
	given  bool   // there is output, or an exit status
	asked  []string
	ended  string // the exit status, "" where it is not known
	lines  []string
	device string // the RDMA device
	gpus   []string
	// gpu: the buffer is GPU memory as far as the output says. other: it is memory of another kind,
	// of which the output says so.
	gpu, other, dmabuf bool
	local, remote      string // queue pair and packet number of both ends
	unit               string // of the table: "Gb/sec", "MiB/sec" or "MB/sec"
	results            []result
	closed             bool    // the table ends with its line
	json               *result // of --out_json; its rate has no unit
	badJSON            bool
}

// result is a line of perftest's table.
type result struct {
	bytes, iterations uint64
	average, messages float64 // in the unit of the table; in millions a second
}

// The lines of the output. Sources: src/perftest_parameters.h, RESULT_LINE, RESULT_FMT, RESULT_FMT_G
// and REPORT_FMT (MB/sec to 24.04, MiB/sec from 1d202bb on); src/perftest_parameters.c,
// ctx_print_test_info; src/perftest_communication.h, BASIC_ADDR_FMT; src/cuda_memory.c and
// src/rocm_memory.c (before 4975543 src/perftest_resources.c); src/perftest_resources.c, register_mr
// (b0823b7, 5ae53ba, 98bfb36).
var (
	tableHead = regexp.MustCompile(`^ *#bytes +#iterations +BW peak\[([A-Za-z/]+)\] +BW average\[([A-Za-z/]+)\] +MsgRate\[Mpps\]`)
	tableEnd  = regexp.MustCompile(`^-{80,}$`)
	deviceIs  = regexp.MustCompile(`\bDevice +: ([\w.-]+)`)
	endIs     = regexp.MustCompile(`^ (local|remote) address: LID \S+ QPN (\S+) PSN (\S+)`)
	busIs     = regexp.MustCompile(`^(?:Got PCIe address of:|Finding PCIe BUS) (\S+)$`)
	rocmIs    = regexp.MustCompile(`^Using ROCm Device with ID: (\d+), .*PCI Bus ID: 0x([0-9a-f]+)`)
	bufferIs  = regexp.MustCompile(`^allocated (?:GPU buffer of a \d+ address at \S+ for type (\w+)|GPU buffer address at [0-9a-f]+ pointer=\S+|\d+ bytes of GPU buffer at \S+)$`)
	dmabufIs  = regexp.MustCompile(`^using DMA-BUF for GPU buffer |^Calling (?:ibv_reg_dmabuf_mr\(|mlx5dv_reg_dmabuf_mr\(|ibv_reg_mr_ex with dmabuf\()`)
	jsonIs    = regexp.MustCompile(`(?m)^ *"?(MsgSize|n_iterations|BW_average|MsgRate)"? *: *"?([0-9.]+)"?,? *$`)
)

const integrated = "CUDA device integrated: "

func (s *side) take(what, text string) {
	switch what {
	case "cmd":
		s.asked = strings.Fields(text)
	case "rc":
		s.ended = strings.TrimSpace(text)
		s.given = s.given || s.ended != ""
	case "json":
		s.readJSON(text)
	default:
		s.read(text)
	}
}

func (s *side) read(text string) {
	s.given = true
	table := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		s.lines = append(s.lines, line)
		switch m := tableHead.FindStringSubmatch(line); {
		case m != nil && m[1] == m[2] && s.unit == "":
			s.unit, table = m[1], true
		case m != nil: // a second table, or one of two units
			s.other, s.unit = true, "?"
		case table && tableEnd.MatchString(line):
			s.closed, table = true, false
		case table:
			s.row(line)
		default:
			s.fact(line)
		}
	}
}

// row takes a line of the table. Every line there counts: what is no result makes it void.
func (s *side) row(line string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return
	}
	r := result{}
	if len(words) >= 5 {
		r.bytes, r.iterations = whole(words[0]), whole(words[1])
		r.average, r.messages = positive(words[3]), positive(words[4])
	}
	s.results = append(s.results, r)
}

func (s *side) fact(line string) {
	if m := deviceIs.FindStringSubmatch(line); m != nil {
		s.device = m[1]
	} else if m := endIs.FindStringSubmatch(line); m != nil && m[1] == "local" {
		s.local = m[2] + " " + m[3]
	} else if m != nil {
		s.remote = m[2] + " " + m[3]
	} else if m := busIs.FindStringSubmatch(line); m != nil {
		s.gpus = append(s.gpus, strings.ToLower(m[1]))
	} else if m := rocmIs.FindStringSubmatch(line); m != nil {
		s.gpus = append(s.gpus, m[2])
	} else if m := bufferIs.FindStringSubmatch(line); m != nil {
		s.gpu = true
		s.other = s.other || m[1] != "" && m[1] != "CUDA_MEM_DEVICE"
	} else if number, ok := strings.CutPrefix(line, integrated); ok {
		s.other = s.other || number != "0"
	} else if dmabufIs.MatchString(line) {
		s.dmabuf = true
	}
}

// readJSON takes the numbers of --out_json, which is no JSON before 24.01 (f9e82f7).
func (s *side) readJSON(text string) {
	numbers := map[string]string{}
	for _, m := range jsonIs.FindAllStringSubmatch(text, -1) {
		_, twice := numbers[m[1]]
		s.badJSON = s.badJSON || twice
		numbers[m[1]] = m[2]
	}
	s.badJSON = s.badJSON || len(numbers) < 4 || !strings.HasSuffix(strings.TrimSpace(text), "}")
	s.json = &result{whole(numbers["MsgSize"]), whole(numbers["n_iterations"]), positive(numbers["BW_average"]), positive(numbers["MsgRate"])}
	s.given = true
}

func whole(word string) uint64 {
	n, err := strconv.ParseUint(word, 10, 48)
	if err != nil {
		return 0
	}
	return n
}

// positive is a number, 0 for what is none.
func positive(word string) float64 {
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || !(n > 0) || n > 1e12 {
		return 0
	}
	return n
}

// gigabits is a rate in 10^9 bits a second; 0 for a unit that is not known. MB and MiB are both
// 2^20 bytes (src/perftest_parameters.c, print_report_bw).
func gigabits(average float64, unit string) float64 {
	switch unit {
	case "Gb/sec":
		return average
	case "MB/sec", "MiB/sec":
		return average * 8 * (1 << 20) / 1e9
	}
	return 0
}

// measured is the rate that the table tells, or why it tells none. The number of messages must give
// the same rate: where one side alone has --report_gbits, the other prints its number below a header
// of another unit.
func (s *side) measured() (r result, rate float64, why string) {
	switch {
	case s.unit == "":
		return r, 0, "it has no result"
	case len(s.results) == 0 || !s.closed:
		return r, 0, "its table is torn"
	case len(s.results) > 1:
		return r, 0, "it has several results"
	}
	r = s.results[0]
	rate = gigabits(r.average, s.unit)
	if r.bytes == 0 || r.iterations == 0 || rate == 0 || r.messages == 0 {
		return r, 0, "its result cannot be read"
	}
	const half = 0.5e-6 // of the last digit of a number of messages
	byMessages := r.messages * float64(r.bytes) * 8e-3
	slack := 0.02*byMessages + gigabits(0.01, s.unit) + half*float64(r.bytes)*8e-3
	if math.Abs(byMessages-rate) > slack {
		return r, 0, "its rate and its number of messages disagree: one of both sides had --report_gbits"
	}
	return r, rate, ""
}

// option is the value of an option that was asked for, "" for none.
func (s *side) option(names ...string) string {
	for i, word := range s.asked {
		name, value, with := strings.Cut(word, "=")
		switch {
		case !slices.Contains(names, name):
		case with:
			return value
		case i+1 < len(s.asked):
			return s.asked[i+1]
		}
	}
	return ""
}

// wants reports what memory was asked for: a GPU, "" for host memory, and the way.
func (s *side) wants() (gpu string, way Way) {
	way = Peermem
	if slices.Contains(s.asked, "--use_cuda_dmabuf") || slices.Contains(s.asked, "--use_rocm_dmabuf") {
		way = DMABuf
	}
	switch {
	case s.option("--use_cuda_bus_id") != "":
		return strings.ToLower(s.option("--use_cuda_bus_id")), way
	case s.option("--use_cuda") != "":
		return "CUDA device " + s.option("--use_cuda"), way
	case s.option("--use_rocm") != "":
		return "ROCm device " + s.option("--use_rocm"), way
	}
	return "", Host
}

// rest are the options but those for memory, the TCP port and the name of the server: a result and
// its baseline have the same.
func (s *side) rest() string {
	var rest []string
	for i, word := range s.asked {
		after := i > 0 && s.asked[i-1] == "-p"
		if i == 0 || word == "-p" || after || strings.HasPrefix(word, "--use_") || word == "127.0.0.1" {
			continue
		}
		rest = append(rest, word)
	}
	return strings.Join(rest, " ")
}
