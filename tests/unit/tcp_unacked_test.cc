/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that end by the word of the kernel of the peer's host: those of which much
 * would have to be copied wait a moment (doc/adr/0007-transmit-complete.md). The clock
 * stands still but for the test, and the kernel says what the test does.
 */
#include "tcp_world.h"

extern "C" {
#include "tcp/wire/keep.h"
#include "tcp/wire/unacked.h"
}

using namespace tcp_test;

namespace
{

uint64_t now_ns;
int unacked; /* bytes that the kernel of the peer's host lacks */

enum {
	LONG = 512 << 10, /* more than a pass receives */
	PASSES = 500,	  /* the kernel is asked in one of 64 */
	MS = 1000000,
};

class TcpUnacked : public Tcp
{
protected:
	Bytes out = pattern(LONG, 1), in = Bytes(LONG);
	struct tdm_conn *c = nullptr;

	void SetUp() override
	{
		mesh(2);
		ASSERT_EQ(0, at(1).recv(in.data(), 8, 1));
		ASSERT_EQ(0, at(0).send(1, "open", 5, 1));
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() && at(1).rx.got.size();
		}));
		at(0).tx.got.clear();
		c = at(0).conn(1);
		now_ns = tdm_os.now_ns();
		tdm_os.now_ns = [] {
			return now_ns;
		};
		unacked = 1;
		tdm_os.outq = [](int, int *bytes) {
			*bytes = unacked;
			return 0;
		};
	}

	/* A send of @len bytes, all in the kernel; its peer makes no pass any more. */
	void sent(size_t len)
	{
		ASSERT_EQ(0, at(1).recv(in.data(), len, 2));
		ASSERT_EQ(0, at(0).send(1, out.data(), len, 2));
		ASSERT_TRUE(until([&] {
			return !tdm_list_empty(&c->ackq) &&
			       !tdm_keep_pending(c);
		}));
		ASSERT_EQ(1u, at(1).rx.got.size()) << "it is complete";
		unacked = 0;
	}

	/* Has the send ended after some passes of its node? */
	bool ended()
	{
		for (int i = 0; i < PASSES; i++)
			at(0).progress();
		return at(0).tx.got.size();
	}
};

TEST_F(TcpUnacked, AShortSendEndsAtOnce)
{
	ASSERT_EQ(0, at(0).send(1, out.data(), 1024, 2));
	unacked = 0;
	EXPECT_TRUE(ended());
}

TEST_F(TcpUnacked, ALongSendEndsAfterAMoment)
{
	ASSERT_NO_FATAL_FAILURE(sent(LONG));
	EXPECT_FALSE(ended());
	now_ns += 1 * MS;
	EXPECT_FALSE(ended());
	now_ns += 1 * MS;
	EXPECT_TRUE(ended());
	EXPECT_TRUE(until([&] { return at(1).rx.got.size() == 2; }));
	EXPECT_TRUE(same(out, in, LONG));
}

TEST_F(TcpUnacked, TheMomentBeginsWhenAllHasArrived)
{
	ASSERT_NO_FATAL_FAILURE(sent(LONG));
	unacked = 1;
	now_ns += 5 * MS;
	EXPECT_FALSE(ended());
	unacked = 0;
	EXPECT_FALSE(ended());
	now_ns += 2 * MS;
	EXPECT_TRUE(ended());
}

TEST_F(TcpUnacked, NewerSendsDoNotProlongIt)
{
	ASSERT_NO_FATAL_FAILURE(sent(LONG));
	EXPECT_FALSE(ended());
	ASSERT_EQ(0, at(0).send(1, out.data(), 64, 2));
	unacked = 1;
	now_ns += 2 * MS;
	EXPECT_TRUE(ended());
	EXPECT_EQ(1u, at(0).tx.got.size()) << "the newer one is on its way";
}

/* The timer stands for passes that the application does not make. */
TEST_F(TcpUnacked, ATimerThatIsArmedForLaterIsArmedAnew)
{
	struct tdm_tcp *tcp = at(0).tcp;

	ASSERT_NO_FATAL_FAILURE(sent(LONG));
	tdm_unacked_watch(tcp);
	EXPECT_EQ(now_ns + 10 * MS, tcp->unacked_timer.deadline_ns);
	EXPECT_FALSE(ended());
	EXPECT_EQ(now_ns + 2 * MS, tcp->unacked_timer.deadline_ns);
	tdm_loop_timer_disarm(&tcp->unacked_timer);
	tdm_unacked_watch(tcp);
	tdm_unacked_arm(tcp);
	EXPECT_EQ(now_ns + 2 * MS, tcp->unacked_timer.deadline_ns);
}

TEST_F(TcpUnacked, ALongSendOfAPeerThatReadsIsNotCopied)
{
	ASSERT_NO_FATAL_FAILURE(sent(LONG));
	EXPECT_FALSE(ended());
	const struct tdm_piece *p = c->keep->first;
	size_t lent = 0;
	for (; p; p = p->next)
		lent += p->op ? p->to - p->from : 0;
	EXPECT_LT(size_t(LONG) / 2, lent);
	EXPECT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(2u, at(1).rx.got.size());
}

} // namespace
