/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about messages whose receive was posted before they came.
 *
 * No lock: one thread.
 */
#include <rdma/fi_errno.h>

#include "kit/node.h"
#include "kit/rule.h"

enum { MANY = 200, PARTS = 5 };

static struct kit_pair p;

static struct kit_message message(int kind, size_t len, uint64_t tag)
{
	return (struct kit_message){ .kind = (enum kit_kind)kind,
				     .len = len,
				     .tag = tag,
				     .flags = FI_COMPLETION };
}

/* Send @m to a receive of @room bytes that was posted; both end. */
static struct kit_op *carry(const struct kit_message *m, size_t room)
{
	struct kit_op *recv = kit_recv(&p.b, m, room, FI_ADDR_UNSPEC);
	struct kit_op *send = kit_send(&p.a, p.to, m);

	kit_wait(recv);
	kit_wait(send);
	if (room >= m->len)
		kit_check(recv, send, m);
	else if (recv->err != FI_ETRUNC)
		kit_broken("a message of %zu bytes in a buffer of %zu ended "
			   "with error %d",
			   m->len, room, recv->err);
	return recv;
}

/* @call with each kind of messages that is offered, and each length. */
static void each(void (*call)(struct kit_message *m))
{
	struct kit_message m;
	int kind, i;

	kit_pair_open(&p, 0);
	for (kind = 0; kind < KIT_KINDS; kind++) {
		for (i = 0; i < KIT_SIZES; i++) {
			m = message(kind, kit_size[i], (uint64_t)i);
			if (kit_offers(&p.world, m.kind) &&
			    m.len <= p.world.info->ep_attr->max_msg_size)
				call(&m);
		}
	}
	kit_settle();
}

static void carry_whole(struct kit_message *m)
{
	carry(m, m->len);
}

static void carry_roomy(struct kit_message *m)
{
	carry(m, m->len + 100);
}

static void carry_short(struct kit_message *m)
{
	if (m->len)
		carry(m, m->len / 2);
}

static void carry_split(struct kit_message *m)
{
	if (m->len < 2)
		return;
	m->split = m->len / 3 + 1;
	carry(m, m->len);
}

static void sizes(void)
{
	each(carry_whole);
}

static void rooms(void)
{
	each(carry_roomy);
}

static void truncated(void)
{
	each(carry_short);
}

static void vectors(void)
{
	kit_pair_open(&p, 0);
	if (p.world.info->tx_attr->iov_limit == 1)
		kit_absent("iov_limit is 1");
	kit_close_all();
	each(carry_split);
}

static void ask_is_true(struct kit_message *m)
{
	const struct fi_peer_match_attr *ask = &p.b.own_srx.ask;
	size_t asks = p.b.own_srx.asks;

	carry(m, m->len);
	if (p.b.own_srx.asks != asks + 1)
		kit_broken("get_* was called %zu times for one message",
			   p.b.own_srx.asks - asks);
	if (ask->msg_size != m->len)
		kit_broken("get_* was asked for %zu bytes of %zu",
			   ask->msg_size, m->len);
	if (m->kind == KIT_TAG && ask->tag != m->tag)
		kit_broken("get_tag was asked for another tag");
	if (ask->addr != p.source && ask->addr != FI_ADDR_UNSPEC)
		kit_broken("get_* was asked for the source %#llx, not %#llx",
			   (unsigned long long)ask->addr,
			   (unsigned long long)p.source);
}

static void asks(void)
{
	each(ask_is_true);
}

static void sources(void)
{
	struct kit_message m;
	struct kit_op *recv;

	kit_pair_open(&p, 0);
	if (!(p.world.info->caps & FI_DIRECTED_RECV))
		kit_absent("FI_DIRECTED_RECV");
	m = message((int)kit_kind(&p.world), 100, 1);
	recv = kit_recv(&p.b, &m, m.len, p.source);
	kit_wait(kit_send(&p.a, p.to, &m));
	kit_wait(recv);
	if (p.b.own_srx.ask.addr != p.source)
		kit_broken("get_* was asked for the source %#llx, not %#llx",
			   (unsigned long long)p.b.own_srx.ask.addr,
			   (unsigned long long)p.source);
}

static void frees_one(struct kit_message *m)
{
	size_t frees = p.b.own_srx.frees;

	carry(m, m->len);
	kit_settle();
	if (p.b.own_srx.frees != frees + 1)
		kit_broken("free_entry was called %zu times for one receive "
			   "of %zu bytes",
			   p.b.own_srx.frees - frees, m->len);
}

static void frees(void)
{
	each(frees_one);
	if (kit_entries_out())
		kit_broken("%zu entries were not given back",
			   kit_entries_out());
}

