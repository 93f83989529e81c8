/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds and nodes.
 *
 * Invariant: contexts of imports are overwritten when the call has returned, so
 * that a provider that keeps a pointer to one is found.
 *
 * No lock: one thread.
 */
#include "kit/node.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "kit/rule.h"

enum { WORLDS_MOST = 8, RX_SIZE = 1024 };

/* libfabric lists providers for offload only to those who set this flag. */
#define OFFLOAD_ONLY (1ULL << 61)

const size_t kit_size[KIT_SIZES] = { 0,	   1,	  64,	 192,	 4096,
				     4097, 20000, 65536, 1 << 20 };

static struct kit_world *worlds[WORLDS_MOST];

struct kit_node *kit_nodes[KIT_NODES_MOST];

/* The provider does not do what an owner needs. */
#define REFUSED(world, ...)                                                    \
	((world)->granted ? kit_broken(__VA_ARGS__) : kit_absent(__VA_ARGS__))

/* ---- worlds --------------------------------------------------------------- */

static int ask(struct kit_world *world, uint64_t caps, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();
	uint64_t flags = 0;
	int ret;

	if (!hints)
		abort();
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_PEER_TRANSFER;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(kit_subject.provider);
	if (kit_subject.domain)
		hints->domain_attr->name = strdup(kit_subject.domain);
	if (kit_subject.node)
		flags |= FI_SOURCE;
	if (!strncmp(kit_subject.provider, "off_", 4))
		flags |= OFFLOAD_ONLY;
	ret = fi_getinfo(FI_VERSION(2, 1), kit_subject.node, NULL, flags, hints,
			 &world->info);
	fi_freeinfo(hints);
	if (!ret && strcasecmp(world->info->fabric_attr->prov_name,
			       kit_subject.provider)) {
		fi_freeinfo(world->info); /* of a provider above it */
		ret = -FI_ENODATA;
	}
	return ret;
}

int kit_info(struct kit_world *world, uint64_t caps, int mr_mode)
{
	static const uint64_t both = FI_MSG | FI_TAGGED,
			      data = FI_SEND | FI_RECV,
			      more = FI_DIRECTED_RECV | FI_SOURCE;
	const uint64_t wanted[] = {
		both | data | more | FI_AV_USER_ID,
		both | data | more,
		both | data,
		FI_TAGGED | data | more | FI_AV_USER_ID,
		FI_TAGGED | data | more,
		FI_TAGGED | data,
		FI_MSG | data,
		FI_COLLECTIVE,
	};
	const size_t count = sizeof(wanted) / sizeof(*wanted);
	size_t i;
	int ret = -FI_ENODATA;

	memset(world, 0, sizeof(*world));
	kit_step("fi_getinfo");
	for (i = 0; i < 2 * count && ret; i++) {
		world->granted = i < count;
		ret = ask(world,
			  wanted[i % count] | caps |
				  (world->granted ? FI_PEER : 0),
			  mr_mode);
	}
	return ret;
}

static void remember(void **list, size_t most, void *what)
{
	size_t i;

	for (i = 0; i < most && list[i]; i++)
		;
	if (i == most)
		abort();
	list[i] = what;
}

void kit_world_open(struct kit_world *world, uint64_t caps, int mr_mode)
{
	struct fi_peer_domain_context context = { sizeof(context),
						  kit_lent_domain() };
	int ret = kit_info(world, caps, mr_mode);

	if (ret)
		kit_absent("fi_getinfo: %s", fi_strerror(-ret));
	remember((void **)worlds, WORLDS_MOST, world);
	kit_step("fi_fabric");
	ret = fi_fabric(world->info->fabric_attr, &world->fabric, NULL);
	if (ret)
		kit_broken("fi_fabric: %s", fi_strerror(-ret));
	kit_step("fi_domain2 with FI_PEER");
	ret = fi_domain2(world->fabric, world->info, &world->domain, FI_PEER,
			 &context);
	memset(&context, 0xff, sizeof(context));
	world->lends_domain = !ret;
	if (ret) { /* the rules about domains judge that */
		kit_step("fi_domain");
		ret = fi_domain(world->fabric, world->info, &world->domain,
				NULL);
	}
	if (ret)
		REFUSED(world, "fi_domain: %s", fi_strerror(-ret));
	world->user_ids = 1;
}

int kit_offers(const struct kit_world *world, enum kit_kind kind)
{
	return (world->info->caps & (kind == KIT_TAG ? FI_TAGGED : FI_MSG)) !=
	       0;
}

enum kit_kind kit_kind(const struct kit_world *world)
{
	if (!kit_offers(world, KIT_TAG) && !kit_offers(world, KIT_MSG))
		kit_absent("no messages");
	return kit_offers(world, KIT_TAG) ? KIT_TAG : KIT_MSG;
}

/* ---- single objects ------------------------------------------------------- */

