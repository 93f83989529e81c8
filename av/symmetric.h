/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses that a call of fi_av_insertsym(3) stands for: consecutive
 * services of consecutive nodes. For the files of av/ only.
 */
#ifndef TDM_AV_SYMMETRIC_H
#define TDM_AV_SYMMETRIC_H

#include "av/insert.h"

/* Consecutive services of consecutive nodes: fi_av_insertsym(3). */
struct tdm_av_range {
	const char *node; /* a host name; NULL: base has the address */
	/* a service name; NULL: port has it, or base's port */
	const char *service;
	size_t nodecnt, svccnt;
	struct tdm_addr base; /* first address, numeric */
	int port;	      /* first port; negative: a fi_errno */
	int err;	      /* negative fi_errno: there is no address */
	uint32_t format;
};

/*
 * Prepare the range of @node and @service, which must stay valid as long as @r.
 * No name is resolved yet. Errors: -FI_EINVAL when a required one is missing,
 * for too many addresses, and for several nodes whose name has no number at its
 * end.
 */
int tdm_av_range_init(struct tdm_av_range *r, uint32_t format, const char *node,
		      const char *service) tdm_must_check;

/* Not 0 when a name has to be resolved, which may take seconds. */
static inline int tdm_av_range_is_named(const struct tdm_av_range *r)
{
	return !r->err && (r->node || r->service);
}

/*
 * Set *@a to the first address of node @n, with its port. May block for as long
 * as the resolver does. Errors: negative fi_errno. Lock: not needed; must not
 * be held when the range is named.
 */
int tdm_av_range_node(const struct tdm_av_range *r, size_t n,
		      struct tdm_addr *a) tdm_must_check;

/*
 * Insert the addresses of one node for @call: @first and the ports after it;
 * or, if @err is negative, record it as the result of all. Lock: held.
 */
void tdm_av_range_put(const struct tdm_av_range *r, struct tdm_av_call *call,
		      const struct tdm_addr *first, int err);

#endif /* TDM_AV_SYMMETRIC_H */
