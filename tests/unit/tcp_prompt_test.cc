/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When acknowledgements leave: with prompt replies, else in the pass that
 * received the message. The clock stands still but for the test, and the kernel
 * never says that the peer's host has all bytes.
 */
#include "tcp_world.h"

using namespace tcp_test;

namespace
{

uint64_t now_ns;
unsigned sends; /* calls of send(2) by node 1 */
int fd_of_1;

enum { TRUST = 8 /* prompt replies, more than it takes */ };

class TcpPrompt : public Tcp
{
protected:
	char in[8] = {}, back[8] = {};

	void SetUp() override
	{
		mesh(2);
		ASSERT_EQ(0, at(1).recv(in, 8, 1));
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
			return send(fd, p, n, flags);
		};
	}

	/* A message to node 1, whose last pass is the one that receives it. */
	void message()
	{
		const size_t had = at(1).rx.got.size();

		ASSERT_EQ(0, at(1).recv(in, 8, 1));
		ASSERT_EQ(0, at(0).send(1, "ping", 5, 1));
		ASSERT_TRUE(
			alone(1, [&] { return at(1).rx.got.size() > had; }));
	}

	/* And a reply, @ns later, until node 0 has it. */
	void round(uint64_t ns)
	{
		const size_t had = at(0).rx.got.size();

		ASSERT_EQ(0, at(0).recv(back, 8, 2));
		message();
		now_ns += ns;
		ASSERT_EQ(0, at(1).send(0, "pong", 5, 2));
		ASSERT_TRUE(
			alone(0, [&] { return at(0).rx.got.size() > had; }));
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
};

TEST_F(TcpPrompt, ApplicationThatTurnsAwayDelaysNoSend)
{
	for (int i = 0; i < 10; i++)
		ASSERT_NO_FATAL_FAILURE(completes_alone());
}

TEST_F(TcpPrompt, PromptRepliesCarryThem)
{
	for (int i = 0; i < TRUST; i++)
		round(0);
	sends = 0;
	for (int i = 0; i < 50; i++)
		round(1000);
	EXPECT_EQ(50u, sends);
}

TEST_F(TcpPrompt, LateRepliesAreNotWaitedFor)
{
	for (int i = 0; i < TRUST; i++)
		round(0);
	for (int i = 0; i < 16; i++)
		round(1000000);
	for (int i = 0; i < 3; i++)
		ASSERT_NO_FATAL_FAILURE(completes_alone());
}

TEST_F(TcpPrompt, ReplyThatDoesNotComeEndsTheTrust)
{
	for (int i = 0; i < TRUST; i++)
		round(0);
	EXPECT_FALSE(completes(1000)) << "the reply was not waited for";
	ASSERT_TRUE(until(
		[&] { return at(0).tx.got.size() == at(1).rx.got.size(); }));
	completes_alone();
}

} // namespace
