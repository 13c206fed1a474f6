/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * An RDMA device below a PCI function, with one port that is always active and
 * neither queues nor memory. It gives user space a context and a protection domain,
 * so that it can be asked whether it registers DMA-BUF.
 */
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "function.h"

MODULE_IMPORT_NS(DMA_BUF);

static inline int query_device(struct ib_device *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	return 0;
}

static inline int query_port(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

static inline int port_immutable(struct ib_device *dev, u32 port, struct ib_port_immutable *immutable)
{
	return 0;
}

static inline enum rdma_link_layer ethernet(struct ib_device *dev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static inline int alloc_context(struct ib_ucontext *context, struct ib_udata *udata)
{
	return 0;
}

static inline void dealloc_context(struct ib_ucontext *context)
{
}

static inline int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static inline int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

/* Without this one the kernel offers no registration of memory at all. */
static inline int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	return 0;
}

/* The kernel's own part comes first in a driver's objects. */
struct context {
	struct ib_ucontext core;
};
struct pd {
	struct ib_pd core;
};

#define RDMA_OPS                                   \
	.owner = THIS_MODULE,                      \
	.uverbs_abi_ver = 1,                       \
	.query_device = query_device,              \
	.query_port = query_port,                  \
	.get_port_immutable = port_immutable,      \
	.dealloc_ucontext = dealloc_context,       \
	.alloc_pd = alloc_pd,                      \
	.dealloc_pd = dealloc_pd,                  \
	.dereg_mr = dereg_mr,                      \
	INIT_RDMA_OBJ_SIZE(ib_ucontext, context, core), \
	INIT_RDMA_OBJ_SIZE(ib_pd, pd, core)

/* register_dmabuf takes hold of the buffer as a driver does, and can do no more. */
static inline struct ib_mr *register_dmabuf(struct ib_pd *pd, u64 offset, u64 length, int fd, int access)
{
	struct ib_umem_dmabuf *umem = ib_umem_dmabuf_get_pinned(pd->device, offset, length, fd, access);

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	ib_umem_release(&umem->umem);
	return ERR_PTR(-EOPNOTSUPP);
}

/* The function that a driver has for this, as /proc/kallsyms names it. */
#define REG_USER_MR_DMABUF(name)                                                             \
	struct ib_mr *name(struct ib_pd *pd, u64 offset, u64 length, u64 address, int fd,    \
			   int access, struct ib_udata *udata)                               \
	{                                                                                    \
		return register_dmabuf(pd, offset, length, fd, access);                      \
	}

static inline int add_device(struct pci_dev *function, const struct ib_device_ops *ops, const char *name, u8 node_type)
{
	struct ib_device *dev = _ib_alloc_device(sizeof(*dev));
	int err;

	if (!dev)
		return -ENOMEM;
	dev->node_type = node_type;
	dev->phys_port_cnt = 1;
	dev->num_comp_vectors = 1;
	dev->dev.parent = &function->dev;
	ib_set_device_ops(dev, ops);
	err = ib_register_device(dev, name, &function->dev);
	if (err) {
		ib_dealloc_device(dev);
		return err;
	}
	pci_set_drvdata(function, dev);
	return 0;
}

static inline void remove_device(struct pci_dev *function)
{
	struct ib_device *dev = pci_get_drvdata(function);

	if (!dev)
		return;
	pci_set_drvdata(function, NULL);
	ib_unregister_device(dev);
	ib_dealloc_device(dev);
}
