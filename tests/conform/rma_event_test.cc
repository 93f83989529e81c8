/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_RMA_EVENT: counters of the target, bound to the endpoint or to a region.
 * fi_getinfo(3), fi_endpoint(3), fi_mr(3).
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <functional>

#include "tests/harness/fixture.h"

namespace
{

const uint64_t KEY = 0x51;

class RmaEvent : public Case
{
protected:
	static const size_t LEN = 1 << 20;

	Bytes region{ Bytes(LEN) };
	struct fid_mr *mr = nullptr;
	struct fid_cntr *cntr = nullptr, *more[2] = { nullptr, nullptr };

	RmaEvent()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		if (cntr) {
			EXPECT_EQ(0, fi_close(&cntr->fid));
		}
		if (more[0]) {
			EXPECT_EQ(0, fi_close(&rx()->ep->fid));
			rx()->ep = nullptr;
			for (auto *c : more)
				EXPECT_EQ(0, fi_close(&c->fid));
		}
		Case::TearDown();
	}

	void expose(struct fid_mr **out, void *p, size_t len, uint64_t key)
	{
		ASSERT_EQ(0, fi_mr_reg(rx()->domain, p, len,
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key,
				       FI_RMA_EVENT, out, nullptr));
	}

	void counter(struct fid_cntr **out)
	{
		struct fi_cntr_attr a;

		memset(&a, 0, sizeof(a));
		a.events = FI_CNTR_EVENTS_COMP;
		a.wait_obj = FI_WAIT_UNSPEC;
		ASSERT_EQ(0, fi_cntr_open(rx()->domain, &a, out, nullptr));
	}

	/* A region of rx() with a counter of its own. */
	void counted()
	{
		OK(counter(&cntr));
		OK(expose(&mr, region.data(), LEN, KEY));
		ASSERT_EQ(0, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE));
		ASSERT_EQ(0, fi_mr_enable(mr));
	}

	/* One write or read of @from that must succeed (@err 0) or fail. */
	void one(struct tdt_ep *from, uint64_t op, size_t len, int err = 0,
		 uint64_t key = KEY)
	{
		Bytes buf = filled(len, 3);
		fi_addr_t to = addr(from, rx());
		struct tdt_comp c;
		ssize_t ret;

		do {
			ret = op == FI_WRITE ?
				      fi_write(from->ep, buf.data(), len,
					       nullptr, to, 0, key, &buf) :
				      fi_read(from->ep, buf.data(), len,
					      nullptr, to, 0, key, &buf);
			tdt_progress(w);
		} while (ret == -FI_EAGAIN);
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, tdt_wait(from, &buf, &c));
		ASSERT_EQ(err, c.err) << fi_strerror(c.err);
	}

	/* An atomic operation that must succeed. */
	void one_atomic(struct tdt_ep *from,
			const std::function<ssize_t()> &call)
	{
		struct tdt_comp c;
		ssize_t ret;

		do {
			ret = call();
			tdt_progress(w);
		} while (ret == -FI_EAGAIN);
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, tdt_wait_next(from, 0, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
	}

	void counts(struct fid_cntr *c, uint64_t want)
	{
		struct {
			struct fid_cntr *c;
			uint64_t want;
		} x = { c, want };

		EXPECT_EQ(0,
			  tdt_wait_until(
				  w,
				  [](void *arg) -> int {
					  auto *y = static_cast<decltype(x) *>(
						  arg);

					  return fi_cntr_read(y->c) >= y->want;
				  },
				  &x));
		EXPECT_EQ(want, fi_cntr_read(c));
		EXPECT_EQ(0u, fi_cntr_readerr(c));
	}
};

TEST_F(RmaEvent, IsGrantedWhenAskedFor)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 35: A secondary capability that was
	 * asked for works, or fi_getinfo fails. */
	OPEN();
	EXPECT_TRUE(rx()->info->caps & FI_RMA_EVENT);
	EXPECT_TRUE(rx()->info->rx_attr->caps & FI_RMA_EVENT);
	EXPECT_FALSE(rx()->info->tx_attr->caps & FI_RMA_EVENT);
	EXPECT_FALSE(rx()->info->domain_attr->mr_mode & FI_MR_RMA_EVENT);
}

