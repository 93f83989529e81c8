/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encoding, decoding and checking of greetings.
 *
 * Pure: reads and writes the ranges it is given and nothing else. It checks all
 * that the bytes alone can tell; hello.c and resume.c check a greeting against
 * their connections.
 *
 * No state: no lock.
 *
 * Layout: doc/PROTOCOL-tcp.md, "Greeting".
 */
#include "tcp/wire/greeting.h"

#include "base/crc.h"
#include "tcp/wire/bytes.h"

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
	G_CRC = 96, /* without AUTH: of the bytes before it; 0: there is none */
};

tdm_static_assert((int)G_PROOF == (int)TDM_WIRE_PROVEN_BYTES &&
			  G_PROOF + TDM_AUTH_PROOF_BYTES ==
				  (int)TDM_WIRE_GREETING_BYTES,
		  "the proof is the end of a greeting");

enum { FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* Not text and not the beginning of any common protocol. */
static const uint8_t magic[8] = { 0xf4, 't', 'a', 'n', 'd', 'e', 'm', '\n' };

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
	tdm_put16(p + G_SIZE, TDM_WIRE_GREETING_BYTES);
	tdm_put16(p + G_OLDEST, g->oldest);
	tdm_put16(p + G_NEWEST, g->newest);
	tdm_put32(p + G_FEATURES, g->features);
	tdm_put32(p + G_REQUIRED, g->required);
	memcpy(p + G_ID, g->id, sizeof(g->id));
	if (g->addr.u.sa.sa_family == AF_INET) {
		tdm_put16(p + G_FAMILY, FAMILY_IPV4);
		memcpy(p + G_IP, &g->addr.u.in.sin_addr, 4);
	} else if (g->addr.u.sa.sa_family == AF_INET6) {
		tdm_put16(p + G_FAMILY, FAMILY_IPV6);
		memcpy(p + G_IP, &g->addr.u.in6.sin6_addr, 16);
	}
	if (g->addr.u.sa.sa_family)
		tdm_put16(p + G_PORT, tdm_addr_port(&g->addr));
	if (g->contexts)
		tdm_put32(p + G_CONTEXTS, g->contexts - 1);
	if (g->kind == TDM_WIRE_RESUME) {
		tdm_put64(p + G_CREDIT, g->received);
		tdm_put64(p + G_EAGER, g->session);
	} else {
		tdm_put64(p + G_CREDIT, g->credit);
		tdm_put32(p + G_EAGER, g->eager);
		tdm_put32(p + G_RTS, g->rts);
	}
	memcpy(p + G_NONCE, g->nonce, sizeof(g->nonce));
	if (g->features & TDM_WIRE_FEATURE_AUTH)
		memcpy(p + G_PROOF, g->proof, sizeof(g->proof));
	else
		tdm_put32(p + G_CRC, tdm_crc(0, p, G_CRC));
}

/*
 * Not 0 when bits of @p have changed on their way. With AUTH the proof tells that;
 * none ends with so many zeroes: then AUTH is what has changed.
 */
static int changed(const uint8_t *p)
{
	static const uint8_t zero[TDM_WIRE_GREETING_BYTES - G_CRC - 4];
	uint32_t crc = tdm_get32(p + G_CRC);

	if (tdm_get32(p + G_FEATURES) & TDM_WIRE_FEATURE_AUTH)
		return !memcmp(p + G_CRC + 4, zero, sizeof(zero));
	return crc && crc != tdm_crc(0, p, G_CRC);
}

static int decode_addr(const uint8_t *p, struct tdm_addr *addr)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	switch (tdm_get16(p + G_FAMILY)) {
	case FAMILY_IPV4:
		in.sin_port = htobe16(tdm_get16(p + G_PORT));
		memcpy(&in.sin_addr, p + G_IP, 4);
		return tdm_addr_from_sockaddr(addr, &in, sizeof(in));
	case FAMILY_IPV6:
		in6.sin6_port = htobe16(tdm_get16(p + G_PORT));
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
	g->oldest = tdm_get16(p + G_OLDEST);
	g->newest = tdm_get16(p + G_NEWEST);
	if (!tdm_wire_is_greeting(p, TDM_WIRE_GREETING_BYTES) ||
	    tdm_get16(p + G_SIZE) != TDM_WIRE_GREETING_BYTES ||
	    g->oldest > g->newest || !g->oldest || changed(p))
		return -TDM_WIRE_E_GREETING;
	if (g->kind == TDM_WIRE_REJECT)
		return g->reason ? 0 : -TDM_WIRE_E_GREETING;
	if ((g->kind != TDM_WIRE_HELLO && g->kind != TDM_WIRE_RESUME) ||
	    g->reason)
		return -TDM_WIRE_E_GREETING;
	if (!tdm_wire_version_ok(g))
		return 0;
	g->features = tdm_get32(p + G_FEATURES);
	g->required = tdm_get32(p + G_REQUIRED);
	memcpy(g->id, p + G_ID, sizeof(g->id));
	if (g->kind == TDM_WIRE_RESUME) {
		g->received = tdm_get64(p + G_CREDIT);
		g->session = tdm_get64(p + G_EAGER);
	} else {
		g->credit = tdm_get64(p + G_CREDIT);
		g->eager = tdm_get32(p + G_EAGER);
		g->rts = tdm_get32(p + G_RTS);
	}
	g->contexts = tdm_get32(p + G_CONTEXTS);
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
