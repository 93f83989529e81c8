/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers and bytes from a seed: see seeded.h. Lock: none, no state. */
#include "seeded.h"

#include <stdlib.h>
#include <string.h>

uint64_t tdt_number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

uint64_t tdt_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t tdt_seeded(uint64_t *state, uint64_t below)
{
	*state += 0x9e3779b97f4a7c15u;
	return tdt_mix(*state) % below;
}

/* The eight bytes at place @i of what follows from @key. */
static uint64_t word_of(uint64_t key, size_t i)
{
	return key ^ ((i + 1) * 0x9e3779b97f4a7c15u);
}

void tdt_seeded_fill(void *buf, size_t len, uint64_t key)
{
	unsigned char *at = buf;
	size_t i, n = len / 8;
	uint64_t w;

	for (i = 0; i < n; i++) {
		w = word_of(key, i);
		memcpy(at + 8 * i, &w, 8);
	}
	w = word_of(key, n);
	memcpy(at + 8 * n, &w, len % 8);
}

int tdt_seeded_same(const void *buf, size_t len, uint64_t key)
{
	const unsigned char *at = buf;
	size_t i, n = len / 8;
	uint64_t w, differs = 0;

	for (i = 0; i < n; i++) {
		memcpy(&w, at + 8 * i, 8);
		differs |= w ^ word_of(key, i);
	}
	w = word_of(key, n);
	return !differs && !memcmp(at + 8 * n, &w, len % 8);
}

void tdt_flip_bit(void *p, size_t len, uint64_t draw)
{
	unsigned char *byte = (unsigned char *)p + draw / 8 % len;

	*byte ^= (unsigned char)(1u << draw % 8);
}
