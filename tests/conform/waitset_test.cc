/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait sets and condition variables: fi_poll(3), over each path. The wrappers
 * of the header are marked as deprecated, hence the calls through the tables.
 */
#include <functional>
#include <poll.h>
#include <pthread.h>
#include <thread>

#include "tests/harness/fixture.h"
#include "tcp/fabric.h"

namespace
{

/* Sleep for one entry of @cq by @block, which is called when it is empty. */
ssize_t sleep_for(struct fid_cq *cq, struct fi_cq_tagged_entry *e,
		  const std::function<void()> &block)
{
	const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	ssize_t ret;

	while ((ret = fi_cq_read(cq, e, 1)) == -FI_EAGAIN) {
		if (tdt_now_ms() > end)
			return -FI_ETIMEDOUT;
		block();
	}
	return ret;
}

/*
 * Endpoint 0 sleeps by @block in a thread of its own and answers each message;
 * the senders poll. Nobody makes progress for the sleeper.
 */
class WaitSet : public Case, public testing::WithParamInterface<int>
{
protected:
	WaitSet()
	{
		attr.set = static_cast<enum fi_wait_obj>(GetParam());
		attr.cntrs = 1;
		attr.eq = 1;
	}

	int wait(struct tdt_ep *at, int ms)
	{
		return at->set->ops->wait(at->set, ms);
	}

	void answer(int n, const std::function<void()> &block)
	{
		for (int i = 0; i < n * static_cast<int>(w->count - 1); i++) {
			struct fi_cq_tagged_entry e;
			char in;
			ssize_t ret;

			ASSERT_EQ(0, fi_recv(rx()->ep, &in, 1, nullptr,
					     FI_ADDR_UNSPEC, nullptr));
			ASSERT_EQ(1, sleep_for(rx()->rx_cq, &e, block));
			while ((ret = fi_tinject(rx()->ep, &in, 1,
						 static_cast<fi_addr_t>(in),
						 5)) == -FI_EAGAIN)
				;
			ASSERT_EQ(0, ret);
		}
	}

	void ask(int n)
	{
		for (int i = 0; i < n; i++) {
			for (auto *from : senders()) {
				char me = static_cast<char>(from->index);
				char back = 0;
				struct iovec iv = iov_of(&back, 1);
				ssize_t ret;

				ASSERT_EQ(0, tdt_trecv(from, &iv, 5, 0, &back));
				while ((ret = fi_inject(from->ep, &me, 1,
							addr(from, rx()))) ==
				       -FI_EAGAIN)
					fi_cq_read(from->tx_cq, nullptr, 0);
				ASSERT_EQ(0, ret);
				read_back(from, &back);
				EXPECT_EQ(me, back);
			}
		}
	}

	void read_back(struct tdt_ep *from, void *context)
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct fi_cq_tagged_entry e;
		ssize_t ret;

		while ((ret = fi_cq_read(from->rx_cq, &e, 1)) == -FI_EAGAIN &&
		       tdt_now_ms() < end)
			;
		ASSERT_EQ(1, ret);
		EXPECT_EQ(context, e.op_context);
	}

	void converse(const std::function<void()> &block)
	{
		const int n = 50;
		std::thread t([&] { answer(n, block); });

		ask(n);
		t.join();
	}
};

TEST_P(WaitSet, WakesForEachTier)
{
	/* fi_poll(3) 2.1, fi_wait 1: fi_wait ends when an object of the set is
	 * signalled. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	converse([&] {
		int ret;

		/* Counters change as well, and count until they are read. */
		fi_cntr_read(rx()->rx_cntr);
		fi_cntr_read(rx()->tx_cntr);
		ret = wait(rx(), 10000);
		EXPECT_EQ(0, ret);
	});
}

TEST_P(WaitSet, TimeIsOver)
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	tdt_settle(w, 20);
	for (int ms : { 0, 1, 40 }) {
		fi_cntr_read(rx()->rx_cntr);
		fi_cntr_read(rx()->tx_cntr);
		OK(lasts(ms,
			 [&] { EXPECT_EQ(-FI_ETIMEDOUT, wait(rx(), ms)); }));
	}
}

