/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User ids of addresses, fi_av(3) FI_AV_USER_ID: completions report them
 * instead of addresses. The address vector keeps them; the receive side and the
 * regions of the endpoints bound to it look them up.
 */
#ifndef TDM_USER_ID_H
#define TDM_USER_ID_H

#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_peer.h>

#include "base/base.h"

/*
 * A peer provider asks the owner for the user id of an address that it reports
 * without having got it in an entry of the receive side:
 * fi_open_ops(&srx->ep_fid.fid, TDM_USER_ID_OPS, 0, &ops, NULL). An owner without
 * user ids need not offer this.
 */
#define TDM_USER_ID_OPS "tandem_user_ids_1"

struct tdm_user_id_ops {
	size_t size;
	/* The id that completions of @srx report for @addr. Lock: held. */
	fi_addr_t (*id)(struct fid_peer_srx *srx, fi_addr_t addr);
};

struct tdm_user_ids {
	fi_addr_t *id; /* [count], by address */
	size_t count;  /* 0: no user ids, addresses are reported */
	/*
	 * Of authorization keys: key_id[number - 1]. NULL: handles are
	 * reported.
	 */
	const fi_addr_t *key_id;
};

/*
 * Returns the id that completions report for @addr, which may be
 * FI_ADDR_UNSPEC.
 */
static inline fi_addr_t tdm_user_id(const struct tdm_user_ids *ids,
				    fi_addr_t addr)
{
	return addr < ids->count ? ids->id[addr] : addr;
}

#endif /* TDM_USER_ID_H */
