/* SPDX-License-Identifier: BSD-2-Clause */
/* Large payloads read from the sender's memory (process_vm_readv). */
#ifndef TDM_SHM_CMA_H
#define TDM_SHM_CMA_H

#include <stddef.h>

#include "shm/pair.h"

enum {
	/*
	 * Greatest amount read by one system call. A pass reads so much of the
	 * messages of a pair that wait, and of those that it begins.
	 */
	TDM_SHM_SLICE_BYTES = 1024 * 1024,
};

/* Called when @pull->entry has been matched: begins to fetch the bytes. */
void tdm_shm_pull_start(struct tdm_shm_pull *pull);

/*
 * run: read one slice of @pull, which may end it, and return its bytes, at most
 * TDM_SHM_SLICE_BYTES; waits: not 0 when it is better to wait now: for chunks, or for
 * the long message that is being read; fits: not 0 when a pass that has read @bytes can
 * read a slice of @pull, too.
 */
uint64_t tdm_shm_pull_run(struct tdm_shm_pull *pull);
int tdm_shm_pull_waits(struct tdm_shm_pull *pull);
int tdm_shm_pull_fits(const struct tdm_shm_pull *pull, uint64_t bytes);

/* Place the next @n bytes of a chunk, from the front, at byte @pull->placed. */
void tdm_shm_pull_put(struct tdm_shm_pull *pull, const void *src, size_t n);

/*
 * Called when all bytes of @pull are here: ends it, if the sender was alive
 * when they were read.
 */
void tdm_shm_pull_finish(struct tdm_shm_pull *pull);

/*
 * Called now and then, at @now, between messages, while ep->read_from is set: asks the
 * kernel whether that process lives, so that the end of its next message need not.
 */
void tdm_shm_pull_idle(struct tdm_shm_ep *ep, uint64_t now);

/*
 * End @pull, whose sender has said that it does not send the bytes: it has aborted
 * the message, FI_ECONNABORTED, or lacks memory, FI_EIO.
 */
void tdm_shm_pull_refused(struct tdm_shm_pull *pull);

/* End @pull, whose sender has closed and left all its bytes at @data. */
void tdm_shm_pull_left(struct tdm_shm_pull *pull, const void *data);

/*
 * End @pull: complete (@err 0), or given up with @err. Sends an ACK with
 * @status unless that is negative.
 */
void tdm_shm_pull_end(struct tdm_shm_pull *pull, int err, int status);

#endif /* TDM_SHM_CMA_H */
