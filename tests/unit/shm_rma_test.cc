/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations of the shared-memory peer: every size by every way,
 * what is refused, regions that are closed meanwhile, peers that go. The
 * specification is doc/PROTOCOL-shm.md "One-sided operations" and fi_rma(3).
 */
#include <memory>

#include "base/env.h"
#include "shm_world.h"

#include "tests/harness/mock_rma.h"

extern "C" {
#include "fi_ext_tandem.h"
#include "shm/rma.h"
#include "shm/tx.h"
}

using namespace shm_test;

namespace
{

const size_t sizes[] = { 0,    1,    8,	    48,	     112,    4096,
			 8192, 8193, 65536, 1 << 20, 4 << 20 };

using bytes = std::vector<unsigned char>;

} // namespace

class ShmRmaTest : public PairTest
{
protected:
	bytes memory;
	static constexpr uint64_t key = 77, slack = 64;

	/* A region of @len bytes at b, 0xee all over, and slack around it. */
	void region(size_t len, uint64_t access)
	{
		memory.assign(len + 2 * slack, 0xee);
		tdt_region_add(b, key, memory.data() + slack, len, access);
	}

	bytes held(size_t offset, size_t len) const
	{
		auto at = memory.begin() + long(slack + offset);

		return bytes(at, at + long(len));
	}

	/* Is all of the memory but [offset, offset + len) of the region 0xee? */
	bool rest_untouched(size_t offset, size_t len) const
	{
		for (size_t i = 0; i < memory.size(); i++) {
			if ((i < slack + offset || i >= slack + offset + len) &&
			    memory[i] != 0xee)
				return false;
		}
		return true;
	}

	struct request {
		uint64_t op;
		void *buf;
		size_t len;
		uint64_t addr;
		uint64_t key;
		uint64_t flags;
		uint64_t data;
	};

	/* Start @r at @o, retrying -FI_EAGAIN with progress on all sides. */
	ssize_t start(struct tdt_owner *o, fi_addr_t to, const request &r,
		      void *context)
	{
		struct iovec iov[2] = {
			{ r.buf, r.len / 3 },
			{ static_cast<char *>(r.buf) + r.len / 3,
			  r.len - r.len / 3 },
		};
		struct fi_rma_iov where = { r.addr, r.len, r.key };
		struct fi_msg_rma msg = {};
		ssize_t ret = -FI_EAGAIN;

		msg.msg_iov = iov;
		msg.iov_count = 2;
		msg.addr = to;
		msg.rma_iov = &where;
		msg.rma_iov_count = 1;
		msg.context = context;
		msg.data = r.data;
		until([&] {
			uint64_t flags = r.flags | FI_COMPLETION;

			ret = r.op == FI_WRITE ?
				      fi_writemsg(o->ep, &msg, flags) :
				      fi_readmsg(o->ep, &msg, flags);
			return ret != -FI_EAGAIN;
		});
		return ret;
	}

	/* The outcome of @r from a to b. */
	struct tdt_done run(const request &r)
	{
		struct tdt_done d = {};
		char ctx;

		d.err = -1;
		EXPECT_EQ(start(a, to_b, r, &ctx), 0);
		EXPECT_TRUE(until([&] { return tdt_owner_find(a, &ctx); }))
			<< r.len;
		if (tdt_owner_find(a, &ctx))
			d = *tdt_owner_find(a, &ctx);
		/* Once, and nothing follows. */
		for (int i = 0; i < 20; i++)
			step();
		EXPECT_EQ(a->dones, 1u);
		a->dones = 0;
		return d;
	}

