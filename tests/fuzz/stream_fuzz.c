/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of a TCP stream after the greeting (tcp/wire/record.c) fed with
 * anything: records follow each other as their lengths say, up to the first one
 * that is refused. An accepted header has bounds, and is written again as it
 * was read. A header is in memory of exactly its length.
 */
#include <string.h>

#include "tcp/wire/offer.h"
#include "tcp/wire/record.h"
#include "tests/fuzz/fuzz.h"

/* What a receiver relies on, and does not check again. */
static void in_bounds(const struct tdm_wire_rec *rec)
{
	tdt_must(rec->op && rec->op < TDM_WIRE_OP_COUNT);
	tdt_must(rec->len <= (rec->op == TDM_WIRE_WRITE ? TDM_WIRE_WRITE_BYTES :
							  TDM_WIRE_DATA_BYTES));
	switch (rec->op) {
	case TDM_WIRE_RTS:
	case TDM_WIRE_CTS:
	case TDM_WIRE_WRITE:
	case TDM_WIRE_AWRITE:
	case TDM_WIRE_READ:
	case TDM_WIRE_RANGE:
		tdt_must(rec->total <= TDM_WIRE_MSG_MAX);
		break;
	case TDM_WIRE_DATA:
		tdt_must(!rec->len == !!(rec->flags & TDM_WIRE_F_ABORT));
		break;
	case TDM_WIRE_DONE:
		tdt_must(rec->status < TDM_WIRE_STATUSES);
		break;
	case TDM_WIRE_IDLE_CLOSE:
		tdt_must(rec->step && rec->step < TDM_WIRE_STEPS);
		break;
	case TDM_WIRE_LOCAL:
		tdt_must(rec->step && rec->step < TDM_WIRE_LOCALS);
		break;
	case TDM_WIRE_ATOMIC:
		tdt_must(rec->total && rec->total <= TDM_AMO_BYTES);
		tdt_must(rec->len <= TDM_AMO_BYTES);
		break;
	default:
		break;
	}
	if (rec->flags & TDM_WIRE_F_LEFT)
		tdt_must(rec->len <= TDM_WIRE_LEFT_BYTES);
}

/*
 * Decode the header at @p, of which @n bytes are there. Returns how many bytes
 * the record has, or 0: it is refused, or not complete.
 */
static size_t record(const uint8_t *p, size_t n)
{
	uint8_t again[TDM_WIRE_HEAD_BYTES];
	struct tdm_wire_rec rec;
	uint8_t *exact;
	int head, ret;

	if (n < TDM_WIRE_PREFIX_BYTES)
		return 0;
	head = tdm_wire_head_bytes(p);
	if (head < 0)
		return 0;
	tdt_must(head >= TDM_WIRE_PREFIX_BYTES && head <= TDM_WIRE_HEAD_BYTES);
	if ((size_t)head > n)
		return 0;
	exact = tdt_exact(p, (size_t)head);
	memset(&rec, 0, sizeof(rec));
	ret = tdm_wire_decode(exact, &rec);
	if (!ret) {
		in_bounds(&rec);
		tdt_must(tdm_wire_encode(again, &rec) == (size_t)head);
		tdt_must(!memcmp(again, exact, (size_t)head));
	}
	free(exact);
	return ret ? 0 : (size_t)head + rec.len;
}

int tdt_fuzz_stream(const uint8_t *data, size_t size)
{
	size_t n;

	while ((n = record(data, size)) && n <= size) {
		data += n;
		size -= n;
	}
	return 0;
}
