/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_collective(3) 2.1: groups, and what each operation brings to each member. */
#include <complex>

#include "collective.h"

namespace
{

using namespace collective_test;

/* ---- a plain reference --------------------------------------------------- */

template <typename T> T apply(enum fi_op op, T a, T b)
{
	if constexpr (std::is_integral_v<T>) {
		switch (op) {
		case FI_LOR:
			return T(a || b);
		case FI_LAND:
			return T(a && b);
		case FI_BOR:
			return T(a | b);
		case FI_BAND:
			return T(a & b);
		case FI_LXOR:
			return T(!a != !b);
		case FI_BXOR:
			return T(a ^ b);
		default:
			break;
		}
	}
	if constexpr (std::is_arithmetic_v<T>) {
		if (op == FI_MIN)
			return b < a ? b : a;
		if (op == FI_MAX)
			return b > a ? b : a;
	}
	return op == FI_SUM ? T(a + b) : T(a * b);
}

/* Small numbers: sums and products of them are exact in any order. */
template <typename T> T number(enum fi_op op, size_t member, size_t index)
{
	size_t mix = member * 7 + index * 3;

	if (op == FI_PROD)
		return T(mix % 5 == 0 ? 2 : 1);
	return T(mix % 6);
}

/* All that a test of one type needs, in bytes. */
template <typename T> struct Numbers {
	static Bytes make(enum fi_op op, size_t member, size_t count)
	{
		Bytes b(count * sizeof(T));

		for (size_t i = 0; i < count; i++) {
			T v = number<T>(op, member, i);

			memcpy(&b[i * sizeof(T)], &v, sizeof(T));
		}
		return b;
	}

	static Bytes reduced(enum fi_op op, size_t members, size_t count)
	{
		Bytes b(count * sizeof(T));

		for (size_t i = 0; i < count; i++) {
			T v = number<T>(op, 0, i);

			for (size_t m = 1; m < members; m++)
				v = apply<T>(op, v, number<T>(op, m, i));
			memcpy(&b[i * sizeof(T)], &v, sizeof(T));
		}
		return b;
	}

	static bool equal(const Bytes &a, const Bytes &b)
	{
		for (size_t i = 0; i < a.size(); i += sizeof(T)) {
			T x, y;

			memcpy(&x, &a[i], sizeof(T));
			memcpy(&y, &b[i], sizeof(T));
			if (x != y)
				return false;
		}
		return a.size() == b.size();
	}
};

/* A type, and its reference. */
struct Type {
	enum fi_datatype type;
	size_t size;
	int last; /* of enum fi_op: all to that one are offered */
	Bytes (*make)(enum fi_op, size_t, size_t);
	Bytes (*reduced)(enum fi_op, size_t, size_t);
	bool (*equal)(const Bytes &, const Bytes &);
	int start; /* of enum fi_op */
};

template <typename T>
Type type(enum fi_datatype t, int last, int start = FI_MIN)
{
	return { t,
		 sizeof(T),
		 last,
		 Numbers<T>::make,
		 Numbers<T>::reduced,
		 Numbers<T>::equal,
		 start };
}

const std::vector<Type> &types()
{
	static const std::vector<Type> all = {
		type<int8_t>(FI_INT8, FI_BXOR),
		type<uint8_t>(FI_UINT8, FI_BXOR),
		type<int16_t>(FI_INT16, FI_BXOR),
		type<uint16_t>(FI_UINT16, FI_BXOR),
		type<int32_t>(FI_INT32, FI_BXOR),
		type<uint32_t>(FI_UINT32, FI_BXOR),
		type<int64_t>(FI_INT64, FI_BXOR),
		type<uint64_t>(FI_UINT64, FI_BXOR),
		type<float>(FI_FLOAT, FI_PROD),
		type<double>(FI_DOUBLE, FI_PROD),
		type<long double>(FI_LONG_DOUBLE, FI_PROD),
		type<std::complex<float>>(FI_FLOAT_COMPLEX, FI_PROD, FI_SUM),
		type<std::complex<double>>(FI_DOUBLE_COMPLEX, FI_PROD, FI_SUM),
		type<std::complex<long double>>(FI_LONG_DOUBLE_COMPLEX, FI_PROD,
						FI_SUM),
		type<__int128>(FI_INT128, FI_PROD, FI_SUM),
		type<unsigned __int128>(FI_UINT128, FI_PROD, FI_SUM),
	};

	return all;
}

Bytes seeded(size_t n, uint32_t seed)
{
	Bytes b(n);

	tdt_fill(b.data(), n, seed);
	return b;
}

/* ---- groups -------------------------------------------------------------- */

TEST_F(Collective, JoinEndsByAnEvent)
{
	/* fi_collective(3) 2.1, Join Collective 2 and 3: it ends by
	 * FI_JOIN_COMPLETE, and only when all have called. */
	struct fi_eq_entry e;
	uint32_t type;
	Group g;

	OK(open_members(3));
	g.ranks = first(3);
	OK(begin_join(g, 0));
	OK(begin_join(g, 2));
	tdt_settle(w, 20);
	for (size_t i : { 0, 2 })
		EXPECT_EQ(-FI_EAGAIN,
			  fi_eq_read(ep(i)->eq, &type, &e, sizeof(e), 0));
	OK(begin_join(g, 1));
	for (size_t i = 0; i < 3; i++)
		ASSERT_EQ(0, join_event(g, i));
	for (size_t i = 0; i < 3; i++)
		EXPECT_EQ(&g.context, g.mc[i]->fid.context);
	leave(g);
}

TEST_F(Collective, JoinRefusesWhatIsWrong)
{
	struct fid_av_set *good, *none, *others;
	struct fid_mc *mc = nullptr;
	struct fi_collective_addr a;
	fi_addr_t all;

	OK(open_members(3));
	good = set_at(ep(0), first(3));
	none = set_at(ep(0), {});
	others = set_at(ep(0), { 1, 2 });
	ASSERT_EQ(0, fi_av_set_addr(good, &all));
	auto joins = [&](struct fid_av_set *set, fi_addr_t addr,
			 uint64_t flags) {
		return fi_join_collective(ep(0)->ep, addr, set, flags, &mc,
					  this);
	};
	EXPECT_EQ(-FI_EINVAL, joins(nullptr, all, 0));
	EXPECT_EQ(-FI_EINVAL, joins(none, all, 0));
	EXPECT_EQ(-FI_EINVAL, joins(others, all, 0)) << "not a member";
	EXPECT_EQ(-FI_EINVAL, joins(good, 0, 0)) << "no address of a group";
	EXPECT_EQ(-FI_EINVAL, joins(good, all + 77, 0));
	EXPECT_EQ(-FI_EBADFLAGS, joins(good, all, FI_SEND));
	EXPECT_EQ(-FI_EBADFLAGS, joins(good, all, FI_MORE));
	EXPECT_EQ(-FI_EINVAL, fi_join_collective(ep(0)->ep, all, good, 0,
						 nullptr, nullptr));
	/* a set of the vector of another endpoint */
	EXPECT_EQ(-FI_EINVAL,
		  fi_join_collective(ep(1)->ep, all, good, 0, &mc, nullptr));
	/* fi_join(3) without FI_COLLECTIVE: multicast */
	a.set = good;
	a.coll_addr = all;
	EXPECT_EQ(-FI_ENOSYS, fi_join(ep(0)->ep, &a, 0, &mc, nullptr));
	for (auto *s : { good, none, others })
		EXPECT_EQ(0, fi_close(&s->fid));
}

TEST_F(Collective, JoinNeedsAnEventQueue)
{
	/* fi_collective(3) 2.1, Join Collective 2. */
	struct fid_mc *mc;
	struct fid_av_set *set;

	attr.eq = 0;
	OK(open_members(2));
	set = set_at(ep(0), first(2));
	EXPECT_EQ(-FI_ENOEQ, fi_join_collective(ep(0)->ep, FI_ADDR_NOTAVAIL,
						set, 0, &mc, nullptr));
	EXPECT_EQ(0, fi_close(&set->fid));
}

TEST_F(Collective, OnlyWhereItWasAskedFor)
{
	/* fi_getinfo(3) 2.1, FI_COLLECTIVE: a primary capability. */
	struct fi_collective_attr q = {};
	struct fid_av_set *set;
	struct fid_mc *mc;

	attr.caps = FI_MSG | FI_TAGGED;
	OK(open_members(2));
	EXPECT_FALSE(w->info->caps & FI_COLLECTIVE);
	set = set_at(ep(0), first(2));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_join_collective(ep(0)->ep, FI_ADDR_NOTAVAIL, set, 0, &mc,
				     nullptr));
	EXPECT_GT(0, fi_barrier(ep(0)->ep, 0, nullptr));
	EXPECT_EQ(-FI_ENOSYS,
		  fi_query_collective(ep(0)->domain, FI_BARRIER, &q, 0));
	EXPECT_EQ(0, fi_close(&set->fid));
}

