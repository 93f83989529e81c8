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
 * refer to each other.
 */
#include <pthread.h>
#include <string.h>

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

/* Free @ep if neither the owner nor another endpoint needs it. */
static void drop(struct tdm_foreign_ep *ep)
{
	struct tdm_foreign *f = ep->f;

	if (!ep->closing || ep->referred)
		return;
	tdm_list_del(&ep->here);
	tdm_foreign_ep_free(ep);
	tdm_foreign_unuse(f);
}

void tdm_foreign_here_close(struct tdm_foreign_ep *ep)
{
	pthread_mutex_lock(&here);
	drop(ep);
	pthread_mutex_unlock(&here);
}

void tdm_foreign_refer(struct tdm_foreign_peer *peer, const void *name,
		       size_t len)
{
	struct tdm_list *pos;

	pthread_mutex_lock(&here);
	tdm_list_for_each(pos, &eps) {
		struct tdm_foreign_ep *ep =
			tdm_list_entry(pos, struct tdm_foreign_ep, here);

		if (ep->closing || ep->namelen != len ||
		    memcmp(ep->name, name, len))
			continue;
		peer->same = ep;
		ep->referred++;
		break;
	}
	pthread_mutex_unlock(&here);
}

void tdm_foreign_unrefer(struct tdm_foreign_peer *peer)
{
	struct tdm_foreign_ep *ep = peer->same;

	if (!ep)
		return;
	peer->same = NULL;
	pthread_mutex_lock(&here);
	ep->referred--;
	drop(ep);
	pthread_mutex_unlock(&here);
}
