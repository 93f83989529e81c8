/* SPDX-License-Identifier: BSD-2-Clause */
/* Triggered operations and deferred work: fi_trigger(3). */
#include <thread>

#include <rdma/fi_trigger.h>

#include "parts.h"

namespace
{

const uint64_t KEY = 0x7219;

struct reach {
	struct fid_cntr *cntr;
	uint64_t value, errors;
};

int reached(void *arg)
{
	auto *r = static_cast<struct reach *>(arg);

	return fi_cntr_read(r->cntr) >= r->value &&
	       fi_cntr_readerr(r->cntr) >= r->errors;
}

class Trigger : public Parts
{
protected:
	/* Valid until the operation has ended. */
	std::vector<std::unique_ptr<struct fi_triggered_context2>> contexts;
	struct fid_mr *mr = nullptr;
	unsigned char region[4096];

	Trigger()
	{
		attr.cntrs = 1;
		attr.caps |= FI_TRIGGER | FI_RMA;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Parts::TearDown();
	}

	void expose()
	{
		memset(region, 0, sizeof(region));
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, region, sizeof(region),
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
				       0, &mr, nullptr));
	}

	void *when(struct fid_cntr *c, size_t threshold)
	{
		contexts.push_back(
			std::make_unique<struct fi_triggered_context2>());
		auto *x = contexts.back().get();

		memset(x, 0, sizeof(*x));
		x->event_type = FI_TRIGGER_THRESHOLD;
		x->trigger.threshold.cntr = c;
		x->trigger.threshold.threshold = threshold;
		return x;
	}

	void count(struct fid_cntr *c, uint64_t value, uint64_t errors = 0)
	{
		struct reach r = { c, value, errors };

		ASSERT_EQ(0, tdt_wait_until(w, reached, &r))
			<< fi_cntr_read(c) << " of " << value;
		EXPECT_EQ(value, fi_cntr_read(c));
		EXPECT_EQ(errors, fi_cntr_readerr(c));
	}

	/* @len bytes at @buf to @to, or from there, with FI_TRIGGER. */
	ssize_t sendmsg(struct fid_ep *at, void *buf, size_t len, fi_addr_t to,
			void *context, uint64_t flags = FI_TRIGGER)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_msg m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = to;
		m.context = context;
		ssize_t ret = fi_sendmsg(at, &m, flags);

		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	ssize_t recvmsg(struct fid_ep *at, void *buf, size_t len, void *context,
			uint64_t flags = FI_TRIGGER)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_msg m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = FI_ADDR_UNSPEC;
		m.context = context;
		ssize_t ret = fi_recvmsg(at, &m, flags);

		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	ssize_t tagmsg(bool send, struct fid_ep *at, void *buf, size_t len,
		       fi_addr_t addr, uint64_t tag, void *context,
		       uint64_t flags = FI_TRIGGER)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_msg_tagged m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = addr;
		m.tag = tag;
		m.context = context;
		ssize_t ret = send ? fi_tsendmsg(at, &m, flags) :
				     fi_trecvmsg(at, &m, flags);

		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	ssize_t rmamsg(bool write, struct fid_ep *at, void *buf, size_t len,
		       fi_addr_t to, uint64_t place, void *context,
		       uint64_t flags = FI_TRIGGER)
	{
		struct fi_rma_iov there = { place, len, KEY };
		struct iovec iov = iov_of(buf, len);
		struct fi_msg_rma m = {};

		m.msg_iov = &iov;
		m.iov_count = 1;
		m.rma_iov = &there;
		m.rma_iov_count = 1;
		m.addr = to;
		m.context = context;
		ssize_t ret = write ? fi_writemsg(at, &m, flags) :
				      fi_readmsg(at, &m, flags);

		memset(&there, 0xee, sizeof(there));
		memset(&iov, 0xee, sizeof(iov));
		memset(&m, 0xee, sizeof(m));
		return ret;
	}

	/* Whatever was to happen by now has happened, and nothing else. */
	void quiet(struct tdt_ep *from)
	{
		OK(fence(from));
		EXPECT_EQ(0u, tdt_pending(w));
	}
};

