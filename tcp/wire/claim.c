/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity that a guest claims, and whether it is believed.
 *
 * A HELLO claims an address. It is not believed
 *  - when the connection comes from another IP;
 *  - when it is the address of this endpoint, from anybody else;
 *  - when it is an address of this host and the kernel says that whoever calls
 *    and whoever listens there are different users, or that nobody listens;
 *  - while the peer of that address has a session, by TCP or by any other
 *    transport of the endpoint: a live session is never displaced. The newcomer
 *    is told BUSY or DUPLICATE and comes again; meanwhile the session is made
 *    to show whether its peer is there.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Claims".
 */
#include "tcp/wire/claim.h"
#include "av/locality.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/diag.h"
#include "tcp/wire/out.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/share.h"

#include <errno.h>
#include <string.h>

/* Has the peer of @old hung up? Reads what it had said before. */
static int gone(struct tdm_conn *old)
{
	while (tdm_conn_live(old) && tdm_rx_ready(old))
		;
	if (!tdm_conn_live(old))
		return 1;
	/* Say something: if nobody is there, the kernel will know soon. */
	old->ack_now = 1;
	tdm_out_push(old);
	return 0;
}

/* Does @g, of another incarnation, claim the address of @tcp itself? */
static int claims_ours(const struct tdm_tcp *tcp,
		       const struct tdm_wire_greeting *g)
{
	struct tdm_addr own = tcp->addr;

	own.key = g->addr.key;
	return tdm_addr_equal(&own, &g->addr);
}

/*
 * Ask @nl whether whoever calls from @from on @fd is the user who listens at
 * @claimed. A kernel that does not know our own listener tells nothing: yes.
 */
static int users_agree(int nl, const struct tdm_tcp *tcp, int fd,
		       const struct tdm_addr *from,
		       const struct tdm_addr *claimed)
{
	struct tdm_diag_sock own, caller, peer;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tdm_addr here;

	if (tdm_diag_find(nl, &tcp->addr, NULL, &own))
		return 1;
	if (tdm_os.getsockname(fd, (struct sockaddr *)&sa, &len) ||
	    tdm_addr_from_bind(&here, &sa, len) ||
	    tdm_diag_find(nl, from, &here, &caller) ||
	    tdm_diag_find(nl, claimed, NULL, &peer))
		return 0;
	/* The uid of a socket that was closed is 0, which means nothing. */
	return caller.held && !caller.listening && peer.listening &&
	       caller.uid == peer.uid;
}

/*
 * The owner of an address of this host is known to the kernel; a key says more,
 * and an address of another host only its network can vouch for.
 */
static int owns(const struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		const struct tdm_addr *claimed)
{
	int nl, ret;

	if (tcp->a.keys || !tdm_locality_is_here(claimed))
		return 1;
	nl = tdm_diag_open();
	/* It comes again when there are descriptors and memory. */
	if (nl == -EMFILE || nl == -ENFILE || nl == -ENOMEM || nl == -ENOBUFS)
		return 0;
	if (nl < 0)
		return 1;
	ret = users_agree(nl, tcp, fd, from, claimed);
	tdm_os.close(nl);
	return ret;
}

int tdm_claim_check(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g)
{
	struct tdm_conn *c;
	int order;

	if (from->u.sa.sa_family == AF_INET6 &&
	    g->addr.u.sa.sa_family == AF_INET6)
		g->addr.u.in6.sin6_scope_id = from->u.in6.sin6_scope_id;
	if (!tdm_addr_same_ip(&g->addr, from))
		return -1;
	order = memcmp(g->id, tcp->id, sizeof(tcp->id));
	if (!order)
		return 0;
	if (claims_ours(tcp, g) || !owns(tcp, fd, from, &g->addr))
		return -1;
	if (tcp->a.taken && tcp->a.taken(tcp->a.arg, &g->addr))
		return TDM_WIRE_R_BUSY;
	c = tdm_conn_find(tcp, &g->addr);
	if (c && tdm_conn_live(c) && !gone(c))
		return memcmp(c->id, g->id, sizeof(c->id)) ?
			       TDM_WIRE_R_BUSY :
			       TDM_WIRE_R_DUPLICATE;
	if (c && c->state == TDM_CONN_GREETING && order > 0)
		return TDM_WIRE_R_DUPLICATE;
	return tdm_share_ok(tcp, fd, &g->addr) ? 0 : TDM_WIRE_R_BUSY;
}
