/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations: fi_atomic(3). Every call, every operation that the valid
 * calls name, several initiators at one word, the order.
 */
#include <rdma/fi_rma.h>

#include "atomic.h"

namespace
{

using namespace atomic_test;

TEST_F(Atomic, EveryCall)
{
	/* fi_atomic(3) 2.1, Base Atomic Functions 1, Fetch-Atomic Functions 1,
	 * Compare-Atomic Functions 1 and NOTES 1: base, fetch and compare
	 * calls, each for an array of values. */
	OPEN();
	for (auto *from : senders()) {
		for (int c = 0; c < CALLS; c++) {
			for (size_t n : { 1, 2, 3, 31 }) {
				std::vector<uint64_t> buf(n), cmp(n), res(n);
				Op o;

				SCOPED_TRACE(testing::Message()
					     << names[c] << " " << n);
				OK(expose(64, 100));
				for (size_t i = 0; i < n; i++) {
					buf[i] = 1000 + i;
					cmp[i] = i % 2 ? 100 : 99;
				}
				o.call = Call(c);
				o.op = compares(o.call) ? FI_CSWAP : FI_SUM;
				o.buf = buf.data();
				o.compare = cmp.data();
				o.result = res.data();
				o.count = n;
				o.at = 16;
				OK(run(from, o));
				for (size_t i = 0; i < n; i++) {
					EXPECT_EQ(!compares(o.call) ? 1100 + i :
						  i % 2		    ? 1000 + i :
								      100,
						  word(2 + i));
					EXPECT_EQ(fetches(o.call) ? 100u : 0u,
						  res[i]);
				}
				EXPECT_TRUE(intact(100, 2, n));
			}
		}
	}
}

TEST_F(Atomic, WhatIsValidWorksAndNothingElse)
{
	/* fi_atomic(3) 2.1, Atomic Valid Functions 1: The valid calls say which
	 * operations there are. The others are -FI_EOPNOTSUPP from the call as
	 * well. */
	std::vector<uint64_t> buf(256, 0), cmp(256, 0), res(256, 0);
	size_t offered = 0;

	OPEN();
	OK(expose(256));
	for (auto *from : senders()) {
		for (Call c : { WRITE, FETCH, COMPARE }) {
			for (int type = 0; type < 40; type++) {
				for (int op = 0; op < 40; op++) {
					struct fi_atomic_attr a = { 0, 0 };
					size_t n = 0;
					Op o;
					int ret = valid(from->ep, c, type, op,
							&n);

					SCOPED_TRACE(testing::Message()
						     << names[c] << " " << type
						     << " " << op);
					ASSERT_EQ(ret, query(from->domain, c,
							     type, op, &a));
					o.call = c;
					o.type = static_cast<enum fi_datatype>(
						type);
					o.op = static_cast<enum fi_op>(op);
					o.buf = buf.data();
					o.compare = cmp.data();
					o.result = res.data();
					if (ret) {
						ASSERT_EQ(-FI_EOPNOTSUPP, ret);
						ASSERT_EQ(-FI_EOPNOTSUPP,
							  once(from->ep,
							       addr(from, rx()),
							       o, nullptr));
						continue;
					}
					offered++;
					ASSERT_EQ(n, a.count);
					ASSERT_LE(1u, n);
					o.count = n;
					o.size = a.size;
					OK(run(from, o));
					o.count = n + 1;
					ASSERT_EQ(-FI_EMSGSIZE,
						  once(from->ep,
						       addr(from, rx()), o,
						       nullptr));
				}
			}
		}
	}
	EXPECT_LT(16u * 10, offered);
}

TEST_F(Atomic, QueryFlags)
{
	/* fi_atomic(3) 2.1, Query Atomic Attributes 2: FI_FETCH_ATOMIC and
	 * FI_COMPARE_ATOMIC exclude each other; FI_TAGGED asks for tagged
	 * buffers as targets. */
	struct fi_atomic_attr a = { 0, 0 };
	struct fid_domain *d;

	ONLY_TANDEM();
	OPEN();
	d = rx()->domain;
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  query(d, WRITE, FI_UINT64, FI_SUM, &a, FI_TAGGED));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  query(d, FETCH, FI_UINT64, FI_SUM, &a, FI_TAGGED));
	EXPECT_EQ(-FI_EBADFLAGS,
		  query(d, FETCH, FI_UINT64, FI_SUM, &a, FI_COMPARE_ATOMIC));
	EXPECT_EQ(-FI_EBADFLAGS,
		  query(d, WRITE, FI_UINT64, FI_SUM, &a, FI_INJECT));
	EXPECT_EQ(-FI_EINVAL, query(d, WRITE, FI_UINT64, FI_SUM, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  fi_atomicvalid(rx()->ep, FI_UINT64, FI_SUM, nullptr));
	EXPECT_EQ(0u, a.count);
	ASSERT_EQ(0, query(d, WRITE, FI_LONG_DOUBLE, FI_SUM, &a));
	EXPECT_EQ(sizeof(long double), a.size);
	ASSERT_EQ(0, query(d, COMPARE, FI_UINT64, FI_CSWAP, &a));
	EXPECT_EQ(64u, a.count);
	ASSERT_EQ(0, query(d, FETCH, FI_UINT64, FI_SUM, &a));
	EXPECT_EQ(128u, a.count);
}

