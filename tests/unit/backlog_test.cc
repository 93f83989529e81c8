/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that wait for a path, tcp/backlog.h: what bounds them, what ends
 * them, and that a failed allocation leaves nothing behind.
 */
#include <errno.h>
#include <netinet/in.h>

#include <vector>

#include <rdma/fi_trigger.h>

#include "base/env.h"
#include "tests/harness/fixture.h"

extern "C" {
#include "base/inject.h"
#include "base/os.h"
#include "tests/harness/fault.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

const size_t SIZE = 32; /* of a transmit context */

class Backlog : public Case
{
protected:
	struct tdm_env saved = tdm_env;
	struct tdm_os real = tdm_os;
	fi_addr_t nobody = FI_ADDR_NOTAVAIL;

	Backlog()
	{
		tdt_log_expect("");
		attr.prov = fi_prov_ini();
		attr.eps = 2;
		attr.no_tcp_only = 1;
		attr.tx_size = SIZE;
		/*
		 * Shared memory only: a peer that cannot be attached is
		 * unreachable, without a TCP probe.
		 */
		tdm_env.shm = TDM_SHM_ONLY;
	}

	void TearDown() override
	{
		Case::TearDown();
		tdm_env = saved;
		tdm_os = real;
		EXPECT_EQ(0u, tdm_a64_load_relaxed(&tdm_inject_bytes));
	}

	void begin()
	{
		struct sockaddr_in sin;

		OPEN();
		memcpy(&sin, rx()->name, sizeof(sin));
		sin.sin_port = htons(1);
		ASSERT_EQ(1,
			  fi_av_insert(rx()->av, &sin, 1, &nobody, 0, nullptr));
	}
};

TEST_F(Backlog, WhatCannotBeReachedEndsInItsOrderAtOnce)
{
	char out[SIZE];
	struct tdt_comp c;

	tdm_env.conn_timeout_ms = 20;
	OK(begin());
	for (int round = 0; round < 2; round++) {
		for (char &o : out)
			ASSERT_EQ(0, fi_send(rx()->ep, &o, 1, nullptr, nobody,
					     &o));
		ASSERT_EQ(0, fi_inject(rx()->ep, out, 1, nobody));
		EXPECT_EQ(-FI_EAGAIN,
			  fi_send(rx()->ep, out, 1, nullptr, nobody, out));
		for (char &o : out) {
			ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
			EXPECT_EQ(FI_ECONNREFUSED, c.err);
			EXPECT_EQ(&o, c.context);
		}
		ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
		EXPECT_EQ(FI_ECONNREFUSED, c.err);
		EXPECT_EQ(nullptr, c.context);
	}
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Backlog, InjectsAreBoundedByWhatTheirCopiesTake)
{
	char out[200] = "";
	size_t n = 0;
	ssize_t ret;

	tdm_env.inject_max_bytes = 256 << 10;
	OK(begin());
	while (!(ret = fi_inject(rx()->ep, out, sizeof(out), nobody)))
		n++;
	EXPECT_EQ(-FI_EAGAIN, ret);
	EXPECT_LT(SIZE, n);
	EXPECT_GT(tdm_env.inject_max_bytes / sizeof(out), n);
	/* They are no sends that a size is for, and the other way round. */
	EXPECT_EQ(0, fi_send(rx()->ep, out, 1, nullptr, nobody, out));
	ASSERT_EQ(0, fi_av_remove(rx()->av, &nobody, 1, 0));
	for (size_t i = 0; i <= n; i++) {
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
		EXPECT_EQ(FI_ECONNABORTED, c.err);
	}
	EXPECT_EQ(0u, tdm_a64_load_relaxed(&tdm_inject_bytes));
}

/* An application that counts, and reads no queue: the errors take room too. */
TEST_F(Backlog, R02_ErrorsThatNobodyReadsAreBounded)
{
	const size_t size = 8;
	struct tdt_comp c;
	char out = 1;

	attr.cq_size = size;
	attr.cntrs = 1;
	tdm_env.conn_timeout_ms = 20;
	OK(begin());
	for (size_t n = 1; n <= size; n++) {
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();

		ASSERT_EQ(0, fi_inject(rx()->ep, &out, 1, nobody));
		while (fi_cntr_readerr(rx()->tx_cntr) < n) {
			ASSERT_LT(tdt_now_ms(), end) << n;
			(void)fi_cntr_read(rx()->tx_cntr);
		}
	}
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-FI_EAGAIN, fi_inject(rx()->ep, &out, 1, nobody));
		EXPECT_EQ(-FI_EAGAIN, fi_tinject(rx()->ep, &out, 1, nobody, 2));
		EXPECT_EQ(-FI_EAGAIN,
			  fi_injectdata(rx()->ep, &out, 1, 3, nobody));
	}
	EXPECT_EQ(size, fi_cntr_readerr(rx()->tx_cntr));
	ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
	EXPECT_EQ(FI_ECONNREFUSED, c.err);
	ASSERT_EQ(0, fi_inject(rx()->ep, &out, 1, nobody));
	for (size_t n = 0; n < size; n++)
		ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Backlog, WithoutMemoryNothingIsKept)
{
	unsigned nth = 1, failed, injected = 0;
	char out = 1;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	OK(begin());
	do {
		bool inject = nth & 1;

		tdt_alloc_fail(nth, 0);
		ssize_t ret = inject ? fi_inject(rx()->ep, &out, 1, nobody) :
				       fi_send(rx()->ep, &out, 1, nullptr,
					       nobody, &out);
		failed = tdt_alloc_stop();
		if (ret) {
			ASSERT_TRUE(failed);
			ASSERT_TRUE(ret == -FI_ENOMEM || ret == -FI_EAGAIN);
			EXPECT_EQ(-FI_ENOENT, fi_cancel(&rx()->ep->fid, &out));
		} else if (inject) {
			injected++;
		} else {
			EXPECT_EQ(0, fi_cancel(&rx()->ep->fid, &out));
			OK(this->failed(rx(), &out, FI_ECANCELED));
		}
	} while (failed && ++nth < 100);
	EXPECT_FALSE(failed);
	EXPECT_LT(1u, nth);
	ASSERT_EQ(0, fi_av_remove(rx()->av, &nobody, 1, 0));
	while (injected--) {
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
		EXPECT_EQ(FI_ECONNABORTED, c.err);
	}
}