TEST_F(Collective, Query)
{
	/* fi_collective(3) 2.1, Query Collective Attributes. */
	static const enum fi_collective_op moves[] = {
		FI_BROADCAST, FI_ALLTOALL, FI_ALLGATHER, FI_SCATTER, FI_GATHER
	};
	static const enum fi_collective_op computes[] = { FI_ALLREDUCE,
							  FI_REDUCE_SCATTER,
							  FI_REDUCE };
	struct fi_collective_attr a = {};
	struct fid_domain *d;

	OK(open_members(2));
	d = ep(0)->domain;
	a.op = FI_NOOP;
	a.datatype = FI_VOID;
	EXPECT_EQ(0, fi_query_collective(d, FI_BARRIER, &a, 0));
	EXPECT_LE(64u, a.max_members);
	for (auto coll : moves) {
		a.datatype = FI_VOID;
		EXPECT_EQ(-FI_EOPNOTSUPP, fi_query_collective(d, coll, &a, 0));
		a.datatype = FI_DOUBLE;
		EXPECT_EQ(0, fi_query_collective(d, coll, &a, 0));
		EXPECT_EQ(sizeof(double), a.datatype_attr.size);
		EXPECT_LE(1u << 20, a.datatype_attr.count);
	}
	for (auto coll : computes) {
		for (const Type &t : types()) {
			a.datatype = t.type;
			a.op = fi_op(t.last);
			EXPECT_EQ(0, fi_query_collective(d, coll, &a, 0));
			EXPECT_EQ(t.size, a.datatype_attr.size);
			for (auto op : { FI_ATOMIC_READ, FI_ATOMIC_WRITE,
					 FI_CSWAP, FI_NOOP }) {
				a.op = op;
				EXPECT_EQ(-FI_EOPNOTSUPP,
					  fi_query_collective(d, coll, &a, 0));
			}
		}
		a.datatype = FI_FLOAT;
		a.op = FI_BAND;
		EXPECT_EQ(-FI_EOPNOTSUPP, fi_query_collective(d, coll, &a, 0));
	}
	EXPECT_EQ(-FI_EINVAL, fi_query_collective(d, FI_BARRIER, nullptr, 0));
	a.mode = 1;
	EXPECT_EQ(-FI_EINVAL, fi_query_collective(d, FI_BARRIER, &a, 0));
	a.mode = 0;
	EXPECT_EQ(-FI_EBADFLAGS, fi_query_collective(d, FI_BARRIER, &a, 1));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  fi_query_collective(d, fi_collective_op(99), &a, 0));
}

