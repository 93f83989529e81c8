/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair: an endpoint and one address that it exchanges messages with. Both
 * sides agree on the path before the first message and keep it while both live,
 * so no further state is needed to keep messages in order.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_PAIR_H
#define TDM_TCP_PAIR_H

#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>

struct tdm_conn;
struct tdm_foreign_peer;
struct tdm_root;
struct tdm_history;
struct tdm_queue;
struct tdm_xfer;

/* How an endpoint reaches an address. pair.c has the diagram. */
enum tdm_path {
	TDM_PATH_UNKNOWN,
	TDM_PATH_LOCAL,
	TDM_PATH_REMOTE,
	TDM_PATH_FOREIGN, /* messages by a foreign peer, all else by TCP */
	/* operations wait, and none may overtake them: backlog.h */
	TDM_PATH_QUEUED,
};

/* The next step of the search for a path while it is UNKNOWN. */
enum tdm_search {
	TDM_SEARCH_ATTACH, /* try the shared-memory peer */
	TDM_SEARCH_PROBE,  /* nobody listened: does the process exist? */
	TDM_SEARCH_AGAIN,  /* it does: attach once more, then decide */
};

struct tdm_pair {
	uint8_t path;	 /* enum tdm_path; read by every send */
	uint8_t agreed;	 /* enum tdm_path, but never QUEUED */
	uint8_t search;	 /* enum tdm_search */
	uint8_t reason;	 /* enum tdm_reason: why not LOCAL */
	uint8_t brief;	 /* 1: refusals count soon, tdm_refused_over() */
	uint32_t refs;	 /* indices (duplicates) that share the pair */
	fi_addr_t local; /* address in the peer's AV; LOCAL only */
	/* when REMOTE or FOREIGN, or while probing; else NULL */
	struct tdm_conn *conn;
	struct tdm_history
		*history;	 /* past connections and sessions; NULL: none */
	struct tdm_queue *queue; /* QUEUED; else NULL */
	struct tdm_foreign_peer *foreign; /* FOREIGN only */
};

/*
 * The calls of both transports that pair.c uses to choose the path of a pair;
 * unit tests replace them. @addr is an index of the owner's AV.
 */
struct tdm_tiers {
	/*
	 * Returns @addr in the peer provider's AV; FI_ADDR_NOTAVAIL: it is not
	 * on this host.
	 */
	fi_addr_t (*local_addr)(const struct tdm_root *root, fi_addr_t addr);
	/*
	 * Sends @x through shared memory. Errors: -FI_EAGAIN: attaching goes
	 * on; -FI_ECONNREFUSED: no process listens there; -FI_EHOSTUNREACH: the
	 * peer refuses for good; other errors concern the operation.
	 */
	ssize_t (*send_local)(struct tdm_root *root, struct tdm_pair *p,
			      const struct tdm_xfer *x);
	/*
	 * Returns the connection to @addr; if there is none, a new one in state
	 * IDLE. NULL: out of memory.
	 */
	struct tdm_conn *(*conn)(struct tdm_root *root, fi_addr_t addr);
	/* tdm_conn_probe(), tdm_tx_send() and tdm_conn_drop() of wire.h. */
	int (*probe)(struct tdm_conn *conn);
	ssize_t (*send_remote)(struct tdm_conn *conn, const struct tdm_xfer *x);
	void (*drop)(struct tdm_conn *conn);
	/*
	 * For endpoints with a foreign peer: whether @addr may be reached by
	 * it; makes a step of the agreement over p->conn and sets p->foreign
	 * (0; -FI_EAGAIN; -FI_EOPNOTSUPP: TCP carries all); sends @x, a message,
	 * to p->foreign: tdm_foreign_send() of peer/foreign.h.
	 */
	int (*may_meet)(struct tdm_root *root, fi_addr_t addr);
	int (*meet)(struct tdm_root *root, struct tdm_pair *p);
	ssize_t (*send_foreign)(struct tdm_foreign_peer *peer,
				const struct tdm_xfer *x);
};

/*
 * Allocates a pair to which nothing refers yet; free() ends it. NULL: out of
 * memory.
 */
struct tdm_pair *tdm_pair_new(void);

/*
 * Not 0 unless @addr has its attach socket in the folder of FI_TANDEM_SHM_DIR, and
 * that has none.
 */
int tdm_pair_in_folder(const struct tdm_root *root, fi_addr_t addr);

/*
 * Make one step of the agreement on the path of @p, which must be UNKNOWN, by
 * sending @x; or send @x, if the path is FOREIGN. Returns 0: @x was sent, and the path is agreed. Errors:
 * -FI_EAGAIN: not yet, or the path is agreed and is full; -FI_ECONNREFUSED and
 * the like: the peer cannot be reached; -FI_EHOSTUNREACH: by
 * FI_TANDEM_SHM=only; -FI_ENOMEM.
 */
ssize_t tdm_pair_agree(struct tdm_root *root, struct tdm_pair *p,
		       const struct tdm_xfer *x);

/*
 * Change the path of @p. attached: shared memory is attached, p->local is
 * known; connected: the connection p->conn carries the pair; lost: the peer is
 * lost.
 */
void tdm_pair_attached(struct tdm_root *root, struct tdm_pair *p);
void tdm_pair_connected(struct tdm_pair *p);
void tdm_pair_lost(struct tdm_pair *p);

/*
 * Called when a send through shared memory has failed with @err,
 * -FI_ECONNREFUSED or -FI_EHOSTUNREACH: the session has ended, and the path
 * becomes UNKNOWN. With 0: TCP was chosen, and has no session yet.
 */
void tdm_pair_detached(struct tdm_pair *p, ssize_t err);

/* Let operations wait in p->queue: the data path sees QUEUED. */
void tdm_pair_hold(struct tdm_pair *p);

/* Let the data path see the agreed path again. */
void tdm_pair_release(struct tdm_pair *p);

#endif /* TDM_TCP_PAIR_H */
