/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets and connections of simulated TCP, for sim_net.c, where things happen in
 * time, and sim_tcp.c, which has the calls.
 *
 * Locking: none, one thread.
 */
#ifndef TDS_SIM_NET_H
#define TDS_SIM_NET_H

#include <netinet/in.h>

#include "sim_file.h"
#include "sim_flow.h"

enum tds_tcp_state {
	TDS_FRESH,
	TDS_BOUND,
	TDS_LISTENING,
	TDS_CONNECTING,
	TDS_FAILED,
	TDS_UP
};

struct tds_conn;

struct tds_sock {
	struct tds_file f;
	struct tdm_list node; /* socks */
	enum tds_tcp_state state;
	int host;
	struct sockaddr_in local, remote;
	struct tdm_list queue; /* TDS_LISTENING: struct tds_conn, by in_queue */
	unsigned queued;
	struct tds_conn *conn; /* TDS_UP */
	int side, err, reset;
	uint64_t due, since; /* TDS_CONNECTING */
};

struct tds_conn {
	struct tdm_list node; /* conns */
	struct tdm_list in_queue;
	int queued;
	struct sockaddr_in name[2];
	int host[2];
	struct tds_sock *end[2]; /* [1] accepted it; NULL: closed */
	int closed[2];
	struct tds_flow to[2];
	uint64_t rst_due[2]; /* 0: none */
	uint64_t heard;	     /* when something arrived last */
};

/* sim_net.c: all of them; partitions. */
extern struct tdm_list tds_socks, tds_conns;
int tds_parted(int a, int b);

/* To be called by whoever changes what is due, or when: tds_net_run() looks again. */
void tds_net_changed(void);

/* The host with @ip, or -1. */
int tds_host_of(struct in_addr ip);

/* When a segment from host @a arrives at host @b. */
uint64_t tds_arrival(int a, int b);

/* A port that nobody has had, network byte order. */
in_port_t tds_port_new(void);

#endif /* TDS_SIM_NET_H */
