/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait sets and condition variables over fake engines: who is woken by what,
 * from several threads, and what happens when the system says no.
 */
#include <gtest/gtest.h>

#include <cerrno>
#include <ctime>
#include <thread>

#include "fake_engine.h"

#include "tests/unit/wait_objects.h"

extern "C" {
#include "peer/cntr.h"
#include "peer/cq.h"
#include "peer/eq.h"
#include "peer/waitset.h"
#include "base/os.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
}

namespace
{

using tdt::FakeEngine;
using tdt::readable;

/* A set with a CQ and a counter of one domain, a CQ of another, and an EQ. */
class WaitSet : public testing::Test
{
protected:
	FakeEngine engine, second;
	struct tdm_waitset *set = nullptr;
	struct fid_wait *fid = nullptr;
	struct tdm_cq *cq = nullptr, *far = nullptr;
	struct tdm_cntr *cntr = nullptr;
	struct tdm_eq *eq = nullptr;

	void open(enum fi_wait_obj obj)
	{
		struct fi_wait_attr attr = {};

		attr.wait_obj = obj;
		ASSERT_EQ(tdm_waitset_open(&attr, &set), 0);
		fid = tdm_waitset_fid(set);
		ASSERT_EQ(fid->fid.fclass, static_cast<size_t>(FI_CLASS_WAIT));
	}

	int open_cq(FakeEngine *e, struct tdm_cq **out)
	{
		struct fi_cq_attr attr = {};

		attr.format = FI_CQ_FORMAT_CONTEXT;
		attr.wait_obj = FI_WAIT_SET;
		attr.wait_set = fid;
		return tdm_cq_open(&e->engine, &attr, 0, nullptr, out);
	}

	void open_members()
	{
		struct fi_cntr_attr ca = {};
		struct fi_eq_attr ea = {};

		ASSERT_EQ(open_cq(&engine, &cq), 0);
		ASSERT_EQ(open_cq(&second, &far), 0);
		ca.wait_obj = FI_WAIT_SET;
		ca.wait_set = fid;
		ASSERT_EQ(tdm_cntr_open(&engine.engine, &ca, nullptr, &cntr),
			  0);
		EXPECT_EQ(ca.wait_obj, FI_WAIT_SET);
		ea.flags = FI_WRITE;
		ea.wait_obj = FI_WAIT_SET;
		ea.wait_set = fid;
		ASSERT_EQ(tdm_eq_open(&ea, nullptr, &eq), 0);
	}

	void close_members()
	{
		if (cq) {
			EXPECT_EQ(fi_close(&tdm_cq_fid(cq)->fid), 0);
		}
		if (far) {
			EXPECT_EQ(fi_close(&tdm_cq_fid(far)->fid), 0);
		}
		if (cntr) {
			EXPECT_EQ(fi_close(&tdm_cntr_fid(cntr)->fid), 0);
		}
		if (eq) {
			EXPECT_EQ(fi_close(&tdm_eq_fid(eq)->fid), 0);
		}
		cq = far = nullptr;
		cntr = nullptr;
		eq = nullptr;
	}

	void TearDown() override
	{
		close_members();
		if (fid) {
			EXPECT_EQ(fi_close(&fid->fid), 0);
		}
		tdm_os = tdm_os_system;
	}

	int wait(int ms)
	{
		return fid->ops->wait(fid, ms);
	}

	static void write(FakeEngine &e, struct tdm_cq *q)
	{
		struct fid_peer_cq *p = tdm_cq_export(q, TDM_TRANSPORT_TCP);

		e.locked([&] {
			p->owner_ops->write(p, nullptr, 0, 0, nullptr, 0, 0, 0);
		});
	}

	void count()
	{
		struct fid_peer_cntr *p =
			tdm_cntr_export(cntr, TDM_TRANSPORT_TCP);

		engine.locked([&] { p->owner_ops->inc(p); });
	}

	void event()
	{
		struct fi_eq_entry e = {};

		EXPECT_EQ(tdm_eq_write(eq, FI_NOTIFY, &e, sizeof(e)),
			  static_cast<ssize_t>(sizeof(e)));
	}

	/* Read whatever is there, as an application does after a wait. */
	void read_all()
	{
		struct fi_eq_entry ev;
		struct fi_cq_entry e;
		uint32_t kind;

		for (auto *q : { cq, far })
			while (fi_cq_read(tdm_cq_fid(q), &e, 1) == 1)
				;
		fi_cntr_read(tdm_cntr_fid(cntr));
		while (fi_eq_read(tdm_eq_fid(eq), &kind, &ev, sizeof(ev), 0) >
		       0)
			;
	}

