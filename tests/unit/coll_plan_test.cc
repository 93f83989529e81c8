/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plans of collective operations, carried out by members in one process that
 * exchange messages through queues, and compared with what fi_collective(3) says
 * each member gets.
 */
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "coll/build.h"
#include "coll/team.h"
#include "tests/harness/fault.h"
}

namespace
{

using Bytes = std::vector<uint8_t>;

/* A value of the tests: sums are compared, and who was first of equals. */
struct Value {
	uint32_t sum;
	uint32_t first;
};

/* One member. Its buffers end at the last byte that it may touch. */
struct Member {
	struct tdm_coll_map map = {};
	struct tdm_coll_plan plan;
	Bytes buf[TDM_COLL_BUFS];
	size_t at = 0;
	std::vector<size_t> receives; /* steps of the round that wait */
	bool dead = false;

	~Member()
	{
		tdm_coll_plan_fini(&plan);
		tdm_coll_map_fini(&map);
	}
};

class Plans
{
public:
	std::vector<std::unique_ptr<Member>> m;
	size_t sent = 0, between_hosts = 0;
	std::vector<size_t> far_bytes; /* of each member, to other hosts */

	/* @hosts: the host of each member. */
	explicit Plans(const std::vector<uint64_t> &hosts)
	{
		uint32_t n = uint32_t(hosts.size());

		for (uint32_t i = 0; i < n; i++) {
			m.emplace_back(new Member);
			far_bytes.push_back(0);
			tdm_coll_plan_init(&m[i]->plan);
			EXPECT_EQ(0, tdm_coll_map_init(&m[i]->map, n, i,
						       hosts.data()));
		}
	}

	void build(tdm_coll_build_fn fn, const struct tdm_coll_job &job)
	{
		for (auto &x : m) {
			fn(&x->plan, &x->map, &job);
			ASSERT_FALSE(x->plan.failed);
			x->buf[TDM_COLL_TMP].resize(x->plan.tmp);
		}
	}

	/* Let each member do what it can. Returns whether one did anything. */
	bool some()
	{
		bool moved = false;

		for (size_t i = 0; i < m.size(); i++)
			while (!m[i]->dead && step(i))
				moved = true;
		return moved;
	}

	bool done(size_t i) const
	{
		return m[i]->at == m[i]->plan.count && m[i]->receives.empty();
	}

	/* Run all plans to their ends. */
	void run()
	{
		while (some())
			;
		for (size_t i = 0; i < m.size(); i++) {
			if (m[i]->dead)
				continue;
			ASSERT_TRUE(done(i)) << i << " hangs";
		}
		for (auto &q : wire)
			EXPECT_TRUE(q.second.empty()) << "left unread";
	}

private:
	std::map<std::pair<size_t, size_t>, std::deque<Bytes>> wire;

	uint8_t *place(Member &x, struct tdm_coll_at at, size_t len)
	{
		EXPECT_LE(at.at + len, x.buf[at.buf].size())
			<< "beyond the end of buffer " << at.buf;
		return at.at + len <= x.buf[at.buf].size() ?
			       x.buf[at.buf].data() + at.at :
			       nullptr;
	}

	static void reduce(uint8_t *to, const uint8_t *from, size_t len)
	{
		for (size_t i = 0; i < len; i += sizeof(Value)) {
			Value a, b;

			memcpy(&a, to + i, sizeof(a));
			memcpy(&b, from + i, sizeof(b));
			a.sum += b.sum;
			memcpy(to + i, &a, sizeof(a));
		}
	}

	/* Complete one receive of the round, or do one step. */
	bool step(size_t i)
	{
		Member &x = *m[i];

		for (size_t k = 0; k < x.receives.size(); k++) {
			const struct tdm_coll_step &s =
				x.plan.step[x.receives[k]];
			auto &q = wire[{ s.rank, i }];
			bool gone = m[s.rank]->dead;

			/* those from one member match in order */
			bool first = true;
			for (size_t j = 0; j < k; j++)
				if (x.plan.step[x.receives[j]].rank == s.rank)
					first = false;
			if (!first || (q.empty() && !gone))
				continue;
			if (q.empty() && s.len) {
				memset(place(x, s.to, s.len), 0, s.len);
			} else if (!q.empty()) {
				EXPECT_EQ(s.len, q.front().size());
				std::copy(q.front().begin(), q.front().end(),
					  place(x, s.to, s.len));
				q.pop_front();
			}
			x.receives.erase(x.receives.begin() + ptrdiff_t(k));
			return true;
		}
		if (x.at == x.plan.count)
			return false;
		const struct tdm_coll_step &s = x.plan.step[x.at];

		if (s.begins && !x.receives.empty())
			return false;
		x.at++;
		carry_out(i, x, s);
		return true;
	}

