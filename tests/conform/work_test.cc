/* SPDX-License-Identifier: BSD-2-Clause */
/* The deferred work queues of domains: fi_trigger(3). */
#include "trigger.h"

using namespace trigger_test;

namespace
{

TEST_F(Work, EveryKindCountsAndReportsNothing)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 5: Deferred work counts at
	 * its completion counter alone, and writes nothing to the queues and
	 * counters of the endpoint unless one of them is that counter. */
	OPEN();
	OK(expose());
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain),
				*r = cntr(rx()->domain),
				*dc = cntr(from->domain),
				*dr = cntr(rx()->domain);
		uint64_t sent = fi_cntr_read(from->tx_cntr),
			 came = fi_cntr_read(rx()->rx_cntr);
		char out[4] = "dwq", in[2][4] = {}, got[4] = {};

		begin(r, 1, dr);
		ASSERT_EQ(0, msg(rx(), FI_OP_RECV, in[0], 4, FI_ADDR_UNSPEC,
				 in[0]));
		ASSERT_EQ(0, tagged(rx(), FI_OP_TRECV, in[1], 4, FI_ADDR_UNSPEC,
				    in[1]));
		begin(c, 1, dc);
		ASSERT_EQ(0,
			  msg(from, FI_OP_SEND, out, 4, addr(from, rx()), out));
		ASSERT_EQ(0, tagged(from, FI_OP_TSEND, out, 4, addr(from, rx()),
				    out));
		ASSERT_EQ(0, rma(from, FI_OP_WRITE, out, 4, KEY, out));
		/* Chained: it waits for what was counted. */
		begin(dc, 3, dc);
		ASSERT_EQ(0, rma(from, FI_OP_READ, got, 4, KEY, got));
		tdt_progress(w);
		EXPECT_EQ(0u, fi_cntr_read(dc));
		EXPECT_EQ(0u, fi_cntr_read(dr));
		ASSERT_EQ(0, fi_cntr_add(r, 1));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(count(dc, 4));
		OK(count(dr, 2));
		EXPECT_STREQ("dwq", in[0]);
		EXPECT_STREQ("dwq", in[1]);
		EXPECT_STREQ("dwq", got);
		EXPECT_EQ(sent, fi_cntr_read(from->tx_cntr));
		EXPECT_EQ(came, fi_cntr_read(rx()->rx_cntr));
		EXPECT_EQ(0u, tdt_pending(w));
		memset(region, 0, sizeof(region));
	}
}

TEST_F(Work, EveryKindOfAtomicOperation)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 3: Deferred atomic operations
	 * are given by three members of the union. */
	OPEN();
	OK(expose());
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain),
				*d = cntr(from->domain);
		Amo a[] = { { FI_OP_ATOMIC, 8 },
			    { FI_OP_FETCH_ATOMIC, 8 },
			    { FI_OP_COMPARE_ATOMIC, 8 } };

		/* Each waits for the one before. */
		begin(c, 1, d);
		ASSERT_EQ(0, amo(from, &a[0], a));
		begin(d, 1, d);
		ASSERT_EQ(0, amo(from, &a[1], a));
		begin(d, 2, d);
		ASSERT_EQ(0, amo(from, &a[2], a));
		OK(quiet(from));
		EXPECT_EQ(0u, word(1));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(count(d, 3));
		EXPECT_EQ(2u, a[1].result[0]);
		EXPECT_EQ(4u, a[2].result[1]);
		EXPECT_EQ(9u, word(1));
		EXPECT_EQ(9u, word(2));
		EXPECT_EQ(0u, word(3));
		EXPECT_EQ(0u, tdt_pending(w));
		memset(region, 0, sizeof(region));
	}
}

TEST_F(Work, AnAtomicOperationThatFails)
{
	/* fi_cntr(3) 2.1, fi_cntr_readerr 1. fi_cq(3) 2.1, fi_cq_readerr 4:
	 * errors are reported whether a completion was asked for or not. */
	OPEN();
	OK(expose());
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain),
				*d = cntr(from->domain);
		Amo beyond(FI_OP_FETCH_ATOMIC, sizeof(region) - 8);

		begin(c, 0, d);
		ASSERT_EQ(0, amo(from, &beyond, &beyond));
		OK(failed(from, &beyond, FI_EACCES));
		OK(count(d, 0, 1));
		EXPECT_EQ(0u, beyond.result[0]);
	}
}

