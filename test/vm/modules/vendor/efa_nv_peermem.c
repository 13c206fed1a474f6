// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* What gives EFA's driver the memory of GPUs that NVIDIA's open kernel modules drive. */
#include "function.h"

extern void nvidia_p2p_get_pages(void);

void efa_nv_peermem_p2p_get_pages(void);
void efa_nv_peermem_p2p_get_pages(void)
{
	nvidia_p2p_get_pages();
}
EXPORT_SYMBOL_GPL(efa_nv_peermem_p2p_get_pages);
