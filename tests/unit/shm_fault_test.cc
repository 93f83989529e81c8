/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory peer survives peers that die, and strangers.
 */
#include <csignal>
#include <random>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/env.h"
#include "shm_world.h"

extern "C" {
#include "shm/packet.h"
#include "shm/lifeline.h"
}

#include "tdm_live.h"

using namespace shm_test;

namespace
{

/* The attach socket of the endpoint with @port: as doc/PROTOCOL-shm.md says. */
int dial(uint16_t port)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un;
	int n;

	memset(&un, 0, sizeof(un));
	un.sun_family = AF_UNIX;
	n = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1,
		     "tandem/4:%04x%08x0000000000000000", port, host);
	if (connect(fd, reinterpret_cast<struct sockaddr *>(&un),
		    socklen_t(offsetof(struct sockaddr_un, sun_path) + 1 +
			      size_t(n)))) {
		::close(fd);
		return -1;
	}
	return fd;
}

struct tdm_shm_hello hello(uint16_t port)
{
	struct sockaddr_in in = address(port);
	struct tdm_shm_hello h;

	memset(&h, 0, sizeof(h));
	h.head.magic = TDM_SHM_MAGIC;
	h.head.type = TDM_SHM_MSG_HELLO;
	h.head.bytes = sizeof(h);
	h.version_least = h.version_most = 1;
	memset(h.incarnation, 0xff, sizeof(h.incarnation));
	h.slots = TDM_SHM_RING_SMALL_SLOTS;
	h.addrlen = sizeof(in);
	memcpy(h.addr, &in, sizeof(in));
	return h;
}

/* A process that talks to an endpoint of ours and is then killed. */
struct Child {
	pid_t pid = 0;
	int fd = -1; /* a byte from it: it is where it should be */

	void start(const std::function<void(int)> &body)
	{
		int p[2];

		ASSERT_EQ(pipe(p), 0);
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			body(p[1]);
			_exit(0);
		}
		::close(p[1]);
		fd = p[0];
		fcntl(fd, F_SETFL, O_NONBLOCK);
	}

	bool said()
	{
		char c;

		return read(fd, &c, 1) == 1;
	}

	void kill()
	{
		if (pid > 0) {
			::kill(pid, SIGKILL);
			waitpid(pid, nullptr, 0);
		}
		if (fd >= 0)
			::close(fd);
		pid = 0;
		fd = -1;
	}

	~Child()
	{
		kill();
	}
};

uint64_t still_ns; /* what a clock says that stands still */

/* In a child: an endpoint at @port that knows the one at @other. */
struct tdt_owner *child_open(uint16_t port, uint16_t other)
{
	struct sockaddr_in in = address(port), out = address(other);
	struct tdt_owner_attr attr = {};
	struct tdt_owner *o;

	attr.name = &in;
	attr.namelen = sizeof(in);
	attr.selective = 1;
	if (tdt_owner_open(tdm_shm_provider(), &attr, &o))
		_exit(3);
	tdt_owner_insert(o, &out, sizeof(out), 1);
	return o;
}

/* In a child: send, retrying, also while nobody listens yet. */
void child_send(struct tdt_owner *o, const void *buf, size_t len, uint64_t tag)
{
	while (fi_tsend(o->ep, buf, len, nullptr, 0, tag, nullptr))
		tdt_owner_progress(o);
}

} // namespace

class DeathTest : public ShmTest
{
protected:
	uint16_t port = 0, child_port = 0;
	struct tdt_owner *o = nullptr;
	fi_addr_t to_child = 0;
	Child child;

	void SetUp() override
	{
		ShmTest::SetUp();
		port = next_port();
		child_port = next_port();
	}

	void TearDown() override
	{
		child.kill();
		ShmTest::TearDown();
	}

	/* Only after the child was forked: it must not inherit. */
	void open_ours()
	{
		struct sockaddr_in in = address(child_port);

		o = open(port);
		to_child = tdt_owner_insert(o, &in, sizeof(in), 7);
	}

	bool lost()
	{
		return tdt_owner_event(o, TDM_PEER_LOST) != nullptr;
	}
};

/*
 * Published messages are delivered, then the loss is reported, and no time has
 * to pass for that.
 */
