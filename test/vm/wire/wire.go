// Package wire is how the test asks the virtual machine to do something: a JSON
// value for each request and each answer over a serial line.
package wire

import "time"

// Command is what to do.
type Command string

// What the first process of the machine can do.
const (
	Run    Command = "run"    // run Args to their end: Out, Err, Status
	Start  Command = "start"  // start Args and leave them running: PID; standard output and error go to Path
	Kill   Command = "kill"   // SIGTERM to PID, wait for its end: Status
	Read   Command = "read"   // the file Path: Data
	Await  Command = "await"  // the file Path as soon as it is another than Data: Data; as it is after some seconds
	Write  Command = "write"  // Data at Offset of the file Path, which is there
	List   Command = "list"   // the names in the directory Path, a line each: Out
	Link   Command = "link"   // the target of the symbolic link Path: Out
	Insert Command = "insert" // the kernel module in the file Path
	Remove Command = "remove" // the kernel module of that name
	AddRXE Command = "rxe"    // a software RDMA device named Path on the network device Device
	Apart  Command = "apart"  // give each RDMA device to one network namespace, that of the machine
	Up     Command = "up"     // give the network device Device the IPv4 address Path, of a network of 256
	Clock  Command = "clock"  // move the clock on the wall by Offset seconds: Out, what it says then (RFC 3339)
)

// Request is one thing to do.
type Request struct {
	Command Command
	Args    []string `json:",omitempty"`
	UID     uint32   `json:",omitempty"`
	// Own: Args run in a network namespace of their own, with the /sys that belongs to it.
	Own    bool   `json:",omitempty"`
	Path   string `json:",omitempty"`
	Device string `json:",omitempty"`
	Data   []byte `json:",omitempty"`
	Offset int64  `json:",omitempty"`
	PID    int    `json:",omitempty"`
}

// Response tells what came of it. Failed is why it could not be done.
type Response struct {
	Out, Err string `json:",omitempty"`
	Data     []byte `json:",omitempty"`
	Status   int    `json:",omitempty"`
	PID      int    `json:",omitempty"`
	Failed   string `json:",omitempty"`
	// Up is the machine's own time when it answers.
	Up time.Duration
}
