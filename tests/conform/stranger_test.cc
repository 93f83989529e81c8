/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strangers at the TCP port and at the attach socket: they cause no completion,
 * no event and no storm of warnings, and traffic goes on.
 */
#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <random>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/harness/fixture.h"

namespace
{

class Stranger : public Case
{
protected:
	std::vector<int> fds;

	Stranger()
	{
		attr.eq = 1;
	}

	void TearDown() override
	{
		for (int fd : fds)
			::close(fd);
		Case::TearDown();
	}

	int knock()
	{
		struct sockaddr_in sin;
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		memcpy(&sin, rx()->name, sizeof(sin));
		EXPECT_EQ(0, connect(fd, (struct sockaddr *)&sin, sizeof(sin)));
		fcntl(fd, F_SETFL, O_NONBLOCK);
		fds.push_back(fd);
		return fd;
	}

	void say(int fd, const void *buf, size_t len)
	{
		(void)!send(fd, buf, len, MSG_NOSIGNAL);
	}

	void traffic(int rounds)
	{
		for (int i = 0; i < rounds; i++) {
			for (auto *from : senders()) {
				char out = 't', in = 0;

				ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
				ASSERT_EQ(0,
					  tdt_send(from, rx(), &out, 1, &out));
				OK(done(rx(), &in, FI_RECV | FI_MSG));
				OK(done(from, &out, FI_SEND | FI_MSG));
			}
		}
	}

	/* Closed without an answer. */
	void dropped(int fd)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		char c;
		ssize_t n;

		while ((n = recv(fd, &c, 1, 0)) < 0 && errno == EAGAIN &&
		       tdt_now_ms() < end)
			tdt_progress(w);
		EXPECT_TRUE(n == 0 || (n < 0 && errno == ECONNRESET))
			<< "answered, or kept: " << n << " " << errno;
	}

	/* Read until @len bytes have come, or the end. Returns their number. */
	ssize_t heard(int fd, uint8_t *to, size_t len)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		size_t got = 0;

		while (got < len && tdt_now_ms() < end) {
			ssize_t n = recv(fd, to + got, len - got, 0);

			if (!n || (n < 0 && errno != EAGAIN))
				break;
			if (n > 0)
				got += static_cast<size_t>(n);
			tdt_progress(w);
		}
		return static_cast<ssize_t>(got);
	}

	void silent()
	{
		struct fi_eq_err_entry e;
		uint32_t event;
		char buf[256];

		memset(&e, 0, sizeof(e));
		tdt_progress(w);
		EXPECT_EQ(0u, tdt_pending(w));
		EXPECT_EQ(-FI_EAGAIN,
			  fi_eq_read(rx()->eq, &event, buf, sizeof(buf), 0));
		EXPECT_EQ(-FI_EAGAIN, fi_eq_readerr(rx()->eq, &e, 0));
		EXPECT_GE(3u, tdt_log_count(""));
	}
};

/*
 * The HELLO of an endpoint at @name, doc/PROTOCOL-tcp.md "Greeting"; only IPv4,
 * as the worlds of these tests are.
 */
std::vector<uint8_t> hello_of(const void *name)
{
	static const uint8_t magic[] = "\xf4tandem\n";
	std::vector<uint8_t> b(128);
	struct sockaddr_in sin;

	memcpy(&sin, name, sizeof(sin));
	memcpy(&b[0], magic, 8);
	b[8] = 1;
	b[10] = 128;
	b[12] = b[14] = 1;
	memset(&b[24], 0x5a, 16);
	b[40] = 4;
	b[42] = static_cast<uint8_t>(ntohs(sin.sin_port) & 255);
	b[43] = static_cast<uint8_t>(ntohs(sin.sin_port) >> 8);
	memcpy(&b[48], &sin.sin_addr, 4);
	b[66] = b[74] = 1; /* credit, longest EAGER: 65536 */
	b[76] = 1;
	return b;
}

/* One 1-byte EAGER, "Records". */
const uint8_t eager[] = { 1, 0, 0, 0, 1, 0, 0, 0, 'E' };

enum { HELLO = 1, REJECT = 2, BUSY = 4 };

TEST_F(Stranger, N6_LivePeerIsNotDisplacedByAClaim)
{
	/* fi_tandem(7), SECURITY: a live pair keeps its address, whatever a
	 * connection says; over both paths. */
	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *victim : senders()) {
		std::vector<uint8_t> hello = hello_of(victim->name);
		uint8_t answer[128];
		int fd = knock();

		say(fd, hello.data(), hello.size());
		say(fd, eager, sizeof(eager));
		ASSERT_EQ(128, heard(fd, answer, sizeof(answer)));
		EXPECT_EQ(REJECT, answer[8]);
		EXPECT_EQ(BUSY, answer[9]);
		OK(traffic(5));
		char out = 'b', in = 0;
		ASSERT_EQ(0, tdt_recv(victim, &in, 1, &in));
		ASSERT_EQ(0, tdt_send(rx(), victim, &out, 1, &out));
		OK(done(victim, &in, FI_RECV | FI_MSG));
		OK(done(rx(), &out, FI_SEND | FI_MSG));
		EXPECT_EQ('b', in);
	}
	OK(silent());
}

