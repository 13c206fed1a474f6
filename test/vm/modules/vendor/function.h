/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * A PCI driver that binds to functions and leaves them alone: they have no
 * registers. The kernel gives some functions only to modules that say GPL.
 */
#include <linux/module.h>
#include <linux/pci.h>

MODULE_DESCRIPTION("stands in for a driver of the same name");
MODULE_LICENSE("GPL");

static inline int bind(struct pci_dev *function, const struct pci_device_id *id)
{
	return 0;
}

#define PCI_DRIVER(variable, vendor, device)                                         \
	static const struct pci_device_id variable##_ids[] = {                        \
		{ PCI_DEVICE(vendor, device) },                                       \
		{},                                                                   \
	};                                                                            \
	MODULE_DEVICE_TABLE(pci, variable##_ids);                                     \
	struct pci_driver variable = {                                                \
		.name = #variable,                                                    \
		.id_table = variable##_ids,                                           \
		.probe = bind,                                                        \
	}
