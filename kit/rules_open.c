/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about what fi_getinfo grants and how objects are imported.
 *
 * No lock: one thread.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/node.h"
#include "kit/rule.h"

static struct kit_world world;
static struct kit_queue queue;
static struct kit_count count;
static struct kit_srx srx;

/* A structure that begins as each context of fi_peer(3) does. */
struct import {
	size_t size;
	void *object;
};

/* Opens one kind of object with @import. Returns what the provider does. */
typedef int opener(struct import *import, struct fid **out);

static int open_cq(struct import *import, struct fid **out)
{
	struct fi_cq_attr attr = { .flags = FI_PEER, .wait_obj = FI_WAIT_NONE };

	return fi_cq_open(world.domain, &attr, (struct fid_cq **)out, import);
}

static int open_cntr(struct import *import, struct fid **out)
{
	struct fi_cntr_attr attr = { .flags = FI_PEER,
				     .wait_obj = FI_WAIT_NONE };

	return fi_cntr_open(world.domain, &attr, (struct fid_cntr **)out,
			    import);
}

static int open_srx(struct import *import, struct fid **out)
{
	struct fi_rx_attr attr = { .op_flags = FI_PEER };

	return fi_srx_context(world.domain, &attr, (struct fid_ep **)out,
			      import);
}

static int open_domain(struct import *import, struct fid **out)
{
	return fi_domain2(world.fabric, world.info, (struct fid_domain **)out,
			  FI_PEER, import);
}

static int open_eq(struct import *import, struct fid **out)
{
	struct fi_eq_attr attr = { .flags = FI_PEER, .wait_obj = FI_WAIT_NONE };

	return fi_eq_open(world.fabric, &attr, (struct fid_eq **)out, import);
}

static fi_addr_t own_addr(struct fid_peer_av *av, struct fid_ep *ep)
{
	return FI_ADDR_NOTAVAIL;
}

static int query(struct fid_peer_av *av, struct fi_av_attr *attr)
{
	return -FI_ENOSYS;
}

static int open_av(struct import *import, struct fid **out)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_PEER };

	return fi_av_open(world.domain, &attr, (struct fid_av **)out, import);
}

/* The object that @open imports. */
static void *object_of(opener *open)
{
	static struct fi_ops_av_owner ops = { .size = sizeof(ops),
					      .query = query,
					      .ep_addr = own_addr };
	static struct fid_peer_av av = { .fid.fclass = FI_CLASS_PEER_AV,
					 .owner_ops = &ops };

	kit_queue_init(&queue);
	kit_count_init(&count);
	kit_srx_init(&srx);
	if (open == open_cq)
		return &queue.fid;
	if (open == open_cntr)
		return &count.fid;
	if (open == open_srx)
		return &srx.fid;
	if (open == open_domain)
		return kit_lent_domain();
	return open == open_eq ? (void *)kit_lent_eq() : (void *)&av;
}

static void close_object(struct fid *fid)
{
	int ret;

	kit_step("fi_close of an imported object");
	ret = fi_close(fid);
	if (ret)
		kit_broken("fi_close of an imported object: %s",
			   fi_strerror(-ret));
}

/* Import what @open does; with @strict any other refusal than -FI_EINVAL breaks. */
static void imported(opener *open, const char *call, int strict)
{
	struct import import = { sizeof(import), object_of(open) };
	struct fid *fid = NULL;
	int ret;

	kit_step("%s with FI_PEER", call);
	ret = open(&import, &fid);
	if (ret && strict && ret != -FI_EINVAL)
		kit_broken("%s with FI_PEER returned %d, %s", call, ret,
			   fi_strerror(-ret));
	if (ret)
		kit_absent("%s refuses FI_PEER with %s", call,
			   fi_strerror(-ret));
	if (!fid)
		kit_broken("%s returned 0 and no object", call);
	memset(&import, 0xff, sizeof(import));
	close_object(fid);
}

/* Contexts that cannot be what the flag promises. */
static void misused(opener *open, const char *call)
{
	struct import import = { 0, object_of(open) };
	struct fid *fid = NULL;
	int ret;

	imported(open, call, 0);
	kit_step("%s with a context of size 0", call);
	ret = open(&import, &fid);
	if (!ret)
		kit_broken("%s took a context whose size is 0", call);
	kit_step("%s without a context", call);
	ret = open(NULL, &fid);
	if (!ret)
		kit_broken("%s took FI_PEER without a context", call);
}

static void grants(void)
{
	int ret = kit_info(&world, 0, 0);

	if (ret)
		kit_absent("fi_getinfo: %s", fi_strerror(-ret));
	if (!world.granted)
		kit_absent("fi_getinfo with FI_PEER in caps finds nothing");
	if (!(world.info->caps & FI_PEER))
		kit_broken("FI_PEER was asked for and is not in caps");
}

static void cq(void)
{
	kit_world_open(&world, 0, 0);
	imported(open_cq, "fi_cq_open", 1);
}

static void cntr(void)
{
	kit_world_open(&world, 0, 0);
	imported(open_cntr, "fi_cntr_open", 1);
}

static void domain(void)
{
	kit_world_open(&world, 0, 0);
	imported(open_domain, "fi_domain2", 1);
}

static void eq(void)
{
	kit_world_open(&world, 0, 0);
	imported(open_eq, "fi_eq_open", 1);
}

static void av(void)
{
	kit_world_open(&world, 0, 0);
	imported(open_av, "fi_av_open", 0);
}

