/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about how operations, entries and objects of an owner end.
 *
 * No lock: one thread.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/app.h"
#include "kit/peer.h"
#include "kit/rule.h"

enum { MANY = 3000, ROOM = 64 };

static void cancel(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *first, *second, *send;
	ssize_t ret;

	kit_app_open(0);
	first = kit_app_recv(1, &m, ROOM, -1);
	second = kit_app_recv(1, &m, ROOM, -1);
	ret = fi_cancel(&kit_app.node[1].ep->fid, first);
	if (ret)
		kit_broken("fi_cancel: %s", fi_strerror((int)-ret));
	kit_app_failed(first, FI_ECANCELED);
	send = kit_app_send(0, 1, &m);
	kit_app_wait(second);
	kit_app_check(second, send, &m);
}

/* More entries than an owner that loses some can have; half of them wait first. */
static void free_entries(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *recv, *send;
	int i;

	kit_app_open(0);
	for (i = 0; i < MANY; i++) {
		send = i % 2 ? kit_app_send_early(0, 1, &m) : NULL;
		recv = kit_app_recv(1, &m, ROOM, -1);
		if (!send)
			send = kit_app_send(0, 1, &m);
		kit_app_wait(recv);
		kit_app_check(recv, send, &m);
		kit_app_wait(send);
	}
}

/* ---- closing --------------------------------------------------------------- */

static void close_all(void)
{
	kit_app_open(KIT_APP_COUNTED);
	kit_app_close();
}

static void close_waiting(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };

	kit_app_open(0);
	kit_app_send_early(0, 1, &m);
	kit_app_send_early(0, 1, &m);
	kit_app_close();
	kit_peer_no_fault(KIT_ON_LEFT);
	kit_peer_no_fault(KIT_ON_START);
}

static void close_posted(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };

	kit_app_open(0);
	kit_app_recv(1, &m, ROOM, -1);
	kit_app_close();
	kit_peer_no_fault(KIT_ON_CLOSE);
}

static void close_one(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *recv, *send;

	kit_app_open(KIT_APP_ONE_DOMAIN);
	if (kit_app_insert(1, 2) || kit_app_insert(2, 1))
		kit_broken("a third address cannot be inserted");
	kit_app_close_node(0);
	recv = kit_app_recv(2, &m, ROOM, -1);
	send = kit_app_send(1, 2, &m);
	kit_app_wait(recv);
	kit_app_check(recv, send, &m);
}

static void close_stays(void)
{
	close_all();
	kit_peer_no_fault(KIT_ON_STAYS);
}

static void close_order(void)
{
	close_all();
	kit_peer_no_fault(KIT_ON_LAST);
}

static void close_application(void)
{
	close_all();
	kit_peer_no_fault(KIT_ON_CLOSE);
}

static void close_peers(void)
{
	static const char *const what[] = {
		[KIT_FABRIC] = "fabric",       [KIT_DOMAIN] = "domain",
		[KIT_EQ] = "event queue",      [KIT_CQ] = "completion queue",
		[KIT_CNTR] = "counter",	       [KIT_AV] = "address vector",
		[KIT_SRX] = "receive context", [KIT_EP] = "endpoint",
	};
	size_t i;

	close_all();
	for (i = 0; i < KIT_OBJECTS; i++) {
		if (kit_peer_seen.opens[i] != kit_peer_seen.closes[i])
			kit_broken("the owner opens %zu and closes %zu objects "
				   "of the kind %s",
				   kit_peer_seen.opens[i],
				   kit_peer_seen.closes[i], what[i]);
	}
}

static void open_again(void)
{
	close_all();
	kit_app_open(0);
}

#define PEER "fi_peer(3)"

const struct kit_rule kit_owner_end[] = {
	{ "end.cancel", "fi_endpoint(3)", "fi_cancel", 0,
	  "a receive that is cancelled ends so, and gets no message", cancel },
	{ "end.free", PEER, "fi_ops_srx_owner:: free_entry()", 1,
	  "thousands of entries are given out and taken back", free_entries },
	{ "close.queued", PEER, "fi_ops_srx_owner::queue_msg() / queue_tag()",
	  1, "messages that wait are discarded before the endpoint closes",
	  close_waiting },
	{ "close.receives", "fi_endpoint(3)", "fi_close", 0,
	  "an endpoint with receives closes", close_posted },
	{ "close.one", "fi_endpoint(3)", "fi_close", 0,
	  "the other endpoints of a domain stay usable when one closes",
	  close_one },
	{ "close.valid", PEER, "PEER CQ", 3,
	  "what is lent stays until the peer's object is closed", close_stays },
	{ "close.order", "fi_endpoint(3)", "fi_close", 0,
	  "the peer's endpoint closes before what is bound to it, and gets no "
	  "call then",
	  close_order },
	{ "close.peer", PEER, "DESCRIPTION", 6,
	  "each object that the owner opens at the peer is closed",
	  close_peers },
	{ "close.owner", "fi_endpoint(3)", "fi_close", 0,
	  "the application's objects close", close_application },
	{ "close.again", "fi_endpoint(3)", "fi_close", 0,
	  "what has closed may be opened again", open_again },
	{ 0 },
};
