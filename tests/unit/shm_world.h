/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two or more endpoints of the shared-memory peer in one process, each with a
 * mock owner, and the waiting they need: until a condition holds or the
 * deadline is over, never for a time.
 */
#ifndef TDT_SHM_WORLD_H
#define TDT_SHM_WORLD_H

#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tests/harness/drive.h"
#include "tests/harness/eventually.h"
#include "tests/harness/holdings.h"
#include "tests/harness/mock_owner.h"

extern "C" {
#include "shm/ep.h"
#include "base/os.h"
}

namespace shm_test
{

/*
 * Ports only name endpoints here, nothing listens on TCP. Process ids repeat
 * in other namespaces of the same network, where another run may be going on.
 */
inline uint16_t next_port()
{
	static const unsigned start = std::random_device()();
	static unsigned n;

	return static_cast<uint16_t>(20000 + (start + n++) % 30000);
}

/*
 * A host of our own, since the names of sockets are the network's: programs
 * run side by side. Children of fork have their parent's.
 */
inline const uint32_t host = 0x7f000000 | (std::random_device()() & 0xffffff);

inline struct sockaddr_in address(uint16_t port)
{
	struct sockaddr_in in;

	memset(&in, 0, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_port = htons(port);
	in.sin_addr.s_addr = htonl(host);
	return in;
}

/* Mappings of our memfds in this process. */
inline size_t shared_maps()
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	size_t n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:tandem") != nullptr;
	fclose(f);
	return n;
}

inline std::vector<unsigned char> pattern(size_t len, unsigned seed)
{
	std::vector<unsigned char> v(len);

	for (size_t i = 0; i < len; i++)
		v[i] = static_cast<unsigned char>(
			(i * 2654435761u + seed * 40503u) >> 11);
	return v;
}

class ShmTest : public testing::Test
{
protected:
	struct tdm_env saved;
	struct tdm_os saved_os;
	std::vector<struct tdt_owner *> owners;
	size_t fds_before = 0;

	void SetUp() override
	{
		saved = tdm_env;
		saved_os = tdm_os;
		tdm_env.cma = 1;
		tdm_env.shm_eager_bytes = 8192;
		tdm_env.unexp_max_bytes = 256u << 20;
		fds_before = tdt_open_files();
	}

	/* No test leaves anything behind. */
	void TearDown() override
	{
		for (struct tdt_owner *o : owners)
			tdt_owner_close(o, 0, 0);
		tdm_env = saved;
		tdm_os = saved_os;
		EXPECT_EQ(shared_maps(), 0u);
		EXPECT_EQ(tdt_open_files(), fds_before);
	}

	/* @selective: as struct tdt_owner_attr has it. */
	struct tdt_owner *open(uint16_t port, size_t tx_size = 0,
			       int selective = 1)
	{
		struct sockaddr_in in = address(port);
		struct tdt_owner_attr attr = {};
		struct tdt_owner *o = nullptr;

		attr.name = &in;
		attr.namelen = sizeof(in);
		attr.tx_size = tx_size;
		attr.selective = selective;
		EXPECT_EQ(tdt_owner_open(tdm_shm_provider(), &attr, &o), 0);
		if (o)
			owners.push_back(o);
		return o;
	}

	void close(struct tdt_owner *o, int srx_first = 0, int late_discard = 0)
	{
		for (size_t i = 0; i < owners.size(); i++) {
			if (owners[i] == o)
				owners.erase(owners.begin() + long(i));
		}
		tdt_owner_close(o, srx_first, late_discard);
	}

	void step()
	{
		for (struct tdt_owner *o : owners)
			tdt_owner_progress(o);
	}

	bool until(const std::function<bool()> &cond)
	{
		return tdt_eventually(cond, [this] { step(); });
	}
};

/* Two endpoints, a and b, that know each other; user ids 100 and 200. */
class PairTest : public ShmTest
{
protected:
	struct tdt_owner *a = nullptr, *b = nullptr;
	uint16_t port_a = 0, port_b = 0;
	fi_addr_t to_b = 0, to_a = 0;
	static constexpr fi_addr_t id_a = 100, id_b = 200;

	void SetUp() override
	{
		ShmTest::SetUp();
		make();
	}

