/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and streams of the soak: see message.h. */
#include "message.h"

#include <string.h>

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t tdt_soak_random(uint64_t *state, uint64_t below)
{
	*state += 0x9e3779b97f4a7c15u;
	return mix(*state) % below;
}

/* The eight bytes at place @i of what follows from @key. */
static uint64_t word_of(uint64_t key, size_t i)
{
	return key ^ ((i + 1) * 0x9e3779b97f4a7c15u);
}

void tdt_soak_fill(void *buf, size_t len, uint64_t key)
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

int tdt_soak_same(const void *buf, size_t len, uint64_t key)
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

static uint64_t key_of(const struct tdt_soak_head *h)
{
	uint64_t where = (uint64_t)h->from << 48 | (uint64_t)h->kind << 40 |
			 (uint64_t)h->life << 20 | h->epoch;

	return mix(mix(where) ^ h->number ^ h->len << 40);
}

void tdt_soak_write(void *buf, struct tdt_soak_head *head, size_t len)
{
	uint64_t key;

	head->len = len;
	key = key_of(head);
	head->check = (uint32_t)(key >> 32);
	memcpy(buf, head, sizeof(*head));
	tdt_soak_fill((char *)buf + sizeof(*head), len - sizeof(*head), key);
}

int tdt_soak_valid(const void *buf, size_t len, struct tdt_soak_head *head)
{
	uint64_t key;

	if (len < sizeof(*head))
		return 0;
	memcpy(head, buf, sizeof(*head));
	key = key_of(head);
	return head->len == len && head->from < TDT_SOAK_ACTORS &&
	       head->kind < TDT_SOAK_CLASSES &&
	       head->check == (uint32_t)(key >> 32) &&
	       tdt_soak_same((const char *)buf + sizeof(*head),
			     len - sizeof(*head), key);
}

const char *tdt_soak_arrived(struct tdt_soak_stream *at,
			     const struct tdt_soak_head *head, int strict)
{
	if (head->life < at->life)
		return "a message of an earlier life";
	if (head->life == at->life && head->epoch < at->epoch)
		return "a message of an earlier epoch";
	if (head->life == at->life && head->epoch == at->epoch) {
		if (head->number != at->next)
			return head->number < at->next ?
				       "a message twice, or late" :
				       "a message is missing";
	} else if (strict && (head->epoch || head->number)) {
		return "the first messages are missing";
	}
	at->life = head->life;
	at->epoch = head->epoch;
	at->next = head->number + 1;
	return NULL;
}
