/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about messages that come before the application has posted a receive.
 *
 * No lock: one thread.
 */
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "kit/app.h"
#include "kit/peer.h"
#include "kit/rule.h"

enum { MANY = 40, ROOM = 128 };

static struct kit_app_msg plain(void)
{
	return (struct kit_app_msg){ KIT_APP_FIRST, ROOM, 3, 0x1234,
				     FI_REMOTE_CQ_DATA };
}

/* Post a receive for @send, which waits, and check it. */
static void fetch(const struct kit_op *send, const struct kit_app_msg *m,
		  int source)
{
	struct kit_op *recv = kit_app_recv(1, m, ROOM, source);

	kit_app_wait(recv);
	kit_app_check(recv, send, m);
}

/* A message of each kind that waits, is received, and the faults on @subject. */
static void waits(enum kit_about subject)
{
	static const enum kit_kind kinds[] = { KIT_TAG, KIT_MSG };
	struct kit_app_msg m;
	size_t i;

	kit_app_open(0);
	kit_peer_want.room = ROOM;
	for (i = 0; i < 2; i++) {
		m = plain();
		m.kind = kinds[i];
		if (kit_app_has(m.kind == KIT_TAG ? FI_TAGGED : FI_MSG))
			fetch(kit_app_send_early(0, 1, &m), &m, -1);
	}
	kit_peer_no_fault(subject);
}

static void entry(void)
{
	waits(KIT_ON_ENTRY);
}

static void entry_srx(void)
{
	waits(KIT_ON_ENTRY_SRX);
}

static void start(void)
{
	const struct kit_app_msg other = { KIT_APP_FIRST, ROOM, 4, 0, 0 };
	struct kit_app_msg m;
	struct kit_op *recv;

	kit_app_open(0);
	m = plain();
	kit_app_send_early(0, 1, &m);
	if (kit_app_kind() == KIT_TAG)
		kit_app_recv(1, &other, ROOM, -1);
	kit_app_settle();
	if (kit_peer_seen.starts)
		kit_broken("a message was started without a receive");
	recv = kit_app_recv(1, &m, ROOM, -1);
	kit_app_settle();
	if (kit_peer_seen.starts != 1 || !recv->ended)
		kit_broken("a receive was posted for a message that waits, and "
			   "it was started %zu times",
			   kit_peer_seen.starts);
	kit_peer_no_fault(KIT_ON_START);
}

static void fields(void)
{
	waits(KIT_ON_MATCH);
	kit_peer_no_fault(KIT_ON_BUFFER);
}

static void context(void)
{
	waits(KIT_ON_CONTEXT);
}

static void later(void)
{
	struct kit_app_msg m;

	kit_app_open(0);
	kit_peer_do.later = 1;
	m = plain();
	fetch(kit_app_send_early(0, 1, &m), &m, -1);
}

static void in_order(void)
{
	struct kit_op *send[MANY];
	struct kit_app_msg m;
	int i;

	kit_app_open(0);
	m = plain();
	for (i = 0; i < MANY; i++)
		send[i] = kit_app_send_early(0, 1, &m);
	for (i = 0; i < MANY; i++)
		fetch(send[i], &m, -1);
	kit_peer_no_fault(KIT_ON_START);
}

/* A message that waits goes before one that comes. */
static void before_new(void)
{
	struct kit_op *first, *second;
	struct kit_app_msg m;

	kit_app_open(0);
	m = plain();
	first = kit_app_send_early(0, 1, &m);
	kit_peer_do.hold = 1;
	second = kit_app_send(0, 1, &m);
	fetch(first, &m, -1);
	kit_peer_do.hold = 0;
	fetch(second, &m, -1);
}

static void too_long(void)
{
	struct kit_app_msg m;
	struct kit_op *recv;

	kit_app_open(0);
	m = plain();
	kit_app_send_early(0, 1, &m);
	recv = kit_app_recv(1, &m, 28, -1);
	kit_app_failed(recv, FI_ETRUNC);
	kit_op_guards(recv);
	if (recv->olen != ROOM - 28)
		kit_broken("%d bytes did not fit, the error entry has %zu",
			   ROOM - 28, recv->olen);
}

