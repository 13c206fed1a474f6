// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * The module of NIC vendors with which GPU drivers register as peer memory clients. It
 * lists them below /sys/kernel/mm/memory_peers.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "function.h"
#include "peer.h"

static struct kobject *peers;

struct peer_client {
	struct kobject *dir;
};

static ssize_t version_show(struct kobject *dir, struct kobj_attribute *attr, char *out)
{
	return sysfs_emit(out, "1.0\n");
}
static struct kobj_attribute version = __ATTR_RO(version);

struct peer_client *ib_register_peer_memory_client(const char *name)
{
	struct peer_client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return NULL;
	client->dir = kobject_create_and_add(name, peers);
	if (!client->dir || sysfs_create_file(client->dir, &version.attr)) {
		kobject_put(client->dir);
		kfree(client);
		return NULL;
	}
	return client;
}
EXPORT_SYMBOL_GPL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(struct peer_client *client)
{
	kobject_put(client->dir);
	kfree(client);
}
EXPORT_SYMBOL_GPL(ib_unregister_peer_memory_client);

/* RDMA drivers link to this one. */
void ib_peer_mem_add_device(void)
{
}
EXPORT_SYMBOL_GPL(ib_peer_mem_add_device);

static int __init ib_peer_mem_init(void)
{
	peers = kobject_create_and_add("memory_peers", mm_kobj);
	return peers ? 0 : -ENOMEM;
}
module_init(ib_peer_mem_init);

static void __exit ib_peer_mem_exit(void)
{
	kobject_put(peers);
}
module_exit(ib_peer_mem_exit);