int kit_open_cq(struct kit_world *world, struct kit_queue *own,
		struct fid_cq **out)
{
	struct fi_peer_cq_context context = { sizeof(context), &own->fid };
	struct fi_cq_attr attr = { .flags = FI_PEER,
				   .format = FI_CQ_FORMAT_TAGGED,
				   .wait_obj = FI_WAIT_NONE };
	int ret;

	kit_queue_init(own);
	kit_step("fi_cq_open with FI_PEER");
	ret = fi_cq_open(world->domain, &attr, out, &context);
	memset(&context, 0xff, sizeof(context));
	return ret;
}

int kit_open_cntr(struct kit_world *world, struct kit_count *own,
		  struct fid_cntr **out)
{
	struct fi_peer_cntr_context context = { sizeof(context), &own->fid };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = FI_WAIT_NONE,
				     .flags = FI_PEER };
	int ret;

	kit_count_init(own);
	kit_step("fi_cntr_open with FI_PEER");
	ret = fi_cntr_open(world->domain, &attr, out, &context);
	memset(&context, 0xff, sizeof(context));
	return ret;
}

int kit_open_srx(struct kit_world *world, struct kit_srx *own,
		 struct fid_ep **out)
{
	struct fi_peer_srx_context context = { sizeof(context), &own->fid };
	struct fi_rx_attr attr = { .op_flags = FI_PEER, .size = RX_SIZE };
	int ret;

	kit_srx_init(own);
	kit_step("fi_srx_context with FI_PEER");
	ret = fi_srx_context(world->domain, &attr, out, &context);
	memset(&context, 0xff, sizeof(context));
	return ret;
}

/* ---- nodes ---------------------------------------------------------------- */

static void opened(const struct kit_node *node, const char *what, int ret)
{
	if (ret)
		REFUSED(node->world, "%s: %s", what, fi_strerror(-ret));
}

static void bind(struct kit_node *node, struct fid *fid, uint64_t flags,
		 const char *what)
{
	int ret;

	kit_step("fi_ep_bind of the %s", what);
	ret = fi_ep_bind(node->ep, fid, flags);
	if (ret)
		REFUSED(node->world, "fi_ep_bind of the %s: %s", what,
			fi_strerror(-ret));
}

static void bind_all(struct kit_node *node)
{
	uint64_t selective =
		node->flags & KIT_SELECTIVE ? FI_SELECTIVE_COMPLETION : 0;

	bind(node, &node->cq[KIT_TX]->fid, FI_TRANSMIT | selective, "CQ");
	bind(node, &node->cq[node->flags & KIT_ONE_CQ ? KIT_TX : KIT_RX]->fid,
	     FI_RECV, "CQ");
	if (node->cntr[KIT_TX]) {
		bind(node, &node->cntr[KIT_TX]->fid, FI_SEND, "counter");
		bind(node, &node->cntr[KIT_RX]->fid, FI_RECV, "counter");
	}
	bind(node, &node->srx->fid, 0, "SRX");
	bind(node, &node->av->fid, 0, "address vector");
}

void kit_node_start(struct kit_node *node)
{
	bind_all(node);
	if (node->flags & KIT_NO_ENABLE)
		return;
	kit_step("fi_enable");
	opened(node, "fi_enable", fi_enable(node->ep));
}

static struct kit_world *new_world(void)
{
	static struct kit_world pool[WORLDS_MOST];
	size_t i;

	for (i = 0; pool[i].domain; i++) {
		if (i == WORLDS_MOST - 1)
			abort();
	}
	kit_world_open(&pool[i], 0, 0);
	return &pool[i];
}

void kit_node_open(struct kit_node *node, struct kit_world *world, int flags)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int i;

	if (!world)
		world = new_world();
	memset(node, 0, sizeof(*node));
	node->world = world;
	node->flags = flags;
	remember((void **)kit_nodes, KIT_NODES_MOST, node);
	for (i = 0; i < KIT_QUEUES; i++) {
		opened(node, "fi_cq_open with FI_PEER",
		       kit_open_cq(world, &node->own_cq[i], &node->cq[i]));
		if (flags & KIT_COUNTED &&
		    kit_open_cntr(world, &node->own_cntr[i], &node->cntr[i]))
			kit_absent("fi_cntr_open refuses FI_PEER");
	}
	opened(node, "fi_srx_context with FI_PEER",
	       kit_open_srx(world, &node->own_srx, &node->srx));
	if (!node->srx)
		REFUSED(world, "fi_srx_context returned 0 and no object");
	kit_step("fi_av_open");
	opened(node, "fi_av_open",
	       fi_av_open(world->domain, &av, &node->av, NULL));
	kit_step("fi_endpoint");
	opened(node, "fi_endpoint",
	       fi_endpoint(world->domain, world->info, &node->ep, NULL));
	if (!(flags & KIT_NO_BIND))
		kit_node_start(node);
}

