/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations: fi_rma(3), fi_mr(3). Every call, in every size around a
 * threshold; an operation that the target did not permit is refused and changes
 * nothing.
 */
#include <tuple>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

enum Call {
	READ,
	READV,
	READMSG,
	WRITE,
	WRITEV,
	WRITEMSG,
	WRITEDATA,
	INJECT_WRITE,
	INJECT_WRITEDATA,
	CALLS
};

const char *const names[CALLS] = {
	"read",	     "readv",	     "readmsg",
	"write",     "writev",	     "writemsg",
	"writedata", "inject_write", "inject_writedata",
};

const uint64_t KEY = 0x4711, DATA = 0xfeedfacecafebeef;

class Rma : public Case
{
protected:
	struct fid_mr *mr = nullptr;
	Guarded region{ 0 };
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;

	Rma()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Case::TearDown();
	}

	/* The target region, on rx(), filled with @seed. */
	void expose(size_t len, uint32_t seed)
	{
		if (mr) {
			ASSERT_EQ(0, fi_close(&mr->fid));
			mr = nullptr;
		}
		region = Guarded(len);
		if (len)
			tdt_fill(region.data(), len, seed);
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, region.data(), len, access,
				       0, KEY, 0, &mr, nullptr));
		EXPECT_EQ(KEY, fi_mr_key(mr));
	}

	/* One call, until it is taken. @at: offset into the region. */
	ssize_t post(struct tdt_ep *from, Call call, void *buf, size_t len,
		     uint64_t at, uint64_t key = KEY)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		while ((ret = once(from, call, buf, len, at, key)) ==
		       -FI_EAGAIN) {
			tdt_progress(w);
			if (tdt_now_ms() > end)
				return -FI_ETIMEDOUT;
		}
		return ret;
	}

	ssize_t once(struct tdt_ep *from, Call call, void *buf, size_t len,
		     uint64_t at, uint64_t key)
	{
		fi_addr_t to = addr(from, rx());
		char *p = static_cast<char *>(buf);
		struct iovec iov[2] = { iov_of(p, len / 2),
					iov_of(p ? p + len / 2 : p,
					       len - len / 2) };
		struct fi_rma_iov remote = { at, len, key };
		struct fi_msg_rma msg;

		memset(&msg, 0, sizeof(msg));
		msg.msg_iov = iov;
		msg.iov_count = 2;
		msg.addr = to;
		msg.rma_iov = &remote;
		msg.rma_iov_count = 1;
		msg.context = buf;
		switch (call) {
		case READ:
			return fi_read(from->ep, buf, len, nullptr, to, at, key,
				       buf);
		case READV:
			return fi_readv(from->ep, iov, nullptr, 2, to, at, key,
					buf);
		case READMSG:
			return fi_readmsg(from->ep, &msg, FI_COMPLETION);
		case WRITE:
			return fi_write(from->ep, buf, len, nullptr, to, at,
					key, buf);
		case WRITEV:
			return fi_writev(from->ep, iov, nullptr, 2, to, at, key,
					 buf);
		case WRITEMSG:
			return fi_writemsg(from->ep, &msg, FI_COMPLETION);
		case WRITEDATA:
			return fi_writedata(from->ep, buf, len, nullptr, DATA,
					    to, at, key, buf);
		case INJECT_WRITE:
			return fi_inject_write(from->ep, buf, len, to, at, key);
		default:
			return fi_inject_writedata(from->ep, buf, len, DATA, to,
						   at, key);
		}
	}

	static bool reads(Call c)
	{
		return c <= READMSG;
	}
	static bool injects(Call c)
	{
		return c >= INJECT_WRITE;
	}

	static bool has_data(Call c)
	{
		return c == WRITEDATA || c == INJECT_WRITEDATA;
	}

	/* The target is told of a write with data, and of nothing else. */
	void told(size_t len)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c));
		EXPECT_EQ(0, c.err);
		EXPECT_EQ(uint64_t(FI_RMA | FI_REMOTE_WRITE |
				   FI_REMOTE_CQ_DATA),
			  c.flags);
		EXPECT_EQ(DATA, c.data);
		EXPECT_EQ(nullptr, c.context);
		EXPECT_EQ(len, c.len);
	}

	/* An operation that the target refuses; nothing changes there. */
	void refused(struct tdt_ep *from, Call call, size_t len, uint64_t at,
		     uint64_t key = KEY)
	{
		Bytes buf = filled(len, 77);
		struct tdt_comp c;

		SCOPED_TRACE(testing::Message()
			     << names[call] << " " << len << " at " << at);
		ASSERT_EQ(0, post(from, call, buf.data(), len, at, key));
		ASSERT_EQ(0, injects(call) ? tdt_wait_next(from, 0, &c) :
					     tdt_wait(from, buf.data(), &c));
		EXPECT_EQ(FI_EACCES, c.err) << fi_strerror(c.err);
		EXPECT_EQ(-1, tdt_differs(region.data(), region.size(), 1));
		EXPECT_TRUE(region.intact());
		EXPECT_EQ(-1, tdt_differs(buf.data(), len, 77));
	}
};