TEST_F(DeathTest, PublishedMessagesOfADeadPeerAreDelivered)
{
	child.start([&](int fd) {
		struct tdt_owner *c = child_open(child_port, port);

		for (uint64_t i = 0; i < 10; i++)
			child_send(c, &i, 8, 1);
		(void)!write(fd, "x", 1);
		pause();
	});
	open_ours();
	/* Progress only until the attach is done, then let it die. */
	ASSERT_TRUE(until([&] { return tdt_owner_queued(o) > 0; }));
	ASSERT_TRUE(until([&] { return child.said(); }));
	child.kill();
	still_ns = tdm_os.now_ns();
	tdm_os.now_ns = [] {
		return still_ns;
	};
	ASSERT_TRUE(until([&] { return lost(); }));
	EXPECT_EQ(tdt_owner_queued(o), 10u);
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t v = 99;

		tdt_owner_trecv(o, &v, 8, 1, &v);
		EXPECT_EQ(v, i);
	}
	EXPECT_EQ(tdt_owner_event(o, TDM_PEER_LOST)->err, FI_ECONNRESET);
	EXPECT_EQ(tdt_owner_event(o, TDM_PEER_LOST)->entry.data, 7u);
}

/* Sends under way end once, with ECONNRESET; later ones meet nobody. */
TEST_F(DeathTest, SendsToADeadPeerFail)
{
	std::vector<char> big(1 << 20, 'x');
	char c[3];

	child.start([&](int fd) {
		struct tdt_owner *ch = child_open(child_port, port);

		while (tdt_owner_queued(ch) < 3)
			tdt_owner_progress(ch);
		(void)!write(fd, "x", 1);
		for (;;)
			tdt_owner_progress(ch);
	});
	open_ours();
	for (int i = 0; i < 3; i++) {
		struct iovec iov = { big.data(), big.size() };
		struct fi_msg_tagged msg = {};
		uint64_t level = i == 2 ? FI_DELIVERY_COMPLETE : 0;

		if (i == 2)
			iov.iov_len = 10;
		msg.msg_iov = &iov;
		msg.iov_count = 1;
		msg.addr = to_child;
		msg.context = &c[i];
		ASSERT_TRUE(until([&] {
			return !fi_tsendmsg(o->ep, &msg, FI_COMPLETION | level);
		}));
	}
	ASSERT_TRUE(until([&] { return child.said(); }));
	EXPECT_EQ(o->dones, 0u);
	child.kill();
	ASSERT_TRUE(until([&] { return lost(); }));
	ASSERT_EQ(o->dones, 3u);
	for (int i = 0; i < 3; i++) {
		ASSERT_NE(tdt_owner_find(o, &c[i]), nullptr);
		EXPECT_EQ(tdt_owner_find(o, &c[i])->err, FI_ECONNRESET);
	}
	EXPECT_EQ(o->send_errs, 3u);
	EXPECT_EQ(fi_tsend(o->ep, c, 1, nullptr, to_child, 1, c),
		  -FI_ECONNREFUSED);
	EXPECT_EQ(shared_maps(), 1u); /* our own hints */
}

/* A check of the peer costs as much as the copy of a few kilobytes. */
TEST_F(PairTest, LongSendsSeldomAskWhetherThePeerLives)
{
	static uint64_t polls;
	static int (*real)(struct pollfd *, nfds_t, int);
	std::vector<char> out(4000, 'x');

	meet();
	still_ns = tdm_os.now_ns();
	tdm_os.now_ns = tdm_os.tick_ns = [] {
		return still_ns;
	};
	real = tdm_os.poll;
	tdm_os.poll = [](struct pollfd *p, nfds_t n, int timeout) {
		polls++;
		return real(p, n, timeout);
	};
	for (int i = 0; i < 100; i++) /* the ring and the distance grow */
		exchange(out.size(), 1);
	ASSERT_EQ(pair_of(a)->look_slots, 63u);
	polls = 0;
	for (int i = 0; i < 12; i++)
		ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 2, nullptr),
			  0);
	EXPECT_LE(polls, 2u);
	while (tdt_owner_queued(b) < 12)
		tdt_owner_progress(b);
}