TEST_F(RmaEvent, TheCounterOfARegionCountsItsWrites)
{
	/* fi_mr(3) 2.1, fi_mr_bind 3: FI_RMA_EVENT: each write or atomic
	 * operation that changes the region is an event. */
	struct fid_mr *other = nullptr;
	uint64_t n = 0;

	OPEN();
	OK(counted());
	OK(expose(&other, region.data(), LEN, KEY + 1));
	for (auto *from : senders()) {
		for (size_t len : { size_t(1), size_t(48), size_t(3000),
				    size_t(60000), LEN }) {
			SCOPED_TRACE(testing::Message() << len << " bytes");
			OK(one(from, FI_WRITE, len));
			OK(counts(cntr, ++n));
		}
		OK(one(from, FI_READ, 64));
		OK(one(from, FI_READ, 100000));
		OK(one(from, FI_WRITE, 64, 0, KEY + 1));
		OK(one(from, FI_WRITE, LEN + 1, FI_EACCES));
		tdt_settle(w, 10);
		OK(counts(cntr, n));
	}
	EXPECT_EQ(0, fi_close(&other->fid));
}

TEST_F(RmaEvent, SilentWritesCountToo)
{
	OPEN();
	OK(counted());
	for (auto *from : senders()) {
		uint64_t n = fi_cntr_read(cntr);
		fi_addr_t to = addr(from, rx());

		OK(one(from, FI_WRITE, 1)); /* the path is there now */
		ASSERT_EQ(0, fi_inject_write(from->ep, "hello", 5, to, 0, KEY));
		OK(counts(cntr, n + 2));
		EXPECT_EQ(0, memcmp(region.data(), "hello", 5));
		ASSERT_EQ(0, fi_inject_writedata(from->ep, "HELLO", 5, 7, to, 0,
						 KEY));
		OK(counts(cntr, n + 3));
		ASSERT_EQ(0, tdt_wait_next(rx(), 1, nullptr));
	}
}

TEST_F(RmaEvent, CountersOfTheEndpointCountWhatItIsTheTargetOf)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 13: FI_REMOTE_WRITE and
	 * FI_REMOTE_READ: a counter counts the operations of others that target
	 * the endpoint. */
	struct tdt_ep *at;

	attr.no_enable = 1;
	OPEN();
	at = rx();
	OK(counter(&more[0]));
	OK(counter(&more[1]));
	ASSERT_EQ(0, fi_ep_bind(at->ep, &more[0]->fid, FI_REMOTE_WRITE));
	ASSERT_EQ(0, fi_ep_bind(at->ep, &more[1]->fid, FI_REMOTE_READ));
	ASSERT_EQ(0, tdt_ep_enable(at));
	OK(counted());
	for (auto *from : senders()) {
		ASSERT_EQ(0, tdt_ep_enable(from));
		ASSERT_EQ(1, fi_av_insert(from->av, at->name, 1,
					  &from->peers[0], 0, nullptr));
		uint64_t n = fi_cntr_read(more[0]), m = fi_cntr_read(more[1]);

		OK(one(from, FI_WRITE, 10));
		OK(one(from, FI_WRITE, 100000));
		OK(one(from, FI_READ, 100000));
		OK(one(from, FI_WRITE, LEN + 1, FI_EACCES));
		OK(counts(more[0], n + 2));
		OK(counts(more[1], m + 1));
	}
	OK(counts(cntr, fi_cntr_read(more[0])));
}

