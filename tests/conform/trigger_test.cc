/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations posted with FI_TRIGGER: fi_trigger(3). */
#include <thread>

#include "trigger.h"

using namespace trigger_test;

namespace
{

TEST_F(Trigger, ASendIsHeldUntilTheCounterIsThere)
{
	/* fi_trigger(3) 2.1, DESCRIPTION 1: A triggered operation waits for its
	 * condition. */
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
	/* fi_trigger(3) 2.1, DESCRIPTION 3: Every data transfer may be
	 * triggered, as far as the provider has it. */
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

TEST_F(Trigger, EveryKindOfAtomicOperation)
{
	/* As above. */
	OPEN();
	OK(expose());
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		Amo a[] = { { FI_OP_ATOMIC, 8 },
			    { FI_OP_FETCH_ATOMIC, 8 },
			    { FI_OP_COMPARE_ATOMIC, 8 } };
		void *x[] = { when(c, 1), when(c, 2), when(c, 3) };

		for (int i = 0; i < 3; i++)
			ASSERT_EQ(0, amomsg(from, &a[i], x[i]));
		OK(quiet(from));
		EXPECT_EQ(0u, word(1));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x[0], FI_ATOMIC | FI_WRITE));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x[1], FI_ATOMIC | FI_READ));
		EXPECT_EQ(4u, word(1));
		EXPECT_EQ(2u, a[1].result[0]);
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x[2], FI_ATOMIC | FI_READ));
		EXPECT_EQ(4u, a[2].result[1]);
		EXPECT_EQ(9u, word(1));
		EXPECT_EQ(9u, word(2));
		EXPECT_EQ(0u, word(3));
		memset(region, 0, sizeof(region));
	}
}

TEST_F(Trigger, InjectedOperandsAreThoseOfTheCall)
{
	/* fi_atomic(3) 2.1, FLAGS 4: FI_INJECT: the operands are the caller's
	 * again when the call returns, whenever the operation is done. */
	OPEN();
	OK(expose());
	for (auto *from : senders()) {
		struct fid_cntr *c = cntr(from->domain);
		Amo a(FI_OP_COMPARE_ATOMIC, 0);
		void *x = when(c, 1);

		word(0) = 4;
		ASSERT_EQ(0, amomsg(from, &a, x, FI_TRIGGER | FI_INJECT));
		memset(a.operand, 0x55, sizeof(a.operand));
		memset(a.compare, 0x55, sizeof(a.compare));
		ASSERT_EQ(0, fi_cntr_add(c, 1));
		OK(done(from, x, FI_ATOMIC | FI_READ));
		EXPECT_EQ(9u, word(0));
		EXPECT_EQ(0u, word(1));
		EXPECT_EQ(4u, a.result[0]);
	}
}

TEST_F(Trigger, AConditionThatIsMetIsNotWaitedFor)
{
	/* fi_trigger(3) 2.1, DESCRIPTION 5: A condition that is met already
	 * lets the operation begin at once. */
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
	/* fi_trigger(3) 2.1, COMPLETION BASED TRIGGERS 4: Operations of a
	 * counter begin in the order of their thresholds, also when it jumps,
	 * and of equal thresholds in the order in which they were submitted. */
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
	/* fi_trigger(3) 2.1, COMPLETION BASED TRIGGERS 1: A send may wait until
	 * a receive has brought the data. */
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
	/* As above. fi_cntr(3) 2.1, DESCRIPTION 2: A counter has two values,
	 * and what failed brought no data. */
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
	/* fi_endpoint(3) 2.1, OPERATION FLAGS 5: FI_INJECT: the buffer is the
	 * caller's again when the call returns. */
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
	/* fi_trigger(3) 2.1, DESCRIPTION 2: Triggered operations need
	 * FI_TRIGGER. */
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
	/* fi_trigger(3) 2.1, DESCRIPTION 6: The context says which event
	 * triggers the operation, and its details. */
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
	/* fi_endpoint(3) 2.1, fi_ep_alias 2: The flags of an alias apply to the
	 * operations posted by it. */
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
	/* fi_trigger(3) 2.1, DESCRIPTION 4: The context stays valid until the
	 * operation has ended. */
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

TEST_F(Trigger, ManyAreCancelledInAnyOrder)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: Each ends once, as cancelled. */
	const size_t n = 300;

	OPEN();
	struct tdt_ep *from = senders()[0];
	struct fid_cntr *c = cntr(from->domain);

	for (size_t stride : { size_t(1), n - 1, size_t(7) }) {
		std::vector<char> b(n);
		std::vector<void *> x;

		for (size_t i = 0; i < n; i++) {
			x.push_back(when(c, 1));
			ASSERT_EQ(0, i % 2 ? recvmsg(from->ep, &b[i], 1, x[i]) :
					     sendmsg(from->ep, &b[i], 1,
						     addr(from, rx()), x[i]));
		}
		for (size_t k = 0; k < n; k++) {
			const size_t i = (k + 1) * stride % n;

			ASSERT_EQ(0, fi_cancel(&from->ep->fid, x[i]));
			OK(failed(from, x[i], FI_ECANCELED));
			EXPECT_EQ(-FI_ENOENT, fi_cancel(&from->ep->fid, x[i]));
		}
	}
	ASSERT_EQ(0, fi_cntr_add(c, 1));
	OK(quiet(from));
}

TEST_F(Trigger, WhatCannotBeDoneEndsInAnError)
{
	/* fi_cq(3) 2.1, fi_cq_read 2: Operations that fail are reported. */
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
	/* fi_cntr(3) 2.1, fi_close 1: A counter that others use stays open:
	 * -FI_EBUSY. */
	OPEN();
	struct fid_cntr *c = cntr(rx()->domain);
	char b[2] = {};

	ASSERT_EQ(0, recvmsg(rx()->ep, &b[0], 1, when(c, 1)));
	ASSERT_EQ(0, sendmsg(rx()->ep, &b[1], 1, rx()->peers[1], when(c, 1)));
	EXPECT_EQ(-FI_EBUSY, fi_close(&c->fid));
	/* Waiting operations end with their endpoint, as posted receives do. */
	struct fid_cq *q[2] = { rx()->tx_cq, rx()->rx_cq };
	ASSERT_EQ(0, fi_close(&rx()->ep->fid));
	rx()->ep = nullptr;
	for (auto *cq : q)
		OK(empty(cq));
	EXPECT_EQ(0, drop(&c->fid));
}

TEST_F(Trigger, WhatIsDueWaitsForRoomInTheQueue)
{
	/* fi_domain(3) 2.1, Resource Management (resource_mgmt) 11:
	 * FI_RM_ENABLED: no queue is overrun. */
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
		ASSERT_EQ(0, fi_cntr_wait(from->tx_cntr, sent + 1, 20000));
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
	/* fi_cntr(3) 2.1, fi_cntr_wait 1: fi_cntr_wait returns when the value
	 * has reached the threshold. */
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

} // namespace
