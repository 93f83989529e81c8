/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of the TCP transport in one process and one thread, each with a
 * loop, an AV and a receive side of its own, joined over loopback. All
 * that is written to the queues is kept; system calls can be cut short and
 * refused.
 */
#ifndef TDT_TCP_WORLD_H
#define TDT_TCP_WORLD_H

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "av/av.h"
#include "tcp/wire/wire.h"
#include "tcp/wire/tcp.h"
#include "base/os.h"
#include "base/env.h"
}

#include "fake_engine.h"
#include "regions.h"
#include "srx_mock.h"
#include "tests/harness/eventually.h"

namespace tcp_test
{

using srx_test::Comp;

typedef std::vector<unsigned char> Bytes;

/* @n bytes that differ from message to message. */
inline Bytes pattern(size_t n, unsigned seed)
{
	Bytes b(n);
	uint32_t x = seed * 2654435761u + 12345;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		b[i] = (unsigned char)(x >> 24);
	}
	return b;
}

inline bool same(const Bytes &a, const Bytes &b, size_t n)
{
	return !n || !memcmp(a.data(), b.data(), n);
}

/* The address of port @port, 0: of any, at @ip, as inet_pton(3) reads it. */
inline struct tdm_addr ip_addr(const char *ip, uint16_t port = 0)
{
	struct tdm_addr a = {};

	EXPECT_EQ(0, tdm_addr_from_node(&a, ip));
	tdm_addr_set_port(&a, port);
	return a;
}

/* Reset the connection of @fd, in both directions: bytes that were not read are gone. */
inline void reset_connection(int fd)
{
	struct sockaddr none = {};

	::connect(fd, &none, sizeof(none));
}

/* An endpoint. */
class Node
{
public:
	tdt::FakeEngine engine{ 0 };
	struct tdm_loop *loop = nullptr;
	struct tdm_av *av = nullptr;
	struct tdm_srx *srx = nullptr;
	struct tdm_tcp *tcp = nullptr;
	srx_test::MockCq tx, rx;
	srx_test::MockCntr sent, received;
	srx_test::MockCntr wrote, read, was_written, was_read;
	tdt::Regions regions;
	struct tdm_addr addr = {};
	std::map<fi_addr_t, struct tdm_conn *> conns;
	std::vector<fi_addr_t> accepted;
	std::vector<int> lost;
	/* Of those made from now on; NULL: none. */
	static inline const struct tdm_auth_keys *keys = nullptr;

	/* @of: the endpoint whose loop it uses; NULL: one of its own. */
	explicit Node(const char *ip = "127.0.0.1", uint16_t port = 0,
		      size_t tx_size = 4096, const Node *of = nullptr)
	{
		if (of) {
			held_loop = of->held_loop;
		} else {
			EXPECT_EQ(0, tdm_loop_open(&loop));
			held_loop.reset(loop, tdm_loop_close);
		}
		loop = held_loop.get();
		open(ip_addr(ip, port), tx_size);
	}

	Node(const Node &) = delete;

	~Node()
	{
		close();
		if (av) {
			tdm_av_detach(av, &user.user);
			fi_close(&tdm_av_fid(av)->fid);
		}
	}

	void close()
	{
		if (!tcp)
			return;
		tdm_srx_flush(srx);
		tdm_tcp_close(tcp);
		tdm_srx_close(srx);
		tcp = nullptr;
		srx = nullptr;
		conns.clear();
	}

	void listen()
	{
		ASSERT_EQ(0, tdm_tcp_listen(tcp));
	}

	fi_addr_t insert(const struct tdm_addr &a)
	{
		fi_addr_t index = FI_ADDR_UNSPEC;

		EXPECT_EQ(1, fi_av_insert(tdm_av_fid(av), &a.u, 1, &index, 0,
					  NULL));
		return index;
	}

	struct tdm_conn *conn(fi_addr_t to)
	{
		struct tdm_addr a;
		auto it = conns.find(to);

		if (it != conns.end())
			return it->second;
		EXPECT_EQ(0, tdm_av_addr(av, to, &a));
		return conns[to] = tdm_conn_get(tcp, &a, to);
	}

	void progress()
	{
		tdm_loop_progress(loop, 1);
		if (tcp)
			tdm_tcp_progress(tcp);
	}

	ssize_t send(fi_addr_t to, const void *buf, size_t len, uint64_t tag,
		     uint64_t flags = FI_COMPLETION, void *context = NULL,
		     uint64_t data = 0)
	{
		struct tdm_xfer x = {};

		x.flags = flags | FI_SEND | FI_TAGGED;
		tdm_xfer_buf(&x, buf, len);
		x.addr = to;
		x.tag = tag;
		x.data = data;
		x.context = context;
		return tdm_tx_send(conn(to), &x);
	}

	ssize_t recv(void *buf, size_t len, uint64_t tag, uint64_t ignore = 0,
		     void *context = NULL, fi_addr_t from = FI_ADDR_UNSPEC)
	{
		struct tdm_xfer x = {};

		x.flags = FI_COMPLETION | FI_RECV | FI_TAGGED;
		tdm_xfer_buf(&x, buf, len);
		x.addr = from;
		x.tag = tag;
		x.ignore = ignore;
		x.context = context;
		return tdm_srx_recv(srx, &x);
	}

