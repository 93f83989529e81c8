/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocking reads and wait objects: fi_cq(3), fi_eq(3), fi_poll(3). */
#include <atomic>
#include <csignal>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <thread>

#include "tests/harness/fixture.h"

namespace
{

void nothing(int)
{
}

class Wait : public Case, public testing::WithParamInterface<int>
{
protected:
	Wait()
	{
		attr.wait = static_cast<enum fi_wait_obj>(GetParam());
	}

	/*
	 * Sleeping works for one side only when the other side progresses:
	 * connect and settle first.
	 */
	void ready()
	{
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
	}

	/* Drive the receiver's domain until @n sends of another have ended. */
	void until_ended(const std::atomic<int> &ended, int n)
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();

		while (ended < n && tdt_now_ms() < end)
			fi_cq_read(rx()->rx_cq, nullptr, 0);
		ASSERT_EQ(n, ended);
	}
};

TEST_P(Wait, ReadReturnsWhatIsThere)
{
	/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 1: fi_cq_sread ends with
	 * a completion, an error or its time-out. */
	OK(ready());
	for (auto *from : senders()) {
		struct fi_cq_tagged_entry e;
		fi_addr_t src = 7;
		char out = 'w', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		fi_cq_read(from->tx_cq, nullptr, 0);
		ASSERT_EQ(1, fi_cq_sreadfrom(rx()->rx_cq, &e, 1, &src, nullptr,
					     10000));
		EXPECT_EQ(&in, e.op_context);
		EXPECT_EQ(addr(rx(), from), src);
		EXPECT_EQ('w', in);
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_P(Wait, TimeIsOver)
{
	/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 1: A time-out or a signal
	 * without a completion is -FI_EAGAIN. */
	struct fi_cq_tagged_entry e;

	OK(ready());
	for (int ms : { 0, 1, 40 }) {
		OK(lasts(ms, [&] {
			EXPECT_EQ(-FI_EAGAIN,
				  fi_cq_sread(rx()->rx_cq, &e, 1, nullptr, ms));
		}));
	}
}

TEST_P(Wait, ErrorEndsTheRead)
{
	/* fi_cq(3) 2.1, fi_cq_read / fi_cq_readfrom 1: An error entry at the
	 * head of the queue is -FI_EAVAIL. */
	struct fi_cq_tagged_entry e;
	char in = 0;

	OK(ready());
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	EXPECT_EQ(-FI_EAVAIL, fi_cq_sread(rx()->rx_cq, &e, 1, nullptr, 10000));
	OK(failed(rx(), &in, FI_ECANCELED));
}

TEST_P(Wait, SignalOfTheCqUnblocks)
{
	/* fi_cq(3) 2.1, fi_cq_signal 1: fi_cq_signal ends every wait on the
	 * queue. */
	struct fi_cq_tagged_entry e;
	std::atomic<bool> returned(false);
	ssize_t ret = 0;

	OK(ready());
	std::thread t([&] {
		ret = fi_cq_sread(rx()->rx_cq, &e, 1, nullptr, -1);
		returned = true;
	});
	/* Whenever it falls asleep, some signal comes after that. */
	while (!returned) {
		EXPECT_EQ(0, fi_cq_signal(rx()->rx_cq));
		poll(nullptr, 0, 1);
	}
	t.join();
	EXPECT_EQ(-FI_EAGAIN, ret);
}

TEST_P(Wait, UnixSignalUnblocks)
{
	/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 2: A signal ends a wait
	 * before its time-out, also one without an end. */
	struct fi_cq_tagged_entry e;
	struct sigaction act, old;
	std::atomic<bool> returned(false);
	ssize_t ret = 0;

	if (attr.wait == FI_WAIT_YIELD)
		GTEST_SKIP() << "never sleeps in the kernel";
	OK(ready());
	memset(&act, 0, sizeof(act));
	act.sa_handler = nothing;
	sigaction(SIGUSR1, &act, &old);
	std::thread t([&] {
		ret = fi_cq_sread(rx()->rx_cq, &e, 1, nullptr, -1);
		returned = true;
	});
	while (!returned) {
		pthread_kill(t.native_handle(), SIGUSR1);
		poll(nullptr, 0, 1);
	}
	t.join();
	sigaction(SIGUSR1, &old, nullptr);
	EXPECT_EQ(-FI_EAGAIN, ret);
}

TEST_P(Wait, SleeperIsWokenByEachTier)
{
	/* fi_cq(3) 2.1, fi_cq_open 12: A wait object lets an application block
	 * until there is a completion. */
	const int n = 50;

	OK(ready());
	std::thread t([&] {
		for (int i = 0; i < n * static_cast<int>(w->count - 1); i++) {
			struct fi_cq_tagged_entry e;
			char in;
			ssize_t ret;

			ret = fi_recv(rx()->ep, &in, 1, nullptr, FI_ADDR_UNSPEC,
				      nullptr);
			ASSERT_EQ(0, ret);
			while ((ret = fi_cq_sread(rx()->rx_cq, &e, 1, nullptr,
						  -1)) == -FI_EAGAIN)
				;
			ASSERT_EQ(1, ret);
			/* Answer: the sender waits for it. */
			while ((ret = fi_tinject(rx()->ep, &in, 1,
						 static_cast<fi_addr_t>(in),
						 5)) == -FI_EAGAIN)
				fi_cq_read(rx()->rx_cq, nullptr, 0);
			ASSERT_EQ(0, ret);
		}
	});
	for (int i = 0; i < n; i++) {
		for (auto *from : senders()) {
			struct fi_cq_tagged_entry e;
			char me = static_cast<char>(from->index), back = 0;
			ssize_t ret;

			ASSERT_EQ(0, fi_trecv(from->ep, &back, 1, nullptr,
					      FI_ADDR_UNSPEC, 5, 0, &back));
			while ((ret = fi_inject(from->ep, &me, 1,
						addr(from, rx()))) ==
			       -FI_EAGAIN)
				fi_cq_read(from->tx_cq, nullptr, 0);
			ASSERT_EQ(0, ret);
			while ((ret = fi_cq_sread(from->rx_cq, &e, 1, nullptr,
						  10000)) == -FI_EAGAIN)
				;
			ASSERT_EQ(1, ret);
			EXPECT_EQ(me, back);
		}
	}
	t.join();
}

TEST_P(Wait, SleepingReceiverLetsSendsComplete)
{
	/* fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 11 and 15:
	 * FI_TRANSMIT_COMPLETE and FI_DELIVERY_COMPLETE: the sender is told
	 * although the receiver goes to sleep at once; nothing that is owed to
	 * it waits for the receiver's next call. */
	const size_t sizes[] = { 1, 5000, 100000, 1000000 };

	OK(ready());
	std::atomic<size_t> left(2 * 4 * senders().size());
	Bytes in(1000000);
	std::thread t([&] {
		while (left) {
			struct fi_cq_tagged_entry e;

			ASSERT_EQ(0, fi_recv(rx()->ep, in.data(), in.size(),
					     nullptr, FI_ADDR_UNSPEC, nullptr));
			while (left && fi_cq_sread(rx()->rx_cq, &e, 1, nullptr,
						   -1) == -FI_EAGAIN)
				;
		}
	});
	for (auto *from : senders()) {
		for (uint64_t level :
		     { FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE }) {
			for (size_t len : sizes) {
				Bytes out(len);
				struct tdt_op op =
					op_of(TDT_SENDMSG, 0, out.data(), len);
				struct fi_cq_tagged_entry e;
				ssize_t ret;

				op.addr = addr(from, rx());
				op.flags = level | FI_COMPLETION;
				while ((ret = tdt_post_once(from, &op)) ==
				       -FI_EAGAIN)
					fi_cq_read(from->tx_cq, nullptr, 0);
				EXPECT_EQ(0, ret);
				while ((ret = fi_cq_sread(from->tx_cq, &e, 1,
							  nullptr, 10000)) ==
				       -FI_EAGAIN)
					;
				EXPECT_EQ(1, ret) << len << " " << level;
				left--;
			}
		}
	}
	EXPECT_EQ(0, fi_cq_signal(rx()->rx_cq));
	t.join();
	/*
	 * A sender that makes progress for both may have received the last message
	 * while the thread was between two calls: then nobody has read that.
	 */
	struct fi_cq_tagged_entry last;
	while (fi_cq_read(rx()->rx_cq, &last, 1) == 1)
		;
}

TEST_P(Wait, SleeperCarriesWhatOthersSend)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 10: With manual
	 * progress, waiting on or reading a queue or counter advances the
	 * operations that report there. One thread waits; another posts, and
	 * makes no progress. */
	const int burst = 8, rounds = 20;

	OK(ready());
	for (auto *from : senders()) {
		std::atomic<int> ended(0);
		Bytes out(20000), in(burst * 20000);
		std::thread t([&] {
			while (ended < burst * rounds) {
				struct fi_cq_tagged_entry e;
				ssize_t ret = fi_cq_sread(from->tx_cq, &e, 1,
							  nullptr, 20000);

				if (ret == -FI_EAGAIN)
					break;
				ASSERT_EQ(1, ret);
				ended++;
			}
		});
		for (int r = 0; r < rounds; r++) {
			struct tdt_op op = op_of(TDT_SENDMSG, 0, out.data(),
						 r % 2 ? 20000 : 8);

			op.addr = addr(from, rx());
			op.flags = (r % 4 < 2 ? FI_TRANSMIT_COMPLETE :
						FI_DELIVERY_COMPLETE) |
				   FI_COMPLETION;
			for (int i = 0; i < burst; i++)
				ASSERT_EQ(0, tdt_recv(rx(), &in[i * 20000],
						      20000, &in[i * 20000]));
			for (int i = 0; i < burst; i++)
				ASSERT_EQ(0, tdt_post_once(from, &op));
			OK(until_ended(ended, burst * (r + 1)));
		}
		t.join();
		for (int i = 0; i < burst * rounds; i++)
			ASSERT_EQ(0, tdt_wait_next(rx(), 1, nullptr));
	}
}

TEST_P(Wait, SleeperCarriesWhatOthersReceive)
{
	/* The same at the other end: the messages are there, and a thread that
	 * makes no progress posts the receives. */
	const int burst = 4, rounds = 8;
	const size_t len = 300000;

	OK(ready());
	for (auto *from : senders()) {
		std::atomic<int> ended(0);
		Bytes out(len), in(burst * len);
		std::thread t([&] {
			while (ended < burst * rounds) {
				struct fi_cq_tagged_entry e;
				ssize_t ret = fi_cq_sread(rx()->rx_cq, &e, 1,
							  nullptr, 20000);

				if (ret == -FI_EAGAIN)
					break;
				ASSERT_EQ(1, ret);
				ended++;
			}
		});
		for (int r = 0; r < rounds; r++) {
			for (int i = 0; i < burst; i++)
				ASSERT_EQ(0, tdt_send(from, rx(), out.data(),
						      len, out.data()));
			for (int i = 0; i < 200; i++)
				fi_cq_read(from->rx_cq, nullptr, 0);
			for (int i = 0; i < burst; i++)
				ASSERT_EQ(0,
					  fi_recv(rx()->ep,
						  &in[static_cast<size_t>(i) *
						      len],
						  len, nullptr, FI_ADDR_UNSPEC,
						  nullptr));
			const uint64_t end = tdt_now_ms() + tdt_deadline_ms();

			while (ended < burst * (r + 1) && tdt_now_ms() < end)
				fi_cq_read(from->rx_cq, nullptr, 0);
			ASSERT_EQ(burst * (r + 1), ended);
		}
		t.join();
		for (int i = 0; i < burst * rounds; i++)
			ASSERT_EQ(0, tdt_wait_next(from, 0, nullptr));
	}
}

TEST_P(Wait, SleeperDoesWhatOthersLeave)
{
	/* One thread reads its message and turns to other things; a thread that
	 * waits on another queue of the domain does what is still owed to the
	 * sender. */
	OK(ready());
	std::atomic<bool> stop(false);
	std::thread t([&] {
		struct fi_cq_tagged_entry e;

		while (!stop)
			EXPECT_EQ(-FI_EAGAIN, fi_cq_sread(rx()->tx_cq, &e, 1,
							  nullptr, 20000));
	});
	for (int i = 0; i < 100; i++) {
		for (auto *from : senders()) {
			const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
			Bytes out(i % 2 ? 1 : 30000), in(30000);
			struct fi_cq_tagged_entry e;
			struct tdt_op op =
				op_of(TDT_SENDMSG, 0, out.data(), out.size());
			ssize_t ret = 0;

			op.addr = addr(from, rx());
			op.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
			ASSERT_EQ(0, tdt_recv(rx(), in.data(), in.size(), &in));
			ASSERT_EQ(0, tdt_post_once(from, &op));
			while (fi_cq_read(rx()->rx_cq, &e, 1) != 1 &&
			       tdt_now_ms() < end)
				fi_cq_read(from->rx_cq, nullptr, 0);
			while ((ret = fi_cq_read(from->tx_cq, &e, 1)) ==
				       -FI_EAGAIN &&
			       tdt_now_ms() < end)
				;
			ASSERT_EQ(1, ret) << i << " " << from->index;
		}
	}
	stop = true;
	EXPECT_EQ(0, fi_cq_signal(rx()->tx_cq));
	t.join();
}

TEST_P(Wait, IdleSleeperUsesNoProcessor)
{
	/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 1: The calls block.
	 * Counted: how often the thread came to, and the processor time it
	 * took, over half a second of silence. */
	struct fi_cq_tagged_entry e;
	struct rusage a, b;

	if (attr.wait == FI_WAIT_YIELD)
		GTEST_SKIP() << "never sleeps in the kernel";
	OK(ready());
	tdt_settle(w, 50);
	for (auto *at : { rx(), senders().back() }) {
		(void)fi_cq_sread(at->rx_cq, &e, 1, nullptr, 100);
		ASSERT_EQ(0, getrusage(RUSAGE_THREAD, &a));
		EXPECT_EQ(-FI_EAGAIN,
			  fi_cq_sread(at->rx_cq, &e, 1, nullptr, 500));
		ASSERT_EQ(0, getrusage(RUSAGE_THREAD, &b));
		EXPECT_LE(b.ru_nvcsw - a.ru_nvcsw, 5);
		timersub(&b.ru_utime, &a.ru_utime, &b.ru_utime);
		EXPECT_EQ(0, b.ru_utime.tv_sec);
		EXPECT_GE(20000, b.ru_utime.tv_usec);
	}
}

std::string name_of(const testing::TestParamInfo<int> &p)
{
	switch (p.param) {
	case FI_WAIT_UNSPEC:
		return "unspec";
	case FI_WAIT_FD:
		return "fd";
	case FI_WAIT_MUTEX_COND:
		return "cond";
	case FI_WAIT_YIELD:
		return "yield";
	default:
		return "pollfd";
	}
}

INSTANTIATE_TEST_SUITE_P(Objects, Wait,
			 testing::Values(FI_WAIT_UNSPEC, FI_WAIT_FD,
					 FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND,
					 FI_WAIT_YIELD),
			 name_of);

TEST_F(Case, EventsAreReadByAnotherThread)
{
	/* fi_domain(3) 2.1, Multi-threading Support (threading) 1: Control
	 * calls are safe in every thread unless control progress is unified;
	 * the objects that FI_THREAD_DOMAIN names, event queues not among them,
	 * stay in one thread. */
	std::atomic<bool> stop(false);

	attr.threading = FI_THREAD_DOMAIN;
	attr.eq = 1;
	attr.eq_wait = FI_WAIT_FD;
	OPEN();
	std::thread t([&] {
		struct fi_eq_err_entry e;
		uint32_t event;

		for (int i = 0; !stop; i++)
			EXPECT_EQ(-FI_EAGAIN, fi_eq_sread(rx()->eq, &event, &e,
							  sizeof(e), i % 2, 0));
	});
	for (int i = 0; i < 50; i++)
		EXPECT_EQ(0, tdt_warm_up(w));
	stop = true;
	t.join();
}

TEST_F(Case, NoWaitObjectNoBlockingRead)
{
	/* fi_cq(3) 2.1, fi_cq_open 13: A queue of FI_WAIT_NONE cannot be waited
	 * for. The application is told so. */
	struct fi_cq_tagged_entry e;
	int fd = -1;

	ONLY_TANDEM();
	OPEN();
	ssize_t ret = fi_cq_sread(rx()->rx_cq, &e, 1, nullptr, -1);
	EXPECT_TRUE(ret < 0 && ret != -FI_EAGAIN) << ret;
	EXPECT_GT(0, fi_control(&rx()->rx_cq->fid, FI_GETWAIT, &fd));
}

/* FI_GETWAIT, poll(2) and fi_trywait(3), as an event loop uses them. */
class WaitFd : public Case
{
protected:
	WaitFd()
	{
		attr.wait = FI_WAIT_FD;
	}

	int fd_of(struct fid_cq *cq)
	{
		int fd = -1;

		EXPECT_EQ(0, fi_control(&cq->fid, FI_GETWAIT, &fd));
		EXPECT_LE(0, fd);
		return fd;
	}

	/* Sleep for a completion; -FI_ETIMEDOUT when none comes. */
	ssize_t sleep_for(struct fid_cq *cq, struct fi_cq_tagged_entry *e,
			  int ms)
	{
		struct fid *fids[1] = { &cq->fid };
		uint64_t end = tdt_now_ms() + static_cast<uint64_t>(ms);

		for (;;) {
			struct pollfd p = { fd_of(cq), POLLIN, 0 };
			ssize_t ret = fi_cq_read(cq, e, 1);

			if (ret != -FI_EAGAIN)
				return ret;
			if (tdt_now_ms() > end)
				return -FI_ETIMEDOUT;
			/* An acknowledgement may be the receiver's to send. */
			if (cq != rx()->rx_cq)
				fi_cq_read(rx()->rx_cq, nullptr, 0);
			ret = fi_trywait(w->fabric, fids, 1);
			if (ret == -FI_EAGAIN)
				continue;
			EXPECT_EQ(0, ret);
			poll(&p, 1, 100);
		}
	}
};

TEST_F(WaitFd, PollWakesForEachTier)
{
	/* fi_poll(3) 2.1, fi_trywait 3: After FI_SUCCESS an application may
	 * sleep; a completion wakes it. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (int i = 0; i < 20; i++) {
			struct fi_cq_tagged_entry e;
			char out = 'p', in = 0;

			ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
			ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
			fi_cq_read(from->tx_cq, nullptr, 0);
			ASSERT_EQ(1, sleep_for(rx()->rx_cq, &e, 10000));
			EXPECT_EQ(&in, e.op_context);
			ASSERT_EQ(1, sleep_for(from->tx_cq, &e, 10000));
			EXPECT_EQ(&out, e.op_context);
		}
	}
}

TEST_F(WaitFd, IdleDescriptorIsQuiet)
{
	/* fi_cq(3) 2.1, fi_cq_open 16: FI_WAIT_FD: usable in poll. With nothing
	 * to do it is not signalled, and the sleeper uses no processor. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	tdt_settle(w, 50);
	struct fid *fids[1] = { &rx()->rx_cq->fid };
	struct pollfd p = { fd_of(rx()->rx_cq), POLLIN, 0 };
	int ret = -FI_EAGAIN, quiet = 0;

	for (int i = 0; i < 100 && quiet < 5; i++) {
		ret = fi_trywait(w->fabric, fids, 1);
		if (ret == 0 && poll(&p, 1, 5) == 0)
			quiet++;
		else
			tdt_progress(w);
	}
	EXPECT_EQ(5, quiet);
	EXPECT_EQ(0, ret);
}

TEST_F(WaitFd, WorkLeftBehindIsSeen)
{
	/* fi_poll(3) 2.1, fi_trywait 3: -FI_EAGAIN if a sleep might last for
	 * ever: an operation that another thread posts while one is blocked
	 * ends the block, and so does work left to the next pass of
	 * progress. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		struct fid *fids[1] = { &from->tx_cq->fid };
		struct pollfd p = { fd_of(from->tx_cq), POLLIN, 0 };
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		char out[4] = { 0 }, in[4];
		int ret;

		for (auto &one : in)
			ASSERT_EQ(0, tdt_recv(rx(), &one, 1, &one));
		while ((ret = fi_trywait(w->fabric, fids, 1)) == -FI_EAGAIN)
			tdt_progress(w);
		ASSERT_EQ(0, ret);
		for (auto &one : out) {
			struct tdt_op op = op_of(TDT_SEND, 0, &one, 1);

			op.addr = addr(from, rx());
			op.context = &one;
			ASSERT_EQ(0, tdt_post_once(from, &op));
		}
		/*
		 * Messages already sent arrive without progress of the sender.
		 */
		if (poll(&p, 1, 0) == 0) {
			struct fi_cq_tagged_entry e[4];
			ssize_t n = 0;

			while (n < 4 && tdt_now_ms() < end) {
				ssize_t k = fi_cq_read(rx()->rx_cq, e, 4);

				n += k > 0 ? k : 0;
			}
			EXPECT_EQ(4, n);
		} else {
			for (auto &one : in)
				OK(done(rx(), &one, FI_RECV | FI_MSG));
		}
		for (auto &one : out)
			OK(done(from, &one, FI_SEND | FI_MSG));
	}
}