/* An announced message whose sender died ends when it is received. */
TEST_F(DeathTest, AnnouncedMessageOfADeadPeerFailsWhenStarted)
{
	std::vector<char> in(1 << 20);
	char ctx;

	child.start([&](int fd) {
		struct tdt_owner *c = child_open(child_port, port);
		static char big[1 << 20];

		child_send(c, big, sizeof(big), 1);
		child_send(c, big, 5, 2);
		(void)!write(fd, "x", 1);
		pause();
	});
	open_ours();
	ASSERT_TRUE(until([&] { return tdt_owner_queued(o) == 2; }));
	child.kill();
	ASSERT_TRUE(until([&] { return lost(); }));
	tdt_owner_trecv(o, in.data(), in.size(), 1, &ctx);
	ASSERT_EQ(o->dones, 1u);
	EXPECT_EQ(o->done[0].err, FI_ECONNRESET);
	EXPECT_EQ(o->done[0].context, &ctx);
	tdt_owner_trecv(o, in.data(), in.size(), 2, &ctx);
	ASSERT_EQ(o->dones, 2u);
	EXPECT_EQ(o->done[1].err, 0);
	EXPECT_EQ(o->done[1].len, 5u);
	EXPECT_EQ(o->entries, 0u);
}

/* A receive that is being filled ends with ECONNRESET. */
TEST_F(DeathTest, ReceiveBeingFilledFails)
{
	std::vector<char> in(64 << 20);
	char ctx;

	tdm_env.cma = 0;
	child.start([&](int fd) {
		struct tdt_owner *c = child_open(child_port, port);
		static char big[64 << 20];

		child_send(c, big, sizeof(big), 1);
		(void)!write(fd, "x", 1);
		for (;;)
			tdt_owner_progress(c);
	});
	open_ours();
	tdt_owner_trecv(o, in.data(), in.size(), 1, &ctx);
	ASSERT_TRUE(until([&] { return child.said(); }));
	ASSERT_TRUE(until([&] {
		struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(o->ep);
		struct tdm_shm_pair *p = tdm_list_entry(
			ep->pairs.next, struct tdm_shm_pair, all);

		return p->bounce_rx > 3;
	}));
	child.kill();
	ASSERT_TRUE(until([&] { return o->dones == 1; }));
	EXPECT_EQ(o->done[0].err, FI_ECONNRESET);
	EXPECT_EQ(o->done[0].context, &ctx);
	EXPECT_EQ(o->recv_errs, 1u);
}

/* A stopped peer is no error; it goes on where it was. */
TEST_F(DeathTest, StoppedPeerIsWaitedFor)
{
	uint64_t sent = 0;
	char got = 0;

	child.start([&](int fd) {
		struct tdt_owner *c = child_open(child_port, port);
		size_t n = 0;

		while (n < 3000) {
			tdt_owner_progress(c);
			while (!tdt_owner_discard(c))
				n++;
		}
		child_send(c, "k", 1, 9);
		(void)!write(fd, "x", 1);
		for (;;)
			tdt_owner_progress(c);
	});
	open_ours();
	ASSERT_TRUE(
		until([&] { return !fi_tinject(o->ep, "a", 1, to_child, 1); }));
	sent = 1;
	kill(child.pid, SIGSTOP);
	int again = 0;
	for (int i = 0; i < 20000; i++) {
		ssize_t ret = sent < 3000 ?
				      fi_tinject(o->ep, "a", 1, to_child, 1) :
				      -FI_EAGAIN;

		ASSERT_TRUE(ret == 0 || ret == -FI_EAGAIN);
		sent += !ret;
		again += !!ret;
		step();
	}
	EXPECT_GT(again, 0);
	EXPECT_FALSE(lost());
	kill(child.pid, SIGCONT);
	tdt_owner_trecv(o, &got, 1, 9, &got);
	ASSERT_TRUE(until([&] {
		while (sent < 3000 && !fi_tinject(o->ep, "a", 1, to_child, 1))
			sent++;
		return o->dones == 1;
	}));
	EXPECT_EQ(got, 'k');
}

/*
 * Another process at the same address is a new session, and what was under way to
 * the one before has ended when the first message of the new one is there.
 */
