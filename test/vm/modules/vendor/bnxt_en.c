// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
#include "function.h"

PCI_DRIVER(bnxt_en, 0x14e4, 0x1760);
EXPORT_SYMBOL_GPL(bnxt_en);
module_pci_driver(bnxt_en);