TEST_F(Trigger, ASendIsHeldUntilTheCounterIsThere)
{
	/* "Triggered operations allow an application to queue a data transfer
	 * request that is deferred until a specified condition is met." */
	OPEN();
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		void *ctx = when(c, 2);
		char out = 'o', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, sendmsg(from->ep, &out, 1, addr(from, rx()), ctx));
		OK(quiet(from));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(quiet(from));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, ctx, FI_SEND | FI_MSG));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ('o', in);
	}
}

TEST_F(Trigger, EveryKindOfOperation)
{
	/* "Any data transfer operation is potentially trigger-able, subject to
	 * provider constraints." */
	OPEN();
	OK(expose());
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain),
				*r = cntr(rx()->domain);
		char out[4] = "abc", in[2][4] = {}, got[4] = {};
		fi_addr_t to = addr(from, rx());
		void *x[6] = { when(c, 1), when(c, 1), when(c, 1),
			       when(c, 2), when(r, 1), when(r, 1) };

		ASSERT_EQ(0, recvmsg(rx()->ep, in[0], 4, x[4]));
		ASSERT_EQ(0, tagmsg(false, rx()->ep, in[1], 4, FI_ADDR_UNSPEC,
				    7, x[5]));
		ASSERT_EQ(0, sendmsg(from->ep, out, 4, to, x[0]));
		ASSERT_EQ(0, tagmsg(true, from->ep, out, 4, to, 7, x[1]));
		ASSERT_EQ(0, rmamsg(true, from->ep, out, 4, to, 8, x[2]));
		ASSERT_EQ(0, rmamsg(false, from->ep, got, 4, to, 8, x[3]));
		OK(quiet(from));
		EXPECT_EQ(0, region[8]);
		ASSERT_EQ(0, fi_cntr_add(r, 1));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x[0], FI_SEND | FI_MSG));
		OK(done(from, x[1], FI_SEND | FI_TAGGED));
		OK(done(from, x[2], FI_RMA | FI_WRITE));
		OK(done(rx(), x[4], FI_RECV | FI_MSG));
		OK(done(rx(), x[5], FI_RECV | FI_TAGGED));
		EXPECT_STREQ("abc", in[0]);
		EXPECT_STREQ("abc", in[1]);
		EXPECT_STREQ("", got);
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x[3], FI_RMA | FI_READ));
		EXPECT_STREQ("abc", got);
		memset(region, 0, sizeof(region));
	}
}

TEST_F(Trigger, AConditionThatIsMetIsNotWaitedFor)
{
	/* "If the condition is met when the request is made, then the data
	 * transfer may be initiated immediately." */
	OPEN();
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		void *x[2] = { when(c, 0), when(c, 5) };
		char out = 'm', in[2] = {};

		ASSERT_EQ(0, fi_cntr_set(c, 5));
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(0, tdt_recv(rx(), &in[i], 1, &in[i]));
			ASSERT_EQ(0, sendmsg(from->ep, &out, 1,
					     addr(from, rx()), x[i]));
			OK(done(from, x[i], FI_SEND | FI_MSG));
			OK(done(rx(), &in[i], FI_RECV | FI_MSG));
		}
	}
}

TEST_F(Trigger, InTheOrderOfTheThresholds)
{
	/* "Threshold operations are triggered in the order of the threshold
	 * values.  This is true even if the counter increments by a value
	 * greater than 1.  If two triggered operations have the same
	 * threshold, they will be triggered in the order in which they were
	 * submitted to the endpoint." */
	const int thresholds[] = { 4, 2, 3, 2, 1, 4 };
	const char *want = "ebdcaf";

	OPEN();
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		char out[] = "abcdef", in[6] = {};
		void *x[6];

		for (int i = 0; i < 6; i++) {
			x[i] = when(c, (size_t)thresholds[i]);
			ASSERT_EQ(0, tdt_recv(rx(), &in[i], 1, &in[i]));
			ASSERT_EQ(0, sendmsg(from->ep, &out[i], 1,
					     addr(from, rx()), x[i]));
		}
		ASSERT_EQ(0, fi_cntr_add(c, 9));
		for (int i = 0; i < 6; i++) {
			OK(done(from, x[i], FI_SEND | FI_MSG));
			OK(done(rx(), &in[i], FI_RECV | FI_MSG));
			EXPECT_EQ(want[i], in[i]);
		}
	}
}