TEST_F(Collective, CallsRefuseWhatIsWrong)
{
	uint64_t in[4] = {}, out[4];
	Group g, few;

	OK(open_members(2));
	OK(join(g, first(2)));
	OK(join(few, first(2), FI_BARRIER_SET));
	struct fid_ep *e = fid(g, 0);
	fi_addr_t c = at(g, 0);
	auto reduces = [&](const void *b, size_t n, void *r, fi_addr_t group,
			   enum fi_datatype t, enum fi_op op, uint64_t flags) {
		return fi_allreduce(e, b, n, nullptr, r, nullptr, group, t, op,
				    flags, in);
	};

	EXPECT_EQ(-FI_EINVAL, fi_barrier(e, 0, in)) << "no group";
	EXPECT_EQ(-FI_EINVAL, fi_barrier(e, FI_ADDR_NOTAVAIL, in));
	EXPECT_EQ(-FI_EINVAL,
		  reduces(nullptr, 1, out, c, FI_UINT64, FI_SUM, 0));
	EXPECT_EQ(-FI_EINVAL, reduces(in, 1, nullptr, c, FI_UINT64, FI_SUM, 0));
	EXPECT_EQ(-FI_EMSGSIZE,
		  reduces(in, SIZE_MAX / 8, out, c, FI_UINT64, FI_SUM, 0));
	EXPECT_EQ(-FI_EOPNOTSUPP, reduces(in, 1, out, c, FI_VOID, FI_SUM, 0));
	EXPECT_EQ(-FI_EOPNOTSUPP, reduces(in, 1, out, c, FI_FLOAT, FI_BXOR, 0));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  reduces(in, 1, out, c, FI_UINT64, FI_CSWAP, 0));
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  reduces(in, 1, out, c, FI_UINT64, FI_ATOMIC_WRITE, 0));
	EXPECT_EQ(-FI_EBADFLAGS, reduces(in, 1, out, c, FI_UINT64, FI_SUM,
					 FI_DELIVERY_COMPLETE));
	EXPECT_EQ(-FI_EINVAL,
		  fi_broadcast(e, in, 1, nullptr, c, 77, FI_UINT64, 0, in))
		<< "the root is no member";
	EXPECT_EQ(-FI_EOPNOTSUPP,
		  reduces(in, 1, out, at(few, 0), FI_UINT64, FI_SUM, 0))
		<< "not in the set's flags";
	/* what was refused has not begun: the next operation is the first */
	for (size_t i = 0; i < 2; i++)
		ASSERT_EQ(0, fi_barrier(fid(few, i), at(few, i), in));
	OK(all_done(few, in));
	for (size_t i = 0; i < 2; i++)
		ASSERT_EQ(0, fi_barrier(fid(g, i), at(g, i), in));
	OK(all_done(g, in));
	leave(few);
	leave(g);
}