TEST_F(DeathTest, RestartedPeerIsReachedAgain)
{
	std::vector<char> big(1 << 20, 'x');
	char ctx;

	for (int round = 0; round < 3; round++) {
		child.start([&](int fd) {
			struct tdt_owner *c = child_open(child_port, port);

			child_send(c, "hello", 5, 1);
			(void)!write(fd, "x", 1);
			for (;;)
				tdt_owner_progress(c);
		});
		if (!o)
			open_ours();
		ASSERT_TRUE(until([&] { return tdt_owner_queued(o) == 1; }));
		if (round == 2) {
			ASSERT_NE(tdt_owner_find(o, &ctx), nullptr);
			EXPECT_EQ(tdt_owner_find(o, &ctx)->err, FI_ECONNRESET);
		}
		ASSERT_TRUE(until([&] {
			return !fi_tinject(o->ep, "a", 1, to_child, 1);
		}));
		EXPECT_EQ(tdt_owner_queued_source(o), 7u);
		tdt_owner_discard(o);
		size_t events = o->nevents;
		if (round == 1) {
			ASSERT_EQ(fi_tsend(o->ep, big.data(), big.size(),
					   nullptr, to_child, 1, &ctx),
				  0);
			ASSERT_EQ(tdt_owner_find(o, &ctx), nullptr);
		}
		child.kill();
		/* No progress in between: the attach finds the old session. */
		if (round == 1)
			continue;
		ASSERT_TRUE(until([&] { return o->nevents > events; }));
		EXPECT_TRUE(lost());
	}
}

/* ---- strangers ------------------------------------------------------------ */

class StrangerTest : public PairTest
{
protected:
	/* The endpoint works as if nothing had been. */
	void still_fine()
	{
		exchange(100, 1);
		exchange(100000, 2);
	}

	/* Has the other end closed @fd? Reads the bytes sent before. */
	bool closed(int fd, struct tdm_shm_msg_head *last = nullptr)
	{
		bool end = until([&] {
			char buf[512];
			ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

			if (n >= ssize_t(sizeof(*last)) && last)
				memcpy(last, buf, sizeof(*last));
			return n == 0 || (n < 0 && errno != EAGAIN);
		});

		::close(fd);
		return end;
	}

	/* Send @h with @fds as an initiator would. */
	void say(int fd, const struct tdm_shm_hello &h, std::vector<int> fds)
	{
		ASSERT_EQ(tdm_shm_packet_send(fd, &h, sizeof(h), fds.data(),
					      int(fds.size())),
			  0);
		for (int f : fds)
			::close(f);
	}
};

/* Nothing that is not a HELLO gets an answer. */
TEST_F(StrangerTest, L1_GarbageOnTheSocketIsDroppedSilently)
{
	std::mt19937_64 rng(3);

	for (int i = 0; i < 200; i++) {
		int fd = dial(port_a);
		char buf[300];
		struct tdm_shm_msg_head last = {};

		ASSERT_GE(fd, 0);
		for (char &c : buf)
			c = char(rng());
		if (i % 3 == 0)
			memcpy(buf, &(const uint64_t &)uint64_t(TDM_SHM_MAGIC),
			       8);
		(void)!::send(fd, buf, 1 + rng() % sizeof(buf), MSG_NOSIGNAL);
		if (i % 2)
			::close(fd);
		else
			EXPECT_TRUE(closed(fd, &last));
		EXPECT_EQ(last.type, 0);
	}
	EXPECT_EQ(a->nevents, 0u);
	still_fine();
}

TEST_F(StrangerTest, L3_DescriptorsThatAreNotSegmentsAreRefused)
{
	auto memfd = [](size_t size, int seals) {
		int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		(void)!fallocate(fd, 0, 0, off_t(size));
		if (seals)
			fcntl(fd, F_ADD_SEALS, seals);
		return fd;
	};
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
			F_SEAL_FUTURE_WRITE;
	const int hints = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	auto event = [] {
		return eventfd(0, EFD_CLOEXEC);
	};
	auto null = [] {
		return ::open("/dev/null", O_RDWR | O_CLOEXEC);
	};
	std::vector<std::vector<int>> cases = {
		{ null(), null(), null() },
		{ memfd(4096, 0), memfd(4096, hints), event() },
		{ memfd(4096, F_SEAL_SHRINK), memfd(4096, hints), event() },
		{ memfd(8192, all), memfd(4096, hints), event() },
		{ memfd(100, all), memfd(4096, hints), event() },
		/* As required, but the head does not say so. */
		{ memfd(4096, all), memfd(4096, hints), event() },
		{ memfd(4096, all), memfd(4096, 0), event() },
		{ memfd(4096, all), memfd(4096, hints), null() },
		{ ::open("/", O_RDONLY | O_CLOEXEC), event(), event() },
		{ ::open("/tmp", O_PATH | O_CLOEXEC), event(), event() },
	};

	for (auto &c : cases) {
		uint16_t port = next_port();
		struct tdm_shm_msg_head last = {};
		int fd = dial(port_a);

		ASSERT_GE(fd, 0);
		say(fd, hello(port), c);
		EXPECT_TRUE(closed(fd, &last));
		EXPECT_EQ(last.type, TDM_SHM_MSG_REJECT);
		EXPECT_EQ(last.arg, unsigned(TDM_SHM_WHY_SEGMENT));
	}
	still_fine();
}

