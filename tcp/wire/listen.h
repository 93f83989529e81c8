/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of an endpoint and its guests; listen.c. Lock: held. */
#ifndef TDM_TCP_WIRE_LISTEN_H
#define TDM_TCP_WIRE_LISTEN_H

#include "tcp/wire/tcp.h"

/* Accept no more callers and drop all guests, but keep the port. */
void tdm_listen_stop(struct tdm_tcp *tcp);

/* As tdm_listen_stop(), and release the port. */
void tdm_listen_close(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_LISTEN_H */
