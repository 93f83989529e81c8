/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application above an owner under test: three endpoints, of
 * which the first two have met, with messages between them. What fails here ends
 * the rule.
 */
#ifndef KIT_APP_H
#define KIT_APP_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "kit/op.h"

enum { KIT_APP_NODES = 3, KIT_APP_NAME_BYTES = 4096 };

struct kit_app_node {
	struct fid_domain *domain; /* also that of others: KIT_APP_ONE_DOMAIN */
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_cntr *cntr[2];      /* of sends and of receives */
	fi_addr_t addr[KIT_APP_NODES]; /* of the others, in its vector */
	size_t errors, completions;
};

struct kit_app {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct kit_app_node node[KIT_APP_NODES];
};

extern struct kit_app kit_app;

enum kit_app_flag {
	KIT_APP_COUNTED = 1,	/* with counters, if there are any */
	KIT_APP_UNMET = 2,	/* no message between the first two */
	KIT_APP_ONE_DOMAIN = 4, /* for all endpoints; else one for each */
};

/* Let libfabric find the peer provider, and the owner link it. */
void kit_app_link(void);

/*
 * Open all of it, and have node 0 and node 1 exchange a message each, which the
 * peer provider has to carry: else the rule ends, with "not offered" if the owner
 * did not ask for that provider, or refuses the capabilities.
 */
void kit_app_open(int flags);

/* The same up to the messages. Returns what the first call that fails did, or 0. */
int kit_app_try_open(int flags);

/* Node @at learns the address of node @of. Returns 0 or an error. */
int kit_app_insert(size_t at, size_t of);

/*
 * Open all, by kit_app_open(0), for a rule that needs @caps: an owner without them
 * ends it as "not offered", with @what.
 */
void kit_app_open_for(uint64_t caps, const char *what);

/* Not 0 when the owner grants @caps. */
int kit_app_has(uint64_t caps);

/* Close all, the endpoints first. */
void kit_app_close(void);
void kit_app_close_node(size_t n);

/* One pass of progress: read each queue, and note what has ended. */
void kit_app_progress(void);

/* Some passes: what is under way arrives. */
void kit_app_settle(void);

/* Until *@value has reached @least; returns whether it did. */
int kit_app_reach(const size_t *value, size_t least);

/* ---- operations ------------------------------------------------------------ */

/* As a kind: the first that is offered. */
#define KIT_APP_FIRST KIT_KINDS

struct kit_app_msg {
	enum kit_kind kind;
	size_t len;
	uint64_t tag, data;
	uint64_t flags; /* FI_REMOTE_CQ_DATA */
};

/* The kind of messages that the owner offers, tagged ones first. */
enum kit_kind kit_app_kind(void);

/* Send from node @from to @to. Errors but -FI_EAGAIN end the rule. */
struct kit_op *kit_app_send(size_t from, size_t to,
			    const struct kit_app_msg *m);

/* Post a receive of @room bytes; @source is a node, or -1: any. */
struct kit_op *kit_app_recv(size_t at, const struct kit_app_msg *m, size_t room,
			    int source);

/* Until @op has ended; the rule is broken if it does not. */
void kit_app_wait(const struct kit_op *op);

/* @recv has the message of @send, and all of its completion is as it should. */
void kit_app_check(const struct kit_op *recv, const struct kit_op *send,
		   const struct kit_app_msg *m);

/*
 * The rule is broken unless @op has ended with @err. Waits for it.
 */
void kit_app_failed(const struct kit_op *op, int err);

/* Send a message that has no receive, until the peer has queued it. */
struct kit_op *kit_app_send_early(size_t from, size_t to,
				  const struct kit_app_msg *m);

#endif /* KIT_APP_H */
