/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of TCP: layouts as doc/PROTOCOL-tcp.md has them, round
 * trips, and every field out of bounds.
 */
#include <cstring>
#include <random>
#include <vector>

#include <arpa/inet.h>

#include <gtest/gtest.h>

extern "C" {
#include "tcp/wire/credit.h"
#include "tcp/wire/offer.h"
#include "tcp/wire/greeting.h"
}

namespace
{

typedef struct tdm_wire_rec Rec;
typedef struct tdm_wire_greeting Greeting;

Rec record(uint8_t op, uint8_t flags = 0, uint32_t len = 0)
{
	Rec r = {};

	r.op = op;
	r.flags = flags;
	r.len = len;
	return r;
}

std::vector<uint8_t> encode(const Rec &r)
{
	std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES, 0xee);

	b.resize(tdm_wire_encode(b.data(), &r));
	return b;
}

int decode(const std::vector<uint8_t> &b, Rec *r)
{
	int n = tdm_wire_head_bytes(b.data());

	return n < 0 ? n : tdm_wire_decode(b.data(), r);
}

/* All records with all combinations of their flags. */
std::vector<Rec> all_records()
{
	std::vector<Rec> v;

	for (unsigned f = 0; f < 16; f++) {
		Rec r = record(TDM_WIRE_EAGER, (uint8_t)f, 1000 + f);

		if (f & TDM_WIRE_F_TAG)
			r.tag = 0x1122334455667788;
		if (f & TDM_WIRE_F_DATA)
			r.data = 0x99aabbccddeeff00;
		if (f & TDM_WIRE_F_DONE)
			r.id = 0xfedcba98;
		v.push_back(r);
	}
	v.push_back(
		record(TDM_WIRE_EAGER, TDM_WIRE_F_LEFT, TDM_WIRE_LEFT_BYTES));
	v.push_back(record(TDM_WIRE_EAGER, TDM_WIRE_F_LEFT | TDM_WIRE_F_ACK));
	for (unsigned f = 0; f < 4; f++) {
		Rec r = record(TDM_WIRE_RTS, (uint8_t)f);

		if (f & TDM_WIRE_F_TAG)
			r.tag = 7;
		if (f & TDM_WIRE_F_DATA)
			r.data = 8;
		r.id = 5;
		r.total = 1ull << 40;
		v.push_back(r);
	}
	Rec r = record(TDM_WIRE_CTS);
	r.id = 1;
	r.rid = 2;
	r.total = 3;
	v.push_back(r);
	r = record(TDM_WIRE_DATA, TDM_WIRE_F_ACK, TDM_WIRE_DATA_BYTES);
	r.rid = 9;
	v.push_back(r);
	r = record(TDM_WIRE_DATA, TDM_WIRE_F_ACK | TDM_WIRE_F_NOW, 1);
	r.rid = 9;
	v.push_back(r);
	r = record(TDM_WIRE_DATA, TDM_WIRE_F_ABORT, 0);
	r.rid = 9;
	v.push_back(r);
	for (uint32_t status = 0; status < TDM_WIRE_STATUSES; status++) {
		r = record(TDM_WIRE_DONE);
		r.id = 4;
		r.status = status;
		v.push_back(r);
	}
	for (uint8_t op : { TDM_WIRE_WRITE, TDM_WIRE_AWRITE, TDM_WIRE_READ }) {
		for (unsigned f = 0; f < 4; f += TDM_WIRE_F_DATA) {
			if (f && op == TDM_WIRE_READ)
				continue;
			r = record(op, (uint8_t)f);
			r.len = op == TDM_WIRE_WRITE ? 4096 : 0;
			r.total = op == TDM_WIRE_WRITE ? 4096 : 1ull << 41;
			r.id = 0x80000001;
			r.rid = op == TDM_WIRE_READ ? 0x80000002 : 0;
			r.key = 0x0123456789abcdef;
			r.addr = UINT64_MAX - 1;
			r.data = f ? 11 : 0;
			v.push_back(r);
		}
	}
	for (uint8_t kind = 0; kind < TDM_AMO_KINDS; kind++) {
		r = record(TDM_WIRE_ATOMIC, 0,
			   kind == TDM_AMO_COMPARE ? 16 : 8);
		r.ctx = 0x8002;
		r.id = 0x80000001;
		r.rid = kind == TDM_AMO_BASE ? 0 : 0x80000002;
		r.key = 0x0123456789abcdef;
		r.addr = UINT64_MAX - 1;
		r.total = 8;
		r.amo = { FI_UINT64, FI_SUM, kind, 0xee };
		v.push_back(r);
	}
	r = record(TDM_WIRE_LEFT, 0, TDM_WIRE_LEFT_BYTES);
	r.total = 0x8000000000000001;
	v.push_back(r);
	r = record(TDM_WIRE_RANGE);
	r.key = 0x0123456789abcdef;
	r.addr = UINT64_MAX - 1;
	r.total = TDM_WIRE_MSG_MAX;
	v.push_back(r);
	r = record(TDM_WIRE_GROUP);
	r.group = 0xfffffffe;
	v.push_back(r);
	for (uint32_t step = 1; step < TDM_WIRE_LOCALS; step++) {
		r = record(TDM_WIRE_LOCAL, 0,
			   step == TDM_WIRE_OFFER ? TDM_WIRE_OFFER_BYTES : 0);
		r.step = step;
		v.push_back(r);
	}
	for (uint8_t op : { TDM_WIRE_EAGER, TDM_WIRE_RTS, TDM_WIRE_WRITE,
			    TDM_WIRE_AWRITE }) {
		r = record(op);
		r.ctx = 0x8001;
		v.push_back(r);
	}
	r = record(TDM_WIRE_ACK);
	r.acked = 1ull << 63;
	r.freed = 77;
	v.push_back(r);
	v.push_back(record(TDM_WIRE_GOODBYE));
	r = record(TDM_WIRE_CANCEL);
	r.id = 6;
	v.push_back(r);
	for (uint32_t step = TDM_WIRE_ASK; step < TDM_WIRE_STEPS; step++) {
		r = record(TDM_WIRE_IDLE_CLOSE);
		r.step = step;
		r.acked = 3;
		r.freed = 1ull << 62;
		v.push_back(r);
	}
	return v;
}

