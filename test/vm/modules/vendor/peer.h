/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The interface of ib_peer_mem. A client is known by its name here, and by no more. */
struct peer_client;
struct peer_client *ib_register_peer_memory_client(const char *name);
void ib_unregister_peer_memory_client(struct peer_client *client);
void ib_peer_mem_add_device(void);