TEST_P(WaitSet, CounterOfASleeperWakes)
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		uint64_t was = fi_cntr_read(rx()->rx_cntr);
		char out = 'c', in = 0;
		int ret = 0;

		fi_cntr_read(rx()->tx_cntr);
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		std::thread t([&] {
			while (fi_cntr_read(rx()->rx_cntr) == was && !ret)
				ret = wait(rx(), 10000);
		});
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		t.join();
		EXPECT_EQ(0, ret);
		EXPECT_EQ(was + 1, fi_cntr_read(rx()->rx_cntr));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_P(WaitSet, NativeWaitWakesForEachTier)
{
	/* fi_poll(3) 2.1, fi_trywait 6: Objects of a wait set are asked about
	 * by fi_trywait of the set. */
	struct fid *fids[1];
	struct fi_mutex_cond mc;
	int fd = -1;

	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	fids[0] = &rx()->set->fid;
	auto trywait = [&] {
		fi_cntr_read(rx()->rx_cntr);
		fi_cntr_read(rx()->tx_cntr);
		return fi_trywait(w->fabric, fids, 1);
	};
	switch (attr.set) {
	case FI_WAIT_YIELD:
		EXPECT_EQ(-FI_ENODATA,
			  fi_control(&rx()->set->fid, FI_GETWAIT, &fd));
		EXPECT_EQ(-FI_EINVAL, trywait());
		break;
	case FI_WAIT_MUTEX_COND:
		ASSERT_EQ(0, fi_control(&rx()->set->fid, FI_GETWAIT, &mc));
		converse([&] {
			pthread_mutex_lock(mc.mutex);
			if (trywait() == 0)
				pthread_cond_wait(mc.cond, mc.mutex);
			pthread_mutex_unlock(mc.mutex);
		});
		break;
	case FI_WAIT_POLLFD:
		converse([&] {
			struct fi_wait_pollfd wp = { 0, 16, nullptr };
			struct pollfd p[16];

			wp.fd = p;
			ASSERT_EQ(0,
				  fi_control(&rx()->set->fid, FI_GETWAIT, &wp));
			if (trywait() == 0)
				poll(p, wp.nfds, 10000);
		});
		break;
	default:
		ASSERT_EQ(0, fi_control(&rx()->set->fid, FI_GETWAIT, &fd));
		converse([&] {
			struct pollfd p = { fd, POLLIN, 0 };

			if (trywait() == 0)
				poll(&p, 1, 10000);
		});
	}
}

TEST_P(WaitSet, MembersKeepIt)
{
	/* fi_poll(3) 2.1, fi_close 1: A wait set that others use stays open:
	 * -FI_EBUSY. */
	OPEN();
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->set->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&w->fabric->fid));
}

std::string name_of(const testing::TestParamInfo<int> &p)
{
	switch (p.param) {
	case FI_WAIT_UNSPEC:
		return "unspec";
	case FI_WAIT_FD:
		return "fd";
	case FI_WAIT_POLLFD:
		return "pollfd";
	case FI_WAIT_MUTEX_COND:
		return "cond";
	default:
		return "yield";
	}
}

INSTANTIATE_TEST_SUITE_P(Objects, WaitSet,
			 testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD,
					 FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND,
					 FI_WAIT_YIELD),
			 name_of);

/* FI_WAIT_MUTEX_COND of the queues themselves. */
class WaitCond : public Case
{
protected:
	WaitCond()
	{
		attr.wait = FI_WAIT_MUTEX_COND;
		attr.cntr_wait = FI_WAIT_MUTEX_COND;
		attr.cntrs = 1;
	}

	/* Sleep on the condition variable of @fid until @ready. */
	void until(struct fid *fid, const std::function<bool()> &ready)
	{
		struct fid *fids[1] = { fid };
		struct fi_mutex_cond mc;
		int ret;

		ASSERT_EQ(0, fi_control(fid, FI_GETWAIT, &mc));
		pthread_mutex_lock(mc.mutex);
		while (!ready()) {
			ret = fi_trywait(w->fabric, fids, 1);
			if (ret == 0)
				pthread_cond_wait(mc.cond, mc.mutex);
			else
				EXPECT_EQ(-FI_EAGAIN, ret);
		}
		pthread_mutex_unlock(mc.mutex);
	}
};

TEST_F(WaitCond, WakesForEachTier)
{
	/* fi_cq(3) 2.1, fi_cq_open 17: FI_WAIT_MUTEX_COND: the wait object is a
	 * mutex and a condition variable. */
	const int n = 50;

	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (int i = 0; i < n; i++) {
			struct fi_cq_tagged_entry e;
			uint64_t was = fi_cntr_read(rx()->rx_cntr);
			char out = 'm', in = 0;

			ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
			std::thread t([&] {
				if (i % 2)
					until(&rx()->rx_cq->fid, [&] {
						return fi_cq_read(rx()->rx_cq,
								  &e, 1) == 1;
					});
				else
					until(&rx()->rx_cntr->fid, [&] {
						return fi_cntr_read(
							       rx()->rx_cntr) >
						       was;
					});
			});
			ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
			t.join();
			EXPECT_EQ('m', in);
			if (i % 2) {
				EXPECT_EQ(&in, e.op_context);
			} else {
				OK(done(rx(), &in, FI_RECV | FI_MSG));
			}
			OK(done(from, &out, FI_SEND | FI_MSG));
		}
	}
}

TEST_F(WaitCond, TypeIsTold)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	struct fi_mutex_cond a, b;

	OPEN();
	EXPECT_EQ(0, fi_control(&rx()->rx_cq->fid, FI_GETWAITOBJ, &obj));
	EXPECT_EQ(FI_WAIT_MUTEX_COND, obj);
	ASSERT_EQ(0, fi_control(&rx()->rx_cq->fid, FI_GETWAIT, &a));
	ASSERT_EQ(0, fi_control(&rx()->rx_cq->fid, FI_GETWAIT, &b));
	EXPECT_EQ(a.mutex, b.mutex);
	EXPECT_EQ(a.cond, b.cond);
}

} // namespace
