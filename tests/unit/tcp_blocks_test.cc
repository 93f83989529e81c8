/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums over TCP: doc/PROTOCOL-tcp.md, "Blocks"; fi_tandem(7), FAULTS; row W3 of
 * assurance. With FI_TANDEM_RESUME: tcp_resume_test.cc.
 */
#include <algorithm>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp_raw.h"

extern "C" {
#include "base/crc.h"
#include "tcp/wire/blocks.h"
#include "tcp/wire/bytes.h"
#include "tcp/wire/conn.h"
}

using namespace tcp_test;

namespace
{

class TcpBlocks : public TcpFault
{
protected:
	TcpBlocks()
	{
		tdm_env.crc = 1;
		tdm_env.resume = 0; /* tcp_resume_test.cc has both */
		Flips::due = 0;
		tdm_os.recv = Flips::recv;
	}

	/* The first blocks that @raw has heard, and the payload of them. */
	static Bytes payload(const std::vector<uint8_t> &b)
	{
		Bytes all;
		size_t at = 0;

		while (at + TDM_BLOCK_HEAD_BYTES <= b.size()) {
			uint32_t len = tdm_get32(&b[at]);

			EXPECT_EQ(tdm_get32(&b[at + 8]), tdm_crc(0, &b[at], 8));
			EXPECT_LE(at + TDM_BLOCK_HEAD_BYTES + len, b.size());
			at += TDM_BLOCK_HEAD_BYTES;
			EXPECT_EQ(tdm_get32(&b[at - 8]),
				  tdm_crc(0, &b[at], len));
			all.insert(all.end(), b.begin() + long(at),
				   b.begin() + long(at + len));
			at += len;
		}
		EXPECT_EQ(b.size(), at);
		return all;
	}

	/*
	 * Node 0 sends a message to a peer with @features. Returns the bytes that
	 * the peer gets after the HELLO.
	 */
	std::vector<uint8_t> first_message(uint32_t features)
	{
		struct tdm_wire_greeting g = Raw::greeting(9);
		std::vector<uint8_t> heard;

		add();
		g.features = features | TDM_WIRE_FEATURE_CREDIT;
		raw.call(at(0).addr);
		raw.hello(g);
		EXPECT_TRUE(hears(heard, TDM_WIRE_GREETING_BYTES));
		fi_addr_t to = at(0).insert(g.addr);

		EXPECT_EQ(0, at(0).send(to, "hello", 6, 1));
		EXPECT_TRUE(hears(heard, TDM_WIRE_GREETING_BYTES + 1));
		heard.erase(heard.begin(),
			    heard.begin() + TDM_WIRE_GREETING_BYTES);
		return heard;
	}

