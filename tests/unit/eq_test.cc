/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event queue: events and errors in order, peeking, overrun, blocking
 * reads and the wait object.
 */
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <netinet/in.h>
#include <thread>
#include <vector>

#include "fake_engine.h"

#include "tests/unit/wait_objects.h"

extern "C" {
#include "peer/eq.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
#include <rdma/fi_errno.h>
}

namespace
{

using tdt::readable;

class Eq : public testing::Test
{
protected:
	struct tdm_eq *eq = nullptr;
	struct fid_eq *fid = nullptr;

	int open(size_t size, enum fi_wait_obj obj, uint64_t flags = FI_WRITE)
	{
		struct fi_eq_attr attr = {};
		int ret;

		attr.size = size;
		attr.flags = flags;
		attr.wait_obj = obj;
		ret = tdm_eq_open(&attr, this, &eq);
		if (!ret)
			fid = tdm_eq_fid(eq);
		return ret;
	}

	ssize_t write(uint64_t n)
	{
		struct fi_eq_entry e = { &fid->fid, this, n };

		return fi_eq_write(fid, FI_NOTIFY, &e, sizeof(e), 0);
	}

	int write_err(int n, const void *data = nullptr, size_t len = 0)
	{
		struct fi_eq_err_entry e = {};

		e.fid = &fid->fid;
		e.context = this;
		e.err = n;
		e.prov_errno = -n;
		e.err_data = const_cast<void *>(data);
		e.err_data_size = len;
		return tdm_eq_write_err(eq, &e);
	}

	/* The data field of the next event, or the error. */
	int64_t next(uint64_t flags = 0)
	{
		struct fi_eq_entry e = {};
		uint32_t event = ~0u;
		ssize_t ret = fi_eq_read(fid, &event, &e, sizeof(e), flags);

		return take(ret, event, e);
	}

	int64_t snext(int timeout, uint64_t flags = 0)
	{
		struct fi_eq_entry e = {};
		uint32_t event = ~0u;
		ssize_t ret =
			fi_eq_sread(fid, &event, &e, sizeof(e), timeout, flags);

		return take(ret, event, e);
	}

	int64_t take(ssize_t ret, uint32_t event, const struct fi_eq_entry &e)
	{
		if (ret < 0)
			return ret;
		EXPECT_EQ(ret, static_cast<ssize_t>(sizeof(e)));
		EXPECT_EQ(event, static_cast<uint32_t>(FI_NOTIFY));
		EXPECT_EQ(e.fid, &fid->fid);
		EXPECT_EQ(e.context, this);
		return static_cast<int64_t>(e.data);
	}

