/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of the shared-memory peer: what they change and bring back,
 * full rings, records that cannot be. doc/PROTOCOL-shm.md "Atomic operations",
 * fi_atomic(3).
 */
#include <memory>
#include <random>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "fault.h"
#include "forged_amo.h"
#include "shm_world.h"

#include "tests/harness/mock_rma.h"

extern "C" {
#include "fi_ext_tandem.h"
#include "shm/amo.h"
#include "shm/rma.h"
#include "tdm_amo.h"
#include "shm/tx.h"
}

using namespace shm_test;

class ShmAmoTest : public PairTest
{
protected:
	static constexpr uint64_t key = 77;
	std::vector<uint64_t> memory;

	void region(struct tdt_owner *o, size_t words, uint64_t value)
	{
		memory.assign(words, value);
		tdt_region_add(o, key, memory.data(), 8 * words,
			       FI_REMOTE_READ | FI_REMOTE_WRITE);
	}

	static uint64_t ended(const struct tdt_owner *o)
	{
		return o->rma[TDT_READ].value + o->rma[TDT_READ].errs +
		       o->rma[TDT_WRITE].value + o->rma[TDT_WRITE].errs;
	}

	uint64_t known = 0;

	/*
	 * The outcome of the one operation of a, with @context: successes only
	 * count, for completions are selective.
	 */
	int outcome(void *context)
	{
		int err = 0;

		EXPECT_TRUE(until([&] { return ended(a) == known + 1; }));
		known++;
		if (a->dones) {
			EXPECT_EQ(a->done[0].context, context);
			err = a->done[0].err;
		}
		a->dones = 0;
		return err;
	}

	/* A record of b's at a. */
	void forge(uint8_t op, uint16_t aux, uint64_t tag, const void *body,
		   size_t len)
	{
		struct tdm_shm_pair *pair = pair_of(b);
		uint32_t n = tdm_shm_rec_slots(len);
		uint8_t *slot = tdm_shm_tx_room(pair, n, 0);

		ASSERT_NE(slot, nullptr);
		memcpy(slot + 8, &tag, 8);
		if (len)
			memcpy(slot + TDM_SHM_HEAD_BYTES, body, len);
		tdm_shm_ring_publish(&pair->tx, n,
				     tdm_shm_word0(0, op, 0, aux));
	}

	/* a's answer to a forged ATOMIC. b itself does not see it. */
	void answer(uint16_t len, const void *body, size_t bytes,
		    uint16_t *status)
	{
		struct tdm_shm_ring_rx *rx = &pair_of(b)->rx;

		forge(TDM_SHM_REC_ATOMIC, len, 12345, body, bytes);
		ASSERT_TRUE(tdt_eventually(
			[&] {
				return tdm_shm_ring_there(
					rx, tdm_shm_ring_peek(rx));
			},
			[&] { tdt_owner_progress(a); }));
		uint64_t word = tdm_shm_ring_peek(rx), id;

		memcpy(&id, tdm_shm_ring_slot(rx) + 8, 8);
		ASSERT_EQ(TDM_SHM_REC_ACK, tdm_shm_word_op(word));
		ASSERT_EQ(12345u, id);
		*status = tdm_shm_word_aux(word);
		tdm_shm_ring_step(rx, 1);
	}
};

TEST_F(ShmAmoTest, EachKind)
{
	for (size_t n : { 1, 2, 13, 64 }) {
		std::vector<uint64_t> buf(n), cmp(n, 5), res(n);
		char x, y, z;

		for (size_t i = 0; i < n; i++)
			buf[i] = 7 + i;
		region(b, 100, 5);
		tdt_region_split(b, key, 101);
		ASSERT_EQ(retry([&] {
				  return fi_atomic(a->ep, buf.data(), n,
						   nullptr, to_b, 8, key,
						   FI_UINT64, FI_SUM, &x);
			  }),
			  0);
		EXPECT_EQ(outcome(&x), 0);
		ASSERT_EQ(retry([&] {
				  return fi_fetch_atomic(a->ep, nullptr, n,
							 nullptr, res.data(),
							 nullptr, to_b, 8, key,
							 FI_UINT64,
							 FI_ATOMIC_READ, &y);
			  }),
			  0);
		EXPECT_EQ(outcome(&y), 0);
		for (size_t i = 0; i < n; i++) {
			EXPECT_EQ(res[i], 12 + i);
			cmp[i] = i % 2 ? res[i] : 0;
		}
		ASSERT_EQ(retry([&] {
				  return fi_compare_atomic(a->ep, buf.data(), n,
							   nullptr, cmp.data(),
							   nullptr, res.data(),
							   nullptr, to_b, 8,
							   key, FI_UINT64,
							   FI_CSWAP, &z);
			  }),
			  0);
		EXPECT_EQ(outcome(&z), 0);
		for (size_t i = 0; i < n; i++) {
			EXPECT_EQ(res[i], 12 + i);
			EXPECT_EQ(memory[1 + i], i % 2 ? 7 + i : 12 + i);
		}
		EXPECT_EQ(memory[0], 5u);
		EXPECT_EQ(memory[1 + n], 5u);
		tdt_region_close(b, key);
	}
	EXPECT_EQ(a->rma[TDT_WRITE].value, 4u);
	EXPECT_EQ(a->rma[TDT_READ].value, 8u);
	EXPECT_EQ(b->rma[TDT_REMOTE_WRITE].value, 4u);
	EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, 8u);
	EXPECT_EQ(b->dones, 0u);
	EXPECT_EQ(b->entries, 0u);
	EXPECT_EQ(pair_of(b)->nserves, 0u);
}

