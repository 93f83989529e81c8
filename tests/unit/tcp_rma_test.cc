/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations over TCP: what they move, what they refuse, what they
 * say when they end.
 */
#include <random>
#include <set>

#include <arpa/inet.h>

#include <rdma/fi_errno.h>

#include "tcp_world.h"

namespace
{

using namespace tcp_test;

enum { KEY = 77, BAD_KEY = 78 };

class TcpRma : public Tcp
{
protected:
	Bytes target;

	/* Node 1 has a region of @len bytes of 0x11 under KEY. */
	void region(size_t len,
		    uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE)
	{
		mesh(2);
		target.assign(len, 0x11);
		at(1).regions.add(KEY, target.data(), len, access);
	}

	bool ended(size_t n = 1)
	{
		return until([&] { return at(0).tx.got.size() >= n; });
	}

	/* Nothing is left of anything, and the pair still talks. */
	void clean()
	{
		char in[8] = "";
		size_t had = at(1).rx.got.size();

		ASSERT_EQ(0, at(1).recv(in, 8, 4711));
		ASSERT_EQ(0, at(0).send(1, "alive", 6, 4711, 0));
		ASSERT_TRUE(until([&] {
			return at(1).rx.got.size() == had + 1 &&
			       !at(0).tcp->tx_pool.in_use;
		}));
		EXPECT_STREQ("alive", in);
		for (auto &n : nodes) {
			EXPECT_EQ(0u, n->regions.in_flight);
			EXPECT_TRUE(n->lost.empty());
			EXPECT_EQ(0u, n->tcp->tx_pool.in_use);
			EXPECT_EQ(0u, n->tcp->tx_pool.in_use);
			EXPECT_EQ(0u, n->tcp->rx_pool.in_use);
			for (auto &c : n->conns) {
				EXPECT_EQ(0u, c.second->busy->rts);
				EXPECT_EQ(0u, c.second->busy->announced);
			}
		}
	}

	/* One entry at the initiator with @err, none at the target. */
	void refused(int err, uint64_t op)
	{
		ASSERT_TRUE(ended());
		settle();
		ASSERT_EQ(1u, at(0).tx.got.size());
		EXPECT_EQ(err, at(0).tx.got[0].err);
		EXPECT_EQ(FI_RMA | op, at(0).tx.got[0].flags);
		EXPECT_TRUE(at(1).rx.got.empty());
		EXPECT_EQ(0u,
			  at(1).was_written.value + at(1).was_written.errors);
		EXPECT_EQ(0u, at(1).was_read.value + at(1).was_read.errors);
		EXPECT_EQ(1u, at(0).wrote.errors + at(0).read.errors);
		EXPECT_EQ(0u, at(0).wrote.value + at(0).read.value);
	}
};

struct Size {
	size_t len;
};

void PrintTo(const Size &s, std::ostream *os)
{
	*os << s.len;
}

class TcpRmaSize : public TcpRma, public testing::WithParamInterface<Size>
{
};

/*
 * fi_rma(3) 2.1, fi_write 1: In place when it has completed, and nowhere else.
 */
TEST_P(TcpRmaSize, WriteIsInPlaceWhenItCompletes)
{
	const size_t len = GetParam().len;
	Bytes out = pattern(len, 1);
	int a;

	region(len + 20);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out.data(), len, KEY, 10,
			       FI_COMPLETION, &a));
	ASSERT_TRUE(ended());
	EXPECT_TRUE(std::equal(out.begin(), out.end(), &target[10]));
	for (size_t i = 0; i < 10; i++) {
		EXPECT_EQ(0x11, target[i]);
		EXPECT_EQ(0x11, target[10 + len + i]);
	}
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_EQ(&a, at(0).tx.got[0].context);
	EXPECT_EQ((uint64_t)(FI_RMA | FI_WRITE), at(0).tx.got[0].flags);
	EXPECT_EQ(1u, at(0).wrote.value);
	EXPECT_EQ(1u, at(1).was_written.value);
	EXPECT_TRUE(at(1).rx.got.empty());
	clean();
}

