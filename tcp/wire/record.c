/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding, decoding and checking of the bytes on a TCP connection.
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

#include <endian.h>
#include <string.h>

#include "tcp/wire/offer.h"
#include "tdm_ctx.h"

tdm_static_assert((int)TDM_CTX_MOST == (int)TDM_WIRE_CTX_MOST,
		  "records can name every context");

/* Offsets in a greeting. The first six are the same in every version. */
enum {
	G_MAGIC = 0,
	G_KIND = 8,
	G_REASON = 9,
	G_SIZE = 10,
	G_OLDEST = 12,
	G_NEWEST = 14,
	G_FEATURES = 16,
	G_REQUIRED = 20,
	G_ID = 24,
	G_FAMILY = 40,
	G_PORT = 42,
	G_CONTEXTS = 44, /* less 1 */
	G_IP = 48,
	G_CREDIT = 64,
	G_EAGER = 72,
	G_RTS = 76,
	G_NONCE = 80, /* these two are used with AUTH only */
	G_PROOF = 96,
};

tdm_static_assert((int)G_PROOF == (int)TDM_WIRE_PROVEN_BYTES &&
			  G_PROOF + TDM_AUTH_PROOF_BYTES ==
				  (int)TDM_WIRE_GREETING_BYTES,
		  "the proof is the end of a greeting");

enum { FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* Not text and not the beginning of any common protocol. */
static const uint8_t magic[8] = { 0xf4, 't', 'a', 'n', 'd', 'e', 'm', '\n' };

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
	[TDM_WIRE_CTS] = { 0, 16, 0, 0 },
	[TDM_WIRE_DATA] = { TDM_WIRE_F_ACK | TDM_WIRE_F_ABORT | TDM_WIRE_F_NOW,
			    8, TDM_WIRE_DATA_BYTES, 0 },
	[TDM_WIRE_DONE] = { 0, 8, 0, 0 },
	[TDM_WIRE_ACK] = { TDM_WIRE_F_FULL | TDM_WIRE_F_DATA, 16, 0, 0 },
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
	[TDM_WIRE_POSITION] = { TDM_WIRE_F_FULL | TDM_WIRE_F_DATA, 16, 0, 0 },
};

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static void put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static void put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

int tdm_wire_head_bytes(const uint8_t *p)
{
	uint8_t op = p[0], flags = p[1];
	const struct shape *s;

	if (op >= TDM_WIRE_OP_COUNT || !op)
		return -TDM_WIRE_E_OP;
	s = &shapes[op];
	if ((flags & ~s->flags) || (!s->ctx && (p[2] || p[3])))
		return -TDM_WIRE_E_FLAGS;
	if (get32(p + 4) > s->longest ||
	    ((flags & TDM_WIRE_F_LEFT) && get32(p + 4) > TDM_WIRE_LEFT_BYTES))
		return -TDM_WIRE_E_LENGTH;
	return TDM_WIRE_PREFIX_BYTES + ((flags & TDM_WIRE_F_TAG) ? 8 : 0) +
	       ((flags & TDM_WIRE_F_DATA) ? 8 : 0) +
	       ((flags & TDM_WIRE_F_DONE) ? 8 : 0) + s->fixed;
}

/* Decode the operation and its place: WRITE, AWRITE, READ. */
static int decode_rma(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->id = get32(p);
	r->key = get64(p + 8);
	r->addr = get64(p + 16);
	if (r->op == TDM_WIRE_READ)
		r->rid = get32(p + 4);
	else if (get32(p + 4))
		return -TDM_WIRE_E_FLAGS;
	r->total = r->op == TDM_WIRE_WRITE ? r->len : get64(p + 24);
	return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
}

static int decode_atomic(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->id = get32(p);
	r->rid = get32(p + 4);
	r->key = get64(p + 8);
	r->addr = get64(p + 16);
	r->total = get32(p + 24);
	memcpy(&r->amo, p + 28, sizeof(r->amo));
	if (r->rid && !tdm_amo_fetches(&r->amo))
		return -TDM_WIRE_E_FLAGS;
	return tdm_amo_fits(&r->amo, r->total, r->len) ? 0 : -TDM_WIRE_E_VALUE;
}

