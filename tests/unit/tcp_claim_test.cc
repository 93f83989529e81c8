/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address that a connection claims, and the share of strangers:
 * doc/PROTOCOL-tcp.md "Claims", "Guests" and "Strangers' share", fi_tandem(7)
 * SECURITY and LIMITS.
 */
#include "tcp_raw.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>

extern "C" {
#include "tcp/wire/diag.h"
}

#define OK(call) ASSERT_NO_FATAL_FAILURE(call)

using namespace tcp_test;

namespace
{

int diag_fd = -1;
bool other_user; /* who listens is another user than who calls */

int watched_socket(int domain, int type, int protocol)
{
	int fd = tdm_os_system.socket(domain, type, protocol);

	if (domain == AF_NETLINK)
		diag_fd = fd;
	return fd;
}

/* The kernel's answers about listeners, with another uid. */
ssize_t altered_recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t n = tdm_os_system.recv(fd, buf, len, flags);
	auto *head = static_cast<struct nlmsghdr *>(buf);
	struct inet_diag_msg m;

	if (fd != diag_fd || !other_user ||
	    n < (ssize_t)NLMSG_LENGTH(sizeof(m)))
		return n;
	memcpy(&m, NLMSG_DATA(head), sizeof(m));
	m.idiag_uid += m.idiag_state == TCP_LISTEN;
	memcpy(NLMSG_DATA(head), &m, sizeof(m));
	return n;
}

int no_fd_for_diag(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK)
		return tdm_os_system.socket(domain, type, protocol);
	errno = EMFILE;
	return -1;
}

int nobody_yet(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	(void)fd;
	(void)addr;
	(void)len;
	(void)flags;
	errno = EAGAIN;
	return -1;
}

/* Returns 0 or the error of bind(2), where this host has no address @ip. */
int cannot_bind(const char *ip)
{
	struct tdm_addr a = ip_addr(ip);
	int fd = socket(a.u.sa.sa_family, SOCK_STREAM, 0), err = 0;

	if (fd < 0 || bind(fd, &a.u.sa, tdm_addr_len(&a)))
		err = errno;
	if (fd >= 0)
		::close(fd);
	return err;
}

/* Over the loopback address of each family. */
class TcpClaim : public TcpFault,
		 public testing::WithParamInterface<const char *>
{
protected:
	std::unique_ptr<Door> door;
	uint16_t port = 0;
	char in = 0;

	TcpClaim()
	{
		other_user = false;
		tdm_os.socket = watched_socket;
		tdm_os.recv = altered_recv;
		ip = GetParam();
	}

	void SetUp() override
	{
		int err = cannot_bind(ip), ret;

		if (err == EAFNOSUPPORT || err == EADDRNOTAVAIL)
			GTEST_SKIP() << ip << ": " << strerror(err);
		/* The kernel that answers for one family answers for both. */
		ret = asked(Door().addr);
		if (ret)
			GTEST_SKIP() << "the kernel does not say whose a "
					"socket is: "
				     << strerror(-ret);
		add();
		ASSERT_EQ(0, asked(at(0).addr));
	}

	/* Does the kernel tell of the listener at @a? 0 or -errno. */
	static int asked(const struct tdm_addr &a)
	{
		struct tdm_diag_sock sock;
		int fd = tdm_diag_open(), ret;

		if (fd < 0)
			return fd;
		ret = tdm_diag_find(fd, &a, NULL, &sock);
		::close(fd);
		return ret;
	}

	void TearDown() override
	{
		door.reset();
		TcpFault::TearDown();
	}

	/* @raw has a listener, as every peer has. */
	void listens()
	{
		door.reset(new Door(ip));
		port = tdm_addr_port(&door->addr);
	}

	/* A HELLO that claims @port of the IP that we are called from. */
	struct tdm_wire_greeting greeting() const
	{
		return Raw::greeting(port, 0x77, ip);
	}

	/* The claim @g with a message right behind it. */
	void claim(const struct tdm_wire_greeting &g)
	{
		struct tdm_wire_rec r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 1);

		raw.call(at(0).addr);
		raw.hello(g);
		raw.record(r, 1);
	}

	void claim()
	{
		claim(greeting());
	}

	/*
	 * The claim @g with our own incarnation id, and a message behind it, while
	 * we greet the peer whom it claims to be.
	 */
	void claim_with_our_id(struct tdm_wire_greeting g)
	{
		fi_addr_t to = at(0).insert(g.addr);

		tdm_os.accept4 = nobody_yet;
		memcpy(g.id, at(0).tcp->id, sizeof(g.id));
		claim(g);
		at(0).recv(&in, 1, 0, ~0ull);
		ASSERT_EQ(0, at(0).send(to, "x", 1, 0));
		ASSERT_TRUE(until([&] {
			return at(0).conn(to)->state == TDM_CONN_GREETING;
		}));
		tdm_os.accept4 = tdm_os_system.accept4;
	}

	void refused()
	{
		EXPECT_TRUE(closed());
		EXPECT_TRUE(at(0).accepted.empty());
		EXPECT_TRUE(at(0).rx.got.empty());
	}
};

