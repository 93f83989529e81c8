/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attach: how two processes exchange segments. The attach socket stays open as
 * the *lifeline*: its end tells one that the other is gone. See
 * doc/PROTOCOL-shm.md, "Attach".
 */
#ifndef TDM_SHM_ATTACH_H
#define TDM_SHM_ATTACH_H

#include <sys/types.h>

#include "shm/packet.h"
#include "shm/region.h"
#include "base/list.h"

struct tdm_shm_ep;
struct tdm_shm_pair;
struct tdm_shm_session;

/*
 * A descriptor in the endpoint's control epoll set; not there while zeroed but
 * for fd.
 */
struct tdm_shm_watch {
	int fd;		      /* -1: none */
	struct tdm_list node; /* ep->watches */
	/* May free the watch and anything else of the endpoint. */
	void (*ready)(struct tdm_shm_watch *w, uint32_t events);
};

enum tdm_shm_session_state {
	TDM_SHM_SESSION_ACCEPTED,   /* acceptor: waits for HELLO, 5 s */
	TDM_SHM_SESSION_SENT,	    /* initiator: waits for HELLO */
	TDM_SHM_SESSION_WAIT_READY, /* acceptor: waits for READY */
	TDM_SHM_SESSION_UP,
};

/* The HELLOs of both sides of a handshake with a key, with their proofs. */
struct tdm_shm_seals {
	struct tdm_shm_sealed own;
	struct tdm_shm_sealed peer; /* all 0 until received */
};

/* An attach, and the session that it makes. */
struct tdm_shm_session {
	struct tdm_shm_watch life; /* lifeline; first member */
	struct tdm_shm_watch dead; /* the peer's pidfd */
	struct tdm_shm_ep *ep;
	struct tdm_shm_pair *pair; /* NULL until HELLO was read */
	struct tdm_list node;	   /* ep->attaching until UP */
	enum tdm_shm_session_state state;
	uint64_t deadline;	 /* ns; 0: none */
	pid_t pid;		 /* of the peer, from the kernel; 0: unknown */
	uint32_t features;	 /* of the peer */
	uint8_t incarnation[16]; /* of the peer */
	uint32_t peer_slots;
	uint32_t peer_bell;	   /* bit in the peer's hints */
	int64_t own_bell;	   /* bit in our hints; -1: none */
	int bell_fd;		   /* the peer's eventfd */
	struct tdm_shm_region own; /* control words and first ring */
	struct tdm_shm_region peer;
	struct tdm_shm_region hints;	/* the peer's */
	struct tdm_shm_region own_ring; /* grown */
	uint64_t *dirty;		/* bitmap of own_ring, ring.h */
	struct tdm_shm_region new_ring; /* sent to the peer, before its MOVED */
	uint64_t *new_dirty;
	struct tdm_shm_region peer_ring; /* grown */
	struct tdm_shm_region next_ring; /* arrived before its MOVED */
	uint32_t next_slots;		 /* 0: no ring arrived */
	int next_fd;			 /* until mapping succeeds */
	struct tdm_shm_region own_bounce;
	struct tdm_shm_region peer_bounce;
	struct tdm_shm_seals *seals; /* until UP; NULL: no key */
	struct tdm_shm_region *left; /* left[nleft]: left.c */
	uint32_t nleft;
	uint32_t peer_chunks; /* 0: no bounce area arrived */
	int bounce_fd;	      /* until mapping succeeds */
};

/*
 * Listen under the endpoint's name. Errors: -FI_EADDRINUSE, -FI_EMFILE and
 * the like, as fi_enable(3) reports them. tdm_shm_unlisten() is zero-safe.
 */
int tdm_shm_listen(struct tdm_shm_ep *ep) tdm_must_check;
void tdm_shm_unlisten(struct tdm_shm_ep *ep);

/*
 * Start an attach to @pair, which is in state NONE. 0: under way (the pair is
 * ATTACHING). -FI_EAGAIN: later. -FI_ECONNREFUSED: nobody listens.
 * -FI_EHOSTUNREACH: the pair has FAILED.
 */
int tdm_shm_attach(struct tdm_shm_pair *pair) tdm_must_check;

/* Deadlines of accepted attaches, and the pause of the listener. @now: ns. */
void tdm_shm_attach_timers(struct tdm_shm_ep *ep, uint64_t now);

/* ---- session.c ----------------------------------------------------------- */

enum { TDM_SHM_OTHER_USER = -4096 }; /* beside the errno values */

/* An empty session, or NULL. Freeing closes descriptors only, not the pair. */
struct tdm_shm_session *tdm_shm_session_alloc(struct tdm_shm_ep *ep);
void tdm_shm_session_free(struct tdm_shm_session *s);

/*
 * Ask the kernel who is at the other end of the connected socket. Errors:
 * TDM_SHM_OTHER_USER.
 */
