/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The greeting over TCP (tcp/wire/greeting.c), and its proof of a key
 * (base/auth.c), fed with anything. The first byte of an input says whether its
 * proof or checksum is made right, and then, whether one bit of the greeting is
 * changed afterwards: a proof is accepted if and only if it is that of these bytes,
 * and no changed greeting with a checksum is.
 */
#include <string.h>

#include "base/crc.h"
#include "tcp/wire/bytes.h"
#include "tcp/wire/greeting.h"
#include "tests/fuzz/fuzz.h"

enum { RIGHT = 1, CHANGED = 2 };

enum { FEATURES = 16, CHECKSUM = TDM_WIRE_PROVEN_BYTES }; /* offsets */

static const struct tdm_auth_key key = { .size = TDM_AUTH_LEAST_BYTES,
					 .bytes = "0123456789abcde" };

/* The proof of the initiator's HELLO at @p. */
static void prove(const uint8_t *p, uint8_t *proof)
{
	const struct tdm_auth_text text =
		tdm_auth_text(p, TDM_WIRE_PROVEN_BYTES, NULL, 0);

	if (tdm_auth_prove(&key, TDM_AUTH_TCP_HELLO, &text, proof))
		exit(0); /* no memory */
}

static void check_proof(const uint8_t *p, const struct tdm_wire_greeting *g)
{
	const struct tdm_auth_text text =
		tdm_auth_text(p, TDM_WIRE_PROVEN_BYTES, NULL, 0);
	uint8_t right[TDM_AUTH_PROOF_BYTES];
	int same, ret;

	prove(p, right);
	same = !memcmp(right, g->proof, sizeof(right));
	ret = tdm_auth_check(&key, TDM_AUTH_TCP_HELLO, &text, g->proof);
	tdt_must(!ret == !same);
	/* It is that of one role only: nobody can send it back. */
	tdt_must(!same ||
		 !tdm_auth_check(&key, TDM_AUTH_TCP_SERVER, &text, g->proof));
}

/* The credit and the lengths that a HELLO allows are within the limits. */
static void check_terms(const struct tdm_wire_greeting *g)
{
	tdt_must(g->rts && g->rts <= TDM_WIRE_RTS_COUNT);
	tdt_must(g->eager <= TDM_WIRE_EAGER_BYTES);
	tdt_must(g->credit <= TDM_WIRE_CREDIT_MOST);
	tdt_must(g->credit >= TDM_WIRE_CREDIT_LEAST ||
		 (!g->credit && (g->features & TDM_WIRE_FEATURE_CREDIT)));
}

/* A HELLO or RESUME of this version that was accepted. */
static void accepted(const uint8_t *p, const struct tdm_wire_greeting *g)
{
	uint8_t again[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting b;

	tdt_must(!g->reason);
	tdt_must(g->contexts && g->contexts <= TDM_WIRE_CTX_MOST);
	if (g->kind == TDM_WIRE_HELLO)
		check_terms(g);
	tdm_wire_greeting_encode(again, g);
	tdt_must(!tdm_wire_greeting_decode(again, &b));
	tdt_must(tdm_addr_equal(&b.addr, &g->addr) && b.credit == g->credit &&
		 b.eager == g->eager && b.rts == g->rts &&
		 b.received == g->received && b.session == g->session &&
		 b.contexts == g->contexts && b.features == g->features &&
		 b.required == g->required &&
		 !memcmp(b.id, g->id, sizeof(b.id)));
	if (g->features & TDM_WIRE_FEATURE_AUTH)
		check_proof(p, g);
}

static void rejected(const struct tdm_wire_greeting *g)
{
	uint8_t again[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting b;

	tdt_must(g->reason);
	tdm_wire_greeting_encode(again, g);
	tdt_must(!tdm_wire_greeting_decode(again, &b));
	tdt_must(b.kind == g->kind && b.reason == g->reason);
}

/* Any two numbers, those that no greeting may have included. */
static void versions(const uint8_t *p)
{
	const struct tdm_wire_greeting g = { .oldest = p[0] & 3,
					     .newest = p[1] & 3 };

	tdt_must(!tdm_wire_version_ok(&g) ==
		 (g.oldest > TDM_WIRE_VERSION || g.newest < TDM_WIRE_VERSION));
}

static int has_proof(const uint8_t *p)
{
	return !!(tdm_get32(p + FEATURES) & TDM_WIRE_FEATURE_AUTH);
}

static void make_right(uint8_t *p, int right)
{
	if (right && has_proof(p))
		prove(p, p + TDM_WIRE_PROVEN_BYTES);
	else if (right)
		tdm_put32(p + CHECKSUM, tdm_crc(0, p, CHECKSUM));
}

/* Not 0 when a right checksum is in @p, which differs from none by two bits. */
static int has_checksum(const uint8_t *p)
{
	uint32_t crc = tdm_get32(p + CHECKSUM);

	return !has_proof(p) && crc & (crc - 1) &&
	       crc == tdm_crc(0, p, CHECKSUM);
}

int tdt_fuzz_greeting(const uint8_t *data, size_t size)
{
	uint8_t how = size ? data[0] : 0, *p;
	unsigned at = (how >> 2) * 2 % TDM_WIRE_GREETING_BYTES;
	struct tdm_wire_greeting g;
	int summed;

	if (!size)
		return 0;
	/* A guest's bytes are looked at as they come, up to a greeting. */
	(void)tdm_wire_is_greeting(data + 1, tdm_min(size - 1, (size_t)8));
	if (size - 1 < TDM_WIRE_GREETING_BYTES)
		return 0;
	p = tdt_exact(data + 1, TDM_WIRE_GREETING_BYTES);
	make_right(p, how & RIGHT);
	summed = has_checksum(p);
	if (how & CHANGED)
		p[at] ^= 1;
	if (!tdm_wire_greeting_decode(p, &g)) {
		tdt_must(!(how & CHANGED) || !summed || at >= CHECKSUM + 4);
		tdt_must(g.oldest && g.oldest <= g.newest);
		if (g.kind == TDM_WIRE_REJECT)
			rejected(&g);
		else if (tdm_wire_version_ok(&g))
			accepted(p, &g);
	}
	versions(p);
	free(p);
	return 0;
}
