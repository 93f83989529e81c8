/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about addresses and the sources of messages.
 *
 * No lock: one thread.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "kit/node.h"
#include "kit/rule.h"

enum { SENDERS = 3 };

static struct kit_pair p;

static struct kit_message message(uint64_t tag)
{
	return (struct kit_message){ .kind = kit_kind(&p.world),
				     .len = 40,
				     .tag = tag,
				     .flags = FI_COMPLETION };
}

/* A message to b waits, whose source b does not know. */
static struct kit_op *stranger(const struct kit_message *m)
{
	struct kit_op *send = kit_send(&p.a, p.to, m);

	kit_wait_queued(&p.b, 1);
	return send;
}

static void unknown(void)
{
	struct kit_message m;

	kit_pair_open(&p, KIT_UNKNOWN);
	m = message(1);
	stranger(&m);
	if (p.b.own_srx.ask.addr != FI_ADDR_UNSPEC)
		kit_broken("get_* has the source %#llx for an address that "
			   "was not inserted",
			   (unsigned long long)p.b.own_srx.ask.addr);
	kit_srx_discard(&p.b.own_srx);
}

static void received_unknown(void)
{
	struct kit_message m;
	struct kit_op *send, *recv;

	kit_pair_open(&p, KIT_UNKNOWN);
	m = message(1);
	send = stranger(&m);
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	kit_wait(recv);
	kit_check(recv, send, &m);
	kit_check_source(recv, FI_ADDR_UNSPEC);
}

static void resolved(void)
{
	struct kit_message m;
	struct kit_op *send, *recv;
	fi_addr_t found;

	kit_pair_open(&p, KIT_UNKNOWN);
	m = message(1);
	send = stranger(&m);
	kit_insert(&p.b, &p.a, 77, &p.source);
	kit_settle();
	found = p.b.own_srx.queued->rx.addr;
	if (!p.b.own_srx.resolves)
		kit_broken("fi_av_insert does not call foreach_unspec_addr");
	if (found != p.source)
		kit_broken("the message that waits has the source %#llx "
			   "behind the insert, not %#llx",
			   (unsigned long long)found,
			   (unsigned long long)p.source);
	recv = kit_recv(&p.b, &m, m.len, p.source);
	kit_wait(recv);
	kit_check(recv, send, &m);
}

static void others_stay_unknown(void)
{
	static struct kit_node c;
	struct kit_message m;

	kit_pair_open(&p, KIT_UNKNOWN);
	kit_node_open(&c, NULL, 0);
	m = message(1);
	stranger(&m);
	kit_insert(&p.b, &c, 5, NULL);
	kit_settle();
	if (p.b.own_srx.queued->rx.addr != FI_ADDR_UNSPEC)
		kit_broken("the insert of another address gave a message that "
			   "waits the source %#llx",
			   (unsigned long long)p.b.own_srx.queued->rx.addr);
	kit_srx_discard(&p.b.own_srx);
}

/* Numbers of the owner in no order; 0 is one. */
static void user_ids(void)
{
	static const fi_addr_t id[SENDERS] = { 7, 0, 3 };
	static struct kit_node from[SENDERS];
	fi_addr_t to[SENDERS], source[SENDERS];
	struct kit_message m;
	struct kit_op *recv, *send;
	int i, waits;

	kit_world_open(&p.world, 0, 0);
	kit_node_open(&p.b, NULL, 0);
	for (i = 0; i < SENDERS; i++) {
		kit_node_open(&from[i], NULL, 0);
		to[i] = kit_insert(&from[i], &p.b, 1, NULL);
		kit_insert(&p.b, &from[i], id[i], &source[i]);
	}
	if (!p.b.world->user_ids && p.world.info->caps & FI_AV_USER_ID)
		kit_broken("FI_AV_USER_ID is granted, and refused by "
			   "fi_av_insert");
	if (!p.b.world->user_ids)
		kit_absent("FI_AV_USER_ID");
	for (i = 0; i < 2 * SENDERS; i++) {
		waits = i < SENDERS;
		m = message((uint64_t)i);
		recv = waits ? NULL : kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
		send = kit_send(&from[i % SENDERS], to[i % SENDERS], &m);
		if (waits) {
			kit_wait_queued(&p.b, 1);
			recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
		}
		kit_wait(recv);
		kit_check(recv, send, &m);
		kit_check_source(recv, source[i % SENDERS]);
	}
}

