/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the transport tells of itself and of a connection for statistics; a part
 * of its interface. Computed when asked. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_LOOK_H
#define TDM_TCP_WIRE_LOOK_H

#include <stddef.h>
#include <stdint.h>

struct tdm_conn;
struct tdm_look;
struct tdm_tcp;

struct tdm_tcp_look {
	size_t open;	  /* connections with a descriptor */
	size_t used;	  /* operations that count against tx_attr.size */
	uint64_t account; /* bytes of unexpected messages, and promised ones */
	uint64_t retries; /* attempts to connect that have failed */
};

/* Describe @tcp. Out: *@out. */
void tdm_tcp_look(const struct tdm_tcp *tcp, struct tdm_tcp_look *out);

/* Describe @conn. Out: *@out, which the caller has
 * zeroed; `held` is added up. */
void tdm_conn_look(const struct tdm_conn *conn, struct tdm_look *out);

#endif /* TDM_TCP_WIRE_LOOK_H */
