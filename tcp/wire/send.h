/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When output of a connection is written; send.c. tdm_tx_send(), a send from
 * its call on, is in wire.h. Lock: held.
 */
#ifndef TDM_TCP_WIRE_SEND_H
#define TDM_TCP_WIRE_SEND_H

#include "tcp/wire/tcp.h"

/*
 * Commit what may be sent now, and give the kernel as many committed bytes as
 * it takes, within the limit of a pass.
 */
void tdm_conn_push(struct tdm_conn *c);

/*
 * Called when something waits for a session of @c: begins to make one, unless it
 * is being made. @c may have failed afterwards.
 */
void tdm_send_begin(struct tdm_conn *c);

/*
 * Called when output was committed: sends it now if nothing was sent in this
 * pass yet, else in the next pass.
 */
void tdm_conn_kick(struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_SEND_H */