TEST(TcpRecord, RecordsRoundTrip)
{
	for (const Rec &r : all_records()) {
		std::vector<uint8_t> b = encode(r);
		Rec d;

		ASSERT_LE(b.size(), (size_t)TDM_WIRE_HEAD_BYTES);
		ASSERT_EQ((int)b.size(), tdm_wire_head_bytes(b.data()));
		memset(&d, 0xff, sizeof(d));
		ASSERT_EQ(0, decode(b, &d)) << (int)r.op;
		EXPECT_EQ(r.op, d.op);
		EXPECT_EQ(r.flags, d.flags);
		EXPECT_EQ(r.ctx, d.ctx);
		EXPECT_EQ(r.len, d.len);
		EXPECT_EQ(r.tag, d.tag);
		EXPECT_EQ(r.data, d.data);
		EXPECT_EQ(r.id, d.id);
		bool one_sided =
			(r.op >= TDM_WIRE_WRITE && r.op <= TDM_WIRE_READ) ||
			r.op == TDM_WIRE_ATOMIC || r.op == TDM_WIRE_RANGE;

		if (r.op == TDM_WIRE_CTS || r.op == TDM_WIRE_DATA) {
			EXPECT_EQ(r.rid, d.rid);
		}
		if (r.op == TDM_WIRE_RTS || r.op == TDM_WIRE_CTS ||
		    r.op == TDM_WIRE_LEFT || one_sided) {
			EXPECT_EQ(r.total, d.total);
		}
		EXPECT_EQ(r.status, d.status);
		if (r.op == TDM_WIRE_GROUP) {
			EXPECT_EQ(r.group, d.group);
		} else if (one_sided) {
			EXPECT_EQ(r.rid, d.rid);
			EXPECT_EQ(r.key, d.key);
			EXPECT_EQ(r.addr, d.addr);
		}
		if (r.op == TDM_WIRE_IDLE_CLOSE) {
			EXPECT_EQ(r.step, d.step);
		}
		if (r.op == TDM_WIRE_ATOMIC) {
			EXPECT_EQ(0, memcmp(&r.amo, &d.amo, sizeof(r.amo)));
		}
		if (r.op == TDM_WIRE_ACK || r.op == TDM_WIRE_IDLE_CLOSE) {
			EXPECT_EQ(r.acked, d.acked);
			EXPECT_EQ(r.freed, d.freed);
		}
	}
}