TEST_F(Trigger, ACompletionSetsOffTheNext)
{
	/* "a send operation may be deferred until a receive operation
	 * completes, indicating that the data to be transferred is now
	 * available." */
	OPEN();
	for (auto *from : senders()) {
		uint64_t had = fi_cntr_read(rx()->rx_cntr);
		void *x = when(rx()->rx_cntr, had + 1);
		char out = 'r', relay = 0, back = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &relay, 1, &relay));
		ASSERT_EQ(0, tdt_recv(from, &back, 1, &back));
		ASSERT_EQ(0, sendmsg(rx()->ep, &relay, 1, addr(rx(), from), x));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(from, &out, FI_SEND | FI_MSG));
		OK(done(rx(), &relay, FI_RECV | FI_MSG));
		OK(done(from, &back, FI_RECV | FI_MSG));
		OK(done(rx(), x, FI_SEND | FI_MSG));
		EXPECT_EQ('r', back);
	}
}

TEST_F(Trigger, FailuresDoNotSetOff)
{
	/* As above: fi_cntr(3) has two values, and what failed brought no
	 * data. */
	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fid_cntr *c = cntr(from->domain);
	void *x = when(c, 1);
	char out = 1, in = 0;

	ASSERT_EQ(0, sendmsg(from->ep, &out, 1, addr(from, rx()), x));
	ASSERT_EQ(0, fi_cntr_adderr(c, 5));
	ASSERT_EQ(0, fi_cntr_seterr(c, 7));
	OK(quiet(from));
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, fi_cntr_set(c, 1));
	OK(done(from, x, FI_SEND | FI_MSG));
	OK(done(rx(), &in, FI_RECV | FI_MSG));
}

TEST_F(Trigger, InjectedBytesAreThoseOfTheCall)
{
	/* fi_msg(3), FI_INJECT: "the outbound data buffer should be returned
	 * to the user's control immediately after the call returns". */
	OPEN();
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		void *x = when(c, 1);
		char out = 'i', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, sendmsg(from->ep, &out, 1, addr(from, rx()), x,
				     FI_TRIGGER | FI_INJECT));
		out = 'x';
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x, FI_SEND | FI_MSG));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ('i', in);
	}
}

TEST_F(Trigger, OnlyWithTheCapability)
{
	/* "An endpoint must be created with the FI_TRIGGER capability in order
	 * for triggered operations to be specified." */
	ONLY_TANDEM();
	attr.caps &= ~(uint64_t)FI_TRIGGER;
	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fi_op_msg op = {};
	struct fi_deferred_work work = {};
	struct fid_cntr *c = cntr(from->domain);
	void *x = when(c, 0);
	char b = 0;

	EXPECT_EQ(-FI_EBADFLAGS, sendmsg(from->ep, &b, 1, addr(from, rx()), x));
	EXPECT_EQ(-FI_EBADFLAGS, recvmsg(from->ep, &b, 1, x));
	EXPECT_EQ(-FI_EBADFLAGS,
		  tagmsg(true, from->ep, &b, 1, addr(from, rx()), 0, x));
	EXPECT_EQ(-FI_EBADFLAGS,
		  tagmsg(false, from->ep, &b, 1, addr(from, rx()), 0, x));
	EXPECT_EQ(-FI_EBADFLAGS,
		  rmamsg(true, from->ep, &b, 1, addr(from, rx()), 0, x));
	EXPECT_EQ(-FI_EBADFLAGS,
		  rmamsg(false, from->ep, &b, 1, addr(from, rx()), 0, x));
	op.ep = from->ep;
	work.triggering_cntr = c;
	work.op_type = FI_OP_SEND;
	work.op.msg = &op;
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_control(&from->domain->fid, FI_QUEUE_WORK, &work));
}