/* ---- what is brought ----------------------------------------------------- */

class CollectiveOf : public Collective,
		     public testing::WithParamInterface<size_t>
{
protected:
	size_t n = GetParam();
	Group g;
	int op = 0; /* its address: the context */

	void SetUp() override
	{
		OK(open_members(n));
		OK(join(g, first(n)));
	}

	void TearDown() override
	{
		leave(g);
		Case::TearDown();
	}

	/* One value, some, an announced message, and one cut into pieces. */
	static std::vector<size_t> counts()
	{
		return { 0, 1, 13, 1500, 9001 };
	}

	std::vector<size_t> roots() const
	{
		return { 0, n - 1 };
	}
};

TEST_P(CollectiveOf, Barrier)
{
	/* fi_collective(3) 2.1, Barrier 1: nobody leaves before all are there. */
	for (size_t late : { size_t(0), n / 2, n - 1 }) {
		for (size_t i = 0; i < n; i++)
			if (i != late) {
				ASSERT_EQ(0,
					  fi_barrier(fid(g, i), at(g, i), &op));
			}
		tdt_settle(w, 5);
		EXPECT_EQ(0u, tdt_pending(w));
		ASSERT_EQ(0, fi_barrier2(fid(g, late), at(g, late),
					 FI_COMPLETION, &op));
		OK(all_done(g, &op));
	}
}

TEST_P(CollectiveOf, Broadcast)
{
	for (size_t c : counts()) {
		for (size_t r : roots()) {
			Bytes out = seeded(c * 8, uint32_t(c + r));
			std::vector<Bytes> in(n, Bytes(c * 8));

			in[r] = out;
			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(0,
					  fi_broadcast(fid(g, i), in[i].data(),
						       c, nullptr, at(g, i),
						       root(g, i, r), FI_UINT64,
						       0, &op));
			OK(all_done(g, &op));
			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(out, in[i]) << i;
		}
	}
}