static void before_enable(void)
{
	static struct kit_node c;
	char name[KIT_NAME_BYTES] = "";
	struct kit_op *send, *recv;
	struct kit_message m;
	fi_addr_t addr = 9;
	int ret;

	kit_pair_open(&p, 0);
	kit_node_open(&c, NULL, KIT_NO_ENABLE);
	kit_name(&p.b, name);
	kit_step("fi_av_insert between fi_ep_bind and fi_enable");
	ret = fi_av_insert(c.av, name, 1, &addr,
			   p.b.world->user_ids ? FI_AV_USER_ID : 0, NULL);
	if (ret != 1)
		kit_broken("fi_av_insert between fi_ep_bind and fi_enable "
			   "returned %d",
			   ret);
	kit_step("fi_enable behind fi_av_insert");
	ret = fi_enable(c.ep);
	if (ret)
		kit_broken("fi_enable behind fi_av_insert: %s",
			   fi_strerror(-ret));
	kit_insert(&p.b, &c, 12, &p.source);
	m = message(1);
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	send = kit_send(&c, addr, &m);
	kit_wait(recv);
	kit_check(recv, send, &m);
	kit_check_source(recv, p.source);
}

static void lookup(void)
{
	char found[KIT_NAME_BYTES] = "";
	size_t len = sizeof(found), whole, part, at;
	int ret;

	kit_pair_open(&p, 0);
	kit_step("fi_av_lookup");
	ret = fi_av_lookup(p.a.av, p.to, found, &len);
	if (ret == -FI_ENOSYS)
		kit_absent("fi_av_lookup");
	if (ret || !len || len > sizeof(found))
		kit_broken("fi_av_lookup returned %d and %zu bytes", ret, len);
	for (part = 0; part < 2; part++) {
		memset(found, '#', sizeof(found));
		whole = part;
		kit_step("fi_av_lookup with room for %zu bytes", part);
		ret = fi_av_lookup(p.a.av, p.to, found, &whole);
		for (at = part; at < sizeof(found); at++) {
			if (found[at] != '#')
				kit_broken("fi_av_lookup with room for %zu "
					   "bytes wrote byte %zu",
					   part, at);
		}
		if (whole != len)
			kit_broken("fi_av_lookup with room for %zu bytes "
				   "reported %zu of %zu",
				   part, whole, len);
	}
}

static void invalid(void)
{
	char found[KIT_NAME_BYTES];
	size_t len = sizeof(found);
	fi_addr_t wrong = 100;
	int ret;

	kit_pair_open(&p, 0);
	kit_step("fi_av_lookup of an address that was not inserted");
	ret = fi_av_lookup(p.a.av, wrong, found, &len);
	if (ret == -FI_ENOSYS)
		kit_absent("fi_av_lookup");
	if (!ret)
		kit_broken("fi_av_lookup finds %zu bytes for an address that "
			   "was not inserted",
			   len);
	kit_step("fi_av_lookup of an address that is far out of range");
	if (!fi_av_lookup(p.a.av, 1ULL << 40, found, &len))
		kit_broken("fi_av_lookup finds an address that is far out of "
			   "range");
	kit_step("fi_av_remove of an address that was not inserted");
	(void)fi_av_remove(p.a.av, &wrong, 1, 0);
}

static void straddr(void)
{
	char name[KIT_NAME_BYTES] = "", text[KIT_NAME_BYTES];
	size_t len = sizeof(text);

	kit_pair_open(&p, 0);
	kit_name(&p.b, name);
	kit_step("fi_av_straddr");
	if (!fi_av_straddr(p.a.av, name, text, &len) || len < 4)
		kit_absent("fi_av_straddr");
	memset(text, '#', sizeof(text));
	len = 3;
	kit_step("fi_av_straddr with room for 3 bytes");
	fi_av_straddr(p.a.av, name, text, &len);
	if (text[3] != '#')
		kit_broken("fi_av_straddr with room for 3 bytes wrote more");
	if (text[0] && text[1] && text[2])
		kit_broken("a text that fi_av_straddr cut has no end");
}

