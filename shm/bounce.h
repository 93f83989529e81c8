/* SPDX-License-Identifier: BSD-2-Clause */
/* Large payloads copied through the bounce area of a pair. */
#ifndef TDM_SHM_BOUNCE_H
#define TDM_SHM_BOUNCE_H

#include <stdint.h>

#include "shm/pair.h"

/*
 * Handle a PULL for the operation @id. @may: 1: the receiver reads too, and chunks
 * only help; 0: it needs the chunks. Returns 0, or -1: invalid.
 */
int tdm_shm_bounce_feed(struct tdm_shm_pair *pair, uint64_t id,
			const struct tdm_shm_pull_body *body, int may);

/*
 * push: write chunks as far as there is room; pop: consume the chunks that have
 * arrived.
 */
void tdm_shm_bounce_push(struct tdm_shm_pair *pair);
void tdm_shm_bounce_pop(struct tdm_shm_pair *pair);

/*
 * room: not 0 when a chunk can be written; there: not 0 when a chunk has
 * arrived.
 */
int tdm_shm_bounce_room(struct tdm_shm_pair *pair);
int tdm_shm_bounce_there(const struct tdm_shm_pair *pair);

#endif /* TDM_SHM_BOUNCE_H */