TEST_P(CollectiveOf, AllreduceOfAllTypes)
{
	for (const Type &t : types()) {
		for (int o = t.start; o <= t.last; o++) {
			enum fi_op what = fi_op(o);
			size_t c = o == t.start ? 5001 : 3;
			std::vector<Bytes> in, out(n, Bytes(c * t.size));
			Bytes want = t.reduced(what, n, c);

			for (size_t i = 0; i < n; i++)
				in.push_back(t.make(what, i, c));
			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(0, fi_allreduce(
						     fid(g, i), in[i].data(), c,
						     nullptr, out[i].data(),
						     nullptr, at(g, i), t.type,
						     what, 0, &op));
			OK(all_done(g, &op));
			for (size_t i = 0; i < n; i++)
				ASSERT_TRUE(t.equal(want, out[i]))
					<< t.type << " " << o << " at " << i;
		}
	}
}

TEST_P(CollectiveOf, AllreduceInPlace)
{
	const Type &t = types()[7];

	for (size_t c : counts()) {
		std::vector<Bytes> data;
		Bytes want = t.reduced(FI_SUM, n, c);

		for (size_t i = 0; i < n; i++)
			data.push_back(t.make(FI_SUM, i, c));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, fi_allreduce(fid(g, i), data[i].data(), c,
						  nullptr, data[i].data(),
						  nullptr, at(g, i), t.type,
						  FI_SUM, 0, &op));
		OK(all_done(g, &op));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(want, data[i]) << i;
	}
}

TEST_P(CollectiveOf, ReduceAndReduceScatter)
{
	const Type &t = types()[5];

	for (size_t c : counts()) {
		Bytes want = t.reduced(FI_SUM, n, c * n);
		std::vector<Bytes> in, out(n, Bytes(c * 4));

		for (size_t i = 0; i < n; i++)
			in.push_back(t.make(FI_SUM, i, c * n));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, fi_reduce_scatter(
					     fid(g, i), in[i].data(), c,
					     nullptr, out[i].data(), nullptr,
					     at(g, i), t.type, FI_SUM, 0, &op));
		OK(all_done(g, &op));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(Bytes(want.begin() + ptrdiff_t(i * c * 4),
					want.begin() +
						ptrdiff_t((i + 1) * c * 4)),
				  out[i]);
		for (size_t r : roots()) {
			Bytes sum(c * n * 4);

			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(0, fi_reduce(fid(g, i), in[i].data(),
						       c * n, nullptr,
						       i == r ? sum.data() :
								nullptr,
						       nullptr, at(g, i),
						       root(g, i, r), t.type,
						       FI_SUM, 0, &op));
			OK(all_done(g, &op));
			ASSERT_EQ(want, sum);
		}
	}
}

TEST_P(CollectiveOf, ScatterAndGather)
{
	for (size_t c : counts()) {
		for (size_t r : roots()) {
			Bytes all = seeded(c * n * 2, uint32_t(c));
			Bytes back(c * n * 2);
			std::vector<Bytes> part(n, Bytes(c * 2));

			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(0, fi_scatter(fid(g, i),
							i == r ? all.data() :
								 nullptr,
							c, nullptr,
							part[i].data(), nullptr,
							at(g, i), root(g, i, r),
							FI_INT16, 0, &op));
			OK(all_done(g, &op));
			for (size_t i = 0; i < n; i++)
				ASSERT_TRUE(std::equal(
					part[i].begin(), part[i].end(),
					all.begin() + ptrdiff_t(i * c * 2)));
			for (size_t i = 0; i < n; i++)
				ASSERT_EQ(0,
					  fi_gather(fid(g, i), part[i].data(),
						    c, nullptr,
						    i == r ? back.data() :
							     nullptr,
						    nullptr, at(g, i),
						    root(g, i, r), FI_INT16, 0,
						    &op));
			OK(all_done(g, &op));
			ASSERT_EQ(all, back);
		}
	}
}

