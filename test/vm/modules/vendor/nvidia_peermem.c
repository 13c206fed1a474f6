// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* NVIDIA's peer memory client, which links to the interface and so holds the module that has it. */
#include "function.h"
#include "peer.h"

extern void nvidia_p2p_get_pages(void);

static struct peer_client *client;

static int __init nvidia_peermem_init(void)
{
	nvidia_p2p_get_pages();
	client = ib_register_peer_memory_client("nv_mem");
	return client ? 0 : -EINVAL;
}
module_init(nvidia_peermem_init);

static void __exit nvidia_peermem_exit(void)
{
	ib_unregister_peer_memory_client(client);
}
module_exit(nvidia_peermem_exit);
