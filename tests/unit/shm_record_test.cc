/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats of doc/PROTOCOL-shm.md: offsets, what the validators let pass
 * and what they refuse. Nothing here touches the system.
 */
#include <cstring>
#include <random>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

extern "C" {
#include "shm/amo.h"
#include "shm/msg.h"
#include "shm/packet.h"
#include "shm/record.h"
#include "shm/region.h"
}

namespace
{

int decode(uint8_t op, uint8_t flags, uint16_t aux, uint32_t room)
{
	struct tdm_shm_rec rec;

	return tdm_shm_rec_decode(&rec, tdm_shm_word0(1, op, flags, aux), room);
}

struct tdm_shm_hello hello()
{
	struct tdm_shm_hello h;
	struct sockaddr_in in;

	memset(&h, 0, sizeof(h));
	memset(&in, 0, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_port = htons(7);
	h.head.magic = TDM_SHM_MAGIC;
	h.head.type = TDM_SHM_MSG_HELLO;
	h.head.bytes = sizeof(h);
	h.version_least = h.version_most = 1;
	h.incarnation[3] = 9;
	h.slots = 24;
	h.addrlen = sizeof(in);
	memcpy(h.addr, &in, sizeof(in));
	return h;
}

int hello_ok(const struct tdm_shm_hello &h, int nfds = 3)
{
	struct tdm_shm_msg msg;

	return tdm_shm_msg_decode(&msg, &h, sizeof(h), nfds);
}

int head_ok(uint16_t type, uint32_t arg, int nfds)
{
	struct tdm_shm_msg_head h = { TDM_SHM_MAGIC, type, sizeof(h), arg };
	struct tdm_shm_msg msg;

	return tdm_shm_msg_decode(&msg, &h, sizeof(h), nfds);
}

} // namespace

TEST(ShmRecord, Layout)
{
	EXPECT_EQ(sizeof(struct tdm_shm_rts), 96u);
	EXPECT_EQ(offsetof(struct tdm_shm_rts, iov), 32u);
	EXPECT_EQ(sizeof(struct tdm_shm_chunk), 32u);
	EXPECT_EQ(offsetof(struct tdm_shm_chunk, len), 16u);
	EXPECT_EQ(sizeof(struct tdm_shm_hello), 96u);
	EXPECT_EQ(offsetof(struct tdm_shm_hello, incarnation), 24u);
	EXPECT_EQ(offsetof(struct tdm_shm_hello, slots), 56u);
	EXPECT_EQ(offsetof(struct tdm_shm_hello, addr), 68u);
	EXPECT_EQ(offsetof(struct tdm_shm_seg, consumed), 128u);
	EXPECT_EQ(offsetof(struct tdm_shm_seg, bell), 256u);
	EXPECT_EQ(offsetof(struct tdm_shm_seg, hold), 260u);
	EXPECT_EQ(offsetof(struct tdm_shm_seg, bounce_consumed), 384u);
	EXPECT_EQ(offsetof(struct tdm_shm_seg, bounce_produced), 512u);
	EXPECT_EQ(sizeof(struct tdm_shm_seg), 1024u);
	EXPECT_EQ(tdm_shm_seg_bytes(TDM_SHM_RING_SMALL_SLOTS), 4096u);
	EXPECT_EQ(tdm_shm_seg_bytes(TDM_SHM_RING_BUSY_SLOTS), 65536u);
	EXPECT_EQ(tdm_shm_seg_bytes(TDM_SHM_RING_LARGE_SLOTS), 262144u);
	EXPECT_EQ(tdm_shm_seg_bytes(TDM_SHM_RING_STREAM_SLOTS), 2097152u);
	EXPECT_EQ(tdm_shm_word0(0x01020304, 5, 6, 0x0708),
		  0x0708060501020304ull);
}

TEST(ShmRecord, SlotsOfARecord)
{
	EXPECT_EQ(tdm_shm_rec_slots(0), 1u);
	EXPECT_EQ(tdm_shm_rec_slots(112), 1u);
	EXPECT_EQ(tdm_shm_rec_slots(113), 2u);
	EXPECT_EQ(tdm_shm_rec_slots(240), 2u);
	EXPECT_EQ(tdm_shm_rec_slots(241), 3u);
	/* A message of several slots begins with the second cache line. */
	EXPECT_EQ(tdm_shm_msg_extra(0, 112), 0u);
	EXPECT_EQ(tdm_shm_msg_extra(0, 113), 48u);
	EXPECT_EQ(tdm_shm_msg_extra(TDM_SHM_REC_DATA, 104), 8u);
	EXPECT_EQ(tdm_shm_msg_extra(TDM_SHM_REC_DATA, 105), 48u);
	EXPECT_EQ(tdm_shm_msg_extra(TDM_SHM_REC_DATA | TDM_SHM_REC_DELIVER, 96),
		  16u);
	EXPECT_EQ(tdm_shm_msg_extra(TDM_SHM_REC_DATA | TDM_SHM_REC_DELIVER, 97),
		  48u);
}

TEST(ShmRecord, EagerLengthsStayInsideTheRing)
{
	EXPECT_EQ(decode(TDM_SHM_REC_MSG, 0, 112, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_MSG, 0, 113, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, TDM_SHM_REC_DATA, 104, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, TDM_SHM_REC_DATA, 105, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, 3, 96, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, 3, 97, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, 4, 0, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, 0, 60000, 8192), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, 0, 60001, 8192), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_TAG, 0, 0, 0), -1);
}

