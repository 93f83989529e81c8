/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application above an owner under test; see app.h.
 *
 * Lock: none; one thread.
 */
#include "kit/app.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "kit/peer.h"
#include "kit/rule.h"

enum { PASSES = 64, ROOM = 64 };

struct kit_app kit_app;

static int errors_of_close;

/* ---- finding the peer ----------------------------------------------------- */

/* The module beside the program in its build tree, or where it is installed. */
static void module_of(char *path, size_t len)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	if (snprintf(path, len, "%s/kit/.libs/libkitpeer-fi.so", self) >=
		    (int)len ||
	    access(path, R_OK))
		snprintf(path, len, "%s/libkitpeer-fi.so", KIT_PEER_DIR);
	if (access(path, R_OK)) {
		fprintf(stderr, "tandem-peer-check: no %s\n", path);
		exit(2);
	}
}

void kit_app_link(void)
{
	const char *was = getenv("FI_PROVIDER_PATH");
	char module[PATH_MAX], path[2 * PATH_MAX];

	module_of(module, sizeof(module));
	snprintf(path, sizeof(path), "%s%s+%s", was ? was : "", was ? ":" : "",
		 module);
	setenv("FI_PROVIDER_PATH", path, 1);
	/* Other owners have their own way: the caller sets it. */
	setenv("FI_TANDEM_LOCAL", KIT_PEER_NAME, 0);
	setenv("FI_LNX_PROV_LINKS", KIT_PEER_NAME, 0);
}

/* ---- opening -------------------------------------------------------------- */

static int ask(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		abort();
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(kit_subject.provider);
	if (kit_subject.domain)
		hints->domain_attr->name = strdup(kit_subject.domain);
	ret = fi_getinfo(FI_VERSION(2, 1), kit_subject.node, NULL,
			 kit_subject.node ? FI_SOURCE : 0, hints,
			 &kit_app.info);
	fi_freeinfo(hints);
	return ret;
}

static int find(void)
{
	static const uint64_t wanted[] = {
		FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE |
			FI_MULTI_RECV,
		FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
		FI_MSG | FI_TAGGED | FI_DIRECTED_RECV,
		FI_TAGGED | FI_DIRECTED_RECV,
		FI_TAGGED,
		FI_MSG,
	};
	size_t i;
	int ret = -FI_ENODATA;

	kit_step("fi_getinfo");
	for (i = 0; ret && i < sizeof(wanted) / sizeof(*wanted); i++)
		ret = ask(wanted[i] | FI_SEND | FI_RECV);
	return ret;
}

int kit_app_has(uint64_t caps)
{
	return (kit_app.info->caps & caps) == caps;
}

static int open_cntrs(struct kit_app_node *node)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = FI_WAIT_NONE };
	static const uint64_t flags[] = { FI_SEND, FI_RECV };
	int i, ret = 0;

	for (i = 0; i < 2 && !ret; i++) {
		ret = fi_cntr_open(node->domain, &attr, &node->cntr[i], NULL);
		if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
			return 0; /* the owner has none */
		if (!ret)
			ret = fi_ep_bind(node->ep, &node->cntr[i]->fid,
					 flags[i]);
	}
	return ret;
}

