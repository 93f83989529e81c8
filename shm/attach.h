/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attach: how two processes exchange segments. The attach socket stays open as
 * the *lifeline*: when it closes, the process at the other end knows that this
 * one is gone. See doc/PROTOCOL-shm.md, "Attach".
 */
#ifndef TDM_SHM_ATTACH_H
#define TDM_SHM_ATTACH_H

#include <sys/types.h>

#include "base/list.h"
#include "shm/packet.h"
#include "shm/region.h"

struct tdm_shm_ep;
struct tdm_shm_pair;
struct tdm_shm_session;

/*
 * A descriptor in the endpoint's control epoll set. With all members 0, and fd
 * -1, it is not in the set.
 */
struct tdm_shm_watch {
	int fd;		      /* -1: none */
	struct tdm_list node; /* ep->watches */
	/*
	 * Called when fd is readable. May free the watch and anything else of
	 * the endpoint.
	 */
	void (*ready)(struct tdm_shm_watch *w, uint32_t events);
};

/* session.c has the diagram. */
enum tdm_shm_session_state {
	TDM_SHM_SESSION_NEW,	    /* no socket yet */
	TDM_SHM_SESSION_ACCEPTED,   /* acceptor: waits for HELLO, 5 s */
	TDM_SHM_SESSION_SENT,	    /* initiator: waits for HELLO */
	TDM_SHM_SESSION_WAIT_READY, /* acceptor: waits for READY */
	TDM_SHM_SESSION_UP,
};

/* The HELLOs of both sides of a handshake with a key, with their proofs. */
struct tdm_shm_proofs {
	struct tdm_shm_proven_hello own;
	struct tdm_shm_proven_hello peer; /* all 0 until received */
};

/* An attach, and the session that it makes. */
struct tdm_shm_session {
	struct tdm_shm_watch lifeline; /* the attach socket; first member */
	struct tdm_shm_watch dead;     /* the peer's pidfd */
	struct tdm_shm_ep *ep;
	struct tdm_shm_pair *pair; /* NULL until HELLO was read */
	struct tdm_list node;	   /* ep->attaching until UP */
	enum tdm_shm_session_state state;
	uint64_t deadline;	 /* ns; 0: none */
	pid_t pid;		 /* of the peer, from the kernel; 0: unknown */
	uint32_t features;	 /* of the peer */
	uint8_t incarnation[16]; /* of the peer */
	uint32_t peer_slots;
	uint32_t peer_bell; /* our bit in the peer's hints page */
	/* the peer's bit in our hints page; -1: none */
	int64_t own_bell;
	int bell_fd;		   /* the peer's eventfd */
	struct tdm_shm_region own; /* control words and first ring */
	struct tdm_shm_region peer;
	struct tdm_shm_region hints;	/* the peer's */
	struct tdm_shm_region own_ring; /* grown */
	uint64_t *dirty;		/* bitmap of own_ring, ring.h */
	/* sent to the peer; MOVED not written yet */
	struct tdm_shm_region new_ring;
	uint64_t *new_dirty;
	struct tdm_shm_region peer_ring; /* grown */
	struct tdm_shm_region next_ring; /* arrived; MOVED not read yet */
	uint32_t next_slots;		 /* 0: no ring arrived */
	int next_fd;			 /* until mapping succeeds */
	struct tdm_shm_region own_bounce;
	struct tdm_shm_region peer_bounce;
	/*
	 * the key of ep->keys that the session proves; NULL: none, or not known
	 * yet
	 */
	const struct tdm_auth_key *key;
	struct tdm_shm_proofs *proofs; /* until UP; NULL: no key */
	struct tdm_shm_region *left;   /* left[nleft]: left.c */
	uint32_t nleft;
	uint32_t peer_chunks; /* 0: no bounce area arrived */
	int bounce_fd;	      /* until mapping succeeds */
};

/*
 * Listen on the socket that has the endpoint's name. Errors: -FI_EADDRINUSE,
 * -FI_EMFILE and the like, as fi_enable(3) reports them. tdm_shm_unlisten()
 * accepts an endpoint that does not listen.
 */
int tdm_shm_listen(struct tdm_shm_ep *ep) tdm_must_check;
void tdm_shm_unlisten(struct tdm_shm_ep *ep);

/*
 * Start an attach to @pair, which must be in state NONE. Returns 0: it is under
 * way (the pair is ATTACHING); -FI_EAGAIN: try later; -FI_ECONNREFUSED: nobody
 * listens; -FI_EHOSTUNREACH: the pair has FAILED.
 */
int tdm_shm_attach(struct tdm_shm_pair *pair) tdm_must_check;

/*
 * End accepted attaches whose deadline has passed, and the pause of the
 * listener. @now: ns.
 */
void tdm_shm_attach_timers(struct tdm_shm_ep *ep, uint64_t now);

/* ---- session.c ----------------------------------------------------------- */

enum { TDM_SHM_OTHER_USER = -4096 }; /* beside the errno values */

#endif /* TDM_SHM_ATTACH_H */