/* The fields of the entry tell which completion belongs to which message. */
static void order(void)
{
	static struct kit_op *recv[MANY];
	struct kit_message m;
	int i;

	kit_pair_open(&p, 0);
	for (i = 0; i < MANY; i++) {
		m = message((int)kit_kind(&p.world), 1 << 20, 1);
		m.split = 0;
		recv[i] = kit_recv(&p.b, &m, kit_size[i % 8], FI_ADDR_UNSPEC);
	}
	for (i = 0; i < MANY; i++) {
		m = message((int)kit_kind(&p.world), kit_size[i % 8], 1);
		kit_send(&p.a, p.to, &m);
	}
	for (i = 0; i < MANY; i++) {
		kit_wait(recv[i]);
		if (recv[i]->err || recv[i]->len != kit_size[i % 8])
			kit_broken("message %d of %d came out of order", i,
				   MANY);
	}
}

static void check_parts(const struct kit_op *recv, size_t len, uint32_t seed)
{
	size_t i, at;

	for (i = 0; i < PARTS; i++) {
		const unsigned char *buf = recv->part[i].buf;

		if (recv->part[i].len != len)
			kit_broken("message %zu of a receive of many has %zu "
				   "bytes of %zu",
				   i, recv->part[i].len, len);
		if (buf != recv->bytes + i * len)
			kit_broken("message %zu of a receive of many does not "
				   "report its place",
				   i);
		for (at = 0; at < len; at++) {
			if (buf[at] != kit_byte(seed, at))
				kit_broken("byte %zu of a message in a receive "
					   "of many is wrong",
					   at);
		}
	}
}

static void multi(void)
{
	static const size_t lens[] = { 10, 1000, 30000 };
	struct kit_op *recv, *send = NULL;
	struct kit_message m;
	size_t i, n;

	kit_pair_open(&p, 0);
	for (n = 0; n < 3; n++) {
		m = message((int)kit_kind(&p.world), lens[n], n);
		recv = kit_op_new(&p.b, m.kind, PARTS * m.len, 0);
		recv->is_recv = recv->is_multi = 1;
		recv->what = "receive of many";
		kit_srx_post(&p.b.own_srx, recv, FI_ADDR_UNSPEC, m.tag, 0);
		for (i = 0; i < PARTS; i++) {
			send = kit_send(&p.a, p.to, &m);
			kit_wait(send);
		}
		kit_wait_ends(recv, PARTS);
		kit_settle();
		if (recv->ended != PARTS)
			kit_broken("%u messages of %d ended in a receive of "
				   "many",
				   recv->ended, PARTS);
		check_parts(recv, m.len, send->seed);
		kit_op_guards(recv);
		kit_srx_cancel(&p.b.own_srx);
	}
}

static void deliver_one(struct kit_message *m)
{
	m->flags |= FI_DELIVERY_COMPLETE;
	carry(m, m->len);
}

static void delivered(void)
{
	struct kit_message m;
	struct kit_op *send;
	ssize_t ret;

	kit_pair_open(&p, 0);
	m = message((int)kit_kind(&p.world), 1, 1);
	m.flags |= FI_DELIVERY_COMPLETE;
	kit_recv(&p.b, &m, 1, FI_ADDR_UNSPEC);
	ret = kit_try_send(&p.a, p.to, &m, &send);
	if (ret == -FI_EINVAL || ret == -FI_EBADFLAGS || ret == -FI_EOPNOTSUPP)
		kit_absent("FI_DELIVERY_COMPLETE");
	kit_close_all();
	each(deliver_one);
}

#define PEER "fi_peer(3)"
#define GET "fi_ops_srx_owner::get_msg() / get_tag()"

const struct kit_rule kit_rules_receive[] = {
	{ "get.sizes", PEER, GET, 1,
	  "messages of all lengths arrive in the receives of their entries",
	  sizes },
	{ "get.room", PEER, GET, 1,
	  "a message that is shorter than its buffer leaves the rest alone",
	  rooms },
	{ "get.fit", PEER, GET, 1,
	  "the peer checks that a message fits: FI_ETRUNC otherwise",
	  truncated },
	{ "get.vector", PEER, "fi_peer_rx_entry", 1,
	  "an entry may have several buffers", vectors },
	{ "get.ask", PEER, GET, 1,
	  "get_* is called once for a message, with its length and tag", asks },
	{ "get.source", PEER, GET, 1,
	  "get_* has the source if receives may ask for it", sources },
	{ "get.order", "fi_endpoint(3)", "FI_ORDER_SAS", 0,
	  "messages of one source ask for receives in their order", order },
	{ "get.multi", PEER, GET, 1,
	  "several messages may share one buffer of the owner", multi },
	{ "get.delivery", "fi_msg(3)", "FI_DELIVERY_COMPLETE", 0,
	  "messages of all lengths complete when they are delivered",
	  delivered },
	{ "free.once", PEER, "fi_ops_srx_owner:: free_entry()", 1,
	  "each entry is given back once, behind its completion", frees },
	{ 0 },
};
