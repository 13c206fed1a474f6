// Package busy reports whether other programs used this machine so much that times
// measured on it mean nothing. It reads /proc, so it needs Linux.
package busy

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Most is the largest share of the CPU time of all CPUs, 0 to 1, that other
// programs may take. On two CPUs one program that never waits takes 0.5.
const Most = 0.2

// Reason is why times measured while others took a share of the CPU time, 0 to 1,
// mean nothing; "" if they are valid.
func Reason(others float64) string {
	if others <= Most {
		return ""
	}
	return fmt.Sprintf("other programs took %.0f %% of the CPU time of all CPUs, more than %.0f %% (/proc/stat)", others*100, Most*100)
}

// Watch begins to watch. The function it gives returns the share of the CPU time of
// all CPUs, 0 to 1, that has since gone to others: neither to the process
// nor to those it has started, directly or not. Time that a hypervisor took from the
// machine counts as theirs.
func Watch(pid int) (func() (float64, error), error) {
	before, err := read(pid)
	if err != nil {
		return nil, err
	}
	return func() (float64, error) {
		after, err := read(pid)
		if err != nil {
			return 0, err
		}
		return others(before, after), nil
	}, nil
}

// sample is the CPU time since the machine started, in ticks.
type sample struct {
	all  uint64 // of all CPUs, idle or not
	idle uint64
	own  uint64 // of a process and those it has started
}

// others is the share that others took between two samples.
func others(before, after sample) float64 {
	all := float64(after.all) - float64(before.all)
	idle := float64(after.idle) - float64(before.idle)
	own := float64(after.own) - float64(before.own)
	if all <= 0 {
		return 0
	}
	return max(0, all-idle-own) / all
}

func read(pid int) (s sample, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return s, err
	}
	if s.all, s.idle, err = parseStat(string(text)); err != nil {
		return s, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return s, err
	}
	var all []process
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		p, err := parseProcess(string(text))
		if err != nil {
			return s, err
		}
		all = append(all, p)
	}
	s.own = tree(all, pid)
	return s, nil
}

// parseStat reads the first line of /proc/stat, the sums of all CPUs: user,
// nice, system, idle, iowait, irq, softirq, steal. What follows is part of user and
// nice (proc_stat(5)).
func parseStat(text string) (all, idle uint64, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q, which is no line of CPU times", line)
	}
	for i, field := range fields[1:9] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		all += n
		if i == 3 || i == 4 {
			idle += n
		}
	}
	return all, idle, nil
}

// process is a process, and the CPU time of it and of the children it has waited
// for, in ticks.
type process struct {
	pid, parent int
	ticks       uint64
}

// parseProcess reads /proc/PID/stat: pid, command in brackets, state, ppid, and
// utime, stime, cutime and cstime as the fields 14 to 17 (proc_pid_stat(5)).
func parseProcess(text string) (p process, err error) {
	end := strings.LastIndexByte(text, ')') // a command may have brackets and spaces
	if end < 0 {
		return p, fmt.Errorf("/proc/PID/stat: %q names no command", text)
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 15 {
		return p, fmt.Errorf("/proc/PID/stat: %q has no CPU times", text)
	}
	if _, err := fmt.Sscan(text, &p.pid); err != nil {
		return p, fmt.Errorf("/proc/PID/stat: %w", err)
	}
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return p, fmt.Errorf("/proc/PID/stat: %w", err)
	}
	for _, field := range fields[11:15] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return p, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		p.ticks += n
	}
	return p, nil
}

// tree sums up the time of a process and of all below it.
func tree(all []process, root int) uint64 {
	children := map[int][]process{}
	var sum uint64
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
		if p.pid == root {
			sum = p.ticks
		}
	}
	for todo := []int{root}; len(todo) > 0; {
		for _, p := range children[todo[0]] {
			sum += p.ticks
			todo = append(todo, p.pid)
		}
		todo = todo[1:]
	}
	return sum
}
