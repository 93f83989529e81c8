/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP transport of one endpoint: its listener and its connections, one
 * per pair, opened at first use. It reaches the owner's queues only through the
 * objects exported for it, as a peer provider would.
 *
 * The interface of tcp.c, port.c, listen.c, conn.c, send.c, tx_end.c and idle_close.c.
 * conn.c and doc/PROTOCOL-tcp.md have the states of a connection. All
 * functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_WIRE_H
#define TDM_TCP_WIRE_WIRE_H

#include <rdma/providers/fi_peer.h>

#include "av/addr.h"
#include "tcp/wire/loop.h"
#include "tdm_done.h"
#include "tdm_engine.h"
#include "tdm_order.h"
#include "tdm_xfer.h"

struct tdm_auth_keys;
struct tdm_av;
struct tdm_conn;
struct tdm_idle;
struct tdm_tcp;

struct tdm_tcp_attr {
	struct tdm_loop *loop;
	struct tdm_engine *engine;
	struct fid_peer_srx *srx; /* ->peer_ops is set by tdm_tcp_open() */
	const struct tdm_av *av;  /* sources of messages are looked up here */
	struct tdm_done done;	  /* copied */
	/*
	 * The owner's, whose regions peers read and write (TDM_RMA_OPS).
	 * NULL: every one-sided operation of a peer is refused.
	 */
	struct fid_domain *domain;
	size_t tx_size; /* most operations of which the peer has got no byte, */
			/* or that need no receive there */
	struct tdm_order order;
	uint32_t tclass; /* of the endpoint's packets, fi_endpoint(3) */
	int spaces;	 /* 1: offers have match addresses (tdm_space.h) */
	int groups;	 /* 1: groups: the domain has max_group_id */
	/*
	 * A peer must prove one of them; the key of a pair is that of its
	 * address. NULL: no key is needed. Valid as long as the transport.
	 */
	const struct tdm_auth_keys *keys;

	/*
	 * A peer chose TCP: it connected and sent HELLO. @addr is its address
	 * in @av, or FI_ADDR_UNSPEC.
	 */
	void (*accepted)(void *arg, struct tdm_conn *conn, fi_addr_t addr);

	/*
	 * The pair is lost: its operations have ended. @err: positive
	 * fi_errno, FI_ESHUTDOWN when the peer closed its endpoint. @conn is
	 * freed after the call. May be called from any function here but
	 * tdm_tcp_close().
	 */
	void (*lost)(void *arg, struct tdm_conn *conn, fi_addr_t addr, int err);

	/*
	 * Not 0 when the endpoint has a live session with @addr by another
	 * transport: then no peer that claims @addr gets one here. Or NULL.
	 */
	int (*taken)(void *arg, const struct tdm_addr *addr);

	/*
	 * Descriptors are scarce: call tdm_tcp_idle() with @idle for all
	 * transports of @loop. NULL: this is the only one.
	 */
	void (*crowded)(void *arg, struct tdm_idle *idle);
	void *arg;
};

/* Open the transport. Out: *@tcp. -FI_ENOMEM, -FI_ENOKEY, or of tdm_os_random(). */
int tdm_tcp_open(const struct tdm_tcp_attr *attr,
		 struct tdm_tcp **tcp) tdm_must_check;

/*
 * Reserve the endpoint's address: bind to *@addr (port 0: any, within the
 * configured range). Out: *@addr as bound. Not listening yet: connects are
 * refused. Errors: -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EMFILE, -FI_EACCES.
 */
int tdm_tcp_bind(struct tdm_tcp *tcp, struct tdm_addr *addr) tdm_must_check;

/* Report operations that end from now on at @done. */
void tdm_tcp_set_done(struct tdm_tcp *tcp, const struct tdm_done *done);

/* Returns the unused part of tx_size. */
size_t tdm_tcp_tx_left(const struct tdm_tcp *tcp);

/* Accept connections from now on. -FI_EMFILE: no descriptor to refuse with. */
int tdm_tcp_listen(struct tdm_tcp *tcp) tdm_must_check;

/*
 * Send queued messages that have completed, and GOODBYE; close everything.
 * Waits up to a second for slow peers, for injects up to
 * FI_TANDEM_PEER_TIMEOUT, a minute at most. The domain lock is released
 * meanwhile, so the caller must have taken the endpoint off all lists.
 * Outstanding operations end without an entry (fi_close(3)); tdm_srx_flush()
 * has discarded unexpected messages before.
 */