	void write_every_size()
	{
		for (size_t len : sizes) {
			auto out = pattern(len, unsigned(len) + 3);
			uint64_t writes = a->rma[TDT_WRITE].value;
			uint64_t at = b->rma[TDT_REMOTE_WRITE].value;

			region(len + 100, FI_REMOTE_WRITE);
			auto d = run(
				{ FI_WRITE, out.data(), len, 50, key, 0, 0 });
			EXPECT_EQ(d.err, 0) << len;
			EXPECT_EQ(d.flags, uint64_t(FI_RMA | FI_WRITE));
			EXPECT_EQ(held(50, len), out) << len;
			EXPECT_TRUE(rest_untouched(50, len)) << len;
			EXPECT_EQ(a->rma[TDT_WRITE].value, writes + 1);
			EXPECT_EQ(b->rma[TDT_REMOTE_WRITE].value, at + 1);
			EXPECT_EQ(b->dones, 0u);
			EXPECT_EQ(b->entries, 0u);
			tdt_region_close(b, key);
		}
	}

	void read_every_size()
	{
		for (size_t len : sizes) {
			auto want = pattern(len, unsigned(len) + 9);
			bytes in(len + 1, 0xaa);
			uint64_t reads = a->rma[TDT_READ].value;
			uint64_t at = b->rma[TDT_REMOTE_READ].value;

			region(len + 100, FI_REMOTE_READ);
			std::copy(want.begin(), want.end(),
				  memory.begin() + long(slack) + 50);
			auto d =
				run({ FI_READ, in.data(), len, 50, key, 0, 0 });
			EXPECT_EQ(d.err, 0) << len;
			EXPECT_EQ(d.flags, uint64_t(FI_RMA | FI_READ));
			EXPECT_EQ(in[len], 0xaa);
			in.pop_back();
			EXPECT_EQ(in, want) << len;
			EXPECT_EQ(a->rma[TDT_READ].value, reads + 1);
			EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, at + 1);
			EXPECT_EQ(b->dones, 0u);
			EXPECT_EQ(b->entries, 0u);
			tdt_region_close(b, key);
		}
	}

	void refuse_all()
	{
		const size_t len = 200000;
		const request bad[] = {
			{ 0, nullptr, 0, 0, key + 1, 0, 0 },
			{ 0, nullptr, 0, len, key, 0, 0 },
			{ 0, nullptr, 0, len + 1, key, 0, 0 },
			{ 0, nullptr, 0, UINT64_MAX, key, 0, 0 },
			{ 0, nullptr, 0, UINT64_MAX - 6, key, 0, 0 },
		};
		bytes buf(len, 0x11);

		region(len, FI_REMOTE_READ | FI_REMOTE_WRITE);
		for (request r : bad) {
			for (size_t n : { size_t(0), size_t(8), len }) {
				if (!n && r.addr == len)
					continue; /* nothing, at the end */
				r.buf = buf.data();
				r.len = n;
				r.op = FI_WRITE;
				EXPECT_EQ(run(r).err, FI_EACCES)
					<< n << " " << r.addr;
				r.op = FI_READ;
				EXPECT_EQ(run(r).err, FI_EACCES)
					<< n << " " << r.addr;
			}
		}
		tdt_region_close(b, key);
		EXPECT_TRUE(rest_untouched(0, 0));
		EXPECT_EQ(buf, bytes(len, 0x11));
		EXPECT_EQ(b->dones, 0u);
		EXPECT_EQ(b->entries, 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_WRITE].value, 0u);
		exchange(1000, 5);
		exchange(300000, 6);
	}

	/*
	 * Close the region as soon as the transfer of @r has begun: a pull at
	 * @at is under way.
	 */
	int revoke(request r, struct tdt_owner *at)
	{
		char ctx;

		EXPECT_EQ(start(a, to_b, r, &ctx), 0);
		EXPECT_TRUE(until(
			[&] { return !tdm_list_empty(&pair_of(at)->pulls); }));
		EXPECT_EQ(tdt_owner_find(a, &ctx), nullptr);
		tdt_region_close(b, key);
		std::fill(memory.begin(), memory.end(), 0x55);
		EXPECT_TRUE(until([&] { return tdt_owner_find(a, &ctx); }));
		int err = tdt_owner_find(a, &ctx)->err;
		EXPECT_EQ(a->dones, 1u);
		a->dones = 0;
		/* "Not touched any more". */
		EXPECT_EQ(memory, bytes(memory.size(), 0x55));
		EXPECT_EQ(b->entries, 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_WRITE].value, 0u);
		exchange(100000, 3);
		return err;
	}

	void revoke_both()
	{
		bytes buf(8 << 20, 0x22);

		region(buf.size(), FI_REMOTE_WRITE);
		EXPECT_EQ(revoke({ FI_WRITE, buf.data(), buf.size(), 0, key, 0,
				   0 },
				 b),
			  FI_EACCES);
		region(buf.size(), FI_REMOTE_READ);
		EXPECT_EQ(revoke({ FI_READ, buf.data(), buf.size(), 0, key, 0,
				   0 },
				 a),
			  FI_EACCES);
	}
};

