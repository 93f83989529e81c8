/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: values, what a wait ends with, wake-ups, and the exports.
 */
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "fake_engine.h"

#include "tests/unit/wait_objects.h"

extern "C" {
#include "peer/cntr.h"
#include "tests/harness/fault.h"
}

namespace
{

using tdt::FakeEngine;
using tdt::readable;

class Cntr : public testing::Test
{
protected:
	FakeEngine engine;
	struct tdm_cntr *cntr = nullptr;
	struct fid_cntr *fid = nullptr;
	struct fid_peer_cntr *peer = nullptr;

	int open(struct fi_cntr_attr attr)
	{
		int ret = tdm_cntr_open(&engine.engine, &attr, this, &cntr);

		if (!ret) {
			fid = tdm_cntr_fid(cntr);
			peer = tdm_cntr_export(cntr, TDM_TRANSPORT_TCP);
		}
		return ret;
	}

	void must_open(enum fi_wait_obj obj)
	{
		struct fi_cntr_attr attr = {};

		attr.events = FI_CNTR_EVENTS_COMP;
		attr.wait_obj = obj;
		ASSERT_EQ(open(attr), 0);
	}

	void inc()
	{
		engine.locked([&] { peer->owner_ops->inc(peer); });
	}

	void incerr()
	{
		engine.locked([&] { peer->owner_ops->incerr(peer); });
	}

