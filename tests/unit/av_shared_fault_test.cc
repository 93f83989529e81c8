/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named address vectors when memory is out, or the system says no: fi_av(3)
 * calls fail, the table stays what it was, and nothing is left behind.
 */
#include "tests/contract/av_shared_fixture.h"
#include "tests/unit/shm_world.h"

extern "C" {
#include "av/locality.h"
#include "tests/harness/fault.h"
#include "tests/harness/os_fault.h"
}

namespace
{

using namespace tdt;

uint64_t now_ns; /* time stands still */

class SharedFault : public SharedTest
{
protected:
	void SetUp() override
	{
		tdt_os_install();
		tdt_log_expect("");
		/*
		 * The addresses of this host are read again each second, and
		 * the old ones stay when memory is out: no such reading among
		 * the allocations that a test counts.
		 */
		tdm_locality_filter();
		now_ns = tdm_os.now_ns();
		tdm_os.now_ns = [] {
			return now_ns;
		};
	}

	void TearDown() override
	{
		tdt_os_remove();
		SharedTest::TearDown();
	}
};

TEST_F(SharedFault, OpenWithEachAllocationFailing)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without the wrappers";
	for (uint64_t flags :
	     { uint64_t(0), uint64_t(FI_READ), uint64_t(FI_AV_USER_ID) }) {
		ASSERT_EQ(0, one.open(name));
		ASSERT_EQ(0, one.put(1));
		for (unsigned nth = 1;; nth++) {
			tdt_alloc_fail(nth, 0);
			int ret = two.open(name, flags);
			if (!tdt_alloc_stop()) {
				ASSERT_EQ(0, ret);
				EXPECT_EQ(1, two.at(0));
				EXPECT_LT(3u, nth);
				break;
			}
			ASSERT_EQ(-FI_ENOMEM, ret) << nth;
		}
		two.close();
		one.close();
	}
}

TEST_F(SharedFault, FollowWithEachAllocationFailing)
{
	/*
	 * Changes that could not be taken over are taken over later; until then
	 * the process may not write.
	 */
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without the wrappers";
	for (unsigned nth = 1;; nth++) {
		ASSERT_EQ(0, one.open(name));
		ASSERT_EQ(0, two.open(name));
		for (uint16_t i = 0; i < 300; i++)
			ASSERT_EQ(i, one.put(uint16_t(i + 1)));
		tdt_alloc_fail(nth, 1);
		two.pass();
		int64_t a = two.put(1000);
		if (!tdt_alloc_stop()) {
			EXPECT_EQ(300, a);
			EXPECT_LT(1u, nth);
			break;
		}
		ASSERT_EQ(-FI_ENOMEM, a);
		ASSERT_EQ(300, one.put(2000));
		ASSERT_EQ(301, two.put(1000));
		ASSERT_EQ(one.ports(303), two.ports(303));
		one.close();
		two.close();
	}
}

TEST_F(SharedFault, OpenWithEachCallFailing)
{
	static const enum tdt_os_call calls[] = {
		TDT_OS_OPEN_FILE, TDT_OS_FSTAT,	    TDT_OS_FLOCK,
		TDT_OS_FTRUNCATE, TDT_OS_FALLOCATE, TDT_OS_PWRITE,
		TDT_OS_PREAD,	  TDT_OS_MMAP,	    TDT_OS_FILE_LOCK,
	};
	size_t fds = tdt_open_files();

	for (auto call : calls) {
		for (int users = 0; users < 2; users++) {
			for (unsigned nth = 1;; nth++) {
				if (users) {
					ASSERT_EQ(0, one.open(name));
					ASSERT_EQ(0, one.put(1));
				}
				tdt_os_clear();
				tdt_fail_nth(call, nth, ENOSPC);
				int ret = two.open(name);
				unsigned struck = tdt_os_struck();
				tdt_os_clear();
				if (ret) {
					EXPECT_GT(0, ret);
				} else {
					EXPECT_EQ(users, two.at(0));
				}
				two.close();
				if (users) {
					EXPECT_EQ(1, one.at(0));
				}
				one.close();
				EXPECT_EQ(fds, tdt_open_files());
				if (there()) {
					/* Not even flock(2) worked. */
					EXPECT_EQ(TDT_OS_FLOCK, call);
					unlink(path().c_str());
				}
				if (!struck)
					break;
				ASSERT_GT(20u, nth) << tdt_os_name(call);
			}
		}
	}
}

