/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of a domain with groups or keys: addresses are match
 * addresses of tdm_space.h, and messages meet receives of their group only.
 * Other domains use only the functions that srx_space.h says are for both.
 *
 * The match address in the offer of a message has its group, and its source or,
 * if that is unknown, the key of its sender. The item of a waiting message
 * keeps the match address, entry->from its low bits; completions report
 * rx.addr.
 *
 * Lock: domain held. Spec: fi_av(3) "PEER GROUPS", fi_av_insert_auth_key().
 */
#include "peer/srx_space.h"

uint32_t tdm_srx_key(const struct tdm_srx *srx, fi_addr_t addr)
{
	if (!srx->key_of)
		return 0;
	return tdm_space_is_wild(addr) ?
		       tdm_space_key(addr) :
		       srx->key_of(srx->key_arg, (uint32_t)addr);
}

struct tdm_match_item *tdm_srx_find_posted(struct tdm_srx *srx,
					   const struct tdm_srx_msg *msg)
{
	struct tdm_match *m = srx->match[msg->e.kind];
	const struct tdm_match_item *it = &msg->match.item;

	return srx->spaces ? tdm_match_find_posted_space(m, it->addr, it->key,
							 it->tag) :
			     tdm_match_find_posted(m, it->addr, it->tag);
}

struct tdm_match_item *tdm_srx_find_arrived(struct tdm_srx *srx,
					    enum tdm_srx_kind kind,
					    const struct tdm_match_item *want)
{
	struct tdm_match *m = srx->match[kind];

	return srx->spaces ?
		       tdm_match_find_arrived_space(m, want->addr, want->tag,
						    want->ignore) :
		       tdm_match_find_arrived(m, want->addr, want->tag,
					      want->ignore);
}

ssize_t tdm_srx_recv_space(struct tdm_srx *srx, const struct tdm_xfer *x,
			   enum tdm_srx_kind kind)
{
	int tagged = kind == TDM_SRX_TAG;
	const struct tdm_match_item want = {
		.addr = tdm_srx_source(srx, kind, x),
		.tag = tagged ? x->tag : 0,
		.ignore = tagged ? x->ignore : 0,
	};
	struct tdm_match_item *item = tdm_srx_find_arrived(srx, kind, &want);

	return tdm_srx_meet(srx, x, kind, item);
}
