/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When acknowledgements leave: with prompt replies, or some passes later without one,
 * else in the pass that received the message. The clock stands still but for the test,
 * and the kernel never says that the peer's host has all bytes.
 */
#include "tcp_world.h"

extern "C" {
#include "tcp/wire/prompt.h"
}

using namespace tcp_test;

namespace
{

uint64_t now_ns;
unsigned sends; /* calls of send(2) by node 1, */
unsigned kept;	/* and of these, those with MSG_MORE */
int fd_of_1;

enum {
	TRUST = 8, /* prompt replies, more than it takes */
	KEY = 7,
	LONG = 1 << 20, /* announced, and more than is acknowledged at once */
};

class TcpPrompt : public Tcp
{
protected:
	const Bytes ping = pattern(LONG, 1), pong = pattern(LONG, 2);
	Bytes in = Bytes(LONG), back = Bytes(LONG);
	size_t len = 8; /* of a message, and of a reply */
	/* of a message: that its sender waits until it is placed */
	uint64_t level = 0;

	void SetUp() override
	{
		mesh(2);
		ASSERT_EQ(0, at(1).recv(in.data(), len, 1));
		ASSERT_EQ(0, at(0).send(1, "open", 5, 1));
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() && at(1).rx.got.size();
		}));
		now_ns = tdm_os.now_ns();
		tdm_os.now_ns = [] {
			return now_ns;
		};
		tdm_os.outq = [](int, int *bytes) {
			*bytes = 1;
			return 0;
		};
		fd_of_1 = at(1).conn(0)->io.fd;
		tdm_os.send = [](int fd, const void *p, size_t n, int flags) {
			sends += fd == fd_of_1;
			kept += fd == fd_of_1 && (flags & MSG_MORE);
			return send(fd, p, n, flags);
		};
	}

	/*
	 * Until @done by passes of node @i; those of both, the last one of node 1,
	 * where messages are announced.
	 */
	bool goes(size_t i, const std::function<bool()> &done)
	{
		return len == LONG ? until(done) : alone(i, done);
	}

	/* A message to node 1, whose last pass is the one that receives it. */
	void message()
	{
		const size_t had = at(1).rx.got.size();

		ASSERT_EQ(0, at(1).recv(in.data(), len, 1));
		ASSERT_EQ(0, at(0).send(1, ping.data(), len, 1,
					FI_COMPLETION | level));
		ASSERT_TRUE(goes(1, [&] { return at(1).rx.got.size() > had; }));
	}

	/* And a reply, @ns and @passes of node 1 later, until node 0 has it. */
	void round(uint64_t ns, int passes = 0)
	{
		const size_t had = at(0).rx.got.size();

		ASSERT_EQ(0, at(0).recv(back.data(), len, 2));
		message();
		now_ns += ns;
		while (passes--)
			at(1).progress();
		ASSERT_EQ(0, at(1).send(0, pong.data(), len, 2));
		ASSERT_TRUE(goes(0, [&] { return at(0).rx.got.size() > had; }));
	}

	void rounds(int n, uint64_t ns, int passes = 0)
	{
		while (n--)
			ASSERT_NO_FATAL_FAILURE(round(ns, passes));
	}

	/* A message that completes at node 0 with passes of its own. */
	void completes_alone()
	{
		const size_t had = at(0).tx.got.size();

		message();
		ASSERT_TRUE(
			alone(0, [&] { return at(0).tx.got.size() > had; }));
	}

	/* Does a message complete though node 1 makes no further pass? */
	bool completes(unsigned passes)
	{
		const size_t had = at(0).tx.got.size();

		message();
		while (passes-- && at(0).tx.got.size() == had)
			at(0).progress();
		return at(0).tx.got.size() > had;
	}

	/* A write to node @to, which is told of it, until it is. */
	void write(size_t from, size_t to)
	{
		const size_t had = at(to).rx.got.size();

		ASSERT_EQ(0, at(from).rma(FI_WRITE, to, ping.data(), len, KEY,
					  0, FI_COMPLETION | FI_REMOTE_CQ_DATA,
					  NULL, 5));
		ASSERT_TRUE(
			alone(to, [&] { return at(to).rx.got.size() > had; }));
	}

	/* @passes: of node 1 before it replies. */
	void writes(int n, int passes = 0)
	{
		while (n--) {
			ASSERT_NO_FATAL_FAILURE(write(0, 1));
			for (int i = 0; i < passes; i++)
				at(1).progress();
			ASSERT_NO_FATAL_FAILURE(write(1, 0));
		}
	}

	/* Let each node have a region to which the other one writes. */
	void regions()
	{
		at(0).regions.add(KEY, back.data(), LONG, FI_REMOTE_WRITE);
		at(1).regions.add(KEY, in.data(), LONG, FI_REMOTE_WRITE);
	}
};

