/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of an endpoint for unexpected messages: the memory that they take,
 * whichever transport brought them and whether their sender is still there. The
 * owner keeps it, and a transport finds it through its export of the receive
 * side: fi_open_ops(&srx->ep_fid.fid, TDM_HELD_OPS, 0, &held, NULL). With an
 * owner that has none a transport keeps one of its own.
 *
 * Spec: fi_tandem(7), LIMITS.
 */
#ifndef TDM_HELD_H
#define TDM_HELD_H

#include <stddef.h>

#include "base/base.h"
#include "base/env.h"

#define TDM_HELD_OPS "tandem_held_1"

enum {
	/* TCP charges this for a message that waits, beside its payload. */
	TDM_HELD_CHARGE_BYTES = 512,
	/* A peer may have as much, whatever others have. */
	TDM_HELD_SHARE_BYTES = 64 << 10,
};

/* G: domain lock. */
struct tdm_held {
	size_t size;	      /* of this structure */
	uint32_t entry_bytes; /* the owner's entry of a message; constant */
	/* Taken by messages, or promised to peers that may send some. */
	uint64_t bytes;
};

/* Bytes that may still be taken or promised. */
static inline uint64_t tdm_held_room(const struct tdm_held *held)
{
	return tdm_env.unexp_max_bytes -
	       tdm_min(held->bytes, (uint64_t)tdm_env.unexp_max_bytes);
}

/*
 * May a message that takes @need bytes be kept that a peer has left behind,
 * closing? For them there is as much again as a process may have on their way.
 */
static inline int tdm_held_keeps(const struct tdm_held *held, uint64_t need)
{
	uint64_t most = tdm_env.unexp_max_bytes + tdm_env.inject_max_bytes;

	return held->bytes <= most && need <= most - held->bytes;
}

#endif /* TDM_HELD_H */