static int open_node(struct kit_app_node *node, int flags)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED,
				 .size = 1024,
				 .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret = 0;

	kit_step("the application opens a domain");
	if (flags & KIT_APP_ONE_DOMAIN && node != kit_app.node)
		node->domain = kit_app.node[0].domain;
	else
		ret = fi_domain(kit_app.fabric, kit_app.info, &node->domain,
				NULL);
	kit_step("the application opens a queue");
	if (!ret)
		ret = fi_cq_open(node->domain, &cq, &node->cq, NULL);
	if (!ret)
		ret = fi_av_open(node->domain, &av, &node->av, NULL);
	kit_step("the application opens an endpoint");
	if (!ret)
		ret = fi_endpoint(node->domain, kit_app.info, &node->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(node->ep, &node->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(node->ep, &node->cq->fid,
				 FI_TRANSMIT | FI_RECV);
	if (!ret && flags & KIT_APP_COUNTED)
		ret = open_cntrs(node);
	kit_step("the application enables an endpoint");
	return ret ? ret : fi_enable(node->ep);
}

int kit_app_insert(size_t at, size_t of)
{
	static char name[KIT_APP_NAME_BYTES];
	struct kit_app_node *node = &kit_app.node[at];
	size_t len = sizeof(name);
	int ret;

	memset(name, 0, sizeof(name));
	ret = fi_getname(&kit_app.node[of].ep->fid, name, &len);
	if (ret)
		return ret;
	kit_step("the application inserts an address");
	ret = fi_av_insert(node->av, name, 1, &node->addr[of], 0, NULL);
	return ret == 1 ? 0 : ret < 0 ? ret : -FI_EADDRNOTAVAIL;
}

int kit_app_try_open(int flags)
{
	size_t i;
	int ret = find();

	if (ret)
		return ret;
	kit_step("the application opens a fabric");
	ret = fi_fabric(kit_app.info->fabric_attr, &kit_app.fabric, NULL);
	for (i = 0; i < KIT_APP_NODES && !ret; i++)
		ret = open_node(&kit_app.node[i], flags);
	if (!ret)
		ret = kit_app_insert(0, 1);
	if (!ret)
		ret = kit_app_insert(1, 0);
	return ret;
}

static void meet(size_t from, size_t to)
{
	const struct kit_app_msg m = { kit_app_kind(), 8, 0xabc, 0, 0 };
	struct kit_op *recv = kit_app_recv(to, &m, ROOM, -1);
	struct kit_op *send = kit_app_send(from, to, &m);

	kit_app_wait(recv);
	kit_app_wait(send);
	kit_app_check(recv, send, &m);
}

void kit_app_open(int flags)
{
	int ret = kit_app_try_open(flags);

	if (ret == -FI_ENODATA && !kit_app.info)
		kit_absent("fi_getinfo: %s", fi_strerror(-ret));
	if (ret)
		kit_broken("the application cannot open an endpoint: %s",
			   fi_strerror(-ret));
	if (!kit_peer_seen.infos)
		kit_absent("the owner does not ask for " KIT_PEER_NAME);
	if (flags & KIT_APP_UNMET)
		return;
	meet(0, 1);
	meet(1, 0);
	if (kit_peer_seen.sends < 2)
		kit_broken("the messages took another way than the peer");
}

void kit_app_open_for(uint64_t caps, const char *what)
{
	kit_app_open(0);
	if (!kit_app_has(caps))
		kit_absent("%s", what);
}

/* ---- closing -------------------------------------------------------------- */

static void close_fid(void *where, struct fid *fid, const char *what)
{
	int ret;

	memset(where, 0, sizeof(void *));
	kit_step("fi_close of the application's %s", what);
	ret = fi_close(fid);
	if (ret && !errors_of_close++)
		kit_peer_fault(KIT_ON_CLOSE,
			       "fi_close of the application's %s: %s", what,
			       fi_strerror(-ret));
}

void kit_app_close_node(size_t n)
{
	struct kit_app_node *node = &kit_app.node[n];
	int i;

	if (node->ep)
		close_fid(&node->ep, &node->ep->fid, "endpoint");
	for (i = 0; i < 2; i++) {
		if (node->cntr[i])
			close_fid(&node->cntr[i], &node->cntr[i]->fid,
				  "counter");
	}
	if (node->av)
		close_fid(&node->av, &node->av->fid, "address vector");
	if (node->cq)
		close_fid(&node->cq, &node->cq->fid, "queue");
}

void kit_app_close(void)
{
	size_t i;

	for (i = 0; i < KIT_APP_NODES; i++)
		kit_app_close_node(i);
	for (i = KIT_APP_NODES; i-- > 0;) {
		struct kit_app_node *node = &kit_app.node[i];
		int shared = i && node->domain == kit_app.node[0].domain;

		if (node->domain && !shared)
			close_fid(&node->domain, &node->domain->fid, "domain");
		node->domain = NULL;
	}
	if (kit_app.fabric)
		close_fid(&kit_app.fabric, &kit_app.fabric->fid, "fabric");
	if (kit_app.info)
		fi_freeinfo(kit_app.info);
	kit_app.info = NULL;
}

/* ---- progress ------------------------------------------------------------- */

static void note(const struct fi_cq_err_entry *end)
{
	struct kit_op *op = kit_op_of(end->op_context);

	if (!op)
		kit_broken("a completion (flags %#llx, error %d) of the owner "
			   "has the context %p, which is of no operation",
			   (unsigned long long)end->flags, end->err,
			   end->op_context);
	if (op->ended && !op->is_multi)
		kit_broken("a second completion of one %s", op->what);
	op->flags |= end->flags;
	kit_op_note(op, end);
}

static void read_node(struct kit_app_node *node)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	kit_step("fi_cq_read of the application");
	ret = fi_cq_readfrom(node->cq, &e, 1, &source);
	if (ret == 1) {
		err = (struct fi_cq_err_entry){ .op_context = e.op_context,
						.flags = e.flags,
						.len = e.len,
						.buf = e.buf,
						.data = e.data,
						.tag = e.tag,
						.src_addr = source };
		note(&err);
		node->completions++;
	} else if (ret == -FI_EAVAIL) {
		if (fi_cq_readerr(node->cq, &err, 0) != 1)
			kit_broken("fi_cq_read returns -FI_EAVAIL and "
				   "fi_cq_readerr no entry");
		note(&err);
		node->errors++;
	} else if (ret != -FI_EAGAIN) {
		kit_broken("fi_cq_read of the application: %zd", ret);
	}
}

