/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Members in processes of their own, and members that go: each operation that
 * cannot end without them ends at all others, fi_tandem(7) COLLECTIVES.
 */
#include <csignal>

#include "collective.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

using namespace collective_test;

class CollectiveLoss : public Collective
{
protected:
	Group g;
	int op = 0, second = 0;

	void TearDown() override
	{
		if (w)
			leave(g);
		Case::TearDown();
	}

	void barrier(size_t i, void *context)
	{
		ASSERT_EQ(0, fi_barrier(fid(g, i), at(g, i), context));
	}

	/* The operation of member @i ends with one of the errors of a loss. */
	void lost(size_t i, void *context)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(ep(i), context, &c)) << i;
		EXPECT_TRUE(c.err == FI_ECONNABORTED ||
			    c.err == FI_ECONNRESET ||
			    c.err == FI_ECONNREFUSED || c.err == FI_ENOTCONN)
			<< fi_strerror(c.err) << " at " << i;
		EXPECT_EQ(uint64_t(FI_COLLECTIVE), c.flags);
	}

	/* Close the endpoint of member @i, and then what it had. */
	void close_member(size_t i)
	{
		ASSERT_EQ(0, fi_close(&ep(i)->ep->fid));
		ep(i)->ep = nullptr;
		EXPECT_EQ(0, fi_close(&g.mc[i]->fid));
		EXPECT_EQ(0, fi_close(&g.set[i]->fid));
		g.mc[i] = nullptr;
		g.set[i] = nullptr;
		ASSERT_EQ(0, tdt_ep_close(ep(i)));
	}
};

TEST_F(CollectiveLoss, AGroupCannotBeLeftMeanwhile)
{
	OK(open_members(2));
	OK(join(g, first(2)));
	OK(barrier(0, &op));
	EXPECT_EQ(-FI_EBUSY, fi_close(&g.mc[0]->fid));
	OK(barrier(1, &op));
	OK(all_done(g, &op));
}

TEST_F(CollectiveLoss, NorAJoinThatIsUnderWay)
{
	OK(open_members(2));
	g.ranks = first(2);
	OK(begin_join(g, 0));
	EXPECT_EQ(-FI_EBUSY, fi_close(&g.mc[0]->fid));
	OK(begin_join(g, 1));
	for (size_t i = 0; i < 2; i++)
		ASSERT_EQ(0, join_event(g, i));
}

TEST_F(CollectiveLoss, CancelEndsItEverywhere)
{
	/* fi_cancel of one member: FI_ECANCELED there, FI_ECONNABORTED at the
	 * others, also where the operation begins later. */
	OK(open_members(5));
	OK(join(g, first(5)));
	for (size_t i = 0; i < 4; i++)
		OK(barrier(i, &op));
	EXPECT_EQ(-FI_ENOENT, fi_cancel(&ep(0)->ep->fid, &second));
	ASSERT_EQ(0, fi_cancel(&ep(2)->ep->fid, &op));
	OK(failed(ep(2), &op, FI_ECANCELED));
	for (size_t i : { 0, 1, 3 })
		OK(failed(ep(i), &op, FI_ECONNABORTED));
	OK(barrier(4, &op));
	OK(failed(ep(4), &op, FI_ECONNABORTED));
	for (size_t i = 0; i < 5; i++) {
		OK(barrier(i, &second));
		OK(failed(ep(i), &second, FI_ECONNABORTED));
	}
}

TEST_F(CollectiveLoss, WhatWasBegunBeforeEnds)
{
	/* Only operations that need the member end with an error. */
	uint64_t in[4] = { 1, 2, 4, 8 }, out[4] = {};

	OK(open_members(4));
	OK(join(g, first(4)));
	for (size_t i = 0; i < 4; i++)
		ASSERT_EQ(0, fi_allreduce(fid(g, i), &in[i], 1, nullptr,
					  &out[i], nullptr, at(g, i), FI_UINT64,
					  FI_SUM, 0, &op));
	for (size_t i = 0; i < 3; i++)
		OK(barrier(i, &second));
	OK(all_done(g, &op));
	for (uint64_t sum : out)
		EXPECT_EQ(15u, sum);
	OK(close_member(3));
	for (size_t i = 0; i < 3; i++)
		OK(lost(i, &second));
}

