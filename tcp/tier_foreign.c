/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider of FI_TANDEM_LOCAL as the local one of the two transports of
 * struct tdm_tier_ops, in place of tier_local.c. It carries messages; TCP
 * carries all else, finds the death of a process, and is what both sides agree
 * over. Without the provider d->foreign or root->foreign is NULL: TCP carries
 * all.
 *
 * An offer (tcp/wire/meet.h) has the name of the provider, what tells whether
 * two processes see the same shared memory and process ids, and the address of
 * the provider's endpoint:
 *
 *   NAME 0 DEVICE:INODE of /dev/shm, INODE of the pid namespace 0 ADDRESS
 *
 * Operations of different transports are not kept in order. So an endpoint that
 * was granted an order between messages and one-sided operations, or fences, has
 * no foreign peer.
 *
 * Lock: held in all of this file, but for start().
 */
#include "tcp/tier_foreign.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rdma/fi_errno.h>

#include "av/locality.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "peer/foreign.h"
#include "tcp/bind.h"
#include "tcp/ep_priv.h"
#include "tcp/history.h"
#include "tcp/tier.h"
#include "tcp/wire/offer.h"
#include "tcp/wire/wire.h"

/* Orders between messages and one-sided operations. */
#define MIXED_ORDERS (FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW)

#define NOT_USED                                                               \
	"FI_TANDEM_LOCAL: provider %s is not used, tcp carries all messages: %s"

enum { PLACE_BYTES = 96, OFFER_BYTES = 512, POLL_MS = 1 };

struct tdm_foreign_side {
	struct tdm_foreign_ep *ep;
	size_t head; /* bytes of the offer before the address */
	size_t len;  /* bytes of the offer */
	char offer[OFFER_BYTES];
};

static int start(struct tdm_domain *d)
{
	static char told; /* one warning for all domains */
	int ret;

	if (tdm_env.shm == TDM_SHM_OFF)
		return 0;
	ret = tdm_foreign_open(tdm_env.local, d->info, &d->foreign);
	if (!ret || ret == -FI_EOPNOTSUPP)
		return 0;
	if (__atomic_test_and_set(&told, __ATOMIC_RELAXED))
		TDM_INFO(DOMAIN, NOT_USED, tdm_env.local, fi_strerror(-ret));
	else
		TDM_WARN(DOMAIN, NOT_USED, tdm_env.local, fi_strerror(-ret));
	return 0;
}

static void stop(struct tdm_domain *d)
{
	tdm_foreign_close(d->foreign);
}

/*
 * A foreign provider has no descriptor: while it can have messages a timer ends
 * the sleep.
 */
static int arm(struct tdm_domain *d)
{
	if (!d->foreign || !tdm_foreign_busy(d->foreign))
		return 0;
	return tdm_loop_timer_arm(d->loop, &d->retry_timer, POLL_MS) ?
		       -FI_EAGAIN :
		       0;
}

/* ---- the offer ----------------------------------------------------------- */

static int stat_of(const char *path, struct stat *st)
{
	int fd = tdm_os.open_file(path, O_RDONLY | O_CLOEXEC, 0), ret;

	if (fd < 0)
		return -1;
	ret = tdm_os.fstat(fd, st);
	tdm_os.close(fd);
	return ret;
}

/* Write what two processes must have in common to share memory to @text. */
static int place(char text[PLACE_BYTES])
{
	struct stat shm, pids;

	if (stat_of("/dev/shm", &shm) || stat_of("/proc/self/ns/pid", &pids))
		return -FI_ENODEV;
	snprintf(text, PLACE_BYTES, "%llx:%llx,%llx",
		 (unsigned long long)shm.st_dev, (unsigned long long)shm.st_ino,
		 (unsigned long long)pids.st_ino);
	return 0;
}

static int make_offer(struct tdm_foreign_side *side)
{
	char text[PLACE_BYTES];
	const void *name;
	size_t len;
	int ret = place(text), n;

	if (ret)
		return ret;
	name = tdm_foreign_ep_name(side->ep, &len);
	n = snprintf(side->offer, sizeof(side->offer), "%s%c%s", tdm_env.local,
		     0, text);
	side->head = (size_t)n + 1;
	if (side->head + len > sizeof(side->offer))
		return -FI_ENODATA;
	memcpy(side->offer + side->head, name, len);
	side->len = side->head + len;
	return 0;
}

