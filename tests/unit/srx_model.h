/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slow model of the receive side: two lists, in the order of posting and
 * of arrival, searched from the front. One model at a time.
 */
#ifndef TDT_SRX_MODEL_H
#define TDT_SRX_MODEL_H

#include "peer/srx.h"
#include "srx_schedule.h"

enum {
	STEPS = 20,
	SOURCES = 3,
	TAGS = 3,
	SIZE = 8, /* receives that are promised: there may be more */
	BUF = 64,
	MIN = 8,
};

#define ANY FI_ADDR_UNSPEC

enum rx_state { UNUSED, POSTED, TAKEN, CANCELLED, CLAIMING };

struct tdt_rx {
	struct fi_context ctx;
	char buf[BUF];
	enum rx_state state;
	int tagged, multi;
	fi_addr_t src;
	uint64_t tag, ignore;
	size_t len, used;
	int owed;  /* messages it was given that have not ended */
	int ended; /* entries that end it */
	int msg;   /* CLAIMING: which */
};

enum msg_state { NOWHERE, WAITING, GIVEN, CLAIMED, LOST, DROPPED };

struct tdt_msg {
	uint64_t id;
	enum msg_state state;
	int tagged, from, rx, cut;
	fi_addr_t src, real;
	uint64_t tag;
	size_t size;
	struct fi_peer_rx_entry *entry;
};

struct tdt_model {
	const char *why;
	uint64_t dice;
	int directed[2]; /* untagged, tagged */
	unsigned known;	 /* bit per source that get_addr() names */
	int hold[2];	 /* transports keep what they fill */
	struct tdt_rx rx[STEPS];
	struct tdt_msg msg[STEPS];
	int nrx, nmsg, nheld, nposted, nwaiting;
	int held[STEPS], posted[STEPS], waiting[STEPS];
	int peek_err; /* of the last peek: -1 none, else fi_errno */
	uint64_t peek_tag;
	fi_addr_t peek_src;
	size_t peek_len;
	void *peeking;
	struct tdm_srx *srx;
	struct fid_peer_srx *port[2];
	struct tdm_done done;
	struct tdt_schedule_stats *stats;
};

extern struct tdt_model tdt_model;

/* The first difference is kept. */
void tdt_model_differs(const char *why);

/* A random number below @n. */
unsigned tdt_model_upto(unsigned n);

void tdt_model_list_remove(int *list, int *n, int value);

/* Message @msg arrives: 1 when a receive takes it. */
int tdt_model_arrive(int msg);

/* The waiting message that @r would take, or -1. */
int tdt_model_find(const struct tdt_rx *r);

/* Receive @rx is posted, and takes what waits for it. */
void tdt_model_post(int rx);

/* The sources that are known are told to transport @from. */
void tdt_model_resolve(int from);

#endif /* TDT_SRX_MODEL_H */