TEST_F(CollectiveLoss, OfEachMemberInEachOperation)
{
	/* One is gone before the others call, or while they wait. */
	enum { N = 4 };
	std::vector<Bytes> in(N, Bytes(N * 70000)), out(N, Bytes(N * 70000));

	for (size_t gone = 0; gone < N; gone++) {
		for (int before = 0; before < 2; before++) {
			SCOPED_TRACE(std::to_string(gone) +
				     (before ? " before" : " meanwhile"));
			OK(open_members(N));
			OK(join(g, first(N)));
			if (before) {
				OK(close_member(gone));
			}
			for (size_t i = 0; i < N; i++)
				if (i != gone) {
					ASSERT_EQ(0, fi_allreduce(
							     fid(g, i),
							     in[i].data(),
							     70000, nullptr,
							     out[i].data(),
							     nullptr, at(g, i),
							     FI_UINT8, FI_SUM,
							     0, &op));
				}
			if (!before) {
				tdt_settle(w, 5);
				OK(close_member(gone));
			}
			for (size_t i = 0; i < N; i++)
				if (i != gone) {
					OK(lost(i, &op));
				}
			leave(g);
			close();
		}
	}
}

TEST_F(CollectiveLoss, OfAMemberThatNeverSentAnything)
{
	/* The receiver of a broadcast has no path to its root yet. */
	enum { N = 7 };
	uint64_t x[N] = {};

	OK(open_members(N));
	OK(join(g, first(N)));
	OK(close_member(3));
	for (size_t i = 0; i < N; i++)
		if (i != 3) {
			ASSERT_EQ(0, fi_broadcast(fid(g, i), &x[i], 1, nullptr,
						  at(g, i), root(g, i, 3),
						  FI_UINT64, 0, &op));
		}
	for (size_t i = 0; i < N; i++)
		if (i != 3) {
			OK(lost(i, &op));
		}
}

TEST_F(CollectiveLoss, OfAnAddress)
{
	fi_addr_t a;

	OK(open_members(2));
	OK(join(g, first(2)));
	OK(barrier(0, &op));
	a = ep(0)->peers[1];
	ASSERT_EQ(0, fi_av_remove(ep(0)->av, &a, 1, 0));
	OK(failed(ep(0), &op, FI_ECONNABORTED));
}

TEST_F(CollectiveLoss, OfAllOthersIsSilent)
{
	/* Members that have left do not disturb the one that remains. */
	OK(open_members(3));
	OK(join(g, first(3)));
	for (size_t i = 0; i < 3; i++)
		OK(barrier(i, &op));
	OK(all_done(g, &op));
	OK(close_member(1));
	OK(close_member(2));
	tdt_settle(w, 20);
	EXPECT_EQ(0u, tdt_pending(w));
}

TEST_F(CollectiveLoss, AJoinFailsWithoutAMember)
{
	OK(open_members(4));
	ASSERT_EQ(0,
		  tdt_warm_up(w)); /* a peer that was there is given up soon */
	g.ranks = first(4);
	for (size_t i = 0; i < 3; i++)
		OK(begin_join(g, i));
	ASSERT_EQ(0, tdt_ep_close(ep(3)));
	for (size_t i = 0; i < 3; i++) {
		EXPECT_NE(0, join_event(g, i)) << i;
		EXPECT_EQ(-FI_EINVAL, fi_barrier(fid(g, i), at(g, i), &op));
	}
}

/* ---- processes ----------------------------------------------------------- */

/* The work of each member of a group of processes; 0, or the line that failed. */
class Member
{
public:
	struct tdt_world *w = nullptr;
	struct fid_av_set *set = nullptr;
	struct fid_mc *mc = nullptr;
	size_t rank = 0, n = 0;

	int open()
	{
		struct tdt_attr attr;

		tdt_attr_init(&attr);
		attr.eps = 1;
		attr.no_tcp_only = 1;
		attr.no_insert = 1;
		attr.eq = 1;
		attr.caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE;
		return tdt_world_open(&attr, &w) ? __LINE__ : 0;
	}

	struct tdt_ep *ep() const
	{
		return &w->eps[0];
	}

	int insert(const std::vector<struct tdt_name> &names, size_t mine)
	{
		rank = mine;
		n = names.size();
		for (size_t i = 0; i < n; i++)
			if (fi_av_insert(ep()->av, names[i].bytes, 1,
					 &ep()->peers[i], 0, nullptr) != 1)
				return __LINE__;
		return 0;
	}

	/* 0, or the error of the event. */
	int join()
	{
		struct fi_av_set_attr a = {};
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct fi_eq_entry e;
		struct fi_eq_err_entry x;
		uint32_t type;
		ssize_t ret;

		a.flags = FI_UNIVERSE;
		if (fi_av_set(ep()->av, &a, &set, nullptr) ||
		    fi_join_collective(ep()->ep, FI_ADDR_NOTAVAIL, set, 0, &mc,
				       nullptr))
			return -1;
		for (;;) {
			tdt_progress(w);
			ret = fi_eq_read(ep()->eq, &type, &e, sizeof(e), 0);
			if (ret > 0)
				return type == FI_JOIN_COMPLETE ? 0 : -2;
			if (ret == -FI_EAVAIL) {
				memset(&x, 0, sizeof(x));
				fi_eq_readerr(ep()->eq, &x, 0);
				if (x.fid == &mc->fid)
					return x.err;
			} else if (ret != -FI_EAGAIN || tdt_now_ms() > end) {
				return -3;
			}
		}
	}

