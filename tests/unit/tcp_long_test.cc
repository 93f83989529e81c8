/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages: which are announced, and which are sent unasked since the receives of
 * the last ones were posted in time. doc/adr/0049-long-messages-unasked.md.
 */
#include "base/env.h"
#include "tcp_world.h"

using namespace tcp_test;

namespace
{

enum { LEN = 128 << 10, MOST = 512 << 10, LONGER = MOST + 1 };

class TcpLong : public Tcp
{
protected:
	const Bytes out = pattern(LONGER, 1);
	Bytes in = Bytes(LONGER);

	void SetUp() override
	{
		mesh(2);
		/* A receive is posted while a message is under way: have a session. */
		exchange(8, 1, true);
	}

	/* Returns how many messages node 0 has announced. */
	uint64_t announced()
	{
		return at(0).conn(1)->told;
	}

	/* A message, whose receive is posted before it is sent or once it is there. */
	void exchange(size_t len, uint64_t tag, bool posted)
	{
		const size_t had = at(1).rx.got.size(),
			     sent = at(0).tx.got.size();

		std::fill(in.begin(), in.end(), 0);
		if (posted) {
			ASSERT_EQ(0, at(1).recv(in.data(), len, tag));
		}
		ASSERT_EQ(0, at(0).send(1, out.data(), len, tag));
		if (!posted) {
			ASSERT_TRUE(until([&] {
				return tdm_match_arrived_count(
					       at(1).srx->match[TDM_SRX_TAG]) ==
				       1;
			}));
			ASSERT_EQ(0, at(1).recv(in.data(), len, tag));
		}
		ASSERT_TRUE(until([&] {
			return at(1).rx.got.size() > had &&
			       at(0).tx.got.size() > sent;
		}));
		EXPECT_TRUE(same(out, in, len));
	}

	/* @n messages of @len; returns how many of them were announced. */
	uint64_t of(unsigned n, size_t len, bool posted)
	{
		const uint64_t had = announced();

		for (unsigned i = 0; i < n; i++)
			exchange(len, 2, posted);
		return announced() - had;
	}
};

TEST_F(TcpLong, GoesUnaskedWhereReceivesArePostedInTime)
{
	EXPECT_EQ(uint64_t(TDM_POSTED), of(20, LEN, true));
	EXPECT_EQ(0u, of(5, MOST, true));
	EXPECT_EQ(5u, of(5, LONGER, true));
	EXPECT_EQ(0u, of(1, tdm_env.eager_bytes, true));
}

class TcpLowLimit : public TcpLong
{
protected:
	void SetUp() override
	{
		tdm_env.eager_bytes = 1024;
		TcpLong::SetUp();
	}
};

/* A low limit stays: peers do not say that short messages wait. */
TEST_F(TcpLowLimit, IsKept)
{
	EXPECT_EQ(10u, of(10, 1025, true));
	EXPECT_EQ(0u, of(1, 1024, true));
}

TEST_F(TcpLong, IsAnnouncedWhereItWaits)
{
	EXPECT_EQ(20u, of(20, LEN, false));
}

/* One that goes unasked and waits is told of: the next ones are announced. */
TEST_F(TcpLong, IsAnnouncedAgainAfterOneThatWaited)
{
	of(10, LEN, true);
	EXPECT_EQ(0u, of(1, LEN, false));
	EXPECT_EQ(uint64_t(TDM_POSTED), of(10, LEN, true));
	/* A short one that waits says nothing. */
	EXPECT_EQ(0u, of(1, 8, false));
	EXPECT_EQ(0u, of(1, LEN, true));
	/* One late receive of several announced ones begins the count anew. */
	EXPECT_EQ(0u, of(1, LEN, false));
	EXPECT_EQ(3u, of(3, LEN, true));
	EXPECT_EQ(1u, of(1, LEN, false));
	EXPECT_EQ(uint64_t(TDM_POSTED), of(10, LEN, true));
}

/* Those of a window overlap: only one that has the connection to itself goes unasked. */
TEST_F(TcpLong, OthersOfAWindowAreAnnounced)
{
	const unsigned window = 4;
	std::vector<Bytes> to(window, Bytes(LEN));
	uint64_t had;

	of(10, LEN, true);
	had = announced();
	const size_t got = at(1).rx.got.size();
	for (unsigned i = 0; i < window; i++)
		ASSERT_EQ(0, at(1).recv(to[i].data(), LEN, 3));
	for (unsigned i = 0; i < window; i++)
		ASSERT_EQ(0, at(0).send(1, out.data() + i, LEN, 3));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == got + window; }));
	EXPECT_EQ(had + window - 1, announced());
	for (unsigned i = 0; i < window; i++)
		EXPECT_TRUE(
			std::equal(to[i].begin(), to[i].end(), out.begin() + i))
			<< i;
}

/* A peer that does not say whether messages wait gets none unasked. */
TEST_F(TcpLong, IsAnnouncedToAPeerThatDoesNotSay)
{
	at(0).conn(1)->features &= ~uint32_t(TDM_WIRE_FEATURE_WAITED);
	EXPECT_EQ(20u, of(20, LEN, true));
}

/* And is not told by us: it would take the flag for a breach. */
TEST_F(TcpLong, APeerThatDoesNotKnowTheFlagIsNotTold)
{
	at(1).conn(0)->features &= ~uint32_t(TDM_WIRE_FEATURE_WAITED);
	EXPECT_EQ(4u, of(4, LEN, false));
	EXPECT_EQ(unsigned(TDM_POSTED), at(0).conn(1)->posted.hits);
	EXPECT_EQ(0u, of(1, LEN, false));
	EXPECT_EQ(unsigned(TDM_POSTED), at(0).conn(1)->posted.hits);
}

/* Those that have ended, but are not acknowledged, count as under way. */
TEST_F(TcpLong, OthersThatHaveLeftAreAnnouncedToo)
{
	of(10, LEN, true);
	const uint64_t had = announced();
	const size_t got = at(1).rx.got.size();

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, at(1).recv(in.data(), LEN, 4));
		ASSERT_EQ(0, at(0).send(1, out.data(), LEN, 4,
					FI_COMPLETION | FI_INJECT_COMPLETE));
	}
	EXPECT_EQ(had + 1, announced());
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == got + 2; }));
}

/* An announced write finds its region, which says nothing of receives. */
TEST_F(TcpLong, WritesSayNothing)
{
	const size_t len = (4 << 20) + 1;
	Bytes from(len), region(len);

	at(1).regions.add(7, region.data(), len, FI_REMOTE_WRITE);
	for (int i = 0; i < 2 * TDM_POSTED; i++) {
		const size_t had = at(0).tx.got.size();

		ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, from.data(), len, 7, 0));
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() > had; }));
	}
	EXPECT_EQ(1u, of(1, LEN, true));
}

} // namespace