TEST_P(TcpClaim, N6_WhoListensWhereItSaysIsLetIn)
{
	OK(listens());
	claim();
	ASSERT_TRUE(until([&] { return at(0).accepted.size() == 1; }));
}

TEST_P(TcpClaim, N6_AddressWhereNobodyListensIsNotBelieved)
{
	OK(listens());
	door->hang_up();
	at(0).recv(&in, 1, 0, ~0ull);
	claim();
	refused();
}

TEST_P(TcpClaim, N6_AddressOfAnotherUserIsNotBelieved)
{
	OK(listens());
	at(0).recv(&in, 1, 0, ~0ull);
	other_user = true;
	claim();
	refused();
}

TEST_P(TcpClaim, N6_AddressOfAnotherIpIsNotBelieved)
{
	/*
	 * doc/PROTOCOL-tcp.md, Claims: the first rule. Of addresses of other hosts
	 * the kernel says nothing, so it is the only one that refuses these.
	 */
	OK(listens());
	at(0).recv(&in, 1, 0, ~0ull);
	for (const char *other : { "192.0.2.1", "2001:db8::1" }) {
		claim(Raw::greeting(port, 0x77, other));
		OK(refused());
	}
}

TEST_P(TcpClaim, WhoHasClosedItsSocketIsNobody)
{
	/* Linux says of a socket without a process that root made it. */
	OK(listens());
	at(0).recv(&in, 1, 0, ~0ull);
	claim();
	raw.hang_up();
	settle();
	EXPECT_TRUE(at(0).accepted.empty());
	EXPECT_TRUE(at(0).rx.got.empty());
}

TEST_P(TcpClaim, ComesAgainWhenThereIsNoDescriptorToAskBy)
{
	OK(listens());
	tdm_os.socket = no_fd_for_diag;
	claim();
	refused();
	tdm_os.socket = watched_socket;
	claim();
	ASSERT_TRUE(until([&] { return at(0).accepted.size() == 1; }));
}

int no_eventfd(unsigned, int)
{
	errno = EMFILE;
	return -1;
}

/* The descriptor that is kept for refusals was lost: it is opened again. */
TEST_P(TcpClaim, O1_TheDescriptorForRefusalsComesBack)
{
	OK(listens());
	tdm_os_system.close(at(0).tcp->reserve_fd);
	at(0).tcp->reserve_fd = -1;
	claim();
	ASSERT_TRUE(until([&] { return at(0).accepted.size() == 1; }));
	EXPECT_GE(at(0).tcp->reserve_fd, 0);
}

