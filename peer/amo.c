/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of fi_atomic(3), driven by two tables: one of types, one of
 * operations with the classes of types that they accept.
 *
 * Most operations are a choice: the value of the call takes the place of the
 * target's when the two are in a certain order. Choices copy the bits of a
 * value without interpreting them. The other operations compute.
 *
 * Invariants:
 *  1. Integers are computed as unsigned values of the widest type, so that
 *     nothing overflows; the result is truncated to the size of the type, which
 *     is how two's complement wraps.
 *  2. Memory is read and written through memcpy() of constant sizes: it may be
 *     unaligned, and a value is one access if the processor has one of its
 *     size.
 *  3. Only the significant bytes of a long double are written, no padding.
 *
 * Lock: none, no state. Spec: fi_atomic(3).
 */
#include "peer/amo.h"

#include <complex.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/iov.h"

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;
enum { INT128_BYTES = 16 };
#else
typedef uint64_t wide;
enum { INT128_BYTES = 0 };
#endif

enum {
	/* An x87 value has 10 significant bytes; its type is larger. */
	LONG_DOUBLE_BYTES = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double),
};

enum class { NONE, SIGNED, UNSIGNED, REAL, COMPLEX };

/* The types; indexed by enum fi_datatype. */
static const struct type {
	uint8_t bytes; /* size of a value; 0: not offered */
	uint8_t class;
} types[] = {
	[FI_INT8] = { 1, SIGNED },
	[FI_UINT8] = { 1, UNSIGNED },
	[FI_INT16] = { 2, SIGNED },
	[FI_UINT16] = { 2, UNSIGNED },
	[FI_INT32] = { 4, SIGNED },
	[FI_UINT32] = { 4, UNSIGNED },
	[FI_INT64] = { 8, SIGNED },
	[FI_UINT64] = { 8, UNSIGNED },
	[FI_FLOAT] = { sizeof(float), REAL },
	[FI_DOUBLE] = { sizeof(double), REAL },
	[FI_FLOAT_COMPLEX] = { 2 * sizeof(float), COMPLEX },
	[FI_DOUBLE_COMPLEX] = { 2 * sizeof(double), COMPLEX },
	[FI_LONG_DOUBLE] = { sizeof(long double), REAL },
	[FI_LONG_DOUBLE_COMPLEX] = { 2 * sizeof(long double), COMPLEX },
	[FI_INT128] = { INT128_BYTES, SIGNED },
	[FI_UINT128] = { INT128_BYTES, UNSIGNED },
};