int connects, answer = ECONNREFUSED;

/* Counts connects by TCP. */
int refused(int, const struct sockaddr *to, socklen_t)
{
	connects += to->sa_family != AF_UNIX;
	errno = to->sa_family == AF_UNIX ? ECONNREFUSED : answer;
	return -1;
}

uint64_t ahead_ns;

uint64_t ahead()
{
	return tdm_os_system.now_ns() + ahead_ns;
}

/* Nobody answers connects, and the test moves the clock on. */
class Unanswered : public Backlog
{
protected:
	struct tdt_comp c;
	char out = 1;

	void begin(enum tdm_shm_mode mode)
	{
		tdm_env.shm = mode;
		OK(Backlog::begin());
		tdm_os.connect = refused;
		tdm_os.now_ns = ahead;
	}

	void send(fi_addr_t to)
	{
		ASSERT_EQ(0, fi_send(rx()->ep, &out, 1, nullptr, to, &out));
	}

	/* Progress until @n more connects; returns whether the send ended. */
	bool ended(int n)
	{
		connects = 0;
		keep_on([&]() -> ssize_t {
			return connects < n && !tdt_pending(w) ? -FI_EAGAIN : 0;
		});
		return tdt_pending(w);
	}

	bool ended_after(uint64_t seconds)
	{
		ahead_ns += seconds * 1000000000;
		return ended(2);
	}
};

/*
 * fi_tandem(7), FAULTS: whoever was never there may start yet, and has the
 * connect time-out for it; for further operations, refusals count soon.
 */
TEST_F(Unanswered, TheTimeoutOfARefusedPeerIsWaitedForOnce)
{
	for (enum tdm_shm_mode mode : { TDM_SHM_AUTO, TDM_SHM_OFF }) {
		OK(begin(mode));
		OK(send(nobody));
		EXPECT_FALSE(ended(2));
		EXPECT_FALSE(ended_after(30));
		EXPECT_TRUE(ended_after(31));
		OK(failed(rx(), &out, FI_ECONNREFUSED));
		for (int i = 0; i < 2; i++) {
			OK(send(nobody));
			EXPECT_FALSE(ended(1));
			EXPECT_TRUE(ended_after(3)) << mode;
			OK(failed(rx(), &out, FI_ECONNREFUSED));
		}
		close();
	}
}

