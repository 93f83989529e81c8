/* SPDX-License-Identifier: BSD-2-Clause */
/* The connections of an endpoint and their states; conn.c. Lock: held. */
#ifndef TDM_TCP_WIRE_CONN_H
#define TDM_TCP_WIRE_CONN_H

#include "tcp/wire/tcp.h"

/* Has @c a session? */
static inline int tdm_conn_live(const struct tdm_conn *c)
{
	return c->state >= TDM_CONN_READY;
}

/* Let the next pass read the input of @c, then end or retry it. */
static inline void tdm_conn_again(struct tdm_conn *c)
{
	if (tdm_list_linked(&c->again_node))
		return;
	tdm_list_append(&c->tcp->again, &c->again_node);
	tdm_tcp_nudge(c->tcp);
}

/*
 * The peer of @c is @fi_addr in the AV, or FI_ADDR_UNSPEC; its next messages
 * belong to group @group, 0 without groups.
 */
void tdm_conn_set_source(struct tdm_conn *c, fi_addr_t fi_addr, uint32_t group);

/* A new pair without a connection; looks up @fi_addr. NULL: out of memory. */
struct tdm_conn *tdm_conn_new(struct tdm_tcp *tcp, const struct tdm_addr *addr);

void tdm_conn_set_state(struct tdm_conn *c, enum tdm_conn_state state);

/* Give @c the connected or connecting socket @fd. */
void tdm_conn_take_fd(struct tdm_conn *c, int fd);
void tdm_conn_close_fd(struct tdm_conn *c);

/* Watch the socket; if that fails, @c fails in the next pass. */
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

/* Free @c with all it holds; no completion is written. */
void tdm_conn_free(struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_CONN_H */