TEST(ShmRecord, ControlRecordsCarryNothingElse)
{
	EXPECT_EQ(decode(TDM_SHM_REC_ACK, 0, 0, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ACK, 0, 1, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ACK, 0, 2, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ACK, 0, 3, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ACK, 0, 4, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_ACK, 1, 0, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_PULL, 0, 1, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_PULL, 0, 2, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_GOODBYE, 0, 0, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_PAD, 0, 5, 5), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_PAD, 0, 4, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_PAD, 0, 0, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_MOVED, 0, 15, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_MOVED, 0, 504, 5), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_MOVED, 0, 16385, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RTS_TAG, 0, 1, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RTS_TAG, 1, 0, 5), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_RTS_TAG, 2, 0, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_SELECT, 0, 0, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_SELECT, 0, 65535, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_SELECT, 1, 0, 1), -1);
	EXPECT_EQ(decode(0, 0, 0, 5), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_COUNT, 0, 0, 5), -1);
	EXPECT_EQ(decode(255, 0, 0, 5), -1);
}

TEST(ShmRecord, OneSidedOperations)
{
	/* 16 bytes say where, 8 more are data. */
	EXPECT_EQ(decode(TDM_SHM_REC_WRITE, 0, 96, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_WRITE, 0, 97, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_WRITE, TDM_SHM_REC_DATA, 88, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_WRITE, TDM_SHM_REC_DATA, 89, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_WRITE, TDM_SHM_REC_DELIVER, 0, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_READ_DATA, 0, 112, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_READ_DATA, 1, 0, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_READ, 0, 0, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_READ, 0, 1, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RTS_READ, 1, 0, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RTS_WRITE, 1, 0, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_RTS_WRITE, 2, 0, 1), -1);
}

TEST(ShmRecord, Ranges)
{
	/* 24 bytes each; an operation has one of its own. */
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 1, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 4, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 5, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 5, 2), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 7, 2), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 0, 9), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, 0, 8, 9), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_RANGES, TDM_SHM_REC_DATA, 1, 9), -1);
}

TEST(ShmRecord, AtomicOperations)
{
	/* 24 bytes say what and where. */
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, 0, 0, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, 0, 88, 1), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, 0, 89, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, 0, 89, 2), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, 0, TDM_AMO_BYTES, 600), 0);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, 0, TDM_AMO_BYTES + 1, 600), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, TDM_SHM_REC_DATA, 8, 1), -1);
	EXPECT_EQ(decode(TDM_SHM_REC_ATOMIC, TDM_SHM_REC_DELIVER, 8, 1), -1);
	EXPECT_EQ(offsetof(struct tdm_shm_amo, bytes), 16u);
	EXPECT_EQ(offsetof(struct tdm_shm_amo, amo), 20u);
	EXPECT_EQ(sizeof(struct tdm_shm_amo), 24u);
}