	void TearDown() override
	{
		if (fid) {
			EXPECT_EQ(fi_close(&fid->fid), 0);
		}
	}
};

TEST_F(Eq, OpensInManySizes)
{
	for (size_t size = 1; size <= 65536; size *= 2) {
		ASSERT_EQ(open(size, FI_WAIT_UNSPEC, 0), 0);
		ASSERT_EQ(fi_close(&fid->fid), 0);
		fid = nullptr;
	}
	ASSERT_EQ(tdm_eq_open(nullptr, this, &eq), 0);
	fid = tdm_eq_fid(eq);
	EXPECT_EQ(fid->fid.fclass, static_cast<size_t>(FI_CLASS_EQ));
	EXPECT_EQ(fid->fid.context, this);
	EXPECT_EQ(tdm_eq_from_fid(fid), eq);
	EXPECT_EQ(snext(0), -FI_ENOSYS);
}

TEST_F(Eq, RefusesWhatItDoesNotKnow)
{
	EXPECT_EQ(open(0, FI_WAIT_SET), -FI_EINVAL) << "without a set";
	EXPECT_EQ(open(0, static_cast<enum fi_wait_obj>(77)), -FI_EINVAL);
	EXPECT_EQ(open(0, FI_WAIT_NONE, FI_PEER), -FI_EINVAL);
}

TEST_F(Eq, ReadsInOrderAndPeeks)
{
	ASSERT_EQ(open(32, FI_WAIT_NONE), 0);
	EXPECT_EQ(next(), -FI_EAGAIN);
	for (uint64_t n = 0; n < 32; n++)
		ASSERT_EQ(write(n),
			  static_cast<ssize_t>(sizeof(struct fi_eq_entry)));
	for (int64_t n = 0; n < 32; n++) {
		EXPECT_EQ(next(FI_PEEK), n);
		EXPECT_EQ(next(FI_PEEK), n);
		EXPECT_EQ(next(), n);
	}
	EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(next(FI_PEEK), -FI_EAGAIN);
}

/* The size of the event decides: nothing is cut. */
TEST_F(Eq, AShortBufferLeavesTheEvent)
{
	uint32_t event;
	char buf[4];

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	write(3);
	EXPECT_EQ(fi_eq_read(fid, &event, buf, sizeof(buf), 0), -FI_ETOOSMALL);
	EXPECT_EQ(next(), 3);
	EXPECT_EQ(tdm_eq_write(eq, 9, nullptr, 0), 0);
	EXPECT_EQ(fi_eq_read(fid, &event, buf, sizeof(buf), 0), 0);
	EXPECT_EQ(event, 9u);
}

/*
 * fi_eq(3) 2.1, fi_eq_open 5: Without FI_WRITE the application may not write.
 */
TEST_F(Eq, OnlyTheProviderWritesWithoutFiWrite)
{
	struct fi_eq_entry e = {};

	ASSERT_EQ(open(0, FI_WAIT_NONE, 0), 0);
	e = { &fid->fid, this, 5 };
	EXPECT_EQ(write(1), -FI_EINVAL);
	EXPECT_EQ(tdm_eq_write(eq, FI_NOTIFY, &e, sizeof(e)),
		  static_cast<ssize_t>(sizeof(e)));
	EXPECT_EQ(next(), 5);
}

TEST_F(Eq, PendingFollowsTheQueue)
{
	struct fi_eq_err_entry err = {};

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	EXPECT_FALSE(tdm_eq_pending(eq));
	write(1);
	write_err(2);
	EXPECT_TRUE(tdm_eq_pending(eq));
	next();
	EXPECT_TRUE(tdm_eq_pending(eq));
	fi_eq_readerr(fid, &err, 0);
	EXPECT_FALSE(tdm_eq_pending(eq));
}

/* fi_eq(3) 2.1, NOTES 1: Writers fail, readers drain, then are told. */
TEST_F(Eq, OverrunIsForGood)
{
	struct fi_eq_err_entry err = {};

	tdt_log_expect("overrun");
	ASSERT_EQ(open(4, FI_WAIT_FD), 0);
	for (uint64_t n = 0; n < 4; n++)
		ASSERT_GT(write(n), 0);
	EXPECT_EQ(write(4), -FI_EOVERRUN);
	EXPECT_EQ(write_err(4), -FI_EOVERRUN);
	EXPECT_EQ(next(), 0);
	EXPECT_EQ(write(5), -FI_EOVERRUN) << "nothing behind the gap";
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(next(), 2);
	EXPECT_EQ(next(), 3);
	EXPECT_EQ(next(), -FI_EOVERRUN);
	EXPECT_EQ(snext(-1), -FI_EOVERRUN);
	EXPECT_EQ(fi_eq_readerr(fid, &err, 0), -FI_EOVERRUN);
	EXPECT_EQ(tdm_eq_trywait(eq), -FI_EAGAIN);
	EXPECT_EQ(tdt_log_count("overrun"), 1u);
}

TEST_F(Eq, ErrorsKeepTheirPlace)
{
	struct fi_eq_err_entry err = {};
	const ssize_t size = sizeof(err);

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	EXPECT_EQ(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
	write(1);
	EXPECT_EQ(write_err(FI_ECONNRESET), 0);
	write(2);
	EXPECT_EQ(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(next(), -FI_EAVAIL);
	EXPECT_EQ(next(FI_PEEK), -FI_EAVAIL);
	EXPECT_EQ(fi_eq_readerr(fid, &err, FI_PEEK), size);
	err = {};
	EXPECT_EQ(fi_eq_readerr(fid, &err, 0), size);
	EXPECT_EQ(err.fid, &fid->fid);
	EXPECT_EQ(err.context, this);
	EXPECT_EQ(err.err, FI_ECONNRESET);
	EXPECT_EQ(err.prov_errno, -FI_ECONNRESET);
	EXPECT_EQ(next(), 2);
	EXPECT_EQ(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
	EXPECT_EQ(fi_eq_readerr(fid, nullptr, 0), -FI_EINVAL);
}

TEST_F(Eq, DropTakesTheOldestOfAnyKind)
{
	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	tdm_eq_drop(eq);
	write_err(1, "x", 2);
	write(2);
	write(3);
	tdm_eq_drop(eq);
	tdm_eq_drop(eq);
	EXPECT_EQ(next(), 3);
	EXPECT_FALSE(tdm_eq_pending(eq));
}

/*
 * fi_eq(3) 2.1, fi_eq_readerr 7 and 8: A buffer of the caller's gets a copy;
 * without one the queue lends its own.
 */
TEST_F(Eq, ReaderrCopiesOrLends)
{
	struct fi_eq_err_entry err = {};
	char data[8] = "abcdefg", mine[16] = {};

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	write_err(1, data, sizeof(data));
	write_err(2, data, sizeof(data));
	write_err(3);
	memset(data, 0, sizeof(data));
	err.err_data = mine;
	err.err_data_size = 4;
	EXPECT_GT(fi_eq_readerr(fid, &err, 0), 0);
	EXPECT_EQ(err.err_data, mine);
	EXPECT_EQ(err.err_data_size, 4u);
	EXPECT_STREQ(mine, "abcd");
	err.err_data_size = 0;
	EXPECT_GT(fi_eq_readerr(fid, &err, 0), 0);
	EXPECT_NE(err.err_data, mine);
	EXPECT_EQ(err.err_data_size, sizeof(data));
	EXPECT_STREQ(static_cast<char *>(err.err_data), "abcdefg");
	err = {};
	EXPECT_GT(fi_eq_readerr(fid, &err, 0), 0);
	EXPECT_EQ(err.err_data, nullptr);
	EXPECT_EQ(err.err_data_size, 0u);
}

TEST_F(Eq, UnreadEventsAreFreedAtClose)
{
	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	write(1);
	write_err(2, "x", 2);
}

TEST_F(Eq, CloseIsBusyWhileHeld)
{
	int closed = 0;

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	tdm_eq_on_close(
		eq, [](void *arg) { ++*static_cast<int *>(arg); }, &closed);
	tdm_eq_get(eq);
	EXPECT_EQ(fi_close(&fid->fid), -FI_EBUSY);
	tdm_eq_put(eq);
	EXPECT_EQ(closed, 0);
	EXPECT_EQ(fi_close(&fid->fid), 0);
	EXPECT_EQ(closed, 1);
	fid = nullptr;
}

TEST_F(Eq, WithoutMemory)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(open(0, FI_WAIT_NONE), -FI_ENOMEM);
	tdt_alloc_stop();
	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(write(1), -FI_ENOMEM);
	EXPECT_EQ(write_err(1), -FI_ENOMEM);
	tdt_alloc_stop();
	EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_GT(write(2), 0);
	EXPECT_EQ(next(), 2);
}

TEST_F(Eq, StrerrorNamesTheCode)
{
	char buf[64];

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	EXPECT_STREQ(fi_eq_strerror(fid, -FI_ECONNRESET, nullptr, nullptr, 0),
		     fi_strerror(FI_ECONNRESET));
	fi_eq_strerror(fid, FI_ECONNRESET, nullptr, buf, sizeof(buf));
	EXPECT_STREQ(buf, fi_strerror(FI_ECONNRESET));
}

TEST_F(Eq, StrerrorNamesThePeerOfTheErrorReadLast)
{
	/* fi_tandem(7), FAULTS: the text of the error that was read last. */
	struct sockaddr_in6 sin6 = {};
	struct fi_eq_err_entry err = {};

	sin6.sin6_family = AF_INET6;
	sin6.sin6_port = htons(4711);
	sin6.sin6_addr.s6_addr[15] = 1;
	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	write_err(FI_ECONNRESET, &sin6, sizeof(sin6));
	ASSERT_EQ(fi_eq_readerr(fid, &err, 0), ssize_t(sizeof(err)));
	EXPECT_EQ(std::string(fi_strerror(FI_ECONNRESET)) +
			  ": [::1]:4711: the peer died or closed its endpoint",
		  fi_eq_strerror(fid, err.prov_errno, err.err_data, nullptr,
				 0));
	EXPECT_STREQ(fi_strerror(FI_ECONNRESET),
		     fi_eq_strerror(fid, err.prov_errno, nullptr, nullptr, 0));
}

TEST_F(Eq, WaitFdIsReadableWhileThereAreEvents)
{
	enum fi_wait_obj obj;
	int fd = -1;

	ASSERT_EQ(open(0, FI_WAIT_FD), 0);
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAITOBJ, &obj), 0);
	EXPECT_EQ(obj, FI_WAIT_FD);
	EXPECT_EQ(tdm_eq_trywait(eq), 0);
	EXPECT_FALSE(readable(fd));
	write(1);
	write_err(2);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(tdm_eq_trywait(eq), -FI_EAGAIN);
	EXPECT_EQ(next(FI_PEEK), 1);
	EXPECT_TRUE(readable(fd));
	EXPECT_EQ(next(), 1);
	EXPECT_TRUE(readable(fd));
	struct fi_eq_err_entry err = {};
	fi_eq_readerr(fid, &err, 0);
	EXPECT_FALSE(readable(fd));
	EXPECT_EQ(tdm_eq_trywait(eq), 0);
}

TEST_F(Eq, WaitPollfd)
{
	struct pollfd fds[1] = {};
	struct fi_wait_pollfd w = {};

	ASSERT_EQ(open(0, FI_WAIT_POLLFD), 0);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), -FI_ETOOSMALL);
	ASSERT_EQ(w.nfds, 1u);
	w.fd = fds;
	ASSERT_EQ(fi_control(&fid->fid, FI_GETWAIT, &w), 0);
	EXPECT_EQ(poll(fds, 1, 0), 0);
	write(1);
	EXPECT_EQ(poll(fds, 1, 0), 1);
}