TEST_F(Work, AtomicOperationsAreCheckedAsTheirCalls)
{
	/*
	 * Queued work has the arguments of fi_atomicmsg(3) and the like, and
	 * gives the same errors.
	 */
	ONLY_TANDEM();
	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fid_cntr *c = cntr(from->domain);
	Amo a(FI_OP_ATOMIC, 0);

	begin(c, 0, nullptr);
	EXPECT_EQ(-FI_EBADFLAGS, amo(from, &a, &a, FI_PEEK));
	EXPECT_EQ(-FI_EOPNOTSUPP, amo(from, &a, &a, FI_TAGGED));
	a.kind = FI_OP_FETCH_ATOMIC;
	work.op_type = FI_OP_FETCH_ATOMIC;
	struct fi_op_fetch_atomic op = {};

	a.name(addr(from, rx()), &a);
	op.ep = from->ep;
	op.msg = a.m;
	op.fetch.msg_iov = &a.back;
	op.fetch.iov_count = 0;
	work.op.fetch_atomic = &op;
	EXPECT_EQ(-FI_EINVAL, queue(from));
}

TEST_F(Work, CompletionsForWhoAsks)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 6: FI_COMPLETION asks for a
	 * completion of deferred work at the endpoint. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain),
				*r = cntr(rx()->domain),
				*dr = cntr(rx()->domain);
		uint64_t sent = fi_cntr_read(from->tx_cntr),
			 came = fi_cntr_read(rx()->rx_cntr);
		char out = 'c', in = 0;

		begin(r, 0, dr);
		ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in, 1, FI_ADDR_UNSPEC, &in,
				 FI_COMPLETION));
		/* The endpoint's own counter: by one. */
		begin(c, 0, from->tx_cntr);
		ASSERT_EQ(0, msg(from, FI_OP_SEND, &out, 1, addr(from, rx()),
				 &out, FI_COMPLETION));
		OK(done(from, &out, FI_SEND | FI_MSG));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(count(from->tx_cntr, sent + 1));
		OK(count(rx()->rx_cntr, came + 1));
		OK(count(dr, 1));
	}
}

TEST_F(Work, TheEndpointsCounterMayBeTheCompletionCounter)
{
	/* As above. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		uint64_t sent = fi_cntr_read(from->tx_cntr);
		char out = 'e', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		begin(from->tx_cntr, sent, from->tx_cntr);
		ASSERT_EQ(0, msg(from, FI_OP_SEND, &out, 1, addr(from, rx()),
				 &out));
		OK(count(from->tx_cntr, sent + 1));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(0u, tdt_pending(w));
	}
}

TEST_F(Work, ErrorsCountAtTheTriggeringCounter)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 4: Work waits until successes
	 * and errors of its counter together reach the threshold. */
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain), *d = cntr(rx()->domain);

	begin(c, 3, nullptr);
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_ADD, d, 5));
	ASSERT_EQ(0, fi_cntr_add(c, 1));
	ASSERT_EQ(0, fi_cntr_adderr(c, 1));
	EXPECT_EQ(0u, fi_cntr_read(d));
	ASSERT_EQ(0, fi_cntr_adderr(c, 1));
	EXPECT_EQ(5u, fi_cntr_read(d));
}

TEST_F(Work, CountersAreSetAndAddedTo)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 5: A deferred counter
	 * operation changes the counter it names; it has no completion
	 * counter. */
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain), *d = cntr(rx()->domain),
			*e = cntr(rx()->domain);

	begin(c, 1, nullptr);
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_SET, d, 5));
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_ADD, d, 4));
	begin(d, 9, nullptr);
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_ADD, e, 2));
	begin(e, 2, nullptr);
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_SET, d, 1));
	EXPECT_EQ(0u, fi_cntr_read(d));
	ASSERT_EQ(0, fi_cntr_add(c, 1));
	EXPECT_EQ(1u, fi_cntr_read(d));
	EXPECT_EQ(2u, fi_cntr_read(e));
	begin(c, 1, e);
	EXPECT_EQ(-FI_EINVAL, change(rx(), FI_OP_CNTR_ADD, d, 1));
}