	void TearDown() override
	{
		if (fid) {
			EXPECT_EQ(fi_close(&fid->fid), 0);
		}
	}
};

TEST_F(Cntr, CountsBothValues)
{
	struct fid_peer_cntr *local;

	must_open(FI_WAIT_NONE);
	EXPECT_EQ(fid->fid.fclass, static_cast<size_t>(FI_CLASS_CNTR));
	EXPECT_EQ(fid->fid.context, this);
	EXPECT_EQ(peer->fid.fclass, static_cast<size_t>(FI_CLASS_PEER_CNTR));
	local = tdm_cntr_export(cntr, TDM_TRANSPORT_LOCAL);
	EXPECT_NE(local, peer);
	EXPECT_EQ(fi_cntr_read(fid), 0u);
	EXPECT_EQ(fi_cntr_readerr(fid), 0u);
	inc();
	inc();
	incerr();
	engine.locked([&] { local->owner_ops->inc(local); });
	EXPECT_EQ(fi_cntr_read(fid), 3u);
	EXPECT_EQ(fi_cntr_readerr(fid), 1u);
}

TEST_F(Cntr, SetAndAdd)
{
	must_open(FI_WAIT_NONE);
	EXPECT_EQ(fi_cntr_set(fid, 40), 0);
	EXPECT_EQ(fi_cntr_add(fid, 2), 0);
	EXPECT_EQ(fi_cntr_seterr(fid, 7), 0);
	EXPECT_EQ(fi_cntr_adderr(fid, 1), 0);
	EXPECT_EQ(fi_cntr_read(fid), 42u);
	EXPECT_EQ(fi_cntr_readerr(fid), 8u);
	EXPECT_EQ(fi_cntr_set(fid, 0), 0);
	EXPECT_EQ(fi_cntr_read(fid), 0u);
	EXPECT_EQ(fi_cntr_set(fid, UINT64_MAX), 0);
	inc();
	EXPECT_EQ(fi_cntr_read(fid), 0u) << "wraps";
}

TEST_F(Cntr, ReadsDriveProgress)
{
	must_open(FI_WAIT_NONE);
	engine.on_progress = [&] {
		peer->owner_ops->inc(peer);
	};
	EXPECT_EQ(fi_cntr_read(fid), 1u);
	EXPECT_EQ(fi_cntr_read(fid), 2u);
	EXPECT_EQ(fi_cntr_readerr(fid), 0u);
	EXPECT_EQ(engine.passes, 3);
}

TEST_F(Cntr, RefusesWhatItDoesNotKnow)
{
	struct fi_cntr_attr attr = {};

	attr.events = FI_CNTR_EVENTS_BYTES;
	EXPECT_EQ(open(attr), -FI_ENOSYS);
	attr.events = static_cast<enum fi_cntr_events>(9);
	EXPECT_EQ(open(attr), -FI_EINVAL);
	attr = {};
	attr.flags = FI_PEER;
	EXPECT_EQ(open(attr), -FI_EINVAL);
	attr = {};
	attr.wait_obj = FI_WAIT_SET;
	EXPECT_EQ(open(attr), -FI_EINVAL) << "without a set";
}

/*
 * fi_cntr(3) 2.1, fi_cntr_wait 4, has no meaning for a wait with FI_WAIT_NONE,
 * the default; fi_tandem(7), WAIT OBJECTS: it polls.
 */
TEST_F(Cntr, WithoutAWaitObjectAWaitPolls)
{
	int fd;

	ASSERT_EQ(tdm_cntr_open(&engine.engine, nullptr, this, &cntr), 0);
	fid = tdm_cntr_fid(cntr);
	EXPECT_EQ(fi_cntr_wait(fid, 0, 0), 0);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	EXPECT_EQ(tdm_cntr_trywait(cntr), -FI_EINVAL);
}

TEST_F(Cntr, CloseIsBusyWhileHeld)
{
	int closed = 0;

	must_open(FI_WAIT_NONE);
	tdm_cntr_on_close(
		cntr, [](void *arg) { ++*static_cast<int *>(arg); }, &closed);
	engine.locked([&] { tdm_cntr_get(cntr); });
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	EXPECT_EQ(closed, 0);
	engine.locked([&] { tdm_cntr_put(cntr); });
	EXPECT_EQ(fi_close(&fid->fid), 0);
	EXPECT_EQ(closed, 1);
	fid = nullptr;
}

TEST_F(Cntr, CloseClosesThePeersCounterFirst)
{
	static int closes;
	struct fid_cntr local = {};
	struct fi_ops ops = {};

	closes = 0;
	ops.size = sizeof(ops);
	ops.close = [](struct fid *) {
		return closes++ ? 0 : -FI_EBUSY;
	};
	local.fid.ops = &ops;
	must_open(FI_WAIT_NONE);
	tdm_cntr_set_local(cntr, &local);
	EXPECT_EQ(tdm_cntr_local(cntr), &local);
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	EXPECT_EQ(fi_cntr_read(fid), 0u);
	EXPECT_EQ(fi_close(&fid->fid), 0);
	fid = nullptr;
	EXPECT_EQ(closes, 2);
}

TEST_F(Cntr, OpenWithoutMemory)
{
	struct fi_cntr_attr attr = {};

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(open(attr), -FI_ENOMEM);
	EXPECT_EQ(tdt_alloc_stop(), 1u);
}

/*
 * The loop of fi_poll(3) 2.1, fi_trywait 2: a change since the last read is an
 * event.
 */
TEST_F(Cntr, WaitFdFollowsTrywait)
{
	int fd = -1;

	must_open(FI_WAIT_FD);
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	EXPECT_EQ(tdm_cntr_trywait(cntr), 0);
	EXPECT_FALSE(readable(fd));
	inc();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cntr_trywait(cntr), -FI_EAGAIN);
	EXPECT_EQ(fi_cntr_read(fid), 1u);
	EXPECT_EQ(tdm_cntr_trywait(cntr), 0);
	EXPECT_FALSE(readable(fd));
	incerr();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cntr_trywait(cntr), -FI_EAGAIN);
	EXPECT_EQ(fi_cntr_read(fid), 1u);
	EXPECT_EQ(tdm_cntr_trywait(cntr), 0);
	engine.kick();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_cntr_trywait(cntr), -FI_EAGAIN);
}

class CntrWait : public Cntr,
		 public testing::WithParamInterface<enum fi_wait_obj>
{
protected:
	void SetUp() override
	{
		must_open(GetParam());
	}

	/* Sleeps so far; passes of progress where nobody sleeps. */
	int begun()
	{
		bool polls = GetParam() == FI_WAIT_YIELD ||
			     GetParam() == FI_WAIT_NONE;
		int n = 0;

		engine.locked([&] { n = polls ? engine.passes : engine.arms; });
		return n;
	}

	/* Until waits have begun @more times since @before. */
	void until_begun(int before, int more = 1)
	{
		while (begun() < before + more)
			std::this_thread::yield();
	}
};