TEST_F(ShmRmaTest, WritesOfEverySize)
{
	write_every_size();
	EXPECT_EQ(a->rma_opens, 1u);
}

TEST_F(ShmRmaTest, WritesOfEverySizeByCopy)
{
	tdm_env.cma = 0;
	remake();
	write_every_size();
}

TEST_F(ShmRmaTest, ReadsOfEverySize)
{
	read_every_size();
}

TEST_F(ShmRmaTest, ReadsOfEverySizeByCopy)
{
	tdm_env.cma = 0;
	remake();
	read_every_size();
}

TEST_F(ShmRmaTest, RefusalsAreTheInitiatorsAlone)
{
	refuse_all();
}

TEST_F(ShmRmaTest, RefusalsAreTheInitiatorsAloneByCopy)
{
	tdm_env.cma = 0;
	remake();
	refuse_all();
}

TEST_F(ShmRmaTest, EachAccessIsForItself)
{
	bytes buf(100000, 1);

	for (size_t len : { size_t(8), buf.size() }) {
		region(len, FI_REMOTE_READ);
		EXPECT_EQ(run({ FI_WRITE, buf.data(), len, 0, key, 0, 0 }).err,
			  FI_EACCES);
		EXPECT_TRUE(rest_untouched(0, 0));
		tdt_region_close(b, key);
		region(len, FI_REMOTE_WRITE);
		EXPECT_EQ(run({ FI_READ, buf.data(), len, 0, key, 0, 0 }).err,
			  FI_EACCES);
		tdt_region_close(b, key);
	}
}

TEST_F(ShmRmaTest, RegionClosedDuringTheTransfer)
{
	revoke_both();
}

TEST_F(ShmRmaTest, RegionClosedDuringTheTransferByCopy)
{
	tdm_env.cma = 0;
	remake();
	revoke_both();
}

TEST_F(ShmRmaTest, RegionInTwoPieces)
{
	for (size_t len : { size_t(100), size_t(5000), size_t(700000) }) {
		auto out = pattern(len, 5);
		bytes in(len);

		region(len, FI_REMOTE_WRITE | FI_REMOTE_READ);
		tdt_region_split(b, key, 41);
		EXPECT_EQ(run({ FI_WRITE, out.data(), len, 0, key, 0, 0 }).err,
			  0);
		EXPECT_EQ(held(0, len), out);
		EXPECT_EQ(run({ FI_READ, in.data(), len, 0, key, 0, 0 }).err,
			  0);
		EXPECT_EQ(in, out);
		tdt_region_close(b, key);
	}
}

/*
 * fi_cq(3) 2.1, COMPLETION FLAGS 4, 12 and 13: Exactly these flags, once per
 * write, at the target.
 */
