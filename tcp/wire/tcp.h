/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection and the transport, for the files of the TCP transport only.
 * Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_TCP_H
#define TDM_TCP_WIRE_TCP_H

#include "base/list.h"
#include "base/os.h"
#include "base/pool.h"
#include "base/spares.h"
#include "tcp/wire/ids.h"
#include "tcp/wire/operation.h"
#include "tcp/wire/parts.h"
#include "tcp/wire/greeting.h"
#include "tcp/wire/habits.h"
#include "tcp/wire/offer.h"
#include "tcp/wire/wire.h"
#include "tdm_held.h"
#include "tdm_rma.h"
#include "tdm_space.h"

enum tdm_conn_state { /* conn.c */
		      TDM_CONN_IDLE,
		      TDM_CONN_CONNECTING,
		      TDM_CONN_SILENT,
		      TDM_CONN_GREETING,
		      TDM_CONN_BACKOFF,
		      TDM_CONN_DEAD,
		      /* With a session, tdm_conn_live(): */
		      TDM_CONN_RESUMING,
		      /* With its socket too, tdm_conn_open(): */
		      TDM_CONN_READY,
		      TDM_CONN_CLOSING,
};

struct tdm_conn {
	struct tdm_tcp *tcp;
	struct tdm_loop_io io;
	uint8_t state; /* enum tdm_conn_state */
	/* 1: the receiving half of a connection to ourselves */
	uint8_t mirrored;
	uint8_t bye;	       /* GOODBYE was received */
	uint8_t blocked;       /* the kernel refused bytes: send.c, 1 */
	uint8_t ack_now, turn; /* turn: data before the next large message */
	uint8_t head_len;      /* bytes in head[] */
	uint8_t closing;       /* 1: GOODBYE was written, 2: shut down */
	/* 1: a session was up: the values of the peer's HELLO are valid */
	uint8_t known;
	/* 1: our ASK is unanswered; 1: CLOSING, and GO was written */
	uint8_t asked, going;
	/* a step of an idle close, sent in place of the next ACK; or 0 */
	uint8_t say;
	/* TDM_WIRE_F_LEFT while closing: injects are sent, left.c */
	uint8_t leaving;
	/* 1: the peer sent FULL; 1: sendq waits for credit */
	uint8_t full, thirsty;
	uint8_t said_full; /* we sent FULL, or a HELLO without credit */
	uint8_t again;	   /* 1: the next pass reads its input */
	uint8_t wanted;	   /* 1: a session is wanted before any send */
	uint8_t cur_flags; /* of the record that is being received */
	uint8_t brief;	   /* 1: tdm_conn_brief() was called */
	uint8_t at_once;   /* medium messages not to be held back: send.c, 3 */
	uint8_t keeps;	   /* 1: bytes sent stay until acknowledged, keep.h */
	uint8_t asks;	   /* 1: no session yet; session[] is what HELLO asks */
	uint8_t unsure;	   /* 1: the peer may have answered a HELLO, unheard */
	uint8_t layered;   /* 1: something is below the stream, layer.h */
	uint8_t replied;   /* 1: the last record received was data of a read */
	int tx_err; /* fi_errno of a failed send; the input is read first */

	/* Output. */
	struct tdm_out *out;
	struct tdm_tx *borrow; /* its bytes, the user's, follow those of out */
	struct tdm_list sendq, ackq; /* struct tdm_tx */
	struct tdm_busy *busy;	     /* parts.h */
	struct tdm_list flush_node, ack_node, unacked_node;
	uint32_t tx_pass;  /* pass in which output was last sent at once */
	uint32_t ack_pass; /* pass in which an acknowledgement fell due */
	struct tdm_prompt prompt;
	struct tdm_posted posted;
	uint64_t tx_seq; /* number of EAGER and DATA records begun */
	/* number of records acknowledged; of the last inject's record */
	uint64_t acked, injected;
	uint64_t told, heard; /* number of RTS and AWRITE: begun, received */
	/* credit used, and given after HELLO; bytes */
	uint64_t charged, freed;
	uint64_t window;   /* credit in the peer's HELLO */
	uint32_t eager;	   /* longest EAGER payload */
	uint32_t rts_max;  /* most that busy->rts may be */
	uint32_t contexts; /* receive contexts the peer has */
	uint32_t features; /* enum TDM_WIRE_FEATURE_* of the peer */
	uint32_t tx_group; /* of the last message in the output */