/* The results of comparing two values; bits of struct op.when. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8, ANY = 15 };

enum {
	INTEGERS = 1 << SIGNED | 1 << UNSIGNED,
	NUMBERS = INTEGERS | 1 << REAL,
	ALL = NUMBERS | 1 << COMPLEX,
	UPDATES = 1 << TDM_AMO_BASE | 1 << TDM_AMO_FETCH,
};

/* The operations; indexed by enum fi_op. */
static const struct op {
	uint8_t kinds;	  /* bits of enum tdm_amo_kind */
	uint8_t classes;  /* bits of enum class */
	uint8_t computes; /* 1: computes; 0: chooses a value */
	/*
	 * Bits LESS to UNORDERED: the results of comparing the operand with the
	 * target for which the target is replaced. Calls with a compare operand
	 * compare that one.
	 */
	uint8_t when;
} op_table[] = {
	[FI_MIN] = { UPDATES, NUMBERS, 0, LESS },
	[FI_MAX] = { UPDATES, NUMBERS, 0, GREATER },
	[FI_SUM] = { UPDATES, ALL, 1, 0 },
	[FI_PROD] = { UPDATES, ALL, 1, 0 },
	[FI_LOR] = { UPDATES, INTEGERS, 1, 0 },
	[FI_LAND] = { UPDATES, INTEGERS, 1, 0 },
	[FI_BOR] = { UPDATES, INTEGERS, 1, 0 },
	[FI_BAND] = { UPDATES, INTEGERS, 1, 0 },
	[FI_LXOR] = { UPDATES, INTEGERS, 1, 0 },
	[FI_BXOR] = { UPDATES, INTEGERS, 1, 0 },
	[FI_ATOMIC_READ] = { 1 << TDM_AMO_FETCH, ALL, 0, 0 },
	[FI_ATOMIC_WRITE] = { UPDATES, ALL, 0, ANY },
	[FI_CSWAP] = { 1 << TDM_AMO_COMPARE, ALL, 0, EQUAL },
	[FI_CSWAP_NE] = { 1 << TDM_AMO_COMPARE, ALL, 0, ANY - EQUAL },
	[FI_CSWAP_LE] = { 1 << TDM_AMO_COMPARE, NUMBERS, 0, LESS | EQUAL },
	[FI_CSWAP_LT] = { 1 << TDM_AMO_COMPARE, NUMBERS, 0, LESS },
	[FI_CSWAP_GE] = { 1 << TDM_AMO_COMPARE, NUMBERS, 0, GREATER | EQUAL },
	[FI_CSWAP_GT] = { 1 << TDM_AMO_COMPARE, NUMBERS, 0, GREATER },
	[FI_MSWAP] = { 1 << TDM_AMO_COMPARE, INTEGERS, 1, 0 },
	[FI_DIFF] = { UPDATES, ALL, 1, 0 },
};

size_t tdm_amo_size(unsigned type)
{
	return type < TDM_ARRAY_LEN(types) ? types[type].bytes : 0;
}

int tdm_amo_check(unsigned kind, unsigned type, unsigned op)
{
	if (kind >= TDM_AMO_KINDS || op >= TDM_ARRAY_LEN(op_table) ||
	    !tdm_amo_size(type) || !(op_table[op].kinds >> kind & 1) ||
	    !(op_table[op].classes >> types[type].class & 1))
		return -FI_EOPNOTSUPP;
	return 0;
}

/* Not 0 for long double and for the complex type made of two. */
static int is_long(unsigned type)
{
	return type == FI_LONG_DOUBLE || type == FI_LONG_DOUBLE_COMPLEX;
}

int tdm_amo_admit(const struct tdm_amo *a, uint64_t bytes)
{
	uint8_t other = a->form ^ TDM_AMO_FORM;
	int ret = tdm_amo_check(a->kind, a->type, a->op);

	if (ret)
		return ret;
	return bytes % types[a->type].bytes || other & 128 ||
			       (other && is_long(a->type)) ?
		       -FI_EOPNOTSUPP :
		       0;
}

size_t tdm_amo_most(unsigned kind, unsigned type, size_t bytes)
{
	return bytes / (kind == TDM_AMO_COMPARE ? 2 : 1) / types[type].bytes;
}

/* ---- values -------------------------------------------------------------- */

static void copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
	switch (bytes) {
	case 1:
		*to = *from;
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	case 16:
		memcpy(to, from, 16);
		break;
	default:
		memcpy(to, from, bytes);
		break;
	}
}

static wide load(const uint8_t *p, size_t bytes)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;
	wide v;

	switch (bytes) {
	case 1:
		return *p;
	case 2:
		memcpy(&v16, p, 2);
		return v16;
	case 4:
		memcpy(&v32, p, 4);
		return v32;
	case 8:
		memcpy(&v64, p, 8);
		return v64;
	default:
		memcpy(&v, p, sizeof(v));
		return v;
	}
}

static void store(uint8_t *p, size_t bytes, wide v)
{
	uint16_t v16 = (uint16_t)v;
	uint32_t v32 = (uint32_t)v;
	uint64_t v64 = (uint64_t)v;

	switch (bytes) {
	case 1:
		*p = (uint8_t)v;
		break;
	case 2:
		memcpy(p, &v16, 2);
		break;
	case 4:
		memcpy(p, &v32, 4);
		break;
	case 8:
		memcpy(p, &v64, 8);
		break;
	default:
		memcpy(p, &v, sizeof(v));
		break;
	}
}

