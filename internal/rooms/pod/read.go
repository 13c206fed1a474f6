package pod

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/source/container"
	"gdr-features/source/rdma"
	"gdr-features/verdict"
)

// Question is what a container is judged for.
type Question struct {
	// Variables are those of the container's environment by name; see frameworks.Read.
	Variables map[string]string
	// ReadFile reads the files that variables name.
	ReadFile func(name string) ([]byte, error)
	// Image is the file tree of the container, or of its unpacked image; nil to judge none.
	// Elsewhere: the job does not run in this container, but from that image.
	Image     fs.FS
	Elsewhere bool
	// For names the framework in question; "" for all that the image has.
	For string
	// GPUs are those in question, by index; nil for those that the variables leave.
	GPUs []int
}

// imageTimeout is how long reading the libraries of an image may take.
const imageTimeout = 10 * time.Second

// Read reads what a container lets this process do, on a machine as this process sees it. The
// problems are what could not be read.
func Read(ctx context.Context, root *host.FS, here assign.Here, q Question) (c *Container, problems []error) {
	var seen container.State
	if !q.Elsewhere {
		seen, problems = read(ctx, "what this container may use", func() container.State {
			return container.Read(root, here.Visible, eligible(here.Node))
		})
		problems = append(problems, seen.Problems...)
	}
	c = newContainer(here, q, withoutRanged(seen, root.Live(), q.Variables))
	if q.Image != nil {
		ctx, cancel := context.WithTimeout(ctx, imageTimeout)
		defer cancel()
		var unread []error
		c.Image, unread = read(ctx, "libraries of the image", func() *image.Image { return image.Read(q.Image, q.Variables) })
		problems = append(problems, unread...)
		if c.ImageUnread = unread != nil; c.Image != nil {
			problems = append(problems, c.Image.Problems...)
		}
	}
	c.Environment.ReadFiles(q.ReadFile)
	return c, problems
}

// withoutRanged leaves the GIDs of a snapshot unread where a variable chooses them by a range of
// addresses: the addresses in a snapshot are not those of the machine.
func withoutRanged(c container.State, live bool, variables map[string]string) container.State {
	ranged := func(chooser string) bool { return frameworks.NewGIDWish(chooser, variables).Range != nil }
	if live || !slices.ContainsFunc(frameworks.GIDChoosers[:], ranged) {
		return c
	}
	c.Ports = slices.Clone(c.Ports)
	for i := range c.Ports {
		c.Ports[i].GIDs, c.Ports[i].Unread = nil, true
	}
	return c
}

// read waits for a reading until the context ends: then that is a problem, with the name.
func read[T any](ctx context.Context, name string, reading func() T) (T, []error) {
	value, err := deadline.Async(func() (T, error) { return reading(), nil })(ctx)
	if err != nil {
		return value, []error{fmt.Errorf("%s: %w", name, err)}
	}
	return value, nil
}

// eligible are the RDMA devices of eligible NICs.
func eligible(node *verdict.Node) (all []*rdma.Device) {
	for i := range node.Matrix.NICs {
		if n := &node.Matrix.NICs[i]; n.Counts() && n.RDMA != nil {
			all = append(all, n.RDMA)
		}
	}
	return all
}
