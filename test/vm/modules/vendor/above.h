/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * An RDMA driver above the PCI driver of another module: a device for each function
 * that is bound to that one.
 */
#include "rdma.h"
#ifndef INBOX
#include "peer.h"
#endif

struct kind {
	const struct ib_device_ops *ops;
	const char *name;
};

static int add(struct device *dev, void *kind)
{
	struct kind *k = kind;

#ifndef INBOX
	ib_peer_mem_add_device();
#endif
	return add_device(to_pci_dev(dev), k->ops, k->name, RDMA_NODE_IB_CA);
}

static int drop(struct device *dev, void *unused)
{
	remove_device(to_pci_dev(dev));
	return 0;
}

static inline void drop_all(struct pci_driver *lower)
{
	WARN_ON(driver_for_each_device(&lower->driver, NULL, NULL, drop));
}

static inline int add_all(struct pci_driver *lower, struct kind kind)
{
	int err = driver_for_each_device(&lower->driver, NULL, &kind, add);

	if (err)
		drop_all(lower);
	return err;
}

#define RDMA_DRIVER_ABOVE(lower, device_ops, device_name)                             \
	extern struct pci_driver lower;                                               \
	static int __init above_init(void)                                            \
	{                                                                             \
		return add_all(&lower, (struct kind){ &device_ops, device_name });    \
	}                                                                             \
	module_init(above_init);                                                      \
	static void __exit above_exit(void)                                           \
	{                                                                             \
		drop_all(&lower);                                                     \
	}                                                                             \
	module_exit(above_exit)
