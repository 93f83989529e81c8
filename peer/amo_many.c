/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See amo_many.h. Values are copied to and from blocks of a constant size, whose
 * loops a compiler turns into vector instructions. What has no loop here, and what
 * is left of a block, goes value by value.
 *
 * Lock: none, no state.
 */
#include "peer/amo_many.h"

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "peer/amo.h"

enum {
	BLOCK_BYTES = 1024,
	VALUES32 = BLOCK_BYTES / 4,
	VALUES64 = VALUES32 / 2
};

union block {
	uint8_t bytes[BLOCK_BYTES];
	int32_t i32[VALUES32];
	uint32_t u32[VALUES32];
	float f[VALUES32];
	int64_t i64[VALUES64];
	uint64_t u64[VALUES64];
	double d[VALUES64];
};

/* Reduce @y into @x. Returns 0, or -1: there is no loop for @op. */
typedef int (*many_fn)(unsigned op, union block *restrict x,
		       const union block *restrict y);

/* Unsigned values wrap as signed ones do, and have the same bits. */
static int add32(unsigned op, union block *restrict x,
		 const union block *restrict y)
{
	int i;

	if (op == FI_SUM)
		for (i = 0; i < VALUES32; i++)
			x->u32[i] += y->u32[i];
	else if (op == FI_PROD)
		for (i = 0; i < VALUES32; i++)
			x->u32[i] *= y->u32[i];
	else
		return -1;
	return 0;
}

static int add64(unsigned op, union block *restrict x,
		 const union block *restrict y)
{
	int i;

	if (op == FI_SUM)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] += y->u64[i];
	else if (op == FI_PROD)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] *= y->u64[i];
	else
		return -1;
	return 0;
}

static int many_i32(unsigned op, union block *restrict x,
		    const union block *restrict y)
{
	int i;

	if (op == FI_MIN)
		for (i = 0; i < VALUES32; i++)
			x->i32[i] = y->i32[i] < x->i32[i] ? y->i32[i] :
							    x->i32[i];
	else if (op == FI_MAX)
		for (i = 0; i < VALUES32; i++)
			x->i32[i] = y->i32[i] > x->i32[i] ? y->i32[i] :
							    x->i32[i];
	else
		return add32(op, x, y);
	return 0;
}

static int many_u32(unsigned op, union block *restrict x,
		    const union block *restrict y)
{
	int i;

	if (op == FI_MIN)
		for (i = 0; i < VALUES32; i++)
			x->u32[i] = y->u32[i] < x->u32[i] ? y->u32[i] :
							    x->u32[i];
	else if (op == FI_MAX)
		for (i = 0; i < VALUES32; i++)
			x->u32[i] = y->u32[i] > x->u32[i] ? y->u32[i] :
							    x->u32[i];
	else
		return add32(op, x, y);
	return 0;
}

static int many_i64(unsigned op, union block *restrict x,
		    const union block *restrict y)
{
	int i;

	if (op == FI_MIN)
		for (i = 0; i < VALUES64; i++)
			x->i64[i] = y->i64[i] < x->i64[i] ? y->i64[i] :
							    x->i64[i];
	else if (op == FI_MAX)
		for (i = 0; i < VALUES64; i++)
			x->i64[i] = y->i64[i] > x->i64[i] ? y->i64[i] :
							    x->i64[i];
	else
		return add64(op, x, y);
	return 0;
}

static int many_u64(unsigned op, union block *restrict x,
		    const union block *restrict y)
{
	int i;

	if (op == FI_MIN)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] = y->u64[i] < x->u64[i] ? y->u64[i] :
							    x->u64[i];
	else if (op == FI_MAX)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] = y->u64[i] > x->u64[i] ? y->u64[i] :
							    x->u64[i];
	else
		return add64(op, x, y);
	return 0;
}

/* The value in @x stays unless that of @y is less, or greater: also a NaN. */
static int many_float(unsigned op, union block *restrict x,
		      const union block *restrict y)
{
	int i;

	if (op == FI_SUM)
		for (i = 0; i < VALUES32; i++)
			x->f[i] += y->f[i];
	else if (op == FI_PROD)
		for (i = 0; i < VALUES32; i++)
			x->f[i] *= y->f[i];
	else if (op == FI_MIN)
		for (i = 0; i < VALUES32; i++)
			x->f[i] = y->f[i] < x->f[i] ? y->f[i] : x->f[i];
	else if (op == FI_MAX)
		for (i = 0; i < VALUES32; i++)
			x->f[i] = y->f[i] > x->f[i] ? y->f[i] : x->f[i];
	else
		return -1;
	return 0;
}

static int many_double(unsigned op, union block *restrict x,
		       const union block *restrict y)
{
	int i;

	if (op == FI_SUM)
		for (i = 0; i < VALUES64; i++)
			x->d[i] += y->d[i];
	else if (op == FI_PROD)
		for (i = 0; i < VALUES64; i++)
			x->d[i] *= y->d[i];
	else if (op == FI_MIN)
		for (i = 0; i < VALUES64; i++)
			x->d[i] = y->d[i] < x->d[i] ? y->d[i] : x->d[i];
	else if (op == FI_MAX)
		for (i = 0; i < VALUES64; i++)
			x->d[i] = y->d[i] > x->d[i] ? y->d[i] : x->d[i];
	else
		return -1;
	return 0;
}

/* By type; NULL: value by value. Bits need no type. */
static const many_fn loops[] = {
	[FI_INT32] = many_i32,	 [FI_UINT32] = many_u32,
	[FI_INT64] = many_i64,	 [FI_UINT64] = many_u64,
	[FI_FLOAT] = many_float, [FI_DOUBLE] = many_double,
};

static int many_bits(unsigned op, union block *restrict x,
		     const union block *restrict y)
{
	int i;

	if (op == FI_BOR)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] |= y->u64[i];
	else if (op == FI_BAND)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] &= y->u64[i];
	else if (op == FI_BXOR)
		for (i = 0; i < VALUES64; i++)
			x->u64[i] ^= y->u64[i];
	else
		return -1;
	return 0;
}

static int one_block(const struct tdm_amo *a, uint8_t *target,
		     const uint8_t *operands)
{
	many_fn fn = a->type < TDM_ARRAY_LEN(loops) ? loops[a->type] : NULL;
	union block x, y;

	memcpy(x.bytes, target, sizeof(x));
	memcpy(y.bytes, operands, sizeof(y));
	if (many_bits(a->op, &x, &y) && (!fn || fn(a->op, &x, &y)))
		return -1;
	memcpy(target, x.bytes, sizeof(x));
	return 0;
}

void tdm_amo_run_many(const struct tdm_amo *a, void *target, size_t bytes,
		      const void *operands)
{
	const uint8_t *from = operands;
	uint8_t *to = target;
	size_t at = 0;

	while (bytes - at >= BLOCK_BYTES && !one_block(a, to + at, from + at))
		at += BLOCK_BYTES;
	if (at < bytes)
		tdm_amo_run(a, to + at, bytes - at, from + at, NULL);
}
