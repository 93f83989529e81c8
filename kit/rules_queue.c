/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about completions and counters.
 *
 * No lock: one thread.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "kit/node.h"
#include "kit/rule.h"

enum { ROUNDS = 20, SHORT = 8 };

static struct kit_pair p;

/* A message of @m to a receive that waits for it; both end. */
static struct kit_op *carry(const struct kit_message *m)
{
	struct kit_op *recv = kit_recv(&p.b, m, m->len, FI_ADDR_UNSPEC);
	struct kit_op *send = kit_send(&p.a, p.to, m);

	kit_wait(recv);
	kit_wait(send);
	kit_check(recv, send, m);
	return recv;
}

static struct kit_message message(size_t len, uint64_t tag)
{
	return (struct kit_message){ .kind = kit_kind(&p.world),
				     .len = len,
				     .tag = tag,
				     .flags = FI_COMPLETION };
}

/* The rules about completions judge how it ends. */
static void one_message(void)
{
	struct kit_message m;
	struct kit_op *recv;

	kit_forgive();
	kit_pair_open(&p, 0);
	m = message(8, 1);
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	kit_send(&p.a, p.to, &m);
	kit_wait(recv);
}

static void once(void)
{
	struct kit_message m;
	int i;

	kit_pair_open(&p, 0);
	for (i = 0; i < ROUNDS; i++) {
		m = message(kit_size[i % KIT_SIZES], (uint64_t)i);
		carry(&m);
	}
	kit_settle();
}

static void fields(void)
{
	const uint64_t kinds = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV;
	struct kit_message m;
	struct kit_op *recv;
	uint64_t wanted;
	int kind;

	kit_pair_open(&p, 0);
	for (kind = 0; kind < KIT_KINDS; kind++) {
		if (!kit_offers(&p.world, kind))
			continue;
		m = message(100, 0x7001);
		m.kind = kind;
		recv = carry(&m);
		wanted = FI_RECV | (kind == KIT_TAG ? FI_TAGGED : FI_MSG);
		if ((recv->flags & kinds) != wanted)
			kit_broken("the flags of a receive are %#llx",
				   (unsigned long long)recv->flags);
	}
}

static void source(void)
{
	struct kit_message m;

	kit_pair_open(&p, 0);
	if (!(p.world.info->caps & FI_SOURCE))
		kit_absent("FI_SOURCE");
	m = message(32, 4);
	kit_check_source(carry(&m), p.source);
}

static void data(void)
{
	struct kit_message m;
	struct kit_op *recv;

	kit_pair_open(&p, 0);
	if (!p.world.info->domain_attr->cq_data_size)
		kit_absent("cq_data_size is 0");
	m = message(32, 5);
	m.data = 0xab;
	m.flags |= FI_REMOTE_CQ_DATA;
	recv = carry(&m);
	if (!(recv->flags & FI_REMOTE_CQ_DATA) || recv->data != 0xab)
		kit_broken("flags %#llx and data %#llx instead of 0xab",
			   (unsigned long long)recv->flags,
			   (unsigned long long)recv->data);
	m.flags &= ~FI_REMOTE_CQ_DATA;
	recv = carry(&m);
	if (recv->flags & FI_REMOTE_CQ_DATA)
		kit_broken("a message without data has FI_REMOTE_CQ_DATA");
}

static void error(void)
{
	struct kit_message m;
	struct kit_op *recv;

	kit_pair_open(&p, 0);
	m = message(64, 9);
	recv = kit_recv(&p.b, &m, SHORT, FI_ADDR_UNSPEC);
	kit_wait(kit_send(&p.a, p.to, &m));
	kit_wait(recv);
	if (recv->err != FI_ETRUNC)
		kit_broken("a receive that is too short ended with error %d",
			   recv->err);
	if (recv->len > SHORT)
		kit_broken("an error of a buffer of %d bytes reports %zu bytes",
			   SHORT, recv->len);
}

static void selective(void)
{
	struct kit_message m;
	struct kit_op *send, *recv;

	kit_pair_open(&p, KIT_SELECTIVE);
	m = message(32, 1);
	m.flags = 0;
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	send = kit_send(&p.a, p.to, &m);
	kit_wait(recv);
	kit_settle();
	if (send->ended)
		kit_broken("a send without FI_COMPLETION wrote a completion");
	m.flags = FI_COMPLETION;
	carry(&m);
}

static void one_queue(void)
{
	struct kit_message m;

	kit_pair_open(&p, KIT_ONE_CQ);
	m = message(500, 3);
	carry(&m);
	m = message(500000, 4);
	carry(&m);
}