TEST_F(ShmRmaTest, WriteDataIsCompletedAtTheTarget)
{
	for (size_t len :
	     { size_t(0), size_t(8), size_t(3000), size_t(1) << 20 }) {
		auto out = pattern(len, 4);

		region(len, FI_REMOTE_WRITE);
		EXPECT_EQ(run({ FI_WRITE, out.data(), len, 0, key,
				FI_REMOTE_CQ_DATA, 0x8877665544332211ull })
				  .err,
			  0);
		ASSERT_EQ(b->dones, 1u);
		EXPECT_EQ(b->done[0].err, 0);
		EXPECT_EQ(b->done[0].flags, uint64_t(FI_REMOTE_CQ_DATA |
						     FI_RMA | FI_REMOTE_WRITE));
		EXPECT_EQ(b->done[0].data, 0x8877665544332211ull);
		EXPECT_EQ(b->done[0].len, len);
		EXPECT_EQ(b->done[0].src, id_a);
		EXPECT_EQ(b->done[0].context, nullptr);
		EXPECT_EQ(held(0, len), out);
		b->dones = 0;
		/* Refused: no event there. */
		EXPECT_EQ(run({ FI_WRITE, out.data(), len, 1, key,
				FI_REMOTE_CQ_DATA, 1 })
				  .err,
			  FI_EACCES);
		EXPECT_EQ(b->dones, 0u);
		tdt_region_close(b, key);
	}
}

TEST_F(ShmRmaTest, InjectedWrites)
{
	unsigned char buf[256];

	memset(buf, 0x31, sizeof(buf));
	meet();
	region(1000, FI_REMOTE_WRITE);
	ASSERT_EQ(fi_inject_write(a->ep, buf, 256, to_b, 0, key), 0);
	memset(buf, 0x32, sizeof(buf));
	ASSERT_EQ(fi_inject_writedata(a->ep, buf, 8, 5, to_b, 300, key), 0);
	memset(buf, 0x33, sizeof(buf));
	ASSERT_TRUE(until([&] { return a->rma[TDT_WRITE].value == 2; }));
	EXPECT_EQ(held(0, 256), bytes(256, 0x31));
	EXPECT_EQ(held(300, 8), bytes(8, 0x32));
	EXPECT_EQ(a->dones, 0u);
	EXPECT_EQ(b->dones, 1u);
	/* A failure is told without a completion being asked for. */
	ASSERT_EQ(fi_inject_write(a->ep, buf, 8, to_b, 995, key), 0);
	ASSERT_TRUE(until([&] { return a->dones == 1; }));
	EXPECT_EQ(a->done[0].err, FI_EACCES);
	EXPECT_EQ(a->done[0].context, nullptr);
	EXPECT_EQ(a->rma[TDT_WRITE].errs, 1u);
}

TEST_F(ShmRmaTest, BadCalls)
{
	struct fi_rma_iov where = { 0, 8, key };
	struct fi_msg_rma msg = {};
	struct iovec iov;
	char buf[5000] = {};

	meet();
	iov = { buf, 9 };
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	msg.addr = to_b;
	msg.rma_iov = &where;
	msg.rma_iov_count = 1;
	EXPECT_EQ(fi_writemsg(a->ep, &msg, 0), -FI_EINVAL);
	iov.iov_len = 8;
	msg.rma_iov_count = 0;
	EXPECT_EQ(fi_readmsg(a->ep, &msg, 0), -FI_EINVAL);
	EXPECT_EQ(fi_inject_write(a->ep, buf, 4097, to_b, 0, key),
		  -FI_EMSGSIZE);
	EXPECT_EQ(fi_read(a->ep, buf, 1, nullptr, to_b + 1, 0, key, buf),
		  -FI_EINVAL);
}

TEST_F(ShmRmaTest, WithItself)
{
	fi_addr_t self = insert(b, port_b, id_b);

	for (size_t len :
	     { size_t(0), size_t(8), size_t(3000), size_t(300000) }) {
		auto out = pattern(len, 8);
		bytes in(len);
		char ctx;

		region(len, FI_REMOTE_WRITE | FI_REMOTE_READ);
		ASSERT_EQ(start(b, self,
				{ FI_WRITE, out.data(), len, 0, key, 0, 0 },
				&ctx),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &ctx); }));
		EXPECT_EQ(b->done[0].err, 0);
		EXPECT_EQ(held(0, len), out);
		b->dones = 0;
		ASSERT_EQ(start(b, self,
				{ FI_READ, in.data(), len, 0, key, 0, 0 },
				&ctx),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &ctx); }));
		EXPECT_EQ(b->done[0].err, 0);
		EXPECT_EQ(in, out);
		b->dones = 0;
		ASSERT_EQ(start(b, self,
				{ FI_READ, in.data(), len, 1, key, 0, 0 },
				&ctx),
			  0);
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &ctx); }));
		EXPECT_EQ(b->done[0].err, FI_EACCES);
		b->dones = 0;
		tdt_region_close(b, key);
	}
	EXPECT_EQ(b->entries, 0u);
}

