/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of members: joining and leaving. coll_note.c has what their members tell
 * each other.
 *
 * Lock: the domain's, taken in the calls of the application, else held.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/set.h"
#include "peer/eq.h"
#include "tcp/coll_priv.h"
#include "tdm_nosys.h"

/* The part of a join about one member; id 0: it is gone. */
struct record {
	uint32_t id;
	uint16_t version;
	uint16_t form; /* TDM_AMO_FORM */
	uint64_t host; /* equal for members that may share memory */
};

enum { VERSION = 1 };

#define ID_BITS ((uint32_t)TDM_COLL_MEMBERS_MOST)

/* The addresses of groups, as those of sets: no endpoint has one. */
#define GROUP_ADDR 0x434f4c4c80000000ull

/* ---- opening and closing ------------------------------------------------- */

static struct tdm_coll *coll_open(struct tdm_root *root)
{
	struct tdm_coll *c = root->coll;

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->root = root;
	c->retry.pass = tdm_coll_pass;
	tdm_list_init(&c->retry.node);
	tdm_list_init(&c->ready);
	tdm_list_init(&c->groups);
	tdm_list_init(&c->notes);
	root->coll = c;
	return c;
}

static void group_free(struct tdm_group *g)
{
	tdm_list_del(&g->node);
	tdm_coll_map_fini(&g->map);
	free(g->member);
	free(g);
}

static int group_close(struct fid *fid)
{
	struct tdm_group *g = tdm_container_of(fid, struct tdm_group, fid.fid);
	struct tdm_domain *d;
	int ret = -FI_EBUSY;

	if (!g->coll) {
		group_free(g);
		return 0;
	}
	d = g->coll->root->ep.domain;
	if (d->engine.orphan)
		return -FI_EOPBADSTATE;
	tdm_lock_acquire(&d->lock);
	if (tdm_list_empty(&g->ops) && !tdm_group_silence(g)) {
		group_free(g);
		ret = 0;
	}
	tdm_lock_release(&d->lock);
	return ret;
}

