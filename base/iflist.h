/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user's list of network interfaces, FI_TANDEM_IFACE of fi_tandem(7): names,
 * patterns, addresses and networks to use or to exclude. Pure: no state, no
 * system call.
 */
#ifndef TDM_BASE_IFLIST_H
#define TDM_BASE_IFLIST_H

#include <sys/socket.h>

/*
 * Not 0 when @list is valid: no item is too long, and each with a slash is a
 * network.
 */
int tdm_iflist_ok(const char *list);

/*
 * The rank of the interface @name with address @ip (IPv4 or IPv6): the position
 * in @list, from 1, of the first item that matches it; 0: the interface is
 * excluded.
 */
unsigned tdm_iflist_place(const char *list, const char *name,
			  const struct sockaddr *ip);

#endif /* TDM_BASE_IFLIST_H */
