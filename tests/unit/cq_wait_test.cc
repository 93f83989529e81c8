/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocking reads of a CQ: with every wait object, from several threads, and
 * with a clock of the test's own.
 */
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include "cq_fixture.h"

#include "tests/unit/wait_objects.h"

extern "C" {
#include "base/os.h"
#include "tests/harness/log.h"
}

namespace
{

using tdt::readable;

class CqWait : public tdt::CqFixture,
	       public testing::WithParamInterface<enum fi_wait_obj>
{
protected:
	void must_open_wait(enum fi_cq_wait_cond cond = FI_CQ_COND_NONE)
	{
		struct fi_cq_attr attr = {};

		attr.format = FI_CQ_FORMAT_CONTEXT;
		attr.wait_obj = GetParam();
		attr.wait_cond = cond;
		ASSERT_EQ(open(attr), 0);
	}

	int64_t snext(int timeout, const void *cond = nullptr)
	{
		struct fi_cq_entry e = {};
		ssize_t ret = fi_cq_sread(fid, &e, 1, cond, timeout);

		return ret == 1 ? reinterpret_cast<int64_t>(e.op_context) : ret;
	}

	bool has_fd() const
	{
		return GetParam() != FI_WAIT_YIELD;
	}

	/* Until @more threads have been let to sleep since @before. */
	void until_asleep(int before, int more = 1)
	{
		for (int now = before; has_fd() && now < before + more;) {
			engine.locked([&] { now = engine.arms; });
			std::this_thread::yield();
		}
	}
};

TEST_P(CqWait, TimeoutEndsWithEagain)
{
	must_open_wait();
	EXPECT_EQ(snext(0), -FI_EAGAIN);
	EXPECT_EQ(snext(1), -FI_EAGAIN);
	EXPECT_EQ(snext(20), -FI_EAGAIN);
}

TEST_P(CqWait, GivesWhatIsThere)
{
	must_open_wait();
	write(1);
	EXPECT_EQ(snext(-1), 1);
	engine.on_progress = [&] {
		write_held(2);
	};
	EXPECT_EQ(snext(-1), 2);
	engine.on_progress = nullptr;
	write_err(3);
	EXPECT_EQ(snext(-1), -FI_EAVAIL);
}

/* An entry written by another thread ends the sleep. */
TEST_P(CqWait, EntryWakes)
{
	must_open_wait();
	for (int64_t n = 0; n < 200; n++) {
		int before = engine.arms;
		std::thread t([&] {
			if (n % 2)
				until_asleep(before);
			write(static_cast<uint64_t>(n));
		});

		EXPECT_EQ(snext(-1), n);
		t.join();
	}
}

TEST_P(CqWait, ErrorWakes)
{
	must_open_wait();
	std::thread t([&] {
		until_asleep(0);
		write_err(7);
	});

	EXPECT_EQ(snext(-1), -FI_EAVAIL);
	t.join();
}

/* Work for a transport makes the sleeper run progress. */
TEST_P(CqWait, EngineWakes)
{
	must_open_wait();
	for (int64_t n = 0; n < 200; n++) {
		bool work = false;
		int before = engine.arms;
		std::thread t([&] {
			if (n % 2)
				until_asleep(before);
			engine.locked([&] { work = true; });
			engine.kick();
		});

		engine.locked([&] {
			engine.on_progress = [&] {
				if (work)
					write_held(static_cast<uint64_t>(n));
				work = false;
			};
		});
		EXPECT_EQ(snext(-1), n);
		t.join();
	}
}

/* fi_cq_signal unblocks a thread; one given before counts as well. */
TEST_P(CqWait, SignalEndsOneRead)
{
	must_open_wait();
	EXPECT_EQ(fi_cq_signal(fid), 0);
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
	EXPECT_EQ(snext(0), -FI_EAGAIN);
	const int before = engine.arms;
	std::thread t([&] {
		until_asleep(before);
		fi_cq_signal(fid);
	});
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
	t.join();
	write(1);
	EXPECT_EQ(fi_cq_signal(fid), 0);
	EXPECT_EQ(snext(-1), 1) << "data comes first";
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
}

/* FI_CQ_COND_THRESHOLD: so many entries end the wait. */
TEST_P(CqWait, ThresholdCounts)
{
	struct fi_cq_entry e[8];
	size_t want = 3;

	must_open_wait(FI_CQ_COND_THRESHOLD);
	write(1);
	write(2);
	EXPECT_EQ(fi_cq_sread(fid, e, 8, &want, 1), 2)
		<< "time over: what there is";
	std::thread t([&] {
		for (uint64_t n = 0; n < 3; n++)
			write(n);
	});
	EXPECT_EQ(fi_cq_sread(fid, e, 8, &want, -1), 3);
	t.join();
	write(1);
	EXPECT_EQ(fi_cq_sread(fid, e, 8, nullptr, -1), 1);
}

/* fi_tandem(7), LIMITS: a threshold above the size counts as the size. */
TEST_P(CqWait, ThresholdIsAtMostTheSize)
{
	struct fi_cq_attr attr = {};
	struct fi_cq_entry e[8];
	size_t want = 9;

	attr.format = FI_CQ_FORMAT_CONTEXT;
	attr.size = 4;
	attr.wait_obj = GetParam();
	attr.wait_cond = FI_CQ_COND_THRESHOLD;
	ASSERT_EQ(open(attr), 0);
	for (uint64_t n = 0; n < 4; n++)
		write(n);
	EXPECT_EQ(fi_cq_sread(fid, e, 8, &want, -1), 4);
}

/* Two sleepers with different conditions: nobody takes the other's signal. */
TEST_P(CqWait, SleepersDoNotStealWakeups)
{
	const int rounds = 100;

	must_open_wait(FI_CQ_COND_THRESHOLD);
	for (int round = 0; round < rounds; round++) {
		const int before = engine.arms;
		ssize_t big = 0, small = 0;
		std::thread a([&] {
			struct fi_cq_entry e[4];
			size_t want = 4;

			big = fi_cq_sread(fid, e, 4, &want, -1);
		});
		std::thread b([&] {
			struct fi_cq_entry e;

			small = fi_cq_sread(fid, &e, 1, nullptr, -1);
		});

		/* Both sleep; one entry is enough for b only. */
		until_asleep(before, 2);
		write(1);
		b.join();
		for (uint64_t n = 0; n < 4; n++)
			write(n);
		a.join();
		EXPECT_EQ(small, 1);
		EXPECT_EQ(big, 4);
	}
}

/* Many readers, many writers: each entry is read once. */
TEST_P(CqWait, ReadersShareAllEntries)
{
	const uint64_t each = 2000;
	std::vector<std::thread> threads;
	uint64_t got[3] = {}, sum[3] = {};

	must_open_wait();
	for (int i = 0; i < 3; i++)
		threads.emplace_back([&, i] {
			for (;;) {
				int64_t n = snext(-1);

				if (n < 0)
					continue;
				if (n == 0)
					break;
				got[i]++;
				sum[i] += static_cast<uint64_t>(n);
			}
		});
	for (uint64_t i = 0; i < 2; i++)
		threads.emplace_back([&, i] {
			for (uint64_t n = 0; n < each; n++)
				write(1 + i * each + n);
		});
	threads[3].join();
	threads[4].join();
	for (int i = 0; i < 3; i++)
		write(0);
	for (int i = 0; i < 3; i++)
		threads[static_cast<size_t>(i)].join();
	EXPECT_EQ(got[0] + got[1] + got[2], 2 * each);
	EXPECT_EQ(sum[0] + sum[1] + sum[2], each * (2 * each + 1));
}

/*
 * fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 2: A signal that the thread takes
 * ends the call.
 */
TEST_P(CqWait, InterruptedSleepEnds)
{
	if (!has_fd())
		GTEST_SKIP() << "FI_WAIT_YIELD does not sleep";
	struct sigaction act = {}, old;
	pthread_t self = pthread_self();

	act.sa_handler = [](int) {
	};
	sigaction(SIGUSR1, &act, &old);
	must_open_wait();
	bool done = false;
	std::thread t([&] {
		bool stop = false;

		until_asleep(0);
		while (!stop) {
			pthread_kill(self, SIGUSR1);
			std::this_thread::yield();
			engine.locked([&] { stop = done; });
		}
	});
	EXPECT_EQ(snext(-1), -FI_EAGAIN);
	engine.locked([&] { done = true; });
	t.join();
	sigaction(SIGUSR1, &old, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Objects, CqWait, wait_objects(), wait_object_name);

class CqWaitObject : public tdt::CqFixture
{
};

/* ---- the wait object ---------------------------------------------------- */

/* The loop of fi_poll(3) 2.1, fi_trywait 2, with a native wait. */
TEST_F(CqWaitObject, WaitFdFollowsTrywait)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	int fd = -1;

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_FD);
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAITOBJ, &obj), 0);
	EXPECT_EQ(obj, FI_WAIT_FD);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, nullptr), -FI_EINVAL);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	EXPECT_FALSE(readable(fd));
	write(1);
	write(2);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN) << "unread entries";
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN);
	EXPECT_EQ(next(), 2);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	EXPECT_FALSE(readable(fd)) << "the old signal is taken back";
	engine.kick();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN) << "needs progress";
	EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	write_err(3);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EAGAIN);
}

