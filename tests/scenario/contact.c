/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of first contact: see play.h. Locking: none, one thread. */
#include "cast.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"

static const char key[] = "the key of this job, long enough";
static const char other_key[] = "the key of another job, as long";

void tdt_set_six(struct tdt_attr *attr)
{
	attr->addr_format = FI_SOCKADDR_IN6;
	attr->node = "::1";
}

void tdt_set_key(struct tdt_attr *attr)
{
	attr->key = key;
	attr->key_size = sizeof(key) - 1;
}

/* The stage restores tdm_env. */
void tdt_set_tls(struct tdt_attr *attr)
{
	tdt_set_key(attr);
	tdm_env.tls = 1;
}

void tdt_act_contact(struct tdt_play *p)
{
	tdt_play_pass(p, 0, 1, 8, 1);
	tdt_play_wait(p);
	tdt_play_pass(p, 1, 0, 3000, 0);
	tdt_play_pass(p, 0, 1, 100000, 1);
	tdt_play_wait(p);
}

/* Both speak before either has made progress. */
void tdt_act_simultaneous(struct tdt_play *p)
{
	tdt_play_pass(p, 0, 1, 8 + tdt_play_random(p, 64), 1);
	tdt_play_pass(p, 1, 0, 8 + tdt_play_random(p, 64), 1);
	tdt_play_pass(p, 0, 1, 20000, 1);
	tdt_play_pass(p, 1, 0, 20000, 1);
	tdt_play_wait(p);
}

/* Two keys: no message passes, and the sender is told why. */
void tdt_act_wrong_key(struct tdt_play *p)
{
	struct tdt_attr attr;
	struct tdt_op op;
	struct tdt_move *m;

	/* It tries as long: the key may be the right one next time. */
	tdm_env.conn_timeout_ms = 200;
	tdt_play_attr(p, &attr);
	attr.eps = 1;
	attr.key = other_key;
	attr.key_size = sizeof(other_key) - 1;
	if (tdt_play_more(p, &attr) || tdt_play_know(p, 0, 2))
		return;
	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.len = 8;
	m = tdt_play_op(p, 0, 2, &op, NULL);
	m->expect = FI_EKEYREJECTED;
	tdt_play_pass(p, 0, 1, 8, 1);
	tdt_play_wait(p);
	tdt_play_close_more(p);
}

const char *tdt_port_of(struct tdt_play *p, size_t ep)
{
	static char port[16];
	struct sockaddr_in in;

	memcpy(&in, tdt_play_ep(p, ep)->name, sizeof(in));
	snprintf(port, sizeof(port), "%u", ntohs(in.sin_port));
	return port;
}

/* A peer that is known before it is there. */
void tdt_act_refused_then_up(struct tdt_play *p)
{
	struct tdt_attr attr;
	struct tdt_move *out;
	struct tdt_op op;
	int i;

	tdm_env.refused_timeout_ms = (unsigned)TDM_REFUSED_UNSET;
	tdt_play_attr(p, &attr);
	attr.eps = 1;
	if (tdt_play_more(p, &attr) || tdt_play_know(p, 0, 2))
		return;
	attr.service = tdt_port_of(p, 2);
	tdt_play_close_more(p);
	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.tagged = 1;
	op.len = 500;
	out = tdt_play_op(p, 0, 2, &op, NULL);
	for (i = 0; i < 3; i++)
		tdt_play_turn(p);
	if (!tdt_play_more(p, &attr)) {
		op.call = TDT_RECV;
		tdt_play_op(p, 2, TDT_PLAY_EPS, &op, out);
		tdt_play_wait(p);
	} else {
		tdt_play_drop(p);
	}
	tdt_play_close_more(p);
}

/* One side does not want shared memory. */
void tdt_set_refuses(struct tdt_attr *attr)
{
	attr->tcp_last = 1;
}