TEST_F(Atomic, CompareAndSwap)
{
	/* fi_atomic(3) 2.1, Atomic Operations 14 to 19: FI_CSWAP and its like
	 * store the operand if the comparison with the target holds. */
	const struct {
		enum fi_op op;
		bool less, equal, greater; /* of compare, swap? */
	} all[] = {
		{ FI_CSWAP, false, true, false },
		{ FI_CSWAP_NE, true, false, true },
		{ FI_CSWAP_LE, true, true, false },
		{ FI_CSWAP_LT, true, false, false },
		{ FI_CSWAP_GE, false, true, true },
		{ FI_CSWAP_GT, false, false, true },
	};
	uint64_t buf[3] = { 70, 70, 70 }, cmp[3] = { 9, 10, 11 }, res[3];
	Op o;

	OPEN();
	o.call = COMPARE;
	o.buf = buf;
	o.compare = cmp;
	o.result = res;
	o.count = 3;
	for (auto *from : senders()) {
		for (auto &a : all) {
			OK(expose(3, 10));
			o.op = a.op;
			OK(run(from, o));
			EXPECT_EQ(a.less ? 70u : 10u, word(0)) << a.op;
			EXPECT_EQ(a.equal ? 70u : 10u, word(1)) << a.op;
			EXPECT_EQ(a.greater ? 70u : 10u, word(2)) << a.op;
			for (uint64_t r : res)
				EXPECT_EQ(10u, r);
		}
		OK(expose(3, 0x1111));
		cmp[0] = 0x00ff;
		buf[0] = 0x2222;
		o.op = FI_MSWAP;
		OK(run(from, o));
		EXPECT_EQ(0x1122u, word(0));
		cmp[0] = 9;
		buf[0] = 70;
	}
}

TEST_F(Atomic, ManyAtOneWord)
{
	/* fi_atomic(3) 2.1, Completions 4: A domain of the target is one actor:
	 * operations of all initiators on a word, whatever way they come, are
	 * atomic with each other. Each value is seen once. */
	const size_t each = 2000, deep = 32;
	std::vector<uint64_t> seen;

	OPEN();
	OK(expose(2));
	/* The target itself is one of them. */
	std::vector<struct tdt_ep *> all = senders();
	size_t n = all.size();
	std::vector<uint64_t> one(1, 1);
	std::vector<std::vector<uint64_t>> back(
		n, std::vector<uint64_t>(each, ~0ull));
	std::vector<size_t> sent(n, 0), ended(n, 0);
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	for (size_t total = 0; total < n * each && tdt_now_ms() < end;) {
		for (size_t k = 0; k < n; k++) {
			struct tdt_comp c;
			Op fetch, add;

			fetch.call = FETCH;
			fetch.buf = one.data();
			fetch.result = &back[k][std::min(sent[k], each - 1)];
			add.call = INJECT;
			add.buf = one.data();
			add.at = 8;
			if (sent[k] < each && sent[k] - ended[k] < deep &&
			    !once(all[k]->ep, addr(all[k], rx()), fetch,
				  fetch.result)) {
				sent[k]++;
				ASSERT_EQ(0, post(all[k], add, nullptr));
			}
			tdt_progress(w);
			while (all[k]->comp_count) {
				ASSERT_EQ(0, tdt_wait_next(all[k], 0, &c));
				ASSERT_EQ(0, c.err);
				ended[k]++;
				total++;
			}
		}
	}
	for (size_t k = 0; k < n; k++) {
		EXPECT_EQ(each, ended[k]);
		OK(behind(all[k]));
		EXPECT_TRUE(std::is_sorted(back[k].begin(), back[k].end()));
		seen.insert(seen.end(), back[k].begin(), back[k].end());
	}
	EXPECT_EQ(n * each, word(0));
	EXPECT_EQ(n * each, word(1));
	std::sort(seen.begin(), seen.end());
	for (size_t i = 0; i < seen.size(); i++)
		ASSERT_EQ(i, seen[i]);
}

TEST_F(Atomic, OrderIsThatOfTheCalls)
{
	/* fi_endpoint(3) 2.1, msg_order - Message Ordering 5 to 8:
	 * FI_ORDER_ATOMIC_RAR, RAW, WAR and WAW: without waiting for an end in
	 * between. */
	const size_t n = 200;
	const uint64_t order = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
			       FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

	OPEN();
	EXPECT_EQ(order, rx()->info->tx_attr->msg_order & order);
	EXPECT_EQ(order, rx()->info->rx_attr->msg_order & order);
	EXPECT_LE(8u, rx()->info->ep_attr->max_order_raw_size);
	for (auto *from : senders()) {
		std::vector<uint64_t> values(n), read(n), swapped(n);

		OK(expose(1, 7));
		for (size_t i = 0; i < n; i++) {
			Op write, get, swap;

			values[i] = 100 + i;
			write.call = i % 2 ? INJECT : WRITE;
			write.op = FI_ATOMIC_WRITE;
			write.buf = &values[i];
			get.call = FETCH;
			get.op = FI_ATOMIC_READ;
			get.result = &read[i];
			swap.call = FETCH;
			swap.buf = &values[i];
			swap.result = &swapped[i];
			ASSERT_EQ(0, post(from, write, &values[i]));
			ASSERT_EQ(0, post(from, get, &read[i]));
			ASSERT_EQ(0, post(from, swap, &swapped[i]));
		}
		for (size_t i = 0; i < n; i++) {
			if (i % 2 == 0) {
				OK(done(from, &values[i],
					FI_ATOMIC | FI_WRITE));
			}
			OK(done(from, &read[i], FI_ATOMIC | FI_READ));
			OK(done(from, &swapped[i], FI_ATOMIC | FI_READ));
			EXPECT_EQ(100 + i, read[i]);
			EXPECT_EQ(100 + i, swapped[i]);
		}
		EXPECT_EQ(2 * (100 + n - 1), word(0));
	}
}

} // namespace
