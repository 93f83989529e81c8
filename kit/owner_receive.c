/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about messages for which the application has posted a receive, and about
 * completions and counters of an owner.
 *
 * No lock: one thread.
 */
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "kit/app.h"
#include "kit/node.h"
#include "kit/peer.h"
#include "kit/rule.h"

enum { MANY = 40, ROOM = 128 };

static void message(void)
{
	kit_app_open(0);
}

/* One message of @len bytes into a receive of as many, from node 0 to node 1. */
static void one(enum kit_kind kind, size_t len)
{
	const struct kit_app_msg m = { kind, len, len + 1, len + 2,
				       FI_REMOTE_CQ_DATA };
	struct kit_op *recv = kit_app_recv(1, &m, len, -1), *send;

	kit_peer_want.room = len;
	send = kit_app_send(0, 1, &m);
	kit_app_wait(send);
	kit_app_wait(recv);
	kit_app_check(recv, send, &m);
}

static void each_kind(void)
{
	if (kit_app_has(FI_TAGGED))
		one(KIT_TAG, 64);
	if (kit_app_has(FI_MSG))
		one(KIT_MSG, 64);
}

static void send_sizes(void)
{
	size_t i;

	kit_app_open(0);
	for (i = 0; i < KIT_SIZES; i++)
		one(kit_app_kind(), kit_size[i]);
	kit_peer_no_fault(KIT_ON_ADDR);
}

static void send_again(void)
{
	kit_app_open(0);
	kit_peer_do.busy = 7;
	each_kind();
	if (kit_peer_do.busy)
		kit_broken("a send that was refused was not tried again");
}

static void send_error(void)
{
	const struct kit_app_msg m = { KIT_TAG, 64, 9, 0, 0 };

	kit_app_open_for(FI_TAGGED, "no tagged messages");
	kit_peer_do.fail_send = FI_ECONNRESET;
	kit_app_failed(kit_app_send(0, 1, &m), FI_ECONNRESET);
	kit_peer_do.fail_send = 0;
	one(KIT_TAG, 64);
}

/* Messages of each kind and size, then the faults on one subject. */
static void entries(enum kit_about subject)
{
	kit_app_open(0);
	each_kind();
	one(kit_app_kind(), 0);
	kit_peer_no_fault(subject);
}

static void get_flags(void)
{
	entries(KIT_ON_MATCH);
}

static void get_buffer(void)
{
	entries(KIT_ON_BUFFER);
}

static void get_desc(void)
{
	entries(KIT_ON_DESC);
}

static void get_want(void)
{
	entries(KIT_ON_WANT);
}

static void get_result(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, 32, 5, 0, 0 };
	size_t before;

	kit_app_open(0);
	before = kit_peer_seen.matches;
	one(kit_app_kind(), 32);
	if (kit_peer_seen.matches != before + 1)
		kit_broken("get_* did not return 0 for a receive that was "
			   "posted");
	kit_app_send_early(0, 1, &m);
	kit_peer_no_fault(KIT_ON_GET);
	kit_peer_no_fault(KIT_ON_QUEUE);
}

static void get_order(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *recv[MANY], *send[MANY];
	int i;

	kit_app_open(0);
	for (i = 0; i < MANY; i++)
		recv[i] = kit_app_recv(1, &m, ROOM, -1);
	for (i = 0; i < MANY; i++)
		send[i] = kit_app_send(0, 1, &m);
	for (i = 0; i < MANY; i++) {
		kit_app_wait(recv[i]);
		kit_app_check(recv[i], send[i], &m);
	}
}

/* A receive for @a, then one for @b: the second gets a message @b, or @wrong. */
static void second_gets(const struct kit_app_msg *a,
			const struct kit_app_msg *b, const char *wrong)
{
	struct kit_op *first = kit_app_recv(1, a, ROOM, -1);
	struct kit_op *second = kit_app_recv(1, b, ROOM, -1);
	struct kit_op *send = kit_app_send(0, 1, b);

	kit_app_wait(second);
	kit_app_check(second, send, b);
	if (first->ended)
		kit_broken("%s", wrong);
}

static void get_tag(void)
{
	const struct kit_app_msg a = { KIT_TAG, ROOM, 3, 0, 0 },
				 b = { KIT_TAG, ROOM, 4, 0, 0 };

	kit_app_open_for(FI_TAGGED, "no tagged messages");
	second_gets(&a, &b, "a receive of another tag got the message");
}

static void get_kind(void)
{
	const struct kit_app_msg a = { KIT_MSG, ROOM, 0, 0, 0 },
				 b = { KIT_TAG, ROOM, 0, 0, 0 };

	kit_app_open_for(FI_TAGGED | FI_MSG, "messages of one kind only");
	second_gets(&a, &b, "an untagged receive got a tagged message");
}

