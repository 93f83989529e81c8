/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that were taken from the application before their peer can be
 * given them: the path of the pair is not agreed yet, or what was held back by
 * a counter finds the way full. Those of one pair wait in a queue of it, in
 * the order of the calls, and are offered again in each pass of progress.
 *
 * While the queue is there, tdm_pair.path is TDM_PATH_QUEUED, so that nothing
 * passes it. A pair without a queue pays nothing.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_BACKLOG_H
#define TDM_TCP_BACKLOG_H

#include <sys/types.h>

#include "tcp/domain.h"
#include "base/list.h"

struct tdm_ep;
struct tdm_pair;
struct tdm_xfer;

/* Of an endpoint that has pairs; part of struct tdm_ep. */
struct tdm_backlog {
	struct tdm_list ops;	/* of all pairs, in the order of the calls */
	struct tdm_list queues; /* struct tdm_queue, the next to offer first */
	size_t queue_count;
	size_t counted;	      /* operations that tx_attr.size is for */
	struct tdm_late late; /* domain->late while there are queues */
};

/* The operations that wait for one pair; there is at least one. */
struct tdm_queue {
	struct tdm_list node; /* backlog->queues */
	struct tdm_list ops;
	struct tdm_pair *pair;
	int lost;	/* the pair was lost with this error during an offer */
	unsigned tries; /* in vain, since something was last taken */
	uint64_t since_ns, next_ns; /* of them the first; not before that */
};

void tdm_backlog_init(struct tdm_backlog *backlog);

/*
 * Keep @x, to be sent by @ep to @p, behind what waits there; of an inject its
 * payload as well. Errors, nothing is kept then: -FI_EAGAIN, as many wait as
 * tx_attr.size says, or copies take the memory they may; -FI_ENOMEM. What is
 * posted by a pass was kept before: it is not counted.
 */
ssize_t tdm_backlog_add(struct tdm_ep *ep, struct tdm_pair *p,
			const struct tdm_xfer *x);

/*
 * Has @p, whom nobody answers, been tried for FI_TANDEM_CONN_TIMEOUT? Never if
 * nothing waits for it.
 */
int tdm_backlog_over(const struct tdm_pair *p);

/*
 * The connection of @p has ended with @err, a positive fi_errno: so end the
 * operations that wait behind those it had taken.
 */
void tdm_backlog_lost(struct tdm_ep *ep, struct tdm_pair *p, int err);

/* fi_cancel(3) of what waits: 0, or -FI_ENOENT. */
int tdm_backlog_cancel(struct tdm_ep *ep, const void *context);

/* @addr leaves the AV: what waits for it ends with FI_ECONNABORTED. */
void tdm_backlog_removed(struct tdm_ep *ep, fi_addr_t addr);

/*
 * Drop the operations for which @mine, called with @arg, returns 1; @mine has
 * dealt with their contexts.
 */
void tdm_backlog_drop(struct tdm_ep *ep,
		      int (*mine)(const struct tdm_xfer *x, const void *arg),
		      const void *arg);

/*
 * @ep closes: what waits vanishes, but what was injected gets a second to be
 * sent. The lock is released and taken again meanwhile.
 */
void tdm_backlog_close(struct tdm_ep *ep);

#endif /* TDM_TCP_BACKLOG_H */