TEST_F(TcpPrompt, ApplicationThatTurnsAwayDelaysNoSend)
{
	for (int i = 0; i < 10; i++)
		ASSERT_NO_FATAL_FAILURE(completes_alone());
}

TEST_F(TcpPrompt, PromptRepliesCarryThem)
{
	for (int passes : { 0, TDM_PROMPT_PASSES - 1 }) {
		rounds(TRUST, 0, passes);
		sends = 0;
		rounds(50, 1000, passes);
		EXPECT_EQ(50u, sends);
	}
}

/* A pass soon sends what no reply carried, and trusts no more. */
TEST_F(TcpPrompt, AckThatWaitsLeavesAfterSomePasses)
{
	rounds(TRUST, 0);
	message();
	sends = 0;
	for (int i = 1; i < TDM_PROMPT_PASSES; i++)
		at(1).progress();
	EXPECT_EQ(0u, sends);
	at(1).progress();
	EXPECT_EQ(1u, sends);
	at(0).progress();
	message();
	EXPECT_EQ(2u, sends);
}

/* A CTS, an RTS that carries the ACK, and the payload: one ACK less. */
TEST_F(TcpPrompt, PromptRepliesCarryThoseOfLongMessages)
{
	unsigned alone;

	len = LONG;
	sends = 0;
	rounds(1, 0);
	alone = sends;
	rounds(TRUST, 0);
	sends = 0;
	rounds(10, 1000);
	EXPECT_EQ(10 * (alone - 1), sends);
	EXPECT_TRUE(same(ping, in, len));
	EXPECT_TRUE(same(pong, back, len));
}

TEST_F(TcpPrompt, LateRepliesAreNotWaitedFor)
{
	rounds(TRUST, 0);
	rounds(16, 1000000);
	for (int i = 0; i < 3; i++)
		ASSERT_NO_FATAL_FAILURE(completes_alone());
}

TEST_F(TcpPrompt, ReplyThatDoesNotComeEndsTheTrust)
{
	rounds(TRUST, 0);
	EXPECT_FALSE(completes(1000)) << "the reply was not waited for";
	ASSERT_TRUE(until(
		[&] { return at(0).tx.got.size() == at(1).rx.got.size(); }));
	completes_alone();
}

/* After an ACK that waited in vain twice as many prompt replies are needed. */
TEST_F(TcpPrompt, AckThatWaitedInVainEndsTheTrustForLonger)
{
	rounds(TRUST, 0);
	for (unsigned needed : { 8u, 16u }) {
		message();
		for (int i = 0; i < TDM_PROMPT_PASSES; i++)
			at(1).progress();
		at(0).progress();
		sends = 0;
		rounds(int(needed), 0);
		EXPECT_EQ(2 * needed, sends);
		sends = 0;
		rounds(10, 0);
		EXPECT_EQ(10u, sends);
	}
}

/* The data of a read are acknowledged later, which says nothing about replies. */
TEST_F(TcpPrompt, ReadLeavesTheTrust)
{
	Bytes target = pattern(LONG, 3), got = Bytes(LONG);

	at(0).regions.add(KEY, target.data(), LONG, FI_REMOTE_READ);
	rounds(TRUST, 0);
	settle();
	const size_t had = at(1).tx.got.size();
	ASSERT_EQ(0, at(1).rma(FI_READ, 0, got.data(), LONG, KEY, 0));
	ASSERT_TRUE(until([&] { return at(1).tx.got.size() > had; }));
	EXPECT_EQ(target, got);
	settle();
	sends = 0;
	rounds(10, 1000);
	EXPECT_EQ(10u, sends);
}

/* The DONE of a message, too: the kernel keeps it for the reply. */
TEST_F(TcpPrompt, PromptRepliesCarryDone)
{
	level = FI_DELIVERY_COMPLETE;
	rounds(1, 0);
	EXPECT_EQ(0u, kept);
	rounds(TRUST, 0);
	sends = kept = 0;
	rounds(50, 1000);
	EXPECT_EQ(50u, sends - kept);
	EXPECT_EQ(50u, kept);
	rounds(16, 1000000);
	kept = 0;
	rounds(1, 0);
	EXPECT_EQ(0u, kept) << "replies were late";
}

