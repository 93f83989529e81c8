/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about messages that come before their receive.
 *
 * No lock: one thread.
 */
#include <rdma/fi_errno.h>

#include "kit/node.h"
#include "kit/rule.h"

enum { ROUNDS = 40, CROWD = 1500 };

static struct kit_pair p;

static struct kit_message message(int kind, size_t len, uint64_t tag)
{
	return (struct kit_message){ .kind = (enum kit_kind)kind,
				     .len = len,
				     .tag = tag,
				     .flags = FI_COMPLETION };
}

static struct kit_message small(uint64_t tag)
{
	return message((int)kit_kind(&p.world), 8, tag);
}

/* Send @m, and let it wait for a receive of @room bytes. */
static struct kit_op *carry(const struct kit_message *m, size_t room)
{
	struct kit_op *send = kit_send(&p.a, p.to, m), *recv;

	kit_wait_queued(&p.b, 1);
	recv = kit_recv(&p.b, m, room, FI_ADDR_UNSPEC);
	kit_wait(recv);
	kit_wait(send);
	if (room >= m->len)
		kit_check(recv, send, m);
	else if (recv->err != FI_ETRUNC)
		kit_broken("a message of %zu bytes in a buffer of %zu ended "
			   "with error %d, not FI_ETRUNC",
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
	if (kit_entries_out())
		kit_broken("%zu entries were not given back",
			   kit_entries_out());
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

static void data(void)
{
	struct kit_message m;
	const struct fi_peer_rx_entry *rx;

	kit_pair_open(&p, 0);
	if (!p.world.info->domain_attr->cq_data_size)
		kit_absent("cq_data_size is 0");
	m = small(1);
	m.data = 0xcd;
	m.flags |= FI_REMOTE_CQ_DATA;
	kit_send(&p.a, p.to, &m);
	kit_wait_queued(&p.b, 1);
	rx = &p.b.own_srx.queued->rx;
	if (!(rx->flags & FI_REMOTE_CQ_DATA) || rx->cq_data != 0xcd)
		kit_broken("the entry of a message that waits has the flags "
			   "%#llx and the data %#llx, not 0xcd",
			   (unsigned long long)rx->flags,
			   (unsigned long long)rx->cq_data);
	kit_srx_discard(&p.b.own_srx);
}

/* Receives for tags in another order than the messages came. */
static void any_order(void)
{
	static struct kit_op *send[ROUNDS];
	struct kit_message m;
	struct kit_op *recv;
	int i;

	kit_pair_open(&p, 0);
	if (kit_kind(&p.world) != KIT_TAG)
		kit_absent("tagged messages");
	for (i = 0; i < ROUNDS; i++) {
		m = message(KIT_TAG, kit_size[i % 6], (uint64_t)i);
		send[i] = kit_send(&p.a, p.to, &m);
	}
	kit_wait_queued(&p.b, ROUNDS);
	for (i = ROUNDS; i--;) {
		m = message(KIT_TAG, kit_size[i % 6], (uint64_t)i);
		recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
		kit_wait(recv);
		kit_check(recv, send[i], &m);
	}
}

static void crowd(void)
{
	struct kit_message m;
	struct kit_op *recv;
	int i;

	kit_pair_open(&p, 0);
	for (i = 0; i < CROWD; i++) {
		m = message((int)kit_kind(&p.world), kit_size[i % 6], 1);
		kit_send(&p.a, p.to, &m);
	}
	kit_wait_queued(&p.b, CROWD);
	for (i = 0; i < CROWD; i++) {
		m = message((int)kit_kind(&p.world), kit_size[i % 6], 1);
		recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
		kit_wait(recv);
		if (recv->err || recv->len != m.len)
			kit_broken("message %d of %d that waited came out of "
				   "order",
				   i, CROWD);
	}
}

static void entry_back(struct kit_message *m)
{
	size_t frees = p.b.own_srx.frees;

	carry(m, m->len);
	kit_settle();
	if (p.b.own_srx.frees != frees + 1)
		kit_broken("free_entry was called %zu times for a message of "
			   "%zu bytes that waited",
			   p.b.own_srx.frees - frees, m->len);
}

static void frees(void)
{
	each(entry_back);
}

/* ---- messages that nobody wants ------------------------------------------- */

static struct kit_op *discard(const struct kit_message *m)
{
	struct kit_op *send = kit_send(&p.a, p.to, m);

	kit_wait_queued(&p.b, 1);
	kit_srx_discard(&p.b.own_srx);
	return send;
}

static void discard_silently(struct kit_message *m)
{
	size_t frees = p.b.own_srx.frees;

	discard(m);
	kit_settle(); /* a completion has no context that is known */
	if (p.b.own_srx.frees != frees)
		kit_broken("a discarded entry of %zu bytes was given back",
			   m->len);
}

static void discarded(void)
{
	each(discard_silently);
}

static void discard_and_end(struct kit_message *m)
{
	kit_wait(discard(m));
}

static void discarded_sends(void)
{
	each(discard_and_end);
}

static void discard_and_go_on(struct kit_message *m)
{
	struct kit_message next = small(500 + m->tag);

	next.kind = m->kind;
	discard(m);
	carry(&next, next.len);
}

static void discarded_next(void)
{
	each(discard_and_go_on);
}

/* ---- two endpoints in one domain ------------------------------------------ */

/* Messages to b and c wait at b and c. */
static void two_endpoints(struct kit_node *c)
{
	struct kit_message m = small(1);
	struct kit_op *send, *recv;
	fi_addr_t to = kit_insert(&p.a, c, 2, NULL);

	kit_insert(c, &p.a, 77, NULL);
	send = kit_send(&p.a, p.to, &m);
	kit_wait_queued(&p.b, 1);
	m = small(2);
	kit_send(&p.a, to, &m);
	kit_wait_queued(c, 1);
	kit_srx_discard(&c->own_srx);
	m = small(1);
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	kit_wait(recv);
	kit_check(recv, send, &m);
}

/* @flags: of the nodes, which are in one domain. */
static void one_domain(struct kit_node *c, int flags)
{
	kit_world_open(&p.world, 0, 0);
	kit_node_open(&p.a, &p.world, flags);
	kit_node_open(&p.b, &p.world, flags);
	kit_node_open(c, &p.world, flags);
	if (!flags)
		return;
	kit_node_start(&p.a);
	kit_node_start(&p.b);
	kit_node_start(c);
}

static void three_endpoints(int flags)
{
	static struct kit_node c;

	one_domain(&c, flags);
	p.to = kit_insert(&p.a, &p.b, 1, NULL);
	kit_insert(&p.b, &p.a, 77, &p.source);
	two_endpoints(&c);
}

static void second_srx(void)
{
	three_endpoints(0);
}

/* All three SRXs are open before the first is bound. */
static void srx_of_each(void)
{
	three_endpoints(KIT_NO_BIND);
}

#define PEER "fi_peer(3)"
#define QUEUE "fi_ops_srx_owner::queue_msg() / queue_tag()"
#define START "fi_ops_srx_peer::start_msg() / start_tag()"
#define DISCARD "fi_ops_srx_peer::discard_msg() / discard_tag()"

const struct kit_rule kit_rules_unexpected[] = {
	{ "queue.data", "guide", NULL, 0,
	  "the entry of a message that waits has the data of the message",
	  data },
	{ "queue.crowd", PEER, QUEUE, 1,
	  "1500 messages may wait, and keep their order", crowd },
	{ "start.sizes", PEER, START, 1,
	  "messages of all lengths that waited arrive when they are started",
	  sizes },
	{ "start.room", PEER, START, 1,
	  "a message that waited leaves the rest of a larger buffer alone",
	  rooms },
	{ "start.fit", PEER, START, 1,
	  "a message that waited for a shorter buffer ends with FI_ETRUNC",
	  truncated },
	{ "start.vector", PEER, START, 1,
	  "a message that waited may get several buffers", vectors },
	{ "start.order", PEER, START, 1,
	  "messages that waited may be started in any order", any_order },
	{ "start.free", PEER, "fi_ops_srx_owner:: free_entry()", 1,
	  "the entry of a message that waited is given back once", frees },
	{ "discard.silent", PEER, DISCARD, 1,
	  "a discarded message has no completion; the owner frees its entry",
	  discarded },
	{ "discard.send", PEER, DISCARD, 1,
	  "the send of a discarded message completes", discarded_sends },
	{ "discard.next", PEER, DISCARD, 1,
	  "messages behind a discarded one arrive", discarded_next },
	{ "srx.second", PEER, "PEER SRX", 2,
	  "a domain imports the SRXs of several endpoints, one by one",
	  second_srx },
	{ "srx.each", PEER, "PEER SRX", 2,
	  "an endpoint uses the SRX that is bound to it, not the last one",
	  srx_of_each },
	{ 0 },
};
