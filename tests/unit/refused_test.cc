/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system refuses calls from the start: the report says why the path is TCP, and
 * random bytes come from elsewhere. Or a limit on files comes later.
 */
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/resource.h>

#include "base/env.h"
#include "fi_ext_tandem.h"
#include "shm_world.h"
#include "tests/harness/fixture.h"

extern "C" {
#include "base/os.h"
#include "tests/harness/os_fault.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

class Refused : public Case
{
protected:
	struct tdm_env saved = tdm_env;

	Refused()
	{
		tdt_log_expect("");
		attr.prov = fi_prov_ini();
		attr.eps = 2;
		attr.no_tcp_only = 1;
		tdm_env.shm = TDM_SHM_AUTO;
		tdt_os_install();
	}

	void TearDown() override
	{
		tdt_os_remove();
		Case::TearDown();
		tdm_env = saved;
	}

	/* The path of what @from sends to @to. */
	struct tdm_report_path path(size_t from, size_t to)
	{
		struct tdm_report_ops *ops = nullptr;
		struct tdm_report_path p = {};

		p.size = sizeof(p);
		EXPECT_EQ(0, fi_open_ops(&ep(from)->ep->fid, TDM_REPORT_OPS, 0,
					 reinterpret_cast<void **>(&ops),
					 nullptr));
		EXPECT_EQ(0, ops->path(ep(from)->ep, ep(from)->peers[to], &p));
		return p;
	}

	/*
	 * The two ends agree on the path. If that is TCP, the one that was refused
	 * something says so, and the other that, or what it saw of it. Returns
	 * whether it is TCP.
	 */
	bool by_tcp()
	{
		const struct tdm_report_path p[2] = { path(0, 1), path(1, 0) };

		EXPECT_EQ(p[0].path, p[1].path);
		if (p[0].path == TDM_REPORT_SHM) {
			EXPECT_EQ(0u, p[0].reason);
			EXPECT_EQ(0u, p[1].reason);
			return false;
		}
		EXPECT_TRUE(p[0].reason == 6 || p[1].reason == 6)
			<< p[0].reason << " " << p[1].reason;
		for (auto &end : p)
			EXPECT_TRUE(end.reason == 6 || end.reason == 5 ||
				    end.reason == 2)
				<< end.reason_text;
		return true;
	}

	/*
	 * One call after the other fails, up to the first message in each
	 * direction. @must: enabling needs the call for TCP as well, and may fail.
	 * Returns how often TCP was the path.
	 */
	int in_turn(enum tdt_os_call call, int err, bool must)
	{
		int tcp = 0;

		for (unsigned nth = 1; nth < 1000; nth++) {
			tdt_os_clear();
			tdt_fail_nth(call, nth, err);
			int ret = tdt_world_open(&attr, &w);

			if (ret) {
				w = nullptr;
				EXPECT_TRUE(must) << nth;
				EXPECT_EQ(-err, ret) << nth;
				continue;
			}
			EXPECT_EQ(0, tdt_warm_up(w)) << nth;
			tcp += by_tcp();
			close();
			if (!tdt_os_struck())
				return tcp;
		}
		ADD_FAILURE() << "no end";
		return tcp;
	}
};

TEST_F(Refused, F8_WhatSharedMemoryNeedsIsTheReason)
{
	/* fi_tandem(7), REPORT, reason 6. */
	const struct {
		enum tdt_os_call call;
		int err;
		bool must;
	} all[] = {
		{ TDT_OS_MEMFD_CREATE, EMFILE, false },
		{ TDT_OS_MEMFD_CREATE, ENOSYS, false },
		{ TDT_OS_FALLOCATE, ENOSPC, false },
		{ TDT_OS_ADD_SEALS, EPERM, false },
		{ TDT_OS_EVENTFD, EMFILE, true },
		{ TDT_OS_EPOLL_CREATE1, EMFILE, true },
	};

	for (auto &c : all) {
		SCOPED_TRACE(tdt_os_name(c.call));
		EXPECT_LT(0, in_turn(c.call, c.err, c.must));
		tdt_watchdog_restart();
	}
}

TEST_F(Refused, F8_MemoryThatIsRefusedForGoodIsTheReasonAtBothEnds)
{
	for (int err : { EMFILE, ENOSYS, EPERM }) {
		tdt_os_clear();
		tdt_fail_from(TDT_OS_MEMFD_CREATE, 1, err);
		open();
		ASSERT_EQ(0, tdt_warm_up(w));
		EXPECT_TRUE(by_tcp());
		EXPECT_EQ(6u, path(0, 1).reason);
		EXPECT_EQ(6u, path(1, 0).reason);
		close();
	}
}

/* getrandom(2): kernels may not have it, sandboxes may forbid it. */
TEST_F(Refused, F8_RandomBytesComeWithoutTheCallForThem)
{
	for (int err : { ENOSYS, EPERM }) {
		uint8_t one[32] = {}, two[32] = {}, none[32] = {};

		tdt_os_clear();
		tdt_fail_from(TDT_OS_GETRANDOM, 1, err);
		ASSERT_EQ(0, tdm_os_random(one, sizeof(one)));
		ASSERT_EQ(0, tdm_os_random(two, sizeof(two)));
		EXPECT_LT(1u, tdt_os_struck());
		EXPECT_NE(0, memcmp(one, two, sizeof(one)));
		EXPECT_NE(0, memcmp(one, none, 16));
		EXPECT_NE(0, memcmp(one + 16, none, 16));
		EXPECT_NE(0, memcmp(two + 16, none, 16));
		open();
		ASSERT_EQ(0, tdt_warm_up(w));
		EXPECT_FALSE(by_tcp());
		close();
	}
}

uint64_t later_ns;	       /* how far our clock is ahead */
volatile sig_atomic_t signals; /* SIGXFSZ */

class FileLimit : public shm_test::PairTest
{
protected:
	struct rlimit old = {};
	struct sigaction before = {};

	void SetUp() override
	{
		struct sigaction sa = {};

		PairTest::SetUp();
		later_ns = 0;
		signals = 0;
		tdm_os.now_ns = [] {
			return tdm_os_system.now_ns() + later_ns;
		};
		sa.sa_handler = [](int) {
			signals = signals + 1;
		};
		ASSERT_EQ(0, sigaction(SIGXFSZ, &sa, &before));
		ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
	}

	void TearDown() override
	{
		limit(old.rlim_cur);
		sigaction(SIGXFSZ, &before, nullptr);
		PairTest::TearDown();
	}

	void limit(rlim_t bytes)
	{
		struct rlimit now = old;

		now.rlim_cur = bytes;
		EXPECT_EQ(0, setrlimit(RLIMIT_FSIZE, &now));
	}

	/* For a message that needs an area there is none. */
	void long_message_fails()
	{
		std::vector<char> in(2 << 20), out(2 << 20);
		char ca, cb;

		tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
		ASSERT_EQ(0, tsend(a, to_b, out.data(), out.size(), 1, &ca));
		ASSERT_TRUE(tdt_eventually(
			[&] {
				return tdt_owner_find(b, &cb) &&
				       tdt_owner_find(a, &ca);
			},
			[&] {
				later_ns += 1000000;
				step();
			}));
		EXPECT_EQ(FI_EIO, tdt_owner_find(b, &cb)->err);
		EXPECT_EQ(FI_ENOMEM, tdt_owner_find(a, &ca)->err);
		a->dones = b->dones = 0;
	}

	/* So many that the ring of a wants to grow. */
	void short_messages_pass()
	{
		for (unsigned i = 0; i < 500; i++)
			ASSERT_EQ(0, send(a, to_b, &i, sizeof(i), 9, nullptr));
		ASSERT_TRUE(until([&] { return tdt_owner_queued(b) == 500; }));
		while (!tdt_owner_discard(b))
			;
		a->dones = b->dones = 0;
		exchange(100, 2);
	}
};

TEST_F(FileLimit, F9_ThatComesLaterEndsLongMessagesOnly)
{
	/* setrlimit(2): a process that makes a larger file gets SIGXFSZ, which
	 * ends it. fi_tandem(7), FAULTS: what becomes of messages for which there
	 * is no area. */
	tdt_log_expect("bounce area");
	tdm_env.cma = 0;
	tdm_env.conn_timeout_ms = 1000;
	for (rlim_t bytes : { 256u << 10, 16u << 10 }) {
		remake();
		meet();
		limit(bytes);
		ASSERT_NO_FATAL_FAILURE(long_message_fails());
		ASSERT_NO_FATAL_FAILURE(short_messages_pass());
		/* The first limit leaves room for a larger ring, the other none. */
		EXPECT_EQ(bytes > 65536, pair_of(a)->tx.gen > 0);
		EXPECT_EQ(0, signals);
		limit(old.rlim_cur);
		exchange(2 << 20, 3);
		EXPECT_EQ(1u, b->nevents);
	}
}

} // namespace
