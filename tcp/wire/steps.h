/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls between the files of the TCP transport, in the order a connection
 * meets them. Nobody else includes this. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_STEPS_H
#define TDM_TCP_WIRE_STEPS_H

#include "tcp/wire/tcp.h"

/* listen.c: the endpoint's address, its listener and its guests. */
/* Accept nobody any more and drop all guests; the port stays ours. */
void tdm_listen_stop(struct tdm_tcp *tcp);

/* The same, and give the port back. */
void tdm_listen_close(struct tdm_tcp *tcp);

/* hello.c: from a descriptor to a session. */
/* Open a socket and connect; ends in CONNECTING or BACKOFF, or @c fails. */
void tdm_hello_connect(struct tdm_conn *c);

/* Say HELLO on the connected socket of @c. */
void tdm_hello_greet(struct tdm_conn *c);

/* CONNECTING became writable, or may have. */
void tdm_hello_connected(struct tdm_conn *c);

/* GREETING became readable. */
void tdm_hello_answer(struct tdm_conn *c);

/*
 * A guest on @fd, from @from, has said @g. 0: @fd now belongs to a
 * connection. Else the caller closes @fd: after a REJECT for a positive value
 * (enum tdm_wire_reason), without a word for -1.
 */
int tdm_hello_guest(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g);

/* conn.c: the pairs and their states. */

/* A pair without a connection. @fi_addr is looked up. NULL: out of memory. */
struct tdm_conn *tdm_conn_new(struct tdm_tcp *tcp, const struct tdm_addr *addr);

void tdm_conn_set_state(struct tdm_conn *c, enum tdm_conn_state state);

/* Give @c the connected or connecting socket @fd. */
void tdm_conn_take_fd(struct tdm_conn *c, int fd);
void tdm_conn_close_fd(struct tdm_conn *c);

/* Watch the socket; when that fails, @c is lost at the next pass. */
void tdm_conn_watch(struct tdm_conn *c, int events);

/*
 * An attempt to connect failed with @err (positive fi_errno): try again after
 * the back-off, or give up when the connect time-out is over.
 */
void tdm_conn_retry(struct tdm_conn *c, int err);

/*
 * End the pair: all its operations fail with @err, @prov. @c becomes DEAD and
 * is freed at a later pass. Nothing happens when it is DEAD already.
 */
void tdm_conn_fail(struct tdm_conn *c, int err, int prov);

/* Free DEAD pairs that no unexpected message refers to any more. */
void tdm_conn_reap(struct tdm_tcp *tcp);

/* Free @c with whatever it still has; no completion is written. */
void tdm_conn_free(struct tdm_conn *c);

/* tx.c: sends. */

/* Append what may leave now to the output of @c, until it is enough. */
void tdm_tx_fill(struct tdm_conn *c);

/* A peer's CTS, DONE, ACK. 0, or -enum tdm_wire_error. */
int tdm_tx_cts(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_done(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_acked(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/* A peer's READ. 0, -enum tdm_wire_error or -TDM_RX_NO_MEMORY. */
int tdm_tx_read(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/* Carry out a peer's ATOMIC, which c->announced counts. 0, -TDM_RX_NO_MEMORY. */
int tdm_tx_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const void *operands);

/*
 * Ask our regions for what the WRITE, AWRITE or READ @rec names, @access:
 * FI_REMOTE_WRITE or FI_REMOTE_READ. Out: *@entry, with TDM_WIRE_S_OK.
 */
enum tdm_wire_status tdm_rma_get(struct tdm_conn *c,
				 const struct tdm_wire_rec *rec,
				 uint64_t access,
				 struct fi_peer_rx_entry **entry);

/*
 * All bytes of the record that c->gather stood for have left.
 */
void tdm_tx_gathered(struct tdm_conn *c);

/* End all sends of @c with @err and forget them. */
void tdm_tx_fail(struct tdm_conn *c, int err, int prov);

/*
 * End all sends of @c with @err (0: without an entry), keeping what the bytes
 * on the connection need. Errors: -FI_ENOMEM, for a send half gone.
 */
int tdm_tx_abandon(struct tdm_conn *c, int err) tdm_must_check;

/* After that: not 0 while @c has bytes of sends that will still leave. */
int tdm_tx_leaving(const struct tdm_conn *c);

/* out.c: bytes to the kernel. */

/* Room for @n bytes at out->bytes + out->tail, or NULL. */
struct tdm_out *tdm_out_room(struct tdm_conn *c, size_t n);
void tdm_out_free(struct tdm_conn *c);

/* Have the next pass call tdm_out_push(). */
void tdm_out_later(struct tdm_conn *c);

/* Hand to the kernel all it takes, within the budget of a pass. */
void tdm_out_push(struct tdm_conn *c);

/* There is output: the first since the last pass leaves at once. */
void tdm_out_kick(struct tdm_conn *c);

static inline size_t tdm_out_bytes(const struct tdm_conn *c)
{
	return c->out ? c->out->tail - c->out->head : 0;
}

/* rx.c: bytes from the kernel, and the acknowledgement of records. */

/* Read and handle input. Not 0 when there is more than a pass may take. */
int tdm_rx_ready(struct tdm_conn *c);

/* Acknowledge at the next pass but one, if no traffic does it before. */
void tdm_rx_ack_due(struct tdm_conn *c);

/* Give back credit for an EAGER that takes no memory any more. */
void tdm_rx_release(struct tdm_conn *c, uint64_t charge);

/* rx_msg.c: messages, between the wire and the owner's matching. */

extern struct fi_ops_srx_peer tdm_rx_peer_ops;

/* Beside enum tdm_wire_error: not the peer's fault. */
enum { TDM_RX_NO_MEMORY = 1000 };

/*
 * A record arrived; @n bytes after its header are at @p. Returns the payload
 * bytes consumed, the rest is expected through tdm_rx_put(); or -enum
 * tdm_wire_error, or -TDM_RX_NO_MEMORY.
 */
int tdm_rx_eager(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		 const uint8_t *p, size_t n);
int tdm_rx_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const uint8_t *p, size_t n);
int tdm_rx_rts(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_rx_data(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_rx_write(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_rx_awrite(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/* Where the bytes go that @op asks for, numbered. NULL: out of memory. */
struct tdm_rx *tdm_rx_reading(struct tdm_conn *c, struct tdm_tx *op);
void tdm_rx_free(struct tdm_rx *rx);

/* Where the next payload bytes go; 0 elements: through tdm_rx_put() only. */
size_t tdm_rx_target(const struct tdm_conn *c, struct iovec *iov);

/* @n bytes of payload at @p, or (NULL) already at tdm_rx_target(). */
void tdm_rx_put(struct tdm_conn *c, const uint8_t *p, size_t n);

/* The CTS or DONE of @rx has been written. */
void tdm_rx_answered(struct tdm_rx *rx);

/* Forget the announced @rx, which is WAITING. */
void tdm_rx_drop(struct tdm_rx *rx);

/* End all receives of @c with @err; messages that are complete stay. */
void tdm_rx_fail(struct tdm_conn *c, int err, int prov);

/* Give all entries back without a completion; the endpoint closes. */
void tdm_rx_abandon(struct tdm_conn *c);

/* Forget all that is left; the entries are the owner's alone. */
void tdm_rx_free_all(struct tdm_conn *c);

/* For foreach_unspec_addr: the source of a queued entry, as known now. */
fi_addr_t tdm_rx_source(struct fi_peer_rx_entry *entry);

#endif /* TDM_TCP_WIRE_STEPS_H */
