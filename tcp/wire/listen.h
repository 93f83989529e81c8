/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of an endpoint and its guests; listen.c. Lock: held. */
#ifndef TDM_TCP_WIRE_LISTEN_H
#define TDM_TCP_WIRE_LISTEN_H

#include "tcp/wire/tcp.h"

/* Accept nobody any more and drop all guests; the port stays ours. */
void tdm_listen_stop(struct tdm_tcp *tcp);

/* The same, and give the port back. */
void tdm_listen_close(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_LISTEN_H */