	/* Until every engine has let somebody sleep since @before. */
	void until_asleep(int before)
	{
		for (int now = before; now <= before;) {
			engine.locked([&] { now = engine.arms; });
			std::this_thread::yield();
		}
	}
};

class WaitSetOf : public WaitSet,
		  public testing::WithParamInterface<enum fi_wait_obj>
{
};

TEST_P(WaitSetOf, TimeIsOver)
{
	open(GetParam());
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT) << "no member";
	open_members();
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
	EXPECT_EQ(wait(20), -FI_ETIMEDOUT);
}

TEST_P(WaitSetOf, WhatIsThereEndsTheWaitUntilItIsRead)
{
	open(GetParam());
	open_members();
	write(engine, cq);
	EXPECT_EQ(wait(-1), 0);
	EXPECT_EQ(wait(-1), 0);
	read_all();
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
	write(second, far);
	EXPECT_EQ(wait(-1), 0);
	read_all();
	count();
	EXPECT_EQ(wait(-1), 0);
	read_all();
	event();
	EXPECT_EQ(wait(-1), 0);
	read_all();
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
}

/*
 * fi_poll(3) 2.1, fi_wait 1: Woken by each kind of member, asleep or about to.
 */
TEST_P(WaitSetOf, EachMemberWakes)
{
	const bool sleeps = GetParam() != FI_WAIT_YIELD;

	open(GetParam());
	open_members();
	for (int i = 0; i < 200; i++) {
		int before = 0;

		engine.locked([&] { before = engine.arms; });
		std::thread t([&] {
			if (sleeps && i % 8 >= 4)
				until_asleep(before);
			if (i % 4 == 0)
				write(engine, cq);
			else if (i % 4 == 1)
				write(second, far);
			else if (i % 4 == 2)
				count();
			else
				event();
		});
		EXPECT_EQ(wait(-1), 0);
		t.join();
		read_all();
	}
}

/* Work for a transport of any member's domain is done by the sleeper. */
TEST_P(WaitSetOf, ProgressIsMadeInside)
{
	const bool sleeps = GetParam() != FI_WAIT_YIELD;
	struct fid_peer_cq *p;

	open(GetParam());
	open_members();
	p = tdm_cq_export(far, TDM_TRANSPORT_TCP);
	for (int i = 0; i < 100; i++) {
		bool work = false;
		int before = 0;

		engine.locked([&] { before = engine.arms; });
		second.locked([&] {
			second.on_progress = [&] {
				if (work)
					p->owner_ops->write(p, nullptr, 0, 0,
							    nullptr, 0, 0, 0);
				work = false;
			};
		});
		std::thread t([&] {
			if (sleeps && i % 2)
				until_asleep(before);
			second.locked([&] { work = true; });
			second.kick();
		});
		EXPECT_EQ(wait(-1), 0);
		t.join();
		read_all();
		second.locked([&] { second.on_progress = nullptr; });
	}
}

/* fi_cq(3) 2.1, fi_cq_signal 1: The call works with any wait object. */
TEST_P(WaitSetOf, SignalOfAMemberEndsOneWait)
{
	struct fi_cq_entry e;

	open(GetParam());
	open_members();
	EXPECT_EQ(fi_cq_signal(tdm_cq_fid(cq)), 0);
	EXPECT_EQ(wait(-1), 0);
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
	std::thread t([&] { fi_cq_signal(tdm_cq_fid(cq)); });
	EXPECT_EQ(wait(-1), 0);
	t.join();
	EXPECT_EQ(fi_cq_read(tdm_cq_fid(cq), &e, 1), -FI_EAGAIN);
}

/* A queue that joins while somebody sleeps on the set can wake them. */
TEST_P(WaitSetOf, LateMemberWakes)
{
	struct fi_eq_attr ea = {};

	open(GetParam());
	ea.wait_obj = FI_WAIT_SET;
	ea.wait_set = fid;
	ASSERT_EQ(tdm_eq_open(&ea, nullptr, &eq), 0);
	for (int i = 0; i < 50; i++) {
		std::thread t([&] {
			if (i % 2)
				std::this_thread::yield();
			EXPECT_EQ(open_cq(&engine, &cq), 0);
			write(engine, cq);
		});
		EXPECT_EQ(wait(-1), 0);
		t.join();
		EXPECT_EQ(fi_close(&tdm_cq_fid(cq)->fid), 0);
		cq = nullptr;
	}
}

/* fi_cq(3) 2.1, fi_cq_sread / fi_cq_sreadfrom 3: A queue of FI_WAIT_NONE or
 * FI_WAIT_SET cannot be waited for by fi_cq_sread. */