/*
 * fi_rma(3) 2.1, fi_writedata 1: The target is told, with these flags and no
 * others.
 */
TEST_P(TcpRmaSize, WritedataTellsTheTarget)
{
	const size_t len = GetParam().len;
	Bytes out = pattern(len, 2);

	region(len);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out.data(), len, KEY, 0,
			       FI_COMPLETION | FI_REMOTE_CQ_DATA, NULL,
			       0x1234567890abcdef));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	const Comp &r = at(1).rx.got[0];
	EXPECT_EQ((uint64_t)(FI_REMOTE_CQ_DATA | FI_RMA | FI_REMOTE_WRITE),
		  r.flags);
	EXPECT_EQ(0x1234567890abcdefu, r.data);
	EXPECT_EQ(len, r.len);
	EXPECT_EQ(0u, r.src);
	EXPECT_TRUE(same(target, out, len));
	ASSERT_TRUE(ended());
	EXPECT_EQ((uint64_t)(FI_RMA | FI_WRITE), at(0).tx.got[0].flags);
	EXPECT_EQ(1u, at(1).was_written.value);
	EXPECT_EQ(0u, at(1).received.value);
	clean();
}

/* fi_rma(3) 2.1, fi_read 1: The bytes are here when it completes. */
TEST_P(TcpRmaSize, ReadBringsTheBytes)
{
	const size_t len = GetParam().len;
	Bytes want = pattern(len + 7, 3), in(len + 1, 0xee);
	int a;

	region(len + 7);
	target = want;
	at(1).regions.add(KEY, target.data(), target.size(), FI_REMOTE_READ);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY, 7,
			       FI_COMPLETION, &a));
	ASSERT_TRUE(ended());
	EXPECT_TRUE(std::equal(want.begin() + 7, want.end(), in.begin()));
	EXPECT_EQ(0xee, in[len]);
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_EQ(&a, at(0).tx.got[0].context);
	EXPECT_EQ((uint64_t)(FI_RMA | FI_READ), at(0).tx.got[0].flags);
	EXPECT_EQ(1u, at(0).read.value);
	EXPECT_EQ(1u, at(1).was_read.value);
	EXPECT_TRUE(at(1).rx.got.empty());
	EXPECT_TRUE(target == want);
	clean();
}

/* No matter how long, how it ends is the same. */
TEST_P(TcpRmaSize, BadKeyOrBoundsOrRight)
{
	const size_t len = GetParam().len;
	Bytes buf = pattern(len, 4), in(len, 0xee);
	const struct {
		uint64_t op, key, where, access;
	} bad[] = {
		{ FI_WRITE, BAD_KEY, 0, FI_REMOTE_WRITE },
		{ FI_READ, BAD_KEY, 0, FI_REMOTE_READ },
		{ FI_WRITE, KEY, 1, FI_REMOTE_WRITE },
		{ FI_READ, KEY, 1, FI_REMOTE_READ },
		{ FI_WRITE, KEY, UINT64_MAX - len / 2, FI_REMOTE_WRITE },
		{ FI_READ, KEY, UINT64_MAX - len / 2, FI_REMOTE_READ },
		{ FI_WRITE, KEY, 0, FI_REMOTE_READ },
		{ FI_READ, KEY, 0, FI_REMOTE_WRITE },
	};

	for (auto &b : bad) {
		nodes.clear();
		region(len, b.access);
		const Bytes before = target;
		Bytes &mine = b.op == FI_READ ? in : buf;
		const Bytes had = mine;
		ASSERT_EQ(0,
			  at(0).rma(b.op, 1, mine.data(), len, b.key, b.where,
				    b.op == FI_WRITE ? FI_REMOTE_CQ_DATA : 0));
		refused(FI_EACCES, b.op);
		EXPECT_TRUE(before == target);
		EXPECT_TRUE(had == mine);
		EXPECT_EQ(0u, at(1).regions.given);
		clean();
	}
}

