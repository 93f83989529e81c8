/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Error entries name the peer, and their text says why: fi_tandem(7), FAULTS.
 */
#include <arpa/inet.h>
#include <csignal>
#include <netinet/in.h>
#include <unistd.h>

#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/* Tells its address, makes progress, and ends when its parent kills it. */
TDT_ROLE(mortal)
{
	struct tdt_world *w = nullptr;
	struct tdt_attr attr;

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &w) || tdt_tell_name(fd, &w->eps[0]))
		return 1;
	for (;;)
		tdt_progress(w);
}

class ErrorText : public Case
{
protected:
	/* IP:PORT of the socket address @name. */
	static std::string text(const void *name)
	{
		struct sockaddr_in sin;
		char ip[INET_ADDRSTRLEN];

		memcpy(&sin, name, sizeof(sin));
		EXPECT_EQ(AF_INET, sin.sin_family);
		inet_ntop(AF_INET, &sin.sin_addr, ip, sizeof(ip));
		return ip + (":" + std::to_string(ntohs(sin.sin_port)));
	}

	/* @c is of the peer @name, and so is the text, which ends with @why. */
	void names(const struct tdt_comp &c, const void *name, size_t len,
		   const std::string &why)
	{
		ASSERT_EQ(len, c.err_data_size);
		EXPECT_EQ(0, memcmp(c.err_data, name, len));
		EXPECT_EQ(std::string(fi_strerror(c.prov_errno)) + ": " +
				  text(name) + ": " + why,
			  w->error_text);
	}
};

TEST_F(ErrorText, NamesTheSenderOfALongMessage)
{
	ONLY_TANDEM();
	OPEN();
	for (size_t size : { 100u, 100000u }) {
		for (auto *from : senders()) {
			Bytes out = filled(size, 1), in(10);
			struct iovec ov = iov_of(out.data(), size);
			struct iovec iv = iov_of(in.data(), 10);
			struct tdt_comp c;

			ASSERT_EQ(0, tdt_trecv(rx(), &iv, 7, 0, &in));
			ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, 7, &out));
			OK(failed(rx(), &in, FI_ETRUNC, &c));
			OK(names(c, from->name, from->namelen,
				 "the message is longer than the buffer"));
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
		}
	}
}

TEST_F(ErrorText, NamesAPeerThatWasRemoved)
{
	struct sockaddr_in sin = {};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct tdt_op op;
	struct tdt_comp c;
	fi_addr_t nobody;
	char out = 1;

	ONLY_TANDEM();
	OPEN();
	/* An address at which nobody listens. */
	sin.sin_family = AF_INET;
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ASSERT_EQ(0, bind(fd, reinterpret_cast<sockaddr *>(&sin), len));
	ASSERT_EQ(0, getsockname(fd, reinterpret_cast<sockaddr *>(&sin), &len));
	ASSERT_EQ(1, fi_av_insert(ep(1)->av, &sin, 1, &nobody, 0, nullptr));
	op = op_of(TDT_SEND, 1, &out, 1);
	op.addr = nobody;
	op.context = &out;
	ASSERT_EQ(0, tdt_post(ep(1), &op));
	ASSERT_EQ(0, fi_av_remove(ep(1)->av, &nobody, 1, 0));
	OK(failed(ep(1), &out, FI_ECONNABORTED, &c));
	OK(names(c, &sin, sizeof(sin),
		 "the address was removed from the address vector, or the "
		 "sender gave the message up"));
	::close(fd);
}

TEST_F(ErrorText, NamesAPeerThatDied)
{
	struct tdt_child child = { 0, -1 };
	uint8_t name[TDT_NAME_BYTES];
	size_t len = sizeof(name);
	struct tdt_comp c = {};
	Bytes large(1 << 20);
	fi_addr_t to;
	char out = 1;

	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, tdt_child_start(&child, "mortal", nullptr));
	ASSERT_EQ(0, tdt_hear_name(child.fd, rx(), &to));
	ASSERT_EQ(0, fi_av_lookup(rx()->av, to, name, &len));
	struct tdt_op op = op_of(TDT_SEND, 1, &out, 1);

	op.addr = to;
	op.context = &out;
	ASSERT_EQ(0, tdt_post(rx(), &op));
	ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
	ASSERT_EQ(0, c.err);
	/*
	 * One is under way when it dies: the child receives nothing. A send
	 * posted later may find the address refused.
	 */
	op = op_of(TDT_SEND, 1, large.data(), large.size());
	op.addr = to;
	op.context = &out;
	ASSERT_EQ(0, keep_on([&] { return tdt_post(rx(), &op); }));
	tdt_child_kill(&child, SIGKILL);
	ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
	ASSERT_EQ(FI_ECONNRESET, c.err);
	OK(names(c, name, len, "the peer died or closed its endpoint"));
}

} // namespace
