/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many file descriptors strangers get: peers that prove no key and are not
 * in the address vector. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_SHARE_H
#define TDM_TCP_WIRE_SHARE_H

#include "tcp/wire/tcp.h"

/* Do we know a peer at the IP of @from? Perhaps wrongly yes, never wrongly no. */
int tdm_share_known(const struct tdm_tcp *tcp, const struct tdm_addr *from);

/*
 * May @addr have a session on @fd? When descriptors are short a stranger's
 * session may be ended for it. 0: not now.
 */
int tdm_share_ok(struct tdm_tcp *tcp, int fd, const struct tdm_addr *addr);

/* Is @fd one of the last, which are kept for those we know? */
int tdm_share_reserved(int fd);

/*
 * End the session of a stranger that is unused for longest, of those at the IP
 * of @addr if that is not NULL. 0: there is none that is unused for a while.
 */
int tdm_share_evict(struct tdm_tcp *tcp, const struct tdm_addr *addr);

#endif /* TDM_TCP_WIRE_SHARE_H */
