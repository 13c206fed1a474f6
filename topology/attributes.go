package topology

import "slices"

// attributes are NCCL's attributes that describe a machine without identifying it.
var attributes = [...]string{
	"host_hash", "numaid", "busid", "vendor", "device", "subsystem_vendor", "subsystem_device",
	"version", "affinity", "arch", "familyid", "modelid", "class", "link_speed", "link_width",
	"name", "dev", "port", "speed", "latency", "maxconn", "gdr", "sm", "rank", "count", "target", "tclass",
}

// IsAttribute reports whether ParseFile looks at attributes of this name, "busid" or
// "numaid". NCCL reads others as well, "guid" of a NIC among them.
func IsAttribute(name string) bool { return slices.Contains(attributes[:], name) }