	void carry_out(size_t i, Member &x, const struct tdm_coll_step &s)
	{
		switch (s.what) {
		case TDM_COLL_SEND: {
			ASSERT_LT(s.rank, m.size());
			ASSERT_NE(i, s.rank);
			const uint8_t *p = place(x, s.from, s.len);

			sent++;
			if (x.map.host[i] != x.map.host[s.rank]) {
				between_hosts++;
				far_bytes[i] += s.len;
			}
			if (!m[s.rank]->dead)
				wire[{ i, s.rank }].emplace_back(p, p + s.len);
			break;
		}
		case TDM_COLL_RECV:
			x.receives.push_back(x.at - 1);
			break;
		case TDM_COLL_COPY:
			if (s.len)
				memmove(place(x, s.to, s.len),
					place(x, s.from, s.len), s.len);
			break;
		default:
			reduce(place(x, s.to, s.len), place(x, s.from, s.len),
			       s.len);
		}
	}
};

/* The value @index that member @rank contributes. */
Value value(uint32_t rank, size_t index)
{
	return { uint32_t(rank * 2654435761u + index * 40503u), rank };
}

Bytes values(uint32_t rank, size_t count, size_t from = 0)
{
	Bytes b(count * sizeof(Value));

	for (size_t i = 0; i < count; i++) {
		Value v = value(rank, from + i);

		memcpy(&b[i * sizeof(v)], &v, sizeof(v));
	}
	return b;
}

uint32_t sum_at(uint32_t n, size_t index)
{
	uint32_t s = 0;

	for (uint32_t r = 0; r < n; r++)
		s += value(r, index).sum;
	return s;
}

/* The sums of @count values from @from on. */
void expect_sums(const Bytes &b, uint32_t n, size_t count, size_t from = 0)
{
	ASSERT_EQ(count * sizeof(Value), b.size());
	for (size_t i = 0; i < count; i++) {
		Value v;

		memcpy(&v, &b[i * sizeof(v)], sizeof(v));
		ASSERT_EQ(sum_at(n, from + i), v.sum) << i << " of " << count;
	}
}

/* Where the members are: number of members, and of hosts. */
struct Layout {
	uint32_t members, hosts;
	bool mixed; /* ranks of a host are not neighbours */
};

std::ostream &operator<<(std::ostream &o, const Layout &l)
{
	return o << l.members << " members on " << l.hosts
		 << (l.mixed ? " hosts, mixed" : " hosts");
}

class CollPlan : public testing::TestWithParam<Layout>
{
protected:
	uint32_t n = GetParam().members;
	std::vector<uint64_t> hosts;
	/* one value, a few, and enough to be cut into pieces */
	const std::vector<size_t> counts = {
		1, 7, TDM_COLL_BIG_BYTES / sizeof(Value) + 5
	};

	void SetUp() override
	{
		for (uint32_t i = 0; i < n; i++)
			hosts.push_back(GetParam().mixed ?
						i % GetParam().hosts :
						uint64_t(i) * GetParam().hosts /
							n);
	}

	std::vector<uint32_t> roots() const
	{
		return n > 2 ? std::vector<uint32_t>{ 0, n / 2, n - 1 } :
			       std::vector<uint32_t>{ 0, n - 1 };
	}