	/* @op: FI_READ or FI_WRITE. */
	ssize_t rma(uint64_t op, fi_addr_t to, const void *buf, size_t len,
		    uint64_t key, uint64_t where,
		    uint64_t flags = FI_COMPLETION, void *context = NULL,
		    uint64_t data = 0)
	{
		struct tdm_xfer x = {};

		x.flags = flags | FI_RMA | op;
		tdm_xfer_buf(&x, buf, len);
		x.addr = to;
		x.rma_addr = where;
		x.rma_key = key;
		x.data = data;
		x.context = context;
		return tdm_tx_send(conn(to), &x);
	}

private:
	std::shared_ptr<struct tdm_loop> held_loop; /* and the others' */
	struct User {
		struct tdm_av_user user;
		Node *self;
	} user = {};

	void open(const struct tdm_addr &where, size_t tx_size)
	{
		struct tdm_srx_attr srx_attr = {};
		struct tdm_av_attr av_owner = {};
		struct fi_av_attr av_attr = {};
		struct tdm_tcp_attr attr = {};

		av_owner.engine = &engine.engine;
		av_owner.addr_format = where.u.sa.sa_family == AF_INET6 ?
					       FI_SOCKADDR_IN6 :
					       FI_SOCKADDR_IN;
		srx_attr.engine = &engine.engine;
		srx_attr.size = 65536;
		srx_attr.min_multi_recv = 64;
		srx_attr.directed = TDM_SRX_DIRECTED_MSG | TDM_SRX_DIRECTED_TAG;
		srx_attr.free_rma = tdt::Regions::free_entry;
		ASSERT_EQ(0, tdm_av_open(&av_owner, &av_attr, NULL, &av));
		ASSERT_EQ(0, tdm_srx_open(&srx_attr, &srx));
		attr.loop = loop;
		attr.engine = &engine.engine;
		attr.srx = tdm_srx_export(srx, TDM_TRANSPORT_TCP);
		attr.av = av;
		attr.done.tx_cq = &tx.fid;
		attr.done.rx_cq = &rx.fid;
		attr.done.send_cntr = &sent.fid;
		attr.done.recv_cntr = &received.fid;
		attr.done.write_cntr = &wrote.fid;
		attr.done.read_cntr = &read.fid;
		attr.done.remote_write_cntr = &was_written.fid;
		attr.done.remote_read_cntr = &was_read.fid;
		attr.domain = &regions.domain;
		attr.tx_size = tx_size;
		attr.keys = keys;
		attr.accepted = on_accepted;
		attr.lost = on_lost;
		attr.arg = this;
		tdm_srx_set_done(srx, &attr.done);
		ASSERT_EQ(0, tdm_tcp_open(&attr, &tcp));
		addr = where;
		ASSERT_EQ(0, tdm_tcp_bind(tcp, &addr));
		user.self = this;
		user.user.changed = on_changed;
		user.user.removed = on_removed;
		tdm_av_attach(av, &user.user);
	}

	static Node *of(struct tdm_av_user *u)
	{
		return reinterpret_cast<User *>(u)->self;
	}

	static void on_changed(struct tdm_av_user *u, int moved)
	{
		if (of(u)->tcp)
			tdm_tcp_resolve(of(u)->tcp, moved);
	}

	static void on_removed(struct tdm_av_user *u, fi_addr_t index)
	{
		if (of(u)->tcp)
			tdm_tcp_forget(of(u)->tcp, index);
		of(u)->conns.erase(index);
	}

	static void on_accepted(void *arg, struct tdm_conn *conn,
				fi_addr_t index)
	{
		Node *n = static_cast<Node *>(arg);

		n->accepted.push_back(index);
		if (index != FI_ADDR_UNSPEC)
			n->conns[index] = conn;
	}

	static void on_lost(void *arg, struct tdm_conn *conn, fi_addr_t index,
			    int err)
	{
		Node *n = static_cast<Node *>(arg);

		n->lost.push_back(err);
		for (auto it = n->conns.begin(); it != n->conns.end();) {
			if (it->second == conn)
				it = n->conns.erase(it);
			else
				++it;
		}
	}
};

/* The fixture: restores the call table and the parameters. */
class Tcp : public testing::Test
{
protected:
	struct tdm_env env;
	std::vector<std::unique_ptr<Node>> nodes;
	const char *ip = "127.0.0.1"; /* of the nodes that are added */

	Tcp() : env(tdm_env)
	{
	}

	void TearDown() override
	{
		nodes.clear();
		Node::keys = nullptr;
		tdm_os = tdm_os_system;
		tdm_env = env;
	}

	Node &add(bool listening = true, const Node *of = nullptr)
	{
		nodes.emplace_back(new Node(ip, 0, 4096, of));
		if (listening)
			nodes.back()->listen();
		return *nodes.back();
	}

	/* @n nodes that know each other; node i is address i everywhere. */
	void mesh(size_t n)
	{
		while (nodes.size() < n)
			add();
		for (auto &a : nodes) {
			for (auto &b : nodes)
				a->insert(b->addr);
		}
	}

	Node &at(size_t i)
	{
		return *nodes[i];
	}

	void turn()
	{
		for (auto &n : nodes)
			n->progress();
	}

	/* Progress until @done; false when the deadline is over. */
	bool until(const std::function<bool()> &done)
	{
		return tdt_eventually(done, [this] { turn(); });
	}

	/* The same of node @i alone. */
	bool alone(size_t i, const std::function<bool()> &done)
	{
		return tdt_eventually(done, [this, i] { at(i).progress(); });
	}

	/* Progress for @ms milliseconds, for what must not happen. */
	void settle(unsigned ms = 20)
	{
		const uint64_t end = tdt_now_ms() + ms;

		while (tdt_now_ms() <= end)
			turn();
	}
};

} // namespace tcp_test

#endif /* TDT_TCP_WORLD_H */
