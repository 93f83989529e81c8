/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account of an endpoint's unexpected messages: the memory they take,
 * whichever transport brought them and whether or not their sender is alive.
 * The owner keeps it; a transport gets it from its export of the receive side:
 * fi_open_ops(&srx->ep_fid.fid, TDM_HELD_OPS, 0, &held, NULL). If the owner
 * offers no account, the transport keeps one of its own.
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
	/* Charged by TCP for each unexpected message, beside its payload. */
	TDM_HELD_CHARGE_BYTES = 512,
	/* Each peer may use this much, however much others use. */
	TDM_HELD_SHARE_BYTES = 64 << 10,
};

/* G: domain lock. */
struct tdm_held {
	size_t size;	      /* of this structure */
	uint32_t entry_bytes; /* size of the owner's entry of a message */
	/* Used by messages, or promised to peers that may send some. */
	uint64_t bytes;
	/*
	 * The endpoint closes: messages that are discarded now were never
	 * received, and their senders must not be told otherwise.
	 */
	int closing;
};

/* Bytes that can still be used or promised. */
static inline uint64_t tdm_held_room(const struct tdm_held *held)
{
	return tdm_env.unexp_max_bytes -
	       tdm_min(held->bytes, (uint64_t)tdm_env.unexp_max_bytes);
}

/*
 * Not 0 when a message of @need bytes may be kept although its sender is gone:
 * it sent the message while it closed. For such messages the limit is higher by
 * the bytes that a process may have in injected messages.
 */
static inline int tdm_held_keeps(const struct tdm_held *held, uint64_t need)
{
	uint64_t most = tdm_env.unexp_max_bytes + tdm_env.inject_max_bytes;

	return held->bytes <= most && need <= most - held->bytes;
}

#endif /* TDM_HELD_H */