/* Without that descriptor callers would wait: the endpoint is not enabled. */
TEST_P(TcpClaim, O10_NoDescriptorForRefusalsAtEnable)
{
	tdm_os_system.close(at(0).tcp->reserve_fd);
	at(0).tcp->reserve_fd = -1;
	tdm_os.eventfd = no_eventfd;
	EXPECT_EQ(-FI_EMFILE, tdm_tcp_listen(at(0).tcp));
	tdm_os.eventfd = tdm_os_system.eventfd;
	EXPECT_EQ(0, tdm_tcp_listen(at(0).tcp));
	EXPECT_GE(at(0).tcp->reserve_fd, 0);
}

/* Each peer hears our id in our HELLO, so the id lets nobody in. */
TEST_P(TcpClaim, N6_OurOwnIdLetsNobodyIn)
{
	OK(listens());
	OK(claim_with_our_id(greeting()));
	refused();
}

TEST_P(TcpClaim, N6_OurOwnIdAndAddressLetNobodyIn)
{
	port = tdm_addr_port(&at(0).addr);
	OK(claim_with_our_id(greeting()));
	EXPECT_TRUE(closed());
	/* The message that we sent to ourselves has come, and no other one. */
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	settle();
	EXPECT_EQ(1u, at(0).rx.got.size());
	EXPECT_EQ('x', in);
}

TEST_P(TcpClaim, OwnAddressIsNobodyElses)
{
	port = tdm_addr_port(&at(0).addr);
	claim();
	refused();
}

INSTANTIATE_TEST_SUITE_P(Ip, TcpClaim, testing::Values("127.0.0.1", "::1"),
			 [](const testing::TestParamInfo<const char *> &p) {
				 return strchr(p.param, ':') ? "v6" : "v4";
			 });

uint64_t ahead;

uint64_t fast_clock()
{
	return tdm_os_system.now_ns() + ahead;
}

rlim_t most_fds = RLIM_INFINITY;

int few_fds(int resource, struct rlimit *limit)
{
	if (resource != RLIMIT_NOFILE)
		return tdm_os_system.getrlimit(resource, limit);
	limit->rlim_cur = limit->rlim_max = most_fds;
	return 0;
}

uint64_t stopped; /* time that stands still */

uint64_t stopped_clock()
{
	return stopped;
}

class TcpCrowd : public TcpFault
{
protected:
	std::vector<std::unique_ptr<Raw>> crowd;

	TcpCrowd()
	{
		ahead = 0;
		most_fds = RLIM_INFINITY;
		tdm_os.now_ns = fast_clock;
		tdm_os.getrlimit = few_fds;
	}

	Raw &join(const char *from)
	{
		crowd.emplace_back(new Raw());
		crowd.back()->call(at(0).addr, from);
		return *crowd.back();
	}

	static bool ended(Raw &r)
	{
		bool end;

		r.hear(&end);
		return end;
	}

	/* Does @r, at @ip, get a session as the endpoint of port @port? */
	bool granted(Raw &r, const char *ip, uint16_t port)
	{
		struct tdm_wire_greeting d;
		std::vector<uint8_t> all;
		bool end = false;

		r.call(at(0).addr, ip);
		r.hello(Raw::greeting(port, uint8_t(0x10 + port % 200), ip));
		EXPECT_TRUE(until([&] {
			auto h = r.hear(&end);

			all.insert(all.end(), h.begin(), h.end());
			return end || all.size() >= TDM_WIRE_GREETING_BYTES;
		}));
		if (all.size() < TDM_WIRE_GREETING_BYTES ||
		    tdm_wire_greeting_decode(all.data(), &d))
			return false;
		if (d.kind == TDM_WIRE_REJECT) {
			EXPECT_EQ(TDM_WIRE_R_BUSY, d.reason);
		}
		return d.kind == TDM_WIRE_HELLO;
	}

	/* Sessions with made-up ports at @ip until one is refused: how many. */
	size_t flood(const char *ip, uint16_t first)
	{
		size_t n = 0;

		for (; n < 1000; n++) {
			crowd.emplace_back(new Raw());
			if (!granted(*crowd.back(), ip, (uint16_t)(first + n)))
				break;
		}
		crowd.pop_back();
		return n;
	}
};