void kit_app_progress(void)
{
	size_t i;

	for (i = 0; i < KIT_APP_NODES; i++) {
		if (kit_app.node[i].cq)
			read_node(&kit_app.node[i]);
	}
}

void kit_app_settle(void)
{
	int i;

	for (i = 0; i < PASSES; i++)
		kit_app_progress();
}

int kit_app_reach(const size_t *value, size_t least)
{
	const int64_t until = kit_now_ms() + kit_patience_ms();

	while (*value < least && kit_now_ms() < until)
		kit_app_progress();
	return *value >= least;
}

/* ---- operations ----------------------------------------------------------- */

enum kit_kind kit_app_kind(void)
{
	return kit_app_has(FI_TAGGED) ? KIT_TAG : KIT_MSG;
}

static enum kit_kind kind_of(const struct kit_app_msg *m)
{
	return m->kind == KIT_APP_FIRST ? kit_app_kind() : m->kind;
}

static ssize_t send_once(const struct kit_app_node *node, fi_addr_t to,
			 struct kit_op *op, const struct kit_app_msg *m)
{
	const struct iovec iov = { op->bytes, m->len };
	const struct fi_msg_tagged tagged = { .msg_iov = &iov,
					      .iov_count = 1,
					      .addr = to,
					      .tag = m->tag,
					      .context = op,
					      .data = m->data };
	const struct fi_msg plain = { .msg_iov = &iov,
				      .iov_count = 1,
				      .addr = to,
				      .context = op,
				      .data = m->data };

	kit_step("a send of the application");
	return op->kind == KIT_TAG ?
		       fi_tsendmsg(node->ep, &tagged,
				   m->flags | FI_COMPLETION) :
		       fi_sendmsg(node->ep, &plain, m->flags | FI_COMPLETION);
}

struct kit_op *kit_app_send(size_t from, size_t to, const struct kit_app_msg *m)
{
	const int64_t until = kit_now_ms() + kit_patience_ms();
	const struct kit_app_node *node = &kit_app.node[from];
	static uint32_t seed;
	struct kit_op *op = kit_op_new(NULL, kind_of(m), m->len, ++seed);
	ssize_t ret;