/* offered() of struct tdm_tcp_offer; nothing in @bytes is trusted. */
static int offered(void *arg, struct tdm_conn *conn, const void *bytes,
		   size_t len)
{
	struct tdm_root *root = arg;
	const struct tdm_addr *from = tdm_conn_addr(conn);
	const struct tdm_foreign_side *side = root->foreign;
	struct tdm_foreign_peer_attr attr = {
		.addr = tdm_av_find(root->ep.av, from),
		.from = &from->u.sa,
		.key = conn,
	};
	struct tdm_foreign_peer *peer;
	int ret = -FI_EOPNOTSUPP;

	if (side && !tdm_foreign_is_broken(root->ep.domain->foreign) &&
	    len > side->head && tdm_locality_is_here(from) &&
	    !memcmp(bytes, side->offer, side->head)) {
		attr.name = (const char *)bytes + side->head;
		attr.namelen = len - side->head;
		ret = tdm_foreign_peer_open(side->ep, &attr, &peer);
	}
	if (ret) {
		char text[TDM_ADDR_STR_BYTES];

		TDM_INFO(EP_CTRL, "%s: not by provider %s: %s",
			 tdm_addr_text(from, text, sizeof(text)), tdm_env.local,
			 fi_strerror(-ret));
	}
	return ret;
}

int tdm_tier_foreign_may_meet(struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_addr a;

	return !tdm_av_addr(root->ep.av, addr, &a) &&
	       tdm_locality_is_here(&a) && !tdm_addr_equal(&a, &root->name);
}

int tdm_tier_foreign_meet(struct tdm_root *root, struct tdm_pair *p)
{
	int ret = tdm_conn_meet(p->conn);

	if (ret)
		return ret;
	p->foreign = tdm_foreign_peer_find(root->foreign->ep, p->conn);
	return p->foreign ? 0 : -FI_EOPNOTSUPP;
}

static void set_source(void *arg, struct tdm_foreign_peer *peer,
		       const void *key)
{
	struct tdm_root *root = arg;

	tdm_foreign_peer_source(peer,
				tdm_av_find(root->ep.av, tdm_conn_addr(key)));
}

/*
 * Look up the sources of all remote endpoints: there are no more than processes
 * on this host.
 */
static void resolve(struct tdm_root *root, int moved)
{
	(void)moved;
	if (!root->foreign)
		return;
	tdm_foreign_each(root->foreign->ep, set_source, root);
	tdm_foreign_resolve(root->foreign->ep);
}

/* The endpoint and the address that it forgets. */
struct forgotten {
	struct tdm_root *root;
	fi_addr_t addr;
};

static void forget_peer(void *arg, struct tdm_foreign_peer *peer,
			const void *key)
{
	const struct forgotten *f = arg;

	if (tdm_av_find(f->root->ep.av, tdm_conn_addr(key)) != f->addr)
		return;
	tdm_foreign_peer_source(peer, FI_ADDR_UNSPEC);
	tdm_foreign_abandon(peer, FI_ECONNABORTED);
}

/* The connection stays for the other operations: tier_tcp.c forgets it. */
static void forget(struct tdm_root *root, const struct tdm_pair *p,
		   fi_addr_t addr)
{
	struct forgotten f = { root, addr };

	(void)p;
	if (!root->foreign)
		return;
	tdm_foreign_forget(root->foreign->ep, addr);
	tdm_foreign_each(root->foreign->ep, forget_peer, &f);
}

int tdm_tier_foreign_lost(struct tdm_root *root, const struct tdm_conn *conn,
			  int err)
{
	struct tdm_foreign_peer *peer;

	if (!root->foreign)
		return 0;
	peer = tdm_foreign_peer_find(root->foreign->ep, conn);
	if (peer)
		tdm_foreign_peer_lost(peer, err);
	return peer != NULL;
}

void tdm_tier_foreign_count(const struct tdm_root *root, fi_addr_t addr,
			    struct tdm_report_counts *out)
{
	struct tdm_foreign_counts c;

	if (!root->foreign)
		return;
	c = tdm_foreign_count(root->foreign->ep,
			      tdm_av_lowest(root->ep.av, addr));
	out->tx_msgs = c.tx_msgs;
	out->tx_bytes = c.tx_bytes;
	out->rx_msgs = c.rx_msgs;
	out->rx_bytes = c.rx_bytes;
}

uint64_t tdm_tier_foreign_lacks(const struct tdm_root *root)
{
	const uint64_t all = TDM_REPORT_LACKS_REGIONS | TDM_REPORT_LACKS_DEATH |
			     TDM_REPORT_LACKS_WAKING | TDM_REPORT_LACKS_CANCEL;

	if (!root->foreign)
		return 0;
	return tdm_foreign_takes_ids(root->ep.domain->foreign) ?
		       all :
		       all | TDM_REPORT_LACKS_USER_IDS;
}

/* ---- endpoints ----------------------------------------------------------- */

