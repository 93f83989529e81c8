/* SPDX-License-Identifier: BSD-2-Clause */
/* The address that an endpoint is bound to; tdm_tcp_bind() of wire.h. port.c. */
#ifndef TDM_TCP_WIRE_PORT_H
#define TDM_TCP_WIRE_PORT_H

#include "base/base.h"

/*
 * Set SO_REUSEADDR on @fd: bind(2) then accepts a port that old connections
 * still have, and later processes can do the same. It works only if the old
 * socket and its connections had set the option as well. Returns 0 or -errno.
 */
int tdm_port_reuse(int fd) tdm_must_check;

#endif /* TDM_TCP_WIRE_PORT_H */
