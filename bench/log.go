package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// logSize is the size of the job's log that is measured, in bytes: 64 ranks, of whose lines
// every tenth is about a channel.
const logSize = 64 << 20

// logs are the programs on it: what the project's reads, and what grep needs to count.
type logs struct{ log, grep *program }

func (l logs) all() []*program { return []*program{l.log, l.grep} }

func onLog(file, product string) (logs, error) {
	grep, err := exec.LookPath("grep")
	if err != nil {
		return logs{}, err
	}
	channels, err := writeLog(file)
	return logs{
		log:  &program{name: "log", argv: []string{product, "log", file}, want: fmt.Sprintf("used by all channels over a network, %d\n", channels)},
		grep: &program{name: "grep -c", argv: []string{grep, "-c", "GDRDMA", file}, want: fmt.Sprintf("%d\n", channels)},
	}, err
}

func writeLog(name string) (channels int, err error) {
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(file)
	for size := 0; size < logSize && err == nil; channels++ {
		var n int
		rank := channels % 64
		n, err = fmt.Fprintf(w, "[1,%d]<stdout>:h100-%d:%d:2165 [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA\n",
			rank, rank/8, 1480+rank, rank%8, channels/64%32, rank, rank%8, (rank+8)%64, rank%8, rank%8)
		size += n
		for step := range 9 {
			n, _ = fmt.Fprintf(w, "[1,%d]<stdout>:[2026-11-24 11:01:23,%03d][INFO] step %d loss 2.7182818 lr 3.0e-4 tokens/s 51423.7 TFLOPs 421.5\n", rank, step, channels*9+step)
			size += n
		}
	}
	return channels, errors.Join(err, w.Flush(), file.Close())
}

// rate is MB of the log for each second of CPU time.
func rate(p *program) float64 { return logSize / 1e6 / (p.least() / 1e3) }
