/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding, decoding and checking of the records on a TCP connection.
 *
 * Pure: reads and writes the ranges it is given and nothing else. It checks all
 * that the bytes alone can tell; the caller checks a record against the state
 * of its connection.
 *
 * No state: no lock.
 *
 * Layouts: doc/PROTOCOL-tcp.md.
 */
#include "tcp/wire/record.h"

#include "tcp/wire/bytes.h"
#include "tcp/wire/offer.h"
#include "tdm_ctx.h"

tdm_static_assert((int)TDM_CTX_MOST == (int)TDM_WIRE_CTX_MOST,
		  "records can name every context");

/* The fields and sizes that each type of record permits. */
static const struct shape {
	uint8_t flags;	  /* flags that are allowed */
	uint8_t fixed;	  /* bytes after the optional fields */
	uint32_t longest; /* payload, bytes */
	uint8_t ctx;	  /* 1: names a receive context */
} shapes[TDM_WIRE_OP_COUNT] = {
	[TDM_WIRE_EAGER] = { TDM_WIRE_F_TAG | TDM_WIRE_F_DATA | TDM_WIRE_F_ACK |
				     TDM_WIRE_F_DONE | TDM_WIRE_F_LEFT,
			     0, TDM_WIRE_EAGER_BYTES, 1 },
	[TDM_WIRE_RTS] = { TDM_WIRE_F_TAG | TDM_WIRE_F_DATA, 16, 0, 1 },
	[TDM_WIRE_CTS] = { TDM_WIRE_F_WAITED, 16, 0, 0 },
	[TDM_WIRE_DATA] = { TDM_WIRE_F_ACK | TDM_WIRE_F_ABORT | TDM_WIRE_F_NOW,
			    8, TDM_WIRE_DATA_BYTES, 0 },
	[TDM_WIRE_DONE] = { 0, 8, 0, 0 },
	[TDM_WIRE_ACK] = { TDM_WIRE_F_FULL | TDM_WIRE_F_DATA |
				   TDM_WIRE_F_WAITED,
			   16, 0, 0 },
	[TDM_WIRE_GOODBYE] = { 0, 0, 0, 0 },
	[TDM_WIRE_WRITE] = { TDM_WIRE_F_DATA | TDM_WIRE_F_LEFT, 24,
			     TDM_WIRE_WRITE_BYTES, 1 },
	[TDM_WIRE_AWRITE] = { TDM_WIRE_F_DATA, 32, 0, 1 },
	[TDM_WIRE_READ] = { 0, 32, 0, 0 },
	[TDM_WIRE_CANCEL] = { 0, 8, 0, 0 },
	[TDM_WIRE_GROUP] = { 0, 8, 0, 0 },
	[TDM_WIRE_IDLE_CLOSE] = { 0, 24, 0, 0 },
	[TDM_WIRE_ATOMIC] = { 0, 32, TDM_AMO_BYTES, 1 },
	[TDM_WIRE_LEFT] = { 0, 8, TDM_WIRE_LEFT_BYTES, 0 },
	[TDM_WIRE_RANGE] = { 0, 24, 0, 0 },
	[TDM_WIRE_LOCAL] = { 0, 8, TDM_WIRE_OFFER_BYTES, 0 },
	[TDM_WIRE_POSITION] = { TDM_WIRE_F_FULL | TDM_WIRE_F_DATA |
					TDM_WIRE_F_WAITED,
				16, 0, 0 },
};

int tdm_wire_head_bytes(const uint8_t *p)
{
	uint8_t op = p[0], flags = p[1];
	const struct shape *s;

	if (op >= TDM_WIRE_OP_COUNT || !op)
		return -TDM_WIRE_E_OP;
	s = &shapes[op];
	if ((flags & ~s->flags) || (!s->ctx && (p[2] || p[3])))
		return -TDM_WIRE_E_FLAGS;
	if (tdm_get32(p + 4) > s->longest ||
	    ((flags & TDM_WIRE_F_LEFT) &&
	     tdm_get32(p + 4) > TDM_WIRE_LEFT_BYTES))
		return -TDM_WIRE_E_LENGTH;
	return TDM_WIRE_PREFIX_BYTES + ((flags & TDM_WIRE_F_TAG) ? 8 : 0) +
	       ((flags & TDM_WIRE_F_DATA) ? 8 : 0) +
	       ((flags & TDM_WIRE_F_DONE) ? 8 : 0) + s->fixed;
}