TEST_F(WaitFd, TrywaitSeesWhatIsThere)
{
	/* fi_poll(3) 2.1, fi_trywait 3 and 7: -FI_EAGAIN while there is
	 * something to read: nobody sleeps over an entry. */
	struct fid *fids[1];
	struct fi_cq_tagged_entry e;
	char in = 0;

	OPEN();
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	fids[0] = &rx()->rx_cq->fid;
	EXPECT_EQ(-FI_EAGAIN, fi_trywait(w->fabric, fids, 1));
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(rx()->rx_cq, &e, 1));
	OK(failed(rx(), &in, FI_ECANCELED));
}

TEST_F(WaitFd, DescriptorStays)
{
	/* fi_cq(3) 2.1, fi_control 2: FI_GETWAIT: the object is the queue's
	 * own. */
	OPEN();
	int a = fd_of(rx()->rx_cq);
	int b = fd_of(rx()->rx_cq);
	EXPECT_EQ(a, b);
	EXPECT_NE(a, fd_of(rx()->tx_cq));
}

TEST_F(WaitFd, PollfdNamesItsDescriptors)
{
	/* fi_poll(3) 2.1, NOTES 5: nfds of struct fi_wait_pollfd: in: room,
	 * out: needed. */
	struct fi_wait_pollfd wp;
	struct pollfd fds[16];

	attr.wait = FI_WAIT_POLLFD;
	OPEN();
	memset(&wp, 0, sizeof(wp));
	wp.nfds = 0;
	EXPECT_EQ(-FI_ETOOSMALL,
		  fi_control(&rx()->rx_cq->fid, FI_GETWAIT, &wp));
	ASSERT_NE(0u, wp.nfds);
	ASSERT_GE(16u, wp.nfds);
	wp.fd = fds;
	EXPECT_EQ(0, fi_control(&rx()->rx_cq->fid, FI_GETWAIT, &wp));
	for (size_t i = 0; i < wp.nfds; i++)
		EXPECT_LE(0, fds[i].fd);
}

} // namespace
