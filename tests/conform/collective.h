/* SPDX-License-Identifier: BSD-2-Clause */
/* Collective operations for tests: groups of the endpoints of a world. */
#ifndef TDT_COLLECTIVE_H
#define TDT_COLLECTIVE_H

#include <string>
#include <vector>

#include <rdma/fi_collective.h>

#include "tests/harness/fixture.h"

namespace collective_test
{

using Bytes = std::vector<uint8_t>;
using Ranks = std::vector<size_t>; /* endpoints of the world */

/* A group, as its members have it. */
struct Group {
	Ranks ranks;
	std::vector<struct fid_av_set *> set;
	std::vector<struct fid_mc *> mc;
	int context = 0;
};

class Collective : public Case
{
protected:
	Collective()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE;
		attr.eq = 1;
	}

	void open_members(size_t n)
	{
		attr.eps = n;
		OPEN();
	}

	static Ranks first(size_t n)
	{
		Ranks r;

		for (size_t i = 0; i < n; i++)
			r.push_back(i);
		return r;
	}

	/* A set of the members @ranks, in their order. */
	struct fid_av_set *set_at(struct tdt_ep *e, const Ranks &ranks,
				  uint64_t flags = 0)
	{
		struct fi_av_set_attr a;
		struct fid_av_set *set = nullptr;

		memset(&a, 0, sizeof(a));
		a.start_addr = a.end_addr = FI_ADDR_NOTAVAIL;
		a.flags = flags;
		EXPECT_EQ(0, fi_av_set(e->av, &a, &set, this));
		for (size_t r : ranks)
			EXPECT_EQ(0, fi_av_set_insert(set, e->peers[r]));
		return set;
	}

	/* Begin to join at member @i of the group. */
	void begin_join(Group &g, size_t i, uint64_t flags = 0)
	{
		struct tdt_ep *e = ep(g.ranks[i]);
		fi_addr_t all = FI_ADDR_NOTAVAIL;

		if (g.set.size() < g.ranks.size()) {
			g.set.resize(g.ranks.size());
			g.mc.resize(g.ranks.size());
		}
		g.set[i] = set_at(e, g.ranks, flags);
		ASSERT_EQ(0, fi_av_set_addr(g.set[i], &all));
		ASSERT_EQ(0, fi_join_collective(e->ep, all, g.set[i], 0,
						&g.mc[i], &g.context));
	}

	/* Wait for the next event of @e; 0, or the error of an error event. */
	int event(struct tdt_ep *e, struct fi_eq_entry *entry)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct fi_eq_err_entry x;
		uint32_t type = 0;
		ssize_t n;

		do {
			tdt_progress(w);
			n = fi_eq_read(e->eq, &type, entry, sizeof(*entry), 0);
		} while (n == -FI_EAGAIN && tdt_now_ms() < end);
		if (n == -FI_EAVAIL) {
			memset(&x, 0, sizeof(x));
			EXPECT_LT(0, fi_eq_readerr(e->eq, &x, 0));
			entry->fid = x.fid;
			entry->context = x.context;
			return x.err;
		}
		EXPECT_EQ(ssize_t(sizeof(*entry)), n);
		EXPECT_EQ(uint32_t(FI_JOIN_COMPLETE), type);
		return 0;
	}

	/* The event about the group at member @i: losses of peers are skipped. */
	int join_event(Group &g, size_t i)
	{
		struct fi_eq_entry e;
		int err;

		do
			err = event(ep(g.ranks[i]), &e);
		while (err && e.fid != &g.mc[i]->fid);
		EXPECT_EQ(&g.mc[i]->fid, e.fid);
		EXPECT_EQ(&g.context, e.context);
		return err;
	}

	void join(Group &g, const Ranks &ranks, uint64_t flags = 0)
	{
		g.ranks = ranks;
		for (size_t i = 0; i < ranks.size(); i++)
			OK(begin_join(g, i, flags));
		for (size_t i = 0; i < ranks.size(); i++)
			ASSERT_EQ(0, join_event(g, i));
	}

	void leave(Group &g)
	{
		for (size_t i = 0; i < g.mc.size(); i++) {
			if (g.mc[i]) {
				EXPECT_EQ(0, fi_close(&g.mc[i]->fid));
			}
			if (g.set[i]) {
				EXPECT_EQ(0, fi_close(&g.set[i]->fid));
			}
		}
		g.mc.clear();
		g.set.clear();
	}

	static fi_addr_t at(const Group &g, size_t i)
	{
		return fi_mc_addr(g.mc[i]);
	}

	struct fid_ep *fid(const Group &g, size_t i)
	{
		return ep(g.ranks[i])->ep;
	}

	/* The address of member @root at member @i. */
	fi_addr_t root(const Group &g, size_t i, size_t root)
	{
		return ep(g.ranks[i])->peers[g.ranks[root]];
	}

	/* Wait for the operation with @context at all members. */
	void all_done(const Group &g, void *context)
	{
		for (size_t r : g.ranks)
			OK(done(ep(r), context, FI_COLLECTIVE));
	}
};

} // namespace collective_test

#endif /* TDT_COLLECTIVE_H */