/* The target has no memory for it. */
TEST_P(TcpRmaSize, TargetWithoutMemory)
{
	Bytes buf(GetParam().len);

	for (uint64_t op : { FI_WRITE, FI_READ }) {
		nodes.clear();
		region(buf.size());
		at(1).regions.no_memory = true;
		ASSERT_EQ(0, at(0).rma(op, 1, buf.data(), buf.size(), KEY, 0));
		refused(FI_ENOMEM, op);
		clean();
	}
}

/* An endpoint that reads and writes its own regions. */
TEST_P(TcpRmaSize, OwnRegions)
{
	const size_t len = GetParam().len;
	Bytes out = pattern(len, 1), in(len);

	region(len);
	at(0).regions.add(KEY, target.data(), len,
			  FI_REMOTE_READ | FI_REMOTE_WRITE);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 0, out.data(), len, KEY, 0));
	ASSERT_TRUE(ended(1));
	ASSERT_EQ(0, at(0).rma(FI_READ, 0, in.data(), len, KEY, 0));
	ASSERT_TRUE(ended(2));
	EXPECT_TRUE(out == target);
	EXPECT_TRUE(out == in);
	clean();
}

INSTANTIATE_TEST_SUITE_P(Sizes, TcpRmaSize,
			 testing::Values(Size{ 0 }, Size{ 1 }, Size{ 8 },
					 Size{ 2048 }, Size{ 2049 },
					 Size{ 4096 }, Size{ 65536 },
					 Size{ 65537 }, Size{ 1 << 20 },
					 Size{ 4 << 20 },
					 Size{ (4 << 20) + 1 }),
			 [](const testing::TestParamInfo<Size> &p) {
				 return std::to_string(p.param.len);
			 });

/* fi_cq(3) 2.1, fi_cq_readerr 4: EACCES is reported for every level. */
TEST_F(TcpRma, InjectedWritesTellOfRefusal)
{
	region(100);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, "bad", 4, BAD_KEY, 0,
			       FI_INJECT | FI_INJECT_COMPLETE));
	refused(FI_EACCES, FI_WRITE);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, "good", 5, KEY, 3, FI_INJECT));
	ASSERT_TRUE(until([&] { return at(0).wrote.value == 1; }));
	EXPECT_STREQ("good", (char *)&target[3]);
	EXPECT_EQ(1u, at(0).tx.got.size());
	clean();
}

/* The buffer of an inject is free at once, also while connecting. */
TEST_F(TcpRma, InjectWhileConnecting)
{
	char text[] = "mine";

	region(100);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, text, 5, KEY, 0, FI_INJECT));
	memset(text, 0, 5);
	ASSERT_TRUE(until([&] { return at(0).wrote.value == 1; }));
	EXPECT_STREQ("mine", (char *)&target[0]);
	clean();
}

/* A message sent after a completed write finds it in place, and so on. */
TEST_F(TcpRma, MessageAfterACompletedWrite)
{
	char in[8];

	region(300000);
	for (unsigned i = 1; i < 50; i++) {
		Bytes out(i % 5 ? 5000 : 300000, (unsigned char)i);

		ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out.data(), out.size(), KEY,
				       0));
		ASSERT_TRUE(ended(i));
		at(0).send(1, "look", 5, i, 0);
		ASSERT_EQ(0, at(1).recv(in, 8, i));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == i; }));
		ASSERT_TRUE(same(target, out, out.size()));
	}
	clean();
}

