/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress by reading an event queue, and sleeping on it: fi_domain(3),
 * FI_PROGRESS_MANUAL.
 */
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "fake_engine.h"

#include "tests/unit/wait_objects.h"

extern "C" {
#include "peer/eq.h"
#include "peer/waitset.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
#include "tests/harness/os_fault.h"
}

namespace
{

using tdt::FakeEngine;
using tdt::readable;

class EqDrive : public testing::Test
{
protected:
	std::unique_ptr<FakeEngine> a{ new FakeEngine() };
	std::unique_ptr<FakeEngine> b{ new FakeEngine() };
	struct tdm_waitset *set = nullptr;
	struct tdm_eq *eq = nullptr;
	struct fid_eq *fid = nullptr;

	void open(enum fi_wait_obj obj, struct tdm_waitset *in = nullptr)
	{
		struct fi_eq_attr attr = {};

		attr.wait_obj = obj;
		attr.wait_set = in ? tdm_waitset_fid(in) : nullptr;
		ASSERT_EQ(0, tdm_eq_open(&attr, nullptr, &eq));
		fid = tdm_eq_fid(eq);
		/* The transports of both have something to report. */
		a->on_progress = [this] {
			event();
		};
		b->on_progress = [this] {
			event();
		};
	}

	void open_set(enum fi_wait_obj obj)
	{
		struct fi_wait_attr attr = {};

		attr.wait_obj = obj;
		ASSERT_EQ(0, tdm_waitset_open(&attr, &set));
	}

	std::atomic<int> due{ 0 }; /* events that the next pass writes */

	void event()
	{
		struct fi_eq_entry e = {};

		for (; due > 0; due--)
			EXPECT_EQ((ssize_t)sizeof(e),
				  tdm_eq_write(eq, FI_NOTIFY, &e, sizeof(e)));
	}

	ssize_t read()
	{
		struct fi_eq_entry e;
		uint32_t event;

		return fi_eq_read(fid, &event, &e, sizeof(e), 0);
	}

	ssize_t sread(int timeout)
	{
		struct fi_eq_entry e;
		uint32_t event;

		return fi_eq_sread(fid, &event, &e, sizeof(e), timeout, 0);
	}

	void TearDown() override
	{
		if (fid) {
			EXPECT_EQ(0, fi_close(&fid->fid));
		}
		if (set) {
			EXPECT_EQ(0, fi_close(&tdm_waitset_fid(set)->fid));
		}
	}
};

TEST_F(EqDrive, ReadingMakesProgress)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 10: Waiting on or
	 * reading an event queue advances the operations that report there. */
	struct fi_eq_err_entry err = {};

	open(FI_WAIT_NONE);
	EXPECT_EQ(-FI_EAGAIN, read());
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	ASSERT_EQ(0, tdm_eq_drive(eq, &b->engine));
	EXPECT_EQ(-FI_EAGAIN, read());
	EXPECT_EQ(1, a->passes);
	EXPECT_EQ(1, b->passes);
	EXPECT_EQ(-FI_EAGAIN, fi_eq_readerr(fid, &err, 0));
	EXPECT_EQ(2, a->passes);
	due = 2;
	EXPECT_LT(0, read());
	EXPECT_LT(0, read());
	EXPECT_EQ(3, a->passes) << "not while there is something to read";
	EXPECT_EQ(-FI_EBUSY, fi_close(&fid->fid));
	tdm_eq_undrive(eq, &a->engine);
	a.reset();
	EXPECT_EQ(-FI_EAGAIN, read());
	EXPECT_EQ(4, b->passes);
	tdm_eq_undrive(eq, &b->engine);
}

TEST_F(EqDrive, WhatOthersDriveIsLeftToThem)
{
	open(FI_WAIT_NONE);
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	read();
	EXPECT_EQ(1, a->passes);
	a->engine.passes++; /* somebody read a CQ */
	read();
	EXPECT_EQ(1, a->passes);
	read();
	EXPECT_EQ(2, a->passes);
	tdm_eq_undrive(eq, &a->engine);
}

TEST_F(EqDrive, EachBindingCounts)
{
	open(FI_WAIT_NONE);
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	tdm_eq_undrive(eq, &a->engine);
	read();
	EXPECT_EQ(1, a->passes) << "once for both";
	EXPECT_EQ(-FI_EBUSY, fi_close(&fid->fid));
	tdm_eq_undrive(eq, &a->engine);
	read();
	EXPECT_EQ(1, a->passes);
}

class EqDriveSleep : public EqDrive,
		     public testing::WithParamInterface<enum fi_wait_obj>
{
};

TEST_P(EqDriveSleep, WorkOfATransportWakes)
{
	/* Before the first sleep, during one, and joined while one sleeps. */
	open(GetParam());
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	EXPECT_EQ(-FI_EAGAIN, sread(1));
	for (int i = 0; i < 200; i++) {
		FakeEngine *from = i % 2 && i > 20 ? b.get() : a.get();
		std::thread t([&] {
			due = 1;
			if (i == 20) {
				EXPECT_EQ(0, tdm_eq_drive(eq, &b->engine));
			}
			from->kick();
		});

		ASSERT_LT(0, sread(-1)) << i;
		t.join();
		ASSERT_EQ(0, due);
	}
	tdm_eq_undrive(eq, &a->engine);
	a.reset();
	EXPECT_EQ(-FI_EAGAIN, sread(1));
	tdm_eq_undrive(eq, &b->engine);
}

