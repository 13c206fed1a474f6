package host_test

import (
	"fmt"

	"gdr-features/host"
)

// A tree that was copied from another machine is read like the running one. A
// missing file is not the same as one that cannot be read.
func Example() {
	tree, err := host.Open(host.Options{Root: "testdata/example"}) // host.Options{} is this machine
	if err != nil {
		fmt.Println(err)
		return
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