/* With a head as it must be, but of another size, with a hole, or not sealed. */
TEST_F(StrangerTest, L3_SegmentsThatLieAreRefused)
{
	const size_t whole = tdm_shm_seg_bytes(TDM_SHM_RING_BUSY_SLOTS);
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
			F_SEAL_FUTURE_WRITE;
	const struct {
		size_t size;
		bool hole;
		int seals;
	} cases[] = {
		{ 4096, false, all },
		{ whole - 4096, false, all },
		{ whole + 4096, false, all },
		{ whole, true, all },
		{ whole, false, all & ~F_SEAL_SHRINK },
		{ whole, false, all & ~F_SEAL_FUTURE_WRITE },
	};

	for (auto &c : cases) {
		struct tdm_shm_hello h = hello(next_port());
		struct tdm_shm_msg_head last = {};
		struct tdm_shm_seg seg = {};
		int hints = memfd_create("h", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		int m = memfd_create("s", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		int fd = dial(port_a);

		ASSERT_GE(fd, 0);
		h.slots = TDM_SHM_RING_BUSY_SLOTS;
		tdm_shm_seg_init(&seg, h.slots, 0, h.incarnation);
		ASSERT_EQ(ftruncate(m, off_t(c.size)), 0);
		if (!c.hole) {
			ASSERT_EQ(fallocate(m, 0, 0, off_t(c.size)), 0);
		}
		ASSERT_EQ(pwrite(m, &seg, sizeof(seg), 0), (int)sizeof(seg));
		fcntl(m, F_ADD_SEALS, c.seals);
		ASSERT_EQ(fallocate(hints, 0, 0, 4096), 0);
		fcntl(hints, F_ADD_SEALS,
		      F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		say(fd, h, { m, hints, eventfd(0, EFD_CLOEXEC) });
		EXPECT_TRUE(closed(fd, &last)) << c.size << " " << c.seals;
		EXPECT_EQ(last.type, TDM_SHM_MSG_REJECT);
		EXPECT_EQ(last.arg, unsigned(TDM_SHM_WHY_SEGMENT));
	}
	still_fine();
}

TEST_F(StrangerTest, L3_TooManyDescriptorsAreAllClosed)
{
	std::vector<int> fds;
	size_t before = tdt_open_files();

	for (int n : { 0, 1, 2, 3 }) {
		int fd = dial(port_a);
		std::vector<int> pass;

		for (int i = 0; i < n; i++)
			pass.push_back(eventfd(0, EFD_CLOEXEC));
		struct tdm_shm_hello h = hello(next_port());
		h.head.bytes = 11;
		say(fd, h, pass);
		EXPECT_TRUE(closed(fd));
	}
	/* More than fit, on one packet. */
	int fd = dial(port_a);
	char room[CMSG_SPACE(250 * sizeof(int))] = {};
	struct tdm_shm_hello h = hello(next_port());
	struct iovec iov = { &h, sizeof(h) };
	struct msghdr mh = {};
	int e = eventfd(0, EFD_CLOEXEC);
	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	mh.msg_control = room;
	mh.msg_controllen = sizeof(room);
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(250 * sizeof(int));
	for (int i = 0; i < 250; i++)
		memcpy(CMSG_DATA(c) + size_t(i) * sizeof(int), &e, sizeof(e));
	ASSERT_GT(sendmsg(fd, &mh, 0), 0);
	::close(e);
	EXPECT_TRUE(closed(fd));
	EXPECT_EQ(tdt_open_files(), before);
	still_fine();
}

/* Silence costs a socket for five seconds at most, 64 at once. */
TEST_F(StrangerTest, L1_SilentConnectionsAreBoundedInNumberAndTime)
{
	static uint64_t skew;
	std::vector<int> fds;

	skew = 0;
	tdm_os.now_ns = [] {
		return tdm_os_system.now_ns() + skew;
	};
	for (int i = 0; i < 100; i++) {
		fds.push_back(dial(port_a));
		ASSERT_GE(fds.back(), 0);
	}
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(a->ep);
	ASSERT_TRUE(until([&] { return ep->unauth == 64; }));
	for (int i = 0; i < 1000; i++)
		step();
	EXPECT_EQ(ep->unauth, 64u);
	still_fine();
	skew = 5100000000ull;
	ASSERT_TRUE(until([&] { return ep->unauth == 0; }));
	for (int fd : fds)
		EXPECT_TRUE(closed(fd));
}

/*
 * doc/PROTOCOL-shm.md, "Attach": of sockets that bring no HELLO, 64 are kept, and
 * the next is closed without an answer. After eight of those the initiator takes
 * it for a refusal: the pair uses another transport, on both sides.
 */
TEST_F(StrangerTest, L1_SilentConnectionsLeaveThePairToTcp)
{
	static uint64_t skew;
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(b->ep);
	std::vector<int> fds;
	ssize_t ret;
	int tries = 0;
	char c = 0;

	skew = 0;
	tdm_os.now_ns = [] {
		return tdm_os_system.now_ns() + skew;
	};
	for (int i = 0; i < 64; i++)
		fds.push_back(dial(port_b));
	ASSERT_TRUE(until([&] { return ep->unauth == 64; }));
	do {
		ASSERT_LT(++tries, 10000);
		ret = tsend(a, to_b, &c, 1, 1, &c);
		step();
	} while (ret == -FI_EAGAIN || ret == -FI_ECONNREFUSED);
	EXPECT_EQ(ret, -FI_EHOSTUNREACH);
	EXPECT_EQ(ep->unauth, 64u);
	ASSERT_NE(tdt_owner_event(a, TDM_PEER_REFUSED), nullptr);
	EXPECT_EQ(tdt_owner_event(a, TDM_PEER_REFUSED)->reason,
		  unsigned(TDM_REASON_REFUSED));
	EXPECT_EQ(retry([&] { return tsend(b, to_a, &c, 1, 1, &c); }),
		  -FI_EHOSTUNREACH);
	/* Time makes room, and inserting an address a new attempt. */
	skew = 5100000000ull;
	ASSERT_TRUE(until([&] { return ep->unauth == 0; }));
	for (int fd : fds)
		EXPECT_TRUE(closed(fd));
	ASSERT_EQ(fi_av_remove(a->av, &to_b, 1, 0), 0);
	ASSERT_EQ(fi_av_remove(b->av, &to_a, 1, 0), 0);
	to_b = insert(a, port_b, id_b);
	to_a = insert(b, port_a, id_a);
	still_fine();
}

/* A version we do not speak is told so, and the pair is left alone. */
TEST_F(StrangerTest, LaterVersionIsRejectedByName)
{
	struct tdm_shm_msg_head last = {};
	struct tdm_shm_hello h = hello(next_port());
	int fd = dial(port_a);

	h.version_least = 2;
	h.version_most = 3;
	say(fd, h,
	    { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC),
	      eventfd(0, EFD_CLOEXEC) });
	EXPECT_TRUE(closed(fd, &last));
	EXPECT_EQ(last.type, TDM_SHM_MSG_REJECT);
	EXPECT_EQ(last.arg, unsigned(TDM_SHM_WHY_VERSION));
	still_fine();
}

/* A process that claims the address of a live session is refused. */
TEST_F(StrangerTest, LiveSessionIsNotDisplaced)
{
	struct tdm_shm_msg_head last = {};

	meet();
	int fd = dial(port_b);
	say(fd, hello(port_a),
	    { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC),
	      eventfd(0, EFD_CLOEXEC) });
	EXPECT_TRUE(closed(fd, &last));
	EXPECT_EQ(last.type, TDM_SHM_MSG_REJECT);
	EXPECT_EQ(last.arg, unsigned(TDM_SHM_WHY_BUSY));
	EXPECT_EQ(b->nevents, 1u);
	still_fine();
}

/* A HELLO of another process with our own name is a lie. */
TEST_F(StrangerTest, OwnNameIsNotAccepted)
{
	int fd = dial(port_a);
	struct tdm_shm_msg_head last = {};

	say(fd, hello(port_a),
	    { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC),
	      eventfd(0, EFD_CLOEXEC) });
	EXPECT_TRUE(closed(fd, &last));
	EXPECT_EQ(last.type, 0);
	still_fine();
}