/* Decode the operation and its place: WRITE, AWRITE, READ. */
static int decode_rma(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->id = tdm_get32(p);
	r->key = tdm_get64(p + 8);
	r->addr = tdm_get64(p + 16);
	if (r->op == TDM_WIRE_READ)
		r->rid = tdm_get32(p + 4);
	else if (tdm_get32(p + 4))
		return -TDM_WIRE_E_FLAGS;
	r->total = r->op == TDM_WIRE_WRITE ? r->len : tdm_get64(p + 24);
	return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
}

static int decode_atomic(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->id = tdm_get32(p);
	r->rid = tdm_get32(p + 4);
	r->key = tdm_get64(p + 8);
	r->addr = tdm_get64(p + 16);
	r->total = tdm_get32(p + 24);
	memcpy(&r->amo, p + 28, sizeof(r->amo));
	if (r->rid && !tdm_amo_fetches(&r->amo))
		return -TDM_WIRE_E_FLAGS;
	return tdm_amo_fits(&r->amo, r->total, r->len) ? 0 : -TDM_WIRE_E_VALUE;
}

static int decode_range(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->key = tdm_get64(p);
	r->addr = tdm_get64(p + 8);
	r->total = tdm_get64(p + 16);
	return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
}

static int decode_rest(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->step = tdm_get32(p);
	r->acked = tdm_get64(p + 8);
	r->freed = tdm_get64(p + 16);
	if (tdm_get32(p + 4))
		return -TDM_WIRE_E_FLAGS;
	return !r->step || r->step >= TDM_WIRE_STEPS ? -TDM_WIRE_E_VALUE : 0;
}

static int decode_local(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->step = tdm_get32(p);
	if (tdm_get32(p + 4))
		return -TDM_WIRE_E_FLAGS;
	if (!r->step || r->step >= TDM_WIRE_LOCALS)
		return -TDM_WIRE_E_VALUE;
	return !r->len == (r->step == TDM_WIRE_OFFER) ? -TDM_WIRE_E_LENGTH : 0;
}

static int decode_ack(const uint8_t *p, struct tdm_wire_rec *r)
{
	if (r->op == TDM_WIRE_POSITION && !(r->flags & TDM_WIRE_F_DATA))
		return -TDM_WIRE_E_FLAGS;
	r->acked = tdm_get64(p);
	r->freed = tdm_get64(p + 8);
	return 0;
}

/* Decode the fields after the optional ones. */
static int decode_fixed(const uint8_t *p, struct tdm_wire_rec *r)
{
	switch (r->op) {
	case TDM_WIRE_RTS:
		r->id = tdm_get32(p);
		r->total = tdm_get64(p + 8);
		if (tdm_get32(p + 4))
			return -TDM_WIRE_E_FLAGS;
		return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
	case TDM_WIRE_CTS:
		r->id = tdm_get32(p);
		r->rid = tdm_get32(p + 4);
		r->total = tdm_get64(p + 8);
		return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
	case TDM_WIRE_DATA:
		r->rid = tdm_get32(p);
		if (tdm_get32(p + 4) ||
		    (r->flags & (TDM_WIRE_F_NOW | TDM_WIRE_F_ACK)) ==
			    TDM_WIRE_F_NOW)
			return -TDM_WIRE_E_FLAGS;
		/* DATA has payload, or with ABORT none. */
		return !r->len == !!(r->flags & TDM_WIRE_F_ABORT) ?
			       0 :
			       -TDM_WIRE_E_LENGTH;
	case TDM_WIRE_DONE:
		r->id = tdm_get32(p);
		r->status = tdm_get32(p + 4);
		return r->status >= TDM_WIRE_STATUSES ? -TDM_WIRE_E_VALUE : 0;
	case TDM_WIRE_CANCEL:
		r->id = tdm_get32(p);
		return tdm_get32(p + 4) ? -TDM_WIRE_E_FLAGS : 0;
	case TDM_WIRE_POSITION:
	case TDM_WIRE_ACK:
		return decode_ack(p, r);
	case TDM_WIRE_WRITE:
	case TDM_WIRE_AWRITE:
	case TDM_WIRE_READ:
		return decode_rma(p, r);
	case TDM_WIRE_LEFT:
		r->total = tdm_get64(p);
		return 0;
	case TDM_WIRE_GROUP:
		r->group = tdm_get32(p);
		return tdm_get32(p + 4) ? -TDM_WIRE_E_FLAGS : 0;
	case TDM_WIRE_IDLE_CLOSE:
		return decode_rest(p, r);
	case TDM_WIRE_ATOMIC:
		return decode_atomic(p, r);
	case TDM_WIRE_RANGE:
		return decode_range(p, r);
	case TDM_WIRE_LOCAL:
		return decode_local(p, r);
	default:
		return 0;
	}
}