class RmaCall : public Rma, public testing::WithParamInterface<int>
{
protected:
	Call call = static_cast<Call>(GetParam());

	void transfer(struct tdt_ep *from, size_t len, uint64_t at)
	{
		Guarded buf(len + 1);

		SCOPED_TRACE(testing::Message()
			     << names[call] << " " << len << " bytes at " << at
			     << ", sender " << from->index);
		OK(expose(len + 64, 1));
		tdt_fill(buf.data(), len, 2);
		ASSERT_EQ(0, post(from, call, buf.data(), len, at));
		if (injects(call)) {
			memset(buf.data(), 0xee, len);
			if (!has_data(call)) {
				OK(landed(len, at));
			}
		} else {
			OK(done(from, buf.data(),
				FI_RMA | (reads(call) ? FI_READ : FI_WRITE)));
		}
		if (has_data(call)) {
			OK(told(len));
		}
		if (reads(call)) {
			EXPECT_EQ(0,
				  memcmp(buf.data(), region.data() + at, len));
		} else {
			EXPECT_EQ(-1, tdt_differs(region.data() + at, len, 2));
		}
		EXPECT_TRUE(region.intact());
		if (!injects(call)) {
			EXPECT_TRUE(buf.intact(len));
		}
	}

	/* Without an event: the bytes themselves. */
	void landed(size_t len, uint64_t at)
	{
		struct {
			unsigned char *p;
			size_t len;
		} want = { region.data() + at, len };

		ASSERT_EQ(
			0,
			tdt_wait_until(
				w,
				[](void *arg) -> int {
					auto *x = static_cast<decltype(want) *>(
						arg);

					return tdt_differs(x->p, x->len, 2) < 0;
				},
				&want));
	}
};

TEST_P(RmaCall, EverySizeAtEveryPlace)
{
	/* fi_rma(3) 2.1, DESCRIPTION 1: RMA moves data between local and remote
	 * memory. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t len : all_sizes()) {
			if (injects(call) &&
			    len > from->info->tx_attr->inject_size)
				continue;
			OK(transfer(from, len, 0));
			OK(transfer(from, len, 64));
		}
	}
}

TEST_P(RmaCall, WhatWasNotGrantedIsRefused)
{
	/* fi_mr(3) 2.1, fi_close 1: A wrong key does not harm the target's
	 * endpoint. */
	OPEN();
	for (auto *from : senders()) {
		OK(expose(4096, 1));
		OK(refused(from, call, 64, 0, KEY + 1));
		OK(refused(from, call, 64, 4096 - 63));
		OK(refused(from, call, 1, 4096));
		OK(refused(from, call, 64, ~0ull - 31)); /* wraps around */
		OK(refused(from, call, 64, 1ull << 63));
		if (!injects(call)) {
			OK(refused(from, call, 4097, 0));
			OK(refused(from, call, 100000, 0));
		}
		access = reads(call) ? FI_REMOTE_WRITE : FI_REMOTE_READ;
		OK(expose(4096, 1));
		OK(refused(from, call, 64, 0));
		access = FI_REMOTE_READ | FI_REMOTE_WRITE;
		OK(expose(4096, 1));
		ASSERT_EQ(0, fi_close(&mr->fid));
		mr = nullptr;
		OK(refused(from, call, 64, 0));
		OK(transfer(from, 64, 0)); /* nothing was broken by it */
	}
}

INSTANTIATE_TEST_SUITE_P(Calls, RmaCall, testing::Range(0, (int)CALLS),
			 [](const testing::TestParamInfo<int> &p) {
				 return names[p.param];
			 });

TEST_F(Rma, KeyInUseAndBadFlags)
{
	/* fi_mr(3) 2.1, ERRORS 1 and 4: -FI_ENOKEY for a key that is in use,
	 * -FI_EBADFLAGS for flags that the provider does not have. */
	struct fid_mr *other = nullptr;
	char buf[16];

	OPEN();
	OK(expose(64, 1));
	EXPECT_EQ(-FI_ENOKEY,
		  fi_mr_reg(rx()->domain, buf, sizeof(buf), FI_REMOTE_READ, 0,
			    KEY, 0, &other, nullptr));
	EXPECT_EQ(-FI_EBADFLAGS,
		  fi_mr_reg(rx()->domain, buf, sizeof(buf), FI_REMOTE_READ, 0,
			    KEY + 1, 1ull << 62, &other, nullptr));
	EXPECT_EQ(nullptr, other);
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, buf, sizeof(buf), FI_REMOTE_READ,
			       0, KEY + 1, 0, &other, nullptr));
	EXPECT_EQ(0, fi_close(&other->fid));
}

