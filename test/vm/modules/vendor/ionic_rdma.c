// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/* AMD Pensando's out-of-tree RDMA driver. */
#include "above.h"

REG_USER_MR_DMABUF(ionic_reg_user_mr_dmabuf)

/* The driver cannot do without the whole request, of two words. */
static int ionic_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	u32 request[2];

	if (udata->inlen < sizeof(request))
		return -EINVAL;
	return ib_copy_from_udata(request, udata, sizeof(request));
}

static const struct ib_device_ops ionic_ops = {
	RDMA_OPS,
	.driver_id = 21, /* RDMA_DRIVER_IONIC of Linux 6.18 */
	.get_link_layer = ethernet,
	.alloc_ucontext = ionic_alloc_ucontext,
	.reg_user_mr_dmabuf = ionic_reg_user_mr_dmabuf,
};

RDMA_DRIVER_ABOVE(ionic, ionic_ops, "ionic_%d");