/* More than the credit and the peer's count of announcements allow at once. */
TEST_F(TcpRma, ManyAtOnce)
{
	const size_t n = 2000, len = 3000;
	Bytes out = pattern(n * len, 1), in(n * len);

	region(n * len);
	for (size_t i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, &out[i * len], len, KEY,
				       i * len));
	ASSERT_TRUE(ended(n));
	EXPECT_TRUE(out == target);
	at(0).conn(1)->rts_max = 7;
	for (size_t i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).rma(FI_READ, 1, &in[i * len], len, KEY,
				       i * len));
	ASSERT_TRUE(ended(2 * n));
	EXPECT_TRUE(in == out);
	for (const Comp &c : at(0).tx.got)
		EXPECT_EQ(0, c.err);
	EXPECT_EQ(n, at(1).was_written.value);
	EXPECT_EQ(n, at(1).was_read.value);
	clean();
}

/* The bytes of a read and its DONE leave the target by one system call. */
TEST_F(TcpRma, AReadIsAnsweredByOneSystemCall)
{
	static unsigned writes;
	static int target_fd;
	Bytes in(32 << 10);

	region(in.size());
	clean();
	target_fd = at(1).conn(0)->io.fd;
	for (size_t len : { (size_t)8, (size_t)4096, in.size() }) {
		size_t had = at(0).tx.got.size();

		settle();
		writes = 0;
		tdm_os.send = [](int fd, const void *b, size_t n, int flags) {
			writes += fd == target_fd;
			return tdm_os_system.send(fd, b, n, flags);
		};
		tdm_os.sendmsg = [](int fd, const struct msghdr *m, int flags) {
			writes += fd == target_fd;
			return tdm_os_system.sendmsg(fd, m, flags);
		};
		EXPECT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY, 0));
		EXPECT_TRUE(ended(had + 1));
		tdm_os = tdm_os_system;
		EXPECT_EQ(1u, writes) << len;
	}
	EXPECT_EQ(target, in);
	clean();
}

/*
 * The request for the next read carries the ACK of the one before, and the end of the
 * bytes leaves with DONE: the kernel is told that more follows, and never at last.
 */
TEST_F(TcpRma, LongReadsTakeFewSegments)
{
	static int fds[2], calls[2], last, corked;
	Bytes in(5 << 20);

	region(in.size());
	clean();
	fds[0] = at(0).conn(1)->io.fd;
	fds[1] = at(1).conn(0)->io.fd;
	auto count = [](int fd, int flags) {
		calls[0] += fd == fds[0];
		calls[1] += fd == fds[1];
		last = fd == fds[1] ? flags : last;
		corked += fd == fds[1] && (flags & MSG_MORE);
	};
	static auto counter = +count;
	tdm_os.send = [](int fd, const void *b, size_t n, int flags) {
		counter(fd, flags);
		return tdm_os_system.send(fd, b, n, flags);
	};
	tdm_os.sendmsg = [](int fd, const struct msghdr *m, int flags) {
		counter(fd, flags);
		return tdm_os_system.sendmsg(fd, m, flags);
	};
	for (size_t len : { 100000, 1 << 20, 2 << 20, 3 << 20, 5 << 20 }) {
		size_t had = at(0).tx.got.size();

		settle();
		calls[0] = 0;
		for (size_t i = 1; i <= 8; i++) {
			corked = 0;
			ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY,
					       0));
			ASSERT_TRUE(ended(had + i));
			EXPECT_FALSE(last & MSG_MORE) << len;
			EXPECT_LE(1, corked) << len;
		}
		/*
		 * One each; on a loaded machine a pass may come between the data and
		 * DONE. Of a long one some MiB are acknowledged before its end.
		 */
		EXPECT_GT(len <= 2 << 20 ? 14 : 32, calls[0]) << len;
	}
	tdm_os = tdm_os_system;
	EXPECT_EQ(target, in);
	clean();
}