static struct fi_ops group_fid_ops = {
	.size = sizeof(group_fid_ops),
	.close = group_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

void tdm_coll_quit(struct tdm_root *root)
{
	struct tdm_coll *c = root->coll;
	struct tdm_list *pos, *at;

	if (!c)
		return;
	c->closing = 1;
	tdm_list_del(&c->retry.node);
	if (c->urgent)
		root->ep.domain->urgent--;
	c->urgent = 0;
	tdm_list_for_each(pos, &c->groups) {
		struct tdm_group *g =
			tdm_list_entry(pos, struct tdm_group, node);

		tdm_list_for_each(at, &g->ops)
			tdm_coll_op_unpost(
				tdm_list_entry(at, struct tdm_coll_op, node));
		if (g->listening)
			(void)!tdm_srx_cancel(tdm_coll_srx(root), &g->noted);
	}
}

void tdm_coll_free(struct tdm_root *root)
{
	struct tdm_coll *c = root->coll;
	struct tdm_list *node;

	if (!c)
		return;
	while ((node = tdm_list_pop(&c->groups))) {
		struct tdm_group *g =
			tdm_list_entry(node, struct tdm_group, node);

		while ((node = tdm_list_pop(&g->ops)))
			tdm_coll_op_free(
				tdm_list_entry(node, struct tdm_coll_op, node));
		g->coll = NULL;
	}
	tdm_coll_notes_free(c);
	free(c);
	root->coll = NULL;
}

/* ---- joining ------------------------------------------------------------- */

static struct tdm_eq *eq_of(const struct tdm_root *root)
{
	return root->eq ? root->eq : root->ep.domain->eq;
}

static void tell(struct tdm_group *g, int err)
{
	struct tdm_eq *eq = eq_of(g->coll->root);
	const struct fi_eq_entry e = {
		.fid = &g->fid.fid,
		.context = g->fid.fid.context,
	};
	const struct fi_eq_err_entry x = {
		.fid = &g->fid.fid,
		.context = g->fid.fid.context,
		.err = err,
		.prov_errno = err,
	};

	if (err)
		(void)!tdm_eq_keep_err(eq, &x);
	else
		(void)!tdm_eq_keep(eq, FI_JOIN_COMPLETE, &e, sizeof(e));
}

/* Take what the join has brought. Returns 0 or a positive fi_errno. */
static int learn(struct tdm_group *g, const struct record *r)
{
	uint32_t size = g->map.size, me = g->map.me, i;
	uint64_t *host = malloc(size * sizeof(*host));
	int err = host ? 0 : FI_ENOMEM;

	for (i = 0; !err && i < size; i++) {
		host[i] = r[i].host;
		g->member[i].id = r[i].id & ID_BITS;
		if (!g->member[i].id)
			err = g->member[i].lost ? g->member[i].lost :
						  FI_ECONNABORTED;
		else if (r[i].version != VERSION || r[i].form != TDM_AMO_FORM)
			err = FI_EOPNOTSUPP;
	}
	if (!err && tdm_coll_map_init(&g->map, size, me, host))
		err = FI_ENOMEM;
	free(host);
	/* fini() of an empty map, and group_free(), need to know */
	g->map.size = size;
	g->map.me = me;
	return err;
}

static void joined(struct tdm_coll_op *op)
{
	struct tdm_group *g = op->group;
	int err = learn(
		g, (const struct record *)(const void *)op->buf[TDM_COLL_OUT]);

	free(op->buf[TDM_COLL_OUT]);
	tdm_coll_op_free(op);
	g->joined = !err;
	g->fid.fi_addr = err ? FI_ADDR_NOTAVAIL : GROUP_ADDR | g->id;
	tdm_group_hear(g);
	tell(g, err);
}

/* Returns what is equal for endpoints that may reach each other locally. */
static uint64_t host_key(const struct tdm_root *root)
{
	return root->local ? tdm_addr_ip_hash(&root->name) :
			     tdm_addr_mix(tdm_addr_hash(&root->name) + 1);
}

/*
 * Fill in the members of @g from the set. Errors: -FI_EINVAL: the endpoint is not
 * among them, or one is there twice.
 */
static int enrol(struct tdm_group *g, const struct tdm_root *root,
		 const fi_addr_t *list)
{
	struct tdm_addr mine = root->name, a;
	uint32_t i, size = g->map.size;

	mine.key = 0;
	g->map.me = size;
	for (i = 0; i < size; i++) {
		fi_addr_t low = tdm_av_lowest(root->ep.av, list[i]);

		if (tdm_av_addr(root->ep.av, low, &a) ||
		    tdm_group_member(g, low))
			return -FI_EINVAL;
		/* Each process numbers its keys itself. */
		a.key = 0;
		if (tdm_addr_equal(&a, &mine))
			g->map.me = i;
		g->tag = tdm_addr_mix(g->tag + tdm_addr_hash(&a));
		g->member[i].addr = low;
	}
	return g->map.me < size ? 0 : -FI_EINVAL;
}

/* Allocates the group of the members of @set. Errors: NULL with *@ret. */
static struct tdm_group *group_new(struct tdm_root *root,
				   const struct fid_av_set *set, void *context,
				   int *ret)
{
	const fi_addr_t *list;
	size_t size = tdm_av_set_members(set, &list), i;
	struct tdm_group *g = calloc(1, sizeof(*g));

	*ret = -FI_ENOMEM;
	if (!g)
		return NULL;
	tdm_list_init(&g->node);
	tdm_list_init(&g->ops);
	g->fid.fid.fclass = FI_CLASS_MC;
	g->fid.fid.context = context;
	g->fid.fid.ops = &group_fid_ops;
	g->fid.fi_addr = FI_ADDR_NOTAVAIL;
	g->noted.end = tdm_group_noted;
	g->allowed = tdm_av_set_flags(set);
	g->member = calloc(tdm_max(size, 1), sizeof(*g->member));
	for (i = 0; g->member && i < size; i++) {
		g->member[i].addr = FI_ADDR_NOTAVAIL;
		g->member[i].group = g;
	}
	if (g->member) {
		g->map.size = (uint32_t)size;
		*ret = size && size <= ID_BITS ? enrol(g, root, list) :
						 -FI_EINVAL;
	}
	if (!*ret)
		return g;
	group_free(g);
	return NULL;
}

/* Begin to join @g. Errors: -FI_ENOMEM, with nothing begun. */
static int meet(struct tdm_group *g)
{
	const struct tdm_coll_job job = { sizeof(struct record), 1, 0 };
	struct tdm_domain *d = g->coll->root->ep.domain;
	struct tdm_coll_op *op = tdm_coll_op_alloc(g);
	struct record *r = calloc(g->map.size, sizeof(*r));
	int ret = -FI_ENOMEM;

	if (op && r) {
		op->done = joined;
		op->buf[TDM_COLL_OUT] = (uint8_t *)r;
		tdm_coll_meet(&op->plan, &g->map, &job);
		ret = tdm_coll_op_prepare(op);
	}
	if (ret) {
		if (op)
			tdm_coll_op_free(op);
		free(r);
		return ret;
	}
	g->id = ++d->groups & ID_BITS;
	if (!g->id)
		g->id = ++d->groups & ID_BITS;
	r[g->map.me].id = g->id;
	r[g->map.me].version = VERSION;
	r[g->map.me].form = TDM_AMO_FORM;
	r[g->map.me].host = host_key(g->coll->root);
	tdm_list_append(&g->coll->groups, &g->node);
	tdm_coll_op_start(op);
	return 0;
}

static int join_locked(struct tdm_root *root,
		       const struct fi_collective_addr *a, struct fid_mc **mc,
		       void *context)
{
	struct tdm_group *g;
	int ret;

	if (!root->ep.enabled)
		return -FI_EOPBADSTATE;
	if (!eq_of(root))
		return -FI_ENOEQ;
	if (!tdm_coll_srx(root))
		return -FI_EOPNOTSUPP;
	if (!tdm_av_set_is_of(root->ep.av, a->set))
		return -FI_EINVAL;
	if (a->coll_addr != FI_ADDR_NOTAVAIL &&
	    !tdm_av_is_set_addr(root->ep.av, a->coll_addr) &&
	    !tdm_coll_group_at(root, a->coll_addr))
		return -FI_EINVAL;
	if (!coll_open(root))
		return -FI_ENOMEM;
	g = group_new(root, a->set, context, &ret);
	if (!g)
		return ret;
	g->coll = root->coll;
	*mc = &g->fid;
	ret = meet(g);
	if (ret)
		group_free(g);
	return ret;
}

struct tdm_group *tdm_coll_group_at(const struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_list *pos;

	if (!root->coll)
		return NULL;
	tdm_list_for_each(pos, &root->coll->groups) {
		struct tdm_group *g =
			tdm_list_entry(pos, struct tdm_group, node);

		if (g->joined && g->fid.fi_addr == addr)
			return g;
	}
	return NULL;
}

int tdm_coll_join(struct fid_ep *fid, const void *addr, uint64_t flags,
		  struct fid_mc **mc, void *context)
{
	const struct fi_collective_addr *a = addr;
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	uint64_t sides = flags & (FI_SEND | FI_RECV);
	int ret;

	/* Multicast is not offered, fi_cm(3). */
	if (!(flags & FI_COLLECTIVE))
		return -FI_ENOSYS;
	if (ep->kind->fclass != FI_CLASS_EP ||
	    !(ep->info->caps & FI_COLLECTIVE))
		return -FI_EOPNOTSUPP;
	/* A member that only sends or only receives takes part in nothing. */
	if (flags & ~(FI_COLLECTIVE | sides) ||
	    (sides && sides != (FI_SEND | FI_RECV)))
		return -FI_EBADFLAGS;
	if (!a || !a->set || !mc)
		return -FI_EINVAL;
	if (ep->domain->engine.orphan)
		return -FI_EOPBADSTATE;
	tdm_lock_acquire(&ep->domain->lock);
	ret = join_locked(ep->root, a, mc, context);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}