TEST_P(CollectiveOf, AllgatherAndAlltoall)
{
	for (size_t c : counts()) {
		size_t b = c * 4;
		std::vector<Bytes> in, out(n, Bytes(b * n));
		Bytes all;

		for (size_t i = 0; i < n; i++) {
			in.push_back(seeded(b * n, uint32_t(i + 1)));
			all.insert(all.end(), in[i].begin(),
				   in[i].begin() + ptrdiff_t(b));
		}
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0,
				  fi_allgather(fid(g, i), in[i].data(), c,
					       nullptr, out[i].data(), nullptr,
					       at(g, i), FI_FLOAT, 0, &op));
		OK(all_done(g, &op));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(all, out[i]) << i;
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0,
				  fi_alltoall(fid(g, i), in[i].data(), c,
					      nullptr, out[i].data(), nullptr,
					      at(g, i), FI_UINT32, 0, &op));
		OK(all_done(g, &op));
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < n; k++)
				ASSERT_TRUE(std::equal(
					in[k].begin() + ptrdiff_t(i * b),
					in[k].begin() + ptrdiff_t((i + 1) * b),
					out[i].begin() + ptrdiff_t(k * b)))
					<< k << " to " << i;
	}
}

INSTANTIATE_TEST_SUITE_P(Members, CollectiveOf,
			 testing::Values(1, 2, 3, 5, 8, 16));

/* ---- side by side -------------------------------------------------------- */

TEST_F(Collective, MessagesOfTheApplicationAreApart)
{
	/* fi_collective(3): the call has its own data; a receive of any message
	 * from anybody does not get them. */
	uint64_t in[3] = { 1, 2, 4 }, out[3] = {}, got = 0, said = 77;
	uint64_t got_msg = 0;
	struct iovec v = iov_of(&got, 8), s = iov_of(&said, 8);
	Group g;

	OK(open_members(3));
	ASSERT_EQ(0, tdt_trecv(ep(1), &v, 0, ~0ull, &got));
	ASSERT_EQ(0, tdt_recv(ep(1), &got_msg, 8, &got_msg));
	OK(join(g, first(3)));
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < 3; i++)
			ASSERT_EQ(0, fi_allreduce(fid(g, i), &in[i], 1, nullptr,
						  &out[i], nullptr, at(g, i),
						  FI_UINT64, FI_SUM, 0, out));
		OK(all_done(g, out));
		for (uint64_t sum : out)
			EXPECT_EQ(7u, sum);
	}
	EXPECT_EQ(0u, got);
	ASSERT_EQ(0, tdt_tsend(ep(0), ep(1), &s, ~0ull, &said));
	OK(done(ep(1), &got, FI_TAGGED | FI_RECV));
	ASSERT_EQ(0, tdt_wait(ep(0), &said, nullptr));
	EXPECT_EQ(77u, got);
	ASSERT_EQ(0, tdt_send(ep(2), ep(1), &said, 8, &said));
	OK(done(ep(1), &got_msg, FI_MSG | FI_RECV));
	ASSERT_EQ(0, tdt_wait(ep(2), &said, nullptr));
	EXPECT_EQ(77u, got_msg);
	leave(g);
}

TEST_F(Collective, ManyAtOnceEndInTheirOrder)
{
	/* fi_collective(3) 2.1, NOTES: operations are ordered as atomic ones. */
	enum { N = 40, MEMBERS = 4 };
	uint64_t in[MEMBERS][N], out[MEMBERS][N];
	int context[N];
	Group g;

	OK(open_members(MEMBERS));
	OK(join(g, first(MEMBERS)));
	for (size_t i = 0; i < MEMBERS; i++) {
		for (size_t k = 0; k < N; k++) {
			in[i][k] = (i + 1) << k;
			ASSERT_EQ(0, fi_allreduce(fid(g, i), &in[i][k], 1,
						  nullptr, &out[i][k], nullptr,
						  at(g, i), FI_UINT64, FI_SUM,
						  0, &context[k]));
		}
	}
	for (size_t k = 0; k < N; k++) {
		OK(all_done(g, &context[k]));
		for (size_t i = 0; i < MEMBERS; i++)
			EXPECT_EQ(10ull << k, out[i][k]);
	}
	leave(g);
}