TEST_F(TcpCrowd, N2_GreetingHasADeadlineHoweverItIsSpread)
{
	uint8_t b[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting g = Raw::greeting(9);

	add();
	tdm_wire_greeting_encode(b, &g);
	Raw &slow = join("127.0.0.1");
	for (int i = 0; i < 3; i++) {
		slow.say(&b[i], 1);
		settle();
		EXPECT_EQ(1u, at(0).tcp->guest_count);
		ahead += 2000000000ull;
	}
	slow.say(&b[3], 1);
	EXPECT_TRUE(until([&] { return ended(slow); }));
	EXPECT_EQ(0u, at(0).tcp->guest_count);
}

TEST_F(TcpCrowd, N2_ManySlowOnesKeepNobodyOut)
{
	stopped = tdm_os_system.now_ns();
	tdm_os.now_ns = stopped_clock; /* so that no guest's time is over */
	add();
	for (int i = 0; i < 12 * 8; i++) {
		std::string from = "127.0.1." + std::to_string(1 + i / 8);

		join(from.c_str()).say("\xf4", 1);
		turn();
	}
	settle();
	EXPECT_EQ(64u, at(0).tcp->guest_count);
	for (int i = 0; i < 10; i++)
		ASSERT_NO_FATAL_FAILURE(still_serves());
	/* At most one had to leave for each newcomer. */
	EXPECT_LE(54u, at(0).tcp->guest_count);
}

TEST_F(TcpCrowd, ThoseWeKnowKeepTheirPlace)
{
	add();
	at(0).insert(ip_addr("127.0.2.1", 9));
	Raw &friendly = join("127.0.2.1");
	for (int i = 0; i < 40 * 8; i++) {
		std::string from = "127.0.1." + std::to_string(1 + i / 8);

		join(from.c_str());
		turn();
	}
	settle();
	EXPECT_EQ(64u, at(0).tcp->guest_count);
	EXPECT_FALSE(ended(friendly));
}

TEST_F(TcpCrowd, StrangersDoNotTakeAllDescriptors)
{
	Raw friendly, late;
	size_t n;

	add();
	at(0).insert(ip_addr("127.0.0.3", 77));
	/* Of these, each session takes two: both ends are ours. */
	most_fds = 240;
	n = flood("127.0.0.1", 10000);
	EXPECT_GE(n, 60u) << "a quarter is theirs whatever others have";
	EXPECT_LE(n, 100u);
	/* Another stranger gets in, until only the reserve is left. */
	EXPECT_LE(1u, flood("127.0.0.2", 20000));
	EXPECT_TRUE(granted(friendly, "127.0.0.3", 77));
	EXPECT_TRUE(at(0).lost.empty());
	/* A session unused for a while is ended for a newcomer. */
	ahead += 6000000000ull;
	EXPECT_TRUE(granted(late, "127.0.0.1", 30000));
	EXPECT_EQ(std::vector<int>{ FI_ECONNRESET }, at(0).lost);
	EXPECT_FALSE(ended(friendly));
	EXPECT_FALSE(ended(late));
	/* The number that it had is low, and so is that of the next newcomer. */
	n = at(0).tcp->open;
	for (uint16_t i = 0; i < 30; i++) {
		ahead += 6000000000ull;
		for (auto &r : crowd) {
			if (r->fd >= 0 && ended(*r))
				r->hang_up();
		}
		crowd.emplace_back(new Raw());
		granted(*crowd.back(), "127.0.0.1", (uint16_t)(31000 + i));
	}
	EXPECT_LE(at(0).tcp->open, n + 1);
	/* When they have left there is room again. */
	crowd.clear();
	ASSERT_TRUE(until([&] { return at(0).tcp->open <= 3; }));
	EXPECT_LE(60u, flood("127.0.0.1", 40000));
}

} // namespace
