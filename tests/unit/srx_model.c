/* SPDX-License-Identifier: BSD-2-Clause */
/* The slow model of the receive side; see srx_model.h. */
#include "srx_model.h"

#include <string.h>

struct tdt_model tdt_model;

void tdt_model_differs(const char *why)
{
	if (!tdt_model.why)
		tdt_model.why = why;
}

unsigned tdt_model_upto(unsigned n)
{
	uint64_t x = tdt_model.dice;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	tdt_model.dice = x;
	return (unsigned)((x >> 32) * n >> 32);
}

void tdt_model_list_remove(int *list, int *n, int value)
{
	int i = 0;

	while (i < *n && list[i] != value)
		i++;
	if (i == *n) {
		tdt_model_differs("the test's own lists");
		return;
	}
	--*n;
	memmove(list + i, list + i + 1, (size_t)(*n - i) * sizeof(*list));
}

static int fits(const struct tdt_rx *r, const struct tdt_msg *m)
{
	return r->tagged == m->tagged &&
	       (!tdt_model.directed[r->tagged] || r->src == ANY ||
		r->src == m->src) &&
	       (!r->tagged || !((r->tag ^ m->tag) & ~r->ignore));
}

static void give(int rx, int msg)
{
	struct tdt_rx *r = &tdt_model.rx[rx];
	struct tdt_msg *m = &tdt_model.msg[msg];
	size_t left = r->len - r->used;

	m->state = GIVEN;
	m->rx = rx;
	m->cut = m->size > left;
	r->owed++;
	tdt_model.stats->matches++;
	tdt_model.stats->cut += (uint64_t)m->cut;
	if (r->multi) {
		r->used += tdm_min(m->size, left);
		left = r->len - r->used;
		if (left && left >= MIN)
			return;
	}
	r->state = TAKEN;
	tdt_model_list_remove(tdt_model.posted, &tdt_model.nposted, rx);
}

int tdt_model_arrive(int msg)
{
	int i;

	for (i = 0; i < tdt_model.nposted; i++) {
		if (fits(&tdt_model.rx[tdt_model.posted[i]],
			 &tdt_model.msg[msg])) {
			give(tdt_model.posted[i], msg);
			return 1;
		}
	}
	return 0;
}

int tdt_model_find(const struct tdt_rx *r)
{
	int i;

	for (i = 0; i < tdt_model.nwaiting; i++) {
		if (fits(r, &tdt_model.msg[tdt_model.waiting[i]]))
			return tdt_model.waiting[i];
	}
	return -1;
}

void tdt_model_post(int rx)
{
	int m;

	tdt_model.posted[tdt_model.nposted++] = rx;
	tdt_model.rx[rx].state = POSTED;
	while (tdt_model.rx[rx].state == POSTED &&
	       (m = tdt_model_find(&tdt_model.rx[rx])) >= 0) {
		tdt_model_list_remove(tdt_model.waiting, &tdt_model.nwaiting,
				      m);
		give(rx, m);
	}
}

void tdt_model_resolve(int from)
{
	int learned[STEPS], n = 0, i;

	for (i = 0; i < tdt_model.nwaiting; i++) {
		struct tdt_msg *m = &tdt_model.msg[tdt_model.waiting[i]];

		if (m->from == from && m->src == ANY &&
		    (tdt_model.known >> m->real & 1)) {
			m->src = m->real;
			learned[n++] = tdt_model.waiting[i];
		}
	}
	tdt_model.stats->resolved += (uint64_t)n;
	for (i = 0; i < n; i++) {
		if (tdt_model_arrive(learned[i]))
			tdt_model_list_remove(tdt_model.waiting,
					      &tdt_model.nwaiting, learned[i]);
	}
}