TEST_F(Collective, GroupsDoNotMeet)
{
	/* Members of several groups, in other orders, joined at once. */
	std::vector<Group> gs(4);
	uint64_t in[4][5], out[4][5];

	OK(open_members(5));
	gs[0].ranks = { 0, 1, 2, 3, 4 };
	gs[1].ranks = { 4, 3, 2, 1, 0 };
	gs[2].ranks = { 1, 3 };
	gs[3].ranks = { 2, 0, 4 };
	for (Group &g : gs)
		for (size_t i = 0; i < g.ranks.size(); i++)
			OK(begin_join(g, i));
	for (size_t k = 4; k-- > 0;)
		for (size_t i = 0; i < gs[k].ranks.size(); i++) {
			struct fi_eq_entry e;

			ASSERT_EQ(0, event(ep(gs[k].ranks[i]), &e));
		}
	for (size_t k = 0; k < 4; k++)
		for (size_t i = 0; i < gs[k].ranks.size(); i++) {
			in[k][i] = 10 * k + gs[k].ranks[i];
			ASSERT_EQ(0, fi_broadcast(fid(gs[k], i), &in[k][i], 1,
						  nullptr, at(gs[k], i),
						  root(gs[k], i, 1), FI_UINT64,
						  0, &in[k]));
			ASSERT_EQ(0, fi_allreduce(fid(gs[k], i), &in[k][i], 0,
						  nullptr, &out[k][i], nullptr,
						  at(gs[k], i), FI_UINT64,
						  FI_MAX, 0, &out[k]));
		}
	for (size_t k = 0; k < 4; k++) {
		OK(all_done(gs[k], &in[k]));
		OK(all_done(gs[k], &out[k]));
		for (size_t i = 0; i < gs[k].ranks.size(); i++)
			EXPECT_EQ(10 * k + gs[k].ranks[1], in[k][i]);
	}
	for (Group &g : gs)
		leave(g);
}

TEST_F(Collective, JoinByTheAddressOfAGroup)
{
	/* fi_collective(3) 2.1, Join Collective 3: coll_addr may be that of a
	 * group; FI_ADDR_NOTAVAIL is accepted too. */
	Group g, sub;

	OK(open_members(3));
	OK(join(g, first(3)));
	sub.ranks = { 2, 0 };
	sub.set.resize(2);
	sub.mc.resize(2);
	for (size_t i = 0; i < 2; i++) {
		struct tdt_ep *e = ep(sub.ranks[i]);

		sub.set[i] = set_at(e, sub.ranks);
		ASSERT_EQ(0, fi_join_collective(
				     e->ep,
				     i ? FI_ADDR_NOTAVAIL : at(g, sub.ranks[i]),
				     sub.set[i], 0, &sub.mc[i], &sub.context));
	}
	for (size_t i = 0; i < 2; i++)
		ASSERT_EQ(0, join_event(sub, i));
	for (size_t i = 0; i < 2; i++)
		ASSERT_EQ(0, fi_barrier(fid(sub, i), at(sub, i), &sub));
	OK(all_done(sub, &sub));
	leave(sub);
	leave(g);
}

TEST_F(Collective, CompletionsOnRequest)
{
	/* fi_collective(3) 2.1, Completions; fi_endpoint(3),
	 * FI_SELECTIVE_COMPLETION. */
	uint64_t in[2] = { 3, 4 }, out[2] = {};
	Group g;

	attr.tx_bind = FI_SELECTIVE_COMPLETION;
	OK(open_members(2));
	OK(join(g, first(2)));
	for (size_t i = 0; i < 2; i++) {
		ASSERT_EQ(0, fi_barrier(fid(g, i), at(g, i), in));
		ASSERT_EQ(0, fi_allreduce(fid(g, i), &in[i], 1, nullptr,
					  &out[i], nullptr, at(g, i), FI_UINT64,
					  FI_PROD, FI_COMPLETION, out));
	}
	OK(all_done(g, out));
	EXPECT_EQ(0u, tdt_pending(w)) << "the barrier asked for none";
	EXPECT_EQ(12u, out[0]);
	EXPECT_EQ(12u, out[1]);
	leave(g);
}

} // namespace