/* And that of a write. */
TEST_F(TcpPrompt, PromptRepliesCarryTheDoneOfWrites)
{
	regions();
	for (int passes : { 0, TDM_PROMPT_PASSES - 1 }) {
		writes(TRUST, passes);
		sends = kept = 0;
		writes(50, passes);
		EXPECT_EQ(50u, kept);
		EXPECT_EQ(50u, sends - kept);
	}
}

/* A pass soon sends what no reply carried, and trusts no more. */
TEST_F(TcpPrompt, DoneThatLingersLeavesAfterSomePasses)
{
	regions();
	writes(TRUST);
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() == at(1).tx.got.size() + 1;
	}));
	for (unsigned lingers : { 1u, 0u }) {
		const size_t had = at(0).tx.got.size();

		kept = 0;
		ASSERT_NO_FATAL_FAILURE(write(0, 1));
		EXPECT_EQ(lingers, kept);
		if (lingers) {
			const unsigned sent = sends - kept;

			for (int i = 1; i < TDM_PROMPT_PASSES; i++)
				at(1).progress();
			EXPECT_EQ(sent, sends - kept);
			at(1).progress();
			EXPECT_EQ(sent + 1, sends - kept);
		}
		EXPECT_TRUE(
			alone(0, [&] { return at(0).tx.got.size() > had; }));
	}
}

/*
 * Writes that keep coming without a reply, so that each pass has a DONE to send: the first
 * one does not linger for more passes.
 */
TEST_F(TcpPrompt, FurtherDonesDoNotProlongTheFirst)
{
	regions();
	writes(TRUST);
	sends = kept = 0;
	for (int i = 0; i <= TDM_PROMPT_PASSES; i++) {
		ASSERT_NO_FATAL_FAILURE(write(0, 1));
		at(0).progress();
	}
	EXPECT_GT(sends, kept);
	EXPECT_LT(0u, kept);
	kept = 0;
	ASSERT_NO_FATAL_FAILURE(write(0, 1));
	EXPECT_EQ(0u, kept);
}

/* Nor does a message whose ACK waits, too. */
TEST_F(TcpPrompt, AckDoesNotProlongALingeringDone)
{
	regions();
	rounds(TRUST, 0);
	writes(TRUST);
	sends = kept = 0;
	ASSERT_NO_FATAL_FAILURE(write(0, 1));
	EXPECT_EQ(1u, kept);
	for (int i = 2; i < TDM_PROMPT_PASSES; i++)
		at(1).progress();
	at(0).progress();
	message();
	EXPECT_EQ(sends, kept);
	at(1).progress();
	EXPECT_LT(kept, sends);
}

/* The call that posts the receive of a message that waits may be the last one. */
TEST_F(TcpPrompt, DoneThatAReceiveCausesDoesNotLinger)
{
	regions();
	writes(TRUST);
	ASSERT_EQ(0, at(0).send(1, ping.data(), len, 1,
				FI_COMPLETION | FI_DELIVERY_COMPLETE));
	ASSERT_TRUE(until([&] {
		return tdm_match_arrived_count(at(1).srx->match[TDM_SRX_TAG]) ==
		       1;
	}));
	kept = 0;
	const size_t had = at(0).tx.got.size();
	ASSERT_EQ(0, at(1).recv(in.data(), len, 1));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() > had; }));
	EXPECT_EQ(0u, kept);
}

/* A DONE that lingered for long makes the next ones wait for more replies. */
TEST_F(TcpPrompt, LongPausesEndTheTrustForLonger)
{
	regions();
	for (unsigned lingers : { 1u, 0u }) {
		writes(TRUST);
		kept = 0;
		ASSERT_NO_FATAL_FAILURE(write(0, 1));
		EXPECT_EQ(lingers, kept);
		now_ns += 10000000;
		for (int i = 0; i <= TDM_PROMPT_PASSES; i++)
			at(1).progress();
		at(0).progress();
	}
	writes(100);
	EXPECT_LT(0u, kept);
}

/* An application that makes no further pass holds up no write. */
TEST_F(TcpPrompt, DoneThatLingersLeavesWithoutAPass)
{
	regions();
	writes(TRUST);
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() == at(1).tx.got.size() + 1;
	}));
	const size_t had = at(0).tx.got.size();
	kept = 0;
	ASSERT_NO_FATAL_FAILURE(write(0, 1));
	EXPECT_EQ(1u, kept);
	EXPECT_TRUE(alone(0, [&] { return at(0).tx.got.size() > had; }));
}

} // namespace
