/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole of tandem as the peer of another owner, over one path, or its
 * shared-memory peer alone: two endpoints in one process, each with a mock owner.
 */
#ifndef TDT_WHOLE_SIDE_H
#define TDT_WHOLE_SIDE_H

#include "tests/unit/shm_world.h"

extern "C" {
#include "tcp/fabric.h"
#include "tcp/getinfo.h"
}

namespace whole
{

/* The provider as the core of libfabric sees it. */
inline struct fi_provider *provider()
{
	static struct fi_provider prov = {};

	prov.name = "tandem";
	prov.version = FI_VERSION(1, 0);
	prov.fi_version = fi_version();
	prov.getinfo = tdm_getinfo;
	prov.fabric = tdm_fabric_open;
	return &prov;
}

/* The hints of an owner: @caps and FI_PEER, on the loopback interface. */
inline struct fi_info *hints(uint64_t caps = 0)
{
	struct fi_info *h = fi_allocinfo();

	h->caps = caps | FI_PEER | FI_AV_USER_ID;
	h->addr_format = FI_SOCKADDR_IN;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->name = strdup("lo");
	return h;
}

enum Path { SHM, TCP, ALONE };

struct Below {
	Path path;
	enum tdt_owner_kind owner;
};

/* Two endpoints, a and b; user ids 100 and 200. */
class Pair : public testing::TestWithParam<Below>
{
protected:
	struct tdm_env saved;
	struct tdt_owner *a = nullptr, *b = nullptr;
	struct sockaddr_in addr_a = {}, addr_b = {};
	fi_addr_t to_a = 0, to_b = 0;
	size_t fds_before = 0;
	static constexpr fi_addr_t id_a = 100, id_b = 200;

	static int alone()
	{
		return GetParam().path == ALONE;
	}

	static struct tdt_owner *open(struct sockaddr_in *addr,
				      int plain_domain = 0)
	{
		struct sockaddr_in name =
			shm_test::address(shm_test::next_port());
		struct fi_info *h = hints();
		struct tdt_owner_attr attr = {};
		struct tdt_owner *o = nullptr;
		size_t len = sizeof(*addr);

		attr.hints = alone() ? nullptr : h;
		attr.name = alone() ? &name : nullptr;
		attr.namelen = sizeof(name);
		attr.selective = 1;
		attr.plain_domain = plain_domain;
		attr.kind = GetParam().owner;
		EXPECT_EQ(0, tdt_owner_open(alone() ? tdm_shm_provider() :
						      provider(),
					    &attr, &o));
		fi_freeinfo(h);
		if (o) {
			EXPECT_EQ(0, fi_getname(&o->ep->fid, addr, &len));
		}
		return o;
	}

	void SetUp() override
	{
		saved = tdm_env;
		tdm_env.shm = GetParam().path == TCP ? TDM_SHM_OFF :
						       TDM_SHM_ONLY;
		tdm_env.unexp_max_bytes = 256u << 20;
		tdm_env.shm_eager_bytes = 8192;
		fds_before = tdt_open_files();
		a = open(&addr_a);
		b = open(&addr_b);
		ASSERT_NE(nullptr, a);
		ASSERT_NE(nullptr, b);
		to_b = tdt_owner_insert(a, &addr_b, sizeof(addr_b), id_b);
		to_a = tdt_owner_insert(b, &addr_a, sizeof(addr_a), id_a);
	}

	/* No test leaves anything behind. */
	void TearDown() override
	{
		close(&a);
		close(&b);
		tdm_env = saved;
		EXPECT_EQ(0u, shm_test::shared_maps());
		EXPECT_EQ(fds_before, tdt_open_files());
	}

	static void close(struct tdt_owner **o, int srx_first = 0,
			  int late_discard = 0)
	{
		if (*o) {
			EXPECT_EQ(0u, (*o)->unasked)
				<< "the receive context was called while its "
				   "owner did not drive the peer";
		}
		tdt_owner_close(*o, srx_first, late_discard);
		*o = nullptr;
	}

	void step()
	{
		if (a)
			tdt_owner_progress(a);
		if (b)
			tdt_owner_progress(b);
	}

	bool until(const std::function<bool()> &cond)
	{
		return tdt_eventually(cond, [this] { step(); });
	}

	ssize_t retry(const std::function<ssize_t()> &call)
	{
		ssize_t ret = -FI_EAGAIN;

		until([&] {
			ret = call();
			return ret != -FI_EAGAIN;
		});
		return ret;
	}

	/* One call without progress. */
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

	ssize_t send(struct tdt_owner *o, fi_addr_t to, const void *buf,
		     size_t len, uint64_t tag, void *context,
		     uint64_t flags = 0, uint64_t data = 0)
	{
		return retry([&] {
			return tsend(o, to, buf, len, tag, context, flags,
				     data);
		});
	}

	/* A first message a -> b, so that the pair has its path. */
	void meet()
	{
		char c = 1, d = 0;

		tdt_owner_trecv(b, &d, 1, 0xbeef, &d);
		ASSERT_EQ(0, send(a, to_b, &c, 1, 0xbeef, &c));
		ASSERT_TRUE(until([&] {
			return tdt_owner_find(b, &d) && tdt_owner_find(a, &c);
		}));
		ASSERT_EQ(1, d);
		a->dones = 0;
		b->dones = 0;
	}
};

inline std::string name(const testing::TestParamInfo<Below> &info)
{
	static const char *const path[] = { "shm", "tcp", "alone" };
	static const char *const owner[] = { "", "_older", "_newer",
					     "_silent" };

	return std::string(path[info.param.path]) + owner[info.param.owner];
}

} // namespace whole

#endif /* TDT_WHOLE_SIDE_H */
