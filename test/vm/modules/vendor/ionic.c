// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
#include "function.h"

PCI_DRIVER(ionic, 0x1dd8, 0x1002);
EXPORT_SYMBOL_GPL(ionic);
module_pci_driver(ionic);
