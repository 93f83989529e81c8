/* SPDX-License-Identifier: BSD-2-Clause */
/* See foreign_guard.h. Lock: there. */
#include "peer/foreign_guard.h"

#include "base/log.h"
#include "peer/foreign_priv.h"

/* The domain whose provider this thread has called. */
static _Thread_local struct tdm_foreign *inside;

/* Calls that no call of ours was under way for. Atomic. */
static unsigned outside;

/* Lines of the log for one domain. */
enum { BREACHES_TOLD = 16 };

struct tdm_foreign *tdm_foreign_enter(struct tdm_foreign *f)
{
	struct tdm_foreign *was = inside;

	inside = f;
	return was;
}

void tdm_foreign_leave(struct tdm_foreign *was)
{
	inside = was;
}

static void tell(struct tdm_foreign *f, const char *what)
{
	if (f->breaches++ < BREACHES_TOLD)
		TDM_WARN(DOMAIN, "provider %s breaks fi_peer(3): %s", f->name,
			 what);
}

void tdm_foreign_breach(const char *what)
{
	if (inside)
		tell(inside, what);
	else
		__atomic_fetch_add(&outside, 1, __ATOMIC_RELAXED);
}

void tdm_foreign_guard(struct tdm_foreign *f)
{
	f->outside = __atomic_load_n(&outside, __ATOMIC_RELAXED);
}

void tdm_foreign_check_outside(struct tdm_foreign *f)
{
	unsigned now = __atomic_load_n(&outside, __ATOMIC_RELAXED);

	if (now == f->outside)
		return;
	f->outside = now;
	tell(f, "a call from another thread, or when none was due");
}

int tdm_foreign_takes_ids(const struct tdm_foreign *f)
{
	return f->user_ids;
}

int tdm_foreign_is_broken(const struct tdm_foreign *f)
{
	return f->breaches != 0;
}

struct tdm_foreign_ep *tdm_foreign_ep_called(struct fid_peer_srx *lent)
{
	/* Some providers call with a copy of the export. */
	struct tdm_foreign_port *port = lent->ep_fid.fid.context;

	if (!inside || !tdm_pool_owns(&inside->ports, port))
		tdm_foreign_breach("an unknown receive context");
	else if (!port->ep || port->ep->closing)
		tdm_foreign_breach("a receive context that has closed");
	else
		return port->ep;
	return NULL;
}

struct tdm_foreign_rx *tdm_foreign_rx_named(void *context)
{
	struct tdm_foreign_rx *r = context;

	if (inside && tdm_pool_owns(&inside->rxs, r) &&
	    tdm_foreign_in_use(&r->mark))
		return r;
	tdm_foreign_breach("an unknown receive entry");
	return NULL;
}

struct tdm_foreign_rx *tdm_foreign_rx_called(struct fi_peer_rx_entry *entry)
{
	return tdm_foreign_rx_named(tdm_foreign_rx_of(entry));
}

struct tdm_foreign_tx *tdm_foreign_tx_named(void *context)
{
	struct tdm_foreign_tx *t = context;

	if (inside && tdm_pool_owns(&inside->txs, t) &&
	    tdm_foreign_in_use(&t->mark))
		return t;
	tdm_foreign_breach("an unknown send");
	return NULL;
}
