/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user's list of network interfaces, FI_TANDEM_IFACE of fi_tandem(7): names,
 * patterns, addresses and networks, and what is left out. Pure: no state, no
 * system call.
 */
#ifndef TDM_BASE_IFLIST_H
#define TDM_BASE_IFLIST_H

#include <sys/socket.h>

/* Not 0 when every network in @list is one. */
int tdm_iflist_ok(const char *list);

/*
 * Where the interface @name with address @ip, IPv4 or IPv6, stands in @list,
 * from 1; 0: it is left out.
 */
unsigned tdm_iflist_place(const char *list, const char *name,
			  const struct sockaddr *ip);

#endif /* TDM_BASE_IFLIST_H */
