/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many file descriptors strangers get: peers that prove no key and are not
 * in the address vector. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_SHARE_H
#define TDM_TCP_WIRE_SHARE_H

#include "tcp/wire/tcp.h"

/*
 * Not 0 when a peer at the IP of @from may be in the AV; 0: there is certainly
 * none.
 */
int tdm_share_known(const struct tdm_tcp *tcp, const struct tdm_addr *from);

/*
 * Not 0 when @addr may have a session on @fd now. When descriptors are scarce,
 * a stranger's session may be ended to make room for it.
 */
int tdm_share_ok(struct tdm_tcp *tcp, int fd, const struct tdm_addr *addr);

/* Not 0 when @fd is one of the last, which are reserved for peers in the AV. */
int tdm_share_reserved(int fd);

/*
 * End the stranger's session that has been unused for longest, only among those
 * at the IP of @addr if that is not NULL. Returns 0: none has been unused for
 * long.
 */
int tdm_share_evict(struct tdm_tcp *tcp, const struct tdm_addr *addr);

/*
 * Returns how many announced operations all strangers may have unanswered now, or that
 * these are 65536 and more.
 */
uint64_t tdm_share_announced(const struct tdm_tcp *tcp);

/*
 * Called when memory is out and does not come back: ends the stranger's session that
 * holds most of it. Returns 0: none holds more than 64 KiB.
 */
int tdm_share_relieve(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_SHARE_H */
