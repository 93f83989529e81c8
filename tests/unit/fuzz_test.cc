/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fuzz targets of what a peer sends, without libFuzzer: its records,
 * greetings and packets, cut and changed.
 */
#include <cstring>

#include <netinet/in.h>

#include <gtest/gtest.h>

extern "C" {
#include "tcp/wire/record.h"
}
#include "tests/unit/mutate.h"

namespace
{

std::string record(struct tdm_wire_rec rec)
{
	uint8_t head[TDM_WIRE_HEAD_BYTES];
	size_t n = tdm_wire_encode(head, &rec);

	return std::string(reinterpret_cast<char *>(head), n) +
	       std::string(rec.len, 'p');
}

struct tdm_wire_rec rec_of(int op, int flags, uint32_t len)
{
	struct tdm_wire_rec rec;

	memset(&rec, 0, sizeof(rec));
	rec.op = uint8_t(op);
	rec.flags = uint8_t(flags);
	rec.len = len;
	rec.step = 1;
	rec.total = len;
	return rec;
}

struct sockaddr_in name()
{
	struct sockaddr_in in;

	memset(&in, 0, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_port = htons(4711);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return in;
}

std::string greeting(uint32_t features)
{
	uint8_t p[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting g;
	struct sockaddr_in in = name();

	memset(&g, 0, sizeof(g));
	g.kind = TDM_WIRE_HELLO;
	g.oldest = g.newest = TDM_WIRE_VERSION;
	g.features = features;
	g.id[0] = 1;
	EXPECT_EQ(0, tdm_addr_from_sockaddr(&g.addr, &in, sizeof(in)));
	g.credit = TDM_WIRE_CREDIT_LEAST;
	g.rts = g.contexts = 1;
	tdm_wire_greeting_encode(p, &g);
	return std::string(reinterpret_cast<char *>(p), sizeof(p));
}

} // namespace

TEST(Fuzz, StreamKeepsItsPromisesForAnyBytes)
{
	std::vector<std::string> seeds;
	std::string all;

	for (int op = 1; op < TDM_WIRE_OP_COUNT; op++) {
		struct tdm_wire_rec rec = rec_of(
			op, 0, op == TDM_WIRE_DATA || op == TDM_WIRE_LOCAL);

		if (op == TDM_WIRE_ATOMIC) {
			rec.len = rec.total = 8;
			rec.amo.type = FI_UINT64;
		}
		all += record(rec);
	}
	seeds.push_back(all);
	seeds.push_back(record(rec_of(TDM_WIRE_EAGER, 0x8f, 20)));
	mutate(tdt_fuzz_stream, seeds);
}

TEST(Fuzz, GreetingKeepsItsPromisesForAnyBytes)
{
	mutate(tdt_fuzz_greeting,
	       { std::string(1, 0) + greeting(0),
		 std::string(1, 1) + greeting(TDM_WIRE_FEATURE_AUTH),
		 std::string(1, 7) + greeting(TDM_WIRE_FEATURE_AUTH) });
}