static int decode_range(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->key = get64(p);
	r->addr = get64(p + 8);
	r->total = get64(p + 16);
	return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
}

static int decode_rest(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->step = get32(p);
	r->acked = get64(p + 8);
	r->freed = get64(p + 16);
	if (get32(p + 4))
		return -TDM_WIRE_E_FLAGS;
	return !r->step || r->step >= TDM_WIRE_STEPS ? -TDM_WIRE_E_VALUE : 0;
}

static int decode_local(const uint8_t *p, struct tdm_wire_rec *r)
{
	r->step = get32(p);
	if (get32(p + 4))
		return -TDM_WIRE_E_FLAGS;
	if (!r->step || r->step >= TDM_WIRE_LOCALS)
		return -TDM_WIRE_E_VALUE;
	return !r->len == (r->step == TDM_WIRE_OFFER) ? -TDM_WIRE_E_LENGTH : 0;
}

/* Decode the fields after the optional ones. */
static int decode_fixed(const uint8_t *p, struct tdm_wire_rec *r)
{
	switch (r->op) {
	case TDM_WIRE_RTS:
		r->id = get32(p);
		r->total = get64(p + 8);
		if (get32(p + 4))
			return -TDM_WIRE_E_FLAGS;
		return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
	case TDM_WIRE_CTS:
		r->id = get32(p);
		r->rid = get32(p + 4);
		r->total = get64(p + 8);
		return r->total > TDM_WIRE_MSG_MAX ? -TDM_WIRE_E_VALUE : 0;
	case TDM_WIRE_DATA:
		r->rid = get32(p);
		if (get32(p + 4) ||
		    (r->flags & (TDM_WIRE_F_NOW | TDM_WIRE_F_ACK)) ==
			    TDM_WIRE_F_NOW)
			return -TDM_WIRE_E_FLAGS;
		/* DATA has payload, or with ABORT none. */
		return !r->len == !!(r->flags & TDM_WIRE_F_ABORT) ?
			       0 :
			       -TDM_WIRE_E_LENGTH;
	case TDM_WIRE_DONE:
		r->id = get32(p);
		r->status = get32(p + 4);
		return r->status >= TDM_WIRE_STATUSES ? -TDM_WIRE_E_VALUE : 0;
	case TDM_WIRE_CANCEL:
		r->id = get32(p);
		return get32(p + 4) ? -TDM_WIRE_E_FLAGS : 0;
	case TDM_WIRE_POSITION:
		if (!(r->flags & TDM_WIRE_F_DATA))
			return -TDM_WIRE_E_FLAGS;
		/* fallthrough */
	case TDM_WIRE_ACK:
		r->acked = get64(p);
		r->freed = get64(p + 8);
		return 0;
	case TDM_WIRE_WRITE:
	case TDM_WIRE_AWRITE:
	case TDM_WIRE_READ:
		return decode_rma(p, r);
	case TDM_WIRE_LEFT:
		r->total = get64(p);
		return 0;
	case TDM_WIRE_GROUP:
		r->group = get32(p);
		return get32(p + 4) ? -TDM_WIRE_E_FLAGS : 0;
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
	int n = tdm_wire_head_bytes(p);

	if (n < 0)
		return n;
	r->op = p[0];
	r->flags = p[1];
	r->ctx = get16(p + 2);
	r->len = get32(p + 4);
	r->tag = 0;
	r->data = 0;
	r->id = 0;
	r->rid = 0;
	r->status = 0;
	p += TDM_WIRE_PREFIX_BYTES;
	if (r->flags & TDM_WIRE_F_TAG) {
		r->tag = get64(p);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DATA) {
		r->data = get64(p);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DONE) {
		r->id = get32(p);
		if (get32(p + 4))
			return -TDM_WIRE_E_FLAGS;
		p += 8;
	}
	return decode_fixed(p, r);
}

static uint8_t *encode_rma(uint8_t *p, const struct tdm_wire_rec *r)
{
	put32(p, r->id);
	put32(p + 4, r->op == TDM_WIRE_READ ? r->rid : 0);
	put64(p + 8, r->key);
	put64(p + 16, r->addr);
	if (r->op == TDM_WIRE_WRITE)
		return p + 24;
	put64(p + 24, r->total);
	return p + 32;
}

static uint8_t *encode_atomic(uint8_t *p, const struct tdm_wire_rec *r)
{
	put32(p, r->id);
	put32(p + 4, r->rid);
	put64(p + 8, r->key);
	put64(p + 16, r->addr);
	put32(p + 24, (uint32_t)r->total);
	memcpy(p + 28, &r->amo, sizeof(r->amo));
	return p + 32;
}

static uint8_t *encode_fixed(uint8_t *p, const struct tdm_wire_rec *r)
{
	switch (r->op) {
	case TDM_WIRE_RTS:
		put32(p, r->id);
		put32(p + 4, 0);
		put64(p + 8, r->total);
		return p + 16;
	case TDM_WIRE_CTS:
		put32(p, r->id);
		put32(p + 4, r->rid);
		put64(p + 8, r->total);
		return p + 16;
	case TDM_WIRE_DATA:
		put32(p, r->rid);
		put32(p + 4, 0);
		return p + 8;
	case TDM_WIRE_DONE:
		put32(p, r->id);
		put32(p + 4, r->status);
		return p + 8;
	case TDM_WIRE_CANCEL:
		put32(p, r->id);
		put32(p + 4, 0);
		return p + 8;
	case TDM_WIRE_ACK:
	case TDM_WIRE_POSITION:
		put64(p, r->acked);
		put64(p + 8, r->freed);
		return p + 16;
	case TDM_WIRE_WRITE:
	case TDM_WIRE_AWRITE:
	case TDM_WIRE_READ:
		return encode_rma(p, r);
	case TDM_WIRE_LEFT:
		put64(p, r->total);
		return p + 8;
	case TDM_WIRE_GROUP:
	case TDM_WIRE_LOCAL:
		put32(p, r->op == TDM_WIRE_GROUP ? r->group : r->step);
		put32(p + 4, 0);
		return p + 8;
	case TDM_WIRE_ATOMIC:
		return encode_atomic(p, r);
	case TDM_WIRE_IDLE_CLOSE:
		put32(p, r->step);
		put32(p + 4, 0);
		put64(p + 8, r->acked);
		put64(p + 16, r->freed);
		return p + 24;
	case TDM_WIRE_RANGE:
		put64(p, r->key);
		put64(p + 8, r->addr);
		put64(p + 16, r->total);
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
	put16(p + 2, r->ctx);
	put32(p + 4, r->len);
	p += TDM_WIRE_PREFIX_BYTES;
	if (r->flags & TDM_WIRE_F_TAG) {
		put64(p, r->tag);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DATA) {
		put64(p, r->data);
		p += 8;
	}
	if (r->flags & TDM_WIRE_F_DONE) {
		put32(p, r->id);
		put32(p + 4, 0);
		p += 8;
	}
	p = encode_fixed(p, r);
	return (size_t)(p - begin);
}

int tdm_wire_is_greeting(const uint8_t *p, size_t len)
{
	return !memcmp(p, magic, tdm_min(len, sizeof(magic)));
}

void tdm_wire_greeting_encode(uint8_t *p, const struct tdm_wire_greeting *g)
{
	memset(p, 0, TDM_WIRE_GREETING_BYTES);
	memcpy(p + G_MAGIC, magic, sizeof(magic));
	p[G_KIND] = g->kind;
	p[G_REASON] = g->reason;
	put16(p + G_SIZE, TDM_WIRE_GREETING_BYTES);
	put16(p + G_OLDEST, g->oldest);
	put16(p + G_NEWEST, g->newest);
	put32(p + G_FEATURES, g->features);
	put32(p + G_REQUIRED, g->required);
	memcpy(p + G_ID, g->id, sizeof(g->id));
	if (g->addr.u.sa.sa_family == AF_INET) {
		put16(p + G_FAMILY, FAMILY_IPV4);
		memcpy(p + G_IP, &g->addr.u.in.sin_addr, 4);
	} else if (g->addr.u.sa.sa_family == AF_INET6) {
		put16(p + G_FAMILY, FAMILY_IPV6);
		memcpy(p + G_IP, &g->addr.u.in6.sin6_addr, 16);
	}
	if (g->addr.u.sa.sa_family)
		put16(p + G_PORT, tdm_addr_port(&g->addr));
	if (g->contexts)
		put32(p + G_CONTEXTS, g->contexts - 1);
	if (g->kind == TDM_WIRE_RESUME) {
		put64(p + G_CREDIT, g->received);
		put64(p + G_EAGER, g->session);
	} else {
		put64(p + G_CREDIT, g->credit);
		put32(p + G_EAGER, g->eager);
		put32(p + G_RTS, g->rts);
	}
	memcpy(p + G_NONCE, g->nonce, sizeof(g->nonce));
	memcpy(p + G_PROOF, g->proof, sizeof(g->proof));
}

static int decode_addr(const uint8_t *p, struct tdm_addr *addr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	switch (get16(p + G_FAMILY)) {
	case FAMILY_IPV4:
		in.sin_port = htobe16(get16(p + G_PORT));
		memcpy(&in.sin_addr, p + G_IP, 4);
		return tdm_addr_from_sockaddr(addr, &in, sizeof(in));
	case FAMILY_IPV6:
		in6.sin6_port = htobe16(get16(p + G_PORT));
		memcpy(&in6.sin6_addr, p + G_IP, 16);
		return tdm_addr_from_sockaddr(addr, &in6, sizeof(in6));
	default:
		return -1;
	}
}

/*
 * Not 0 when @g, a HELLO, gives too little credit, or allows no announcement. A
 * peer whose credit can grow later may begin with none.
 */
static int bad_terms(const struct tdm_wire_greeting *g)
{
	if (g->kind != TDM_WIRE_HELLO)
		return 0;
	if (!g->rts)
		return 1;
	return g->credit < TDM_WIRE_CREDIT_LEAST &&
	       (g->credit || !(g->features & TDM_WIRE_FEATURE_CREDIT));
}

int tdm_wire_greeting_decode(const uint8_t *p, struct tdm_wire_greeting *g)
{
	static const uint8_t no_id[TDM_WIRE_ID_BYTES];

	memset(g, 0, sizeof(*g));
	g->kind = p[G_KIND];
	g->reason = p[G_REASON];
	g->oldest = get16(p + G_OLDEST);
	g->newest = get16(p + G_NEWEST);
	if (!tdm_wire_is_greeting(p, TDM_WIRE_GREETING_BYTES) ||
	    get16(p + G_SIZE) != TDM_WIRE_GREETING_BYTES ||
	    g->oldest > g->newest || !g->oldest)
		return -TDM_WIRE_E_GREETING;
	if (g->kind == TDM_WIRE_REJECT)
		return g->reason ? 0 : -TDM_WIRE_E_GREETING;
	if ((g->kind != TDM_WIRE_HELLO && g->kind != TDM_WIRE_RESUME) ||
	    g->reason)
		return -TDM_WIRE_E_GREETING;
	if (!tdm_wire_version_ok(g))
		return 0;
	g->features = get32(p + G_FEATURES);
	g->required = get32(p + G_REQUIRED);
	memcpy(g->id, p + G_ID, sizeof(g->id));
	if (g->kind == TDM_WIRE_RESUME) {
		g->received = get64(p + G_CREDIT);
		g->session = get64(p + G_EAGER);
	} else {
		g->credit = get64(p + G_CREDIT);
		g->eager = get32(p + G_EAGER);
		g->rts = get32(p + G_RTS);
	}
	g->contexts = get32(p + G_CONTEXTS);
	memcpy(g->nonce, p + G_NONCE, sizeof(g->nonce));
	memcpy(g->proof, p + G_PROOF, sizeof(g->proof));
	if (!memcmp(g->id, no_id, sizeof(no_id)) || decode_addr(p, &g->addr) ||
	    bad_terms(g) || g->contexts >= TDM_WIRE_CTX_MOST)
		return -TDM_WIRE_E_GREETING;
	g->contexts++;
	g->credit = tdm_min(g->credit, TDM_WIRE_CREDIT_MOST);
	g->eager = (uint32_t)tdm_min(g->eager, TDM_WIRE_EAGER_BYTES);
	g->rts = (uint32_t)tdm_min(g->rts, TDM_WIRE_RTS_COUNT);
	return 0;
}

int tdm_wire_version_ok(const struct tdm_wire_greeting *g)
{
	return g->oldest <= TDM_WIRE_VERSION && g->newest >= TDM_WIRE_VERSION;
}
