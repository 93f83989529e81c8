/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop of a TCP tier: when libevent has no memory, and how often a pass
 * polls cold sockets and the hot one.
 */
#include <cstdlib>

#include <event2/event.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern "C" {
#include "base/os.h"
#include "tcp/wire/due.h"
#include "tcp/wire/loop.h"
#include "tests/harness/log.h"
}

namespace
{

unsigned left; /* allocations until the one that fails; 0: none does */
bool failed;
unsigned foreign; /* descriptors of the program that were closed */
int lowest;	  /* descriptors from it on are the loop's */

bool fails()
{
	return left && !--left && (failed = true);
}

/* The number that the next descriptor of this process gets. */
int next_fd()
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD, 0);

	close(fd);
	return fd;
}

TEST(Loop, OpenWithEachAllocationOfLibeventFailing)
{
	event_set_mem_functions(
		[](size_t n) { return fails() ? nullptr : malloc(n); },
		[](void *p, size_t n) {
			return fails() ? nullptr : realloc(p, n);
		},
		free);
	tdm_os.close = [](int fd) {
		foreign += fd < lowest;
		return close(fd);
	};
	lowest = next_fd();
	for (unsigned nth = 1;; nth++) {
		struct tdm_loop *loop = nullptr;
		int ret;

		tdt_log_expect("no event loop");
		left = nth;
		failed = false;
		ret = tdm_loop_open(&loop);
		left = 0;
		/* libevent does without some of them. */
		if (!ret)
			tdm_loop_close(loop);
		else
			EXPECT_EQ(-FI_ENOMEM, ret) << nth;
		EXPECT_EQ(0u, foreign) << nth;
		ASSERT_EQ(lowest, next_fd()) << nth;
		if (!failed) {
			EXPECT_EQ(0, ret);
			EXPECT_LT(3u, nth);
			break;
		}
	}
	tdm_os = tdm_os_system;
	event_set_mem_functions(nullptr, nullptr, nullptr);
}

/* TCP needs epoll(7): the error is that of the call, and the log names it. */
TEST(Loop, OpenWithoutEpollSaysWhatWasRefused)
{
	static int error;

	tdm_os.epoll_create1 = [](int) {
		errno = error;
		return -1;
	};
	for (int refusal : { EPERM, ENOSYS, EMFILE }) {
		struct tdm_loop *loop = nullptr;

		error = refusal;
		tdt_log_expect("no event loop: epoll_create1");
		EXPECT_EQ(-refusal, tdm_loop_open(&loop));
		EXPECT_EQ(nullptr, loop);
	}
	tdm_os = tdm_os_system;
}

uint64_t clock_ns; /* what the loop reads */

/* A loop with one cold socket, which counts its calls. */
struct Cold : testing::Test {
	struct Io {
		struct tdm_loop_io io = {};
		unsigned calls = 0;
	} sock;
	struct tdm_loop *loop = nullptr;

	void SetUp() override
	{
		clock_ns = 1000000000;
		tdm_os.now_ns = [] {
			return clock_ns;
		};
		ASSERT_EQ(0, tdm_loop_open(&loop));
		sock.io.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		sock.io.ready = [](struct tdm_loop_io *io, int) {
			((Io *)io)->calls++;
		};
		ASSERT_EQ(0, tdm_loop_watch(loop, &sock.io, TDM_LOOP_READ));
	}

	void TearDown() override
	{
		tdm_loop_watch(loop, &sock.io, 0);
		tdm_loop_close(loop);
		close(sock.io.fd);
		tdm_os = tdm_os_system;
	}

	/* Number of passes until the socket is called; 0: in none of 100. */
	unsigned passes()
	{
		unsigned before = sock.calls;

		for (unsigned n = 1; n <= 100; n++) {
			tdm_loop_progress(loop, 1);
			if (sock.calls != before)
				return n;
		}
		return 0;
	}
};

