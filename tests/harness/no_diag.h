/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests in which a peer is made of bytes, and its claims are to be believed. */
#ifndef TDT_NO_DIAG_H
#define TDT_NO_DIAG_H

#include <errno.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/os.h"

/* tdm_os.socket(): a kernel that does not say whose a TCP socket is, sock_diag(7). */
static inline int tdt_no_diag(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK)
		return tdm_os_system.socket(domain, type, protocol);
	errno = EPROTONOSUPPORT;
	return -1;
}

#ifdef __cplusplus
}
#endif

#endif /* TDT_NO_DIAG_H */
