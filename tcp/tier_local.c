/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of struct tdm_tier_ops for the shared-memory peer. It imports the
 * owner's objects through the link (peer/link.h), and has an endpoint of its
 * own for each of the owner's. Without shared memory d->link or root->local is
 * NULL: TCP carries all messages, and the calls here do nothing.
 *
 * Composition root of the two transports: the embedded peer is handed to the
 * link here and nowhere else.
 *
 * Lock: held in all of this file.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "fi_ext_tandem.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tdm_look.h"
#include "tdm_open.h"
#include "tdm_provider.h"

const struct fi_provider *tdm_tier_local_peer(const char *name)
{
	const struct fi_provider *peer = tdm_shm_provider();

	return name && !strcmp(name, peer->name) ? peer : NULL;
}

/* Open the peer, unless the application or the user forbids it. */
static int start(struct tdm_domain *d)
{
	struct tdm_link_attr attr = {
		.prov = tdm_shm_provider(),
		.owner = &d->fid,
		.engine = &d->engine,
		.info = d->info,
		.keys = tdm_domain_av_keys(d),
		.event = tdm_ep_peer_event,
		.arg = d,
	};
	int ret;

	if (tdm_env.shm == TDM_SHM_OFF)
		return 0;
	ret = tdm_link_open(&attr, &d->link);
	if (ret)
		TDM_WARN(DOMAIN, "no shared memory in this domain: %s",
			 fi_strerror(-ret));
	return 0;
}

static void stop(struct tdm_domain *d)
{
	tdm_link_close(d->link);
}

static int arm(struct tdm_domain *d)
{
	return d->link ? tdm_link_arm(d->link) : 0;
}

static int watch(struct tdm_domain *d, int fd)
{
	if (!d->link)
		return 0;
	tdm_link_sleep_in(d->link, fd);
	return tdm_link_watch(d->link, tdm_loop_wait_add, tdm_loop_wait_del,
			      d->loop);
}

static int import_cq(struct tdm_domain *d, struct tdm_cq *cq)
{
	return d->link ? tdm_link_import_cq(d->link, cq) : 0;
}

static int import_cntr(struct tdm_domain *d, struct tdm_cntr *cntr)
{
	return d->link ? tdm_link_import_cntr(d->link, cntr) : 0;
}

/*
 * Deliver the events of the peer provider that no pass has read, such as a
 * refusal.
 */
static void deliver(struct tdm_domain *d)
{
	if (d->link)
		tdm_link_deliver(d->link, NULL);
}

/* Open the peer provider's endpoint. If that fails, the endpoint uses TCP. */
static void try_open(struct tdm_root *root)
{
	struct tdm_link_ep_attr attr = {
		.info = root->ep.info,
		.srx = root->ep.rx_side->export_to(&root->ep,
						   TDM_TRANSPORT_LOCAL),
		.av = tdm_av_local_fid(root->ep.av),
		.tx_cq = root->ep.tx_cq,
		.rx_cq = root->ep.rx_cq,
		.send_cntr = root->ep.send_cntr,
		.recv_cntr = root->ep.recv_cntr,
		.name = &root->name,
		.namelen = tdm_addr_len(&root->name),
		.keys = root->keys,
	};
	int ret;

	memcpy(attr.rma_cntr, root->ep.rma_cntr, sizeof(attr.rma_cntr));
	root->local_why = TDM_REASON_DISABLED;
	if (!root->shm_permitted)
		return;
	root->local_why = TDM_REASON_RESOURCE;
	if (!root->ep.domain->link || !attr.av)
		return;
	ret = tdm_link_ep_open(root->ep.domain->link, &attr, &root->local);
	if (!ret) {
		tdm_ep_be_asked(root);
		return;
	}
	root->local = NULL;
	tdm_ep_no_local(root, ret);
}

static int open_local(struct tdm_root *root)
{
	try_open(root);
	return root->local ? 0 : tdm_tier_without_local();
}

static void close_local(struct tdm_root *root)
{
	if (root->local)
		tdm_link_ep_close(root->ep.domain->link, root->local);
	root->local = NULL;
	root->ep.domain->local_pairs -= root->local_pairs;
	root->local_pairs = 0;
}

static ssize_t cancel(struct tdm_root *root, void *context)
{
	return root->local ? fi_cancel(&root->local->fid, context) : -FI_ENOENT;
}

/* Called through the table, since the function is deprecated. */
static size_t tx_left(const struct tdm_root *root)
{
	return root->local ?
		       (size_t)root->local->ops->tx_size_left(root->local) :
		       SIZE_MAX;
}

static int bind_cntr(struct tdm_root *root, struct tdm_cntr *cntr,
		     uint64_t flags)
{
	return root->local ? tdm_link_ep_bind_cntr(root->local, cntr, flags) :
			     0;
}

/*
 * Nothing to do: the peer provider has imports of these objects, and asks for
 * user ids itself.
 */
static void rebound(struct tdm_root *root)
{
	(void)root;
}

/*
 * Nothing to do: the peer provider's AV changes with the owner's (av/local.c),
 * once for all endpoints bound to it, and the peer provider then resolves and
 * forgets.
 */
static void resolve(struct tdm_root *root, int moved)
{
	(void)root;
	(void)moved;
}

static void forget(struct tdm_root *root, const struct tdm_pair *p,
		   fi_addr_t addr)
{
	(void)root;
	(void)p;
	(void)addr;
}

/*
 * Ask the peer provider's endpoint as an application asks the owner's, with the
 * address in its AV.
 */
static int session(struct tdm_root *root, fi_addr_t addr,
		   struct tdm_report_path *out)
{
	struct tdm_report_path path = { .size = sizeof(path) };
	struct tdm_report_ops *ops;
	fi_addr_t local;

	if (!root->local)
		return -FI_ENODATA;
	local = tdm_av_local_known(root->ep.av, addr);
	if (local == FI_ADDR_NOTAVAIL ||
	    fi_open_ops(&root->local->fid, TDM_REPORT_OPS, 0, (void **)&ops,
			NULL) ||
	    ops->path(root->local, local, &path) || path.path != TDM_REPORT_SHM)
		return -FI_ENODATA;
	out->path = TDM_REPORT_SHM;
	out->reason = TDM_REASON_NONE;
	out->large_rx = path.large_rx;
	out->large_tx = path.large_tx;
	out->shm = path.shm;
	return 0;
}

static void look(struct tdm_root *root, fi_addr_t addr, struct tdm_look *out)
{
	const struct tdm_look_ops *ops;
	fi_addr_t local;

	if (!root->local)
		return;
	local = tdm_av_local_known(root->ep.av, addr);
	ops = tdm_open_ops(&root->local->fid, TDM_LOOK_OPS);
	if (local != FI_ADDR_NOTAVAIL && ops && ops->size >= sizeof(*ops))
		ops->look(root->local, local, out);
}

const struct tdm_tier_ops tdm_tier_local = {
	.start = start,
	.stop = stop,
	.arm = arm,
	.watch = watch,
	.import_cq = import_cq,
	.import_cntr = import_cntr,
	.deliver = deliver,
	.open = open_local,
	/* The peer accepts attaches as soon as open() has enabled it. */
	.listen = tdm_tier_no_listen,
	.close = close_local,
	.cancel = cancel,
	.tx_left = tx_left,
	.bind_cntr = bind_cntr,
	.rebound = rebound,
	.resolve = resolve,
	.forget = forget,
	.session = session,
	.look = look,
};
