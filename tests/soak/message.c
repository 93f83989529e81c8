/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and streams of the soak: see message.h. */
#include "message.h"

#include <string.h>

static uint64_t key_of(const struct tdt_soak_head *h)
{
	uint64_t where = (uint64_t)h->from << 48 | (uint64_t)h->kind << 40 |
			 (uint64_t)h->life << 20 | h->epoch;

	return tdt_mix(tdt_mix(where) ^ h->number ^ h->len << 40);
}

void tdt_soak_write(void *buf, struct tdt_soak_head *head, size_t len)
{
	uint64_t key;

	head->len = len;
	key = key_of(head);
	head->check = (uint32_t)(key >> 32);
	memcpy(buf, head, sizeof(*head));
	tdt_seeded_fill((char *)buf + sizeof(*head), len - sizeof(*head), key);
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
	       tdt_seeded_same((const char *)buf + sizeof(*head),
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
		if (head->number != at->next + at->cut)
			return head->number < at->next ?
				       "a message twice, or late" :
				       "a message is missing";
	} else if (strict && (head->epoch || head->number > at->cut)) {
		return "the first messages are missing";
	}
	at->life = head->life;
	at->epoch = head->epoch;
	at->next = head->number + 1;
	at->cut = 0;
	return NULL;
}