TEST_F(Trigger, ConditionsThatAreNone)
{
	/* "The triggered context indicates the type of event assigned to the
	 * trigger, along with a union of trigger details". */
	ONLY_TANDEM();
	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fid_cntr *c = cntr(from->domain), *far = cntr(rx()->domain);
	auto *x = static_cast<struct fi_triggered_context2 *>(when(c, 1));
	fi_addr_t to = addr(from, rx());
	char b = 0;

	EXPECT_EQ(-FI_EINVAL, sendmsg(from->ep, &b, 1, to, nullptr));
	EXPECT_EQ(-FI_EINVAL, sendmsg(from->ep, &b, 1, to, when(nullptr, 1)));
	EXPECT_EQ(-FI_EDOMAIN, sendmsg(from->ep, &b, 1, to, when(far, 1)));
	x->event_type = FI_TRIGGER_XPU;
	EXPECT_EQ(-FI_ENOSYS, sendmsg(from->ep, &b, 1, to, x));
	x->event_type = FI_TRIGGER_THRESHOLD;
	EXPECT_EQ(-FI_EBADFLAGS, tagmsg(false, from->ep, &b, 1, to, 0, x,
					FI_TRIGGER | FI_PEEK));
}

TEST_F(Trigger, ByTheDefaultFlagsOfAnAlias)
{
	/* fi_endpoint(3), fi_ep_alias: "flags: Additional flags to apply to
	 * endpoint operation." */
	struct fid_ep *alias;

	OPEN();
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		void *x = when(c, 1);
		char out = 'a', in = 0;

		ASSERT_EQ(0, fi_ep_alias(from->ep, &alias,
					 FI_TRANSMIT | FI_TRIGGER));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, fi_send(alias, &out, 1, nullptr, addr(from, rx()),
				     x));
		/* There is no context that could have a condition. */
		EXPECT_EQ(-FI_EINVAL,
			  fi_inject(alias, &out, 1, addr(from, rx())));
		OK(quiet(from));
		ASSERT_EQ(0, fi_close(&alias->fid));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x, FI_SEND | FI_MSG));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ('a', in);
	}
}

TEST_F(Trigger, WhatIsHeldCanBeCancelled)
{
	/* "It must be allocated by the application and remain valid until the
	 * corresponding operation completes or is successfully canceled." */
	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fid_cntr *c = cntr(from->domain);
	void *x[2] = { when(c, 1), when(c, 1) };
	char b[2] = {};

	ASSERT_EQ(0, sendmsg(from->ep, &b[0], 1, addr(from, rx()), x[0]));
	ASSERT_EQ(0, recvmsg(from->ep, &b[1], 1, x[1]));
	ASSERT_EQ(0, fi_cancel(&from->ep->fid, x[1]));
	OK(failed(from, x[1], FI_ECANCELED));
	ASSERT_EQ(0, fi_cancel(&from->ep->fid, x[0]));
	OK(failed(from, x[0], FI_ECANCELED));
	ASSERT_EQ(0, fi_cntr_add(c, 1));
	OK(quiet(from));
	EXPECT_EQ(1u, fi_cntr_readerr(from->tx_cntr));
	EXPECT_EQ(1u, fi_cntr_readerr(from->rx_cntr));
}

TEST_F(Trigger, WhatCannotBeDoneEndsInAnError)
{
	/* fi_cq(3): operations that fail are reported. */
	ONLY_TANDEM();
	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fid_cntr *c = cntr(from->domain);
	void *x[3] = { when(c, 1), when(c, 1), when(c, 1) };
	char b = 0;

	/* An address that never was; one that goes; a source that never was. */
	ASSERT_EQ(0, sendmsg(from->ep, &b, 1, 77, x[0]));
	ASSERT_EQ(0, sendmsg(from->ep, &b, 1, addr(from, rx()), x[1]));
	ASSERT_EQ(0, tagmsg(false, from->ep, &b, 1, 77, 0, x[2]));
	ASSERT_EQ(0, fi_av_remove(from->av, &from->peers[0], 1, 0));
	OK(failed(from, x[1], FI_ECONNABORTED));
	ASSERT_EQ(0, fi_cntr_add(c, 1));
	OK(failed(from, x[0], FI_EINVAL));
	OK(failed(from, x[2], FI_EINVAL));
	EXPECT_EQ(2u, fi_cntr_readerr(from->tx_cntr));
	EXPECT_EQ(1u, fi_cntr_readerr(from->rx_cntr));
}