TEST_P(WaitSetOf, MembersDoNotBlockThemselves)
{
	struct fi_cq_entry e;
	uint32_t kind;

	open(GetParam());
	open_members();
	EXPECT_EQ(fi_cq_sread(tdm_cq_fid(cq), &e, 1, nullptr, -1), -FI_ENOSYS);
	EXPECT_EQ(fi_cntr_wait(tdm_cntr_fid(cntr), 1, -1), -FI_ENOSYS);
	EXPECT_EQ(fi_eq_sread(tdm_eq_fid(eq), &kind, &e, sizeof(e), -1, 0),
		  -FI_ENOSYS);
}

INSTANTIATE_TEST_SUITE_P(Objects, WaitSetOf, wait_objects(), wait_object_name);

/* fi_poll(3) 2.1, fi_close 1: A wait set that others use stays open:
 * -FI_EBUSY. */
TEST_F(WaitSet, ClosesWhenItIsEmpty)
{
	open(FI_WAIT_UNSPEC);
	open_members();
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	EXPECT_EQ(fi_close(&tdm_cq_fid(cq)->fid), 0);
	cq = nullptr;
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT) << "the counter shares the engine";
	count();
	EXPECT_EQ(wait(-1), 0);
	close_members();
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
}

TEST_F(WaitSet, RefusesWhatItCannotBe)
{
	struct fi_wait_attr attr = {};

	for (int obj : { int(FI_WAIT_NONE), int(FI_WAIT_SET), 99 }) {
		attr.wait_obj = static_cast<enum fi_wait_obj>(obj);
		EXPECT_EQ(tdm_waitset_open(&attr, &set), -FI_EINVAL) << obj;
	}
	attr.wait_obj = FI_WAIT_FD;
	attr.flags = 1;
	EXPECT_EQ(tdm_waitset_open(&attr, &set), -FI_EINVAL);
	ASSERT_EQ(tdm_waitset_open(nullptr, &set), 0) << "all defaults";
	fid = tdm_waitset_fid(set);
	EXPECT_EQ(fi_control(&fid->fid, FI_ENABLE, nullptr), -FI_ENOSYS);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, nullptr), -FI_EINVAL);
}

/* FI_WAIT_FD: one descriptor for all members, with fi_trywait before. */
TEST_F(WaitSet, FdFollowsTrywait)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	int fd = -1, same = -2;

	open(FI_WAIT_FD);
	open_members();
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	ASSERT_EQ(fi_control(&tdm_cq_fid(cq)->fid, FI_GETWAIT, &same), 0);
	EXPECT_EQ(fd, same);
	ASSERT_EQ(fi_control(&tdm_eq_fid(eq)->fid, FI_GETWAIT, &same), 0);
	EXPECT_EQ(fd, same);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAITOBJ, &obj), 0);
	EXPECT_EQ(obj, FI_WAIT_FD);
	EXPECT_EQ(fi_control(&tdm_cq_fid(cq)->fid, FI_GETWAITOBJ, &obj), 0);
	EXPECT_EQ(obj, FI_WAIT_SET);
	EXPECT_EQ(tdm_waitset_trywait(set), 0);
	EXPECT_FALSE(readable(fd));
	write(second, far);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_waitset_trywait(set), -FI_EAGAIN);
	read_all();
	EXPECT_EQ(tdm_waitset_trywait(set), 0);
	EXPECT_FALSE(readable(fd));
	engine.kick();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_waitset_trywait(set), -FI_EAGAIN) << "needs progress";
	read_all();
	EXPECT_EQ(tdm_waitset_trywait(set), 0);
	event();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_waitset_trywait(set), -FI_EAGAIN);
	read_all();
	count();
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_waitset_trywait(set), -FI_EAGAIN);
}

/* fi_poll(3) 2.1, NOTES 4: change_index grows whenever a descriptor comes, goes
 * or changes its events. */