TEST(TcpRecord, ALayoutThatMustNotMove)
{
	Rec r = record(TDM_WIRE_EAGER, TDM_WIRE_F_TAG | TDM_WIRE_F_DATA, 8);
	const std::vector<uint8_t> want = {
		1,    3,    0x22, 0x21, 8,    0,    0,	  0,
		0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
		0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11
	};

	r.tag = 0x0102030405060708;
	r.data = 0x1112131415161718;
	r.ctx = 0x2122;
	EXPECT_EQ(want, encode(r));

	const std::vector<uint8_t> read = { 10, 0, 0, 0, 0, 0, 0, 0, 1, 0,
					    0,	0, 2, 0, 0, 0, 3, 0, 0, 0,
					    0,	0, 0, 0, 4, 0, 0, 0, 0, 0,
					    0,	0, 5, 0, 0, 0, 0, 0, 0, 0 };
	r = record(TDM_WIRE_READ);
	r.id = 1;
	r.rid = 2;
	r.key = 3;
	r.addr = 4;
	r.total = 5;
	EXPECT_EQ(read, encode(r));

	const std::vector<uint8_t> rest = { 13, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0,
					    0,	0, 0, 0, 0, 1, 2, 0, 0, 0, 0,
					    0,	0, 0, 0, 0, 0, 0, 0, 3, 0 };
	r = record(TDM_WIRE_IDLE_CLOSE);
	r.step = TDM_WIRE_GO;
	r.acked = 0x0201;
	r.freed = 3ull << 48;
	EXPECT_EQ(rest, encode(r));
	EXPECT_EQ((size_t)TDM_WIRE_ACK_BYTES, rest.size());

	const std::vector<uint8_t> atomic = {
		14, 0, 6, 0, 16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0,	 0, 0,
		0,  0, 0, 0, 4,	 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 7, 12, 2, 64
	};
	r = record(TDM_WIRE_ATOMIC, 0, 16);
	r.ctx = 6;
	r.id = 1;
	r.rid = 2;
	r.key = 3;
	r.addr = 4;
	r.total = 8;
	r.amo = { FI_UINT64, FI_CSWAP, TDM_AMO_COMPARE, 64 };
	EXPECT_EQ(atomic, encode(r));

	const std::vector<uint8_t> left = { 15, 0, 0, 0, 9, 0, 0, 0,
					    2,	1, 0, 0, 0, 0, 0, 0 };
	r = record(TDM_WIRE_LEFT, 0, 9);
	r.total = 0x0102;
	EXPECT_EQ(left, encode(r));
}

TEST(TcpRecord, ARangeIsLaidOutLikeThis)
{
	const std::vector<uint8_t> want = { 16, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0,
					    0,	0, 0, 0, 0, 4, 0, 0, 0, 0, 0,
					    0,	0, 5, 0, 0, 0, 0, 0, 0, 0 };
	Rec r = record(TDM_WIRE_RANGE), d;

	r.key = 3;
	r.addr = 4;
	r.total = 5;
	EXPECT_EQ(want, encode(r));
	EXPECT_EQ((size_t)TDM_WIRE_RANGE_BYTES, want.size());
	r.total = TDM_WIRE_MSG_MAX + 1;
	EXPECT_EQ(-TDM_WIRE_E_VALUE, decode(encode(r), &d));
}

/*
 * The size of an operation's operands is checked; the owner decides whether it
 * exists.
 */