/* ---- unknown sources ------------------------------------------------------- */

/* Node 1 has a message of node 0, whose source the peer does not tell. */
static struct kit_op *hidden(const struct kit_app_msg *m)
{
	kit_peer_do.hide = 1;
	return kit_app_send_early(0, 1, m);
}

/* The peer of node 1 learns an address, and tells sources from now on. */
static void learn(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, 8, 0x77, 0, 0 };
	const size_t inserts = kit_peer_seen.inserts;

	kit_peer_do.hide = 0;
	if (kit_app_insert(1, 2) || kit_app_insert(2, 1))
		kit_broken("a third address cannot be inserted");
	/* Owners may insert into the peer's vector when a pair meets. */
	kit_app_recv(2, &m, 8, -1);
	kit_app_wait(kit_app_send(1, 2, &m));
	kit_app_settle();
	if (kit_peer_seen.inserts == inserts)
		kit_absent("the owner inserts no address into the peer's "
			   "vector");
}

static void unknown_any(void)
{
	struct kit_app_msg m;

	kit_app_open(0);
	m = plain();
	fetch(hidden(&m), &m, -1);
}

static void unknown_directed(void)
{
	struct kit_app_msg m;
	struct kit_op *recv;

	kit_app_open_for(FI_DIRECTED_RECV, "no FI_DIRECTED_RECV");
	m = plain();
	hidden(&m);
	recv = kit_app_recv(1, &m, ROOM, 0);
	kit_app_settle();
	if (recv->ended || kit_peer_seen.starts)
		kit_broken("a receive from one source got a message whose "
			   "source is unknown");
}

static void unspec_ask(void)
{
	struct kit_app_msg m;

	kit_app_open_for(FI_DIRECTED_RECV, "no FI_DIRECTED_RECV");
	m = plain();
	hidden(&m);
	learn();
	if (!kit_peer_seen.asked)
		kit_broken("foreach_unspec_addr() did not ask for the source "
			   "of a message that waits");
}

static void unspec_only(void)
{
	struct kit_app_msg m;

	kit_app_open_for(FI_DIRECTED_RECV, "no FI_DIRECTED_RECV");
	m = plain();
	kit_app_send_early(0, 1, &m);
	hidden(&m);
	learn();
	kit_peer_no_fault(KIT_ON_UNSPEC);
}

/* A receive that was posted before the source is known, and one behind. */
static void unspec_match(void)
{
	struct kit_op *first, *second, *recv;
	struct kit_app_msg m;

	kit_app_open_for(FI_DIRECTED_RECV, "no FI_DIRECTED_RECV");
	m = plain();
	first = hidden(&m);
	second = kit_app_send_early(0, 1, &m);
	recv = kit_app_recv(1, &m, ROOM, 0);
	learn();
	kit_app_wait(recv);
	kit_app_check(recv, first, &m);
	fetch(second, &m, 0);
}

/* ---- discarding ------------------------------------------------------------ */

/* FI_PEEK with @flags at node 1; out: *@ret, of the call. */
static struct kit_op *look_for(uint64_t flags, ssize_t *ret)
{
	struct kit_op *op = kit_op_new(NULL, KIT_TAG, 0, 0);
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC,
				     .tag = 3,
				     .context = op };

	op->is_recv = 1;
	op->what = "peek";
	*ret = fi_trecvmsg(kit_app.node[1].ep, &msg,
			   FI_PEEK | flags | FI_COMPLETION);
	return op;
}