/* As many operands as the operation takes, and no more than fit. */
TEST(ShmRecord, OperandsOfAtomicOperations)
{
	const struct {
		uint8_t kind, op;
		uint32_t bytes;
		uint16_t len;
		int ret;
	} all[] = {
		{ TDM_AMO_BASE, FI_SUM, 8, 8, 0 },
		{ TDM_AMO_BASE, FI_SUM, 8, 7, -1 },
		{ TDM_AMO_BASE, FI_SUM, 8, 16, -1 },
		{ TDM_AMO_BASE, FI_SUM, 0, 0, -1 },
		{ TDM_AMO_BASE, FI_SUM, 1024, 1024, 0 },
		{ TDM_AMO_BASE, FI_SUM, 1025, 1025, -1 },
		{ TDM_AMO_FETCH, FI_SUM, 8, 8, 0 },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 8, 0, 0 },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 1024, 0, 0 },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 1025, 0, -1 },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, UINT32_MAX, 0, -1 },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 8, 8, -1 },
		{ TDM_AMO_COMPARE, FI_CSWAP, 8, 16, 0 },
		{ TDM_AMO_COMPARE, FI_CSWAP, 8, 8, -1 },
		{ TDM_AMO_COMPARE, FI_CSWAP, 512, 1024, 0 },
		{ TDM_AMO_COMPARE, FI_CSWAP, 1024, 2048, -1 },
		{ TDM_AMO_COMPARE, FI_CSWAP, 0x80000004, 8, -1 },
		/* An unknown operation passes here: the owner refuses it. */
		{ TDM_AMO_BASE, 255, 8, 8, 0 },
		{ TDM_AMO_KINDS, FI_SUM, 8, 8, -1 },
		{ 255, FI_SUM, 8, 8, -1 },
	};

	for (auto &a : all) {
		struct tdm_shm_amo amo;

		memset(&amo, 0, sizeof(amo));
		amo.bytes = a.bytes;
		amo.amo.kind = a.kind;
		amo.amo.op = a.op;
		EXPECT_EQ(tdm_shm_amo_check(&amo, a.len), a.ret)
			<< int(a.kind) << " " << int(a.op) << " " << a.bytes;
	}
}

TEST(ShmRecord, ChunksContinueWhereTheTransferStands)
{
	struct tdm_shm_chunk c;

	memset(&c, 0, sizeof(c));
	c.offset = 100;
	c.len = 50;
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 50), 0);
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 49), -1);
	EXPECT_EQ(tdm_shm_chunk_check(&c, 99, 50), -1);
	EXPECT_EQ(tdm_shm_chunk_check(&c, 101, 50), -1);
	c.len = 0;
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 50), -1);
	c.len = TDM_SHM_CHUNK_BYTES + 1;
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 1 << 20), -1);
	c.status = TDM_SHM_STATUS_ACCESS;
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 1 << 20), -1);
	c.len = 0;
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 1 << 20), 0);
	c.status = TDM_SHM_STATUS_ACCESS + 1;
	EXPECT_EQ(tdm_shm_chunk_check(&c, 100, 1 << 20), -1);
}

TEST(ShmRecord, PayloadLeftMustFitItsArea)
{
	struct tdm_shm_left l = { 1, 17, 1 };

	EXPECT_EQ(tdm_shm_left_bytes(17), 48u);
	EXPECT_EQ(tdm_shm_left_check(&l, 48), 0);
	EXPECT_EQ(tdm_shm_left_check(&l, 47), -1);
	l.kind = 0; /* the end */
	EXPECT_EQ(tdm_shm_left_check(&l, 48), -1);
	l.kind = TDM_SHM_LEFT_RECORD;
	EXPECT_EQ(tdm_shm_left_check(&l, 48), 0);
	l.len = 16;
	EXPECT_EQ(tdm_shm_left_check(&l, 32), 0);
	EXPECT_EQ(tdm_shm_left_check(&l, 31), -1);
	l.len = 15; /* less than the head of a record */
	EXPECT_EQ(tdm_shm_left_check(&l, 48), -1);
	l.kind = 3;
	EXPECT_EQ(tdm_shm_left_check(&l, 48), -1);
	l.kind = TDM_SHM_LEFT_PAYLOAD;
	l.len = UINT32_MAX;
	EXPECT_EQ(tdm_shm_left_check(&l, 1 << 24), -1);
	l.len = 0;
	EXPECT_EQ(tdm_shm_left_check(&l, 16), 0);
	EXPECT_EQ(tdm_shm_left_check(&l, 15), -1);
}