TEST(TcpRecord, OperandsOfAtomicOperationsAreBounded)
{
	const struct {
		uint8_t kind, op;
		uint32_t rid, len;
		uint64_t total;
		int ret;
	} all[] = {
		{ TDM_AMO_BASE, FI_SUM, 0, 8, 8, 0 },
		{ TDM_AMO_BASE, 255, 0, 8, 8, 0 },
		{ TDM_AMO_BASE, FI_SUM, 1, 8, 8, -TDM_WIRE_E_FLAGS },
		{ TDM_AMO_BASE, FI_SUM, 0, 4, 8, -TDM_WIRE_E_VALUE },
		{ TDM_AMO_BASE, FI_SUM, 0, 16, 8, -TDM_WIRE_E_VALUE },
		{ TDM_AMO_BASE, FI_SUM, 0, 0, 0, -TDM_WIRE_E_VALUE },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 1, 0, 1024, 0 },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 1, 0, 1025,
		  -TDM_WIRE_E_VALUE },
		{ TDM_AMO_FETCH, FI_ATOMIC_READ, 1, 8, 8, -TDM_WIRE_E_VALUE },
		{ TDM_AMO_COMPARE, FI_CSWAP, 1, 1024, 512, 0 },
		{ TDM_AMO_COMPARE, FI_CSWAP, 1, 512, 512, -TDM_WIRE_E_VALUE },
		{ TDM_AMO_COMPARE, FI_CSWAP, 1, 8, 0x80000004,
		  -TDM_WIRE_E_VALUE },
		{ TDM_AMO_KINDS, FI_SUM, 0, 8, 8, -TDM_WIRE_E_VALUE },
		{ 255, FI_SUM, 1, 8, 8, -TDM_WIRE_E_VALUE },
	};
	Rec d;

	for (auto &a : all) {
		Rec r = record(TDM_WIRE_ATOMIC, 0, a.len);

		r.rid = a.rid;
		r.total = a.total;
		r.amo = { FI_UINT64, a.op, a.kind, 0 };
		EXPECT_EQ(a.ret, decode(encode(r), &d))
			<< int(a.kind) << " " << int(a.op) << " " << a.len;
	}
}

TEST(TcpRecord, UnknownRecordsAreRefused)
{
	Rec d;

	for (unsigned op = 0; op < 256; op++) {
		std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);

		b[0] = (uint8_t)op;
		if (op && op < TDM_WIRE_OP_COUNT)
			continue;
		EXPECT_EQ(-TDM_WIRE_E_OP, tdm_wire_head_bytes(b.data()));
		EXPECT_EQ(-TDM_WIRE_E_OP, decode(b, &d));
	}
}

TEST(TcpRecord, OnlyOffersHaveAPayload)
{
	struct Try {
		uint32_t step, len;
		int ret;
	};
	static const Try tries[] = {
		{ 0, 0, -TDM_WIRE_E_VALUE },
		{ TDM_WIRE_OFFER, 0, -TDM_WIRE_E_LENGTH },
		{ TDM_WIRE_OFFER, 1, 0 },
		{ TDM_WIRE_OFFER, TDM_WIRE_OFFER_BYTES + 1,
		  -TDM_WIRE_E_LENGTH },
		{ TDM_WIRE_TAKEN, 0, 0 },
		{ TDM_WIRE_TAKEN, 1, -TDM_WIRE_E_LENGTH },
		{ TDM_WIRE_DECLINED, 0, 0 },
		{ TDM_WIRE_LOCALS, 0, -TDM_WIRE_E_VALUE },
	};
	Rec d;

	for (const Try &t : tries) {
		Rec r = record(TDM_WIRE_LOCAL, 0, t.len);

		r.step = t.step;
		EXPECT_EQ(t.ret, decode(encode(r), &d))
			<< t.step << " " << t.len;
	}
}

TEST(TcpRecord, FlagsARecordCannotHaveAreRefused)
{
	static const uint8_t allowed[] = { 0, 143, 3, 16, 52, 0, 82, 0, 130, 2,
					   0, 0,   0, 0,  0,  0, 0,  0, 82 };

	static_assert(sizeof(allowed) == TDM_WIRE_OP_COUNT, "one of each");

	for (uint8_t op = 1; op < TDM_WIRE_OP_COUNT; op++) {
		for (unsigned f = 0; f < 256; f++) {
			std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);
			int n;

			b[0] = op;
			b[1] = (uint8_t)f;
			n = tdm_wire_head_bytes(b.data());
			if (f & ~allowed[op])
				EXPECT_EQ(-TDM_WIRE_E_FLAGS, n);
			else
				EXPECT_GT(n, 0);
		}
	}
}