	/* Join; then leave the group of before. */
	int rejoin()
	{
		struct fid_av_set *old_set = set;
		struct fid_mc *old = mc;
		int ret = join();

		if (old && (fi_close(&old->fid) || fi_close(&old_set->fid)))
			return -4;
		return ret;
	}

	/* The error of the completion with @context; -1: none came. */
	int wait(const void *context)
	{
		struct tdt_comp c;

		return tdt_wait(ep(), context, &c) ? -1 : c.err;
	}

	int barrier()
	{
		return fi_barrier(ep()->ep, fi_mc_addr(mc), this) ? -1 :
								    wait(this);
	}

	/* Operations of @count values, each compared with what is right. */
	int verify(size_t count)
	{
		std::vector<uint32_t> in(count * n), out(count * n);
		struct fid_ep *e = ep()->ep;
		fi_addr_t c = fi_mc_addr(mc), last = ep()->peers[n - 1];

		for (size_t i = 0; i < in.size(); i++)
			in[i] = uint32_t(rank * 1000003 + i);
		if (fi_allreduce(e, in.data(), count, nullptr, out.data(),
				 nullptr, c, FI_UINT32, FI_SUM, 0, &in) ||
		    wait(&in))
			return __LINE__;
		for (size_t i = 0; i < count; i++)
			if (out[i] != sum(i))
				return __LINE__;
		if (fi_alltoall(e, in.data(), count, nullptr, out.data(),
				nullptr, c, FI_UINT32, 0, &in) ||
		    wait(&in))
			return __LINE__;
		for (size_t k = 0; k < n; k++)
			for (size_t i = 0; i < count; i++)
				if (out[k * count + i] !=
				    uint32_t(k * 1000003 + rank * count + i))
					return __LINE__;
		if (fi_reduce_scatter(e, in.data(), count, nullptr, out.data(),
				      nullptr, c, FI_UINT32, FI_SUM, 0, &in) ||
		    wait(&in))
			return __LINE__;
		for (size_t i = 0; i < count; i++)
			if (out[i] != sum(rank * count + i))
				return __LINE__;
		if (fi_allgather(e, in.data(), count, nullptr, out.data(),
				 nullptr, c, FI_UINT32, 0, &in) ||
		    wait(&in))
			return __LINE__;
		for (size_t k = 0; k < n; k++)
			if (out[k * count] != uint32_t(k * 1000003))
				return __LINE__;
		if (fi_broadcast(e, in.data(), count, nullptr, c, last,
				 FI_UINT32, 0, &in) ||
		    wait(&in))
			return __LINE__;
		for (size_t i = 0; i < count; i++)
			if (in[i] != uint32_t((n - 1) * 1000003 + i))
				return __LINE__;
		return barrier() ? __LINE__ : 0;
	}

	int close()
	{
		if (mc && fi_close(&mc->fid))
			return __LINE__;
		if (set && fi_close(&set->fid))
			return __LINE__;
		return tdt_world_close(w) ? __LINE__ : 0;
	}

private:
	uint32_t sum(size_t index) const
	{
		uint32_t s = 0;

		for (size_t k = 0; k < n; k++)
			s += uint32_t(k * 1000003 + index);
		return s;
	}
};

/* A command to a child, and its answer. */
struct Order {
	char what;
	uint32_t number; /* rank, or count */
	struct tdt_name names[TDT_MAX_EPS];
	uint32_t name_count;
};

int obey(Member &m, const Order &o)
{
	switch (o.what) {
	case 'n':
		return m.insert({ o.names, o.names + o.name_count }, o.number);
	case 'j':
		return m.rejoin();
	case 'v':
		return m.verify(o.number);
	case 'b':
		return m.barrier();
	default:
		return m.close();
	}
}

/* TDT_ARG "tcp": without shared memory. */
TDT_ROLE(member)
{
	Member m;
	Order o;
	int answer;

	if (arg && !strcmp(arg, "tcp"))
		setenv("FI_TANDEM_SHM", "off", 1);
	if (m.open() || tdt_tell_name(fd, m.ep()))
		return 1;
	for (;;) {
		ssize_t got = tdt_hear_now(fd, &o, sizeof(o));

		tdt_progress(m.w);
		if (got == 0)
			return 0;
		if (got < 0)
			continue;
		answer = obey(m, o);
		if (tdt_tell(fd, &answer, sizeof(answer)))
			return 2;
		if (o.what == 'x')
			return answer != 0;
	}
}