/* Many reads that were asked for at once are acknowledged while they come. */
TEST_F(TcpRma, ManyReadsAreAcknowledgedMeanwhile)
{
	const size_t n = 600, len = 30000;
	Bytes in(len);
	uint64_t most = 0;

	region(len);
	clean();
	const struct tdm_conn *c = at(0).conn(1);
	size_t had = at(0).tx.got.size();

	for (size_t i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY, 0));
	ASSERT_TRUE(until([&] {
		most = std::max(most, c->rx_pos - c->rx_said);
		return at(0).tx.got.size() == had + n;
	}));
	EXPECT_GT(5u << 20, most);
	clean();
}

/*
 * doc/PROTOCOL-tcp.md, "One-sided operations": a write of up to 4 MiB is neither
 * announced nor takes credit for its payload; a longer one is announced.
 */
TEST_F(TcpRma, LongWritesAreNotAnnounced)
{
	const size_t n = 8, len = TDM_WIRE_WRITE_BYTES;
	Bytes out = pattern(n * len, 1), more = pattern(len + 1, 2);
	struct tdm_conn *c;
	uint64_t charged;

	region(n * len + 1);
	clean();
	c = at(0).conn(1);
	charged = c->charged;
	for (size_t i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, &out[i * len], len, KEY,
				       i * len));
	ASSERT_TRUE(until([&] {
		EXPECT_EQ(0u, c->busy->rts);
		return at(0).tx.got.size() == n;
	}));
	EXPECT_EQ(n * TDM_WIRE_CHARGE_BYTES, c->charged - charged);
	EXPECT_TRUE(same(target, out, n * len));
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, more.data(), more.size(), KEY, 0));
	ASSERT_TRUE(until([&] { return c->busy->rts == 1; }));
	ASSERT_TRUE(ended(n + 1));
	EXPECT_TRUE(same(target, more, more.size()));
	clean();
}

/* Several buffers on both sides. */
TEST_F(TcpRma, Vectors)
{
	Bytes out = pattern(200000, 1), in(200000);
	struct iovec v[4] = { { &out[0], 1 },
			      { &out[1], 70000 },
			      { &out[70001], 0 },
			      { &out[70001], 129999 } };
	struct tdm_xfer x = {};

	region(200000);
	x.flags = FI_COMPLETION | FI_RMA | FI_WRITE;
	x.iov = v;
	x.count = 4;
	x.len = out.size();
	x.addr = 1;
	x.rma_key = KEY;
	ASSERT_EQ(0, tdm_tx_send(at(0).conn(1), &x));
	ASSERT_TRUE(ended(1));
	EXPECT_TRUE(target == out);
	for (auto &e : v)
		e.iov_base = &in[(unsigned char *)e.iov_base - &out[0]];
	x.flags = FI_COMPLETION | FI_RMA | FI_READ;
	ASSERT_EQ(0, tdm_tx_send(at(0).conn(1), &x));
	ASSERT_TRUE(ended(2));
	EXPECT_TRUE(in == out);
	clean();
}

TEST_F(TcpRma, LongerThanAnyMemory)
{
	region(8);
	EXPECT_EQ(-FI_EMSGSIZE,
		  at(0).rma(FI_READ, 1, NULL, SIZE_MAX / 2, KEY, 0));
	EXPECT_EQ(-FI_EMSGSIZE,
		  at(0).rma(FI_WRITE, 1, NULL, SIZE_MAX / 2, KEY, 0));
	at(0).rma(FI_READ, 1, NULL, TDM_WIRE_MSG_MAX, KEY, 0);
	refused(FI_EACCES, FI_READ);
	clean();
}

/*
 * The region is closed and its memory gone while a write is under way: the
 * sanitizers see a touch, the initiator is told, the next message is whole.
 */