	void make(size_t tx_size = 0, int selective = 1)
	{
		port_a = next_port();
		port_b = next_port();
		a = open(port_a, tx_size, selective);
		b = open(port_b, tx_size, selective);
		ASSERT_NE(a, nullptr);
		ASSERT_NE(b, nullptr);
		to_b = insert(a, port_b, id_b);
		to_a = insert(b, port_a, id_a);
	}

	/* Close both and open a fresh pair: parameters have changed. */
	void remake(size_t tx_size = 0)
	{
		close(a);
		close(b);
		make(tx_size);
	}

	static fi_addr_t insert(struct tdt_owner *o, uint16_t port,
				fi_addr_t id)
	{
		struct sockaddr_in in = address(port);

		return tdt_owner_insert(o, &in, sizeof(in), id);
	}

	/* Tagged, with a completion. */
	static ssize_t tsend(struct tdt_owner *o, fi_addr_t to, const void *buf,
			     size_t len, uint64_t tag, void *context,
			     uint64_t flags = 0, uint64_t data = 0)
	{
		struct iovec iov = { const_cast<void *>(buf), len };
		struct fi_msg_tagged msg = {};

		msg.msg_iov = &iov;
		msg.iov_count = 1;
		msg.addr = to;
		msg.tag = tag;
		msg.context = context;
		msg.data = data;
		return fi_tsendmsg(o->ep, &msg, flags | FI_COMPLETION);
	}

	/* The result of @call, repeated on -FI_EAGAIN with progress on all sides. */
	ssize_t retry(const std::function<ssize_t()> &call)
	{
		ssize_t ret = -FI_EAGAIN;

		until([&] {
			ret = call();
			return ret != -FI_EAGAIN;
		});
		return ret;
	}

	/* As tsend(), repeated on -FI_EAGAIN. */
	ssize_t send(struct tdt_owner *o, fi_addr_t to, const void *buf,
		     size_t len, uint64_t tag, void *context,
		     uint64_t flags = 0, uint64_t data = 0)
	{
		return retry([&] {
			return tsend(o, to, buf, len, tag, context, flags,
				     data);
		});
	}

	/* Attach a to b by a first message. */
	void meet()
	{
		char c = 1, d = 0;

		tdt_owner_trecv(b, &d, 1, 0xbeef, &d);
		ASSERT_EQ(send(a, to_b, &c, 1, 0xbeef, &c), 0);
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &d); }));
		ASSERT_EQ(d, 1);
		a->dones = 0;
		b->dones = 0;
	}

	/* One message a -> b of @len bytes, receive posted first. */
	/* Large messages to @o take @way, and no other is tried for a while. */
	static void take_way(struct tdt_owner *o, enum tdm_shm_way way)
	{
		struct tdm_shm_pair *pair = pair_of(o);

		if (!pair->ways)
			pair->ways = static_cast<tdm_shm_ways *>(
				calloc(1, sizeof(*pair->ways)));
		for (auto &c : pair->ways->sizes) {
			c = {};
			c.now = uint8_t(way);
			c.used = 1;
			c.again[0] = c.again[1] = c.again[2] = UINT64_MAX;
			for (uint32_t &cost : c.cost)
				cost = UINT32_MAX / 4;
		}
	}

	void exchange(size_t len, uint64_t tag)
	{
		auto out = pattern(len + 1, unsigned(tag));
		std::vector<unsigned char> in(len + 1, 0xee);
		char ca, cb;

		tdt_owner_trecv(b, in.data(), len, tag, &cb);
		ASSERT_EQ(send(a, to_b, out.data(), len, tag, &ca), 0);
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &cb) && tdt_owner_find(a, &ca);
		})) << len;
		ASSERT_EQ(tdt_owner_find(b, &cb)->err, 0);
		ASSERT_EQ(tdt_owner_find(b, &cb)->len, len);
		ASSERT_EQ(tdt_owner_find(b, &cb)->src, id_a);
		ASSERT_EQ(tdt_owner_find(a, &ca)->err, 0);
		ASSERT_EQ(memcmp(in.data(), out.data(), len), 0) << len;
		ASSERT_EQ(in[len], 0xee);
		a->dones = 0;
		b->dones = 0;
	}

	static struct tdm_shm_pair *pair_of(struct tdt_owner *o)
	{
		struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(o->ep);

		if (tdm_list_empty(&ep->pairs))
			return nullptr;
		return tdm_list_entry(ep->pairs.next, struct tdm_shm_pair, all);
	}
};

} // namespace shm_test

#endif /* TDT_SHM_WORLD_H */
