// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * NVIDIA's open kernel modules: their version, and access to GPU memory for modules that
 * link to it. Their symbols are not for GPL modules alone.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "function.h"

void nvidia_p2p_get_pages(void);
void nvidia_p2p_get_pages(void)
{
}
EXPORT_SYMBOL(nvidia_p2p_get_pages);

static int version(struct seq_file *out, void *unused)
{
	seq_puts(out, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
	return 0;
}

PCI_DRIVER(nvidia, 0x10de, 0x2330);

static struct proc_dir_entry *dir;

static int __init nvidia_init(void)
{
	int err = pci_register_driver(&nvidia);

	if (err)
		return err;
	dir = proc_mkdir("driver/nvidia", NULL);
	proc_create_single("version", 0444, dir, version);
	return 0;
}
module_init(nvidia_init);

static void __exit nvidia_exit(void)
{
	proc_remove(dir);
	pci_unregister_driver(&nvidia);
}
module_exit(nvidia_exit);