TEST_F(Work, CancelledAndFlushed)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 8: FI_CANCEL_WORK takes one
	 * piece of work back; FI_FLUSH_WORK takes all back, or what waits for
	 * one counter. */
	OPEN();
	struct fid *domain = &rx()->domain->fid;
	struct fid_cntr *c = cntr(rx()->domain), *d = cntr(rx()->domain),
			*n = cntr(rx()->domain);
	struct fi_deferred_work first;
	char in = 0;

	begin(c, 1, nullptr);
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_ADD, n, 1));
	EXPECT_EQ(-FI_EBUSY, fi_close(&c->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&n->fid));
	ASSERT_EQ(0, fi_control(domain, FI_CANCEL_WORK, &work));
	EXPECT_EQ(-FI_ENOENT, fi_control(domain, FI_CANCEL_WORK, &work));
	first = work;
	work.triggering_cntr = d;
	ASSERT_EQ(0, change(rx(), FI_OP_CNTR_ADD, n, 10));
	begin(c, 1, n);
	ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in, 1, FI_ADDR_UNSPEC, &in));
	ASSERT_EQ(0, fi_control(domain, FI_FLUSH_WORK, &first));
	ASSERT_EQ(0, fi_cntr_add(c, 1));
	EXPECT_EQ(0u, fi_cntr_read(n));
	ASSERT_EQ(0, fi_cntr_add(d, 1));
	EXPECT_EQ(10u, fi_cntr_read(n));
	begin(d, 9, n);
	ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in, 1, FI_ADDR_UNSPEC, &in));
	ASSERT_EQ(0, fi_control(domain, FI_FLUSH_WORK, nullptr));
	ASSERT_EQ(0, fi_cntr_add(d, 9));
	/* Nobody is told, and nobody is held. */
	EXPECT_EQ(0u, fi_cntr_readerr(n));
	EXPECT_EQ(0, drop(&c->fid));
	EXPECT_EQ(0, drop(&d->fid));
	EXPECT_EQ(0, drop(&n->fid));
	EXPECT_EQ(-FI_EINVAL, fi_control(domain, FI_QUEUE_WORK, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_control(domain, FI_CANCEL_WORK, nullptr));
}

struct sleeper {
	struct fid_fabric *fabric;
	struct fid_cntr *cntr;
};

int may_sleep(void *arg)
{
	auto *s = static_cast<struct sleeper *>(arg);
	struct fid *fid = &s->cntr->fid;

	fi_cntr_read(s->cntr);
	return !fi_trywait(s->fabric, &fid, 1);
}

TEST_F(Work, WhatWasDueAndTakenBackKeepsNobodyAwake)
{
	/* fi_poll(3) 2.1, fi_trywait 3: fi_trywait says whether an application
	 * may block. */
	attr.cntr_wait = FI_WAIT_UNSPEC;
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		struct sleeper s = { w->fabric, from->tx_cntr };
		struct fid_cntr *n = cntr(from->domain);
		char in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		begin(from->tx_cntr, fi_cntr_read(from->tx_cntr) + 1, nullptr);
		ASSERT_EQ(0, change(from, FI_OP_CNTR_ADD, n, 1));
		/* Counted in the call, so it is due, and nothing looked. */
		ASSERT_EQ(0, fi_inject(from->ep, "d", 1, addr(from, rx())));
		ASSERT_EQ(0, fi_control(&from->domain->fid, FI_FLUSH_WORK,
					nullptr));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(0, tdt_wait_until(w, may_sleep, &s));
	}
}

TEST_F(Work, AStartedReceiveIsCancelledAsAnyOther)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: A receive that deferred work has
	 * posted is cancelled as others are. */
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain), *d = cntr(rx()->domain);
	char in[2] = {};

	begin(c, 0, d);
	ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in[0], 1, FI_ADDR_UNSPEC, &in[0]));
	EXPECT_EQ(-FI_ENOENT,
		  fi_control(&rx()->domain->fid, FI_CANCEL_WORK, &work));
	begin(c, 1, d);
	ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in[1], 1, FI_ADDR_UNSPEC, &in[1]));
	for (auto &b : in) {
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &b));
		OK(failed(rx(), &b, FI_ECANCELED));
	}
	OK(count(d, 0, 2));
	EXPECT_EQ(0u, fi_cntr_readerr(rx()->rx_cntr));
}