TEST(TcpRecord, ReservedBytesMustBeZero)
{
	Rec d;

	for (const Rec &r : all_records()) {
		std::vector<uint8_t> b = encode(r);

		/* Elsewhere they are the receive context. */
		if (r.op <= TDM_WIRE_RTS || r.op == TDM_WIRE_WRITE ||
		    r.op == TDM_WIRE_AWRITE || r.op == TDM_WIRE_ATOMIC)
			continue;
		b[2] = 1;
		EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
		b[2] = 0;
		b[3] = 0x80;
		EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
	}
	/* The upper halves of identifiers. */
	std::vector<uint8_t> b = encode(record(TDM_WIRE_RTS));
	b[12] = 1;
	EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
	for (uint8_t op : { TDM_WIRE_WRITE, TDM_WIRE_AWRITE }) {
		b = encode(record(op));
		b[12] = 1;
		EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
	}
	Rec ask = record(TDM_WIRE_IDLE_CLOSE);
	ask.step = TDM_WIRE_ASK;
	b = encode(ask);
	b[12] = 1;
	EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
	b = encode(record(TDM_WIRE_DATA, 0, 1));
	b[15] = 1;
	EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
	b = encode(record(TDM_WIRE_EAGER, TDM_WIRE_F_DONE));
	b[15] = 1;
	EXPECT_EQ(-TDM_WIRE_E_FLAGS, decode(b, &d));
}

TEST(TcpRecord, LengthsAreBounded)
{
	Rec d, r;

	for (const Rec &ok : all_records()) {
		r = ok;
		r.len = r.op == TDM_WIRE_EAGER	? TDM_WIRE_EAGER_BYTES + 1 :
			r.op == TDM_WIRE_WRITE	? TDM_WIRE_WRITE_BYTES + 1 :
			r.op == TDM_WIRE_DATA	? TDM_WIRE_DATA_BYTES + 1 :
			r.op == TDM_WIRE_ATOMIC ? TDM_AMO_BYTES + 1 :
			r.op == TDM_WIRE_LEFT	? TDM_WIRE_LEFT_BYTES + 1 :
			r.op == TDM_WIRE_LOCAL	? TDM_WIRE_OFFER_BYTES + 1 :
						  1;
		EXPECT_EQ(-TDM_WIRE_E_LENGTH, decode(encode(r), &d));
		r.len = UINT32_MAX;
		EXPECT_EQ(-TDM_WIRE_E_LENGTH, decode(encode(r), &d));
	}
	EXPECT_EQ(0, decode(encode(record(TDM_WIRE_EAGER, 0,
					  TDM_WIRE_EAGER_BYTES)),
			    &d));
	for (uint8_t op : { TDM_WIRE_EAGER, TDM_WIRE_WRITE }) {
		r = record(op, TDM_WIRE_F_LEFT, TDM_WIRE_LEFT_BYTES + 1);
		EXPECT_EQ(-TDM_WIRE_E_LENGTH, decode(encode(r), &d));
	}
	/* Data without bytes, and an abort with some. */
	EXPECT_EQ(-TDM_WIRE_E_LENGTH,
		  decode(encode(record(TDM_WIRE_DATA)), &d));
	EXPECT_EQ(-TDM_WIRE_E_LENGTH,
		  decode(encode(record(TDM_WIRE_DATA, TDM_WIRE_F_ABORT, 1)),
			 &d));
	/* An urgent acknowledgement that nobody asked for. */
	EXPECT_EQ(-TDM_WIRE_E_FLAGS,
		  decode(encode(record(TDM_WIRE_DATA, TDM_WIRE_F_NOW, 1)), &d));
}

TEST(TcpRecord, MessageLengthsAreBounded)
{
	Rec d, r;

	for (uint8_t op :
	     { TDM_WIRE_RTS, TDM_WIRE_CTS, TDM_WIRE_AWRITE, TDM_WIRE_READ }) {
		r = record(op);
		r.total = TDM_WIRE_MSG_MAX;
		EXPECT_EQ(0, decode(encode(r), &d));
		r.total = TDM_WIRE_MSG_MAX + 1;
		EXPECT_EQ(-TDM_WIRE_E_VALUE, decode(encode(r), &d));
		r.total = UINT64_MAX;
		EXPECT_EQ(-TDM_WIRE_E_VALUE, decode(encode(r), &d));
	}
}

TEST(TcpRecord, StatusesAreBounded)
{
	Rec d, r = record(TDM_WIRE_DONE);

	for (uint32_t status : { (uint32_t)TDM_WIRE_STATUSES, UINT32_MAX }) {
		r.status = status;
		EXPECT_EQ(-TDM_WIRE_E_VALUE, decode(encode(r), &d));
	}
}