static void discard(void)
{
	struct kit_app_msg m;
	struct kit_op *op, *next;
	ssize_t ret;

	kit_app_open_for(FI_TAGGED, "no tagged messages");
	m = plain();
	kit_app_send_early(0, 1, &m);
	next = kit_app_send_early(0, 1, &m);
	op = look_for(FI_DISCARD, &ret);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP || ret == -FI_EINVAL)
		kit_absent("fi_trecvmsg with FI_PEEK and FI_DISCARD: %s",
			   fi_strerror((int)-ret));
	if (ret)
		kit_broken("fi_trecvmsg with FI_PEEK and FI_DISCARD: %s",
			   fi_strerror((int)-ret));
	kit_app_wait(op);
	if (op->err)
		kit_broken("a message that waits is not found: %s",
			   fi_strerror(op->err));
	kit_app_settle();
	if (kit_peer_seen.discards != 1)
		kit_broken("the peer was told %zu times to discard a message",
			   kit_peer_seen.discards);
	kit_peer_no_fault(KIT_ON_START);
	kit_peer_no_fault(KIT_ON_CONTEXT);
	fetch(next, &m, -1);
}

static void peek(void)
{
	struct kit_app_msg m;
	struct kit_op *op, *send;
	ssize_t ret;

	kit_app_open_for(FI_TAGGED, "no tagged messages");
	m = plain();
	send = kit_app_send_early(0, 1, &m);
	op = look_for(0, &ret);
	if (ret)
		kit_absent("fi_trecvmsg refuses FI_PEEK");
	kit_app_wait(op);
	if (op->err || op->len != ROOM || op->data != m.data)
		kit_broken("FI_PEEK of %d bytes with data %#llx finds %zu and "
			   "%#llx (error %d)",
			   ROOM, (unsigned long long)m.data, op->len,
			   (unsigned long long)op->data, op->err);
	if (kit_peer_seen.starts || kit_peer_seen.discards)
		kit_broken("FI_PEEK started or discarded the message");
	fetch(send, &m, -1);
}

#define PEER "fi_peer(3)"
#define QUEUE "fi_ops_srx_owner::queue_msg() / queue_tag()"
#define START "fi_ops_srx_peer::start_msg() / start_tag()"
#define UNSPEC "fi_ops_srx_owner::foreach_unspec_addr()"
#define FLOW "EXAMPLE PEER SRX RECEIVE FLOW"

const struct kit_rule kit_owner_wait[] = {
	{ "wait.entry", PEER, "fi_peer_rx_entry", 1,
	  "an entry without a receive has the message's tag and size", entry },
	{ "wait.srx", "guide", NULL, 0,
	  "srx of an entry is what was lent to the peer that asks", entry_srx },
	{ "wait.context", PEER, "fi_peer_rx_entry", 1,
	  "peer_context stays as the peer has set it", context },
	{ "wait.order", PEER, "PEER SRX", 1,
	  "messages that wait are received in their order", in_order },
	{ "wait.first", PEER, "PEER SRX", 1,
	  "a message that waits goes before one that comes", before_new },
	{ "start.once", PEER, QUEUE, 1,
	  "a message that waits is started once, by a receive that matches",
	  start },
	{ "start.fields", PEER, START, 1,
	  "an entry that is started has the receive's buffer, kind and flags",
	  fields },
	{ "start.later", PEER, START, 1,
	  "a message that is started may end at any later time", later },
	{ "start.long", PEER, START, 1,
	  "a message that waits and does not fit ends in FI_ETRUNC", too_long },
	{ "unknown.any", PEER, FLOW, 2,
	  "a receive from any source starts a message of unknown source",
	  unknown_any },
	{ "unknown.directed", PEER, FLOW, 2,
	  "a receive from one source leaves a message of unknown source alone",
	  unknown_directed },
	{ "unspec.ask", PEER, UNSPEC, 1,
	  "get_addr() is called for messages of unknown source", unspec_ask },
	{ "unspec.only", PEER, UNSPEC, 1,
	  "get_addr() is called for no other message", unspec_only },
	{ "unspec.match", PEER, FLOW, 3,
	  "receives from one source start messages whose source became known",
	  unspec_match },
	{ "discard.once", PEER, QUEUE, 1,
	  "a message that the application discards is discarded once",
	  discard },
	{ "peek.data", "guide", NULL, 0,
	  "FI_PEEK reports size and data of a message, and starts nothing",
	  peek },
	{ 0 },
};