/* While the application spins, most passes make no system call. */
TEST_F(Cold, IsNotPolledInEachPassWhileNothingComes)
{
	unsigned n;

	for (int i = 0; i < 17; i++)
		tdm_loop_progress(loop, 1);
	ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
	n = passes();
	EXPECT_LT(1u, n);
	EXPECT_GE(16u, n) << "a clock that stands still must not matter";
}

/* To read the clock takes longer than the rest of a pass. */
TEST_F(Cold, ClockIsNotReadInEachPassOfASpin)
{
	static unsigned reads;

	tdm_os.now_ns = [] {
		reads++;
		return clock_ns;
	};
	reads = 0;
	for (int i = 0; i < 800; i++) {
		clock_ns += 50;
		tdm_loop_progress(loop, 1);
	}
	EXPECT_GE(125u, reads);
}

/* So the first rare passes after a spin may miss something, and no more than eight. */
TEST_F(Cold, IsPolledWhenASpinHasEnded)
{
	for (int i = 0; i < 100; i++) {
		clock_ns += 50;
		tdm_loop_progress(loop, 1);
	}
	ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
	for (int i = 0; i < 8; i++) {
		clock_ns += 1000000;
		tdm_loop_progress(loop, 1);
	}
	EXPECT_LE(1u, sock.calls);
	clock_ns += 1000000;
	EXPECT_EQ(1u, passes());
}

/* An application whose calls are rare finds all that has come. */
TEST_F(Cold, IsPolledWhenTimeHasPassed)
{
	for (int i = 0; i < 20; i++) {
		clock_ns += 1000;
		EXPECT_EQ(0, eventfd_write(sock.io.fd, 1));
		EXPECT_EQ(1u, passes()) << i;
		EXPECT_EQ(1u, passes()) << "more may have come at once";
		eventfd_t value;
		EXPECT_EQ(0, eventfd_read(sock.io.fd, &value));
		tdm_loop_progress(loop, 1);
	}
}

/* Beside other traffic too, an application whose calls are rare has a look in each. */
TEST_F(Cold, IsPolledInEachRarePassBesideOtherTraffic)
{
	for (int i = 0; i < 16; i++) {
		clock_ns += 1000000;
		tdm_loop_progress(loop, 0);
	}
	ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
	for (unsigned i = 1; i < 20; i++) {
		clock_ns += 1000000;
		tdm_loop_progress(loop, 0);
		EXPECT_EQ(i, sock.calls);
	}
}

/* The time between polls is 20 us again where passes are near to each other again. */
TEST_F(Cold, IsPolledSeldomBesideOtherTrafficAfterRarePasses)
{
	struct tdm_due due = {};
	unsigned n = 0;

	for (int i = 0; i < 16; i++) {
		clock_ns += 1000000;
		EXPECT_EQ(1, tdm_due_cold(&due, TDM_DUE_COOL, 0, 1));
	}
	for (int i = 0; i < 20000; i++) {
		clock_ns += 50;
		n += tdm_due_cold(&due, TDM_DUE_COOL, 0, 1) != 0;
	}
	EXPECT_GE(1000000u / 20000 + 1, n);
	EXPECT_LE(1000000u / 22000, n);
}

/* Beside other traffic the time between polls is 20 us, however long passes take. */
TEST_F(Cold, IsPolledInTimeBesideOtherTraffic)
{
	for (uint64_t pass_ns : { 50, 1000, 8000, 50000 }) {
		auto pass = [&] {
			clock_ns += pass_ns;
			tdm_loop_progress(loop, 0);
		};

		SCOPED_TRACE(pass_ns);
		for (uint64_t end = clock_ns + 1000000; clock_ns < end;)
			pass();
		const uint64_t from = clock_ns;
		const unsigned calls = sock.calls;
		eventfd_t value;
		ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
		while (sock.calls == calls && clock_ns < from + 1000000)
			pass();
		EXPECT_GE(20000 + 2 * pass_ns, clock_ns - from);
		ASSERT_EQ(0, eventfd_read(sock.io.fd, &value));
	}
}