TEST_F(ShmAmoTest, RefusalsAreTheInitiatorsAlone)
{
	const uint64_t buf = 1;
	uint64_t res = 9;
	char x;

	region(b, 2, 5);
	for (uint64_t at :
	     { uint64_t(9), uint64_t(16), UINT64_MAX, UINT64_MAX - 6 }) {
		ASSERT_EQ(retry([&] {
				  return fi_fetch_atomic(a->ep, &buf, 1,
							 nullptr, &res, nullptr,
							 to_b, at, key,
							 FI_UINT64, FI_SUM, &x);
			  }),
			  0);
		EXPECT_EQ(outcome(&x), FI_EACCES) << at;
	}
	ASSERT_EQ(retry([&] {
			  return fi_atomic(a->ep, &buf, 1, nullptr, to_b, 0,
					   key + 1, FI_UINT64, FI_SUM, &x);
		  }),
		  0);
	EXPECT_EQ(outcome(&x), FI_EACCES);
	EXPECT_EQ(res, 9u);
	EXPECT_EQ(memory, std::vector<uint64_t>(2, 5));
	EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, 0u);
	exchange(1000, 5);
}

TEST_F(ShmAmoTest, BadCalls)
{
	uint64_t buf[200] = { 1 };
	size_t n = 0;

	meet();
	EXPECT_EQ(fi_atomic(a->ep, buf, 129, nullptr, to_b, 0, key, FI_UINT64,
			    FI_SUM, buf),
		  -FI_EMSGSIZE);
	EXPECT_EQ(fi_atomic(a->ep, buf, 0, nullptr, to_b, 0, key, FI_UINT64,
			    FI_SUM, buf),
		  -FI_EINVAL);
	EXPECT_EQ(fi_atomic(a->ep, buf, 1, nullptr, to_b, 0, key, FI_FLOAT16,
			    FI_SUM, buf),
		  -FI_EOPNOTSUPP);
	EXPECT_EQ(fi_inject_atomic(a->ep, buf, 129, to_b, 0, key, FI_UINT64,
				   FI_SUM),
		  -FI_EMSGSIZE);
	EXPECT_EQ(fi_atomic(a->ep, buf, 1, nullptr, to_b + 1, 0, key, FI_UINT64,
			    FI_SUM, buf),
		  -FI_EINVAL);
	EXPECT_EQ(fi_compare_atomicvalid(a->ep, FI_UINT64, FI_CSWAP, &n), 0);
	EXPECT_EQ(n, 64u);
	EXPECT_EQ(fi_atomicvalid(a->ep, FI_UINT64, FI_CSWAP, &n),
		  -FI_EOPNOTSUPP);
}

TEST_F(ShmAmoTest, PeersWithoutTheFeature)
{
	uint64_t buf = 1;

	meet();
	pair_of(a)->peer_atomics = 0;
	EXPECT_EQ(fi_atomic(a->ep, &buf, 1, nullptr, to_b, 0, key, FI_UINT64,
			    FI_SUM, &buf),
		  -FI_EOPNOTSUPP);
	exchange(100, 3);
}

TEST_F(ShmAmoTest, PeersThatKnowOneRangeOnly)
{
	struct fi_rma_iov list[2] = { { 0, 4, key }, { 8, 4, key } };
	char buf[8] = {};
	struct iovec iov = { buf, 8 };
	struct fi_msg_rma m = { &iov, nullptr, 1, to_b, list, 2, buf, 0 };

	meet();
	pair_of(a)->peer_ranges = 0;
	EXPECT_EQ(fi_writemsg(a->ep, &m, 0), -FI_EOPNOTSUPP);
	EXPECT_EQ(fi_readmsg(a->ep, &m, 0), -FI_EOPNOTSUPP);
	exchange(100, 3);
}