static void close_fid(struct fid *fid, const char *what)
{
	int ret;

	kit_step("fi_close of the %s", what);
	ret = fi_close(fid);
	if (ret)
		kit_breach("fi_close of the %s: %s", what, fi_strerror(-ret));
}

static void close_queues(struct kit_node *node, int counters)
{
	int i;

	for (i = 0; i < KIT_QUEUES; i++) {
		struct fid_cq *cq = node->cq[i];
		struct fid_cntr *cntr = node->cntr[i];

		if (counters && cntr) {
			node->cntr[i] = NULL;
			close_fid(&cntr->fid, "counter");
			node->own_cntr[i].closed = "counter";
		} else if (!counters && cq) {
			node->cq[i] = NULL;
			close_fid(&cq->fid, "CQ");
			node->own_cq[i].closed = "CQ";
		}
	}
}

/* *@fid is NULL before it closes, so that a close that fails is not repeated. */
static void close_ep(struct fid_ep **fid, const char *what)
{
	struct fid_ep *ep = *fid;

	if (!ep)
		return;
	*fid = NULL;
	close_fid(&ep->fid, what);
}

void kit_node_close(struct kit_node *node, const char *order)
{
	struct fid_av *av = node->av;

	for (; *order; order++) {
		switch (*order) {
		case 'e':
			node->own_srx.closing = 1;
			close_ep(&node->ep, "endpoint");
			break;
		case 's':
			close_ep(&node->srx, "SRX");
			break;
		case 'a':
			node->av = NULL;
			if (av)
				close_fid(&av->fid, "address vector");
			break;
		default:
			close_queues(node, *order == 'n');
		}
	}
	if (!node->ep && !node->srx)
		node->own_srx.closed = "endpoint and the SRX";
}

void kit_close_all(void)
{
	size_t i;

	for (i = 0; i < KIT_NODES_MOST; i++) {
		struct kit_node *node = kit_nodes[i];

		kit_nodes[i] = NULL;
		if (node)
			kit_node_close(node, "esnac");
	}
	for (i = 0; i < WORLDS_MOST; i++) {
		struct kit_world *w = worlds[i];

		worlds[i] = NULL;
		if (w && w->domain)
			close_fid(&w->domain->fid, "domain");
		if (w && w->fabric)
			close_fid(&w->fabric->fid, "fabric");
		if (!w)
			continue;
		fi_freeinfo(w->info);
		memset(w, 0, sizeof(*w));
	}
}

void kit_pair_open(struct kit_pair *p, int flags)
{
	kit_world_open(&p->world, 0, 0);
	(void)kit_kind(&p->world);
	kit_node_open(&p->a, &p->world, flags);
	kit_node_open(&p->b, NULL, flags);
	p->to = kit_insert(&p->a, &p->b, 1, NULL);
	if (!(flags & KIT_UNKNOWN))
		kit_insert(&p->b, &p->a, 77, &p->source);
}

const struct kit_queue *kit_queue_of(const struct kit_op *op)
{
	const struct kit_node *node = op->node;

	return &node->own_cq[op->is_recv && !(node->flags & KIT_ONE_CQ) ?
				     KIT_RX :
				     KIT_TX];
}

/* ---- addresses ------------------------------------------------------------ */

size_t kit_name(struct kit_node *of, void *name)
{
	size_t len = KIT_NAME_BYTES;
	int ret;

	kit_step("fi_getname");
	ret = fi_getname(&of->ep->fid, name, &len);
	if (ret)
		kit_broken("fi_getname: %s", fi_strerror(-ret));
	if (len > KIT_NAME_BYTES)
		kit_broken("fi_getname: a name of %zu bytes in room for %d",
			   len, KIT_NAME_BYTES);
	return len;
}

fi_addr_t kit_insert_name(struct kit_node *at, const void *name,
			  fi_addr_t user_id, fi_addr_t *source)
{
	struct kit_world *w = at->world;
	fi_addr_t addr = user_id;
	int ret = 0;

	kit_step("fi_av_insert");
	if (w->user_ids)
		ret = fi_av_insert(at->av, name, 1, &addr, FI_AV_USER_ID, NULL);
	if (ret < 0) /* the rule source.ids judges that */
		w->user_ids = 0;
	if (!w->user_ids)
		ret = fi_av_insert(at->av, name, 1, &addr, 0, NULL);
	if (ret != 1)
		kit_broken("fi_av_insert of one address: %d%s%s", ret,
			   ret < 0 ? ", " : "",
			   ret < 0 ? fi_strerror(-ret) : "");
	if (source)
		*source = w->user_ids ? user_id : addr;
	return addr;
}

fi_addr_t kit_insert(struct kit_node *at, struct kit_node *of,
		     fi_addr_t user_id, fi_addr_t *source)
{
	char name[KIT_NAME_BYTES] = "";

	kit_name(of, name);
	return kit_insert_name(at, name, user_id, source);
}
