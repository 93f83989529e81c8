/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a message through the files: api.c -> tx.c -> ring.h -> bell.c
 * (does the receiver poll?) -> progress.c -> rx.c -> cma.c or bounce.c for
 * large messages -> ACK -> op.c.
 */
#ifndef TDM_SHM_PATH_H
#define TDM_SHM_PATH_H

#include <string.h>

#include "shm/ctl.h"
#include "shm/ep.h"

/* Copy @n bytes; constant widths for the most common sizes. */
static inline void tdm_shm_copy(void *dst, const void *src, size_t n)
{
	if (tdm_likely(n == 8)) {
		memcpy(dst, src, 8);
	} else if (n > 16 && n <= 32) {
		uint64_t a[2], b[2];

		memcpy(a, src, 16);
		memcpy(b, (const char *)src + n - 16, 16);
		memcpy(dst, a, 16);
		memcpy((char *)dst + n - 16, b, 16);
	} else if (n >= 8 && n <= 16) {
		uint64_t a, b;

		memcpy(&a, src, 8);
		memcpy(&b, (const char *)src + n - 8, 8);
		memcpy(dst, &a, 8);
		memcpy((char *)dst + n - 8, &b, 8);
	} else if (n) {
		memcpy(dst, src, n);
	}
}

/* Bytes a record of a ring of @slots may carry, at most @most. */
static inline size_t tdm_shm_eager_room(uint32_t slots, size_t most)
{
	size_t room = (size_t)(slots / 4) * TDM_SHM_SLOT_BYTES -
		      TDM_SHM_HEAD_BYTES - 16;

	return room < most ? room : most;
}

/* The pair of @addr in the bound AV if anything was sent there; else NULL. */
static inline struct tdm_shm_pair *tdm_shm_pair_at(const struct tdm_shm_ep *ep,
						   fi_addr_t addr)
{
	return tdm_likely(addr < ep->by_addr_count) ? ep->by_addr[addr] : NULL;
}

/* ---- tx.c ---------------------------------------------------------------- */

/*
 * Send @x; x->addr is an index of the bound AV. Returns 0, or -FI_EAGAIN
 * (attach under way, ring or context full), -FI_EINVAL, -FI_ECONNREFUSED,
 * -FI_EHOSTUNREACH; the operation has not begun then.
 */
ssize_t tdm_shm_tx_send(struct tdm_shm_ep *ep, struct tdm_xfer *x);

/*
 * The calls inject of struct fi_ops_msg and fi_ops_tagged: @len bytes at @buf,
 * the caller's again at return. Errors: of tdm_shm_tx_send(), and -FI_EMSGSIZE.
 */
ssize_t tdm_shm_tx_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t addr);
ssize_t tdm_shm_tx_tinject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t addr, uint64_t tag);

/* Read the peer's progress; breaks the pair when the value is impossible. */
void tdm_shm_tx_credit(struct tdm_shm_pair *pair);

/* ---- bell.c -------------------------------------------------------------- */

/* Wake the peer of @pair as @bits, its bell word, asks. */
void tdm_shm_bell_ring(struct tdm_shm_pair *pair, uint32_t bits);

/* Call after publishing a record or chunk. */
static inline void tdm_shm_bell(struct tdm_shm_pair *pair)
{
	uint32_t bits;

	if (pair->fence)
		tdm_fence_full();
	bits = tdm_a32_load_relaxed(&pair->peer->bell);
	if (tdm_unlikely(bits))
		tdm_shm_bell_ring(pair, bits);
}

/* Call after giving back slots or chunks. */
static inline void tdm_shm_bell_space(struct tdm_shm_pair *pair)
{
	uint32_t bits;

	if (pair->fence)
		tdm_fence_full();
	bits = tdm_a32_load_relaxed(&pair->peer->bell);
	if (tdm_unlikely(bits & TDM_SHM_BELL_SPACE))
		tdm_shm_bell_ring(pair, bits);
}

/* Give @s a bit of the hints page; -FI_ENOMEM, -FI_ENOSPC. */
int tdm_shm_bell_assign(struct tdm_shm_ep *ep,
			struct tdm_shm_session *s) tdm_must_check;
void tdm_shm_bell_release(struct tdm_shm_session *s);

/*
 * @pair waits for something else now: set its bell word again before the next
 * sleep, and end a sleep that has begun.
 */
void tdm_shm_bell_again(struct tdm_shm_pair *pair);

/* Poll @pair's ring from now on, at least until it is empty. */
void tdm_shm_bell_promote(struct tdm_shm_pair *pair);
void tdm_shm_bell_forget(struct tdm_shm_pair *pair);

/* Poll the rings whose bits are set in the hints page. */
void tdm_shm_bell_scan(struct tdm_shm_ep *ep);

/* Every 10 ms: silent rings leave the hot set; a few cold ones are swept. */
void tdm_shm_bell_upkeep(struct tdm_shm_ep *ep);

/* Prepare to sleep: 0, or -FI_EAGAIN when there is work. */
int tdm_shm_bell_arm(struct tdm_shm_ep *ep);

/* ---- progress.c ---------------------------------------------------------- */

void tdm_shm_ep_progress(struct tdm_shm_ep *ep);

/* Handle up to @most events of listener and lifelines, and the timers. */
void tdm_shm_control(struct tdm_shm_ep *ep, int most);

/* Let each progress call work on @pair until nothing is left to do. */
void tdm_shm_busy(struct tdm_shm_pair *pair);
/* Can progress do something for @pair now? */
int tdm_shm_runnable(struct tdm_shm_pair *pair);

/* ---- rx.c ---------------------------------------------------------------- */

extern struct fi_ops_srx_peer tdm_shm_srx_peer_ops;

/* Consume up to @budget records; returns how many. @word0: a new record. */
int tdm_shm_rx_poll(struct tdm_shm_pair *pair, int budget);
int tdm_shm_rx_take(struct tdm_shm_pair *pair, uint64_t word0, int budget);

/*
 * Handle the record of @len bytes that the peer left for us when it closed.
 * Returns 0, -FI_ESHUTDOWN for GOODBYE, or -FI_EPROTO: it is not valid.
 */
int tdm_shm_rx_left(struct tdm_shm_pair *pair, const uint8_t *record,
		    size_t len);

/* No record but @word0: give slots back; break the pair if it is impossible. */
void tdm_shm_rx_idle(struct tdm_shm_pair *pair, uint64_t word0);

/* ---- cma.c: announced messages ------------------------------------------- */

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

/* ---- bounce.c: chunks ---------------------------------------------------- */

/* A PULL for @id arrived; @may: chunks only help. Returns 0, or -1: invalid. */
int tdm_shm_bounce_feed(struct tdm_shm_pair *pair, uint64_t id,
			const struct tdm_shm_pull_body *body, int may);

/* Write chunks as far as there is room; consume chunks that have arrived. */
void tdm_shm_bounce_push(struct tdm_shm_pair *pair);
void tdm_shm_bounce_pop(struct tdm_shm_pair *pair);

/* Is there room for a chunk; has a chunk arrived? */
int tdm_shm_bounce_room(struct tdm_shm_pair *pair);
int tdm_shm_bounce_there(const struct tdm_shm_pair *pair);

#endif /* TDM_SHM_PATH_H */