	for (;;) {
		ret = send_once(node, node->addr[to], op, m);
		if (ret != -FI_EAGAIN || kit_now_ms() > until)
			break;
		kit_app_progress();
	}
	if (ret)
		kit_broken("a send of %zu bytes: %s", m->len,
			   fi_strerror((int)-ret));
	return op;
}

struct kit_op *kit_app_recv(size_t at, const struct kit_app_msg *m, size_t room,
			    int source)
{
	const struct kit_app_node *node = &kit_app.node[at];
	struct kit_op *op = kit_op_new(NULL, kind_of(m), room, 0);
	const fi_addr_t from = source < 0 ? FI_ADDR_UNSPEC : node->addr[source];
	ssize_t ret;

	op->is_recv = 1;
	op->what = "receive";
	memset(op->bytes, 0, room);
	kit_step("a receive of the application");
	ret = op->kind == KIT_TAG ?
		      fi_trecv(node->ep, op->bytes, room, NULL, from, m->tag, 0,
			       op) :
		      fi_recv(node->ep, op->bytes, room, NULL, from, op);
	if (ret)
		kit_broken("a receive of %zu bytes: %s", room,
			   fi_strerror((int)-ret));
	return op;
}

void kit_app_wait(const struct kit_op *op)
{
	const int64_t until = kit_now_ms() + kit_patience_ms();

	while (!op->ended && kit_now_ms() < until)
		kit_app_progress();
	if (!op->ended)
		kit_broken("no completion of a %s of %zu bytes", op->what,
			   op->room);
}

static void check_bytes(const struct kit_op *recv, const struct kit_op *send,
			size_t len)
{
	size_t i;

	kit_op_guards(recv);
	for (i = 0; i < len; i++) {
		if (recv->bytes[i] != kit_byte(send->seed, i))
			kit_broken("byte %zu of %zu is wrong", i, len);
	}
}

void kit_app_check(const struct kit_op *recv, const struct kit_op *send,
		   const struct kit_app_msg *m)
{
	const uint64_t kind = recv->kind == KIT_TAG ? FI_TAGGED : FI_MSG;

	if (recv->err)
		kit_broken("the receive fails: %s", fi_strerror(recv->err));
	if (recv->len != m->len)
		kit_broken("the completion has the length %zu, the message "
			   "%zu",
			   recv->len, m->len);
	if (!(recv->flags & FI_RECV) || !(recv->flags & kind))
		kit_broken("the completion has the flags %#llx",
			   (unsigned long long)recv->flags);
	if (recv->kind == KIT_TAG && recv->tag != m->tag)
		kit_broken("the completion has the tag %#llx",
			   (unsigned long long)recv->tag);
	if (m->flags & FI_REMOTE_CQ_DATA &&
	    (!(recv->flags & FI_REMOTE_CQ_DATA) || recv->data != m->data))
		kit_broken("the completion has flags %#llx and data %#llx",
			   (unsigned long long)recv->flags,
			   (unsigned long long)recv->data);
	check_bytes(recv, send, m->len);
}

void kit_app_failed(const struct kit_op *op, int err)
{
	kit_app_wait(op);
	if (op->err != err)
		kit_broken("the %s ends with \"%s\", not with \"%s\"", op->what,
			   op->err ? fi_strerror(op->err) : "success",
			   fi_strerror(err));
}

struct kit_op *kit_app_send_early(size_t from, size_t to,
				  const struct kit_app_msg *m)
{
	const size_t before = kit_peer_seen.misses;
	struct kit_op *op = kit_app_send(from, to, m);

	if (!kit_app_reach(&kit_peer_seen.misses, before + 1)) {
		kit_peer_no_fault(KIT_ON_GET);
		kit_broken("a message without a receive was not queued");
	}
	return op;
}
