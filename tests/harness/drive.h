/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moving a world: posting transfers by every call of fi_msg(3) and
 * fi_tagged(3), progress, and waiting for completions with a deadline.
 */
#ifndef TDT_DRIVE_H
#define TDT_DRIVE_H

#include "world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The send and receive calls; each has a tagged twin. */
enum tdt_call {
	TDT_SEND,
	TDT_SENDV,
	TDT_SENDMSG,
	TDT_SENDDATA,
	TDT_INJECT,
	TDT_INJECTDATA,
	TDT_RECV,
	TDT_RECVV,
	TDT_RECVMSG,
	TDT_CALLS
};

const char *tdt_call_name(enum tdt_call call);

/* One transfer; zeroed members are not used by the call. */
struct tdt_op {
	enum tdt_call call;
	int tagged;
	void *buf;
	size_t len;
	size_t pieces; /* vector calls: elements to cut @buf into; 0: one */
	fi_addr_t addr;
	uint64_t tag, ignore;
	uint64_t data;
	uint64_t flags; /* sendmsg and recvmsg */
	void *context;
};

/* The call, once. Returns what it returned. */
ssize_t tdt_post_once(struct tdt_ep *ep, const struct tdt_op *op);

/* The call, again after progress while it gives -FI_EAGAIN. */
ssize_t tdt_post(struct tdt_ep *ep, const struct tdt_op *op);

/* Read all queues once and keep what they gave. Returns the entries read. */
size_t tdt_progress(struct tdt_world *world);

/*
 * Wait for the completion (or error) of the operation with @context on @ep
 * and take it out. @comp may be NULL. Errors: -FI_ETIMEDOUT, world->bad.
 */
int tdt_wait(struct tdt_ep *ep, const void *context, struct tdt_comp *comp);

/* The same for the oldest completion of the receive (@rx) or send queue. */
int tdt_wait_next(struct tdt_ep *ep, int rx, struct tdt_comp *comp);

/* Wait until @cond(@arg) is true. */
int tdt_wait_until(struct tdt_world *world, int (*cond)(void *arg), void *arg);

/*
 * Progress for @ms milliseconds, for what must NOT happen and cannot be
 * fenced by a later message.
 */
void tdt_settle(struct tdt_world *world, unsigned ms);

/* Completions read and not waited for, over all endpoints. */
size_t tdt_pending(const struct tdt_world *world);

/* Drop completions until none has come for @ms. */
void tdt_run_dry(struct tdt_world *world, unsigned ms);

/* Usual transfers: fi_send/fi_tsend and fi_recv/fi_trecv. */
ssize_t tdt_send(struct tdt_ep *from, const struct tdt_ep *to, void *buf,
		 size_t len, void *context);
ssize_t tdt_recv(struct tdt_ep *ep, void *buf, size_t len, void *context);
ssize_t tdt_tsend(struct tdt_ep *from, const struct tdt_ep *to,
		  const struct iovec *data, uint64_t tag, void *context);
ssize_t tdt_trecv(struct tdt_ep *ep, const struct iovec *data, uint64_t tag,
		  uint64_t ignore, void *context);

/*
 * Exchange one small message in each direction between each pair: connects
 * everybody. Leaves nothing pending.
 */
int tdt_warm_up(struct tdt_world *world);

/* Fill @buf with bytes that depend on @seed and their place. */
void tdt_fill(void *buf, size_t len, uint32_t seed);

/* The first place that differs from tdt_fill(), or -1. */
ssize_t tdt_differs(const void *buf, size_t len, uint32_t seed);

/* CLOCK_MONOTONIC in milliseconds. */
uint64_t tdt_now_ms(void);

/* Most milliseconds a wait takes (TANDEM_TEST_DEADLINE seconds, 120). */
uint64_t tdt_deadline_ms(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_DRIVE_H */