static void get_source(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *other, *right, *send;

	kit_app_open_for(FI_DIRECTED_RECV, "no FI_DIRECTED_RECV");
	if (kit_app_insert(1, 2))
		kit_broken("a third address cannot be inserted");
	other = kit_app_recv(1, &m, ROOM, 2);
	right = kit_app_recv(1, &m, ROOM, 0);
	send = kit_app_send(0, 1, &m);
	kit_app_wait(right);
	kit_app_check(right, send, &m);
	if (other->ended)
		kit_broken("a receive from another source got the message");
}

static void get_unknown(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *directed, *any;

	kit_app_open_for(FI_DIRECTED_RECV, "no FI_DIRECTED_RECV");
	directed = kit_app_recv(1, &m, ROOM, 0);
	any = kit_app_recv(1, &m, ROOM, -1);
	kit_peer_do.hide = 1;
	kit_app_send(0, 1, &m);
	kit_app_wait(any);
	if (directed->ended)
		kit_broken("a receive from one source got a message whose "
			   "source is unknown");
}

static void get_long(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, 1000, 3, 0, 0 };
	struct kit_op *recv;

	kit_app_open(0);
	recv = kit_app_recv(1, &m, 100, -1);
	kit_app_send(0, 1, &m);
	kit_app_failed(recv, FI_ETRUNC);
	kit_op_guards(recv);
	if (recv->olen != 900)
		kit_broken("900 bytes did not fit, the error entry has %zu",
			   recv->olen);
}

static void get_multi(void)
{
	const struct kit_app_msg m = { KIT_MSG, 100, 0, 0, 0 };
	struct kit_op *op = kit_op_new(NULL, KIT_MSG, 400, 0);
	struct iovec iov = { op->bytes, op->room };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC,
			      .context = op };
	const int64_t until = kit_now_ms() + kit_patience_ms();
	size_t least = 64, i;

	kit_app_open_for(FI_MSG | FI_MULTI_RECV, "no FI_MULTI_RECV");
	op->is_recv = op->is_multi = 1;
	if (fi_setopt(&kit_app.node[1].ep->fid, FI_OPT_ENDPOINT,
		      FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)) ||
	    fi_recvmsg(kit_app.node[1].ep, &msg, FI_MULTI_RECV | FI_COMPLETION))
		kit_broken("a receive of many messages cannot be posted");
	kit_peer_want.room = 0;
	for (i = 0; i < 4; i++)
		kit_app_wait(kit_app_send(0, 1, &m));
	while (op->ended < 4 && kit_now_ms() < until)
		kit_app_progress();
	for (i = 0; i < 4; i++) {
		if (op->ended < 4 || op->part[i].len != 100 ||
		    op->part[i].buf != op->bytes + 100 * i)
			kit_broken("message %zu of 4 is not behind the one "
				   "before in a receive of many",
				   i);
	}
	kit_app_settle();
	if (!(op->flags & FI_MULTI_RECV))
		kit_broken("no FI_MULTI_RECV when the buffer is used up");
}

/* ---- completions ----------------------------------------------------------- */

static void cq_write(void)
{
	kit_app_open(0);
	each_kind();
}

static void cq_source(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *recv;

	kit_app_open_for(FI_SOURCE, "no FI_SOURCE");
	if (kit_app_insert(1, 2) || kit_app_insert(2, 1))
		kit_broken("a third address cannot be inserted");
	recv = kit_app_recv(1, &m, ROOM, -1);
	kit_app_send(2, 1, &m);
	kit_app_wait(recv);
	if (recv->source != kit_app.node[1].addr[2])
		kit_broken("the source is %#llx, its address %#llx",
			   (unsigned long long)recv->source,
			   (unsigned long long)kit_app.node[1].addr[2]);
}

static void cq_error(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *recv;

	kit_app_open(0);
	recv = kit_app_recv(1, &m, ROOM, -1);
	kit_peer_do.fail = FI_ECONNRESET;
	kit_app_send(0, 1, &m);
	kit_app_failed(recv, FI_ECONNRESET);
	kit_peer_do.fail = 0;
	each_kind();
}

static void cq_drive(void)
{
	size_t before;

	kit_app_open(0);
	before = kit_peer_seen.drives;
	kit_app_settle();
	if (kit_peer_seen.drives == before)
		kit_broken("the peer's queue is not read");
	kit_peer_no_fault(KIT_ON_DRIVE);
}