/* Data that come soon after other data are found soon, too. */
TEST_F(Cold, IsPolledSoonAgainBesideOtherTraffic)
{
	for (int i = 0; i < 1000; i++) {
		clock_ns += 1000;
		tdm_loop_progress(loop, 0);
	}
	ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
	while (!sock.calls) {
		clock_ns += 1000;
		tdm_loop_progress(loop, 0);
	}
	eventfd_t value;
	ASSERT_EQ(0, eventfd_read(sock.io.fd, &value));
	const uint64_t from = clock_ns;
	while (clock_ns < from + 20000) {
		clock_ns += 1000;
		tdm_loop_progress(loop, 0);
	}
	ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
	const unsigned calls = sock.calls;
	const uint64_t then = clock_ns;
	while (sock.calls == calls && clock_ns < then + 1000000) {
		clock_ns += 1000;
		tdm_loop_progress(loop, 0);
	}
	EXPECT_GE(4000u, clock_ns - then);
}

/* As that of a hot socket, the time between polls is a sixteenth of the silence. */
TEST_F(Cold, IsPolledLessOftenTheLongerNothingComes)
{
	struct tdm_due due = {};
	auto polls = [&](uint64_t ns) {
		unsigned n = 0;

		for (uint64_t end = clock_ns + ns; clock_ns < end;) {
			clock_ns += 50;
			n += tdm_due_cold(&due, TDM_DUE_COOL, 1, 1) != 0;
		}
		return n;
	};

	EXPECT_LE(10u, polls(1000));
	EXPECT_GE(50u, polls(19000));
	polls(80000);
	auto late = polls(50000);
	EXPECT_LE(8u, late);
	EXPECT_GE(10u, late);
	due.quiet = 0;
	EXPECT_EQ(1u, polls(50)) << "at once when something has come";
}

/* A loop whose socket is hot; io.calls counts the looks at it. A pass takes 50 ns. */
struct Hot : Cold {
	void SetUp() override
	{
		Cold::SetUp();
		tdm_loop_heat(loop, &sock.io);
	}

	/*
	 * Number of looks in the passes of the next @ns, each of which takes @pass_ns.
	 * @only_tcp 0: beside other traffic.
	 */
	unsigned looks(uint64_t ns, uint64_t pass_ns = 50, int only_tcp = 1)
	{
		unsigned before = sock.calls;

		for (uint64_t end = clock_ns + ns; clock_ns < end;) {
			clock_ns += pass_ns;
			tdm_loop_progress(loop, only_tcp);
		}
		return sock.calls - before;
	}

	/* Something has come, so that the silence begins anew. */
	void heard()
	{
		tdm_loop_progress(loop, 1);
		tdm_loop_active(loop, &sock.io);
	}
};

/* The time from one look to the next is a sixteenth of the silence, 1.5 us at most. */
TEST_F(Hot, IsLookedAtLessOftenTheLongerItIsSilent)
{
	heard();
	EXPECT_LE(15u, looks(800));
	EXPECT_GE(50u, looks(9200));
	EXPECT_GE(20u, looks(10000));
	looks(20000);
	auto late = looks(15000);
	EXPECT_LE(9u, late);
	EXPECT_GE(11u, late);
	heard();
	EXPECT_LE(15u, looks(800)) << "at once when something has come";
}

/* An application whose calls are rare has a look in each. */
TEST_F(Hot, IsLookedAtInEachRarePass)
{
	heard();
	looks(40000);
	EXPECT_EQ(10u, looks(20000, 2000));
}

/* A clock that stands still hides nothing. */
TEST_F(Hot, IsLookedAtWhileTheClockStandsStill)
{
	unsigned before = sock.calls;

	for (int i = 0; i < 50; i++)
		tdm_loop_progress(loop, 1);
	EXPECT_EQ(before + 50, sock.calls);
}

