/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that have left and wait for the peer's acknowledgement; sent.c says
 * why the peer alone is not waited for. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_SENT_H
#define TDM_TCP_WIRE_SENT_H

struct tdm_conn;
struct tdm_tcp;

/* Prepare tcp->sent and its timer. */
void tdm_sent_init(struct tdm_tcp *tcp);

/* @c has a send in ackq. */
void tdm_sent_add(struct tdm_conn *c);

/* Once per pass, and before a sleep; while tcp->sent is not empty. */
void tdm_sent_pass(struct tdm_tcp *tcp);
void tdm_sent_arm(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_SENT_H */
