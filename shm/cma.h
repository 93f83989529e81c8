/* SPDX-License-Identifier: BSD-2-Clause */
/* Large payloads read from the sender's memory (process_vm_readv). */
#ifndef TDM_SHM_CMA_H
#define TDM_SHM_CMA_H

#include <stddef.h>

#include "shm/pair.h"

/* @pull->entry was matched: fetch the bytes. */
void tdm_shm_pull_start(struct tdm_shm_pull *pull);

/* Read one slice of @pull, may end it. Is waiting for chunks better now? */
void tdm_shm_pull_run(struct tdm_shm_pull *pull);
int tdm_shm_pull_waits(struct tdm_shm_pull *pull);

/* Place the next @n bytes from the front, at byte @pull->done. */
void tdm_shm_pull_put(struct tdm_shm_pull *pull, const void *src, size_t n);

/* All of @pull is here; valid if the sender was alive when it was read. */
void tdm_shm_pull_finish(struct tdm_shm_pull *pull);

/* End @pull, whose sender is gone, with all its bytes at @data. */
void tdm_shm_pull_left(struct tdm_shm_pull *pull, const void *data);

/* End @pull: complete (@err 0), or given up; @status < 0: without an ACK. */
void tdm_shm_pull_end(struct tdm_shm_pull *pull, int err, int status);

#endif /* TDM_SHM_CMA_H */
