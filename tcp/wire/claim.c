/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity that a guest claims, and whether it is believed.
 *
 * A guest is an accepted connection that has not said HELLO yet (listen.c). A
 * HELLO claims an address. The claim is refused
 *  - when the connection comes from another IP;
 *  - when it is the address of this endpoint, from any other process;
 *  - when the HELLO has our own incarnation id, from any socket but that of our
 *    own connection to ourselves;
 *  - when this endpoint has no keys, it is an address of this host, and the
 *    kernel says that the caller and the listener there belong to different
 *    users or that nobody listens, or cannot be asked for want of descriptors
 *    or memory;
 *  - while strangers may use no more descriptors (share.c): told BUSY;
 *  - while the peer of that address has a session, by TCP or by any other
 *    transport of the endpoint: a live session is never displaced. The newcomer
 *    is told BUSY or DUPLICATE and tries again; over a TCP session an ACK is
 *    sent meanwhile, so that the kernel notices a dead peer;
 *  - while a HELLO of ours, which is the one that is kept, may have been answered:
 *    told DUPLICATE.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Claims".
 */
#include "tcp/wire/claim.h"

#include <errno.h>
#include <string.h>

#include "av/locality.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/diag.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/resume.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/send.h"
#include "tcp/wire/share.h"

/*
 * Not 0 when the peer of @old has closed the connection. Reads all that it had
 * sent before.
 */
static int gone(struct tdm_conn *old)
{
	tdm_rx_drain(old);
	if (!tdm_conn_live(old))
		return 1;
	if (!tdm_conn_open(old)) {
		/* Its listener knows whether there is still that session. */
		tdm_resume_hurry(old);
		return !tdm_conn_live(old);
	}
	/* Send an ACK: if the peer is gone, the kernel reports it soon. */
	old->ack_now = 1;
	tdm_conn_push(old);
	return 0;
}

/*
 * Not 0 when the caller at @from, whose HELLO @g has our own incarnation id, is a
 * connection of ours to ourselves. The id proves nothing: a HELLO carries it to
 * each peer.
 */
static int is_own(struct tdm_tcp *tcp, const struct tdm_addr *from,
		  const struct tdm_wire_greeting *g)
{
	const struct tdm_conn *c = tdm_conn_find(tcp, &g->addr);
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tdm_addr name;

	return c && c->state == TDM_CONN_GREETING &&
	       !tdm_os.getsockname(c->io.fd, (struct sockaddr *)&sa, &len) &&
	       !tdm_addr_from_bind(&name, &sa, len) &&
	       tdm_addr_equal(&name, from);
}

/* Not 0 when @g, of another incarnation, claims the address of @tcp itself. */
static int claims_ours(const struct tdm_tcp *tcp,
		       const struct tdm_wire_greeting *g)
{
	struct tdm_addr own = tcp->addr;

	own.key = g->addr.key;
	return tdm_addr_equal(&own, &g->addr);
}

/*
 * Ask the kernel (@nl) whether the user who calls from @from on @fd is the one
 * who listens at @claimed. Returns not 0: yes, or the kernel gives no
 * information, since it cannot find even our own listener.
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
	/* A closed socket has uid 0, which means nothing. */
	return caller.held && !caller.listening && peer.listening &&
	       caller.uid == peer.uid;
}

/*
 * Not 0 when the caller may be the owner of @claimed: for an address of this
 * host the kernel is asked. A proven key needs no such check, and an address of
 * another host cannot be checked.
 */
static int owns(const struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		const struct tdm_addr *claimed)
{
	int nl, ret;

	if (tcp->a.keys || !tdm_locality_is_here(claimed))
		return 1;
	nl = tdm_diag_open();
	/* The guest will try again when there are descriptors and memory. */
	if (nl == -EMFILE || nl == -ENFILE || nl == -ENOMEM || nl == -ENOBUFS)
		return 0;
	if (nl < 0)
		return 1;
	ret = users_agree(nl, tcp, fd, from, claimed);
	tdm_os.close(nl);
	return ret;
}

int tdm_claim_same_ip(const struct tdm_addr *from, struct tdm_wire_greeting *g)
{
	if (from->u.sa.sa_family == AF_INET6 &&
	    g->addr.u.sa.sa_family == AF_INET6)
		g->addr.u.in6.sin6_scope_id = from->u.in6.sin6_scope_id;
	return tdm_addr_same_ip(&g->addr, from);
}

/* Have the attempt of @c to connect end, or begin, soon. */
static void hurry(struct tdm_conn *c)
{
	uint64_t now = tdm_os.now_ns();

	if (c->state == TDM_CONN_IDLE || c->state == TDM_CONN_SILENT) {
		c->wanted = 1;
		tdm_send_begin(c);
	} else if (c->state == TDM_CONN_BACKOFF) {
		tdm_setup_disarm(c);
		tdm_hello_connect(c);
	} else if (c->state == TDM_CONN_CONNECTING &&
		   now - c->setup->entered_ns >
			   TDM_CONNECT_LONG_MS * 1000000ull) {
		tdm_conn_retry(c, FI_ETIMEDOUT);
	}
}

/*
 * Not 0 when the HELLO @g of the peer of @c crosses ours, which is the one of the two
 * that is kept. So it does when ours may have been answered and the connection broke:
 * the peer has a session then that we do not know of yet, and has given @g up.
 */
static int crosses(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	if (c->state == TDM_CONN_GREETING)
		return 1;
	if (tdm_conn_live(c) || c->state == TDM_CONN_DEAD || !c->unsure ||
	    (c->known && memcmp(c->id, g->id, sizeof(c->id))))
		return 0;
	hurry(c);
	return c->unsure && c->state != TDM_CONN_DEAD;
}

int tdm_claim_check(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g)
{
	struct tdm_conn *c;
	int order;

	if (!tdm_claim_same_ip(from, g))
		return -1;
	order = memcmp(g->id, tcp->id, sizeof(tcp->id));
	if (!order)
		return is_own(tcp, from, g) ? 0 : -1;
	if (claims_ours(tcp, g) || !owns(tcp, fd, from, &g->addr))
		return -1;
	if (tcp->a.taken && tcp->a.taken(tcp->a.arg, &g->addr))
		return TDM_WIRE_R_BUSY;
	c = tdm_conn_find(tcp, &g->addr);
	if (c && tdm_conn_live(c) && !tdm_resume_asked_again(c, g) && !gone(c))
		return memcmp(c->id, g->id, sizeof(c->id)) ?
			       TDM_WIRE_R_BUSY :
			       TDM_WIRE_R_DUPLICATE;
	if (c && order > 0 && crosses(c, g))
		return TDM_WIRE_R_DUPLICATE;
	return tdm_share_ok(tcp, fd, &g->addr) ? 0 : TDM_WIRE_R_BUSY;
}
