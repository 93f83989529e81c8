/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structures behind conn.h, shared by the files of the TCP transport and
 * by nobody else. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_TCP_H
#define TDM_TCP_WIRE_TCP_H

#include "tcp/wire/wire.h"
#include "tcp/wire/ids.h"
#include "tcp/wire/ops.h"
#include "tcp/wire/record.h"
#include "tdm_held.h"
#include "base/list.h"
#include "base/os.h"
#include "base/pool.h"
#include "tdm_rma.h"
#include "tdm_space.h"

enum {
	TDM_TCP_OUT_BYTES = 16 << 10,	 /* one transmit buffer */
	TDM_TCP_FLUSH_BYTES = 8 << 10,	 /* gathered output goes out at */
	TDM_TCP_COPY_BYTES = 2 << 10,	 /* longest payload copied to gather */
	TDM_TCP_CREDIT_BYTES = 1 << 20,	 /* most credit said in HELLO */
	TDM_TCP_RECORDS = 64,		 /* per peer and pass */
	TDM_TCP_BURST_BYTES = 256 << 10, /* per peer and pass */
	TDM_TCP_ACK_RECORDS = 64,	 /* received, acknowledged at once */
	TDM_TCP_ACK_BYTES = 64 << 10,
};

/* A transmit buffer; a connection has one only while it holds bytes. */
struct tdm_out {
	struct tdm_out *next; /* in tcp->spare_out */
	uint32_t head, tail;  /* bytes [head, tail) are to be sent */
	uint32_t msgs;	      /* messages gathered since the last send */
	uint8_t bytes[TDM_TCP_OUT_BYTES];
};

enum tdm_conn_state { /* conn.c */
		      TDM_CONN_IDLE,
		      TDM_CONN_CONNECTING,
		      TDM_CONN_SILENT,
		      TDM_CONN_GREETING,
		      TDM_CONN_BACKOFF,
		      TDM_CONN_DEAD,
		      /* With a session, tdm_conn_live(): */
		      TDM_CONN_READY,
		      TDM_CONN_RESTING,
};

struct tdm_conn {
	struct tdm_tcp *tcp;
	struct tdm_loop_io io;
	uint8_t state;	  /* enum tdm_conn_state */
	uint8_t mirrored; /* the receiving half of a connection to ourselves */
	uint8_t bye;	  /* GOODBYE was received */
	uint8_t blocked;  /* the kernel takes no more; watched for write */
	uint8_t ack_now, turn; /* turn: data before the next large message */
	uint8_t head_len;      /* bytes of head[] */
	uint8_t closing;       /* 1: GOODBYE said, 2: shut down */
	uint8_t known; /* there was a session: what the peer has, its id */
	uint8_t asked, going; /* ASK is unanswered; RESTING: GO is said */
	uint8_t say;	 /* the next ACK is to be this step of a REST, or 0 */
	uint8_t leaving; /* TDM_WIRE_F_LEFT: closing, injects leave: left.c */
	uint8_t full, thirsty; /* the peer said FULL; sendq waits for credit */
	uint8_t said_full;     /* we said so, or gave none in HELLO */
	int tx_err; /* fi_errno a send met; the input is read first */
	int why;    /* BACKOFF: fi_errno of the last attempt */

	/* Output. */
	struct tdm_out *out;
	struct tdm_tx *gather; /* its bytes follow those of out */
	size_t gather_off, gather_end;
	struct tdm_list sendq, dataq, ackq, waitq; /* struct tdm_tx */
	struct tdm_list ctlq;			   /* struct tdm_rx */
	struct tdm_list flush_node, ack_node, again_node, sent_node;
	uint64_t tx_pass;	  /* pass in which something left at once */
	uint64_t tx_seq;	  /* EAGER and DATA records begun */
	uint64_t acked, injected; /* acknowledged; to the last inject */
	uint64_t told, heard;	  /* RTS and AWRITE begun, and received */
	uint64_t charged, freed;  /* credit taken, given after HELLO; bytes */
	uint64_t window;	  /* the peer's credit, of its HELLO */
	uint32_t eager;		  /* longest EAGER payload */
	uint32_t rts, rts_max;	  /* announced or reads, unanswered */
	struct tdm_slow slow;	  /* of waitq and dataq: tdm_order.h */
	uint32_t contexts;	  /* receive contexts the peer has */
	uint32_t features;	  /* enum TDM_WIRE_FEATURE_* of the peer */
	uint32_t tx_group;	  /* of the messages in the output */
	struct tdm_ids ids;	  /* struct tdm_tx */