TEST_F(CqWaitObject, WaitPollfdTellsItsRoom)
{
	struct pollfd fds[2] = {};
	struct fi_wait_pollfd w = {};

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_POLLFD);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), -FI_ETOOSMALL);
	ASSERT_LE(w.nfds, 2u);
	w.fd = fds;
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), 0);
	EXPECT_EQ(tdm_cq_trywait(cq), 0);
	EXPECT_EQ(poll(fds, w.nfds, 0), 0);
	write(1);
	EXPECT_EQ(poll(fds, w.nfds, 0), 1);
}

TEST_F(CqWaitObject, WithoutAWaitObjectThereIsNone)
{
	int fd;

	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EINVAL);
	EXPECT_EQ(engine.fd, -1) << "nobody waits, nobody pays";
}

TEST_F(CqWaitObject, UnspecMakesDescriptorsWhenSomebodyWaits)
{
	int fd;

	must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_UNSPEC);
	write(1);
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(engine.fd, -1);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	EXPECT_GE(engine.fd, 0);
}

/* ---- time passes as the test says --------------------------------------- */

class CqClock : public tdt::CqFixture
{
protected:
	static uint64_t now;   /* ns */
	static uint64_t early; /* ms after which poll returns; 0: never */
	static std::vector<int> timeouts; /* of poll, ms */
	static int poll_errno;

