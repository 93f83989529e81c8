/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics of a domain for tandem-stat(1): a segment that it fills, and a
 * socket by which readers ask for it. doc/PROTOCOL-stat.md.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_TCP_STAT_H
#define TDM_TCP_STAT_H

#include "base/sealed.h"
#include "tcp/wire/loop.h"

struct tdm_domain;
struct tdm_stat_head;

struct tdm_stat {
	struct tdm_domain *domain;
	struct tdm_sealed seg;
	uint8_t incarnation[16];
	uint64_t started_ns;
	struct tdm_loop_io listener;
	struct tdm_loop_timer timer; /* next publication */
};

/*
 * Called when an endpoint of @domain was enabled or closed: begins statistics
 * with the first one, unless FI_TANDEM_STAT forbids it, and publishes them. A
 * domain that gets no segment or socket goes without.
 */
void tdm_stat_changed(struct tdm_domain *domain);

/* Called when @domain closes: ends them. Lock: not needed. */
void tdm_stat_end(struct tdm_domain *domain);

/* ---- stat_fill.c --------------------------------------------------------- */

/* Returns how many records the present state of @domain needs. */
size_t tdm_stat_records(const struct tdm_domain *domain);

/*
 * Write the present state of @domain behind @head, as far as it finds room in
 * head->bytes, and its numbers into @head. The caller keeps head->seq.
 */
void tdm_stat_fill(struct tdm_domain *domain, struct tdm_stat_head *head);

#endif /* TDM_TCP_STAT_H */
