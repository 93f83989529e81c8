/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The statistics segment: a head, records of endpoints, records of peers.
 * doc/PROTOCOL-stat.md fixes the layout; tools/stat.py is the only reader. The
 * domain writes, under its lock; readers copy, and check what they copied.
 */
#ifndef TDM_TCP_STAT_FORMAT_H
#define TDM_TCP_STAT_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/base.h"

#define TDM_STAT_MAGIC 0x31544154534d4454ull /* "TDMSTAT1" */

enum {
	TDM_STAT_VERSION = 1,
	TDM_STAT_RECORD_BYTES = 256, /* head, endpoint and peer alike */
	TDM_STAT_LEAST_BYTES = 16 << 10,
	TDM_STAT_MOST_BYTES = 4 << 20,
};

/* The answer on the socket; the descriptor of the segment goes with it. */
struct tdm_stat_answer {
	uint64_t magic;
	uint32_t version;
	uint32_t zero;
};

struct tdm_stat_head {
	/* constant once a reader may have the segment */
	uint64_t magic;
	uint32_t version;
	uint32_t record_bytes;
	uint64_t bytes;	     /* of the segment */
	uint64_t started_ns; /* CLOCK_MONOTONIC, when the domain was opened */
	uint8_t incarnation[16]; /* that of the socket's name */
	uint32_t pid;		 /* as the process sees it */
	uint32_t pad0;
	char release[32]; /* of tandem, NUL included */
	uint8_t pad1[40];

	tdm_a64 seq;	       /* odd while the rest is being written */
	uint64_t published_ns; /* CLOCK_MONOTONIC */
	uint64_t passes;       /* of progress */
	uint64_t inject_bytes; /* copies of injects in the process */
	uint32_t eps;	       /* records of endpoints, which follow the head */
	uint32_t peers;	       /* records of peers, which follow those */
	uint32_t eps_left;     /* endpoints and peers without a record */
	uint32_t peers_left;
	uint8_t pad2[80];
};

/* A socket address of `addrlen` bytes. */
struct tdm_stat_addr {
	uint8_t bytes[28];
	uint32_t addrlen;
};

struct tdm_stat_ep {
	struct tdm_stat_addr addr;
	uint32_t scalable;   /* 1: fi_scalable_ep(3) */
	uint32_t no_shm;     /* enum tdm_reason; 0: shared memory is used */
	uint32_t peers;	     /* its records, in the order of the endpoints */
	uint32_t peers_left; /* without a record */
	uint64_t posted;     /* receives that wait for a message */
	uint64_t waiting;    /* messages that wait for a receive */
	uint64_t held;	     /* bytes of these, of peers with a record */
	/* bytes of unexpected messages and promised ones; FI_TANDEM_UNEXP_MAX */
	uint64_t account, account_most;
	uint64_t tx_used, tx_size; /* operations of tx_attr.size in use: TCP */
	uint64_t backlog;	   /* operations that wait for a path */
	/* entries to be read in the queue that has most of them, and its size */
	uint64_t cq_waiting, cq_size;
	uint64_t tcp_open;    /* TCP connections with a descriptor */
	uint64_t tcp_retries; /* attempts to connect that have failed */
	uint64_t paths[4];    /* peers in use by enum tdm_report_kind */
	uint8_t pad[80];
};

struct tdm_stat_peer {
	struct tdm_stat_addr addr;
	uint64_t index; /* in the address vector */
	/* enum tdm_report_kind, _state, tdm_reason, positive fi_errno */
	uint32_t path, state, reason, err;
	uint32_t large_rx, large_tx; /* enum tdm_report_large */
	uint64_t lives;
	/* sent messages and bytes, received messages and bytes */
	uint64_t shm[4], tcp[4], foreign[4];
	uint64_t queued, pending, credit, given, held; /* struct tdm_look */
	uint64_t backlog; /* operations that wait for the path */
	uint32_t tries;	  /* failed attempts since the last success */
	int32_t tries_err;
	uint32_t full;
	uint8_t pad[28];
};

tdm_static_assert(sizeof(struct tdm_stat_head) == TDM_STAT_RECORD_BYTES &&
			  offsetof(struct tdm_stat_head, seq) == 128,
		  "head layout");
tdm_static_assert(sizeof(struct tdm_stat_ep) == TDM_STAT_RECORD_BYTES &&
			  offsetof(struct tdm_stat_ep, paths) == 144,
		  "endpoint layout");
tdm_static_assert(sizeof(struct tdm_stat_peer) == TDM_STAT_RECORD_BYTES &&
			  offsetof(struct tdm_stat_peer, backlog) == 208,
		  "peer layout");

#endif /* TDM_TCP_STAT_FORMAT_H */