TEST_F(ShmAmoTest, WithItself)
{
	fi_addr_t self = insert(b, port_b, id_b);
	const uint64_t one = 1;
	uint64_t res = 0;
	char x;

	region(b, 1, 0);
	for (uint64_t i = 0; i < 100; i++) {
		ASSERT_EQ(retry([&] {
				  return fi_fetch_atomic(b->ep, &one, 1,
							 nullptr, &res, nullptr,
							 self, 0, key,
							 FI_UINT64, FI_SUM, &x);
			  }),
			  0);
		ASSERT_TRUE(until([&] { return ended(b) == i + 1; }));
		EXPECT_EQ(res, i);
	}
}

/* Both ends ask for more than rings take, of the longest, in the first rings. */
TEST_F(ShmAmoTest, FloodInBothDirections)
{
	for (int grow = 0; grow < 2; grow++) {
		const int count = 500;
		struct tdt_owner *ends[2];
		fi_addr_t to[2];
		uint64_t mem[2][128] = {}, one[128];
		std::unique_ptr<uint64_t[]> res(new uint64_t[2 * count * 128]);
		int started[2] = { 0, 0 };

		remake(40);
		ends[0] = a;
		ends[1] = b;
		to[0] = to_b;
		to[1] = to_a;
		std::fill(one, one + 128, 1);
		meet();
		pair_of(a)->no_grow = !grow;
		pair_of(b)->no_grow = !grow;
		for (int e = 0; e < 2; e++)
			tdt_region_add(ends[e], key, mem[e], sizeof(mem[e]),
				       FI_REMOTE_READ | FI_REMOTE_WRITE);
		ASSERT_TRUE(until([&] {
			for (int e = 0; e < 2; e++) {
				while (started[e] < count &&
				       !fi_fetch_atomic(
					       ends[e]->ep, one, 128, nullptr,
					       &res[size_t(e * count +
							   started[e]) *
						    128],
					       nullptr, to[e], 0, key,
					       FI_UINT64, FI_SUM, &res))
					started[e]++;
			}
			return a->rma[TDT_READ].value == count &&
			       b->rma[TDT_READ].value == count;
		}));
		for (size_t e = 0; e < 2; e++) {
			for (size_t i = 0; i < count; i++)
				ASSERT_EQ(res[(e * count + i) * 128 + i % 128],
					  i);
			EXPECT_EQ(mem[e][127], uint64_t(count));
			EXPECT_EQ(pair_of(ends[e])->nserves, 0u);
		}
		EXPECT_EQ(pair_of(a)->tx.gen > 0, grow > 0);
	}
}

/* Without memory for an answer the record stays, and is carried out once. */
TEST_F(ShmAmoTest, WithoutMemoryItIsTriedAgain)
{
	const uint64_t one = 1;
	uint64_t res = 0;
	char x;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	meet();
	region(b, 1, 0);
	for (uint64_t i = 0; i < 10; i++) {
		ASSERT_EQ(retry([&] {
				  return fi_fetch_atomic(a->ep, &one, 1,
							 nullptr, &res, nullptr,
							 to_b, 0, key,
							 FI_UINT64, FI_SUM, &x);
			  }),
			  0);
		tdt_alloc_fail(1, 1);
		for (int k = 0; k < 10; k++)
			tdt_owner_progress(b);
		EXPECT_GT(tdt_alloc_stop(), 0u);
		EXPECT_EQ(memory[0], i);
		EXPECT_EQ(outcome(&x), 0);
		EXPECT_EQ(memory[0], i + 1);
		EXPECT_EQ(res, i);
	}
}

TEST_F(ShmAmoTest, OneEndGoes)
{
	for (int who = 0; who < 2; who++) {
		const uint64_t one = 1;
		uint64_t res[4];

		remake();
		meet();
		region(b, 1, 0);
		for (auto &r : res)
			ASSERT_EQ(retry([&] {
					  return fi_fetch_atomic(
						  a->ep, &one, 1, nullptr, &r,
						  nullptr, to_b, 0, key,
						  FI_UINT64, FI_SUM, &r);
				  }),
				  0);
		if (who) {
			close(b);
			ASSERT_TRUE(until([&] { return ended(a) == 4; }));
			for (size_t i = 0; i < a->dones; i++)
				EXPECT_EQ(a->done[i].err, FI_ECONNRESET);
			close(a);
		} else {
			close(a);
			ASSERT_TRUE(until([&] {
				return tdt_owner_event(b, TDM_PEER_LOST) !=
				       nullptr;
			}));
			EXPECT_EQ(b->entries, 0u);
			close(b);
		}
		make();
	}
}