TEST_F(Trigger, ACounterThatIsWaitedForStays)
{
	/* fi_cntr(3): "If resources are still associated with the counter when
	 * attempting to close, the call will return -FI_EBUSY." */
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain);
	char b[2] = {};

	ASSERT_EQ(0, recvmsg(rx()->ep, &b[0], 1, when(c, 1)));
	ASSERT_EQ(0, sendmsg(rx()->ep, &b[1], 1, rx()->peers[1], when(c, 1)));
	EXPECT_EQ(-FI_EBUSY, fi_close(&c->fid));
	/* What is held ends with its endpoint, as posted receives do. */
	struct fid_cq *q[2] = { rx()->tx_cq, rx()->rx_cq };
	ASSERT_EQ(0, fi_close(&rx()->ep->fid));
	rx()->ep = nullptr;
	for (auto *cq : q)
		OK(empty(cq));
	EXPECT_EQ(0, drop(&c->fid));
}

TEST_F(Trigger, WhatIsDueWaitsForRoomInTheQueue)
{
	/* fi_domain(3), FI_RM_ENABLED: no queue is overrun. */
	ONLY_TANDEM();
	attr.cq_size = 1;
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		uint64_t sent = fi_cntr_read(from->tx_cntr);
		void *x[2] = { when(c, 1), when(c, 1) };
		char out[2] = { 'p', 'q' }, in[2] = {};
		struct fi_cq_tagged_entry e;

		ASSERT_EQ(0, tdt_recv(rx(), &in[0], 1, &in[0]));
		ASSERT_EQ(0, tdt_recv(rx(), &in[1], 1, &in[1]));
		for (int i = 0; i < 2; i++)
			ASSERT_EQ(0, sendmsg(from->ep, &out[i], 1,
					     addr(from, rx()), x[i],
					     FI_TRIGGER | FI_INJECT |
						     FI_INJECT_COMPLETE));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		while (fi_cntr_read(from->tx_cntr) < sent + 1)
			;
		for (int i = 0; i < 100; i++)
			EXPECT_EQ(sent + 1, fi_cntr_read(from->tx_cntr));
		ASSERT_EQ(1, fi_cq_read(from->tx_cq, &e, 1));
		EXPECT_EQ(x[0], e.op_context);
		OK(done(from, x[1], FI_SEND | FI_MSG));
		OK(done(rx(), &in[0], FI_RECV | FI_MSG));
		OK(done(rx(), &in[1], FI_RECV | FI_MSG));
		EXPECT_EQ('p', in[0]);
		EXPECT_EQ('q', in[1]);
	}
}

TEST_F(Trigger, SleepersAreWokenByWhatIsSetOff)
{
	/* fi_cntr(3), fi_cntr_wait: "Upon successful return from this call, the
	 * counter will be greater than or equal to the input threshold
	 * value." */
	attr.cntr_wait = FI_WAIT_UNSPEC;
	attr.progress = FI_PROGRESS_AUTO;
	OPEN();
	for (auto *from : senders()) {
		for (int round = 0; round < 20; round++) {
			struct fid_cntr *c = cntr(from->domain);
			uint64_t sent = fi_cntr_read(from->tx_cntr);
			void *x = when(c, 1);
			char out = 's', in = 0;

			ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
			ASSERT_EQ(0, sendmsg(from->ep, &out, 1,
					     addr(from, rx()), x));
			std::thread other([c] { fi_cntr_add(c, 1); });
			EXPECT_EQ(0, fi_cntr_wait(from->tx_cntr, sent + 1, -1));
			other.join();
			OK(done(from, x, FI_SEND | FI_MSG));
			OK(done(rx(), &in, FI_RECV | FI_MSG));
		}
	}
}

/* ---- deferred work -------------------------------------------------------- */

class Work : public Trigger
{
protected:
	struct fi_deferred_work work = {};

	int queue(struct tdt_ep *at)
	{
		return fi_control(&at->domain->fid, FI_QUEUE_WORK, &work);
	}

	void begin(struct fid_cntr *by, uint64_t threshold,
		   struct fid_cntr *counts)
	{
		work.triggering_cntr = by;
		work.threshold = threshold;
		work.completion_cntr = counts;
	}