/* FAULTS: a peer with which a session existed is not waited for that long. */
TEST_F(Unanswered, RefusalsOfAPeerThatWasThereCountSoon)
{
	for (enum tdm_shm_mode mode : { TDM_SHM_AUTO, TDM_SHM_OFF }) {
		fi_addr_t to;

		tdm_os = real;
		tdm_env.shm = mode;
		OK(Backlog::begin());
		to = addr(rx(), ep(1));
		ASSERT_EQ(0, tdt_warm_up(w));
		ASSERT_EQ(0, fi_close(&ep(1)->ep->fid));
		ep(1)->ep = nullptr;
		tdt_settle(w, 10);
		tdm_os.connect = refused;
		tdm_os.now_ns = ahead;
		OK(send(to));
		/* It may learn of the end only now. */
		if (ended(1)) {
			OK(failed(rx(), &out, FI_ECONNRESET));
			OK(send(to));
		}
		EXPECT_TRUE(ended_after(3)) << mode;
		OK(failed(rx(), &out, FI_ECONNREFUSED));
		close();
	}
}

/* FI_TANDEM_REFUSED_TIMEOUT: 0: the first refusal counts, and no other answer. */
TEST_F(Unanswered, TheTimeoutOfRefusalsIsForRefusalsOnly)
{
	for (enum tdm_shm_mode mode : { TDM_SHM_AUTO, TDM_SHM_OFF }) {
		tdm_env.refused_timeout_ms = 0;
		OK(begin(mode));
		answer = ENETUNREACH;
		OK(send(nobody));
		EXPECT_FALSE(ended(3));
		answer = ECONNREFUSED;
		EXPECT_TRUE(ended(2));
		EXPECT_EQ(1, connects);
		OK(failed(rx(), &out, FI_ECONNREFUSED));
		close();
	}
}

/*
 * FAULTS: a peer whose host accepts the connection and that does not answer
 * counts as stopped: whoever waits for it does so without a time limit.
 */
TEST_F(Unanswered, D4_AStoppedPeerIsWaitedForAtFirstContact)
{
	for (enum tdm_shm_mode mode : { TDM_SHM_AUTO, TDM_SHM_OFF }) {
		char in = 0;

		tdm_os = real;
		tdm_env.shm = mode;
		OK(Backlog::begin());
		tdm_os.now_ns = ahead;
		OK(send(addr(rx(), ep(1))));
		/* The domain of ep(1) makes no progress: it is stopped. */
		for (int leap = 0; leap < 6; leap++) {
			for (int i = 0; i < 200; i++) {
				struct fi_cq_tagged_entry e;

				ASSERT_EQ(-FI_EAGAIN,
					  fi_cq_read(rx()->tx_cq, &e, 1))
					<< mode << " after " << leap;
				ASSERT_EQ(-FI_EAGAIN,
					  fi_cq_read(rx()->rx_cq, &e, 1));
			}
			ahead_ns += UINT64_C(600000000000);
		}
		ASSERT_EQ(0, tdt_recv(ep(1), &in, 1, &in));
		OK(done(rx(), &out, FI_SEND | FI_MSG));
		OK(done(ep(1), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(out, in);
		close();
	}
}

/*
 * Triggered operations find the transmit queue of the connection full. Those
 * that wait behind it end with those in it, not after another time-out.
 */
TEST_F(Backlog, WhatWaitsBehindAConnectionEndsWithIt)
{
	const size_t all = 4 * SIZE;
	std::vector<struct fi_triggered_context2> when(all);
	struct fid_cntr *counter;
	struct tdt_comp c;
	char out = 1;
	size_t i;

	tdm_env.shm = TDM_SHM_OFF;
	tdm_env.conn_timeout_ms = 50;
	attr.cntrs = 1;
	attr.caps |= FI_TRIGGER;
	OK(begin());
	tdm_os.connect = refused;
	ASSERT_EQ(0, fi_cntr_open(rx()->domain, nullptr, &counter, nullptr));
	for (auto &w : when) {
		struct iovec iov = { &out, 1 };
		struct fi_msg m = {};

		w = {};
		w.event_type = FI_TRIGGER_THRESHOLD;
		w.trigger.threshold.cntr = counter;
		w.trigger.threshold.threshold = 1;
		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = nobody;
		m.context = &w;
		ASSERT_EQ(0, fi_sendmsg(rx()->ep, &m, FI_TRIGGER));
	}
	ASSERT_EQ(0, fi_cntr_add(counter, 1));
	for (i = 0; i < all; i++) {
		ASSERT_EQ(0, tdt_wait_next(rx(), 0, &c));
		EXPECT_EQ(FI_ECONNREFUSED, c.err);
		EXPECT_EQ(&when[i], c.context);
		if (!i)
			connects = 0;
	}
	EXPECT_EQ(0, connects);
	EXPECT_EQ(0, fi_close(&counter->fid));
}

} // namespace
