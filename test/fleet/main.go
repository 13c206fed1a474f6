// Command fleet runs the publishing loops of many agents in one process, each with a token
// and a connection of its own, as if each were on its node. The machine that all of them
// publish is read once. `hack/check.sh fleet` starts it and sends it commands on standard input:
//
//	start DURATION N   start all agents, each at a random moment within that time, with
//	                   at most N at once that have not published yet
//	change FROM TO     change the machines of these nodes
//
// When all agents concerned have written, it prints how long that took.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, time.Now); err != nil { //nolint:forbidigo // this is where the clock comes from
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// run executes commands until there are no more.
func run(ctx context.Context, args []string, commands io.Reader, out io.Writer, now func() time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var o options
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.StringVar(&o.server, "server", "", "URL of the API server")
	flags.StringVar(&o.ca, "ca", "", "file with its CA certificate")
	flags.StringVar(&o.namespace, "namespace", "gdr-features", "namespace of the NodeFeatures")
	flags.StringVar(&o.nodes, "nodes", "", "file with the name and the token of a node on each line")
	flags.StringVar(&o.before, "before", "", "directory with a machine's sys/ and proc/")
	flags.StringVar(&o.after, "after", "", "the same machine after a change")
	if err := flags.Parse(args); err != nil {
		return err
	}
	f, err := newFleet(ctx, o, now)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		result, err := f.execute(ctx, lines.Text())
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if err := json.NewEncoder(out).Encode(result); err != nil {
			return err
		}
	}
	return lines.Err()
}

// execute executes the command on a line and waits until it is done.
func (f *fleet) execute(ctx context.Context, line string) (result, error) {
	command, rest, _ := strings.Cut(line, " ")
	switch command {
	case "start":
		var text string
		var atOnce int
		if _, err := fmt.Sscan(rest, &text, &atOnce); err != nil {
			return result{}, err
		}
		within, err := time.ParseDuration(text)
		if err != nil {
			return result{}, err
		}
		f.start(ctx, within, atOnce)
		return f.written(ctx, len(f.members))
	case "change":
		var from, to int
		if _, err := fmt.Sscan(rest, &from, &to); err != nil {
			return result{}, err
		}
		if from < 0 || from > to || to > len(f.members) {
			return result{}, fmt.Errorf("there are %d nodes", len(f.members))
		}
		f.change(from, to)
		return f.written(ctx, to-from)
	}
	return result{}, errors.New("unknown command")
}
