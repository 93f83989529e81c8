/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driving a peer: the list of queues to read, its events, and sleeping.
 * tdm_link_progress() runs at every read of the application, so it only calls
 * the peer and reads one word.
 *
 * Locking: domain lock held.
 * Spec: fi_peer(3), "manual progress"; fi_trywait in fi_poll(3).
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/eq.h"
#include "peer/link_priv.h"
#include "tdm_open.h"
#include "tdm_sleep.h"

/*
 * Drop an error, or an event of another form, from the EQ: endpoints of the
 * peer report their errors to the CQs.
 */
static void drop(struct tdm_link *link, ssize_t why)
{
	TDM_INFO(DOMAIN, "peer %s: event dropped: %s", link->prov->name,
		 fi_strerror((int)-why));
	tdm_eq_drop(link->eq);
}

void tdm_link_deliver(struct tdm_link *link, const struct fid *skip)
{
	struct tdm_peer_event event;
	uint32_t kind;
	ssize_t n;

	while (tdm_eq_pending(link->eq)) {
		n = fi_eq_read(tdm_eq_fid(link->eq), &kind, &event,
			       sizeof(event), 0);
		if (n == -FI_EAGAIN || n == -FI_EOVERRUN)
			return;
		if (n < 0)
			drop(link, n);
		else if (kind != FI_NOTIFY || n != sizeof(event))
			TDM_INFO(EQ, "event %u of the peer is dropped", kind);
		else if (!skip || event.entry.fid != skip)
			link->event(link->arg, &event);
	}
}

void tdm_link_progress(struct tdm_link *link)
{
	size_t i;

	for (i = 0; i < link->count; i++) {
		struct fid *fid = link->fids[i];

		/*
		 * The result does not matter: completions arrive through the
		 * export.
		 */
		if (tdm_likely(fid->fclass == FI_CLASS_CQ))
			fi_cq_read((struct fid_cq *)(void *)fid, NULL, 0);
		else
			fi_cntr_read((struct fid_cntr *)(void *)fid);
	}
	if (tdm_unlikely(tdm_eq_pending(link->eq)))
		tdm_link_deliver(link, NULL);
}

int tdm_link_arm(struct tdm_link *link)
{
	size_t i;

	if (!link->count)
		return 0;
	for (i = 0; i < link->count; i++) {
		if (link->queues[i].fd < 0)
			return -FI_EAGAIN;
	}
	return fi_trywait(link->fabric, link->fids, (int)link->count) ?
		       -FI_EAGAIN :
		       0;
}

/* Not 0 when another queue than @self has descriptor @fd. */
static int fd_shared(const struct tdm_link *link, size_t self, int fd)
{
	size_t i;

	for (i = 0; i < link->count; i++) {
		if (i != self && link->queues[i].fd == fd)
			return 1;
	}
	return 0;
}

void tdm_link_sleep_in(struct tdm_link *link, int epfd)
{
	link->epfd = epfd;
}

/*
 * Let queue @i join the owner's epoll set. Errors: -FI_ENOSYS: the peer does
 * not offer it; others of join().
 */
static int join_queue(struct tdm_link *link, size_t i)
{
	const struct tdm_sleep_ops *ops =
		link->epfd < 0 ? NULL :
				 tdm_open_ops(link->fids[i], TDM_SLEEP_OPS);
	int ret;

	if (!ops || ops->size < sizeof(*ops))
		return -FI_ENOSYS;
	ret = ops->join(link->fids[i], link->epfd);
	if (!ret)
		link->queues[i].fd = link->epfd;
	return ret;
}

/*
 * Add the descriptor of queue @i to the owner's set. A queue without one is
 * polled, see tdm_link_arm().
 */
static int watch_queue(struct tdm_link *link, size_t i)
{
	int fd = -1;
	int ret;

	if (link->queues[i].fd >= 0)
		return 0;
	ret = join_queue(link, i);
	if (ret != -FI_ENOSYS)
		return ret;
	ret = fi_control(link->fids[i], FI_GETWAIT, &fd);
	if (ret || fd < 0) {
		TDM_INFO(DOMAIN, "peer %s cannot be slept on: %s",
			 link->prov->name, fi_strerror(-ret));
		return 0;
	}
	if (!fd_shared(link, i, fd)) {
		ret = link->add(link->watch_arg, fd);
		if (ret)
			return ret;
	}
	link->queues[i].fd = fd;
	return 0;
}

static void unwatch_queue(struct tdm_link *link, size_t i)
{
	const int fd = link->queues[i].fd;

	link->queues[i].fd = -1;
	if (fd >= 0 && fd != link->epfd && !fd_shared(link, i, fd))
		link->del(link->watch_arg, fd);
}

int tdm_link_watch(struct tdm_link *link, int (*add)(void *arg, int fd),
		   void (*del)(void *arg, int fd), void *arg)
{
	size_t i;
	int ret;

	link->add = add;
	link->del = del;
	link->watch_arg = arg;
	for (i = 0; i < link->count; i++) {
		ret = watch_queue(link, i);
		if (ret)
			goto err;
	}
	return 0;
err:
	while (i-- > 0)
		unwatch_queue(link, i);
	link->add = NULL;
	return ret;
}

static size_t find_queue(const struct tdm_link *link, const struct fid *fid)
{
	size_t i;

	for (i = 0; i < link->count; i++) {
		if (link->fids[i] == fid)
			break;
	}
	return i;
}

/* Make room for one more queue. */
static int grow(struct tdm_link *link)
{
	const size_t room = link->room ? 2 * link->room : 4;
	struct tdm_link_queue *queues;
	struct fid **fids;

	if (link->count < link->room)
		return 0;
	fids = realloc(link->fids, room * sizeof(*fids));
	if (!fids)
		return -FI_ENOMEM;
	link->fids = fids;
	queues = realloc(link->queues, room * sizeof(*queues));
	if (!queues)
		return -FI_ENOMEM;
	link->queues = queues;
	link->room = room;
	return 0;
}

int tdm_link_get_queue(struct tdm_link *link, struct fid *fid)
{
	size_t i = find_queue(link, fid);
	int ret;

	if (i < link->count) {
		link->queues[i].users++;
		return 0;
	}
	ret = grow(link);
	if (ret)
		return ret;
	link->fids[i] = fid;
	link->queues[i].users = 1;
	link->queues[i].fd = -1;
	link->count++;
	if (link->add) {
		ret = watch_queue(link, i);
		if (ret)
			TDM_WARN(DOMAIN, "peer's descriptor: %s",
				 fi_strerror(-ret));
	}
	return 0;
}

void tdm_link_put_queue(struct tdm_link *link, struct fid *fid)
{
	size_t i = find_queue(link, fid);

	if (i >= link->count || --link->queues[i].users)
		return;
	unwatch_queue(link, i);
	link->count--;
	link->fids[i] = link->fids[link->count];
	link->queues[i] = link->queues[link->count];
}

void tdm_link_free_queues(struct tdm_link *link)
{
	while (link->count)
		unwatch_queue(link, --link->count);
	free(link->queues);
	free(link->fids);
	link->queues = NULL;
	link->fids = NULL;
	link->room = 0;
}
