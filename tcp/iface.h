/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network interfaces that fi_getinfo(3) offers: a table of them, and its
 * order; fi_tandem(7), ADDRESSES.
 *
 * iface.c is pure: no state, no system call. ifscan.c asks the kernel, offer.c
 * uses both.
 */
#ifndef TDM_TCP_IFACE_H
#define TDM_TCP_IFACE_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

#include "av/addr.h"

/* The kind of an interface address; lower is better. */
enum tdm_iface_kind {
	TDM_IFACE_REAL,	   /* hardware, or packets leave the host by it */
	TDM_IFACE_VIRTUAL, /* bridge, tunnel and the like */
	TDM_IFACE_SAME,	   /* its address is often the same on every host */
	TDM_IFACE_LOOPBACK,
	TDM_IFACE_LINK_LOCAL, /* IPv6, with a scope */
};

enum {
	TDM_IFACE_DRIVER_BYTES = 32,
	TDM_IFACE_BUS_BYTES = 32,
	TDM_IFACE_HW_BYTES = 20, /* InfiniBand; Ethernet has 6 */
	TDM_NETWORK_STR_BYTES = INET6_ADDRSTRLEN + 4, /* "/128" */
};

/* One address of an interface. The fields of the interface are the same in
 * all its addresses. */
struct tdm_iface {
	char name[IF_NAMESIZE];
	struct tdm_addr ip; /* port 0 */
	unsigned bits;	    /* bits of @ip that are the network's */
	unsigned flags;	    /* IFF_* of netdevice(7) */
	unsigned order;	    /* of the interface in the kernel's list */
	char driver[TDM_IFACE_DRIVER_BYTES]; /* "": not known */
	char bus[TDM_IFACE_BUS_BYTES];	     /* "0000:3b:00.0"; "": not known */
	char firmware[TDM_IFACE_DRIVER_BYTES]; /* "": not known */
	uint64_t speed_bps;		       /* 0: not known */
	size_t mtu_bytes;		       /* 0: not known */
	uint16_t hw_type;		       /* ARPHRD_* */
	uint8_t hw_len;			       /* 0: no address of the link */
	uint8_t hw[TDM_IFACE_HW_BYTES];

	/* About the present request, set before the sort; 0 at first. */
	int via;	/* 1: the destination is reached from @ip */
	int outside;	/* packets leave the host from @ip: 2 IPv4, 1 IPv6 */
	int gateway;	/* highest @outside of the interface's addresses */
	unsigned place; /* position in the user's list */
};

/* Returns the kind of @i; uses name, ip, flags, driver, outside and gateway. */
enum tdm_iface_kind tdm_iface_kind(const struct tdm_iface *i);

/* Not 0 when the interface has a link. */
int tdm_iface_has_carrier(const struct tdm_iface *i);

/* Set `gateway` of each entry from `outside` of all. */
void tdm_iface_find_gateways(struct tdm_iface *table, size_t count);

/* Sort @table, the best first. */
void tdm_iface_sort(struct tdm_iface *table, size_t count);

/*
 * Write the network of @i as text, "192.0.2.0/24", to @buf of
 * TDM_NETWORK_STR_BYTES. Returns @buf.
 */
const char *tdm_iface_network(const struct tdm_iface *i, char *buf);

/* The part of a request to fi_getinfo(3) that chooses among interfaces. */
struct tdm_iface_ask {
	const char *name;		   /* of the interface, or NULL */
	const char *network;		   /* or NULL */
	const struct tdm_addr *src, *dest; /* or NULL */
	int family;			   /* or AF_UNSPEC */
	int both_in_one; /* an interface has one offer, not one per family */
};

#endif /* TDM_TCP_IFACE_H */