TEST_P(CntrWait, ReachedThresholdReturnsAtOnce)
{
	EXPECT_EQ(fi_cntr_wait(fid, 0, -1), 0);
	fi_cntr_set(fid, 5);
	EXPECT_EQ(fi_cntr_wait(fid, 5, -1), 0);
	EXPECT_EQ(fi_cntr_wait(fid, 4, 0), 0);
}

/*
 * fi_cntr(3) 2.1, fi_cntr_wait 3: -FI_ETIMEDOUT; the error value is the same.
 */
TEST_P(CntrWait, TimeoutSaysSo)
{
	incerr();
	EXPECT_EQ(fi_cntr_wait(fid, 1, 0), -FI_ETIMEDOUT);
	EXPECT_EQ(fi_cntr_wait(fid, 1, 1), -FI_ETIMEDOUT);
	EXPECT_EQ(fi_cntr_wait(fid, 1, 20), -FI_ETIMEDOUT);
	EXPECT_EQ(fi_cntr_readerr(fid), 1u);
}

TEST_P(CntrWait, WaitingDrivesProgress)
{
	engine.on_progress = [&] {
		peer->owner_ops->inc(peer);
		engine.pending = true;
	};
	EXPECT_EQ(fi_cntr_wait(fid, 10, -1), 0);
	EXPECT_GE(fi_cntr_read(fid), 10u);
}

/* fi_cntr(3) 2.1, fi_cntr_wait 2: A change of the error value ends the wait. */
TEST_P(CntrWait, AChangedErrorValueEndsTheWait)
{
	for (int round = 0; round < 50; round++) {
		const int before = begun();
		std::thread t([&] {
			until_begun(before);
			if (round % 2)
				fi_cntr_seterr(fid, 1000 + round);
			else
				incerr();
		});

		EXPECT_EQ(fi_cntr_wait(fid, 10, -1), -FI_EAVAIL);
		t.join();
	}
	EXPECT_EQ(fi_cntr_wait(fid, 10, 0), -FI_ETIMEDOUT)
		<< "errors of the past do not count";
}

TEST_P(CntrWait, IncrementsWake)
{
	const uint64_t total = 3000;
	std::thread t([&] {
		for (uint64_t n = 0; n < total; n++)
			inc();
	});

	EXPECT_EQ(fi_cntr_wait(fid, total, -1), 0);
	t.join();
}

TEST_P(CntrWait, TheApplicationsOwnUpdatesWake)
{
	const int before = begun();
	std::thread t([&] {
		until_begun(before);
		fi_cntr_add(fid, 3);
	});

	EXPECT_EQ(fi_cntr_wait(fid, 3, -1), 0);
	t.join();
}

/* Each sleeper is woken at its own threshold. */
TEST_P(CntrWait, SleepersDoNotStealWakeups)
{
	for (uint64_t round = 0; round < 100; round++) {
		const uint64_t base = 10 * round;
		const int before = begun();
		int far = -1, near = -1;
		std::thread a([&] { far = fi_cntr_wait(fid, base + 10, -1); });
		std::thread b([&] { near = fi_cntr_wait(fid, base + 1, -1); });

		until_begun(before, 2);
		inc();
		b.join();
		fi_cntr_add(fid, 9);
		a.join();
		EXPECT_EQ(near, 0);
		EXPECT_EQ(far, 0);
	}
}

/* A signal handler does not end a wait for a counter. */
TEST_P(CntrWait, HandlersDoNotEndTheWait)
{
	struct sigaction act = {}, old;
	pthread_t self = pthread_self();
	const int before = begun();

	act.sa_handler = [](int) {
	};
	sigaction(SIGUSR1, &act, &old);
	std::thread t([&] {
		until_begun(before);
		for (int n = 0; n < 100; n++) {
			pthread_kill(self, SIGUSR1);
			std::this_thread::yield();
		}
		inc();
	});
	EXPECT_EQ(fi_cntr_wait(fid, 1, -1), 0);
	t.join();
	sigaction(SIGUSR1, &old, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Objects, CntrWait, wait_objects(), wait_object_name);

INSTANTIATE_TEST_SUITE_P(NoObject, CntrWait, testing::Values(FI_WAIT_NONE));

} // namespace