TEST_F(WaitSet, PollfdListsEachDescriptorOnce)
{
	struct fi_wait_pollfd w = {};
	struct pollfd fds[8];
	uint64_t index;

	open(FI_WAIT_POLLFD);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), 0) << "none yet";
	EXPECT_EQ(w.nfds, 0u);
	index = w.change_index;
	open_members();
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), -FI_ETOOSMALL);
	EXPECT_GT(w.change_index, index);
	index = w.change_index;
	EXPECT_EQ(w.nfds, 6u) << "four members, two domains";
	w.nfds = 8;
	w.fd = fds;
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), 0);
	EXPECT_EQ(w.nfds, 6u);
	EXPECT_EQ(w.change_index, index);
	EXPECT_EQ(tdm_waitset_trywait(set), 0);
	EXPECT_EQ(poll(fds, w.nfds, 0), 0);
	for (int i = 0; i < 4; i++) {
		if (i == 0)
			write(engine, cq);
		else if (i == 1)
			write(second, far);
		else if (i == 2)
			event();
		else
			second.kick();
		EXPECT_EQ(poll(fds, w.nfds, 0), 1);
		read_all();
		EXPECT_EQ(tdm_waitset_trywait(set), 0);
		EXPECT_EQ(poll(fds, w.nfds, 0), 0);
	}
	EXPECT_EQ(fi_close(&tdm_cq_fid(cq)->fid), 0);
	cq = nullptr;
	w.nfds = 8;
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), 0);
	EXPECT_EQ(w.nfds, 5u) << "the counter is in the same domain";
	EXPECT_GT(w.change_index, index);
}

TEST_F(WaitSet, YieldHasNoDescriptor)
{
	int fd;

	open(FI_WAIT_YIELD);
	open_members();
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	EXPECT_EQ(fi_control(&tdm_cq_fid(cq)->fid, FI_GETWAIT, &fd),
		  -FI_ENODATA);
	EXPECT_EQ(tdm_waitset_trywait(set), -FI_EINVAL);
	EXPECT_EQ(tdm_cq_trywait(cq), -FI_EINVAL);
	EXPECT_EQ(engine.fd, -1);
}

/*
 * fi_poll(3) 2.1, fi_wait_open 6: FI_WAIT_MUTEX_COND: as an application sleeps
 * on it, with the mutex held from fi_trywait on.
 */
struct Sleeper {
	struct fi_mutex_cond mc;
	std::function<int()> trywait, ready;

	void until_ready()
	{
		pthread_mutex_lock(mc.mutex);
		while (!ready()) {
			int ret = trywait();

			if (ret == 0)
				pthread_cond_wait(mc.cond, mc.mutex);
			else
				ASSERT_EQ(ret, -FI_EAGAIN);
		}
		pthread_mutex_unlock(mc.mutex);
	}
};

TEST_F(WaitSet, ConditionVariableWakes)
{
	Sleeper s;

	open(FI_WAIT_MUTEX_COND);
	open_members();
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &s.mc), 0);
	s.trywait = [&] {
		return tdm_waitset_trywait(set);
	};
	s.ready = [&] {
		struct fi_cq_entry e;

		return fi_cq_read(tdm_cq_fid(far), &e, 1) == 1;
	};
	for (int i = 0; i < 300; i++) {
		int before = 0;

		engine.locked([&] { before = engine.arms; });
		std::thread t([&] {
			if (i % 2)
				until_asleep(before);
			write(second, far);
		});
		s.until_ready();
		t.join();
	}
}

TEST_F(WaitSet, ConditionVariableOfACqWakes)
{
	struct fi_cq_attr attr = {};
	Sleeper s;

	attr.wait_obj = FI_WAIT_MUTEX_COND;
	ASSERT_EQ(tdm_cq_open(&engine.engine, &attr, 0, nullptr, &cq), 0);
	EXPECT_EQ(attr.wait_obj, FI_WAIT_MUTEX_COND);
	EXPECT_EQ(engine.fd, -1) << "nobody waits, nobody pays";
	ASSERT_EQ(fi_control(&tdm_cq_fid(cq)->fid, FI_GETWAIT, &s.mc), 0);
	s.trywait = [&] {
		return tdm_cq_trywait(cq);
	};
	s.ready = [&] {
		struct fi_cq_entry e;

		return fi_cq_read(tdm_cq_fid(cq), &e, 1) == 1;
	};
	for (int i = 0; i < 300; i++) {
		bool work = false;
		int before = 0;

		engine.locked([&] {
			before = engine.arms;
			engine.on_progress = [&] {
				struct fid_peer_cq *p =
					tdm_cq_export(cq, TDM_TRANSPORT_TCP);

				if (work)
					p->owner_ops->write(p, nullptr, 0, 0,
							    nullptr, 0, 0, 0);
				work = false;
			};
		});
		std::thread t([&] {
			if (i % 4 >= 2)
				until_asleep(before);
			if (i % 2) {
				write(engine, cq);
			} else {
				engine.locked([&] { work = true; });
				engine.kick();
			}
		});
		s.until_ready();
		t.join();
		engine.locked([&] { engine.on_progress = nullptr; });
	}
}

