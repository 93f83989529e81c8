/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer made of bytes, for what a TCP transport would never send.
 */
#ifndef TDT_TCP_RAW_H
#define TDT_TCP_RAW_H

#include <fcntl.h>
#include <unistd.h>

#include "tcp_world.h"
#include "tests/harness/no_diag.h"
#include "tests/harness/seeded.h"
#include "tdm_held.h"
#include "tdm_open.h"

namespace tcp_test
{

/* A socket, or none. */
struct Socket {
	int fd = -1;

	Socket() = default;
	Socket(const Socket &) = delete;

	~Socket()
	{
		hang_up();
	}

	void hang_up()
	{
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
};

class Raw : public Socket
{
public:
	/* @from: the IP to call from; NULL: that of @to. */
	void call(const struct tdm_addr &to, const char *from = nullptr)
	{
		struct tdm_addr a = from ? ip_addr(from) : to;

		hang_up();
		tdm_addr_set_port(&a, 0);
		fd = socket(a.u.sa.sa_family, SOCK_STREAM, 0);
		ASSERT_EQ(0, bind(fd, &a.u.sa, tdm_addr_len(&a)));
		ASSERT_EQ(0, connect(fd, &to.u.sa, tdm_addr_len(&to)));
		fcntl(fd, F_SETFL, O_NONBLOCK);
	}

	void say(const void *p, size_t n)
	{
		ASSERT_EQ((ssize_t)n, ::send(fd, p, n, MSG_NOSIGNAL));
	}

	void say(const std::vector<uint8_t> &b)
	{
		say(b.data(), b.size());
	}

	static struct tdm_wire_greeting
	greeting(uint16_t port, uint8_t id = 0x77, const char *ip = "127.0.0.1")
	{
		struct tdm_wire_greeting g = {};

		g.kind = TDM_WIRE_HELLO;
		g.oldest = g.newest = TDM_WIRE_VERSION;
		memset(g.id, id, sizeof(g.id));
		g.addr = ip_addr(ip, port);
		g.credit = 1 << 20;
		g.eager = 65536;
		g.rts = 1000;
		return g;
	}

	void hello(const struct tdm_wire_greeting &g)
	{
		uint8_t b[TDM_WIRE_GREETING_BYTES];

		tdm_wire_greeting_encode(b, &g);
		say(b, sizeof(b));
	}

	void record(const struct tdm_wire_rec &r, size_t payload = 0)
	{
		std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);

		b.resize(tdm_wire_encode(b.data(), &r));
		b.resize(b.size() + payload, 0x55);
		say(b);
	}

	/* All that has come; *@closed when the end was read. */
	std::vector<uint8_t> hear(bool *closed = nullptr)
	{
		std::vector<uint8_t> all;
		uint8_t b[4096];
		ssize_t n;

		while ((n = ::recv(fd, b, sizeof(b), MSG_DONTWAIT)) > 0)
			all.insert(all.end(), b, b + n);
		if (closed)
			*closed = !n || errno != EAGAIN;
		return all;
	}
};

/* Somebody listens at @addr, a port of an IP, and accepts nobody by itself. */
struct Door : Socket {
	struct tdm_addr addr;

	explicit Door(const char *ip = "127.0.0.1") : addr(ip_addr(ip))
	{
		socklen_t len = sizeof(addr.u);

		fd = socket(addr.u.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK,
			    0);
		EXPECT_EQ(0, bind(fd, &addr.u.sa, tdm_addr_len(&addr)));
		EXPECT_EQ(0, ::listen(fd, 8));
		EXPECT_EQ(0, getsockname(fd, &addr.u.sa, &len));
	}
};

/* The kernel takes and gives a few bytes at a time. */
inline ssize_t short_send(int fd, const void *buf, size_t len, int flags)
{
	return tdm_os_system.send(fd, buf, tdm_min(len, size_t(1000)), flags);
}

inline ssize_t short_recv(int fd, void *buf, size_t len, int flags)
{
	return tdm_os_system.recv(fd, buf, tdm_min(len, size_t(700)), flags);
}

/* Bits that change on their way, in the input that is next when `due` is 1. */
struct Flips {
	static inline std::mt19937 rng;
	static inline unsigned due; /* counted down; 0: none */

