/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an owner sleeps on a queue of a peer provider without one more level of
 * epoll. The descriptor that FI_GETWAIT returns is an epoll set; if the owner
 * put it into a set of its own, that would add a level of nesting. The kernel
 * allows five levels, and applications need some of them. A peer provider need
 * not offer this.
 */
#ifndef TDM_SLEEP_H
#define TDM_SLEEP_H

#include <stddef.h>

#include <rdma/fabric.h>

/* Name for fi_open_ops(3) on a CQ or counter of the peer provider. */
#define TDM_SLEEP_OPS "tandem_sleep_1"

struct tdm_sleep_ops {
	size_t size;
	/*
	 * Makes @queue use the epoll set @epfd of the owner in place of one of
	 * its own: the descriptors that the queue waits for are members of
	 * @epfd from now on, for as long as the queue is open, and FI_GETWAIT
	 * returns @epfd. The owner keeps @epfd and closes it after the queue;
	 * several queues may join it. Errors: -FI_EBUSY when the queue already
	 * has another set, those of epoll_ctl(2). Lock: held.
	 */
	int (*join)(struct fid *queue, int epfd);
};

#endif /* TDM_SLEEP_H */