/* Not 0 when a foreign peer can keep what @root was granted. */
static int suits(const struct tdm_root *root, const struct tdm_done *done)
{
	const struct fi_info *info = root->ep.info;

	if (done->ctx || root->keys || tdm_domain_spaces(root->ep.domain) ||
	    !(info->caps & (FI_MSG | FI_TAGGED)) || (info->caps & FI_FENCE))
		return 0;
	return !(info->caps & TDM_ONE_SIDED) ||
	       !((info->tx_attr->msg_order | info->rx_attr->msg_order) &
		 MIXED_ORDERS);
}

static int open_side(struct tdm_root *root, const struct tdm_done *done)
{
	struct tdm_tcp_offer offer = { .offered = offered };
	int ret;

	root->foreign = calloc(1, sizeof(*root->foreign));
	if (!root->foreign)
		return -FI_ENOMEM;
	ret = tdm_foreign_ep_open(
		root->ep.domain->foreign, root->ep.info,
		root->ep.rx_side->export_to(&root->ep, TDM_TRANSPORT_LOCAL),
		done, &root->foreign->ep);
	if (!ret)
		ret = make_offer(root->foreign);
	if (ret)
		return ret;
	offer.bytes = root->foreign->offer;
	offer.len = root->foreign->len;
	tdm_tcp_set_offer(root->tcp, &offer);
	return 0;
}

static void close_side(struct tdm_root *root)
{
	if (!root->foreign)
		return;
	tdm_foreign_ep_close(root->foreign->ep);
	free(root->foreign);
	root->foreign = NULL;
}

static void try_open(struct tdm_root *root)
{
	struct tdm_done done;
	int ret;

	root->local_why = TDM_REASON_DISABLED;
	if (!root->shm_permitted)
		return;
	root->local_why = TDM_REASON_RESOURCE;
	if (!root->ep.domain->foreign)
		return;
	tdm_ep_done(&root->ep, TDM_TRANSPORT_LOCAL, &done);
	if (!suits(root, &done)) {
		TDM_INFO(EP_CTRL,
			 "endpoint without provider %s: its addresses, keys, "
			 "fences or order are not for it",
			 tdm_env.local);
		return;
	}
	ret = open_side(root, &done);
	if (!ret)
		return;
	close_side(root);
	TDM_WARN(EP_CTRL, "endpoint without provider %s: %s", tdm_env.local,
		 fi_strerror(-ret));
}

static int open_foreign(struct tdm_root *root)
{
	try_open(root);
	return root->foreign ? 0 : tdm_tier_without_local();
}

/* A message of the provider cannot be cancelled once it has been given it. */
static ssize_t cancel(struct tdm_root *root, void *context)
{
	(void)root;
	(void)context;
	return -FI_ENOENT;
}

static size_t tx_left(const struct tdm_root *root)
{
	(void)root;
	return SIZE_MAX;
}

static void rebound(struct tdm_root *root)
{
	struct tdm_done done;

	if (!root->foreign)
		return;
	tdm_ep_done(&root->ep, TDM_TRANSPORT_LOCAL, &done);
	tdm_foreign_ep_set_done(root->foreign->ep, &done);
}

/* The connection of the pair, if the provider carries its messages. */
static int session(struct tdm_root *root, fi_addr_t addr,
		   struct tdm_report_path *out)
{
	const struct tdm_pair *p = tdm_ep_pair_of(root, addr);
	const struct tdm_conn *conn = p ? p->conn : NULL;
	struct tdm_addr a;

	if (!root->foreign)
		return -FI_ENODATA;
	if (!conn && !tdm_av_addr(root->ep.av, addr, &a))
		conn = tdm_conn_find(root->tcp, &a);
	if (!conn || !tdm_foreign_peer_find(root->foreign->ep, conn))
		return -FI_ENODATA;
	out->path = TDM_REPORT_FOREIGN;
	out->reason = TDM_REASON_FOREIGN;
	out->tcp = tdm_history_counts(conn);
	return 0;
}

const struct tdm_tier_ops tdm_tier_foreign = {
	.start = start,
	.stop = stop,
	.arm = arm,
	.watch = tdm_tier_no_watch, /* it has no descriptor: arm() */
	/* It reports to the exports that tdm_ep_done() gives it. */
	.import_cq = tdm_tier_no_cq,
	.import_cntr = tdm_tier_no_cntr,
	.deliver = tdm_tier_no_deliver,
	.open = open_foreign,
	.listen = tdm_tier_no_listen,
	.close = close_side,
	.cancel = cancel,
	.tx_left = tx_left,
	.bind_cntr = tdm_tier_no_bind, /* rebound() has the new export */
	.rebound = rebound,
	.resolve = resolve,
	.forget = forget,
	.session = session,
	.look = tdm_tier_no_look, /* the provider tells nothing */
};
