/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that were sent and that the peer endpoint has not acknowledged: they
 * stay until then, so that a new connection can repeat them (resume.h). keep.c.
 *
 * The stream of a session, from the first byte kept to the last one committed:
 *
 *   pieces of c->keep | c->out [base, head) sent, [head, tail) not | c->borrow
 *
 * c->kept_pos is the position of the first one. Without c->keeps nothing is
 * kept: base follows head. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_KEEP_H
#define TDM_TCP_WIRE_KEEP_H

#include "tcp/wire/layer.h"
#include "tcp/wire/out.h"

/* A part of the stream behind which others were sent. */
struct tdm_piece {
	struct tdm_piece *next;
	struct tdm_out *out; /* its bytes are there, owned; or */
	struct tdm_tx *op; /* in the payload of @op; or, both NULL, in own[] */
	size_t from, to;   /* bytes [from, to) of these */
	int lost;	   /* 1: there are none any more */
	uint8_t own[];
};

struct tdm_keep {
	struct tdm_piece *first, *last;
	size_t bytes;		 /* of all pieces */
	struct tdm_piece *again; /* is being repeated, and those behind it */
	size_t again_from;	 /* its next byte to be repeated */
	/*
	 * unacked.c: when all bytes were found to have arrived, or 0; kept_pos and tx_seq
	 * of the connection then
	 */
	uint64_t arrived_ns, arrived_pos, arrived_seq;
	/* the last loss: its time, or 0, what had been received and acked */
	uint64_t lost_ns, lost_kept_pos, lost_rx_pos;
	unsigned losses; /* at these positions */
	int owed;	 /* 1: something was to be sent, or acknowledged */
};

/* Not 0 while bytes that precede c->out are being repeated. */
static inline int tdm_keep_repeats(const struct tdm_conn *c)
{
	return tdm_unlikely(c->keep != NULL) && c->keep->again;
}

/* Not 0 when @c has committed bytes that are to be sent. */
static inline int tdm_keep_pending(const struct tdm_conn *c)
{
	return tdm_out_bytes(c) || c->borrow || tdm_keep_repeats(c) ||
	       tdm_layer_pending(c);
}

/* Returns c->keep, made if @c has none. NULL: out of memory. */
struct tdm_keep *tdm_keep_get(struct tdm_conn *c);

/* Called when the session of @c ends: frees all that is kept. */
void tdm_keep_end(struct tdm_conn *c);

/*
 * Called when the endpoint of @c closes: a session that is open is not resumed any
 * more, so nothing of it is kept, and no buffer of the user is read for that.
 */
void tdm_keep_close(struct tdm_conn *c);

/*
 * Called when the buffer of @c is full, most of it with bytes kept: gives @c
 * another one, with what is to be sent. Returns that; NULL: out of memory.
 */
struct tdm_out *tdm_keep_full(struct tdm_conn *c);

/*
 * Called when c->borrow has been sent: keeps that range. Without memory, or with more
 * than 64 MiB, the session cannot be resumed any more.
 */
void tdm_keep_borrowed(struct tdm_conn *c);

/*
 * Called when the peer has received all bytes before @pos. Returns 0, or
 * -TDM_WIRE_E_ACK: they have not been sent.
 */
int tdm_keep_acked(struct tdm_conn *c, uint64_t pos);

/* Called when the peer has answered @op: it has received all of it. */
void tdm_keep_passed(struct tdm_conn *c, const struct tdm_tx *op);

/*
 * Called before the payload of @op, which has lent some, goes back to the user:
 * keeps a copy; zeros, if the region of a reply has been closed.
 */
void tdm_keep_own(struct tdm_conn *c, struct tdm_tx *op);

/*
 * Called when all of the reply @op, which has lent some, is committed. Returns not
 * 0: @op stays until the peer has those bytes, or the region closes, and is then
 * freed here. When the region closes they are copied, if their memory is still there;
 * else a session that needs them again ends. Returns 0 where the bytes may change
 * first, since this side is told that they were read, or the owner of the region does
 * not tell when it closes, or process_vm_readv(2) cannot copy them then: the caller frees
 * @op.
 */
int tdm_keep_reply(struct tdm_conn *c, struct tdm_tx *op) tdm_must_check;

/*
 * Called with a new connection: all bytes from @pos on are to be sent (again).
 * Returns 0, or -TDM_WIRE_E_ACK: those are not kept, or were never sent.
 */
int tdm_keep_rewind(struct tdm_conn *c, uint64_t pos);

/*
 * While tdm_keep_repeats(): how many bytes of the present piece are to be
 * repeated; where they are, in iov[TDM_IOV_LIMIT], returns the elements used; and
 * called when the kernel has taken @n of them.
 */
size_t tdm_keep_left(const struct tdm_conn *c);
size_t tdm_keep_again(const struct tdm_conn *c, struct iovec *iov);
void tdm_keep_advance(struct tdm_conn *c, size_t n);

/*
 * Describe @left bytes of the payload of @op from @off on in iov[@max]. Returns
 * the elements used. If the region of a reply was closed meanwhile, zeros stand
 * for its bytes, since a header has promised that many.
 */
size_t tdm_keep_iov(const struct tdm_conn *c, const struct tdm_tx *op,
		    size_t off, size_t left, struct iovec *iov, size_t max);

#endif /* TDM_TCP_WIRE_KEEP_H */
