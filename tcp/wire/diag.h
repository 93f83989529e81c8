/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the kernel about TCP sockets of this network namespace,
 * sock_diag(7): to which user they belong. Lock: not needed.
 */
#ifndef TDM_TCP_WIRE_DIAG_H
#define TDM_TCP_WIRE_DIAG_H

#include "av/addr.h"

struct tdm_diag_sock {
	uint32_t uid; /* user who made the socket; meaningless when not held */
	int held;     /* not 0: a process has the socket open */
	int listening;
};

/*
 * Returns a descriptor for questions, or -errno. The caller closes it by
 * tdm_os.close().
 */
int tdm_diag_open(void) tdm_must_check;

/*
 * Ask over @fd for the socket at @local that is connected to @remote, or, if
 * that is NULL, that listens. Out: *@sock. Errors: -FI_ENOENT: there is none,
 * or the kernel does not tell; others of netlink(7).
 */
int tdm_diag_find(int fd, const struct tdm_addr *local,
		  const struct tdm_addr *remote,
		  struct tdm_diag_sock *sock) tdm_must_check;

#endif /* TDM_TCP_WIRE_DIAG_H */