TEST_F(Work, FailuresAreCountedAndReported)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 7: The application has to see
	 * to conditions that will never be met. */
	OPEN();
	OK(expose());
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain),
				*d = cntr(from->domain),
				*r = cntr(rx()->domain);
		char out[2] = { 1, 2 }, in = 0;

		begin(c, 0, d);
		ASSERT_EQ(0, rma(from, FI_OP_WRITE, out, 2, KEY + 1, out));
		OK(failed(from, out, FI_EACCES));
		OK(count(d, 0, 1));
		begin(r, 0, r);
		ASSERT_EQ(0,
			  msg(rx(), FI_OP_RECV, &in, 1, FI_ADDR_UNSPEC, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), out, 2, out));
		OK(done(from, out, FI_SEND | FI_MSG));
		OK(failed(rx(), &in, FI_ETRUNC));
		OK(count(r, 0, 1));
	}
}

TEST_F(Work, AMultiReceiveBufferCountsItsMessages)
{
	/* fi_msg(3) 2.1, FLAGS 6: FI_MULTI_RECV, and as above. */
	OPEN();
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(rx()->domain),
				*d = cntr(rx()->domain);
		Bytes in(256), out(100);

		for (uint64_t flags : { 0ull, FI_COMPLETION }) {
			uint64_t had = fi_cntr_read(d);

			begin(c, 0, d);
			ASSERT_EQ(0, msg(rx(), FI_OP_RECV, in.data(), 256,
					 FI_ADDR_UNSPEC, in.data(),
					 FI_MULTI_RECV | flags));
			for (int i = 0; i < 2; i++) {
				ASSERT_EQ(0, tdt_send(from, rx(), out.data(),
						      100, out.data()));
				OK(done(from, out.data(), FI_SEND | FI_MSG));
			}
			OK(count(d, had + 2));
			if (!flags)
				continue;
			OK(done(rx(), in.data(), FI_RECV | FI_MSG));
			OK(done(rx(), in.data(), FI_RECV | FI_MSG));
			OK(done(rx(), in.data(), FI_MULTI_RECV));
		}
		EXPECT_EQ(0, drop(&d->fid));
	}
}

TEST_F(Work, WhatIsNotSupportedIsRefused)
{
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 9: Work that the provider
	 * cannot defer fails with -FI_ENOSYS. */
	ONLY_TANDEM();
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain), *far = cntr(ep(1)->domain);
	char b = 0;

	begin(c, 0, nullptr);
	for (int type : { 11, 15 })
		EXPECT_EQ(-FI_ENOSYS, msg(rx(), (enum fi_op_type)type, &b, 1,
					  FI_ADDR_UNSPEC, &b));
	EXPECT_EQ(-FI_ENOSYS, tagged(rx(), FI_OP_TRECV, &b, 1, FI_ADDR_UNSPEC,
				     &b, FI_PEEK));
	EXPECT_EQ(-FI_EBADFLAGS,
		  msg(rx(), FI_OP_RECV, &b, 1, FI_ADDR_UNSPEC, &b, FI_TRIGGER));
	EXPECT_EQ(-FI_EBADFLAGS,
		  msg(rx(), FI_OP_SEND, &b, 1, rx()->peers[1], &b, 1ull << 63));
	begin(nullptr, 0, nullptr);
	EXPECT_EQ(-FI_EINVAL, change(rx(), FI_OP_CNTR_ADD, c, 1));
	begin(far, 0, nullptr);
	EXPECT_EQ(-FI_EDOMAIN, change(rx(), FI_OP_CNTR_ADD, c, 1));
	begin(c, 0, nullptr);
	EXPECT_EQ(-FI_EDOMAIN, change(rx(), FI_OP_CNTR_ADD, far, 1));
	EXPECT_EQ(-FI_EINVAL, change(rx(), FI_OP_CNTR_ADD, nullptr, 1));
	EXPECT_EQ(-FI_ENOSYS,
		  fi_control(&rx()->domain->fid, FI_GETOPSFLAG, &b));
}

TEST_F(Work, EndsWithItsEndpoint)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Work ends with its endpoint. Nobody
	 * is told, as of posted receives, and the counters are free. */
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain), *d = cntr(rx()->domain);
	char in[2] = {};

	begin(c, 1, d);
	ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in[0], 1, FI_ADDR_UNSPEC, &in[0]));
	begin(c, 0, d);
	ASSERT_EQ(0, msg(rx(), FI_OP_RECV, &in[1], 1, FI_ADDR_UNSPEC, &in[1]));
	ASSERT_EQ(0, fi_close(&rx()->ep->fid));
	rx()->ep = nullptr;
	EXPECT_EQ(0u, fi_cntr_readerr(d));
	EXPECT_EQ(0, drop(&c->fid));
	EXPECT_EQ(0, drop(&d->fid));
}

} // namespace