int tdm_wire_decode(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->op = p[0];
	r->flags = p[1];
	r->ctx = tdm_get16(p + 2);
	r->len = tdm_get32(p + 4);
	r->tag = 0;
	r->data = 0;
	r->id = 0;
	r->rid = 0;
	r->status = 0;
	p += TDM_WIRE_PREFIX_BYTES;
	if (r->flags & TDM_WIRE_F_TAG) {
		r->tag = tdm_get64(p);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DATA) {
		r->data = tdm_get64(p);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DONE) {
		r->id = tdm_get32(p);
		if (tdm_get32(p + 4))
			return -TDM_WIRE_E_FLAGS;
		p += 8;
	}
	return decode_fixed(p, r);
}

static uint8_t *encode_rma(uint8_t *p, const struct tdm_wire_rec *r)
{
	tdm_put32(p, r->id);
	tdm_put32(p + 4, r->op == TDM_WIRE_READ ? r->rid : 0);
	tdm_put64(p + 8, r->key);
	tdm_put64(p + 16, r->addr);
	if (r->op == TDM_WIRE_WRITE)
		return p + 24;
	tdm_put64(p + 24, r->total);
	return p + 32;
}

static uint8_t *encode_atomic(uint8_t *p, const struct tdm_wire_rec *r)
{
	tdm_put32(p, r->id);
	tdm_put32(p + 4, r->rid);
	tdm_put64(p + 8, r->key);
	tdm_put64(p + 16, r->addr);
	tdm_put32(p + 24, (uint32_t)r->total);
	memcpy(p + 28, &r->amo, sizeof(r->amo));
	return p + 32;
}

static uint8_t *encode_fixed(uint8_t *p, const struct tdm_wire_rec *r)
{
	switch (r->op) {
	case TDM_WIRE_RTS:
		tdm_put32(p, r->id);
		tdm_put32(p + 4, 0);
		tdm_put64(p + 8, r->total);
		return p + 16;
	case TDM_WIRE_CTS:
		tdm_put32(p, r->id);
		tdm_put32(p + 4, r->rid);
		tdm_put64(p + 8, r->total);
		return p + 16;
	case TDM_WIRE_DATA:
		tdm_put32(p, r->rid);
		tdm_put32(p + 4, 0);
		return p + 8;
	case TDM_WIRE_DONE:
		tdm_put32(p, r->id);
		tdm_put32(p + 4, r->status);
		return p + 8;
	case TDM_WIRE_CANCEL:
		tdm_put32(p, r->id);
		tdm_put32(p + 4, 0);
		return p + 8;
	case TDM_WIRE_ACK:
	case TDM_WIRE_POSITION:
		tdm_put64(p, r->acked);
		tdm_put64(p + 8, r->freed);
		return p + 16;
	case TDM_WIRE_WRITE:
	case TDM_WIRE_AWRITE:
	case TDM_WIRE_READ:
		return encode_rma(p, r);
	case TDM_WIRE_LEFT:
		tdm_put64(p, r->total);
		return p + 8;
	case TDM_WIRE_GROUP:
	case TDM_WIRE_LOCAL:
		tdm_put32(p, r->op == TDM_WIRE_GROUP ? r->group : r->step);
		tdm_put32(p + 4, 0);
		return p + 8;
	case TDM_WIRE_ATOMIC:
		return encode_atomic(p, r);
	case TDM_WIRE_IDLE_CLOSE:
		tdm_put32(p, r->step);
		tdm_put32(p + 4, 0);
		tdm_put64(p + 8, r->acked);
		tdm_put64(p + 16, r->freed);
		return p + 24;
	case TDM_WIRE_RANGE:
		tdm_put64(p, r->key);
		tdm_put64(p + 8, r->addr);
		tdm_put64(p + 16, r->total);
		return p + 24;
	default:
		return p;
	}
}

size_t tdm_wire_encode(uint8_t *begin, const struct tdm_wire_rec *r)
{
	uint8_t *p = begin;

	p[0] = r->op;
	p[1] = r->flags;
	tdm_put16(p + 2, r->ctx);
	tdm_put32(p + 4, r->len);
	p += TDM_WIRE_PREFIX_BYTES;
	if (r->flags & TDM_WIRE_F_TAG) {
		tdm_put64(p, r->tag);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DATA) {
		tdm_put64(p, r->data);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DONE) {
		tdm_put32(p, r->id);
		tdm_put32(p + 4, 0);
		p += 8;
	}
	p = encode_fixed(p, r);
	return (size_t)(p - begin);
}
