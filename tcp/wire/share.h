/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many file descriptors strangers get: peers that prove no key and are not
 * in the address vector. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_SHARE_H
#define TDM_TCP_WIRE_SHARE_H

#include "tcp/wire/tcp.h"

/*
 * Is there a peer at the IP of @from in the AV? May be wrong if not 0, never if
 * 0.
 */
int tdm_share_known(const struct tdm_tcp *tcp, const struct tdm_addr *from);

/*
 * May @addr have a session on @fd? When descriptors are short a stranger's
 * session may be ended for it. Returns 0: not now.
 */
int tdm_share_ok(struct tdm_tcp *tcp, int fd, const struct tdm_addr *addr);

/* Is @fd one of the last, which are reserved for peers in the AV? */
int tdm_share_reserved(int fd);

/*
 * End the stranger's session that has been unused for longest, of those at the
 * IP of @addr if that is not NULL. Returns 0: none has been unused for long.
 */
int tdm_share_evict(struct tdm_tcp *tcp, const struct tdm_addr *addr);

#endif /* TDM_TCP_WIRE_SHARE_H */
