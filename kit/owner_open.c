/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about what an owner asks a peer for and lends to it.
 *
 * No lock: one thread.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/app.h"
#include "kit/peer.h"
#include "kit/rule.h"

static void asks(void)
{
	kit_app_open(KIT_APP_UNMET);
	if (!kit_peer_seen.shared)
		kit_broken("fi_getinfo is asked for " KIT_PEER_NAME
			   " without FI_PEER");
	kit_peer_no_fault(KIT_ON_INFO);
}

/* Objects of @kind, of which the owner need not lend any. */
static void lends(enum kit_object kind, enum kit_about subject,
		  const char *what)
{
	kit_app_open(KIT_APP_COUNTED);
	kit_peer_no_fault(subject);
	if (!kit_peer_seen.imports[kind])
		kit_absent("the owner lends no %s", what);
}

static void lends_cq(void)
{
	lends(KIT_CQ, KIT_ON_CQ, "completion queue");
}

static void lends_cntr(void)
{
	lends(KIT_CNTR, KIT_ON_CNTR, "counter");
}

static void lends_domain(void)
{
	lends(KIT_DOMAIN, KIT_ON_DOMAIN, "domain");
}

static void lends_eq(void)
{
	lends(KIT_EQ, KIT_ON_EQ, "event queue");
}

static void lends_srx(void)
{
	lends(KIT_SRX, KIT_ON_SRX, "receive context");
}

static void srx_ep_calls(void)
{
	lends(KIT_SRX, KIT_ON_SRX_EP, "receive context");
}

static void binds(void)
{
	kit_app_open(0);
	kit_peer_no_fault(KIT_ON_BIND);
}

/* ---- refusals ------------------------------------------------------------- */

/*
 * The application has opened all, though the peer has refused: a message arrives
 * all the same, or ends in an error.
 */
static void carry(void)
{
	const struct kit_app_msg m = { KIT_APP_FIRST, 100, 7, 0, 0 };
	struct kit_op *recv = kit_app_recv(1, &m, 100, -1), *send;

	send = kit_app_send(0, 1, &m);
	kit_app_wait(send);
	if (send->err)
		return;
	kit_app_wait(recv);
	kit_app_check(recv, send, &m);
}

static void refuse(enum kit_object kind)
{
	int ret;

	kit_peer_do.refuse[kind] = 1;
	ret = kit_app_try_open(KIT_APP_COUNTED);
	if (!ret)
		carry();
	if (!kit_peer_seen.infos)
		kit_absent("the owner does not ask for " KIT_PEER_NAME);
	if (!kit_peer_seen.refused)
		kit_absent("the owner opens none");
}

static void refuse_info(void)
{
	int ret;

	kit_peer_do.refuse_info = 1;
	ret = kit_app_try_open(0);
	if (!ret)
		carry();
	if (!kit_peer_seen.infos)
		kit_absent("the owner does not ask for " KIT_PEER_NAME);
}

static void refuse_domain(void)
{
	refuse(KIT_DOMAIN);
}

static void refuse_eq(void)
{
	refuse(KIT_EQ);
}

static void refuse_cq(void)
{
	refuse(KIT_CQ);
}

static void refuse_cntr(void)
{
	refuse(KIT_CNTR);
}

static void refuse_av(void)
{
	refuse(KIT_AV);
}

static void refuse_srx(void)
{
	refuse(KIT_SRX);
}

static void refuse_ep(void)
{
	refuse(KIT_EP);
}

#define PEER "fi_peer(3)"

const struct kit_rule kit_owner_open[] = {
	{ "lend.info", "fi_getinfo(3)", "CAPABILITIES", 0,
	  "the owner asks for its peer by FI_PEER", asks },
	{ "lend.cq", PEER, "PEER CQ", 3,
	  "fi_cq_open has FI_PEER and a context with a queue, its class and calls",
	  lends_cq },
	{ "lend.cntr", PEER, "PEER COUNTER", 2,
	  "fi_cntr_open has FI_PEER and a context with a counter, its class and "
	  "calls",
	  lends_cntr },
	{ "lend.domain", PEER, "PEER DOMAIN", 3,
	  "fi_domain2 with FI_PEER has a context with the owner's domain",
	  lends_domain },
	{ "lend.eq", PEER, "PEER EQ", 3,
	  "fi_eq_open with FI_PEER has a context with the owner's queue",
	  lends_eq },
	{ "lend.srx", PEER, "PEER SRX", 3,
	  "fi_srx_context has FI_PEER and a context with all but the peer's calls",
	  lends_srx },
	{ "lend.calls", "guide", NULL, 0,
	  "the receive context that is lent has calls of an endpoint",
	  srx_ep_calls },
	{ "lend.bind", PEER, "EXAMPLE PEER SRX SETUP", 1,
	  "the peer's own objects are bound to its endpoint, all before "
	  "fi_enable",
	  binds },
	{ "refuse.info", PEER, "EXAMPLE PEER CQ SETUP", 1,
	  "a peer that fi_getinfo does not offer is an error or does without",
	  refuse_info },
	{ "refuse.domain", PEER, "PEER DOMAIN", 3,
	  "a domain that is refused is an error or does without",
	  refuse_domain },
	{ "refuse.eq", PEER, "PEER EQ", 3,
	  "an event queue that is refused is an error or does without",
	  refuse_eq },
	{ "refuse.cq", PEER, "PEER CQ", 3,
	  "a queue that is refused is an error or does without", refuse_cq },
	{ "refuse.cntr", PEER, "PEER COUNTER", 2,
	  "a counter that is refused is an error or does without",
	  refuse_cntr },
	{ "refuse.av", "fi_av(3)", "fi_av_open", 0,
	  "an address vector that is refused is an error or does without",
	  refuse_av },
	{ "refuse.srx", PEER, "PEER SRX", 2,
	  "a receive context that is refused is an error or does without",
	  refuse_srx },
	{ "refuse.ep", "fi_endpoint(3)", "fi_endpoint", 0,
	  "an endpoint that is refused is an error or does without",
	  refuse_ep },
	{ 0 },
};