	/* Input. */
	uint32_t cur_len;   /* payload of this record, bytes */
	struct tdm_rx *cur; /* whose payload comes; NULL: drop it */
	uint64_t left;	    /* bytes of this record's payload still missing */
	uint32_t read_bytes, ack_bytes;
	uint64_t rx_seq;  /* EAGER and DATA records received */
	uint64_t ack_seq; /* acknowledged ones of these */
	uint64_t rx_charged, rx_freed, ack_freed; /* credit, bytes */
	uint64_t credit; /* given to the peer in HELLO, bytes */
	uint64_t given;	 /* in this session, credit of HELLO included */
	/* in the account: by this session, and beyond it */
	uint64_t reserved, kept;
	uint32_t announced_most; /* announcements allowed, from our HELLO */

	/* Pair. */
	uint32_t rx_group;     /* of messages received now */
	struct tdm_list all;   /* tcp->conns or tcp->dead */
	struct tdm_conn *next; /* in the same tcp->bucket[] */
	struct tdm_addr addr;
	fi_addr_t fi_addr;
	fi_addr_t from; /* source in the offers of its messages */
	uint8_t id[TDM_WIRE_ID_BYTES]; /* the peer's incarnation */
	struct tdm_setup *setup;       /* parts.h; NULL with a session */
	uint64_t used; /* pass of the last byte sent or received */
	/* share.c: `used` at its last change, and the time of that */
	uint64_t seen_used, seen_ns;
	/* tcp.c: since when the kernel's question is unanswered; 0: none */
	uint64_t unheard_ns;
	struct tdm_conn_stats stats;
	struct tdm_meeting *meeting; /* meet.h; or NULL */
	/* layer.h; at most one is not NULL */
	struct tdm_blocks *blocks;
	struct tdm_tls *tls;

	/* Resume, keep.h: positions are bytes since the greeting. */
	struct tdm_keep *keep;	  /* or NULL */
	uint64_t kept_pos;	  /* of the first byte kept */
	uint64_t rx_pos, rx_said; /* received; of that the peer was told */
	uint8_t session[TDM_WIRE_ID_BYTES]; /* known to the two sides only */
};

struct tdm_tcp {
	struct tdm_tcp_attr a;
	struct tdm_tls_ctx *tls;       /* NULL: without TLS */
	const struct tdm_rma_ops *rma; /* NULL: no regions, peers are refused */
	struct tdm_addr addr;	       /* the endpoint's */
	uint8_t id[TDM_WIRE_ID_BYTES];
	uint64_t pass, retries; /* retries: attempts to connect that failed */
	size_t tx_used;		/* used part of tx_size: tdm_tx.counted */
	size_t open;		/* connections with a descriptor */
	uint32_t contexts;	/* receive contexts of the endpoint */
	int closing;
	uint32_t dice;		     /* state of the random numbers */
	struct tdm_list flush, acks; /* conns with work at a pass */
	int again;		     /* some have tdm_conn.again */
	/* conns with a send in ackq; may contain others */
	struct tdm_list unacked;
	struct tdm_loop_timer unacked_timer; /* tdm_unacked_pass() in sleep */
	struct tdm_list conns, dead;
	struct tdm_conn **bucket; /* bucket[buckets], by address */
	size_t buckets, pairs;
	struct tdm_pool tx_pool, rx_pool;
	struct tdm_spares payloads;  /* of unexpected messages */
	struct tdm_out *spare_out;   /* out.h */
	unsigned spares, spares_low; /* low: least number lately */
	struct tdm_loop_timer watch; /* checks silent peers */
	/* how many connections to ask for an idle close */
	unsigned crowd;
	int none_left; /* 1: out of descriptors, evict a stranger */
	struct tdm_loop_timer crowd_timer; /* asks them */

	struct tdm_loop_io listener; /* this and all below: listen.c */
	struct tdm_list guests;
	size_t guest_count;
	int reserve_fd;
	unsigned accept_ms; /* pause after running out of descriptors */
	struct tdm_loop_timer accept_timer, guest_timer;
	uint64_t log_ns;
	struct tdm_held *held, own_held; /* credit.c */
	struct tdm_stage *stage;	 /* the loop's */
	struct tdm_tcp_offer offer;	 /* meet.h */
	int reads_itself; /* 1, -1: it cannot, 0: not known; keep.c */
};

/* Wakes a sleeper. Call it after putting work on a list for the next pass. */
static inline void tdm_tcp_nudge(struct tdm_tcp *tcp)
{
	if (tdm_unlikely(tdm_engine_watched(tcp->a.engine)))
		tdm_loop_wake(tcp->a.loop);
}

/* Make @c busy, unless it is. Errors: -FI_ENOMEM. */
static inline tdm_must_check int tdm_busy_need(struct tdm_conn *c)
{
	return tdm_likely(c->busy != &tdm_not_busy) ? 0 : tdm_busy_make(c);
}

#endif /* TDM_TCP_WIRE_TCP_H */
