// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* Broadcom's RDMA driver; with INBOX the kernel's own. */
#include "above.h"

REG_USER_MR_DMABUF(bnxt_re_reg_user_mr_dmabuf)

static const struct ib_device_ops bnxt_re_ops = {
	RDMA_OPS,
	.driver_id = RDMA_DRIVER_BNXT_RE,
	.get_link_layer = ethernet,
	.alloc_ucontext = alloc_context,
	.reg_user_mr_dmabuf = bnxt_re_reg_user_mr_dmabuf,
};

RDMA_DRIVER_ABOVE(bnxt_en, bnxt_re_ops, "bnxt_re%d");