TEST_F(WaitSet, ConditionVariableOfACounterAndAnEqWakes)
{
	struct fi_cntr_attr ca = {};
	struct fi_eq_attr ea = {};
	uint64_t want = 0;
	Sleeper c, e;

	ca.wait_obj = FI_WAIT_MUTEX_COND;
	ASSERT_EQ(tdm_cntr_open(&engine.engine, &ca, nullptr, &cntr), 0);
	ea.wait_obj = FI_WAIT_MUTEX_COND;
	ASSERT_EQ(tdm_eq_open(&ea, nullptr, &eq), 0);
	ASSERT_EQ(fi_control(&tdm_cntr_fid(cntr)->fid, FI_GETWAIT, &c.mc), 0);
	ASSERT_EQ(fi_control(&tdm_eq_fid(eq)->fid, FI_GETWAIT, &e.mc), 0);
	c.trywait = [&] {
		return tdm_cntr_trywait(cntr);
	};
	c.ready = [&] {
		return fi_cntr_read(tdm_cntr_fid(cntr)) == want;
	};
	e.trywait = [&] {
		return tdm_eq_trywait(eq);
	};
	e.ready = [&] {
		struct fi_eq_entry ev;
		uint32_t kind;

		return fi_eq_read(tdm_eq_fid(eq), &kind, &ev, sizeof(ev), 0) >
		       0;
	};
	for (int i = 0; i < 300; i++) {
		want++;
		std::thread t([&] {
			count();
			event();
		});
		c.until_ready();
		e.until_ready();
		t.join();
	}
}

/*
 * An application that does not hold the mutex may come too late for the
 * broadcast: it is repeated while there is something to see.
 */
TEST_F(WaitSet, BroadcastIsRepeated)
{
	struct fi_mutex_cond mc;
	struct timespec until;

	open(FI_WAIT_MUTEX_COND);
	open_members();
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &mc), 0);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(tdm_waitset_trywait(set), 0);
		write(engine, cq);
		/* The first broadcast may be over by now. */
		poll(nullptr, 0, i);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 20;
		pthread_mutex_lock(mc.mutex);
		EXPECT_EQ(pthread_cond_timedwait(mc.cond, mc.mutex, &until), 0);
		pthread_mutex_unlock(mc.mutex);
		read_all();
	}
}

TEST_F(WaitSet, OpenWithoutMemoryOrDescriptors)
{
	struct fi_mutex_cond mc;

	tdt_log_expect("cannot make a wait set");
	tdt_log_expect("cannot join a wait set");
	tdt_log_expect("cannot make a wait object");
	tdt_log_expect("no helper for a condition variable");
	if (tdt_alloc_can_fail()) {
		tdt_alloc_fail(1, 0);
		EXPECT_EQ(tdm_waitset_open(nullptr, &set), -FI_ENOMEM);
		EXPECT_EQ(tdt_alloc_stop(), 1u);
	}
	tdm_os.epoll_create1 = [](int) {
		errno = EMFILE;
		return -1;
	};
	EXPECT_EQ(tdm_waitset_open(nullptr, &set), -FI_EMFILE);
	tdm_os = tdm_os_system;
	open(FI_WAIT_MUTEX_COND);
	tdm_os.eventfd = [](unsigned int, int) {
		errno = EMFILE;
		return -1;
	};
	EXPECT_EQ(open_cq(&engine, &cq), -FI_EMFILE);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &mc), -FI_EMFILE);
	tdm_os = tdm_os_system;
	/* The second descriptor does not fit: the first is taken out. */
	static int adds;
	adds = 0;
	tdm_os.epoll_ctl = [](int ep, int op, int fd, struct epoll_event *ev) {
		if (op == EPOLL_CTL_ADD && ++adds % 2 == 0) {
			errno = ENOSPC;
			return -1;
		}
		return tdm_os_system.epoll_ctl(ep, op, fd, ev);
	};
	EXPECT_EQ(open_cq(&engine, &cq), -FI_ENOSPC);
	tdm_os = tdm_os_system;
	tdm_os.thread_create = [](pthread_t *, void *(*)(void *), void *) {
		errno = EAGAIN;
		return -1;
	};
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &mc), -FI_EAGAIN);
	tdm_os = tdm_os_system;
	if (tdt_alloc_can_fail()) {
		tdt_alloc_fail(1, 0);
		EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &mc), -FI_ENOMEM);
		EXPECT_EQ(tdt_alloc_stop(), 1u);
	}
	cq = nullptr;
	open_members();
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &mc), 0);
	EXPECT_EQ(wait(0), -FI_ETIMEDOUT);
}

} // namespace
