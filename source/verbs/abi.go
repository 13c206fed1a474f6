package verbs

import "unsafe"

// The numbers and structures here are those of the kernel's own headers below
// include/uapi/rdma, named with each; a test compiles those and compares.

// ioctlNumber is RDMA_VERBS_IOCTL (rdma_user_ioctl_cmds.h).
const ioctlNumber = 0xc0181b01

// header is struct ib_uverbs_ioctl_hdr (rdma_user_ioctl_cmds.h).
type header struct {
	length     uint16 // of header and attributes
	object     uint16
	method     uint16
	attributes uint16 // how many
	reserved1  uint64
	driver     uint32
	reserved2  uint32
}

// attribute is struct ib_uverbs_attr (rdma_user_ioctl_cmds.h). Input of up to eight
// bytes is in data itself, other data where data points to.
type attribute struct {
	id       uint16
	length   uint16 // of the data; 0 for an object's handle
	flags    uint16
	reserved uint16 // attr_data
	data     uint64
}

// mandatory is UVERBS_ATTR_F_MANDATORY (rdma_user_ioctl_cmds.h).
const mandatory = 1

// Objects and their methods (ib_user_ioctl_cmds.h).
const (
	objectDevice = 0 // UVERBS_OBJECT_DEVICE
	objectMR     = 7 // UVERBS_OBJECT_MR

	methodInvokeWrite = 0 // UVERBS_METHOD_INVOKE_WRITE
	methodQueryPort   = 2 // UVERBS_METHOD_QUERY_PORT
	methodGetContext  = 3 // UVERBS_METHOD_GET_CONTEXT
	methodRegDMABufMR = 4 // UVERBS_METHOD_REG_DMABUF_MR

	// methodNone is no method of any object: UVERBS_ID_NS_MASK leaves twelve bits
	// to the numbers of all drivers' common methods, and there are about twenty.
	methodNone = 0x0fff
)

// Attributes (ib_user_ioctl_cmds.h).
const (
	attrCoreIn   = 0      // UVERBS_ATTR_CORE_IN
	attrCoreOut  = 1      // UVERBS_ATTR_CORE_OUT
	attrWriteCmd = 2      // UVERBS_ATTR_WRITE_CMD
	attrUHWIn    = 0x1000 // UVERBS_ATTR_UHW_IN, what goes to the driver
	attrUHWOut   = 0x1001 // UVERBS_ATTR_UHW_OUT, what comes back from it

	attrPortNumber = 0 // UVERBS_ATTR_QUERY_PORT_PORT_NUM
	attrPort       = 1 // UVERBS_ATTR_QUERY_PORT_RESP

	attrHandle   = 0 // UVERBS_ATTR_REG_DMABUF_MR_HANDLE
	attrPDHandle = 1 // UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE
	attrOffset   = 2 // UVERBS_ATTR_REG_DMABUF_MR_OFFSET
	attrLength   = 3 // UVERBS_ATTR_REG_DMABUF_MR_LENGTH
	attrIOVA     = 4 // UVERBS_ATTR_REG_DMABUF_MR_IOVA
	attrFD       = 5 // UVERBS_ATTR_REG_DMABUF_MR_FD
	attrAccess   = 6 // UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS
	attrLKey     = 7 // UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY
	attrRKey     = 8 // UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY
)

// cmdAllocPD is IB_USER_VERBS_CMD_ALLOC_PD (ib_user_verbs.h). It has no method of
// its own and goes through methodInvokeWrite: struct ib_uverbs_alloc_pd in, of
// one pointer that is for write(2) only, struct ib_uverbs_alloc_pd_resp out.
const cmdAllocPD = 3

// activeMTU is where the active MTU stands in request.port, as enum ib_mtu
// (include/rdma/ib_verbs.h): 1 for 256 bytes to 5 for 4096.
const activeMTU = 28

// driverRXE is RDMA_DRIVER_RXE of enum rdma_driver_id (ib_user_ioctl_verbs.h), the
// kernel's software device. Those of NICs are in the rows of their families.
const driverRXE = 14

// request is what one ioctl gets: header and attributes, and after them, in the
// same memory, what attributes point to.
type request struct {
	header     header
	attributes [9]attribute
	context    [16]uint32 // what goes to a driver with the request for a context
	pd         uint32     // struct ib_uverbs_alloc_pd_resp (ib_user_verbs.h)
	port       [48]byte   // struct ib_uverbs_query_port_resp_ex (ib_user_ioctl_verbs.h)
	keys       [2]uint32  // of the memory region
	uhw        [32]uint64 // a driver's answer, cut off at this size; it is not read
}

// begin makes it a request without attributes.
func (r *request) begin(driver uint32, object, method uint16) {
	*r = request{header: header{object: object, method: method, driver: driver, length: uint16(unsafe.Sizeof(header{}))}}
}

func (r *request) add(id uint16, length uintptr, data uint64) {
	r.attributes[r.header.attributes] = attribute{id: id, length: uint16(length), flags: mandatory, data: data} //nolint:gosec // sizes of the fields above
	r.header.attributes++
	r.header.length += uint16(unsafe.Sizeof(attribute{}))
}

// object adds the handle of an object: 0 for one to be made.
func (r *request) object(id uint16, handle uint32) { r.add(id, 0, uint64(handle)) }

// to adds a place for data that comes back, or for data that goes in and does
// not fit into the attribute.
func (r *request) to(id uint16, place unsafe.Pointer, length uintptr) {
	r.add(id, length, uint64(uintptr(place)))
}