static void srx_calls(void)
{
	const struct fi_ops_srx_peer *ops;
	struct fid_ep *fid = NULL;
	int ret;

	kit_world_open(&world, 0, 0);
	ret = kit_open_srx(&world, &srx, &fid);
	if (ret)
		kit_absent("fi_srx_context refuses FI_PEER with %s",
			   fi_strerror(-ret));
	ops = srx.fid.peer_ops;
	if (!ops)
		kit_broken("peer_ops is not set");
	if (kit_offers(&world, KIT_TAG) &&
	    (!ops->start_tag || !ops->discard_tag))
		kit_broken("start_tag or discard_tag is not set");
	if (kit_offers(&world, KIT_MSG) &&
	    (!ops->start_msg || !ops->discard_msg))
		kit_broken("start_msg or discard_msg is not set");
	if (!fid)
		kit_broken("fi_srx_context returned 0 and no object");
	close_object(&fid->fid);
}

static void cq_misuse(void)
{
	kit_world_open(&world, 0, 0);
	misused(open_cq, "fi_cq_open");
}

static void cntr_misuse(void)
{
	kit_world_open(&world, 0, 0);
	misused(open_cntr, "fi_cntr_open");
}

static void srx_misuse(void)
{
	kit_world_open(&world, 0, 0);
	misused(open_srx, "fi_srx_context");
}

static void domain_misuse(void)
{
	kit_world_open(&world, 0, 0);
	misused(open_domain, "fi_domain2");
}

static void eq_misuse(void)
{
	kit_world_open(&world, 0, 0);
	misused(open_eq, "fi_eq_open");
}

static void av_misuse(void)
{
	kit_world_open(&world, 0, 0);
	misused(open_av, "fi_av_open");
}

static ssize_t write_private(struct fid_eq *fid)
{
	struct fi_eq_entry entry = { .data = 1 };

	return fi_eq_write(fid, FI_NOTIFY, &entry, sizeof(entry), 0);
}

static void eq_private(void)
{
	struct import import = { sizeof(import), kit_lent_eq() };
	struct fi_eq_entry entry;
	struct fid *fid = NULL;
	uint32_t event = 0;
	ssize_t ret;

	kit_world_open(&world, 0, 0);
	kit_step("fi_eq_open with FI_PEER");
	if (open_eq(&import, &fid))
		kit_absent("fi_eq_open refuses FI_PEER");
	kit_step("fi_eq_write and fi_eq_read of the peer's queue");
	ret = write_private((struct fid_eq *)fid);
	if (ret > 0 && !kit_lent_events() &&
	    fi_eq_read((struct fid_eq *)fid, &event, &entry, sizeof(entry), 0) >
		    0)
		kit_broken("fi_eq_open takes FI_PEER and opens a queue of its "
			   "own: an event stays in it");
	close_object(fid);
}

static void transfer(void)
{
	struct fi_ops_transfer_peer ops = { .size = sizeof(ops) };
	struct fi_peer_transfer_context context = { .size = sizeof(context),
						    .peer_ops = &ops };
	struct fid_ep *ep = NULL;
	int ret;

	kit_world_open(&world, 0, 0);
	if (!(world.info->mode & FI_PEER_TRANSFER))
		kit_absent("the provider needs no transfers of its owner");
	kit_step("fi_endpoint with FI_PEER_TRANSFER");
	ret = fi_endpoint(world.domain, world.info, &ep, &context);
	if (ret)
		kit_broken("fi_endpoint with FI_PEER_TRANSFER: %s",
			   fi_strerror(-ret));
	if (!context.peer_ops || !context.peer_ops->complete ||
	    !context.peer_ops->comperr)
		kit_broken("complete or comperr is not set");
	close_object(&ep->fid);
}

#define PEER "fi_peer(3)"

const struct kit_rule kit_rules_open[] = {
	{ "info.peer", "fi_getinfo(3)", "CAPABILITIES", 0,
	  "fi_getinfo grants FI_PEER to an owner that asks for it", grants },
	{ "cq.open", PEER, "PEER CQ", 3,
	  "fi_cq_open imports a queue, or refuses with -FI_EINVAL", cq },
	{ "cntr.open", PEER, "PEER COUNTER", 2,
	  "fi_cntr_open imports a counter, or refuses with -FI_EINVAL", cntr },
	{ "domain.open", PEER, "PEER DOMAIN", 3,
	  "fi_domain2 imports a domain, or refuses with -FI_EINVAL", domain },
	{ "eq.open", PEER, "PEER EQ", 3,
	  "fi_eq_open imports a queue, or refuses with -FI_EINVAL", eq },
	{ "eq.private", PEER, "PEER EQ", 1,
	  "an event of a peer's queue does not stay in it", eq_private },
	{ "av.open", PEER, "PEER AV", 3, "fi_av_open imports an address vector",
	  av },
	{ "srx.open", PEER, "PEER SRX", 3,
	  "the start and discard calls are set when fi_srx_context returns",
	  srx_calls },
	{ "transfer.open", PEER, "FI_PEER_TRANSFER", 6,
	  "complete and comperr are set when fi_endpoint returns", transfer },
	{ "cq.misuse", "guide", NULL, 0,
	  "fi_cq_open refuses a context that is missing or of size 0",
	  cq_misuse },
	{ "cntr.misuse", "guide", NULL, 0,
	  "fi_cntr_open refuses a context that is missing or of size 0",
	  cntr_misuse },
	{ "srx.misuse", "guide", NULL, 0,
	  "fi_srx_context refuses a context that is missing or of size 0",
	  srx_misuse },
	{ "domain.misuse", "guide", NULL, 0,
	  "fi_domain2 refuses a context that is missing or of size 0",
	  domain_misuse },
	{ "eq.misuse", "guide", NULL, 0,
	  "fi_eq_open refuses a context that is missing or of size 0",
	  eq_misuse },
	{ "av.misuse", "guide", NULL, 0,
	  "fi_av_open refuses a context that is missing or of size 0",
	  av_misuse },
	{ 0 },
};