TEST_F(SharedFault, InterruptedLocksAreAskedForAgain)
{
	tdt_fail_nth(TDT_OS_FLOCK, 1, EINTR);
	tdt_fail_nth(TDT_OS_FILE_LOCK, 1, EINTR);
	ASSERT_EQ(0, one.open(name));
	EXPECT_EQ(2u, tdt_os_struck());
	tdt_fail_nth(TDT_OS_FILE_LOCK, 1, EINTR);
	EXPECT_EQ(0, one.put(1));
}

TEST_F(SharedFault, InsertAndRemoveWithEachCallFailing)
{
	static const enum tdt_os_call calls[] = { TDT_OS_PWRITE,
						  TDT_OS_FILE_LOCK };
	static const int errs[] = { ENOSPC, EIO, ENOLCK };

	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	/* The next one begins a block. */
	for (uint16_t i = 0; i < 256; i++)
		ASSERT_EQ(i, one.put(uint16_t(i + 1)));
	for (auto call : calls) {
		for (int err : errs) {
			for (unsigned nth = 1;; nth++) {
				tdt_os_clear();
				tdt_fail_nth(call, nth, err);
				int64_t a = one.put(1000);
				unsigned struck = tdt_os_struck();

				tdt_os_clear();
				if (a >= 0) {
					EXPECT_EQ(256, a);
					EXPECT_EQ(1000, two.at(256));
					ASSERT_EQ(0, one.drop(256));
				} else {
					EXPECT_TRUE(a == -err || a == -FI_EIO);
				}
				EXPECT_EQ(0, one.at(256));
				EXPECT_EQ(0, two.at(256));
				EXPECT_EQ(256, two.at(255));
				EXPECT_EQ(FI_ADDR_NOTAVAIL, one.map[256]);
				if (!struck)
					break;
			}
		}
	}
	for (int err : errs) {
		for (unsigned nth = 1;; nth++) {
			tdt_os_clear();
			tdt_fail_nth(TDT_OS_PWRITE, nth, err);
			int ret = one.drop(3);
			unsigned struck = tdt_os_struck();

			tdt_os_clear();
			EXPECT_EQ(ret ? 4 : 0, one.at(3));
			EXPECT_EQ(ret ? 4 : 0, two.at(3));
			EXPECT_EQ(ret ? 3 : FI_ADDR_NOTAVAIL, two.map[3]);
			if (!ret) {
				ASSERT_EQ(3, two.put(4));
			}
			if (!struck)
				break;
		}
	}
}

TEST_F(SharedFault, ReadThatFailsIsMadeGoodLater)
{
	ASSERT_EQ(0, one.open(name));
	ASSERT_EQ(0, two.open(name));
	ASSERT_EQ(0, one.put(1));
	tdt_fail_nth(TDT_OS_PREAD, 1, EIO);
	two.pass();
	EXPECT_EQ(1, two.at(0));
	tdt_os_clear();
	/* Somebody writes, as it seems: not now, but later. */
	ASSERT_EQ(1, one.put(2));
	tdt_fail_nth(TDT_OS_PREAD, 1, EIO);
	tdt_fail_nth(TDT_OS_FILE_LOCK, 1, EAGAIN);
	two.pass();
	EXPECT_EQ(2u, tdt_os_struck());
	EXPECT_EQ(2, two.at(1));
}

} // namespace
