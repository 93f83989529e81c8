/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of a pair's past connections and sessions, called its *lives*, for
 * the report: a connection or session takes its counts with it, and so does a
 * pair whose address is removed. A pair has such a record from the end of its
 * first life on; with FI_TANDEM_REPORT it outlives the pair, until the endpoint
 * closes.
 *
 * Lock: held in all functions.
 */
#ifndef TDM_TCP_HISTORY_H
#define TDM_TCP_HISTORY_H

#include "av/addr.h"
#include "base/list.h"
#include "fi_ext_tandem.h"

struct tdm_conn;
struct tdm_root;
struct tdm_pair;
struct tdm_peer_event;

struct tdm_history {
	struct tdm_report_counts shm, tcp, foreign; /* foreign: once removed */
	uint64_t count;				    /* lives that have ended */
	uint32_t path;	   /* enum tdm_report_kind; of the last life */
	uint32_t state;	   /* TDM_REPORT_CLOSED or _LOST */
	uint32_t reason;   /* enum tdm_reason */
	int32_t err;	   /* positive fi_errno, of _LOST */
	uint32_t large_rx; /* enum tdm_report_large */
	uint32_t large_tx;
	struct tdm_list node; /* root->removed, once its address is removed */
	struct tdm_addr addr; /* the removed address, and its index */
	fi_addr_t index;
	int in_use; /* 1: the path was in use when it was removed */
};

/*
 * local: the session of @p by shared memory has ended, as @event says; remote:
 * the connection @conn with @err (FI_ESHUTDOWN: the peer closed it); @foreign: not
 * 0 when a foreign provider carried its messages. Adds its
 * counts to the record. Without memory for the record the counts are lost,
 * which @root counts.
 */
void tdm_history_end_local(struct tdm_root *root, struct tdm_pair *p,
			   const struct tdm_peer_event *event);
void tdm_history_end_remote(struct tdm_root *root, struct tdm_pair *p,
			    const struct tdm_conn *conn, int err, int foreign);

/* Returns what @conn has counted. */
struct tdm_report_counts tdm_history_counts(const struct tdm_conn *conn);

/*
 * Called when @addr, the last index of @p, is about to be removed: keeps the
 * record if a report will be printed, else frees p->history.
 */
void tdm_history_removed(struct tdm_root *root, struct tdm_pair *p,
			 fi_addr_t addr);

/* Free the records of removed addresses; zero-safe. */
void tdm_history_free(struct tdm_list *removed);

/* Returns the text of an enum tdm_reason; static, "" for TDM_REASON_NONE. */
const char *tdm_reason_text(uint32_t reason);

/* Returns what to do about @reason, enum tdm_reason; "" if there is nothing. */
const char *tdm_reason_advice(uint32_t reason);

/* Fill *@out, except size, for the path to @addr, which is in the AV. */
void tdm_history_path(struct tdm_root *root, fi_addr_t addr,
		      struct tdm_report_path *out);

/* As tdm_history_path(), for an address that was removed. */
void tdm_history_path_removed(const struct tdm_root *root,
			      const struct tdm_history *history,
			      struct tdm_report_path *out);

#endif /* TDM_TCP_HISTORY_H */
