/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options and default flags of an endpoint: fi_getopt(3), fi_setopt(3),
 * fi_control(3).
 */
#ifndef TDM_TCP_OPTION_H
#define TDM_TCP_OPTION_H

#include <rdma/fabric.h>

struct tdm_ep;
struct tdm_handle;
struct tdm_xfer;

/* The calls of struct fi_ops_ep, options: option.c. */
int tdm_ep_getopt(fid_t fid, int level, int optname, void *optval,
		  size_t *optlen);
int tdm_ep_setopt(fid_t fid, int level, int optname, const void *optval,
		  size_t optlen);

/*
 * Check a transfer on an endpoint that is disabled (-FI_EOPBADSTATE) or limited
 * by options (-FI_EMSGSIZE).
 */
int tdm_ep_check(const struct tdm_ep *ep, const struct tdm_xfer *x);

/* Set the sizes that options may lower to their maximum. */
void tdm_option_init(struct tdm_ep *ep);

/* Not 0 when an option has lowered a size of @ep. */
int tdm_ep_limited(struct tdm_ep *ep);

/* fi_control(FI_GETOPSFLAG). Out: *@flags. Errors: -FI_EINVAL. Lock: held. */
int tdm_ep_get_op_flags(const struct tdm_handle *h, uint64_t *flags);

/*
 * fi_control(FI_SETOPSFLAG); FI_TRANSMIT or FI_RECV in @flags names the
 * direction. Errors: -FI_EBADFLAGS, -FI_EINVAL. Lock: held.
 */
int tdm_ep_set_op_flags(struct tdm_handle *h, uint64_t flags);

#endif /* TDM_TCP_OPTION_H */
