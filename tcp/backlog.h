/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The retry queue: operations that the application has posted and no transport
 * accepts yet, because the path of the pair is not agreed, or because a
 * triggered operation finds it full. The operations of one pair wait in its
 * queue, in the order of the calls. Each pass of progress offers them to the
 * transport again.
 *
 * While a pair has a queue, its path is TDM_PATH_QUEUED, so that no operation
 * overtakes those in the queue. A pair without a queue pays nothing.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_BACKLOG_H
#define TDM_TCP_BACKLOG_H

#include <sys/types.h>

#include "base/list.h"
#include "tcp/domain.h"

struct tdm_root;
struct tdm_pair;
struct tdm_xfer;

/* The queues of an endpoint that has pairs; part of struct tdm_ep. */
struct tdm_backlog {
	struct tdm_list waiting; /* of all pairs, in the order of the calls */
	struct tdm_list queues;	 /* struct tdm_queue, the next to offer first */
	size_t queue_count;
	size_t counted;		/* operations that count against tx_attr.size */
	struct tdm_retry retry; /* domain->retry while there are queues */
};

/* The operations that wait for one pair; there is at least one. */
struct tdm_queue {
	struct tdm_list node; /* backlog->queues */
	struct tdm_list waiting;
	struct tdm_pair *pair;
	int lost;	/* during an offer the pair was lost with this error */
	unsigned tries; /* offers that failed since the last success */
	/* time of the first offer, and of the next one */
	uint64_t since_ns, next_ns;
};

void tdm_backlog_init(struct tdm_backlog *backlog);

/*
 * Queue @x, to be sent by @root to @p, with a copy of the payload if it is an
 * inject. Errors; nothing is queued then: -FI_EAGAIN: tx_attr.size operations
 * wait, or copies take all the memory they may; -FI_ENOMEM. An operation that a
 * pass posts was counted when it was accepted, and is not counted again.
 */
ssize_t tdm_backlog_add(struct tdm_root *root, struct tdm_pair *p,
			const struct tdm_xfer *x);

/*
 * Not 0 when the time-out of @p, whose attaches nobody answers, has passed: that
 * of connecting or that of refusals; 0 if no operation waits for it.
 */
int tdm_backlog_over(const struct tdm_pair *p);

/*
 * Called when the connection of @p has ended with @err, a positive fi_errno:
 * the operations that wait behind those on the connection end with it too.
 */
void tdm_backlog_lost(struct tdm_root *root, struct tdm_pair *p, int err);

/*
 * fi_cancel(3) of a queued operation. Returns 0, or -FI_ENOENT: there is none.
 */
int tdm_backlog_cancel(struct tdm_root *root, const void *context);

/*
 * Called when @addr leaves the AV: its queued operations end with
 * FI_ECONNABORTED.
 */
void tdm_backlog_removed(struct tdm_root *root, fi_addr_t addr);

/*
 * Free the queued operations for which @mine, called with @arg, returns 1,
 * without a report; @mine must deal with their contexts.
 */
void tdm_backlog_drop(struct tdm_root *root,
		      int (*mine)(const struct tdm_xfer *x, const void *arg),
		      const void *arg);

/*
 * Called when @root closes: gives injects a second to be sent, then frees the
 * queued operations. The lock is released and taken again meanwhile.
 */
void tdm_backlog_close(struct tdm_root *root);

#endif /* TDM_TCP_BACKLOG_H */