TEST(TcpRecord, StepsOfARestAreBounded)
{
	Rec d, r = record(TDM_WIRE_IDLE_CLOSE);

	for (uint32_t step : { 0u, (uint32_t)TDM_WIRE_STEPS, UINT32_MAX }) {
		r.step = step;
		EXPECT_EQ(-TDM_WIRE_E_VALUE, decode(encode(r), &d));
	}
}

/* Random bytes are decoded within their range or refused. */
TEST(TcpRecord, RandomBytesAreHarmless)
{
	std::mt19937 rng(1);

	for (int i = 0; i < 200000; i++) {
		std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);
		Rec d;
		int n;

		for (auto &x : b)
			x = (uint8_t)rng();
		if (i & 1) {
			b[0] = (uint8_t)(1 + b[0] % (TDM_WIRE_OP_COUNT - 1));
			b[2] = b[3] = b[6] = b[7] = 0;
		}
		n = tdm_wire_head_bytes(b.data());
		if (n < 0)
			continue;
		ASSERT_LE(n, TDM_WIRE_HEAD_BYTES);
		/* An exact copy: a read beyond is seen by the sanitizer. */
		std::vector<uint8_t> exact(b.begin(), b.begin() + n);
		if (decode(exact, &d))
			continue;
		EXPECT_EQ(exact, encode(d));
	}
}

Greeting hello(const char *ip = "10.1.2.3", uint16_t port = 4711)
{
	Greeting g = {};
	struct sockaddr_in in = {};

	g.kind = TDM_WIRE_HELLO;
	g.oldest = 1;
	g.newest = 1;
	g.features = 0x80000001;
	memset(g.id, 0x5a, sizeof(g.id));
	in.sin_family = AF_INET;
	in.sin_port = htons(port);
	inet_pton(AF_INET, ip, &in.sin_addr);
	EXPECT_EQ(0, tdm_addr_from_bind(&g.addr, &in, sizeof(in)));
	g.credit = 1 << 20;
	g.eager = 65536;
	g.rts = 100;
	g.contexts = 5;
	return g;
}

std::vector<uint8_t> encode(const Greeting &g)
{
	std::vector<uint8_t> b(TDM_WIRE_GREETING_BYTES, 0xee);

	tdm_wire_greeting_encode(b.data(), &g);
	return b;
}

TEST(TcpRecord, GreetingRoundTrip)
{
	Greeting g = hello(), d;

	ASSERT_EQ(0, tdm_wire_greeting_decode(encode(g).data(), &d));
	EXPECT_EQ(TDM_WIRE_HELLO, d.kind);
	EXPECT_EQ(g.features, d.features);
	EXPECT_EQ(0, memcmp(g.id, d.id, sizeof(g.id)));
	EXPECT_TRUE(tdm_addr_equal(&g.addr, &d.addr));
	EXPECT_EQ(g.credit, d.credit);
	EXPECT_EQ(g.eager, d.eager);
	EXPECT_EQ(g.rts, d.rts);
	EXPECT_EQ(g.contexts, d.contexts);
	EXPECT_TRUE(tdm_wire_version_ok(&d));

	struct sockaddr_in6 in6 = {};
	in6.sin6_family = AF_INET6;
	in6.sin6_port = htons(99);
	inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr);
	ASSERT_EQ(0, tdm_addr_from_bind(&g.addr, &in6, sizeof(in6)));
	ASSERT_EQ(0, tdm_wire_greeting_decode(encode(g).data(), &d));
	EXPECT_TRUE(tdm_addr_equal(&g.addr, &d.addr));

	g = {};
	g.kind = TDM_WIRE_REJECT;
	g.reason = TDM_WIRE_R_BUSY;
	g.oldest = 1;
	g.newest = 3;
	ASSERT_EQ(0, tdm_wire_greeting_decode(encode(g).data(), &d));
	EXPECT_EQ(TDM_WIRE_R_BUSY, d.reason);
}