/* Answers that an operation cannot have break the pair. */
TEST_F(ShmAmoTest, AnswersThatCannotBe)
{
	for (int lie = 0; lie < 4; lie++) {
		const uint64_t one = 1;
		uint64_t res = 7, body[2] = { 0, 0 };
		struct tdm_shm_op *op;
		char x;

		remake();
		meet();
		region(b, 1, 0);
		if (lie < 2)
			ASSERT_EQ(fi_fetch_atomic(a->ep, &one, 1, nullptr, &res,
						  nullptr, to_b, 0, key,
						  FI_UINT64, FI_SUM, &x),
				  0);
		else
			ASSERT_EQ(fi_atomic(a->ep, &one, 1, nullptr, to_b, 0,
					    key, FI_UINT64, FI_SUM, &x),
				  0);
		op = tdm_list_entry(pair_of(a)->pending.next, struct tdm_shm_op,
				    node);
		uint64_t id = tdm_shm_op_id(op);
		switch (lie) {
		case 0: /* fetched without the values */
			forge(TDM_SHM_REC_ACK, 0, id, nullptr, 0);
			break;
		case 1: /* too many of them */
			forge(TDM_SHM_REC_READ_DATA, 16, id, body, 16);
			break;
		case 2: /* nothing was to come back */
			forge(TDM_SHM_REC_READ_DATA, 8, id, body, 8);
			break;
		default: /* nothing is fed */
			forge(TDM_SHM_REC_PULL, 0, id, body, 16);
			break;
		}
		ASSERT_TRUE(tdt_eventually(
			[&] {
				return tdt_owner_event(a, TDM_PEER_LOST) !=
				       nullptr;
			},
			[&] { tdt_owner_progress(a); }))
			<< lie;
		EXPECT_EQ(res, 7u);
		EXPECT_EQ(a->done[0].err, FI_ECONNRESET);
	}
}

/* doc/PROTOCOL-shm.md, "Atomic operations": status 3, and the pair lives. */
TEST_F(ShmAmoTest, A10_OperationsThereAreNot)
{
	const uint16_t right[] = { 0, 3, 2 }; /* of an enum forged_end */

	meet();
	region(a, 1, 1);
	for (auto &c : forged_amos) {
		struct tdm_shm_amo amo = {};
		unsigned char body[sizeof(amo) + 32];
		uint16_t status = 99;

		memory[0] = 1;
		amo.where.key = key;
		amo.bytes = c.bytes;
		amo.amo.type = c.type;
		amo.amo.op = c.op;
		amo.amo.kind = c.kind;
		amo.amo.form = c.form;
		size_t len = c.bytes * tdm_amo_operands(&amo.amo);
		memset(body, 1, sizeof(body));
		memcpy(body, &amo, sizeof(amo));
		answer(uint16_t(len), body, sizeof(amo) + len, &status);
		EXPECT_EQ(right[c.end], status)
			<< int(c.type) << " " << int(c.op);
		EXPECT_EQ(c.end == FORGED_DONE, memory[0] != 1);
	}
	EXPECT_EQ(nullptr, tdt_owner_event(a, TDM_PEER_LOST));
	exchange(100, 1);
}

/* Random requests touch nothing but the region, and break what they must. */
TEST_F(ShmAmoTest, A10_RandomRequests)
{
	std::mt19937 rng(5);
	std::vector<unsigned char> guard(300, 0xaa);

	for (int round = 0; round < 300; round++) {
		unsigned char body[24 + 1024];
		struct tdm_shm_amo amo = {};
		size_t len;

		remake();
		meet();
		tdt_region_add(a, key, &guard[100], 100,
			       FI_REMOTE_READ | FI_REMOTE_WRITE);
		for (auto &c : body)
			c = (unsigned char)rng();
		amo.where.key = key;
		amo.where.addr = rng() % 4 ? rng() % 130 :
					     UINT64_MAX - rng() % 130;
		amo.bytes = 1 + rng() % 130;
		amo.amo.type = uint8_t(rng() % 22);
		amo.amo.op = uint8_t(rng() % 22);
		amo.amo.kind = uint8_t(rng() % 3);
		amo.amo.form = TDM_AMO_FORM;
		len = rng() % 10 ? amo.bytes * tdm_amo_operands(&amo.amo) :
				   rng() % 300;
		memcpy(body, &amo, sizeof(amo));
		/* The answer names an operation that b does not have. */
		forge(TDM_SHM_REC_ATOMIC, uint16_t(len), 12345, body,
		      sizeof(amo) + len);
		for (int k = 0; k < 5; k++)
			tdt_owner_progress(a);
		for (size_t i = 0; i < 100; i++) {
			ASSERT_EQ(0xaa, guard[i]);
			ASSERT_EQ(0xaa, guard[200 + i]);
		}
		EXPECT_EQ(a->dones, 0u);
	}
}
