/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies to long reads whose bytes the initiator has not acknowledged: keep.h.
 * They refer to the region, are copied when it closes, and are copied at once where
 * the target is told that it was read.
 */
#include <malloc.h>
#include <sys/mman.h>

#include "tcp_raw.h"

extern "C" {
#include "tcp/wire/conn.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/send.h"
}

using namespace tcp_test;

namespace
{

enum { KEY = 77, LEN = 200000 };

class TcpKeptReply : public TcpFault
{
protected:
	Bytes region = pattern(LEN, 1), in = Bytes(LEN);
	const Bytes was = region;

	void SetUp() override
	{
		tdm_env.resume = 1;
	}

	void TearDown() override
	{
		tdt::Regions::tells = true;
		TcpFault::TearDown();
	}

	static size_t used()
	{
		const struct mallinfo2 m = mallinfo2();

		return m.uordblks + m.hblkhd;
	}

	/* Sessions of node 0 with node 1, which is told of reads if @told. */
	void pair(bool told)
	{
		char buf[8];

		mesh(2);
		if (!told)
			at(1).tcp->a.done.remote_read_cntr = nullptr;
		ASSERT_EQ(0, at(1).recv(buf, 8, 1));
		ASSERT_EQ(0, at(0).send(1, "open", 5, 1));
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		at(0).tx.got.clear();
		at(1).regions.add(KEY, region.data(), LEN, FI_REMOTE_READ);
	}

	/* Node 1 has replied to a read, and node 0 has not looked. */
	void replied()
	{
		ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), LEN, KEY, 0));
		at(0).progress();
		ASSERT_TRUE(alone(1, [&] {
			const struct tdm_conn *c = at(1).conn(0);

			return at(1).regions.given && !c->busy->announced &&
			       !tdm_keep_pending(c);
		}));
	}

	/* Lose the connection; what the kernel has is lost, too. */
	void lose()
	{
		reset_connection(at(0).conn(1)->io.fd);
	}

	/* The read ends with the bytes as they were, and nothing is left. */
	void ends()
	{
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		EXPECT_EQ(0, at(0).tx.got[0].err);
		EXPECT_TRUE(was == in);
		at(0).tcp->watch.fired(&at(0).tcp->watch);
		ASSERT_TRUE(until([&] { return !at(1).tcp->tx_pool.in_use; }));
		EXPECT_EQ(0u, at(1).regions.in_flight);
		EXPECT_TRUE(at(0).lost.empty() && at(1).lost.empty());
	}

	/* The region has changed since, and the connection is lost. */
	void is_repeated_as_it_was()
	{
		std::fill(region.begin(), region.end(), 0xee);
		lose();
		ends();
	}
};

TEST_F(TcpKeptReply, IsNotCopied)
{
	size_t before;

	pair(false);
	before = used();
	replied();
	EXPECT_EQ(1u, at(1).regions.in_flight);
	EXPECT_GT(before + LEN, used());
	ends();
}

TEST_F(TcpKeptReply, ComesAgain)
{
	pair(false);
	replied();
	lose();
	ends();
}

TEST_F(TcpKeptReply, IsCopiedBeforeItsRegionCloses)
{
	pair(false);
	replied();
	at(1).regions.close(KEY);
	EXPECT_EQ(0u, at(1).regions.in_flight);
	is_repeated_as_it_was();
}

/*
 * An application that frees memory before it closes the region: a read that has ended is
 * none the worse for it, and one whose bytes are needed again ends with its session.
 */
TEST_F(TcpKeptReply, MemoryThatIsFreedBeforeItsRegionCloses)
{
	for (bool lost : { false, true }) {
		void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ASSERT_NE(MAP_FAILED, p);
		memcpy(p, was.data(), LEN);
		nodes.clear();
		pair(false);
		at(1).regions.add(KEY, p, LEN, FI_REMOTE_READ);
		replied();
		/* As unmapped, but no other mapping can take its place. */
		ASSERT_EQ(0, mprotect(p, LEN, PROT_NONE));
		at(1).regions.close(KEY);
		EXPECT_EQ(0u, at(1).regions.in_flight);
		if (lost) {
			lose();
			ASSERT_TRUE(until(
				[&] { return at(0).tx.got.size() == 1; }));
			EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err);
			EXPECT_EQ(std::vector<int>{ FI_ECONNRESET },
				  at(0).lost);
		} else {
			ends();
		}
		munmap(p, LEN);
	}
}

/* A target that counts reads may change the region as soon as the count has risen. */
TEST_F(TcpKeptReply, IsCopiedForATargetThatIsTold)
{
	pair(true);
	replied();
	EXPECT_EQ(1u, at(1).was_read.value);
	is_repeated_as_it_was();
}

TEST_F(TcpKeptReply, IsCopiedForAnOwnerThatDoesNotTell)
{
	tdt::Regions::tells = false;
	pair(false);
	replied();
	EXPECT_EQ(0u, at(1).regions.in_flight);
	is_repeated_as_it_was();
}