/* Another user id, told apart by the kernel's word alone. */
TEST_F(PairTest, L1_OtherUserIsRefusedOnBothSides)
{
	static int lie;
	char c = 0;

	lie = 1;
	tdm_os.getsockopt = [](int fd, int level, int name, void *val,
			       socklen_t *len) {
		int ret = tdm_os_system.getsockopt(fd, level, name, val, len);

		if (!ret && lie && name == SO_PEERCRED)
			static_cast<struct ucred *>(val)->uid++;
		return ret;
	};
	EXPECT_EQ(tsend(a, to_b, &c, 1, 1, &c), -FI_EHOSTUNREACH);
	EXPECT_EQ(tsend(a, to_b, &c, 1, 1, &c), -FI_EHOSTUNREACH);
	ASSERT_EQ(a->nevents, 1u);
	EXPECT_EQ(a->events[0].reason, unsigned(TDM_REASON_UID));
	/* The acceptor's own check: before any byte is read. */
	int fd = dial(port_b);
	ASSERT_GE(fd, 0);
	EXPECT_TRUE(until([&] {
		char buf[8];

		return recv(fd, buf, 8, MSG_DONTWAIT) == 0;
	}));
	::close(fd);
	/* The pair agreed on another transport: so says the other side too. */
	lie = 0;
	ssize_t ret = -FI_EAGAIN;
	until([&] {
		ret = tsend(b, to_a, &c, 1, 1, &c);
		return ret != -FI_EAGAIN;
	});
	EXPECT_EQ(ret, -FI_EHOSTUNREACH);
	EXPECT_EQ(tdt_owner_event(b, TDM_PEER_REFUSED)->reason,
		  unsigned(TDM_REASON_REFUSED));
	/* Re-inserting gives it a new chance. */
	ASSERT_EQ(fi_av_remove(a->av, &to_b, 1, 0), 0);
	ASSERT_EQ(fi_av_remove(b->av, &to_a, 1, 0), 0);
	to_b = insert(a, port_b, id_b);
	to_a = insert(b, port_a, id_a);
	exchange(50, 1);
}