TEST(ShmRecord, AnswersAndGoodbyeAreLeft)
{
	auto ok = [](uint8_t op, uint16_t aux, size_t len, uint8_t flags = 0) {
		struct tdm_shm_rec rec;

		return tdm_shm_left_decode(
			&rec, tdm_shm_word0(0, op, flags, aux), len);
	};

	EXPECT_EQ(ok(TDM_SHM_REC_ACK, TDM_SHM_STATUS_OPERATION, 16), 0);
	EXPECT_EQ(ok(TDM_SHM_REC_ACK, TDM_SHM_STATUS_OPERATION + 1, 16), -1);
	EXPECT_EQ(ok(TDM_SHM_REC_ACK, 0, 17), -1);
	EXPECT_EQ(ok(TDM_SHM_REC_ACK, 0, 16, 1), -1);
	EXPECT_EQ(ok(TDM_SHM_REC_GOODBYE, 0, 16), 0);
	EXPECT_EQ(ok(TDM_SHM_REC_GOODBYE, 1, 16), -1);
	EXPECT_EQ(ok(TDM_SHM_REC_READ_DATA, 0, 16), 0);
	EXPECT_EQ(ok(TDM_SHM_REC_READ_DATA, 1000, 1016), 0);
	EXPECT_EQ(ok(TDM_SHM_REC_READ_DATA, 1000, 1015), -1);
	EXPECT_EQ(ok(TDM_SHM_REC_READ_DATA, 1000, 1024), -1);
	for (uint8_t op : { TDM_SHM_REC_MSG, TDM_SHM_REC_TAG, TDM_SHM_REC_PULL,
			    TDM_SHM_REC_FAIL, TDM_SHM_REC_RTS_READ,
			    TDM_SHM_REC_WRITE, TDM_SHM_REC_COUNT })
		EXPECT_EQ(ok(op, 0, 16), -1) << int(op);
}

TEST(ShmRecord, NoWordPassesTheEndOfTheRing)
{
	std::mt19937_64 rng(1);

	for (int i = 0; i < 1000000; i++) {
		uint64_t w = rng() & 0xffff030fffffffffull;
		uint32_t room = uint32_t(rng() % 600);
		struct tdm_shm_rec rec;

		if (!tdm_shm_rec_decode(&rec, w, room)) {
			ASSERT_GE(rec.slots, 1u);
			ASSERT_LE(rec.slots, room);
			ASSERT_LE(rec.extra, 48u);
		}
	}
}

/* The comparison that tells a small message agrees with the decoder. */
TEST(ShmRecord, SmallMessages)
{
	for (unsigned op = 0; op < 256; op++)
		for (unsigned flags = 0; flags < 256; flags++)
			for (unsigned aux = 90; aux < 130; aux++) {
				uint64_t w = tdm_shm_word0(7, uint8_t(op),
							   uint8_t(flags),
							   uint16_t(aux));
				struct tdm_shm_rec rec = {};
				bool small =
					!tdm_shm_rec_decode(&rec, w, 504) &&
					rec.op <= TDM_SHM_REC_TAG &&
					rec.slots == 1;

				ASSERT_EQ(tdm_shm_word_small(w, 0),
					  small && !flags)
					<< op << " " << flags << " " << aux;
				ASSERT_EQ(tdm_shm_word_small(w,
							     TDM_SHM_REC_DATA),
					  small && flags == TDM_SHM_REC_DATA)
					<< op << " " << flags << " " << aux;
			}
}

/* An announcement of one element stays within the first line of its slot. */
TEST(ShmRecord, RtsOfOneElementTakesOneLine)
{
	struct tdm_shm_rts r, got;
	uint8_t body[sizeof(r)];

	for (uint32_t count : { 0u, 1u, 2u, 4u }) {
		memset(&r, 0, sizeof(r));
		memset(&got, 0, sizeof(got));
		memset(body, 0xee, sizeof(body));
		r.id = 7;
		r.count = count;
		for (uint32_t i = 0; i < count; i++)
			r.iov[i] = { 100 + i, 1000 + i };
		tdm_shm_rts_put(body, &r);
		EXPECT_EQ(body[48] == 0xee, count < 2) << count;
		tdm_shm_rts_get(&got, body);
		EXPECT_EQ(memcmp(&got, &r, sizeof(r)), 0) << count;
	}
}

TEST(ShmRecord, L6_RtsLengthsMustAddUp)
{
	struct tdm_shm_rts r;

	memset(&r, 0, sizeof(r));
	EXPECT_EQ(tdm_shm_rts_check(&r), 0);
	r.len = 30; /* it does not say where they are */
	EXPECT_EQ(tdm_shm_rts_check(&r), 0);
	r.len = UINT64_MAX / 2 + 1;
	EXPECT_EQ(tdm_shm_rts_check(&r), -1);
	r.len = 30;
	r.count = 2;
	r.iov[0].len = 10;
	r.iov[1].len = 20;
	EXPECT_EQ(tdm_shm_rts_check(&r), 0);
	r.iov[1].len = 21;
	EXPECT_EQ(tdm_shm_rts_check(&r), -1);
	r.iov[1].len = UINT64_MAX - 9;
	r.len = 0;
	EXPECT_EQ(tdm_shm_rts_check(&r), -1);
	r.count = 5;
	EXPECT_EQ(tdm_shm_rts_check(&r), -1);
	r.count = 1;
	r.len = 10;
	EXPECT_EQ(tdm_shm_rts_check(&r), 0);
	r.iov[0].addr = UINT64_MAX - 5;
	EXPECT_EQ(tdm_shm_rts_check(&r), -1);
	r.iov[0].addr = 0;
	r.iov[0].len = r.len = UINT64_MAX / 2 + 1;
	EXPECT_EQ(tdm_shm_rts_check(&r), -1);
}