int tdm_shm_session_creds(struct tdm_shm_session *s) tdm_must_check;

/* Have the control loop watch socket and pidfd. Errors: -errno. */
int tdm_shm_session_watch(struct tdm_shm_session *s) tdm_must_check;

/* Make our doorbell bit and segment for the peer. Errors: -errno. */
int tdm_shm_session_prepare(struct tdm_shm_session *s) tdm_must_check;

/* Send HELLO. Errors: -errno. */
int tdm_shm_session_hello(struct tdm_shm_session *s) tdm_must_check;

/*
 * Check and map the segment and hints of a HELLO; s->pair is set. fds[2]
 * becomes the session's on success, the others stay the caller's.
 */
enum tdm_shm_why tdm_shm_session_take(struct tdm_shm_session *s,
				      const struct tdm_shm_hello *h,
				      int *fds) tdm_must_check;

/* Not 0 while the kernel reports the peer as alive. Two system calls. */
int tdm_shm_session_alive(const struct tdm_shm_session *s);

/* ---- seal.c: the proofs of endpoints with a key -------------------------- */

/* @h, our HELLO, becomes s->seals->own with its proof. Errors: -errno. */
int tdm_shm_seal_hello(struct tdm_shm_session *s,
		       const struct tdm_shm_hello *h) tdm_must_check;

/*
 * Judge @msg, the other side's HELLO. Not 0: its proof fits our key, or there
 * is neither proof nor key. Later proofs cover this HELLO.
 */
int tdm_shm_seal_ok(struct tdm_shm_session *s, const struct tdm_shm_msg *msg);

/* Send READY, with the last proof where there is a key. Errors: -errno. */
int tdm_shm_seal_ready(struct tdm_shm_session *s) tdm_must_check;

/* Not 0 when the READY @msg has the proof it must have. */
int tdm_shm_seal_done(const struct tdm_shm_session *s,
		      const struct tdm_shm_msg *msg);

/* ---- life.c: packets, watches, the lifeline of a pair that is up --------- */

/* Call w->ready and wake sleepers while w->fd is readable. Errors: -errno. */
int tdm_shm_watch_add(struct tdm_shm_ep *ep,
		      struct tdm_shm_watch *w) tdm_must_check;
void tdm_shm_watch_del(struct tdm_shm_ep *ep, struct tdm_shm_watch *w);
void tdm_shm_watch_close(struct tdm_shm_ep *ep, struct tdm_shm_watch *w);

/*
 * Send one packet; @fds[@nfds] go along. Never blocks. Errors: -FI_EAGAIN
 * when the socket is full, -errno.
 */
int tdm_shm_packet_send(int fd, const void *buf, size_t len, const int *fds,
			int nfds) tdm_must_check;
int tdm_shm_msg_send(int fd, enum tdm_shm_msg_type type, uint32_t arg,
		     int pass_fd) tdm_must_check;

/*
 * Receive and decode one packet. Out: *@msg and fds[TDM_SHM_FDS_MOST], which
 * are the caller's (-1: none). Errors: -FI_EAGAIN when there is none,
 * -FI_ECONNRESET at the end, -FI_EPROTO for a malformed packet; no
 * descriptor is left open then.
 */
int tdm_shm_msg_recv(int fd, struct tdm_shm_msg *msg, int *fds) tdm_must_check;

/*
 * Make a ring of @slots for the pair's next generation and send it to the peer.
 * The caller then writes MOVED to the old ring and calls tdm_shm_life_moved().
 * Errors: -FI_ENOSPC over the endpoint's budget, -errno; nothing changed.
 */
int tdm_shm_life_ring(struct tdm_shm_pair *pair, uint32_t slots) tdm_must_check;
void tdm_shm_life_moved(struct tdm_shm_pair *pair);

/*
 * Map the peer's next ring, or its bounce area. Errors: -FI_EPROTO when none
 * arrived or it is not as required, -FI_EAGAIN when it cannot be mapped now.
 */
int tdm_shm_life_next(struct tdm_shm_pair *pair) tdm_must_check;
int tdm_shm_life_area(struct tdm_shm_pair *pair) tdm_must_check;

/* Read the packets left in the lifeline of @pair, which is broken. */
void tdm_shm_life_last(struct tdm_shm_pair *pair);

/* Make the pair's bounce area and send it to the peer. Errors: -errno. */
int tdm_shm_life_bounce(struct tdm_shm_pair *pair) tdm_must_check;

/* tdm_shm_watch.ready of a session that is up: lifeline, pidfd. */
void tdm_shm_life_ready(struct tdm_shm_watch *w, uint32_t events);
void tdm_shm_dead_ready(struct tdm_shm_watch *w, uint32_t events);

#endif /* TDM_SHM_ATTACH_H */