TEST(TcpRecord, GreetingLayout)
{
	std::vector<uint8_t> b = encode(hello());

	EXPECT_EQ(0, memcmp(b.data(), "\xf4tandem\n", 8));
	EXPECT_EQ(1, b[8]);
	EXPECT_EQ(128, b[10]);
	EXPECT_EQ(1, b[12]);
	EXPECT_EQ(1, b[14]);
	EXPECT_EQ(0x80, b[19]);
	EXPECT_EQ(0x5a, b[24]);
	EXPECT_EQ(4, b[40]);
	EXPECT_EQ(4711 & 0xff, b[42]);
	EXPECT_EQ(4, b[44]);
	EXPECT_EQ(10, b[48]);
	EXPECT_EQ(0x10, b[66]);
	EXPECT_EQ(100, b[76]);
	/* zlib.crc32() of Python gives this for the 96 bytes before. */
	EXPECT_EQ(0, memcmp(&b[96], "\xb2\x51\x05\x47", 4));
	for (size_t i = 80; i < 128; i++)
		EXPECT_TRUE(!b[i] || (i >= 96 && i < 100)) << i;
}

TEST(TcpRecord, StrangersAreToldAtTheFirstByte)
{
	std::vector<uint8_t> b = encode(hello());

	for (size_t n = 0; n <= b.size(); n++)
		EXPECT_TRUE(tdm_wire_is_greeting(b.data(), n));
	for (const char *s :
	     { "GET / HTTP/1.1\r\n", "\x16\x03\x01", "SSH-2.0", "\0\0\0\0" })
		EXPECT_FALSE(tdm_wire_is_greeting((const uint8_t *)s, 1));
	for (size_t i = 0; i < 8; i++) {
		b[i] ^= 1;
		EXPECT_FALSE(tdm_wire_is_greeting(b.data(), i + 1));
		b[i] ^= 1;
	}
}

TEST(TcpRecord, MalformedGreetingsAreRefused)
{
	std::vector<uint8_t> ok = encode(hello()), b;
	Greeting d;

	memset(&ok[96], 0, 4); /* no checksum: a later check has to refuse it */
	struct {
		const char *what;
		size_t at, n;
		uint8_t value;
	} bad[] = {
		{ "magic", 0, 1, 0 },		{ "magic end", 7, 1, 0 },
		{ "kind 0", 8, 1, 0 },		{ "kind 4", 8, 1, 4 },
		{ "reason in HELLO", 9, 1, 1 }, { "size", 10, 1, 127 },
		{ "version 0", 12, 1, 0 },	{ "oldest > newest", 12, 1, 2 },
		{ "no id", 24, 16, 0 },		{ "family 0", 40, 1, 0 },
		{ "family 5", 40, 1, 5 },	{ "family 260", 41, 1, 1 },
		{ "port 0", 42, 2, 0 },		{ "ip 0", 48, 4, 0 },
		{ "no credit", 64, 8, 0 },	{ "no rts", 76, 4, 0 },
		{ "contexts", 46, 1, 1 },
	};

	for (auto &c : bad) {
		b = ok;
		memset(&b[c.at], c.value, c.n);
		EXPECT_EQ(-TDM_WIRE_E_GREETING,
			  tdm_wire_greeting_decode(b.data(), &d))
			<< c.what;
	}
	b = ok;
	b[8] = TDM_WIRE_REJECT;
	EXPECT_EQ(-TDM_WIRE_E_GREETING, tdm_wire_greeting_decode(b.data(), &d))
		<< "a REJECT without a reason";
	/* Too much is cut down, not refused. */
	b = ok;
	memset(&b[64], 0xff, 16);
	ASSERT_EQ(0, tdm_wire_greeting_decode(b.data(), &d));
	EXPECT_EQ((uint64_t)TDM_WIRE_CREDIT_MOST, d.credit);
	EXPECT_EQ((uint32_t)TDM_WIRE_EAGER_BYTES, d.eager);
	EXPECT_EQ((uint32_t)TDM_WIRE_RTS_COUNT, d.rts);
	/* Of another version nothing but the versions is looked at. */
	b = ok;
	b[12] = b[14] = 2;
	memset(&b[24], 0, 104);
	ASSERT_EQ(0, tdm_wire_greeting_decode(b.data(), &d));
	EXPECT_FALSE(tdm_wire_version_ok(&d));
	/* Later versions may use reserved fields. */
	b = ok;
	memset(&b[80], 0xff, 16);
	memset(&b[100], 0xff, 28);
	EXPECT_EQ(0, tdm_wire_greeting_decode(b.data(), &d));
}

TEST(TcpRecord, ChargeCountsTheBookkeeping)
{
	EXPECT_EQ(512u, tdm_credit_charge(0));
	EXPECT_EQ((1ull << 32) + 511, tdm_credit_charge(UINT32_MAX));
}

} // namespace
