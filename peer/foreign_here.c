/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoints of foreign providers in this process. Providers of shared memory
 * use the memory of a remote endpoint of the same process as it is, without a
 * mapping of their own. So an endpoint that the owner has closed stays, without
 * progress, until all endpoints of the process that know it have closed too; and
 * the provider's domain until its last endpoint is gone.
 *
 * Invariant: an endpoint that the owner has closed refers to no other.
 *
 * Lock: `here`, inside of the domain locks: endpoints of several domains may
 * refer to each other. The provider's objects of a domain are called with the
 * lock of that domain only (FI_THREAD_DOMAIN), or when the domain has no user left
 * but these endpoints; then `here` is what serialises.
 */
#include <pthread.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "peer/foreign_priv.h"

static pthread_mutex_t here = PTHREAD_MUTEX_INITIALIZER;
static struct tdm_list eps = { &eps, &eps }; /* G: here */

void tdm_foreign_here_open(struct tdm_foreign_ep *ep)
{
	pthread_mutex_lock(&here);
	tdm_foreign_use(ep->f);
	tdm_list_append(&eps, &ep->here);
	pthread_mutex_unlock(&here);
}

static void ep_free(struct tdm_foreign_ep *ep)
{
	struct tdm_foreign *f = ep->f;

	tdm_list_del(&ep->here);
	tdm_foreign_ep_free(ep);
	tdm_foreign_unuse(f);
}

/*
 * Free @ep if neither the owner nor another endpoint needs it: now, if the lock of
 * its domain is held (@f is its domain) or its domain is gone, else when its
 * domain makes a pass or closes.
 */
static void drop(struct tdm_foreign_ep *ep, const struct tdm_foreign *f)
{
	if (!ep->closing || ep->referred)
		return;
	if (ep->f == f || ep->f->closed) {
		ep_free(ep);
		return;
	}
	tdm_list_del(&ep->here);
	tdm_list_append(&ep->f->gone, &ep->here);
	__atomic_store_n(&ep->f->any_gone, 1, __ATOMIC_RELAXED);
}

static void reap(struct tdm_foreign *f)
{
	__atomic_store_n(&f->any_gone, 0, __ATOMIC_RELAXED);
	while (!tdm_list_empty(&f->gone))
		ep_free(tdm_list_entry(f->gone.next, struct tdm_foreign_ep,
				       here));
}

void tdm_foreign_reap(struct tdm_foreign *f)
{
	if (tdm_likely(!__atomic_load_n(&f->any_gone, __ATOMIC_RELAXED)))
		return;
	pthread_mutex_lock(&here);
	reap(f);
	pthread_mutex_unlock(&here);
}

void tdm_foreign_close_all(struct tdm_foreign *f)
{
	pthread_mutex_lock(&here);
	reap(f);
	f->closed = 1;
	tdm_foreign_unuse(f);
	pthread_mutex_unlock(&here);
}

void tdm_foreign_here_close(struct tdm_foreign_ep *ep)
{
	pthread_mutex_lock(&here);
	drop(ep, ep->f);
	pthread_mutex_unlock(&here);
}

/*
 * Not 0 when endpoints of one process must not meet by @f: libfabric's shm, 2.5 and
 * later (seen in 2.6), tells only one of the two where the other's memory is, and
 * crashes when the other one sends more than fits a command.
 */
static int is_far_only(const struct tdm_foreign *f)
{
	return !strcmp(f->name, "shm") &&
	       FI_VERSION_GE(fi_version(), FI_VERSION(2, 5));
}

int tdm_foreign_refer(struct tdm_foreign_peer *peer, const void *name,
		      size_t len)
{
	struct tdm_list *pos;
	int ret = 0;

	pthread_mutex_lock(&here);
	tdm_list_for_each(pos, &eps) {
		struct tdm_foreign_ep *ep =
			tdm_list_entry(pos, struct tdm_foreign_ep, here);

		if (ep->closing || ep->namelen != len ||
		    memcmp(ep->name, name, len))
			continue;
		if (is_far_only(peer->ep->f)) {
			ret = -FI_EOPNOTSUPP;
			break;
		}
		peer->same = ep;
		ep->referred++;
		break;
	}
	pthread_mutex_unlock(&here);
	return ret;
}

void tdm_foreign_unrefer(struct tdm_foreign_peer *peer)
{
	struct tdm_foreign_ep *ep = peer->same;

	if (!ep)
		return;
	peer->same = NULL;
	pthread_mutex_lock(&here);
	ep->referred--;
	drop(ep, peer->ep->f);
	pthread_mutex_unlock(&here);
}
