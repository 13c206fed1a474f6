// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * AWS's out-of-tree driver: an RDMA device of no known link layer, and the file p2p,
 * which names the module that gives it memory of GPUs or of Neuron devices.
 */
#include "rdma.h"

REG_USER_MR_DMABUF(efa_reg_user_mr_dmabuf)

static enum rdma_link_layer unspecified(struct ib_device *dev, u32 port)
{
	return IB_LINK_LAYER_UNSPECIFIED;
}

/* A device with such capabilities refuses a user that does not know of them. */
static int efa_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	u32 request[2] = {};
	const u32 capabilities = 3;

	if (ib_copy_from_udata(request, udata, min(sizeof(request), udata->inlen)))
		return -EFAULT;
	return (request[0] & capabilities) == capabilities ? 0 : -EOPNOTSUPP;
}

static const struct ib_device_ops efa_ops = {
	RDMA_OPS,
	.driver_id = RDMA_DRIVER_EFA,
	.get_link_layer = unspecified,
	.alloc_ucontext = efa_alloc_ucontext,
	.reg_user_mr_dmabuf = efa_reg_user_mr_dmabuf,
};

/* The driver asks for these by name, each time that somebody wants to know. */
extern void nvidia_p2p_get_pages(void), efa_nv_peermem_p2p_get_pages(void), neuron_p2p_register_va(void);

#define PROVIDER(symbol, text)                       \
	do {                                         \
		if (symbol_get(symbol)) {            \
			symbol_put(symbol);          \
			return sysfs_emit(out, text "\n"); \
		}                                    \
	} while (0)

static ssize_t p2p_show(struct device *dev, struct device_attribute *attr, char *out)
{
	PROVIDER(efa_nv_peermem_p2p_get_pages, "NVIDIA peermem");
	PROVIDER(nvidia_p2p_get_pages, "NVIDIA");
	PROVIDER(neuron_p2p_register_va, "NEURON");
	return sysfs_emit(out, "\n");
}
static DEVICE_ATTR_RO(p2p);
static struct attribute *efa_attrs[] = { &dev_attr_p2p.attr, NULL };
ATTRIBUTE_GROUPS(efa);

static int efa_probe(struct pci_dev *function, const struct pci_device_id *id)
{
	return add_device(function, &efa_ops, "efa_%d", RDMA_NODE_UNSPECIFIED);
}

static const struct pci_device_id efa_ids[] = { { PCI_DEVICE(0x1d0f, 0xefa1) }, {} };
MODULE_DEVICE_TABLE(pci, efa_ids);
static struct pci_driver efa = {
	.name = "efa",
	.id_table = efa_ids,
	.probe = efa_probe,
	.remove = remove_device,
	.dev_groups = efa_groups,
};
module_pci_driver(efa);
