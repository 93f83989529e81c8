/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of automatic progress, over a fake engine. */
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "fake_engine.h"

extern "C" {
#include "peer/auto.h"
#include "base/os.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
}

namespace
{

class Auto : public testing::Test
{
protected:
	tdt::FakeEngine engine;
	struct tdm_auto *self = nullptr;

	void TearDown() override
	{
		stop();
		tdm_os = tdm_os_system;
	}

	/* Before anything goes that on_progress uses. */
	void stop()
	{
		tdm_auto_stop(self);
		self = nullptr;
	}

	int passes()
	{
		int n = 0;

		engine.locked([&] { n = engine.passes; });
		return n;
	}

	/* Until the thread has been let to sleep since @before. */
	void until_asleep(int before)
	{
		for (int now = before; now <= before;) {
			engine.locked([&] { now = engine.arms; });
			std::this_thread::yield();
		}
	}
};

TEST_F(Auto, WorkIsDone)
{
	std::atomic<int> done(0);

	engine.on_progress = [&] {
		done++;
	};
	ASSERT_EQ(tdm_auto_start(&engine.engine, &self), 0);
	for (int i = 0; i < 300; i++) {
		int before = done;

		if (i % 2)
			poll(nullptr, 0, i % 3);
		engine.kick();
		while (done == before)
			std::this_thread::yield();
	}
	stop();
}

/*
 * Remaining work keeps the thread busy; other threads get the lock meanwhile.
 */
TEST_F(Auto, WorkThatIsNotDoneInOnePassGoesOn)
{
	std::atomic<int> done(0);

	engine.on_progress = [&] {
		engine.pending = ++done % 2500;
	};
	ASSERT_EQ(tdm_auto_start(&engine.engine, &self), 0);
	while (done < 2500) {
		engine.locked([] {});
		std::this_thread::yield();
	}
	EXPECT_GE(passes(), 2500);
	stop();
}

TEST_F(Auto, IdleMeansAsleep)
{
	int before;

	ASSERT_EQ(tdm_auto_start(&engine.engine, &self), 0);
	until_asleep(0);
	before = passes();
	poll(nullptr, 0, 100);
	EXPECT_EQ(passes(), before);
	engine.locked([&] { EXPECT_EQ(engine.engine.sleepers, 1u); });
}

/* A polling application does the work; when it stops, the thread does. */
TEST_F(Auto, WorkIsDoneAfterTheApplicationPolled)
{
	std::atomic<int> done(0);

	ASSERT_EQ(tdm_auto_start(&engine.engine, &self), 0);
	for (int i = 0; i < 20; i++) {
		for (int k = 0; k < 1000; k++)
			engine.locked([&] {
				engine.engine.passes++;
				engine.engine.progress(&engine.engine);
			});
		done = 0;
		engine.locked([&] {
			engine.on_progress = [&] {
				done++;
			};
		});
		engine.kick();
		while (!done)
			std::this_thread::yield();
		engine.locked([&] { engine.on_progress = nullptr; });
	}
}

TEST_F(Auto, StartsNotAtAllOrCompletely)
{
	tdt_log_expect("no automatic progress");
	if (tdt_alloc_can_fail()) {
		tdt_alloc_fail(1, 0);
		EXPECT_EQ(tdm_auto_start(&engine.engine, &self), -FI_ENOMEM);
		EXPECT_EQ(tdt_alloc_stop(), 1u);
	}
	tdm_os.eventfd = [](unsigned int, int) {
		errno = EMFILE;
		return -1;
	};
	EXPECT_EQ(tdm_auto_start(&engine.engine, &self), -FI_EMFILE);
	tdm_os = tdm_os_system;
	tdm_os.thread_create = [](pthread_t *, void *(*)(void *), void *) {
		errno = EAGAIN;
		return -1;
	};
	EXPECT_EQ(tdm_auto_start(&engine.engine, &self), -FI_EAGAIN);
	tdm_os = tdm_os_system;
	engine.engine.wait_fd = [](struct tdm_engine *) {
		return -EMFILE;
	};
	EXPECT_EQ(tdm_auto_start(&engine.engine, &self), -FI_EMFILE);
	EXPECT_EQ(self, nullptr);
	tdm_auto_stop(nullptr);
}

} // namespace
