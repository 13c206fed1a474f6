// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * AMD's out-of-tree driver, itself the peer memory client. It asks for the interface by
 * name, which makes it no holder of the module, when it is loaded and again when a
 * process opens /dev/kfd.
 */
#include <linux/miscdevice.h>

#include "function.h"
#include "peer.h"

static struct peer_client *client;

static void find_interface(void)
{
	struct peer_client *(*add)(const char *) = symbol_get(ib_register_peer_memory_client);

	if (add && !client)
		client = add("amdkfd");
	if (add && !client)
		symbol_put(ib_register_peer_memory_client);
}

static void leave_interface(void)
{
	void (*remove)(struct peer_client *);

	if (!client)
		return;
	remove = symbol_get(ib_unregister_peer_memory_client);
	if (remove) {
		remove(client);
		symbol_put(ib_unregister_peer_memory_client);
	}
	symbol_put(ib_register_peer_memory_client);
}

static int kfd_open(struct inode *inode, struct file *file)
{
	if (!client)
		find_interface();
	return 0;
}

static const struct file_operations kfd_operations = { .owner = THIS_MODULE, .open = kfd_open };
static struct miscdevice kfd = { .minor = MISC_DYNAMIC_MINOR, .name = "kfd", .fops = &kfd_operations };

PCI_DRIVER(amdgpu, 0x1002, 0x74a1);

static int __init amdgpu_init(void)
{
	int err = pci_register_driver(&amdgpu);

	if (err)
		return err;
	find_interface();
	err = misc_register(&kfd);
	if (err) {
		leave_interface();
		pci_unregister_driver(&amdgpu);
	}
	return err;
}
module_init(amdgpu_init);

static void __exit amdgpu_exit(void)
{
	misc_deregister(&kfd);
	leave_interface();
	pci_unregister_driver(&amdgpu);
}
module_exit(amdgpu_exit);