static void counted(const char *what, struct fid_cntr *cntr, uint64_t least,
		    uint64_t (*read)(struct fid_cntr *cntr))
{
	const int64_t until = kit_now_ms() + kit_patience_ms();
	uint64_t n;

	do {
		kit_app_progress();
		n = read(cntr);
	} while (n < least && kit_now_ms() < until);
	if (n != least)
		kit_broken("%llu %s are counted, not %llu",
			   (unsigned long long)n, what,
			   (unsigned long long)least);
}

static uint64_t errors(struct fid_cntr *cntr)
{
	return fi_cntr_readerr(cntr);
}

static uint64_t values(struct fid_cntr *cntr)
{
	return fi_cntr_read(cntr);
}

static void open_counted(void)
{
	kit_app_open(KIT_APP_COUNTED);
	if (!kit_app.node[0].cntr[0])
		kit_absent("the owner has no counters");
}

/* Each node has sent and received one message when they have met. */
static void cntr_count(void)
{
	open_counted();
	one(kit_app_kind(), 64);
	counted("sends", kit_app.node[0].cntr[0], 2, values);
	counted("receives", kit_app.node[1].cntr[1], 2, values);
}

static void cntr_error(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, ROOM, 3, 0, 0 };
	struct kit_op *recv;

	open_counted();
	recv = kit_app_recv(1, &m, ROOM, -1);
	kit_peer_do.fail = FI_ECONNRESET;
	kit_app_send(0, 1, &m);
	kit_app_failed(recv, FI_ECONNRESET);
	counted("failures", kit_app.node[1].cntr[1], 1, errors);
}

#define PEER "fi_peer(3)"
#define GET "fi_ops_srx_owner::get_msg() / get_tag()"

const struct kit_rule kit_owner_message[] = {
	{ "message", PEER, "EXAMPLE PEER SRX RECEIVE FLOW", 1,
	  "messages of the application go through the peer, both ways",
	  message },
	{ 0 },
};

const struct kit_rule kit_owner_receive[] = {
	{ "send.sizes", "fi_msg(3)", NULL, 0,
	  "sends reach the peer with all of their bytes, data and tag",
	  send_sizes },
	{ "send.again", "fi_msg(3)", "RETURN VALUE", 0,
	  "a send that the peer cannot take yet is not lost", send_again },
	{ "send.error", PEER, "fi_ops_cq_owner::writeerr()", 1,
	  "a send that fails is an error entry with its context", send_error },
	{ "get.flags", PEER, GET, 2,
	  "a match has FI_RECV and its kind, tag and size", get_flags },
	{ "get.buffer", PEER, GET, 1, "a match has the receive's buffer",
	  get_buffer },
	{ "get.desc", "guide", NULL, 0, "desc of an entry is an array",
	  get_desc },
	{ "get.want", "guide", NULL, 0,
	  "a completion is asked for by FI_COMPLETION", get_want },
	{ "get.result", PEER, GET, 2,
	  "get_* returns 0 for a match, else -FI_ENOENT, with an entry",
	  get_result },
	{ "get.order", PEER, "PEER SRX", 1,
	  "messages get the receives in the order in which they were posted",
	  get_order },
	{ "get.tag", "fi_tagged(3)", NULL, 0,
	  "a message gets no receive of another tag", get_tag },
	{ "get.kind", PEER, GET, 2, "a tagged message gets no untagged receive",
	  get_kind },
	{ "get.source", "fi_getinfo(3)", "FI_DIRECTED_RECV", 0,
	  "a message gets no receive from another source", get_source },
	{ "get.unknown", PEER, "EXAMPLE PEER SRX RECEIVE FLOW", 2,
	  "a message of unknown source gets receives from any source only",
	  get_unknown },
	{ "get.long", PEER, GET, 1,
	  "a message that does not fit ends in FI_ETRUNC, and its rest is told",
	  get_long },
	{ "get.multi", PEER, GET, 1,
	  "messages of a receive of many lie behind one another", get_multi },
	{ "cq.write", PEER, "fi_ops_cq_owner::write()", 1,
	  "what the peer writes is read with all of its members", cq_write },
	{ "cq.source", PEER, "fi_ops_cq_owner::write()", 2,
	  "sources are addresses of the owner's address vector", cq_source },
	{ "cq.error", PEER, "fi_ops_cq_owner::writeerr()", 1,
	  "a receive that fails is an error entry with its context", cq_error },
	{ "cq.drive", PEER, "PEER CQ", 6,
	  "the peer is driven by fi_cq_read without a buffer", cq_drive },
	{ "cntr.count", PEER, "fi_ops_cntr_owner::inc()", 1,
	  "messages are counted once", cntr_count },
	{ "cntr.error", PEER, "fi_ops_cntr_owner::incerr()", 1,
	  "a receive that fails is counted as an error", cntr_error },
	{ 0 },
};