void tdm_tcp_close(struct tdm_tcp *tcp);

/*
 * Returns the connection of the pair (@tcp, @addr), made without connecting if
 * there is none. @fi_addr: the pair's address in the AV. NULL: out of memory.
 */
struct tdm_conn *tdm_conn_get(struct tdm_tcp *tcp, const struct tdm_addr *addr,
			      fi_addr_t fi_addr);

/* The peer of @conn was there: refusals count soon, tdm_refused_over(). */
void tdm_conn_brief(struct tdm_conn *conn);

/*
 * Find out whether the peer listens, for a pair that may be local, before its
 * path is agreed: connects but sends nothing. Returns 0: connected. -FI_EAGAIN:
 * not known yet, call again. -FI_ECONNREFUSED: no; the back-off delays the next
 * attempt. Another error: the connect time-out has passed, or the network's.
 */
int tdm_conn_probe(struct tdm_conn *conn);

/*
 * Give up a probe, or an idle connection without a session; frees it. One
 * that has a session or sends queued stays: tdm_conn_get() finds it again.
 */
void tdm_conn_drop(struct tdm_conn *conn);

/*
 * Send @x on @conn, connecting first if need be: a send while connecting is
 * queued. Completes by attr.done, perhaps before the call returns. 0,
 * -FI_EAGAIN when tx_size operations are counted (the caller makes progress),
 * -FI_ENOMEM.
 */
ssize_t tdm_tx_send(struct tdm_conn *conn, const struct tdm_xfer *x);

/* Cancel a send with no byte sent yet: FI_ECANCELED. Errors: -FI_ENOENT. */
int tdm_tx_cancel(struct tdm_tcp *tcp, void *context);

/* Called once per pass: sends output held back, and acknowledgements. */
void tdm_tcp_progress(struct tdm_tcp *tcp);

/* Not 0 when the transport has connections or connects under way. */
int tdm_tcp_busy(const struct tdm_tcp *tcp);

/* Add idle connections of @tcp to @idle, the least recently used ones. */
void tdm_tcp_idle(struct tdm_tcp *tcp, struct tdm_idle *idle);

/* Returns 0: may sleep; -FI_EAGAIN: output to flush, input buffered. */
int tdm_tcp_arm(struct tdm_tcp *tcp);

/*
 * Called after the AV changed: looks up the sources of connections that have
 * none, if @moved (struct tdm_av_user) those of all. If it finds one, it lets the
 * owner resolve entries of unknown source, by one foreach_unspec_addr().
 */
void tdm_tcp_resolve(struct tdm_tcp *tcp, int moved);

/*
 * Called when @fi_addr is removed from the AV and no other index names its
 * peer: operations to it end with FI_ECONNABORTED. A connection with a session
 * stays for its incoming messages, whose source is unknown from now on; one
 * without is freed, attr.lost is not called. Without memory to keep a message
 * that is half sent the connection fails.
 */
void tdm_tcp_forget(struct tdm_tcp *tcp, fi_addr_t fi_addr);

/* Returns the connection of @addr, or NULL. */
struct tdm_conn *tdm_conn_find(struct tdm_tcp *tcp,
			       const struct tdm_addr *addr);

/* Not 0 when @conn has a session; when it has none, and operations wait for it. */
int tdm_conn_agreed(const struct tdm_conn *conn);
int tdm_conn_waits(const struct tdm_conn *conn);

/* For the report: totals of one connection. */
struct tdm_conn_stats {
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
};

const struct tdm_addr *tdm_conn_addr(const struct tdm_conn *conn);
const struct tdm_conn_stats *tdm_conn_stats(const struct tdm_conn *conn);

/* A line of the log about @c, which begins with the peer's address. */
#define TDM_CONN_INFO(c, fmt, ...)                                             \
	do {                                                                   \
		char text_[TDM_ADDR_STR_BYTES];                                \
                                                                               \
		TDM_INFO(EP_CTRL, "%s: " fmt,                                  \
			 tdm_addr_text(tdm_conn_addr(c), text_,                \
				       sizeof(text_)),                         \
			 ##__VA_ARGS__);                                       \
	} while (0)

#endif /* TDM_TCP_WIRE_WIRE_H */