/*
 * Returns the float or double at @p as a double, which holds every float
 * exactly.
 */
static double load_double(const uint8_t *p, size_t bytes)
{
	float f;
	double d;

	if (bytes == sizeof(f)) {
		memcpy(&f, p, sizeof(f));
		return (double)f;
	}
	memcpy(&d, p, sizeof(d));
	return d;
}

static long double load_long_double(const uint8_t *p)
{
	long double v = 0;

	memcpy(&v, p, LONG_DOUBLE_BYTES);
	return v;
}

static void store_long_double(uint8_t *p, long double v)
{
	memcpy(p, &v, LONG_DOUBLE_BYTES);
}

/* ---- order --------------------------------------------------------------- */

static unsigned order_integer(const struct type *t, const uint8_t *a,
			      const uint8_t *b)
{
	/*
	 * With the sign bit inverted, signed values order like unsigned ones.
	 */
	wide sign = t->class == SIGNED ? (wide)1 << (8 * t->bytes - 1) : 0;
	wide x = load(a, t->bytes) ^ sign, y = load(b, t->bytes) ^ sign;

	return x < y ? LESS : x > y ? GREATER : EQUAL;
}

static unsigned order_real(const uint8_t *a, const uint8_t *b, size_t bytes,
			   int islong)
{
	if (islong) {
		long double x = load_long_double(a), y = load_long_double(b);

		return x < y  ? LESS :
		       x > y  ? GREATER :
		       x == y ? EQUAL :
				UNORDERED;
	} else {
		double x = load_double(a, bytes), y = load_double(b, bytes);

		return x < y  ? LESS :
		       x > y  ? GREATER :
		       x == y ? EQUAL :
				UNORDERED;
	}
}

/*
 * Returns how the value at @a compares to the one at @b: LESS, EQUAL, GREATER
 * or UNORDERED.
 */
static unsigned order(unsigned type, const uint8_t *a, const uint8_t *b)
{
	const struct type *t = &types[type];
	size_t half = t->bytes / 2;
	int islong = is_long(type);

	switch (t->class) {
	case REAL:
		return order_real(a, b, t->bytes, islong);
	case COMPLEX:
		return order_real(a, b, half, islong) == EQUAL &&
				       order_real(a + half, b + half, half,
						  islong) == EQUAL ?
			       EQUAL :
			       UNORDERED;
	default:
		return order_integer(t, a, b);
	}
}

/* ---- arithmetic ---------------------------------------------------------- */

static wide compute_integer(unsigned op, wide a, wide b, wide mask)
{
	switch (op) {
	case FI_SUM:
		return a + b;
	case FI_DIFF:
		return a - b;
	case FI_PROD:
		return a * b;
	case FI_LOR:
		return a || b;
	case FI_LAND:
		return a && b;
	case FI_LXOR:
		return !a != !b;
	case FI_BOR:
		return a | b;
	case FI_BAND:
		return a & b;
	case FI_BXOR:
		return a ^ b;
	default: /* FI_MSWAP */
		return (b & mask) | (a & ~mask);
	}
}

/*
 * A float is computed as a double and rounded once more; for a single operation
 * that gives the same result as float arithmetic.
 */
static double compute_double(unsigned op, double a, double b)
{
	return op == FI_SUM ? a + b : op == FI_DIFF ? a - b : a * b;
}

static long double compute_long_double(unsigned op, long double a,
				       long double b)
{
	return op == FI_SUM ? a + b : op == FI_DIFF ? a - b : a * b;
}