/* The owner of b has operations on their way to TCP: a waits until they are there. */
TEST_F(StrangerTest, ACallerWaitsWhileTheOwnerWaitsForTcp)
{
	struct Owner {
		uint16_t port;
		int waits;
		unsigned asked;
	} owner = { port_a, 1, 0 };
	struct tdm_live_ops *ops = nullptr;
	char c = 1, d = 0;

	ASSERT_EQ(0, fi_open_ops(&b->ep->fid, TDM_LIVE_OPS, 0,
				 reinterpret_cast<void **>(&ops), nullptr));
	ops->ask(
		b->ep,
		[](void *arg, const void *addr, size_t len, uint32_t key) {
			auto *o = static_cast<Owner *>(arg);
			struct sockaddr_in in = address(o->port);

			EXPECT_EQ(sizeof(in), len);
			EXPECT_EQ(0, memcmp(&in, addr, sizeof(in)));
			EXPECT_EQ(0u, key);
			o->asked++;
			return o->waits;
		},
		&owner);
	tdt_owner_trecv(b, &d, 1, 7, &d);
	ASSERT_TRUE(until([&] {
		EXPECT_EQ(-FI_EAGAIN, tsend(a, to_b, &c, 1, 7, &c));
		return owner.asked > 3;
	}));
	EXPECT_EQ(nullptr, pair_of(b));
	owner.waits = 0;
	ASSERT_EQ(0, send(a, to_b, &c, 1, 7, &c));
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, &d) != nullptr; }));
	EXPECT_EQ(1, d);
}