class CollectiveProcesses : public testing::Test
{
protected:
	Member me;
	std::vector<struct tdt_child> children;

	~CollectiveProcesses() override
	{
		for (auto &c : children)
			tdt_child_kill(&c, SIGKILL);
	}

	/* This process is member 0; each other child keeps to TCP. */
	void start(size_t n)
	{
		Order o = {};

		ASSERT_EQ(0, me.open());
		o.what = 'n';
		o.name_count = uint32_t(n);
		o.names[0].len = me.ep()->namelen;
		memcpy(o.names[0].bytes, me.ep()->name, me.ep()->namelen);
		children.resize(n - 1, { 0, -1 });
		for (size_t i = 1; i < n; i++) {
			auto &c = children[i - 1];

			ASSERT_EQ(0, tdt_child_start(&c, "member",
						     i % 2 ? "shm" : "tcp"));
			ASSERT_LT(0, tdt_hear(c.fd, &o.names[i],
					      sizeof(o.names[i])));
		}
		for (size_t i = 1; i < n; i++) {
			o.number = uint32_t(i);
			ASSERT_EQ(0,
				  tdt_tell(children[i - 1].fd, &o, sizeof(o)));
			ASSERT_EQ(0, answer(i));
		}
		ASSERT_EQ(0, me.insert({ o.names, o.names + n }, 0));
	}

	void order(char what, uint32_t number = 0)
	{
		Order o = {};

		o.what = what;
		o.number = number;
		for (auto &c : children)
			if (c.pid) {
				ASSERT_EQ(0, tdt_tell(c.fd, &o, sizeof(o)));
			}
	}

	/* The answer of member @i. Progress is made meanwhile. */
	int answer(size_t i)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		int got = -9;

		while (tdt_hear_now(children[i - 1].fd, &got, sizeof(got)) ==
			       -EAGAIN &&
		       tdt_now_ms() < end)
			tdt_progress(me.w);
		return got;
	}

	void all_answer(int what)
	{
		for (size_t i = 1; i <= children.size(); i++)
			if (children[i - 1].pid) {
				ASSERT_EQ(what, answer(i)) << "member " << i;
			}
	}

	void end()
	{
		order('x');
		all_answer(0);
		EXPECT_EQ(0, me.close());
		for (auto &c : children)
			if (c.pid) {
				EXPECT_EQ(0, tdt_child_wait(&c));
			}
	}
};

TEST_F(CollectiveProcesses, OverBothTiers)
{
	for (size_t n : { 2, 5, 8 }) {
		OK(start(n));
		order('j');
		ASSERT_EQ(0, me.join());
		OK(all_answer(0));
		for (uint32_t count : { 1, 50, 3000, 20000 }) {
			order('v', count);
			ASSERT_EQ(0, me.verify(count)) << count;
			OK(all_answer(0));
		}
		OK(end());
		children.clear();
		me = Member();
	}
}

TEST_F(CollectiveProcesses, AKilledMemberEndsItAtAllOthers)
{
	for (size_t dead : { 1, 2, 4 }) {
		OK(start(5));
		order('j');
		ASSERT_EQ(0, me.join());
		OK(all_answer(0));
		tdt_child_kill(&children[dead - 1], SIGSTOP);
		order('b');
		tdt_child_kill(&children[dead - 1], SIGKILL);
		children[dead - 1].pid = 0;
		EXPECT_LT(0, me.barrier());
		for (size_t i = 1; i < 5; i++)
			if (i != dead) {
				EXPECT_LT(0, answer(i)) << i;
			}
		/* and all that follows */
		order('b');
		EXPECT_LT(0, me.barrier());
		for (size_t i = 1; i < 5; i++)
			if (i != dead) {
				EXPECT_LT(0, answer(i)) << i;
			}
		OK(end());
		children.clear();
		me = Member();
	}
}

TEST_F(CollectiveProcesses, AKilledMemberEndsTheJoin)
{
	/* They have met: a peer that was there is given up soon. */
	OK(start(5));
	order('j');
	ASSERT_EQ(0, me.join());
	OK(all_answer(0));
	tdt_child_kill(&children[2], SIGKILL);
	children[2].pid = 0;
	order('j');
	EXPECT_LT(0, me.rejoin());
	for (size_t i : { 1, 2, 4 })
		EXPECT_LT(0, answer(i)) << i;
	OK(end());
}

} // namespace