TEST_F(TcpRma, RegionClosedDuringAWrite)
{
	for (size_t len :
	     { (size_t)60000, (size_t)(4 << 20), (size_t)(30 << 20) }) {
		nodes.clear();
		mesh(2);
		Bytes out = pattern(len, 1);
		std::unique_ptr<Bytes> gone(new Bytes(len));

		at(1).regions.add(KEY, gone->data(), len, FI_REMOTE_WRITE);
		/* Connected first, so that the write is cut in two. */
		at(0).send(1, "x", 1, 1, FI_INJECT);
		settle();
		ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out.data(), len, KEY, 0,
				       FI_REMOTE_CQ_DATA));
		if (len > (size_t)4 << 20) {
			ASSERT_TRUE(until([&] {
				return at(1).regions.in_flight &&
				       (*gone)[0] == out[0];
			}));
			ASSERT_EQ(1u, at(1).regions.in_flight);
		}
		at(1).regions.close(KEY);
		gone.reset();
		refused(FI_EACCES, FI_WRITE);
		EXPECT_EQ(0u, at(1).regions.in_flight);
		char in[8];
		at(1).recv(in, 8, 1);
		EXPECT_EQ(1u, at(1).rx.got.size());
		clean();
	}
}

/* The same with a read: the reply in the kernel's hands stays readable. */
TEST_F(TcpRma, RegionClosedDuringARead)
{
	const size_t len = 40 << 20; /* more than socket buffers hold */
	Bytes in(len);
	std::unique_ptr<Bytes> gone(new Bytes(pattern(len, 1)));

	mesh(2);
	at(1).regions.add(KEY, gone->data(), len, FI_REMOTE_READ);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY, 0));
	/* The initiator reads nothing once it has asked. */
	ASSERT_TRUE(until([&] { return at(1).regions.in_flight == 1; }));
	for (int i = 0; i < 1000; i++)
		at(1).progress();
	ASSERT_TRUE(at(1).conn(0)->borrow && at(1).conn(0)->blocked);
	at(1).regions.close(KEY);
	std::fill(gone->begin(), gone->end(), 0);
	gone.reset();
	refused(FI_EACCES, FI_READ);
	clean();
}

/* Closed before the last byte has gone, but after the last record began. */
TEST_F(TcpRma, RegionClosedInTheLastRecord)
{
	const size_t len = 500000;
	Bytes in(len);
	std::unique_ptr<Bytes> gone(new Bytes(pattern(len, 1)));

	mesh(2);
	at(1).regions.add(KEY, gone->data(), len, FI_REMOTE_READ);
	tdm_os.sendmsg = [](int fd, const struct msghdr *m, int flags) {
		struct msghdr less = *m;

		less.msg_iovlen = 1;
		return tdm_os_system.sendmsg(fd, &less, flags);
	};
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY, 0));
	ASSERT_TRUE(until(
		[&] { return at(1).conns.count(0) && at(1).conn(0)->borrow; }));
	at(1).regions.close(KEY);
	gone.reset();
	refused(FI_EACCES, FI_READ);
	clean();
}

/* Another region under the same key is another region. */
TEST_F(TcpRma, KeyUsedAgainDuringAWrite)
{
	const size_t len = 30 << 20;
	Bytes out = pattern(len, 1), other(len);

	region(len);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out.data(), len, KEY, 0));
	ASSERT_TRUE(until([&] { return at(1).regions.in_flight == 1; }));
	at(1).regions.close(KEY);
	at(1).regions.add(KEY, other.data(), len, FI_REMOTE_WRITE);
	refused(FI_EACCES, FI_WRITE);
	EXPECT_TRUE(other == Bytes(len));
	clean();
}

/* The target is lost: each operation ends once, no entry stays. */
TEST_F(TcpRma, TargetDies)
{
	const size_t len = 8 << 20;
	Bytes a(len), b(len);

	region(len);
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, a.data(), len, KEY, 0));
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, b.data(), len, KEY, 0));
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, "small", 6, KEY, 0));
	ASSERT_TRUE(until([&] { return at(1).regions.in_flight >= 2; }));
	at(1).close();
	EXPECT_EQ(0u, at(1).regions.in_flight);
	EXPECT_TRUE(at(1).rx.got.empty());
	std::fill(target.begin(), target.end(), 0);
	ASSERT_TRUE(ended(3));
	settle();
	EXPECT_EQ(3u, at(0).tx.got.size());
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
	EXPECT_EQ(3u, at(0).wrote.errors + at(0).wrote.value +
			      at(0).read.errors + at(0).read.value);
	EXPECT_EQ(1u, at(0).read.errors);
}