	void SetUp() override
	{
		now = 1000;
		early = 0;
		timeouts.clear();
		poll_errno = 0;
		tdm_os.now_ns = [] {
			return now;
		};
		tdm_os.poll = [](struct pollfd *, nfds_t, int timeout) {
			uint64_t ms = static_cast<uint64_t>(timeout);

			timeouts.push_back(timeout);
			if (poll_errno) {
				errno = poll_errno;
				return -1;
			}
			now += 1000000 * (early && early < ms ? early : ms);
			return 0;
		};
		must_open(FI_CQ_FORMAT_CONTEXT, 0, FI_WAIT_UNSPEC);
	}

	void TearDown() override
	{
		tdm_os = tdm_os_system;
		tdt::CqFixture::TearDown();
	}

	ssize_t sread(int timeout)
	{
		struct fi_cq_entry e;

		return fi_cq_sread(fid, &e, 1, nullptr, timeout);
	}
};

uint64_t CqClock::now;
uint64_t CqClock::early;
std::vector<int> CqClock::timeouts;
int CqClock::poll_errno;

/* Polling in vain is given up for a while: idle means asleep. */
TEST_F(CqClock, IdleReadsSleep)
{
	EXPECT_EQ(sread(100), -FI_EAGAIN);
	EXPECT_GT(engine.passes, 10) << "it tried";
	EXPECT_LT(engine.passes, 2000);
	EXPECT_EQ(timeouts, std::vector<int>({ 100 }));
	engine.passes = 0;
	EXPECT_EQ(sread(100), -FI_EAGAIN);
	EXPECT_EQ(sread(100), -FI_EAGAIN);
	EXPECT_LE(engine.passes, 4);
	EXPECT_EQ(timeouts.size(), 3u);
	for (int i = 0; i < 5000; i++)
		EXPECT_EQ(sread(100), -FI_EAGAIN);
	EXPECT_LT(engine.passes, 5000 * 5) << "tried seldom";
}

