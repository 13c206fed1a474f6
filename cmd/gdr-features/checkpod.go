package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/frameworks"
	"gdr-features/internal/image"
	"gdr-features/internal/mechanism"
	"gdr-features/internal/report"
)

// podOptions are the flags that go with --pod.
type podOptions struct{ gpus, image, framework string }

// withoutPod is the error for flags that go with --pod, without it.
func withoutPod(flags *pflag.FlagSet) error {
	for _, flag := range [...]string{"gpus", "image", "for"} {
		if flags.Changed(flag) {
			return fmt.Errorf("--%s goes with --pod", flag)
		}
	}
	return nil
}

// inPod returns what is to be judged of the container that this process runs in, and a
// function that closes its image. Without --image its own files are the image, unless --root
// names another machine, of which no container is known.
func (a *app) inPod(o podOptions) (report.Pod, func(), error) {
	if o.framework != "" {
		if err := cli.OneOf("for", o.framework, mechanism.Names()...); err != nil {
			return report.Pod{}, nil, err
		}
	}
	names := slices.Concat(frameworks.Read(), image.Variables(), mechanism.Variables())
	p := report.Pod{Variables: environment(names), ReadFile: readNamed, For: o.framework}
	dir := o.image
	if dir == "" && a.Host.Root == "/" {
		dir = "/"
	}
	if dir == "" {
		return p, func() {}, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p, nil, fmt.Errorf("--image: %w", err)
	}
	p.Image, p.Elsewhere = root.FS(), o.image != "" && a.Host.Root != "/"
	return p, func() { _ = root.Close() }, nil
}