/* The initiator is lost: the target's regions are free again. */
TEST_F(TcpRma, InitiatorDies)
{
	const size_t len = 40 << 20;
	std::unique_ptr<Bytes> buf(new Bytes(len));

	region(len);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, buf->data(), len, KEY, 0));
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, buf->data(), len, KEY, 0));
	ASSERT_TRUE(until([&] { return at(1).regions.in_flight == 2; }));
	at(0).close();
	EXPECT_TRUE(at(0).tx.got.empty()) << "closing writes no entries";
	buf.reset();
	ASSERT_TRUE(until([&] {
		return at(1).lost.size() == 1 && !at(1).regions.in_flight;
	}));
	EXPECT_TRUE(at(1).rx.got.empty());
	EXPECT_EQ(0u, at(1).was_written.value);
	EXPECT_EQ(0u, at(1).was_read.value);
}

/* A write injected before the close is carried out. */
TEST_F(TcpRma, CloseDeliversWhatWasInjected)
{
	region(8);
	at(0).send(1, "x", 1, 1, FI_INJECT);
	settle();
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, "last", 5, KEY, 0,
			       FI_INJECT | FI_MORE));
	at(0).close();
	ASSERT_TRUE(until([&] { return at(1).was_written.value == 1; }));
	EXPECT_STREQ("last", (char *)&target[0]);
}

/* The address is removed at the initiator: no byte goes to its buffer then. */
TEST_F(TcpRma, ForgetDuringAReadAndAWrite)
{
	const size_t len = 30 << 20;
	std::unique_ptr<Bytes> in(new Bytes(len)), out(new Bytes(len));
	fi_addr_t one = 1;

	region(len);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in->data(), len, KEY, 0));
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out->data(), len, KEY, 0));
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, "eager", 6, KEY, 0));
	ASSERT_TRUE(until(
		[&] { return at(1).regions.in_flight >= 2 && (*in)[0]; }));
	ASSERT_EQ(0, fi_av_remove(tdm_av_fid(at(0).av), &one, 1, 0));
	ASSERT_EQ(3u, at(0).tx.got.size());
	for (const Comp &c : at(0).tx.got)
		EXPECT_TRUE(c.err == FI_ECONNABORTED || !c.err);
	in.reset();
	out.reset();
	ASSERT_TRUE(until([&] {
		return !at(0).tcp->tx_pool.in_use && !at(1).regions.in_flight;
	}));
	EXPECT_EQ(3u, at(0).tx.got.size());
	at(0).insert(at(1).addr);
	clean();
}

/* The target removes the initiator: that is no business of the operations. */
TEST_F(TcpRma, ForgetAtTheTarget)
{
	const size_t len = 20 << 20;
	Bytes in(len), out = pattern(len, 1);
	fi_addr_t zero = 0;

	region(len);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), len, KEY, 0));
	ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, out.data(), len, KEY, 0));
	ASSERT_TRUE(until([&] { return at(1).regions.in_flight == 2; }));
	ASSERT_EQ(0, fi_av_remove(tdm_av_fid(at(1).av), &zero, 1, 0));
	ASSERT_TRUE(ended(2));
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_EQ(0, at(0).tx.got[1].err);
	EXPECT_TRUE(target == out);
	clean();
}

std::mt19937 dice;

size_t cut(size_t n)
{
	return dice() % 3 ? n : 1 + dice() % n;
}

ssize_t cut_send(int fd, const void *p, size_t n, int flags)
{
	return tdm_os_system.send(fd, p, cut(n), flags);
}