	/* All that describes it is gone when the call returns. */
	int msg(struct tdt_ep *at, enum fi_op_type type, void *buf, size_t len,
		fi_addr_t peer, void *context, uint64_t flags = 0)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_op_msg op = {};
		int ret;

		op.ep = at->ep;
		op.flags = flags;
		op.msg.msg_iov = &iov;
		op.msg.iov_count = 1;
		op.msg.addr = peer;
		op.msg.context = context;
		work.op_type = type;
		work.op.msg = &op;
		ret = queue(at);
		memset(&op, 0xee, sizeof(op));
		memset(&iov, 0xee, sizeof(iov));
		return ret;
	}

	int tagged(struct tdt_ep *at, enum fi_op_type type, void *buf,
		   size_t len, fi_addr_t peer, void *context,
		   uint64_t flags = 0)
	{
		struct iovec iov = iov_of(buf, len);
		struct fi_op_tagged op = {};

		op.ep = at->ep;
		op.flags = flags;
		op.msg.msg_iov = &iov;
		op.msg.iov_count = 1;
		op.msg.addr = peer;
		op.msg.tag = 9;
		op.msg.context = context;
		work.op_type = type;
		work.op.tagged = &op;
		return queue(at);
	}

	int rma(struct tdt_ep *at, enum fi_op_type type, void *buf, size_t len,
		uint64_t key, void *context, uint64_t flags = 0)
	{
		struct fi_rma_iov there = { 0, len, key };
		struct iovec iov = iov_of(buf, len);
		struct fi_op_rma op = {};

		op.ep = at->ep;
		op.flags = flags;
		op.msg.msg_iov = &iov;
		op.msg.iov_count = 1;
		op.msg.rma_iov = &there;
		op.msg.rma_iov_count = 1;
		op.msg.addr = addr(at, rx());
		op.msg.context = context;
		work.op_type = type;
		work.op.rma = &op;
		return queue(at);
	}

	int change(struct tdt_ep *at, enum fi_op_type type, struct fid_cntr *c,
		   uint64_t value)
	{
		struct fi_op_cntr op = { c, value };

		work.op_type = type;
		work.op.cntr = &op;
		return queue(at);
	}
};

TEST_F(Work, EveryKindCountsAndReportsNothing)
{
	/* "On the completion of a deferred data transfer, the specified
	 * completion counter will be incremented by one." "completed
	 * operations are not written to the EP's completion queue or update
	 * the EP counter (unless the EP counter is explicitly referenced as
	 * the completion_cntr)." */
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

TEST_F(Work, CompletionsForWhoAsks)
{
	/* "An application may request EP completions by specifying the
	 * FI_COMPLETION flag as part of the operation." */
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
	/* "it will remain on the queue until the triggering counter (success
	 * plus error counter values) has reached the indicated threshold." */
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
	/* "deferred counter operations do not update the completion counter;
	 * only the counter specified through the fi_op_cntr is modified.  The
	 * completion_cntr field must be NULL for counter operations." */
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
	/* "To cancel a deferred work request, use fi_control with command
	 * FI_CANCEL_WORK and the corresponding struct fi_deferred_work".
	 * "FI_FLUSH_WORK may be used to flush all work queued to the domain,
	 * or may be used to cancel all requests waiting on a specific
	 * triggering_cntr." */
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

TEST_F(Work, AStartedReceiveIsCancelledAsAnyOther)
{
	/* fi_endpoint(3), fi_cancel. */
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
	/* "It is the responsibility of the application to detect and handle
	 * situations that occur which could result in a deferred work
	 * request's condition not being met." */
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
	/* fi_msg(3), FI_MULTI_RECV, and as above. */
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
	/* "If a specific request is not supported by the provider, it will
	 * fail the operation with -FI_ENOSYS." */
	ONLY_TANDEM();
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain), *far = cntr(ep(1)->domain);
	char b = 0;

	begin(c, 0, nullptr);
	for (int type : { 99, -1 })
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
	/* fi_endpoint(3), fi_close: "... flushed". Nobody is told, as of posted
	 * receives, and the counters are free. */
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