TEST_F(Stranger, OwnAddressIsNobodyElses)
{
	/* The same of the endpoint's own address, which it may send to. */
	std::vector<uint8_t> hello;
	uint8_t answer[128];
	int fd;

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	hello = hello_of(rx()->name);
	fd = knock();
	say(fd, hello.data(), hello.size());
	say(fd, eager, sizeof(eager));
	EXPECT_EQ(0, heard(fd, answer, sizeof(answer)));
	OK(silent());
}

TEST_F(Stranger, WhoComesBackIsLetIn)
{
	/* fi_tandem(7), FAULTS: a peer that comes back at the same address is a
	 * new peer; here it comes back by TCP, whatever it was reached by. */
	struct sockaddr_in sin;
	std::vector<uint8_t> hello;
	uint8_t answer[128] = {};
	int port, on = 1;

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	memcpy(&sin, ep(1)->name, sizeof(sin));
	hello = hello_of(ep(1)->name);
	ASSERT_EQ(0, fi_close(&ep(1)->ep->fid));
	ep(1)->ep = nullptr;
	port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fds.push_back(port);
	setsockopt(port, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ASSERT_EQ(0, bind(port, (struct sockaddr *)&sin, sizeof(sin)));
	ASSERT_EQ(0, listen(port, 8));
	for (int tries = 0; tries < 50 && answer[8] != HELLO; tries++) {
		int fd = knock();

		say(fd, hello.data(), hello.size());
		ASSERT_EQ(128, heard(fd, answer, sizeof(answer)));
	}
	EXPECT_EQ(HELLO, answer[8]);
}

TEST_F(Stranger, N1_ForeignProtocolsAreDroppedSilently)
{
	/* The connection is closed without an answer. No event, no
	 * completion. */
	static const std::string words[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"SSH-2.0-OpenSSH_9.9\r\n",
		std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
		std::string(256, '\0'),
		std::string(256, '\xff'),
		"\r\n\r\n",
	};

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto &s : words) {
		int fd = knock();

		say(fd, s.data(), s.size());
		OK(traffic(2));
		OK(dropped(fd));
	}
	OK(silent());
}

TEST_F(Stranger, N1_RandomBytesAreDropped)
{
	/* Random bytes of random length, in pieces. */
	std::mt19937 random(4711);

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (int i = 0; i < 60; i++) {
		unsigned char bytes[300];
		int fd = knock();

		for (auto &b : bytes)
			b = static_cast<unsigned char>(random());
		for (int k = 0; k < 3; k++) {
			say(fd, bytes, random() % sizeof(bytes));
			tdt_progress(w);
		}
		if (i % 2)
			shutdown(fd, SHUT_WR);
	}
	OK(traffic(10));
	OK(silent());
}

TEST_F(Stranger, ConnectAndCloseIsNothing)
{
	/* Port scans. */
	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (int i = 0; i < 200; i++) {
		int fd = knock();

		fds.pop_back();
		::close(fd);
		if (i % 8 == 0)
			tdt_progress(w);
	}
	OK(traffic(10));
	OK(silent());
}

TEST_F(Stranger, N2_SilentConnectionsKeepNobodyOut)
{
	/* Connections that say nothing are bounded, and real peers connect
	 * meanwhile. */
	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	for (int i = 0; i < 50; i++) {
		int fd = knock();

		if (i % 2)
			say(fd, "t", 1);
		tdt_progress(w);
	}
	OK(traffic(5));
	OK(silent());
}

TEST_F(Stranger, GarbageAtTheAttachSocket)
{
	/* The abstract socket of the endpoint, if the path has one, is as deaf
	 * as the port. */
	std::mt19937 random(815);
	char line[512];
	std::vector<std::string> names;
	FILE *f;

	ONLY_TANDEM();
	tdt_log_expect("");
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	/* The name has the port in it; others' endpoints are theirs. */
	struct sockaddr_in sin;
	char port[16];
	memcpy(&sin, rx()->name, sizeof(sin));
	snprintf(port, sizeof(port), ":%04x", ntohs(sin.sin_port));
	f = fopen("/proc/net/unix", "r");
	while (f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, " @");

		if (at && strstr(at, "tandem") && strstr(at, port))
			names.emplace_back(at + 2, strcspn(at + 2, "\n"));
	}
	if (f)
		fclose(f);
	EXPECT_EQ(tdt_path() == TDT_REMOTE ? 0u : 1u, names.size());
	for (auto &name : names) {
		for (int i = 0; i < 20; i++) {
			struct sockaddr_un un;
			unsigned char bytes[400];
			socklen_t len;
			int fd = socket(AF_UNIX,
					SOCK_SEQPACKET | SOCK_CLOEXEC |
						SOCK_NONBLOCK,
					0);

			memset(&un, 0, sizeof(un));
			un.sun_family = AF_UNIX;
			memcpy(un.sun_path + 1, name.data(), name.size());
			len = static_cast<socklen_t>(
				offsetof(struct sockaddr_un, sun_path) + 1 +
				name.size());
			fds.push_back(fd);
			if (connect(fd, (struct sockaddr *)&un, len))
				continue;
			for (auto &b : bytes)
				b = static_cast<unsigned char>(random());
			say(fd, bytes, random() % sizeof(bytes));
			tdt_progress(w);
		}
	}
	OK(traffic(10));
	OK(silent());
}

} // namespace