	/* Input. */
	struct tdm_rx *cur; /* message whose payload comes; NULL: drop it */
	uint64_t left;	    /* bytes of this record's payload to come */
	uint32_t cur_len;   /* payload of this record, bytes */
	uint8_t cur_flags, more_count; /* its flags; of more */
	uint32_t read_bytes, ack_bytes;
	uint64_t rx_seq;  /* EAGER and DATA records received */
	uint64_t ack_seq; /* of them, acknowledged */
	uint64_t rx_charged, rx_freed, ack_freed; /* credit, bytes */
	uint64_t credit;	 /* given to the peer in HELLO, bytes */
	uint64_t given;		 /* in this session, that included */
	uint64_t reserved, kept; /* in the account, this session and others */
	uint32_t announced_most; /* said in HELLO */
	uint64_t ack_pass;  /* pass in which the acknowledgement fell due */
	uint32_t announced; /* the peer's, unanswered */
	struct tdm_list *left_at; /* of rxs: LEFT is for no earlier one */
	struct tdm_ids rids;	  /* struct tdm_rx */
	struct tdm_list rxs;	  /* struct tdm_rx, all of them */
	uint8_t head[TDM_WIRE_HEAD_BYTES]; /* a header cut short */
	struct fi_rma_iov *more; /* RANGEs of the operation to come, or NULL */

	/* Pair. */
	struct tdm_list all;	/* tcp->conns or tcp->dead */
	struct tdm_list bucket; /* tcp->bucket[] */
	struct tdm_addr addr;
	fi_addr_t fi_addr;
	fi_addr_t from;		       /* what its messages are offered by */
	uint32_t rx_group;	       /* of the messages that come */
	uint8_t id[TDM_WIRE_ID_BYTES]; /* the peer's incarnation */
	/* GREETING only: the peer's, partial; with keys, behind it our own. */
	uint8_t *greeting;
	uint8_t greeting_len;
	uint8_t proving; /* GREETING: the proof is said, no answer yet */
	unsigned backoff_ms;
	uint64_t since_ns;   /* connect time-out counts from; 0: not begun */
	uint64_t entered_ns; /* when the state was entered */
	uint64_t used;	     /* pass of the last bytes, either way */
	uint64_t seen_used, seen_ns; /* share.c: `used` then, when it was new */
	uint64_t unheard_ns; /* tcp.c: no answer since; 0: none is due */
	struct tdm_loop_timer timer;
	struct tdm_conn_stats stats;
};

struct tdm_tcp {
	struct tdm_tcp_attr a;
	const struct tdm_rma_ops *rma; /* NULL: no regions, all refused */
	struct tdm_addr addr;	       /* the endpoint's */
	uint8_t id[TDM_WIRE_ID_BYTES];
	uint64_t pass;
	size_t tx_used;	   /* of tx_size: tdm_tx.counted */
	size_t open;	   /* connections with a descriptor */
	uint32_t contexts; /* receive contexts of the endpoint */
	int closing;
	uint32_t dice;			    /* for the back-off */
	struct tdm_list flush, acks, again; /* conns with work at a pass */
	struct tdm_list sent; /* conns with a send in ackq, and some without */
	struct tdm_loop_timer sent_timer; /* looks at them while we sleep */
	struct tdm_list conns, dead;
	struct tdm_list *bucket; /* bucket[buckets], by address */
	size_t buckets, pairs;
	struct tdm_pool tx_pool, rx_pool;
	struct tdm_out *spare_out;
	unsigned spares;
	struct tdm_loop_timer watch;	   /* silent peers */
	unsigned crowd;			   /* connections to be asked to rest */
	int none_left;			   /* descriptors: a stranger goes */
	struct tdm_loop_timer crowd_timer; /* asks them */

	struct tdm_loop_io listener; /* this and the rest: listen.c */
	struct tdm_list guests;
	size_t guest_count;
	int reserve_fd;
	unsigned accept_ms; /* pause after running out of descriptors */
	struct tdm_loop_timer accept_timer, guest_timer;
	uint64_t log_ns;
	struct tdm_held *held, own_held; /* credit.c */
	struct tdm_stage *stage;	 /* the loop's */
};

/* Something was put on a list for the next pass: a sleeper must make it. */
static inline void tdm_tcp_nudge(struct tdm_tcp *tcp)
{
	if (tdm_unlikely(tdm_engine_watched(tcp->a.engine)))
		tdm_loop_wake(tcp->a.loop);
}

#endif /* TDM_TCP_WIRE_TCP_H */
