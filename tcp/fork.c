/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that a child of fork(2) inherits belong to its parent. A copy of a
 * socket in the child would keep peers from noticing the parent's end, and its
 * name in use; a message that the child writes to the parent's shared memory
 * would destroy messages there.
 *
 * So in the child the sockets of both transports are closed, and an inherited
 * domain becomes an *orphan*: it makes no progress, its endpoints are disabled
 * and cannot be enabled, and its objects cannot be closed. The calls return
 * -FI_EOPBADSTATE. Other processes pay nothing for this: the calls make these
 * checks anyway.
 *
 * Lock: during the fork, those of all domains and that of atomic operations, so
 * that no other thread of the parent is inside a transport.
 */
#include "tcp/fork.h"

#include <pthread.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"
#include "tcp/mr.h"
#include "tcp/opened.h"
#include "tcp/root.h"

static void no_progress(struct tdm_engine *engine)
{
	(void)engine;
}

static int refuse(struct tdm_engine *engine)
{
	(void)engine;
	return -FI_EOPBADSTATE;
}

static void disable(struct tdm_ep *ep, void *arg)
{
	(void)arg;
	ep->enabled = TDM_EP_OFF;
	if (ep->tx_cq)
		tdm_cq_orphan(ep->tx_cq);
	if (ep->rx_cq)
		tdm_cq_orphan(ep->rx_cq);
}

static void orphan(struct tdm_domain *d)
{
	struct tdm_list *pos;

	d->engine.orphan = 1;
	d->engine.progress = no_progress;
	d->engine.arm = refuse;
	d->engine.wait_fd = refuse;
	tdm_list_for_each(pos, &d->roots) {
		struct tdm_root *root =
			tdm_list_entry(pos, struct tdm_root, node);

		root->ep.kind->for_each(root, disable, NULL);
	}
}

static void prepare(void)
{
	tdm_opened_freeze();
	tdm_mr_freeze();
}

static void in_parent(void)
{
	tdm_mr_thaw();
	tdm_opened_thaw(NULL);
}

static void in_child(void)
{
	tdm_mr_thaw();
	tdm_os_close_sockets();
	tdm_opened_thaw(orphan);
}

static void init(void)
{
	int ret = pthread_atfork(prepare, in_parent, in_child);

	if (ret)
		TDM_WARN(FABRIC, "cannot prepare for fork: %s", strerror(ret));
}

void tdm_fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init);
}