/* Who is about to sleep looks at all sockets first. */
TEST_F(Hot, IsLookedAtBeforeASleep)
{
	heard();
	looks(60000);
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(0, tdm_loop_arm(loop));
		EXPECT_EQ(1u, looks(50)) << i;
	}
}

/* It becomes cold when it is silent, and is then looked at if the set says so. */
TEST_F(Hot, BecomesCold)
{
	heard();
	looks(100000);
	EXPECT_EQ(0u, looks(20000));
	ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
	EXPECT_LE(1u, passes());
}

/*
 * The silence may be that of an application that has computed: data that came meanwhile
 * are found in the first pass.
 */
TEST_F(Hot, IsLookedAtWhenItBecomesCold)
{
	for (int only_tcp : { 1, 0 }) {
		tdm_loop_heat(loop, nullptr);
		looks(100000, 50, only_tcp); /* a spin without a hot one */
		tdm_loop_heat(loop, &sock.io);
		heard();
		looks(60000, 50, only_tcp);
		ASSERT_EQ(0, eventfd_write(sock.io.fd, 1));
		EXPECT_EQ(1u, looks(1000000, 1000000, only_tcp));
		eventfd_t value;
		ASSERT_EQ(0, eventfd_read(sock.io.fd, &value));
	}
}

/* Where a look takes longer than a gap, most passes have none all the same. */
TEST_F(Hot, LooksThatTakeLongHaveAPauseBetweenThem)
{
	sock.io.ready = [](struct tdm_loop_io *io, int) {
		((Io *)io)->calls++;
		clock_ns += 2000;
	};
	heard();
	looks(30000);
	auto n = looks(35000);
	EXPECT_LE(9u, n);
	EXPECT_GE(11u, n);
}

/* While the kernel has no memory to watch it, it stays hot: nothing else polls it. */
TEST_F(Hot, IsPolledWhileItCannotBecomeCold)
{
	heard();
	tdm_os.epoll_ctl = [](int, int, int, struct epoll_event *) {
		errno = ENOMEM;
		return -1;
	};
	for (int i = 0; i < 20; i++)
		EXPECT_LE(5u, looks(30000)) << i;
	tdm_os.epoll_ctl = tdm_os_system.epoll_ctl;
	looks(200000);
	EXPECT_EQ(0u, looks(20000));
}

/* tdm_loop_timer.lazy: it expires in a pass, and a sleeper does not wake for it. */
TEST(Loop, LazyTimersWakeNoSleeper)
{
	struct Timer {
		struct tdm_loop_timer timer = {};
		unsigned calls = 0;
	} t;
	struct tdm_loop *loop = nullptr;

	t.timer.fired = [](struct tdm_loop_timer *timer) {
		((Timer *)timer)->calls++;
	};
	ASSERT_EQ(0, tdm_loop_open(&loop));
	struct pollfd set = { tdm_loop_wait_fd(loop), POLLIN, 0 };
	ASSERT_LE(0, set.fd);
	ASSERT_EQ(0, tdm_loop_timer_arm(loop, &t.timer, 0));
	EXPECT_EQ(-FI_EAGAIN, tdm_loop_arm(loop));
	tdm_loop_progress(loop, 1);
	EXPECT_EQ(1u, t.calls);
	t.timer.lazy = 1;
	ASSERT_EQ(0, tdm_loop_timer_arm(loop, &t.timer, 0));
	EXPECT_EQ(0, tdm_loop_arm(loop));
	EXPECT_EQ(0, poll(&set, 1, 0));
	tdm_loop_progress(loop, 1);
	EXPECT_EQ(2u, t.calls);
	ASSERT_EQ(0, tdm_loop_timer_arm(loop, &t.timer, 1000000));
	tdm_loop_timer_disarm(&t.timer);
	tdm_loop_close(loop);
}

} // namespace