/* Both ends start more than rings and operations can take, of every kind. */
TEST_F(ShmRmaTest, FloodInBothDirectionsWithMessagesBetween)
{
	for (int cma = 0; cma < 2; cma++) {
		tdm_env.cma = cma;
		remake(40);
		const size_t lens[] = { 8, 100, 3000, 8192, 20000, 200000 };
		const int count = 600;
		std::unique_ptr<char[]> ctx(new char[2 * count]);
		struct tdt_owner *ends[2] = { a, b };
		fi_addr_t to[2] = { to_b, to_a };
		bytes mem[2], in(200000), in2(200000);
		auto out = pattern(200000, 6);
		int started[2] = { 0, 0 };

		for (int e = 0; e < 2; e++) {
			mem[e] = out;
			tdt_region_add(ends[e], key, mem[e].data(),
				       mem[e].size(),
				       FI_REMOTE_READ | FI_REMOTE_WRITE);
		}
		auto one = [&](int e) {
			int i = started[e];
			size_t len = lens[i % 6];
			void *c = &ctx[size_t(e * count + i)];
			auto *into = e ? in2.data() : in.data();

			switch (i % 3) {
			case 0:
				return fi_write(ends[e]->ep, out.data(), len,
						nullptr, to[e], 0, key, c);
			case 1:
				return fi_read(ends[e]->ep, into, len, nullptr,
					       to[e], 0, key, c);
			default:
				return tsend(ends[e], to[e], out.data(), len, 1,
					     c);
			}
		};
		std::vector<bytes> got(2 * count / 3, bytes(200000));
		for (int e = 0; e < 2; e++) {
			for (int i = 0; i < count / 3; i++)
				tdt_owner_trecv(
					ends[e],
					got[size_t(e * count / 3 + i)].data(),
					200000, 1, nullptr);
		}
		auto total = [&](struct tdt_owner *o) {
			return o->rma[TDT_READ].value +
			       o->rma[TDT_WRITE].value + o->sends;
		};
		ASSERT_TRUE(until([&] {
			for (int e = 0; e < 2; e++) {
				while (started[e] < count && !one(e))
					started[e]++;
			}
			return total(a) == count && total(b) == count;
		}))
			<< total(a) << " " << total(b);
		EXPECT_TRUE(until([&] {
			return a->recvs == count / 3 && b->recvs == count / 3;
		}));
		for (int e = 0; e < 2; e++) {
			EXPECT_EQ(mem[e], out);
			EXPECT_EQ(ends[e]->entries, 0u);
			EXPECT_EQ(ends[e]->rma[TDT_REMOTE_READ].value,
				  unsigned(count / 3));
			EXPECT_EQ(ends[e]->rma[TDT_REMOTE_WRITE].value,
				  unsigned(count / 3));
		}
	}
}

TEST_F(ShmRmaTest, WithoutMemoryItIsTriedAgain)
{
	auto out = pattern(100000, 2);

	for (size_t len : { size_t(8), out.size() }) {
		bytes in(len);

		region(len, FI_REMOTE_WRITE | FI_REMOTE_READ);
		b->refuse_entries = 5;
		EXPECT_EQ(run({ FI_WRITE, out.data(), len, 0, key, 0, 0 }).err,
			  0);
		b->refuse_entries = 5;
		EXPECT_EQ(run({ FI_READ, in.data(), len, 0, key, 0, 0 }).err,
			  0);
		EXPECT_EQ(in, held(0, len));
		tdt_region_close(b, key);
	}
}