	static ssize_t recv(int fd, void *buf, size_t len, int flags)
	{
		ssize_t n = tdm_os_system.recv(fd, buf, len, flags);

		if (n <= 0 || (flags & MSG_PEEK) || !due || --due)
			return n;
		tdt_flip_bit(buf, size_t(n), rng());
		return n;
	}
};

/* Claims are believed here; TcpClaim is about those that are not. */
class TcpFault : public Tcp
{
protected:
	Raw raw;

	TcpFault()
	{
		tdm_os.socket = tdt_no_diag;
	}

	/* The memory that unexpected messages take at node @n, bytes. */
	static uint64_t held(Node &n)
	{
		struct fid_peer_srx *srx =
			tdm_srx_export(n.srx, TDM_TRANSPORT_TCP);
		struct tdm_held *h = static_cast<struct tdm_held *>(
			tdm_open_ops(&srx->ep_fid.fid, TDM_HELD_OPS));

		return h->bytes;
	}

	/* Waits for the end; *@all: what @raw has heard before it. */
	bool closed(std::vector<uint8_t> *all = nullptr)
	{
		return until([&] {
			bool end;
			std::vector<uint8_t> more = raw.hear(&end);

			if (all)
				all->insert(all->end(), more.begin(),
					    more.end());
			return end;
		});
	}

	/* A session of @raw with node 0, as the endpoint 127.0.0.1:@port. */
	void session(uint16_t port = 9, uint8_t id = 0x77)
	{
		std::vector<uint8_t> heard;

		raw.call(at(0).addr);
		raw.hello(Raw::greeting(port, id));
		ASSERT_TRUE(hears(heard, TDM_WIRE_GREETING_BYTES));
	}

	/* Waits until @r has heard @n bytes in all, and appends them to @all. */
	bool hears(Raw &r, std::vector<uint8_t> &all, size_t n)
	{
		return until([&] {
			std::vector<uint8_t> more = r.hear();

			all.insert(all.end(), more.begin(), more.end());
			return all.size() >= n;
		});
	}

	bool hears(std::vector<uint8_t> &all, size_t n)
	{
		return hears(raw, all, n);
	}

	/* Waits for a greeting that @r hears, and nothing behind it. */
	struct tdm_wire_greeting greeted(Raw &r)
	{
		struct tdm_wire_greeting g = {};
		std::vector<uint8_t> heard;

		EXPECT_TRUE(hears(r, heard, TDM_WIRE_GREETING_BYTES));
		EXPECT_EQ(size_t(TDM_WIRE_GREETING_BYTES), heard.size());
		heard.resize(TDM_WIRE_GREETING_BYTES);
		EXPECT_EQ(0, tdm_wire_greeting_decode(heard.data(), &g));
		return g;
	}

	/*
	 * Node 0 sends to an address where @peer, whom @door lets in, answers by
	 * @g. Waits for the end of the send.
	 */
	void answered_by(Door &door, Raw &peer,
			 const struct tdm_wire_greeting &g)
	{
		add();
		at(0).insert(door.addr);
		ASSERT_EQ(0, at(0).send(0, "x", 1, 1));
		ASSERT_TRUE(until([&] {
			return (peer.fd = accept(door.fd, NULL, NULL)) >= 0;
		}));
		peer.hello(g);
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	}

	/* Does node 0 still serve a decent peer? */
	void still_serves()
	{
		char in[8];
		Node &n = add();
		fi_addr_t to = n.insert(at(0).addr);
		size_t had = at(0).rx.got.size();

		ASSERT_EQ(0, at(0).recv(in, 8, 4711));
		ASSERT_EQ(0, n.send(to, "fine", 5, 4711));
		ASSERT_TRUE(
			until([&] { return at(0).rx.got.size() == had + 1; }));
		EXPECT_STREQ("fine", in);
	}
};

inline struct tdm_wire_rec rec(uint8_t op, uint8_t flags = 0, uint32_t len = 0)
{
	struct tdm_wire_rec r = {};

	r.op = op;
	r.flags = flags;
	r.len = len;
	return r;
}

} // namespace tcp_test

#endif /* TDT_TCP_RAW_H */
