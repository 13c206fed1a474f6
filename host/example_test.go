package host_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gdr-features/host"
)

// A tree that was copied from another machine is read like the running one. What is
// missing is told from what cannot be read.
func Example() {
	root, err := os.MkdirTemp("", "machine")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	module := filepath.Join(root, "sys/module/nvidia")
	if err := os.MkdirAll(module, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "version"), []byte("570.86.15\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	tree, err := host.Open(host.Options{Root: root}) // host.Options{} is this machine
	if err != nil {
		log.Fatal(err)
	}
	defer tree.Close()
	version, err := tree.Line("sys/module/nvidia/version")
	fmt.Println(version, err)
	_, err = tree.Line("sys/module/nvidia_peermem/initstate")
	fmt.Println(err, host.Absent(err))
	// Output:
	// 570.86.15 <nil>
	// open /sys/module/nvidia_peermem/initstate: no such file or directory true
}