/* The target goes: every operation ends once, with FI_ECONNRESET. */
TEST_F(ShmRmaTest, TargetClosesWithOperationsUnderWay)
{
	for (int cma = 0; cma < 2; cma++) {
		tdm_env.cma = cma;
		remake();
		bytes buf(8 << 20, 1), big(8 << 20, 2);
		char ctx[4];

		meet();
		tdt_region_add(b, key, big.data(), big.size(),
			       FI_REMOTE_WRITE | FI_REMOTE_READ);
		for (int i = 0; i < 4; i++)
			ASSERT_EQ(start(a, to_b,
					{ uint64_t(i & 1 ? FI_READ : FI_WRITE),
					  buf.data(),
					  i & 2 ? buf.size() : size_t(8), 0,
					  key, 0, 0 },
					&ctx[i]),
				  0);
		/* b takes the records and begins to move bytes, a does not. */
		tdt_owner_progress(b);
		close(b);
		ASSERT_TRUE(until([&] { return a->dones == 4; }));
		for (int i = 0; i < 4; i++) {
			ASSERT_NE(tdt_owner_find(a, &ctx[i]), nullptr);
			if (i & 2) {
				EXPECT_EQ(tdt_owner_find(a, &ctx[i])->err,
					  FI_ECONNRESET);
			}
		}
		close(a);
		make();
	}
}

/* The initiator goes: the target's entries go back, nothing is counted. */
TEST_F(ShmRmaTest, InitiatorClosesWithOperationsUnderWay)
{
	for (int cma = 0; cma < 2; cma++) {
		tdm_env.cma = cma;
		remake();
		bytes buf(8 << 20, 1), big(8 << 20, 2);
		char ctx[2];

		meet();
		tdt_region_add(b, key, big.data(), big.size(),
			       FI_REMOTE_WRITE | FI_REMOTE_READ);
		for (int i = 0; i < 2; i++)
			ASSERT_EQ(start(a, to_b,
					{ uint64_t(i & 1 ? FI_READ : FI_WRITE),
					  buf.data(), buf.size(), 0, key, 0,
					  0 },
					&ctx[i]),
				  0);
		tdt_owner_progress(b);
		EXPECT_EQ(b->entries, 2u);
		close(a);
		ASSERT_TRUE(until([&] {
			return tdt_owner_event(b, TDM_PEER_LOST) != nullptr;
		}));
		EXPECT_EQ(b->entries, 0u);
		EXPECT_EQ(b->dones, 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_READ].value, 0u);
		EXPECT_EQ(b->rma[TDT_REMOTE_WRITE].value, 0u);
		close(b);
		make();
	}
}

/* Identifiers in answers that no correct peer would send break the pair. */
TEST_F(ShmRmaTest, AnswersThatFitNoOperation)
{
	const struct {
		uint8_t op;
		uint16_t aux;
		uint64_t tag;
	} bad[] = {
		{ TDM_SHM_REC_READ_DATA, 8, 0 },
		{ TDM_SHM_REC_READ_DATA, 9, 1ull << 32 },
		{ TDM_SHM_REC_RTS_READ, 0, 99 },
		{ TDM_SHM_REC_ACK, 0, TDM_SHM_ID_SERVED },
		{ TDM_SHM_REC_ACK, 0, UINT64_MAX },
		{ TDM_SHM_REC_PULL, 0, TDM_SHM_ID_SERVED },
	};

	for (auto &r : bad) {
		struct tdm_shm_pair *pair;
		uint8_t *slot;

		meet();
		pair = pair_of(b);
		slot = tdm_shm_tx_room(pair, 1, 0);
		ASSERT_NE(slot, nullptr);
		memset(slot + 8, 0, TDM_SHM_SLOT_BYTES - 8);
		memcpy(slot + 8, &r.tag, 8);
		tdm_shm_ring_publish(&pair->tx, 1,
				     tdm_shm_word0(0, r.op, 0, r.aux));
		ASSERT_TRUE(until([&] {
			return tdt_owner_event(a, TDM_PEER_LOST) != nullptr;
		})) << int(r.op);
		remake();
	}
}

