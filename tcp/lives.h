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
#ifndef TDM_TCP_LIVES_H
#define TDM_TCP_LIVES_H

#include "av/addr.h"
#include "fi_ext_tandem.h"
#include "base/list.h"

struct tdm_conn;
struct tdm_ep;
struct tdm_pair;
struct tdm_peer_event;

struct tdm_lives {
	struct tdm_report_counts shm, tcp;
	uint64_t count;	   /* lives that have ended */
	uint32_t path;	   /* enum tdm_report_kind; of the last one */
	uint32_t state;	   /* TDM_REPORT_CLOSED or _LOST */
	uint32_t reason;   /* enum tdm_reason */
	int32_t err;	   /* positive fi_errno, of _LOST */
	uint32_t large_rx; /* enum tdm_report_large */
	uint32_t large_tx;
	struct tdm_list node; /* ep->removed, once its address is removed */
	struct tdm_addr addr; /* the removed address, and its index */
	fi_addr_t index;
	int in_use; /* 1: the path was in use when it was removed */
};

/*
 * The session of @p by shared memory has ended, as @event says, or the
 * connection @conn with @err (FI_ESHUTDOWN: the peer closed it). Without memory
 * for the record the counts are lost, which @ep counts.
 */
void tdm_lives_end_local(struct tdm_ep *ep, struct tdm_pair *p,
			 const struct tdm_peer_event *event);
void tdm_lives_end_remote(struct tdm_ep *ep, struct tdm_pair *p,
			  const struct tdm_conn *conn, int err);

/*
 * @addr, the last index of @p, is about to be removed: keep the record if a
 * report will be printed, else free p->lives.
 */
void tdm_lives_removed(struct tdm_ep *ep, struct tdm_pair *p, fi_addr_t addr);

/* Free the records of removed addresses; zero-safe. */
void tdm_lives_free(struct tdm_list *removed);

/* The text of an enum tdm_reason; static, "" for TDM_REASON_NONE. */
const char *tdm_reason_text(uint32_t reason);

/* Fill *@out, except size, for the path to @addr, which is in the AV. */
void tdm_lives_path(struct tdm_ep *ep, fi_addr_t addr,
		    struct tdm_report_path *out);

/* The same for an address that was removed. */
void tdm_lives_path_removed(const struct tdm_lives *lives,
			    struct tdm_report_path *out);

/* report.c: fi_open_ops(3) for TDM_REPORT_OPS. Lock: taken inside. */
int tdm_report_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);

/* Print the table of FI_TANDEM_REPORT for @ep on stderr. Lock: held. */
void tdm_report_print(struct tdm_ep *ep);

/*
 * At the end of the process: the same for all endpoints that are still open,
 * except those of domains that a thread is using. Lock: not held.
 */
void tdm_report_exit(void);

#endif /* TDM_TCP_LIVES_H */