ssize_t cut_recv(int fd, void *p, size_t n, int flags)
{
	return tdm_os_system.recv(fd, p, cut(n), flags);
}

ssize_t cut_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct iovec v = m->msg_iov[0];

	if (dice() % 2)
		return tdm_os_system.sendmsg(fd, m, flags);
	return tdm_os_system.send(fd, v.iov_base, cut(v.iov_len), flags);
}

ssize_t cut_readv(int fd, const struct iovec *v, int n)
{
	return tdm_os_system.readv(fd, v, 1 + (int)(dice() % (unsigned)n));
}

/*
 * All kinds at once in both directions, system calls cut short, regions closed
 * at any time: each operation ends once; the bytes of those that succeeded are
 * in place.
 */
TEST_F(TcpRma, RandomTraffic)
{
	struct Op {
		uint64_t kind, key;
		unsigned from;
		Bytes buf;
	};
	const unsigned rounds = 30, per = 40;
	uint64_t key = 0;

	dice.seed(5);
	tdm_os.send = cut_send;
	tdm_os.recv = cut_recv;
	tdm_os.sendmsg = cut_sendmsg;
	tdm_os.readv = cut_readv;
	mesh(2);
	for (unsigned round = 0; round < rounds; round++) {
		std::vector<std::unique_ptr<Op>> ops;
		std::map<uint64_t, std::unique_ptr<Bytes>> memory;
		std::map<uint64_t, Bytes> want;
		std::set<uint64_t> closed;
		std::map<Op *, int> ends;
		unsigned refusals = 0;

		for (unsigned i = 0; i < per; i++) {
			std::unique_ptr<Op> o(new Op());
			size_t len = dice() % (dice() % 4 ? 5000 : 400000);
			uint64_t flags = FI_COMPLETION;

			o->from = dice() % 2;
			o->key = ++key;
			o->kind = dice() % 2 ? FI_READ : FI_WRITE;
			want[key] = pattern(len, i + round);
			memory[key].reset(new Bytes(
				o->kind == FI_READ ? want[key] : Bytes(len)));
			o->buf = o->kind == FI_READ ? Bytes(len) : want[key];
			at(!o->from).regions.add(key, memory[key]->data(), len,
						 o->kind == FI_READ ?
							 FI_REMOTE_READ :
							 FI_REMOTE_WRITE);
			if (o->kind == FI_WRITE && dice() % 2)
				flags |= FI_REMOTE_CQ_DATA;
			ASSERT_EQ(0, at(o->from).rma(o->kind, !o->from,
						     o->buf.data(), len, key, 0,
						     flags, o.get(), key));
			ops.push_back(std::move(o));
			if (dice() % 4 == 0)
				turn();
			if (dice() % 8 == 0) {
				Op &v = *ops[dice() % ops.size()];

				at(!v.from).regions.close(v.key);
				closed.insert(v.key);
				memory[v.key].reset();
			}
		}
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() + at(1).tx.got.size() == per;
		}));
		for (unsigned side = 0; side < 2; side++) {
			for (const Comp &c : at(side).tx.got) {
				Op *o = static_cast<Op *>(c.context);

				EXPECT_EQ(1, ++ends[o]);
				EXPECT_EQ(side, o->from);
				refusals += !!c.err;
				if (c.err) {
					EXPECT_EQ(FI_EACCES, c.err);
					EXPECT_TRUE(closed.count(o->key));
				} else if (o->kind == FI_READ) {
					EXPECT_TRUE(o->buf == want[o->key]);
				} else if (!closed.count(o->key)) {
					EXPECT_TRUE(*memory[o->key] ==
						    want[o->key]);
				}
			}
			at(side).tx.got.clear();
		}
		for (unsigned side = 0; side < 2; side++)
			at(side).rx.got.clear();
		EXPECT_LE(refusals, closed.size());
		for (auto &o : ops)
			at(!o->from).regions.close(o->key);
	}
	clean();
}

} // namespace