TEST(ShmRecord, L6_PullStaysInsideTheMessage)
{
	struct tdm_shm_pull_body p = { 0, 100 };

	EXPECT_EQ(tdm_shm_pull_check(&p, 100), 0);
	EXPECT_EQ(tdm_shm_pull_check(&p, 99), -1);
	p = { 50, 51 };
	EXPECT_EQ(tdm_shm_pull_check(&p, 100), -1);
	p = { UINT64_MAX, 2 };
	EXPECT_EQ(tdm_shm_pull_check(&p, 100), -1);
	p = { 1, UINT64_MAX };
	EXPECT_EQ(tdm_shm_pull_check(&p, 100), -1);
	p = { 0, 0 };
	EXPECT_EQ(tdm_shm_pull_check(&p, 100), -1);
}

TEST(Packet, HelloIsCheckedFieldByField)
{
	struct tdm_shm_hello h = hello();

	EXPECT_EQ(hello_ok(h), 0);
	EXPECT_EQ(hello_ok(h, 2), -1);
	EXPECT_EQ(hello_ok(h, 0), -1);
	h.head.magic ^= 1;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.head.bytes--;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.version_least = 0;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.version_least = 2;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.incarnation[3] = 0;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.slots = 15;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.slots = UINT32_MAX;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.bell = TDM_SHM_BELLS_MOST;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.addrlen = 29;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.addr[0] = AF_INET6;
	EXPECT_EQ(hello_ok(h), -1);
	h = hello();
	h.head.arg = 65535;
	EXPECT_EQ(hello_ok(h), 0);
	h.head.arg = 65536;
	EXPECT_EQ(hello_ok(h), -1);
}

/* A later version must be answered, so its HELLO is no garbage. */
TEST(Packet, OtherVersionsAreRecognised)
{
	struct tdm_shm_hello h = hello();

	EXPECT_EQ(tdm_shm_hello_version(&h), 1);
	h.version_most = 7;
	EXPECT_EQ(tdm_shm_hello_version(&h), 1);
	h.version_least = 2;
	h.slots = 0;
	EXPECT_EQ(hello_ok(h), 0);
	EXPECT_EQ(tdm_shm_hello_version(&h), -1);
}

TEST(Packet, ShortPackets)
{
	struct tdm_shm_msg msg;
	char buf[300] = {};

	for (size_t len = 0; len < sizeof(buf); len++)
		EXPECT_EQ(tdm_shm_msg_decode(&msg, buf, len, 0), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_READY, 0, 0), 0);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_READY, 0, 1), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_HELLO, 0, 3), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_REJECT, TDM_SHM_WHY_TIE, 0), 0);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_REJECT, 0, 0), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_ABORT, TDM_SHM_WHY_COUNT, 0), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_RING, 504, 1), 0);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_RING, 504, 0), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_RING, 16385, 1), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_BOUNCE, 32, 1), 0);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_BOUNCE, 0, 1), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_BOUNCE, 1025, 1), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_LEFT, TDM_SHM_LEFT_PAGES, 1), 0);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_LEFT, 1, 0), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_LEFT, 0, 1), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_LEFT, TDM_SHM_LEFT_PAGES + 1, 1), -1);
	EXPECT_EQ(head_ok(0, 0, 0), -1);
	EXPECT_EQ(head_ok(TDM_SHM_MSG_COUNT, 0, 0), -1);
}

TEST(Packet, RandomPacketsDoNotPassByAccident)
{
	std::mt19937_64 rng(2);
	int passed = 0;

	for (int i = 0; i < 200000; i++) {
		struct tdm_shm_hello h = hello();
		auto *p = reinterpret_cast<uint8_t *>(&h);
		struct tdm_shm_msg msg;

		for (int j = 0; j < 3; j++)
			p[rng() % sizeof(h)] = uint8_t(rng());
		if (!tdm_shm_msg_decode(&msg, &h, sizeof(h), 3)) {
			passed++;
			if (tdm_shm_hello_version(&msg.hello) < 0)
				continue;
			ASSERT_LE(msg.hello.slots,
				  unsigned(TDM_SHM_SLOTS_MOST));
			ASSERT_LE(msg.hello.addrlen, 28u);
		}
	}
	EXPECT_LT(passed, 200000);
}