static void inject(void)
{
	struct kit_message m;
	struct kit_op *recv;
	ssize_t ret;

	kit_pair_open(&p, 0);
	m = message(4, 6);
	if (m.kind != KIT_TAG || !p.a.ep->tagged->inject ||
	    p.world.info->tx_attr->inject_size < m.len)
		kit_absent("fi_tinject of 4 bytes");
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	do {
		kit_step("fi_tinject");
		ret = fi_tinject(p.a.ep, "four", 4, p.to, 6);
		kit_settle();
	} while (ret == -FI_EAGAIN);
	if (ret)
		kit_broken("fi_tinject: %s", fi_strerror((int)-ret));
	kit_wait(recv);
	kit_settle(); /* a completion has no context that is known */
}

static void reads_nothing(void)
{
	struct fi_cq_tagged_entry entry;
	struct kit_message m;
	ssize_t ret;
	int i;

	kit_pair_open(&p, 0);
	m = message(64, 2);
	carry(&m);
	for (i = 0; i < KIT_QUEUES; i++) {
		kit_step("fi_cq_read with room for an entry");
		ret = fi_cq_read(p.b.cq[i], &entry, 1);
		if (ret > 0)
			kit_broken("fi_cq_read of the peer's queue returned "
				   "an entry");
	}
}

static void other_reads(void)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct fid_cq *cq;
	fi_addr_t source;
	ssize_t ret[4];
	int i;

	kit_pair_open(&p, 0);
	cq = p.b.cq[KIT_RX];
	kit_step("fi_cq_readerr");
	ret[0] = fi_cq_readerr(cq, &err, 0);
	kit_step("fi_cq_readfrom");
	ret[1] = fi_cq_readfrom(cq, &entry, 1, &source);
	kit_step("fi_cq_sread");
	ret[2] = fi_cq_sread(cq, &entry, 1, NULL, 0);
	kit_step("fi_cq_sreadfrom");
	ret[3] = fi_cq_sreadfrom(cq, &entry, 1, &source, NULL, 0);
	for (i = 0; i < 4; i++) {
		if (ret[i] != -FI_ENOSYS)
			kit_broken("readerr, readfrom, sread, sreadfrom "
				   "returned %zd, %zd, %zd, %zd",
				   ret[0], ret[1], ret[2], ret[3]);
	}
}

static void receives_refused(void)
{
	struct kit_message m;
	struct fid_ep *srx;
	char byte = 0;
	ssize_t ret;

	kit_pair_open(&p, 0);
	m = message(1, 1);
	srx = p.b.srx;
	if (srx == &p.b.own_srx.fid.ep_fid)
		kit_absent("fi_srx_context returns the owner's own object");
	kit_step("a receive posted to the peer's SRX");
	ret = m.kind == KIT_TAG ?
		      fi_trecv(srx, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0,
			       NULL) :
		      fi_recv(srx, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL);
	if (ret != -FI_ENOSYS)
		kit_broken("a receive posted to the peer's SRX returned %zd",
			   ret);
}

static void lent(void)
{
	struct kit_message m;

	kit_pair_open(&p, 0);
	m = message(64, 2);
	carry(&m);
	if (kit_lent_changed(&p.b.own_cq[KIT_RX], &p.b.own_srx) ||
	    kit_lent_changed(&p.a.own_cq[KIT_TX], &p.a.own_srx))
		kit_broken("the peer wrote to what the owner initialized");
}

/* ---- counters ------------------------------------------------------------- */

static void counters_agree(uint64_t sent, uint64_t received)
{
	kit_wait_count(&p.a.own_cntr[KIT_TX], sent);
	kit_wait_count(&p.b.own_cntr[KIT_RX], received);
	kit_settle();
	if (p.a.own_cntr[KIT_TX].value != sent ||
	    p.b.own_cntr[KIT_RX].value != received)
		kit_broken("%llu sends and %llu receives were counted, of "
			   "%llu and %llu",
			   (unsigned long long)p.a.own_cntr[KIT_TX].value,
			   (unsigned long long)p.b.own_cntr[KIT_RX].value,
			   (unsigned long long)sent,
			   (unsigned long long)received);
}

static void counted(void)
{
	struct kit_message m;
	int i;

	kit_pair_open(&p, KIT_COUNTED);
	for (i = 0; i < KIT_SIZES; i++) {
		m = message(kit_size[i], (uint64_t)i);
		carry(&m);
	}
	kit_settle();
	counters_agree(KIT_SIZES, KIT_SIZES);
}

static void counted_silent(void)
{
	struct kit_message m;
	struct kit_op *recv;

	kit_pair_open(&p, KIT_COUNTED | KIT_SELECTIVE);
	m = message(100, 1);
	m.flags = 0;
	recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	kit_send(&p.a, p.to, &m);
	kit_wait(recv);
	kit_settle();
	counters_agree(1, 1);
}