static void removed(void)
{
	static struct kit_node c;
	struct kit_message m;
	struct kit_op *send, *recv;
	fi_addr_t to_c;
	int ret;

	kit_pair_open(&p, 0);
	kit_node_open(&c, NULL, 0);
	to_c = kit_insert(&p.a, &c, 2, NULL);
	kit_insert(&c, &p.a, 77, NULL);
	kit_step("fi_av_remove");
	ret = fi_av_remove(p.a.av, &to_c, 1, 0);
	if (ret)
		kit_broken("fi_av_remove: %s", fi_strerror(-ret));
	m = message(1);
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	send = kit_send(&p.a, p.to, &m);
	kit_wait(recv);
	kit_check(recv, send, &m);
	kit_check_source(recv, p.source);
	to_c = kit_insert(&p.a, &c, 3, NULL);
	recv = kit_recv(&c, &m, m.len, FI_ADDR_UNSPEC);
	kit_wait(kit_send(&p.a, to_c, &m));
	kit_wait(recv);
}

/* A node whose name is @name. */
static void open_named(struct kit_node *node, char *name)
{
	int ret;

	kit_node_open(node, &p.world, KIT_NO_ENABLE);
	kit_step("fi_setname");
	ret = fi_setname(&node->ep->fid, name, strlen(name) + 1);
	if (ret)
		kit_absent("fi_setname: %s", fi_strerror(-ret));
	kit_step("fi_enable");
	ret = fi_enable(node->ep);
	if (ret)
		kit_broken("fi_enable: %s", fi_strerror(-ret));
}

static void prefixes(void)
{
	static struct kit_node c;
	char b_name[64], c_name[64];
	struct kit_message m;
	struct kit_op *recv;
	fi_addr_t to_c;

	kit_world_open(&p.world, 0, 0);
	if (p.world.info->addr_format != FI_ADDR_STR)
		kit_absent("names that are text");
	snprintf(b_name, sizeof(b_name), "kit-%d-11", (int)getpid());
	snprintf(c_name, sizeof(c_name), "kit-%d-1", (int)getpid());
	open_named(&p.b, b_name);
	open_named(&c, c_name);
	kit_node_open(&p.a, NULL, 0);
	p.to = kit_insert(&p.a, &p.b, 1, NULL);
	to_c = kit_insert(&p.a, &c, 2, NULL);
	kit_insert(&p.b, &p.a, 77, NULL);
	kit_step("fi_av_remove");
	if (fi_av_remove(p.a.av, &to_c, 1, 0))
		kit_broken("fi_av_remove failed");
	m = message(1);
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	kit_wait(kit_send(&p.a, p.to, &m));
	kit_wait(recv);
}

#define PEER "fi_peer(3)"
#define UNSPEC "fi_ops_srx_owner::foreach_unspec_addr()"
#define FLOW "EXAMPLE PEER SRX RECEIVE FLOW"

const struct kit_rule kit_rules_address[] = {
	{ "source.unknown", PEER, "fi_ops_srx_owner::get_msg() / get_tag()", 1,
	  "a source that was not inserted is FI_ADDR_UNSPEC", unknown },
	{ "source.any", PEER, FLOW, 2,
	  "a message of unknown source is received from any source",
	  received_unknown },
	{ "source.resolve", PEER, FLOW, 3,
	  "an insert tells the owner the sources of messages that wait",
	  resolved },
	{ "source.others", PEER, UNSPEC, 1,
	  "an insert of another address leaves a source unknown",
	  others_stay_unknown },
	{ "source.ids", "fi_av(3)", "FI_AV_USER_ID", 0,
	  "sources are the numbers that the owner chose, 0 included",
	  user_ids },
	{ "av.early", "fi_endpoint(3)", "fi_enable", 0,
	  "addresses may be inserted between fi_ep_bind and fi_enable",
	  before_enable },
	{ "av.lookup", "fi_av(3)", "fi_av_lookup", 0,
	  "fi_av_lookup writes what fits, and reports the length", lookup },
	{ "av.invalid", "fi_av(3)", "fi_av_lookup", 0,
	  "an address that was not inserted is refused", invalid },
	{ "av.text", "fi_av(3)", "fi_av_straddr", 0,
	  "fi_av_straddr cuts its text to the room, and ends it", straddr },
	{ "av.remove", "fi_av(3)", "fi_av_remove", 0,
	  "an address that is removed may be inserted again; others stay",
	  removed },
	{ "av.prefix", "fi_av(3)", "fi_av_remove", 0,
	  "an address stays if one is removed whose name begins as its does",
	  prefixes },
	{ 0 },
};