static void compute_real(unsigned op, uint8_t *p, const uint8_t *b,
			 size_t bytes, int islong)
{
	double d;
	float f;

	if (islong) {
		store_long_double(p,
				  compute_long_double(op, load_long_double(p),
						      load_long_double(b)));
		return;
	}
	d = compute_double(op, load_double(p, bytes), load_double(b, bytes));
	if (bytes == sizeof(d)) {
		memcpy(p, &d, sizeof(d));
		return;
	}
	f = (float)d;
	memcpy(p, &f, sizeof(f));
}

/*
 * Multiply the value at @p by the one at @b as C defines it, rounding each step
 * to the type.
 */
static void multiply(unsigned type, uint8_t *p, const uint8_t *b)
{
	const size_t half = sizeof(long double);
	float complex fx, fy;
	double complex dx, dy;
	long double complex lx;

	switch (type) {
	case FI_FLOAT_COMPLEX:
		memcpy(&fx, p, sizeof(fx));
		memcpy(&fy, b, sizeof(fy));
		fx *= fy;
		memcpy(p, &fx, sizeof(fx));
		break;
	case FI_DOUBLE_COMPLEX:
		memcpy(&dx, p, sizeof(dx));
		memcpy(&dy, b, sizeof(dy));
		dx *= dy;
		memcpy(p, &dx, sizeof(dx));
		break;
	default:
		lx = CMPLXL(load_long_double(p), load_long_double(p + half)) *
		     CMPLXL(load_long_double(b), load_long_double(b + half));
		store_long_double(p, creall(lx));
		store_long_double(p + half, cimagl(lx));
		break;
	}
}

static void compute(const struct tdm_amo *a, uint8_t *p, const uint8_t *b,
		    const uint8_t *compare)
{
	const struct type *t = &types[a->type];
	size_t half = t->bytes / 2;
	int islong = is_long(a->type);

	switch (t->class) {
	case REAL:
		compute_real(a->op, p, b, t->bytes, islong);
		break;
	case COMPLEX:
		if (a->op == FI_PROD) {
			multiply(a->type, p, b);
			break;
		}
		compute_real(a->op, p, b, half, islong);
		compute_real(a->op, p + half, b + half, half, islong);
		break;
	default:
		store(p, t->bytes,
		      compute_integer(a->op, load(p, t->bytes),
				      load(b, t->bytes),
				      compare ? load(compare, t->bytes) : 0));
		break;
	}
}

/* ---- one call ------------------------------------------------------------ */

void tdm_amo_run(const struct tdm_amo *a, void *target, size_t bytes,
		 const void *operands, void *result)
{
	const struct op *o = &op_table[a->op];
	const uint8_t *buf = operands, *compare = NULL;
	size_t size = types[a->type].bytes, i;
	uint8_t *p = target, *former = result;

	if (a->op == FI_ATOMIC_READ) { /* has no operands */
		for (i = 0; i < bytes; i += size)
			copy(former + i, p + i, size);
		return;
	}
	if (a->kind == TDM_AMO_COMPARE)
		compare = buf + bytes;
	for (i = 0; i < bytes; i += size) {
		const uint8_t *other = compare ? compare + i : buf + i;

		if (former)
			copy(former + i, p + i, size);
		if (o->computes)
			compute(a, p + i, buf + i,
				compare ? compare + i : NULL);
		else if (o->when == ANY ||
			 o->when & order(a->type, other, p + i))
			copy(p + i, buf + i, size);
	}
}

void tdm_amo_run_on(const struct tdm_amo *a, const struct iovec *iov,
		    size_t count, const void *operands, void *result)
{
	size_t bytes = tdm_iov_len(iov, count);
	uint8_t whole[TDM_AMO_BYTES];

	if (count == 1) {
		tdm_amo_run(a, iov->iov_base, bytes, operands, result);
		return;
	}
	tdm_iov_copy_from(whole, iov, count, 0, bytes);
	tdm_amo_run(a, whole, bytes, operands, result);
	/* A read must not write: the region may be read-only. */
	if (a->op != FI_ATOMIC_READ)
		tdm_iov_copy_to(iov, count, 0, whole, bytes);
}