	static bool has(const std::vector<uint8_t> &b, const char *text)
	{
		return std::search(b.begin(), b.end(), text,
				   text + strlen(text)) != b.end();
	}
};

TEST_F(TcpBlocks, MessagesOfAllLengthsInPiecesOfAnyLength)
{
	Bytes out = pattern(1 << 20, 3), in(out.size());

	mesh(2);
	for (bool pieces : { false, true }) {
		if (pieces) {
			tdm_os.send = short_send;
			tdm_os.recv = short_recv;
		}
		for (size_t len :
		     { 0, 1, 100, 5000, 16372, 16373, 70000, 1 << 20 }) {
			std::fill(in.begin(), in.end(), 0);
			ASSERT_EQ(0, at(1).recv(in.data(), len, len));
			ASSERT_EQ(0, at(0).send(1, out.data(), len, len));
			ASSERT_TRUE(until([&] {
				return at(1).rx.got.size() == 1 &&
				       at(0).tx.got.size() == 1;
			})) << len;
			EXPECT_EQ(0, memcmp(in.data(), out.data(), len));
			at(0).tx.got.clear();
			at(1).rx.got.clear();
		}
	}
	EXPECT_NE(nullptr, at(0).conn(1)->blocks);
}

TEST_F(TcpBlocks, OneSideIsEnough)
{
	tdm_env.crc = 0;
	EXPECT_TRUE(has(payload(first_message(TDM_WIRE_FEATURE_BLOCKS |
					      TDM_WIRE_FEATURE_CRC)),
			"hello"));
}

TEST_F(TcpBlocks, NobodyAsksThereAreNone)
{
	tdm_env.crc = 0;
	first_message(TDM_WIRE_FEATURE_BLOCKS);
	EXPECT_FALSE(at(0).conn(0)->layered);
}

TEST_F(TcpBlocks, OlderPeersDoWithout)
{
	EXPECT_TRUE(has(first_message(0), "hello"));
	EXPECT_FALSE(at(0).conn(0)->layered);
}

TEST_F(TcpBlocks, W3_ChangedBitsAreNeverDelivered)
{
	Bytes out = pattern(200000, 3);
	unsigned failures = 0;

	Flips::rng.seed(1);
	for (unsigned nth = 1; nth < 60; nth++) {
		const size_t lens[] = { 100, 20000, 200000 };
		std::vector<Bytes> in(3, Bytes(out.size(), 0));

		mesh(2);
		Flips::due = nth % 12 + 1;
		for (int i = 0; i < 3; i++) {
			ASSERT_EQ(0, at(1).recv(in[i].data(), lens[i], i, 0,
						&in[i]));
			ASSERT_EQ(0, at(0).send(1, out.data(), lens[i], i));
		}
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() == 3 &&
			       (at(1).rx.got.size() == 3 ||
				!at(0).lost.empty() || !at(1).lost.empty());
		})) << nth;
		Flips::due = 0;
		for (const Comp &c : at(1).rx.got) {
			Bytes *b = static_cast<Bytes *>(c.context);
			size_t len = lens[b - in.data()];

			if (c.err)
				failures++;
			else
				EXPECT_EQ(0,
					  memcmp(b->data(), out.data(), len));
		}
		for (const Comp &c : at(0).tx.got)
			EXPECT_TRUE(!c.err || c.err == FI_ECONNRESET) << c.err;
		failures += unsigned(at(1).lost.size() + at(0).lost.size());
		nodes.clear();
	}
	EXPECT_LT(10u, failures);
}

/* The bytes after the checksum mean nothing without a proof. */
TEST_F(TcpBlocks, W3_NoChangedBitOfAGreetingIsBelieved)
{
	for (auto kind : { TDM_WIRE_HELLO, TDM_WIRE_RESUME }) {
		struct tdm_wire_greeting g = Raw::greeting(9), got;
		uint8_t p[TDM_WIRE_GREETING_BYTES];

		g.kind = kind;
		tdm_wire_greeting_encode(p, &g);
		ASSERT_EQ(0, tdm_wire_greeting_decode(p, &got));
		for (unsigned bit = 0; bit < 8 * (TDM_WIRE_PROVEN_BYTES + 4);
		     bit++) {
			tdt_flip_bit(p, sizeof(p), bit);
			EXPECT_NE(0, tdm_wire_greeting_decode(p, &got)) << bit;
			tdt_flip_bit(p, sizeof(p), bit);
		}
	}
}

TEST_F(TcpBlocks, W3_AChangedGreetingIsRepeated)
{
	Flips::rng.seed(2);
	for (unsigned i = 0; i < 40; i++) {
		char in[8] = "";

		mesh(2);
		Flips::due =
			i % 2 + 1; /* the HELLO of the one, or of the other */
		ASSERT_EQ(0, at(1).recv(in, 8, 1));
		ASSERT_EQ(0, at(0).send(1, "hello", 6, 1));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }))
			<< i;
		EXPECT_EQ(0, at(1).rx.got[0].err);
		EXPECT_STREQ("hello", in);
		nodes.clear();
	}
}

} // namespace
