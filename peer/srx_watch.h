/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unexpected messages of a receive side as an observer sees them: a list
 * of those that wait, and a call for each that begins or ends to wait. For
 * fi_profile(3). All functions: domain lock held.
 */
#ifndef TDM_PEER_SRX_WATCH_H
#define TDM_PEER_SRX_WATCH_H

#include <rdma/fi_eq.h>

#include "base/list.h"
#include "peer/srx.h"

struct tdm_srx_watch {
	struct tdm_list node; /* on the receive side's list */
	/*
	 * Called when the message @msg has begun to wait, or (@matched) when a
	 * receive is about to take it. May look at the receive side by
	 * tdm_srx_waiting(), but must not change it. Lock: held.
	 */
	void (*changed)(struct tdm_srx_watch *w, int matched,
			struct fi_cq_err_entry *msg);
};

/* Call w->changed() from now on, until tdm_srx_unwatch(@w). */
void tdm_srx_watch(struct tdm_srx *srx, struct tdm_srx_watch *w);
void tdm_srx_unwatch(struct tdm_srx_watch *w);

/*
 * Returns how many messages wait for a receive, claimed ones included. Out: the
 * first @most of them in @list, untagged ones before tagged ones, the oldest of
 * each kind first: flags (FI_RECV; FI_MSG or FI_TAGGED; FI_REMOTE_CQ_DATA),
 * len, tag, data and src_addr; all other members are 0.
 */
size_t tdm_srx_waiting(struct tdm_srx *srx, struct fi_cq_err_entry *list,
		       size_t most);

#endif /* TDM_PEER_SRX_WATCH_H */