TEST_F(TcpKeptReply, IsFreedWithTheSession)
{
	pair(false);
	replied();
	at(1).close();
	EXPECT_EQ(0u, at(1).regions.in_flight);
}

unsigned calls; /* of process_vm_readv(2) */

/* Where the target may not use the call by which a closing region is copied. */
TEST_F(TcpKeptReply, IsCopiedWhereItCouldNotBeCopiedLater)
{
	for (bool allowed : { false, true }) {
		region = was;
		nodes.clear();
		calls = 0;
		tdm_os.process_vm_readv =
			[](pid_t, const struct iovec *, unsigned long,
			   const struct iovec *, unsigned long,
			   unsigned long) -> ssize_t {
			calls++;
			errno = EPERM;
			return -1;
		};
		tdm_env.cma = allowed;
		pair(false);
		replied();
		EXPECT_EQ(0u, at(1).regions.in_flight);
		EXPECT_EQ(unsigned(allowed), calls);
		at(1).regions.close(KEY);
		is_repeated_as_it_was();
	}
}

/* A peer that reads and reads, and never says what it has received. */
TEST_F(TcpKeptReply, APeerThatAcknowledgesNothingBindsLittle)
{
	const size_t len = 1 << 20, most = 64;
	std::vector<uint8_t> heard;
	Bytes big = pattern(len, 5);

	mesh(1);
	at(0).tcp->a.done.remote_read_cntr = nullptr;
	at(0).regions.add(KEY, big.data(), len, FI_REMOTE_READ);
	raw.call(at(0).addr);
	auto g = Raw::greeting(9);
	g.features = TDM_WIRE_FEATURE_RESUME;
	memset(g.nonce, 5, sizeof(g.nonce));
	raw.hello(g);
	ASSERT_TRUE(hears(heard, TDM_WIRE_GREETING_BYTES));
	for (unsigned i = 0; i < 2 * most; i++) {
		struct tdm_wire_rec r = rec(TDM_WIRE_READ);

		r.id = r.rid = 1;
		r.key = KEY;
		r.total = len;
		raw.record(r);
		heard.clear();
		ASSERT_TRUE(hears(heard, len));
		ASSERT_GE(most + 1, at(0).regions.in_flight);
		if (i == most / 2) {
			EXPECT_LT(most / 4, at(0).regions.in_flight);
		}
	}
	EXPECT_EQ(0u, at(0).regions.in_flight);
	EXPECT_TRUE(at(0).lost.empty());
}

size_t budget; /* bytes that sendmsg(2) takes */

ssize_t send_some(int fd, const struct msghdr *m, int flags)
{
	struct iovec v = m->msg_iov[0];
	struct msghdr h = *m;
	ssize_t n;

	if (!budget) {
		errno = EAGAIN;
		return -1;
	}
	v.iov_len = std::min(v.iov_len, budget);
	h.msg_iov = &v;
	h.msg_iovlen = 1;
	n = tdm_os_system.sendmsg(fd, &h, flags);
	budget -= size_t(std::max<ssize_t>(n, 0));
	return n;
}

/* Memory that is gone is no loss when its bytes have been repeated already. */
TEST_F(TcpKeptReply, MemoryIsFreedWhenItsBytesWereRepeated)
{
	Bytes big = pattern(1 << 20, 5), big_in(big.size());
	void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tdm_conn *c;

	ASSERT_NE(MAP_FAILED, p);
	memcpy(p, was.data(), LEN);
	pair(false);
	at(1).regions.add(KEY, p, LEN, FI_REMOTE_READ);
	at(1).regions.add(KEY + 1, big.data(), big.size(), FI_REMOTE_READ);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), LEN, KEY, 0));
	ASSERT_EQ(0,
		  at(0).rma(FI_READ, 1, big_in.data(), big.size(), KEY + 1, 0));
	at(0).progress();
	c = at(1).conn(0);
	ASSERT_TRUE(alone(1, [&] {
		return at(1).regions.given == 2 && !c->busy->announced &&
		       !tdm_keep_pending(c);
	}));
	budget = 0;
	tdm_os.sendmsg = send_some;
	lose();
	ASSERT_TRUE(until([&] {
		return c->state == TDM_CONN_READY && tdm_keep_repeats(c) &&
		       at(0).conn(1)->state == TDM_CONN_READY;
	}));
	/* The first reply, and a part of the second. */
	budget = LEN + 100000;
	while (budget) {
		c->blocked = 0;
		tdm_conn_push(c);
	}
	ASSERT_TRUE(tdm_keep_repeats(c) && c->keep->again != c->keep->first);
	ASSERT_EQ(0, mprotect(p, LEN, PROT_NONE));
	at(1).regions.close(KEY);
	tdm_os.sendmsg = tdm_os_system.sendmsg;
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 2; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_EQ(0, at(0).tx.got[1].err);
	EXPECT_TRUE(was == in && big == big_in);
	EXPECT_TRUE(at(0).lost.empty() && at(1).lost.empty());
	munmap(p, LEN);
}

} // namespace