TEST_P(EqDriveSleep, SleeperIsQuiet)
{
	/* fi_eq(3) 2.1, fi_eq_sread 1: The call blocks. */
	if (GetParam() == FI_WAIT_YIELD)
		GTEST_SKIP() << "never sleeps in the kernel";
	open(GetParam());
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	EXPECT_EQ(-FI_EAGAIN, sread(50));
	EXPECT_GE(5, a->passes);
	tdm_eq_undrive(eq, &a->engine);
}

TEST_P(EqDriveSleep, EngineGoesWhileOneSleeps)
{
	open(GetParam());
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
		std::thread t([&] { EXPECT_LT(0, sread(-1)); });

		sread(i % 2);
		tdm_eq_undrive(eq, &a->engine);
		a.reset(new FakeEngine());
		due = 1;
		event();
		t.join();
	}
}

TEST_P(EqDriveSleep, TrywaitAndDescriptor)
{
	/* fi_poll(3) 2.1, fi_trywait 3: After FI_SUCCESS an application may
	 * sleep. The wait object becomes readable when a transport has work. */
	struct pollfd fds[8] = {};
	struct fi_wait_pollfd w = {};
	int fd = -1;

	open(GetParam());
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	switch (GetParam()) {
	case FI_WAIT_POLLFD:
		w.nfds = 8;
		w.fd = fds;
		ASSERT_EQ(0, fi_control(&fid->fid, FI_GETWAIT, &w));
		break;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		ASSERT_EQ(0, fi_control(&fid->fid, FI_GETWAIT, &fd));
		fds[0].fd = fd;
		fds[0].events = POLLIN;
		w.nfds = 1;
		break;
	default:
		tdm_eq_undrive(eq, &a->engine);
		GTEST_SKIP() << "no descriptor";
	}
	a->kick();
	EXPECT_EQ(-FI_EAGAIN, tdm_eq_trywait(eq));
	EXPECT_EQ(-FI_EAGAIN, read());
	ASSERT_EQ(0, tdm_eq_trywait(eq));
	EXPECT_EQ(0, poll(fds, w.nfds, 0));
	due = 1;
	a->kick();
	EXPECT_LT(0, poll(fds, w.nfds, 0));
	EXPECT_LT(0, read());
	tdm_eq_undrive(eq, &a->engine);
}

INSTANTIATE_TEST_SUITE_P(Objects, EqDriveSleep, wait_objects(),
			 wait_object_name);

TEST_F(EqDrive, InAWaitSetOfTheApplication)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 10: Polling a set makes
	 * progress for the queues that belong to it. */
	open_set(FI_WAIT_FD);
	open(FI_WAIT_SET, set);
	EXPECT_EQ(-FI_ETIMEDOUT, tdm_waitset_sleep(set, 1));
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	EXPECT_EQ(-FI_ETIMEDOUT, tdm_waitset_sleep(set, 1));
	EXPECT_EQ(0, tdm_eq_trywait(eq));
	std::thread t([&] {
		due = 1;
		a->kick();
	});
	EXPECT_EQ(0, tdm_waitset_sleep(set, -1));
	t.join();
	EXPECT_EQ(-FI_EAGAIN, tdm_eq_trywait(eq));
	EXPECT_LT(0, read());
	a->kick();
	EXPECT_EQ(-FI_EAGAIN, tdm_eq_trywait(eq));
	tdm_eq_undrive(eq, &a->engine);
	EXPECT_EQ(-FI_ETIMEDOUT, tdm_waitset_sleep(set, 1));
}

TEST_F(EqDrive, EveryAllocationFailsInTurn)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	open(FI_WAIT_FD);
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(-FI_ENOMEM, tdm_eq_drive(eq, &a->engine));
	EXPECT_EQ(1u, tdt_alloc_stop());
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(-FI_ENOMEM, sread(1));
	EXPECT_EQ(1u, tdt_alloc_stop());
	EXPECT_EQ(-FI_EAGAIN, sread(1));
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(-FI_ENOMEM, tdm_eq_drive(eq, &b->engine));
	EXPECT_EQ(1u, tdt_alloc_stop());
	tdm_eq_undrive(eq, &a->engine);
}

TEST_F(EqDrive, DescriptorsThatCannotBeHad)
{
	tdt_os_install();
	tdt_log_expect("cannot");
	open(FI_WAIT_FD);
	ASSERT_EQ(0, tdm_eq_drive(eq, &a->engine));
	/* A set with the queue's descriptor, and two for the domain. */
	tdt_fail_nth(TDT_OS_EPOLL_CREATE1, 1, EMFILE);
	EXPECT_EQ(-FI_EMFILE, sread(1));
	for (unsigned nth = 1; nth <= 3; nth++) {
		tdt_fail_nth(TDT_OS_EPOLL_CTL, nth, ENOSPC);
		EXPECT_EQ(-FI_ENOSPC, tdm_eq_trywait(eq)) << nth;
	}
	tdt_fail_nth(TDT_OS_EVENTFD, 1, EMFILE);
	EXPECT_EQ(-FI_EMFILE, tdm_eq_trywait(eq));
	EXPECT_EQ(-FI_EAGAIN, sread(1));
	tdt_fail_nth(TDT_OS_EVENTFD, 1, EMFILE);
	EXPECT_EQ(-FI_EMFILE, tdm_eq_drive(eq, &b->engine));
	EXPECT_EQ(-FI_EAGAIN, sread(1));
	tdm_eq_undrive(eq, &a->engine);
	tdt_os_remove();
}

} // namespace