TEST_F(RmaEvent, AtomicOperationsCountAsTheManualSays)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 11, 13, 14 and 16: FI_REMOTE_WRITE
	 * counts base operations, FI_REMOTE_READ those that fetch or compare;
	 * FI_WRITE and FI_READ the same at the initiator. fi_mr(3) 2.1,
	 * fi_mr_bind 3: FI_REMOTE_WRITE: whatever changes the region. */
	uint64_t one = 1, x = 0;
	struct fid_cntr *own[2] = { nullptr, nullptr };
	struct tdt_ep *at;

	attr.caps |= FI_ATOMIC;
	attr.no_enable = 1;
	OPEN();
	at = rx();
	OK(counter(&more[0]));
	OK(counter(&more[1]));
	ASSERT_EQ(0, fi_ep_bind(at->ep, &more[0]->fid, FI_REMOTE_WRITE));
	ASSERT_EQ(0, fi_ep_bind(at->ep, &more[1]->fid, FI_REMOTE_READ));
	ASSERT_EQ(0, tdt_ep_enable(at));
	OK(counted());
	for (auto *from : senders()) {
		for (auto *&c : own)
			ASSERT_EQ(0, fi_cntr_open(from->domain, nullptr, &c,
						  nullptr));
		ASSERT_EQ(0, fi_ep_bind(from->ep, &own[0]->fid, FI_WRITE));
		ASSERT_EQ(0, fi_ep_bind(from->ep, &own[1]->fid, FI_READ));
		ASSERT_EQ(0, tdt_ep_enable(from));
		ASSERT_EQ(1, fi_av_insert(from->av, at->name, 1,
					  &from->peers[0], 0, nullptr));
		uint64_t n = fi_cntr_read(more[0]), m = fi_cntr_read(more[1]),
			 k = fi_cntr_read(cntr);
		fi_addr_t to = addr(from, at);

		OK(one_atomic(from, [&] {
			return fi_atomic(from->ep, &one, 1, nullptr, to, 0, KEY,
					 FI_UINT64, FI_SUM, &x);
		}));
		OK(one_atomic(from, [&] {
			return fi_fetch_atomic(from->ep, &one, 1, nullptr, &x,
					       nullptr, to, 0, KEY, FI_UINT64,
					       FI_SUM, &x);
		}));
		OK(one_atomic(from, [&] {
			return fi_fetch_atomic(from->ep, nullptr, 1, nullptr,
					       &x, nullptr, to, 0, KEY,
					       FI_UINT64, FI_ATOMIC_READ, &x);
		}));
		OK(one_atomic(from, [&] {
			return fi_compare_atomic(from->ep, &one, 1, nullptr,
						 &one, nullptr, &x, nullptr, to,
						 0, KEY, FI_UINT64, FI_CSWAP,
						 &x);
		}));
		ASSERT_EQ(0, fi_inject_atomic(from->ep, &one, 1, to, 0, KEY,
					      FI_UINT64, FI_SUM));
		OK(counts(own[0], 2));
		OK(counts(own[1], 3));
		OK(counts(more[0], n + 2));
		OK(counts(more[1], m + 3));
		OK(counts(cntr, k + 4));
		/* Refused: at the initiator only. */
		ASSERT_EQ(0, fi_inject_atomic(from->ep, &one, 1, to, LEN, KEY,
					      FI_UINT64, FI_SUM));
		ASSERT_EQ(0, tdt_wait_next(from, 0, nullptr));
		EXPECT_EQ(2u, fi_cntr_read(own[0]));
		EXPECT_EQ(1u, fi_cntr_readerr(own[0]));
		OK(counts(more[0], n + 2));
		EXPECT_EQ(0, fi_close(&from->ep->fid));
		from->ep = nullptr;
		for (auto *c : own)
			EXPECT_EQ(0, fi_close(&c->fid));
	}
}

TEST_F(RmaEvent, WhatCannotBeBound)
{
	struct fid_cntr *second = nullptr;

	OPEN();
	OK(counter(&second));
	OK(counted());
	/* fi_mr(3) 2.1, ERRORS 4: Flags that the provider does not have are
	 * -FI_EBADFLAGS. */
	EXPECT_EQ(-FI_EBADFLAGS, fi_mr_bind(mr, &second->fid, FI_SEND));
	EXPECT_EQ(-FI_EBADFLAGS, fi_mr_bind(mr, &second->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_mr_bind(mr, &second->fid, FI_REMOTE_WRITE));
	EXPECT_NE(0, fi_mr_bind(mr, &rx()->rx_cq->fid, FI_REMOTE_WRITE));
	/* fi_cntr(3) 2.1, fi_close 1: -FI_EBUSY while it is associated with
	 * another object. */
	EXPECT_EQ(-FI_EBUSY, fi_close(&cntr->fid));
	EXPECT_EQ(0, fi_close(&second->fid));
}

TEST_F(RmaEvent, RegionAndCounterMayGoWhileWritesAreUnderWay)
{
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(LEN, 3);
		struct tdt_comp c;
		ssize_t ret;

		OK(counted());
		do {
			ret = fi_write(from->ep, out.data(), LEN, nullptr,
				       addr(from, rx()), 0, KEY, &out);
			tdt_progress(w);
		} while (ret == -FI_EAGAIN);
		ASSERT_EQ(0, ret);
		for (int i = 0; i < 3; i++)
			tdt_progress(w);
		ASSERT_EQ(0, fi_close(&mr->fid));
		mr = nullptr;
		ASSERT_EQ(0, fi_close(&cntr->fid));
		cntr = nullptr;
		ASSERT_EQ(0, tdt_wait(from, &out, &c));
		EXPECT_TRUE(!c.err || c.err == FI_EACCES) << fi_strerror(c.err);
	}
}

} // namespace