/*
 * An entry that comes while polling is returned without a sleep, and later
 * reads go on polling.
 */
TEST_F(CqClock, QuickAnswersAreNotSleptFor)
{
	for (int i = 0; i < 100; i++) {
		int left = 5;

		engine.on_progress = [&] {
			if (!--left)
				write_held(3);
		};
		EXPECT_EQ(sread(100), 1);
	}
	EXPECT_TRUE(timeouts.empty());
}

TEST_F(CqClock, TheDeadlineHoldsAcrossIdleWakeups)
{
	const uint64_t begin = now;

	early = 30;
	EXPECT_EQ(sread(100), -FI_EAGAIN);
	EXPECT_EQ(now - begin, 100u * 1000000);
	EXPECT_EQ(timeouts, std::vector<int>({ 100, 70, 40, 10 }));
}

TEST_F(CqClock, TimeoutZeroNeverSleeps)
{
	EXPECT_EQ(sread(0), -FI_EAGAIN);
	EXPECT_TRUE(timeouts.empty());
	EXPECT_EQ(engine.passes, 1);
}

/*
 * fi_cq(3) 2.1, RETURN VALUES, fi_cq_sread / fi_cq_sreadfrom 1: -FI_EAGAIN
 * after a signal.
 */
TEST_F(CqClock, ErrorsOfTheSleepArePassedOn)
{
	poll_errno = EINTR;
	EXPECT_EQ(sread(-1), -FI_EAGAIN);
	poll_errno = ENOMEM;
	EXPECT_EQ(sread(-1), -FI_ENOMEM);
	poll_errno = 0;
	write(1);
	EXPECT_EQ(sread(-1), 1);
}

/* Each descriptor call fails in turn; open says why and leaves nothing. */
TEST_F(CqWaitObject, WaitObjectsWithoutDescriptors)
{
	struct fi_cq_attr attr = {};
	int fd;

	tdt_log_expect("cannot make a wait object");
	attr.wait_obj = FI_WAIT_FD;
	tdm_os.eventfd = [](unsigned int, int) {
		errno = EMFILE;
		return -1;
	};
	EXPECT_EQ(open(attr), -FI_EMFILE);
	tdm_os = tdm_os_system;
	tdm_os.epoll_create1 = [](int) {
		errno = ENFILE;
		return -1;
	};
	EXPECT_EQ(open(attr), -ENFILE);
	tdm_os = tdm_os_system;
	tdm_os.epoll_ctl = [](int, int, int, struct epoll_event *) {
		errno = ENOSPC;
		return -1;
	};
	EXPECT_EQ(open(attr), -FI_ENOSPC);
	attr.wait_obj = FI_WAIT_UNSPEC;
	EXPECT_EQ(open(attr), 0) << "nobody waits yet";
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), -FI_ENOSPC);
	tdm_os = tdm_os_system;
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
}

} // namespace