/* A PULL must not fetch from the buffer of a read, nor an ACK complete it. */
TEST_F(ShmRmaTest, AReadIsNoSend)
{
	for (uint8_t op : { TDM_SHM_REC_PULL, TDM_SHM_REC_ACK }) {
		struct tdm_shm_pull_body body = { 0, 8 };
		struct tdm_shm_pair *pair;
		char buf[8] = {}, ctx;
		uint64_t id;
		uint8_t *slot;

		meet();
		ASSERT_EQ(fi_read(a->ep, buf, 8, nullptr, to_b, 0, key, &ctx),
			  0);
		id = tdm_shm_op_id(tdm_list_entry(pair_of(a)->pending.next,
						  struct tdm_shm_op, node));
		pair = pair_of(b);
		slot = tdm_shm_tx_room(pair, 1, 0);
		memcpy(slot + 8, &id, 8);
		memcpy(slot + 16, &body, sizeof(body));
		tdm_shm_ring_publish(&pair->tx, 1, tdm_shm_word0(0, op, 0, 0));
		ASSERT_TRUE(tdt_eventually(
			[&] {
				return tdt_owner_event(a, TDM_PEER_LOST) !=
				       nullptr;
			},
			[&] { tdt_owner_progress(a); }));
		/* fi_read without FI_COMPLETION: errors are told all the same. */
		ASSERT_EQ(a->dones, 1u);
		EXPECT_EQ(a->done[0].err, FI_ECONNRESET);
		remake();
	}
}

/* fi_tandem(7), REPORT: payload is counted where it went, refusals nowhere. */
TEST_F(ShmRmaTest, ReportCountsWhatArrived)
{
	struct tdm_report_path at_a, at_b;
	struct tdm_report_ops *ops;
	bytes buf(20000, 7);
	void *p = nullptr;

	meet();
	region(buf.size(), FI_REMOTE_READ | FI_REMOTE_WRITE);
	exchange(100, 1);
	exchange(20000, 2);
	EXPECT_EQ(run({ FI_WRITE, buf.data(), 30, 0, key, 0, 0 }).err, 0);
	EXPECT_EQ(run({ FI_READ, buf.data(), 20000, 0, key, 0, 0 }).err, 0);
	EXPECT_EQ(run({ FI_READ, buf.data(), 20000, 1, key, 0, 0 }).err,
		  FI_EACCES);
	ASSERT_EQ(fi_open_ops(&a->ep->fid, TDM_REPORT_OPS, 0, &p, nullptr), 0);
	ops = static_cast<struct tdm_report_ops *>(p);
	at_a.size = sizeof(at_a);
	at_b.size = sizeof(at_b);
	ASSERT_EQ(ops->path(a->ep, to_b, &at_a), 0);
	ASSERT_EQ(ops->path(b->ep, to_a, &at_b), 0);
	EXPECT_EQ(at_a.path, uint32_t(TDM_REPORT_SHM));
	EXPECT_STREQ(at_a.reason_text, "");
	EXPECT_EQ(at_a.tx_msgs, 4u);
	EXPECT_EQ(at_a.tx_bytes, 1u + 100 + 20000 + 30);
	EXPECT_EQ(at_a.rx_msgs, 1u);
	EXPECT_EQ(at_a.rx_bytes, 20000u);
	EXPECT_EQ(at_b.rx_msgs, at_a.tx_msgs);
	EXPECT_EQ(at_b.rx_bytes, at_a.tx_bytes);
	EXPECT_EQ(at_b.tx_msgs, at_a.rx_msgs);
	EXPECT_EQ(at_b.tx_bytes, at_a.rx_bytes);
	EXPECT_EQ(ops->path(a->ep, to_b + 9, &at_a), -FI_EINVAL);
	EXPECT_EQ(fi_open_ops(&a->ep->fid, "else", 0, &p, nullptr), -FI_ENOSYS);
}