TEST_F(Eq, WithoutAWaitObjectThereIsNone)
{
	int fd;

	ASSERT_EQ(open(0, FI_WAIT_NONE), 0);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	EXPECT_EQ(fi_control(&fid->fid, FI_GETWAIT, nullptr), -FI_EINVAL);
	EXPECT_EQ(fi_control(&fid->fid, FI_ENABLE, nullptr), -FI_ENOSYS);
	EXPECT_EQ(tdm_eq_trywait(eq), -FI_EINVAL);
	EXPECT_EQ(fid->fid.ops->bind(&fid->fid, nullptr, 0), -FI_ENOSYS);
}

class EqWait : public Eq, public testing::WithParamInterface<enum fi_wait_obj>
{
	void SetUp() override
	{
		ASSERT_EQ(open(65536, GetParam()), 0);
	}
};

TEST_P(EqWait, TimeoutEndsWithEagain)
{
	EXPECT_EQ(snext(0), -FI_EAGAIN);
	EXPECT_EQ(snext(1), -FI_EAGAIN);
	EXPECT_EQ(snext(20), -FI_EAGAIN);
}

TEST_P(EqWait, PeekingDoesNotConsume)
{
	write(1);
	EXPECT_EQ(snext(-1, FI_PEEK), 1);
	EXPECT_EQ(snext(-1), 1);
	EXPECT_EQ(snext(0), -FI_EAGAIN);
	write_err(1);
	EXPECT_EQ(snext(-1), -FI_EAVAIL);
}

TEST_P(EqWait, EventsWake)
{
	const int64_t total = 3000;
	std::thread t([&] {
		for (int64_t n = 0; n < total; n++)
			write(static_cast<uint64_t>(n));
	});

	for (int64_t n = 0; n < total; n++)
		ASSERT_EQ(snext(-1), n);
	t.join();
}

TEST_P(EqWait, ReadersShareAllEvents)
{
	const uint64_t total = 3000;
	std::vector<std::thread> readers;
	uint64_t sum[3] = {};

	for (int i = 0; i < 3; i++)
		readers.emplace_back([&, i] {
			int64_t n;

			while ((n = snext(-1)))
				sum[i] += static_cast<uint64_t>(n);
		});
	for (uint64_t n = 1; n <= total; n++)
		write(n);
	for (int i = 0; i < 3; i++)
		write(0);
	for (auto &t : readers)
		t.join();
	EXPECT_EQ(sum[0] + sum[1] + sum[2], total * (total + 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(Objects, EqWait, wait_objects(), wait_object_name);

} // namespace