static void counted_errors(void)
{
	struct kit_message m;
	struct kit_op *recv;

	kit_pair_open(&p, KIT_COUNTED);
	m = message(64, 9);
	recv = kit_recv(&p.b, &m, SHORT, FI_ADDR_UNSPEC);
	kit_wait(kit_send(&p.a, p.to, &m));
	kit_wait(recv);
	kit_settle();
	if (p.b.own_cntr[KIT_RX].errors != 1 || p.b.own_cntr[KIT_RX].value)
		kit_broken("a receive that failed was counted %llu times as "
			   "an error, %llu times as a success",
			   (unsigned long long)p.b.own_cntr[KIT_RX].errors,
			   (unsigned long long)p.b.own_cntr[KIT_RX].value);
}

static void cntr_reads(void)
{
	struct kit_message m;
	uint64_t value;

	kit_pair_open(&p, KIT_COUNTED);
	m = message(64, 2);
	carry(&m);
	kit_step("fi_cntr_read");
	value = fi_cntr_read(p.b.cntr[KIT_RX]);
	if (value)
		kit_broken("fi_cntr_read of the peer's counter returned %llu",
			   (unsigned long long)value);
	m = message(64, 3);
	kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
}

static void cntr_others(void)
{
	struct fid_cntr *c;
	int ret[5], i;

	kit_pair_open(&p, KIT_COUNTED);
	c = p.b.cntr[KIT_RX];
	kit_step("fi_cntr_add");
	ret[0] = fi_cntr_add(c, 1);
	kit_step("fi_cntr_set");
	ret[1] = fi_cntr_set(c, 1);
	kit_step("fi_cntr_adderr");
	ret[2] = fi_cntr_adderr(c, 1);
	kit_step("fi_cntr_seterr");
	ret[3] = fi_cntr_seterr(c, 1);
	kit_step("fi_cntr_wait");
	ret[4] = fi_cntr_wait(c, 5, 0);
	for (i = 0; i < 5; i++) {
		if (ret[i] != -FI_ENOSYS)
			kit_broken("add, set, adderr, seterr, wait returned "
				   "%d, %d, %d, %d, %d",
				   ret[0], ret[1], ret[2], ret[3], ret[4]);
	}
}

#define PEER "fi_peer(3)"

const struct kit_rule kit_rules_message[] = {
	{ "message", PEER, "EXAMPLE PEER SRX RECEIVE FLOW", 1,
	  "a message goes from one endpoint to another: without it, no rule "
	  "below is tried",
	  one_message },
	{ 0 },
};

const struct kit_rule kit_rules_queue[] = {
	{ "cq.once", PEER, "fi_ops_cq_owner::write()", 1,
	  "each send and each receive has one completion", once },
	{ "cq.fields", PEER, "fi_ops_cq_owner::write()", 1,
	  "a receive reports its context, kind, length and tag", fields },
	{ "cq.source", PEER, "fi_ops_cq_owner::write()", 2,
	  "a receive reports the owner's number of its source", source },
	{ "cq.data", PEER, "fi_ops_cq_owner::write()", 1,
	  "a receive reports the data of its message, and only those", data },
	{ "cq.error", PEER, "fi_ops_cq_owner::writeerr()", 1,
	  "a receive that is too short ends by writeerr with FI_ETRUNC",
	  error },
	{ "cq.read", PEER, "PEER CQ", 6,
	  "fi_cq_read of the peer's queue makes progress, returns no entry",
	  reads_nothing },
	{ "cq.other", PEER, "PEER CQ", 6,
	  "the other calls that read the peer's queue return -FI_ENOSYS",
	  other_reads },
	{ "cq.selective", "fi_endpoint(3)", "fi_ep_bind", 0,
	  "with FI_SELECTIVE_COMPLETION a send completes only on request",
	  selective },
	{ "cq.shared", "fi_endpoint(3)", "fi_ep_bind", 0,
	  "one queue may serve both directions", one_queue },
	{ "cq.inject", "fi_tagged(3)", "fi_tinject", 0,
	  "fi_tinject writes no completion", inject },
	{ "cq.lent", PEER, "PEER CQ", 5,
	  "what the owner initializes in its objects is not changed", lent },
	{ "srx.receives", PEER, "EXAMPLE PEER SRX SETUP", 1,
	  "the peer's SRX refuses receives with -FI_ENOSYS", receives_refused },
	{ "cntr.count", PEER, "fi_ops_cntr_owner::inc()", 1,
	  "each send and each receive is counted once", counted },
	{ "cntr.silent", "guide", NULL, 0,
	  "what writes no completion is counted, too", counted_silent },
	{ "cntr.error", PEER, "fi_ops_cntr_owner::incerr()", 1,
	  "a receive that fails is counted as an error, once", counted_errors },
	{ "cntr.read", PEER, "PEER COUNTER", 4,
	  "fi_cntr_read of the peer's counter does nothing but progress",
	  cntr_reads },
	{ "cntr.other", PEER, "PEER COUNTER", 4,
	  "the other calls on the peer's counter return -FI_ENOSYS",
	  cntr_others },
	{ 0 },
};
