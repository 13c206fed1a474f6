// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* The driver of AWS's own accelerators, which are no GPUs. */
#include "function.h"

void neuron_p2p_register_va(void);
void neuron_p2p_register_va(void)
{
}
EXPORT_SYMBOL_GPL(neuron_p2p_register_va);