TEST_F(Rma, NothingIsMadeDurable)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 25, and fi_mr(3) 2.1, FLAGS 3:
	 * FI_RMA_PMEM; fi_rma(3) 2.1, FLAGS 9: FI_COMMIT_COMPLETE: a provider
	 * that grants them makes what was written survive a loss of power.
	 * fi_tandem(7), LIMITATIONS: this one does not, so each is refused. */
	ONLY_TANDEM();
	OPEN();
	OK(expose(64, 1));
	struct fid_mr *other = nullptr;
	struct fi_rma_iov remote = { 0, 8, KEY };
	struct fi_msg_rma msg;
	char buf[8] = { 0 };
	struct iovec iov = iov_of(buf, 8);

	EXPECT_FALSE(rx()->info->caps & FI_RMA_PMEM);
	EXPECT_EQ(-FI_EBADFLAGS,
		  fi_mr_reg(rx()->domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0,
			    KEY + 1, FI_RMA_PMEM, &other, nullptr));
	for (auto *from : senders()) {
		memset(&msg, 0, sizeof(msg));
		msg.msg_iov = &iov;
		msg.iov_count = 1;
		msg.addr = addr(from, rx());
		msg.rma_iov = &remote;
		msg.rma_iov_count = 1;
		EXPECT_EQ(-FI_EBADFLAGS,
			  fi_writemsg(from->ep, &msg, FI_COMMIT_COMPLETE));
		/* The strongest level waits for the target. */
		msg.context = buf;
		ASSERT_EQ(0, fi_writemsg(from->ep, &msg,
					 FI_MATCH_COMPLETE | FI_COMPLETION));
		OK(done(from, buf, FI_RMA | FI_WRITE));
		EXPECT_EQ(0, memcmp(region.data(), buf, 8));
	}
}

TEST_F(Rma, TooManyRemoteRanges)
{
	/* fi_endpoint(3) 2.1, rma_iov_limit 1, and fi_tandem(7), LIMITS: more
	 * ranges than that are -FI_EINVAL. */
	struct fi_msg_rma msg;

	OPEN();
	size_t most = rx()->info->tx_attr->rma_iov_limit;
	std::vector<struct fi_rma_iov> remote(most + 1, { 0, 4, KEY });
	Bytes buf(4 * (most + 1));
	struct iovec iov = iov_of(buf.data(), buf.size());
	OK(expose(64, 1));
	for (auto *from : senders()) {
		memset(&msg, 0, sizeof(msg));
		msg.msg_iov = &iov;
		msg.iov_count = 1;
		msg.addr = addr(from, rx());
		msg.rma_iov = remote.data();
		msg.rma_iov_count = remote.size();
		EXPECT_EQ(-FI_EINVAL, fi_writemsg(from->ep, &msg, 0));
		EXPECT_EQ(-FI_EINVAL, fi_readmsg(from->ep, &msg, 0));
	}
	EXPECT_EQ(-1, tdt_differs(region.data(), 64, 1));
}

TEST_F(Rma, ManyAtOnce)
{
	/* fi_endpoint(3) 2.1, size 1: Operations outstanding are bounded by
	 * tx_attr.size only. Each ends once. */
	const size_t n = 300, part = 1000;

	OPEN();
	OK(expose(n * part, 9));
	for (auto *from : senders()) {
		std::vector<Bytes> in(n, Bytes(part));

		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, post(from, READ, in[i].data(), part,
					  i * part));
		for (size_t i = 0; i < n; i++) {
			OK(done(from, in[i].data(), FI_RMA | FI_READ));
			EXPECT_EQ(0, memcmp(in[i].data(),
					    region.data() + i * part, part));
		}
	}
}

TEST_F(Rma, RegionsCanBeClosedWhileTheyAreUsed)
{
	/* fi_tandem(7), CAPABILITIES: When a region is closed, operations on it
	 * end with FI_EACCES. After fi_close(3) has returned, no byte of it is
	 * accessed. */
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(4 << 20, 3);
		struct tdt_comp c;

		OK(expose(4 << 20, 1));
		ASSERT_EQ(0, post(from, WRITE, out.data(), out.size(), 0));
		for (int i = 0; i < 3; i++)
			tdt_progress(w);
		ASSERT_EQ(0, fi_close(&mr->fid));
		mr = nullptr;
		Bytes now(region.data(), region.data() + region.size());
		ASSERT_EQ(0, tdt_wait(from, out.data(), &c));
		EXPECT_TRUE(!c.err || c.err == FI_EACCES) << fi_strerror(c.err);
		tdt_settle(w, 10);
		EXPECT_EQ(0, memcmp(now.data(), region.data(), now.size()));
	}
}

TEST_F(Rma, NeedsTheCapability)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 34: Only the primary capabilities
	 * that were asked for have to work. */
	char buf = 0;

	attr.caps = FI_MSG | FI_TAGGED;
	OPEN();
	EXPECT_FALSE(rx()->info->caps & FI_RMA);
	for (auto *from : senders()) {
		for (Call c : { READ, WRITE, INJECT_WRITE }) {
			ssize_t ret = post(from, c, &buf, 1, 0);

			EXPECT_TRUE(ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
				<< names[c] << " " << ret;
			if (!ret) {
				tdt_wait_next(from, 0, nullptr);
			}
		}
	}
}

} // namespace