	static struct tdm_coll_job job(size_t count, uint32_t root = 0)
	{
		return { count * sizeof(Value), sizeof(Value), root };
	}
};

TEST_P(CollPlan, Broadcast)
{
	for (size_t c : counts) {
		for (uint32_t root : roots()) {
			Plans p(hosts);

			for (uint32_t i = 0; i < n; i++)
				p.m[i]->buf[TDM_COLL_OUT] =
					i == root ? values(root, c) :
						    Bytes(c * sizeof(Value));
			p.build(tdm_coll_broadcast, job(c, root));
			p.run();
			for (auto &x : p.m)
				ASSERT_EQ(values(root, c),
					  x->buf[TDM_COLL_OUT]);
		}
	}
}

TEST_P(CollPlan, Allreduce)
{
	for (size_t c : counts) {
		Plans p(hosts);

		for (uint32_t i = 0; i < n; i++) {
			p.m[i]->buf[TDM_COLL_IN] = values(i, c);
			p.m[i]->buf[TDM_COLL_OUT].resize(c * sizeof(Value));
		}
		p.build(tdm_coll_allreduce, job(c));
		p.run();
		for (auto &x : p.m) {
			expect_sums(x->buf[TDM_COLL_OUT], n, c);
			/* also where reducing keeps one of two */
			ASSERT_EQ(p.m[0]->buf[TDM_COLL_OUT],
				  x->buf[TDM_COLL_OUT]);
		}
	}
}

TEST_P(CollPlan, Reduce)
{
	for (size_t c : counts) {
		for (uint32_t root : roots()) {
			Plans p(hosts);

			for (uint32_t i = 0; i < n; i++)
				p.m[i]->buf[TDM_COLL_IN] = values(i, c);
			p.m[root]->buf[TDM_COLL_OUT].resize(c * sizeof(Value));
			p.build(tdm_coll_reduce, job(c, root));
			p.run();
			expect_sums(p.m[root]->buf[TDM_COLL_OUT], n, c);
		}
	}
}

TEST_P(CollPlan, ReduceScatter)
{
	for (size_t c : counts) {
		Plans p(hosts);

		for (uint32_t i = 0; i < n; i++) {
			p.m[i]->buf[TDM_COLL_IN] = values(i, c * n);
			p.m[i]->buf[TDM_COLL_OUT].resize(c * sizeof(Value));
		}
		p.build(tdm_coll_reduce_scatter, job(c));
		p.run();
		for (uint32_t i = 0; i < n; i++)
			expect_sums(p.m[i]->buf[TDM_COLL_OUT], n, c, c * i);
	}
}

TEST_P(CollPlan, ScatterAndGather)
{
	for (size_t c : counts) {
		for (uint32_t root : roots()) {
			Plans s(hosts), g(hosts);

			s.m[root]->buf[TDM_COLL_IN] = values(root, c * n);
			g.m[root]->buf[TDM_COLL_OUT].resize(c * n *
							    sizeof(Value));
			for (uint32_t i = 0; i < n; i++) {
				s.m[i]->buf[TDM_COLL_OUT].resize(c *
								 sizeof(Value));
				g.m[i]->buf[TDM_COLL_IN] =
					values(root, c, c * i);
			}
			s.build(tdm_coll_scatter, job(c, root));
			g.build(tdm_coll_gather, job(c, root));
			s.run();
			g.run();
			for (uint32_t i = 0; i < n; i++)
				ASSERT_EQ(values(root, c, c * i),
					  s.m[i]->buf[TDM_COLL_OUT]);
			ASSERT_EQ(values(root, c * n),
				  g.m[root]->buf[TDM_COLL_OUT]);
		}
	}
}

TEST_P(CollPlan, AllgatherAndAlltoall)
{
	for (size_t c : counts) {
		Plans g(hosts), t(hosts);
		Bytes all;

		for (uint32_t i = 0; i < n; i++) {
			Bytes mine = values(i, c);

			all.insert(all.end(), mine.begin(), mine.end());
			g.m[i]->buf[TDM_COLL_IN] = mine;
			g.m[i]->buf[TDM_COLL_OUT].resize(c * n * sizeof(Value));
			t.m[i]->buf[TDM_COLL_IN] = values(i, c * n);
			t.m[i]->buf[TDM_COLL_OUT].resize(c * n * sizeof(Value));
		}
		g.build(tdm_coll_allgather, job(c));
		t.build(tdm_coll_alltoall, job(c));
		g.run();
		t.run();
		for (uint32_t i = 0; i < n; i++) {
			Bytes mine;

			for (uint32_t r = 0; r < n; r++) {
				Bytes b = values(r, c, c * i);

				mine.insert(mine.end(), b.begin(), b.end());
			}
			ASSERT_EQ(all, g.m[i]->buf[TDM_COLL_OUT]);
			ASSERT_EQ(mine, t.m[i]->buf[TDM_COLL_OUT]);
		}
	}
}

TEST_P(CollPlan, BarrierWaitsForAll)
{
	/* fi_collective(3) 2.1, fi_barrier 1: no member is done before all have
	 * called. The one that has not is a member without a plan. */
	for (uint32_t late : roots()) {
		Plans p(hosts);

		p.build(tdm_coll_barrier, job(0));
		if (n == 1)
			break;
		size_t held = p.m[late]->plan.count;

		p.m[late]->plan.count = 0;
		for (bool moved = true; moved;)
			moved = p.some();
		for (uint32_t i = 0; i < n; i++)
			if (i != late) {
				EXPECT_FALSE(p.done(i)) << i;
			}
		p.m[late]->plan.count = held;
		p.run();
	}
}

TEST_P(CollPlan, HostsExchangeOneMessageEach)
{
	uint32_t h = GetParam().hosts;
	Plans b(hosts), s(hosts), g(hosts);

	for (uint32_t i = 0; i < n; i++) {
		b.m[i]->buf[TDM_COLL_OUT].resize(sizeof(Value));
		s.m[i]->buf[TDM_COLL_OUT].resize(sizeof(Value));
		s.m[i]->buf[TDM_COLL_IN].resize(n * sizeof(Value));
		g.m[i]->buf[TDM_COLL_IN].resize(sizeof(Value));
		g.m[i]->buf[TDM_COLL_OUT].resize(n * sizeof(Value));
	}
	b.build(tdm_coll_broadcast, job(1, n - 1));
	s.build(tdm_coll_scatter, job(1, n - 1));
	g.build(tdm_coll_gather, job(1, n - 1));
	for (auto *p : { &b, &s, &g }) {
		p->run();
		EXPECT_EQ(h - 1, p->between_hosts);
		EXPECT_EQ(n - 1, p->sent);
	}
}

TEST_P(CollPlan, HostsExchangeOneMessageEachInAShortAlltoall)
{
	uint32_t h = GetParam().hosts;
	Plans t(hosts);

	for (uint32_t i = 0; i < n; i++) {
		t.m[i]->buf[TDM_COLL_IN] = values(i, n);
		t.m[i]->buf[TDM_COLL_OUT].resize(n * sizeof(Value));
	}
	t.build(tdm_coll_alltoall, job(1));
	t.run();
	EXPECT_EQ(h * (h - 1), t.between_hosts);
	EXPECT_EQ(h > 1 ? h * (h - 1) + 2 * (n - h) : n * (n - 1), t.sent);
}

TEST_P(CollPlan, AllreduceCrossesTheNetworkOncePerHost)
{
	for (size_t c : counts) {
		const size_t bytes = c * sizeof(Value);
		size_t least = n, most = 0, busy = 0, sum = 0;
		Plans p(hosts);

		for (uint32_t i = 0; i < n; i++) {
			p.m[i]->buf[TDM_COLL_IN] = values(i, c);
			p.m[i]->buf[TDM_COLL_OUT].resize(c * sizeof(Value));
		}
		p.build(tdm_coll_allreduce, job(c));
		p.run();
		for (size_t b : p.far_bytes) {
			busy += b > 0;
			sum += b;
		}
		/* More than two hosts exchange as often as they double. */
		if (GetParam().hosts != 2) {
			EXPECT_LE(sum, GetParam().hosts == 1 ?
					       0 :
					       GetParam().hosts * 4 * bytes);
			continue;
		}
		EXPECT_EQ(2 * bytes, sum);
		/* Long data: as many members of both hosts as one of them has. */
		for (uint32_t h = 0; h < 2; h++) {
			size_t here = size_t(
				std::count(hosts.begin(), hosts.end(), h));

			least = std::min(least, here);
			most = std::max(most, here);
		}
		ASSERT_LE(most, 2 * least);
		EXPECT_EQ(c == counts[2] ? 2 * least : 2, busy);
	}
}

TEST_P(CollPlan, AJoinTellsAllOfAll)
{
	const struct tdm_coll_job j = job(2);
	Plans p(hosts);

	for (uint32_t i = 0; i < n; i++) {
		Bytes mine = values(i, 2);

		p.m[i]->buf[TDM_COLL_OUT].resize(n * j.block);
		memcpy(&p.m[i]->buf[TDM_COLL_OUT][i * j.block], mine.data(),
		       j.block);
	}
	p.build(tdm_coll_meet, j);
	p.run();
	for (auto &x : p.m)
		for (uint32_t i = 0; i < n; i++)
			EXPECT_EQ(0, memcmp(values(i, 2).data(),
					    &x->buf[TDM_COLL_OUT][i * j.block],
					    j.block));
}

TEST_P(CollPlan, AJoinEndsWithoutAMember)
{
	/* All others end, and each misses the record of somebody. */
	const struct tdm_coll_job j = job(1);

	for (uint32_t gone = 0; gone < n; gone += 1 + n / 16) {
		Plans p(hosts);

		for (uint32_t i = 0; i < n; i++) {
			Value v = { 1, 1 };

			p.m[i]->buf[TDM_COLL_OUT].resize(n * j.block);
			memcpy(&p.m[i]->buf[TDM_COLL_OUT][i * j.block], &v,
			       sizeof(v));
		}
		p.build(tdm_coll_meet, j);
		p.m[gone]->dead = true;
		p.run();
		for (uint32_t i = 0; i < n; i++) {
			size_t missing = 0;

			for (uint32_t k = 0; i != gone && k < n; k++)
				missing +=
					!p.m[i]->buf[TDM_COLL_OUT][k * j.block];
			EXPECT_EQ(i != gone, missing > 0) << i << " " << gone;
		}
	}
}

INSTANTIATE_TEST_SUITE_P(
	Layouts, CollPlan,
	testing::Values(Layout{ 1, 1, false }, Layout{ 2, 1, false },
			Layout{ 2, 2, false }, Layout{ 3, 1, false },
			Layout{ 3, 2, false }, Layout{ 4, 2, true },
			Layout{ 5, 1, false }, Layout{ 5, 5, false },
			Layout{ 6, 3, true }, Layout{ 7, 2, true },
			Layout{ 8, 1, false }, Layout{ 8, 2, false },
			Layout{ 9, 3, false }, Layout{ 13, 4, true },
			Layout{ 16, 16, false }, Layout{ 16, 1, false },
			Layout{ 33, 5, true }, Layout{ 64, 8, false }),
	[](const testing::TestParamInfo<Layout> &i) {
		return std::to_string(i.param.members) + "On" +
		       std::to_string(i.param.hosts) +
		       (i.param.mixed ? "Mixed" : "");
	});

TEST(CollMap, HostsInTheOrderOfTheirKeys)
{
	const uint64_t key[] = { 9, 4, 9, 4, 7 };
	struct tdm_coll_map map;

	ASSERT_EQ(0, tdm_coll_map_init(&map, 5, 2, key));
	EXPECT_EQ(3u, map.hosts);
	EXPECT_EQ(std::vector<uint32_t>({ 1, 3, 4, 0, 2 }),
		  std::vector<uint32_t>(map.order, map.order + 5));
	EXPECT_EQ(std::vector<uint32_t>({ 0, 2, 3, 5 }),
		  std::vector<uint32_t>(map.first, map.first + 4));
	EXPECT_EQ(std::vector<uint32_t>({ 2, 0, 2, 0, 1 }),
		  std::vector<uint32_t>(map.host, map.host + 5));
	tdm_coll_map_fini(&map);
}

TEST(CollMap, OutOfMemory)
{
	const uint64_t key[4] = {};
	struct tdm_coll_plan plan;
	struct tdm_coll_map map;
	const struct tdm_coll_job job = { 8, 8, 0 };

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without the wrappers";
	for (unsigned nth = 1; nth < 3; nth++) {
		tdt_alloc_fail(nth, 0);
		EXPECT_EQ(-12, tdm_coll_map_init(&map, 4, 0, key));
		EXPECT_EQ(1u, tdt_alloc_stop());
		tdm_coll_map_fini(&map);
	}
	ASSERT_EQ(0, tdm_coll_map_init(&map, 4, 0, key));
	tdm_coll_plan_init(&plan);
	tdt_alloc_fail(1, 0);
	tdm_coll_allreduce(&plan, &map, &job);
	EXPECT_EQ(1u, tdt_alloc_stop());
	EXPECT_EQ(1, plan.failed);
	tdm_coll_plan_fini(&plan);
	tdm_coll_map_fini(&map);
}

} // namespace
