/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of fi_atomic(3): each on each type, against the manual's
 * lines taken word for word in C++, with values at the edges of the type.
 */
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <rdma/fi_errno.h>

extern "C" {
#include "peer/amo.h"
#include "peer/amo_many.h"
}

namespace
{

typedef std::vector<unsigned char> Bytes;

const unsigned TYPES = FI_FLOAT8_E5M2 + 1, OPS = FI_DIFF + 1;

/* ---- what the manual says ------------------------------------------------ */

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

template <typename T> struct Kind {
	static const bool integer = false, complex = false;
	typedef T wide;
};
#define INTEGER(T, W)                                                          \
	template <> struct Kind<T> {                                           \
		static const bool integer = true, complex = false;             \
		typedef W wide;                                                \
	}
INTEGER(int8_t, uint64_t);
INTEGER(uint8_t, uint64_t);
INTEGER(int16_t, uint64_t);
INTEGER(uint16_t, uint64_t);
INTEGER(int32_t, uint64_t);
INTEGER(uint32_t, uint64_t);
INTEGER(int64_t, uint64_t);
INTEGER(uint64_t, uint64_t);
INTEGER(i128, u128);
INTEGER(u128, u128);
template <typename R> struct Kind<std::complex<R>> {
	static const bool integer = false, complex = true;
	typedef std::complex<R> wide;
};

/* buf, addr, compare by the manual's names. False: it makes no sense. */
template <typename T> bool integers(unsigned op, T &addr, T buf, T compare)
{
	/* Overflow wraps. */
	typedef typename Kind<T>::wide W;

	switch (op) {
	case FI_LOR:
		addr = T(addr || buf);
		return true;
	case FI_LAND:
		addr = T(addr && buf);
		return true;
	case FI_LXOR:
		addr = T((addr && !buf) || (!addr && buf));
		return true;
	case FI_BOR:
		addr = T(addr | buf);
		return true;
	case FI_BAND:
		addr = T(addr & buf);
		return true;
	case FI_BXOR:
		addr = T(addr ^ buf);
		return true;
	case FI_MSWAP:
		addr = T((buf & compare) | (addr & ~compare));
		return true;
	case FI_SUM:
		addr = T(W(addr) + W(buf));
		return true;
	case FI_DIFF:
		addr = T(W(addr) - W(buf));
		return true;
	case FI_PROD:
		addr = T(W(addr) * W(buf));
		return true;
	default:
		return false;
	}
}

template <typename T> bool arithmetic(unsigned op, T &addr, T buf)
{
	switch (op) {
	case FI_SUM:
		addr = addr + buf;
		return true;
	case FI_DIFF:
		addr = addr - buf;
		return true;
	case FI_PROD:
		addr = addr * buf;
		return true;
	default:
		return false;
	}
}

template <typename T> bool ordered(unsigned op, T &addr, T buf, T compare)
{
	switch (op) {
	case FI_MIN:
		if (buf < addr)
			addr = buf;
		return true;
	case FI_MAX:
		if (buf > addr)
			addr = buf;
		return true;
	case FI_CSWAP_LE:
		if (compare <= addr)
			addr = buf;
		return true;
	case FI_CSWAP_LT:
		if (compare < addr)
			addr = buf;
		return true;
	case FI_CSWAP_GE:
		if (compare >= addr)
			addr = buf;
		return true;
	case FI_CSWAP_GT:
		if (compare > addr)
			addr = buf;
		return true;
	default:
		return false;
	}
}

template <typename T> bool manual(unsigned op, T &addr, T buf, T compare)
{
	switch (op) {
	case FI_ATOMIC_READ:
		return true;
	case FI_ATOMIC_WRITE:
		addr = buf;
		return true;
	case FI_CSWAP:
		if (compare == addr)
			addr = buf;
		return true;
	case FI_CSWAP_NE:
		if (compare != addr)
			addr = buf;
		return true;
	default:
		break;
	}
	if constexpr (Kind<T>::integer) {
		if (integers(op, addr, buf, compare))
			return true;
	} else if (arithmetic(op, addr, buf)) {
		return true;
	}
	if constexpr (!Kind<T>::complex)
		return ordered(op, addr, buf, compare);
	else
		return false;
}

unsigned kinds_of(unsigned op)
{
	if (op == FI_ATOMIC_READ)
		return 1 << TDM_AMO_FETCH;
	if (op >= FI_CSWAP && op <= FI_MSWAP)
		return 1 << TDM_AMO_COMPARE;
	return 1 << TDM_AMO_BASE | 1 << TDM_AMO_FETCH;
}

/* ---- values -------------------------------------------------------------- */

template <typename T> std::vector<T> edges_of_integer(std::mt19937_64 &rng)
{
	const T one = 1, top = T(one << (sizeof(T) * 8 - 2));
	std::vector<T> v = { 0,
			     1,
			     2,
			     3,
			     T(-1),
			     T(-2),
			     top,
			     T(top - 1),
			     T(typename Kind<T>::wide(top) * 2),
			     T(typename Kind<T>::wide(top) * 2 - 1) };

	for (int i = 0; i < 8; i++)
		v.push_back(T(u128(rng()) << 64 | rng()));
	return v;
}

template <typename T> std::vector<T> edges_of_real(std::mt19937_64 &rng)
{
	typedef std::numeric_limits<T> L;
	std::vector<T> v = { 0,
			     -T(0),
			     1,
			     -1,
			     T(0.1),
			     L::max(),
			     L::lowest(),
			     L::min(),
			     L::denorm_min(),
			     L::epsilon(),
			     L::infinity(),
			     -L::infinity(),
			     L::quiet_NaN() };

	for (int i = 0; i < 8; i++)
		v.push_back(T(int64_t(rng())) / T(1 << (i * 4)));
	return v;
}

template <typename T> std::vector<T> edges(std::mt19937_64 &rng)
{
	if constexpr (Kind<T>::integer) {
		return edges_of_integer<T>(rng);
	} else if constexpr (Kind<T>::complex) {
		std::vector<T> v;

		auto r = edges_of_real<typename T::value_type>(rng);
		for (size_t i = 0; i < r.size(); i++) {
			v.push_back({ r[i], r[r.size() - 1 - i] });
			v.push_back({ r[i], r[i] });
		}
		return v;
	} else {
		return edges_of_real<T>(rng);
	}
}

template <typename T> bool same_real(T a, T b)
{
	return (std::isnan(a) && std::isnan(b)) ||
	       (a == b && std::signbit(a) == std::signbit(b));
}

/* Is it the same value, to the sign of a zero? */
template <typename T> bool same(T a, T b)
{
	if constexpr (Kind<T>::integer)
		return a == b;
	else if constexpr (Kind<T>::complex)
		return same_real(a.real(), b.real()) &&
		       same_real(a.imag(), b.imag());
	else
		return same_real(a, b);
}

/* All triples of edge values, as one unaligned array after the other. */
template <typename T> void run_all(unsigned type, unsigned op, unsigned kind)
{
	std::mt19937_64 rng(type * 100 + op);
	std::vector<T> v = edges<T>(rng);
	struct tdm_amo amo = { uint8_t(type), uint8_t(op), uint8_t(kind),
			       TDM_AMO_FORM };
	const size_t n = v.size();
	size_t bytes = n * sizeof(T);

	for (size_t i = 0; i < n * n; i++) {
		std::vector<T> addr(n, v[i % n]), buf(n, v[i / n]), cmp = v;
		Bytes target(bytes + 2, 0xa5), result(bytes + 2, 0x5a);
		Bytes operands(2 * bytes + 1);

		/* compare runs over all values; where there is none, buf. */
		if (kind != TDM_AMO_COMPARE)
			buf = v;
		memcpy(&target[1], addr.data(), bytes);
		memcpy(&operands[1], buf.data(), bytes);
		memcpy(&operands[1 + bytes], cmp.data(), bytes);
		tdm_amo_run(&amo, &target[1], bytes, &operands[1],
			    kind == TDM_AMO_BASE ? nullptr : &result[1]);
		ASSERT_EQ(0xa5, target[0]);
		ASSERT_EQ(0xa5, target[bytes + 1]);
		ASSERT_EQ(0x5a, result[0]);
		ASSERT_EQ(0x5a, result[bytes + 1]);
		for (size_t k = 0; k < n; k++) {
			T want = addr[k], got, was;

			ASSERT_TRUE(manual<T>(op, want, buf[k], cmp[k]));
			memcpy(&got, &target[1 + k * sizeof(T)], sizeof(T));
			memcpy(&was, &result[1 + k * sizeof(T)], sizeof(T));
			ASSERT_TRUE(same(want, got))
				<< "type " << type << " op " << op << " triple "
				<< i << " " << k;
			if (kind != TDM_AMO_BASE) {
				ASSERT_TRUE(same(addr[k], was));
			}
		}
	}
}

/* The offered operations are those that the manual defines for the type. */
template <typename T> void type_of(unsigned type)
{
	ASSERT_EQ(sizeof(T), tdm_amo_size(type));
	for (unsigned op = 0; op < OPS; op++) {
		T a = T(1);
		bool sense = manual<T>(op, a, T(1), T(1));

		for (unsigned kind = 0; kind < TDM_AMO_KINDS; kind++) {
			bool want = sense && (kinds_of(op) >> kind & 1);

			ASSERT_EQ(want ? 0 : -FI_EOPNOTSUPP,
				  tdm_amo_check(kind, type, op))
				<< type << " " << op << " " << kind;
			if (want)
				run_all<T>(type, op, kind);
			if (testing::Test::HasFatalFailure())
				return;
		}
	}
}

TEST(Amo, EachOperationOnEachInteger)
{
	type_of<int8_t>(FI_INT8);
	type_of<uint8_t>(FI_UINT8);
	type_of<int16_t>(FI_INT16);
	type_of<uint16_t>(FI_UINT16);
	type_of<int32_t>(FI_INT32);
	type_of<uint32_t>(FI_UINT32);
	type_of<int64_t>(FI_INT64);
	type_of<uint64_t>(FI_UINT64);
	type_of<i128>(FI_INT128);
	type_of<u128>(FI_UINT128);
}

TEST(Amo, EachOperationOnEachReal)
{
	type_of<float>(FI_FLOAT);
	type_of<double>(FI_DOUBLE);
	type_of<long double>(FI_LONG_DOUBLE);
}

TEST(Amo, EachOperationOnEachComplex)
{
	type_of<std::complex<float>>(FI_FLOAT_COMPLEX);
	type_of<std::complex<double>>(FI_DOUBLE_COMPLEX);
	type_of<std::complex<long double>>(FI_LONG_DOUBLE_COMPLEX);
}

/*
 * Many values at once: all pairs of edge values, in arrays that are no multiple of
 * a power of two and not aligned, are what one call for each value makes of them.
 */
template <typename T> void many_of(unsigned type, unsigned op)
{
	std::mt19937_64 rng(type * 100 + op);
	std::vector<T> v = edges<T>(rng), a, b;
	struct tdm_amo amo = { uint8_t(type), uint8_t(op), TDM_AMO_BASE,
			       TDM_AMO_FORM };

	if (tdm_amo_check(TDM_AMO_BASE, type, op))
		return;
	while (a.size() < 2600)
		for (size_t i = 0; i < v.size() * v.size(); i++) {
			a.push_back(v[i % v.size()]);
			b.push_back(v[i / v.size()]);
		}
	a.resize(2600);
	for (size_t n : { size_t(1), size_t(127), size_t(128), a.size() }) {
		const size_t bytes = n * sizeof(T);
		Bytes target(bytes + 2, 0xa5), operands(bytes + 1);

		memcpy(&target[1], a.data(), bytes);
		memcpy(&operands[1], b.data(), bytes);
		tdm_amo_run_many(&amo, &target[1], bytes, &operands[1]);
		ASSERT_EQ(0xa5, target[0]);
		ASSERT_EQ(0xa5, target[bytes + 1]);
		for (size_t k = 0; k < n; k++) {
			T want = a[k], got;

			tdm_amo_run(&amo, &want, sizeof(T), &b[k], nullptr);
			memcpy(&got, &target[1 + k * sizeof(T)], sizeof(T));
			ASSERT_TRUE(same(want, got))
				<< "type " << type << " op " << op << " of "
				<< n << ": " << k;
		}
	}
}

template <typename T> void many(unsigned type)
{
	for (unsigned op = FI_MIN; op <= FI_BXOR; op++)
		many_of<T>(type, op);
}

TEST(Amo, ManyValuesAreAsOneAfterTheOther)
{
	many<uint8_t>(FI_UINT8);
	many<int16_t>(FI_INT16);
	many<int32_t>(FI_INT32);
	many<uint32_t>(FI_UINT32);
	many<int64_t>(FI_INT64);
	many<uint64_t>(FI_UINT64);
	many<i128>(FI_INT128);
	many<float>(FI_FLOAT);
	many<double>(FI_DOUBLE);
	many<long double>(FI_LONG_DOUBLE);
	many<std::complex<double>>(FI_DOUBLE_COMPLEX);
}

TEST(Amo, A10_NumbersThatNameNothing)
{
	/* Any number may come from another process. */
	for (unsigned type :
	     { unsigned(FI_FLOAT16), unsigned(FI_BFLOAT16),
	       unsigned(FI_FLOAT8_E4M3), unsigned(FI_FLOAT8_E5M2), TYPES, 255u,
	       unsigned(FI_VOID), UINT32_MAX }) {
		EXPECT_EQ(0u, tdm_amo_size(type)) << type;
		for (unsigned op = 0; op < 256; op++)
			EXPECT_EQ(-FI_EOPNOTSUPP,
				  tdm_amo_check(TDM_AMO_FETCH, type, op));
	}
	for (unsigned op : { OPS, 255u, unsigned(FI_NOOP), UINT32_MAX })
		EXPECT_EQ(-FI_EOPNOTSUPP,
			  tdm_amo_check(TDM_AMO_BASE, FI_UINT64, op));
	for (unsigned kind : { unsigned(TDM_AMO_KINDS), 255u, UINT32_MAX })
		EXPECT_EQ(-FI_EOPNOTSUPP,
			  tdm_amo_check(kind, FI_UINT64, FI_SUM));
	/* All that one byte each can say. */
	for (unsigned i = 0; i < 1 << 24; i += 7) {
		struct tdm_amo a = { uint8_t(i), uint8_t(i >> 8),
				     uint8_t(i >> 16), TDM_AMO_FORM };

		if (!tdm_amo_admit(&a, 32)) {
			ASSERT_LT(a.type, TYPES);
			ASSERT_LT(a.op, OPS);
			ASSERT_LT(a.kind, TDM_AMO_KINDS);
		}
	}
}

TEST(Amo, HalfAValueIsNone)
{
	struct tdm_amo a = { FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM };

	EXPECT_EQ(0, tdm_amo_admit(&a, 8));
	EXPECT_EQ(0, tdm_amo_admit(&a, 1024));
	EXPECT_EQ(-FI_EOPNOTSUPP, tdm_amo_admit(&a, 12));
	EXPECT_EQ(-FI_EOPNOTSUPP, tdm_amo_admit(&a, 1));
}

TEST(Amo, ValuesOfAnotherMachine)
{
	struct tdm_amo a = { FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM };

	/* Another long double is in the way of long doubles only. */
	a.form ^= 1;
	EXPECT_EQ(0, tdm_amo_admit(&a, 32));
	a.type = FI_LONG_DOUBLE_COMPLEX;
	EXPECT_EQ(-FI_EOPNOTSUPP, tdm_amo_admit(&a, 32));
	a.type = FI_LONG_DOUBLE;
	EXPECT_EQ(-FI_EOPNOTSUPP, tdm_amo_admit(&a, 32));
	a.type = FI_UINT8;
	a.form = TDM_AMO_FORM ^ 128;
	EXPECT_EQ(-FI_EOPNOTSUPP, tdm_amo_admit(&a, 32));
}

/* fi_mr(3) 2.1, access 6 and 7: what a region must allow. */
TEST(Amo, AccessByOperation)
{
	struct tdm_amo a = { FI_UINT64, FI_SUM, TDM_AMO_BASE, TDM_AMO_FORM };

	EXPECT_EQ(uint64_t(FI_REMOTE_WRITE), tdm_amo_access(&a));
	a.kind = TDM_AMO_FETCH;
	EXPECT_EQ(uint64_t(FI_REMOTE_READ | FI_REMOTE_WRITE),
		  tdm_amo_access(&a));
	a.op = FI_ATOMIC_READ;
	EXPECT_EQ(uint64_t(FI_REMOTE_READ), tdm_amo_access(&a));
	a.op = FI_CSWAP;
	a.kind = TDM_AMO_COMPARE;
	EXPECT_EQ(uint64_t(FI_REMOTE_READ | FI_REMOTE_WRITE),
		  tdm_amo_access(&a));
}

/*
 * fi_atomic(3) 2.1, Atomic Valid Functions 2: The valid calls tell how many
 * values one call may have.
 */
TEST(Amo, MostOfEachType)
{
	EXPECT_EQ(1024u, tdm_amo_most(TDM_AMO_BASE, FI_INT8, TDM_AMO_BYTES));
	EXPECT_EQ(128u, tdm_amo_most(TDM_AMO_FETCH, FI_INT64, TDM_AMO_BYTES));
	EXPECT_EQ(64u, tdm_amo_most(TDM_AMO_COMPARE, FI_INT64, TDM_AMO_BYTES));
	EXPECT_EQ(0u, tdm_amo_most(TDM_AMO_COMPARE, FI_INT64, 15));
}

/* Memory in pieces that end inside of values. */
TEST(Amo, RegionsInPieces)
{
	struct tdm_amo a = { FI_UINT32, FI_SUM, TDM_AMO_FETCH, TDM_AMO_FORM };
	uint32_t memory[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint32_t operands[8] = { 10, 20, 30, 40, 50, 60, 70, 80 };
	uint32_t result[8] = {};
	unsigned char *p = reinterpret_cast<unsigned char *>(memory);
	struct iovec iov[3] = { { p, 5 }, { p + 5, 1 }, { p + 6, 26 } };

	tdm_amo_run_on(&a, iov, 3, operands, result);
	for (uint32_t i = 0; i < 8; i++) {
		EXPECT_EQ((i + 1) * 11, memory[i]);
		EXPECT_EQ(i + 1, result[i]);
	}
	/* A read writes nothing: constant memory can be its target. */
	static const uint32_t constant[2] = { 7, 9 };
	unsigned char *q = (unsigned char *)(uintptr_t)constant;
	struct iovec fixed[2] = { { q, 3 }, { q + 3, 5 } };

	a.op = FI_ATOMIC_READ;
	tdm_amo_run_on(&a, fixed, 2, nullptr, result);
	EXPECT_EQ(7u, result[0]);
	EXPECT_EQ(9u, result[1]);
}

/* Of a long double only what has a meaning is written. */
TEST(Amo, PaddingIsLeftAlone)
{
	struct tdm_amo a = { FI_LONG_DOUBLE, FI_SUM, TDM_AMO_BASE,
			     TDM_AMO_FORM };
	const size_t pad = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double);
	unsigned char memory[sizeof(long double)], was[sizeof(memory)];
	long double one = 1, got;

	memset(memory, 0xee, sizeof(memory));
	memcpy(memory, &one, pad);
	memcpy(was, memory, sizeof(was));
	tdm_amo_run(&a, memory, sizeof(memory), &one, nullptr);
	memcpy(&got, memory, sizeof(got));
	EXPECT_EQ(2.0L, got);
	EXPECT_EQ(0, memcmp(memory + pad, was + pad, sizeof(was) - pad));
}

} // namespace
