/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address parser (av/addr.c) fed with anything. An input is a byte that
 * chooses the form, then the bytes of that form. For an
 * accepted input the promises of addr.h must hold; a refused one must leave the
 * output unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include "av/addr.h"
#include "tests/fuzz/fuzz.h"

/* An accepted address survives being written and read again. */
static void round_trip(const struct tdm_addr *a)
{
	char text[TDM_ADDR_STR_BYTES], cut[TDM_ADDR_STR_BYTES];
	size_t len = tdm_addr_format(a, text, sizeof(text)), room;
	unsigned char raw[64];
	struct tdm_addr b;

	tdt_must(len <= sizeof(text) && strlen(text) + 1 == len);
	tdt_must(!tdm_addr_from_str(&b, text, len) && tdm_addr_equal(a, &b));
	tdt_must(!tdm_addr_from_sockaddr(&b, a, tdm_addr_len(a)) &&
		 tdm_addr_equal(a, &b) &&
		 tdm_addr_hash(a) == tdm_addr_hash(&b));
	len = tdm_addr_encode(a, FI_SOCKADDR_IN6, raw, sizeof(raw));
	tdt_must(len == sizeof(struct sockaddr_in6) &&
		 !tdm_addr_from_sockaddr(&b, raw, len) &&
		 tdm_addr_equal(a, &b));
	tdt_must(tdm_addr_encode(a, FI_FORMAT_UNSPEC, raw, 0) ==
		 tdm_addr_len(a));
	for (room = 1; room < 8; room++) {
		memset(cut, '#', sizeof(cut));
		tdm_addr_encode(a, FI_ADDR_STR, cut, room);
		tdt_must(!memcmp(cut, text, room) && cut[room] == '#');
	}
	tdt_must(!!strstr(text, tdm_addr_text(a, cut, sizeof(cut))));
}

/* Another port is the same IP address, another IP address is not. */
static void neighbours(const struct tdm_addr *a)
{
	struct tdm_addr b = *a, none;
	char text[TDM_ADDR_STR_BYTES];

	tdm_addr_set_port(&b, (uint16_t)(tdm_addr_port(a) ^ 1));
	tdt_must(tdm_addr_same_ip(a, &b) && !tdm_addr_equal(a, &b));
	if (!tdm_addr_step(&b, 1))
		tdt_must(!tdm_addr_same_ip(a, &b));
	b = *a;
	if (b.u.sa.sa_family == AF_INET6) {
		b.u.in6.sin6_scope_id++;
		tdt_must(!tdm_addr_same_ip(a, &b));
	}
	memset(&none, 0, sizeof(none));
	tdt_must(!tdm_addr_len(&none) && !tdm_addr_same_ip(a, &none));
	tdt_must(!*tdm_addr_text(&none, text, sizeof(text)));
}

static void sockaddr(const uint8_t *data, size_t size)
{
	struct tdm_addr a;

	if (!tdm_addr_from_sockaddr(&a, data, size)) {
		round_trip(&a);
		neighbours(&a);
	}
	if (!tdm_addr_from_bind(&a, data, size))
		(void)tdm_addr_is_loopback(&a);
}

static void text(const uint8_t *data, size_t size)
{
	struct tdm_addr a;

	if (!tdm_addr_from_str(&a, (const char *)data, size))
		round_trip(&a);
}

/* A node, "+", and how far to step, as text. */
static void node(const char *s)
{
	const uint64_t n = strtoull(s, NULL, 0) >> 1;
	struct tdm_addr a, before;
	char name[128];

	if (!tdm_addr_from_node(&a, s)) {
		tdt_must(!tdm_addr_port(&a));
		before = a;
		if (tdm_addr_step(&a, n))
			tdt_must(tdm_addr_equal(&a, &before));
		tdt_must(!tdm_addr_step(&before, 0));
		a = before;
		if (tdm_addr_step(&a, INT64_MAX))
			tdt_must(tdm_addr_equal(&a, &before));
	}
	memset(name, '#', sizeof(name));
	if (!tdm_addr_name_step(s, n, name, sizeof(name) - 1)) {
		tdt_must(strlen(name) >= strlen(s));
		tdt_must(strlen(name) < sizeof(name) - 1);
	}
	tdt_must(name[sizeof(name) - 1] == '#');
	tdt_must(tdm_addr_parse_port(s) <= UINT16_MAX);
}

/* No text is no address. */
static void nothing(void)
{
	struct tdm_addr a;

	tdt_must(tdm_addr_from_sockaddr(&a, NULL, sizeof(a)) &&
		 tdm_addr_from_str(&a, NULL, 1) &&
		 tdm_addr_from_node(&a, NULL));
}

int tdt_fuzz_addr(const uint8_t *data, size_t size)
{
	uint8_t *exact; /* so that reading past the end is seen */
	char *s;

	if (!size) {
		nothing();
		return 0;
	}
	exact = tdt_exact(data + 1, size - 1);
	s = tdt_text(data + 1, size - 1);
	switch (data[0] % 3) {
	case 0:
		sockaddr(exact, size - 1);
		break;
	case 1:
		text(exact, size - 1);
		break;
	default:
		node(s);
	}
	free(exact);
	free(s);
	return 0;
}
