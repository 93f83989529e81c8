/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A toy owner: it lends a completion queue and a receive queue to a peer provider
 * through fi_peer(3), and has the peer carry tagged messages between two nodes of
 * this process. doc/guide/peer-api.md walks through this file.
 *
 *   owner PROVIDER [DOMAIN]
 *
 * prints one line for each rule that held, and fails at the first that did not.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>

#define container(ptr, type, member)                                           \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

enum { NAME_BYTES = 256, DONE_MOST = 64, POLLS = 100000 };

/*
 * Of the entries of receives. Upstream's shm writes a completion only if the
 * entry asks for one.
 */
#define RECEIVE_FLAGS (FI_TAGGED | FI_RECV | FI_COMPLETION)

/* A receive, or a message that waits for one. The peer sees rx. */
struct entry {
	struct fi_peer_rx_entry rx; /* first member */
	struct entry *next;
	struct iovec iov;
	void *desc;
};

struct done {
	void *context;
	size_t len;
	fi_addr_t source;
	int err;
};

struct node {
	/* the peer's objects */
	struct fid_cq *cq;
	struct fid_ep *srx, *ep;
	struct fid_av *av;
	/* ours, which it uses */
	struct fid_peer_cq own_cq;
	struct fid_peer_srx own_srx;
	struct entry *posted, *queued; /* oldest first */
	size_t entries;		       /* not given back yet */
	struct done done[DONE_MOST];
	size_t dones;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct node node[2];

static void check(int held, const char *rule)
{
	printf("%s %s\n", held ? "ok    " : "BROKEN", rule);
	if (!held)
		exit(1);
}

static void call(const char *what, long ret)
{
	if (!ret)
		return;
	fprintf(stderr, "owner: %s: %s\n", what, fi_strerror((int)-ret));
	exit(2);
}

/* ---- the queue of completions --------------------------------------------- */

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags,
			size_t len, void *buf, uint64_t data, uint64_t tag,
			fi_addr_t source)
{
	struct node *n = container(cq, struct node, own_cq);

	if (n->dones == DONE_MOST)
		return -FI_EAGAIN;
	n->done[n->dones++] = (struct done){ .context = context,
					     .len = len,
					     .source = source };
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq,
			   const struct fi_cq_err_entry *e)
{
	ssize_t ret = cq_write(cq, e->op_context, e->flags, e->len, e->buf,
			       e->data, e->tag, e->src_addr);
	struct node *n = container(cq, struct node, own_cq);

	if (!ret)
		n->done[n->dones - 1].err = e->err;
	return ret;
}

static struct fi_ops_cq_owner cq_ops = { .size = sizeof(cq_ops),
					 .write = cq_write,
					 .writeerr = cq_writeerr };

/* ---- the queue of receives ------------------------------------------------ */

static struct entry *entry_new(struct node *n)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	n->entries++;
	e->rx.srx = &n->own_srx;
	e->rx.iov = &e->iov;
	e->rx.desc = &e->desc;
	e->rx.owner_context = n;
	return e;
}

static void append(struct entry **list, struct entry *e)
{
	while (*list)
		list = &(*list)->next;
	*list = e;
}

/* A message of unknown source matches receives from any source only. */
static int matches(const struct entry *receive, fi_addr_t source, uint64_t tag)
{
	return receive->rx.tag == tag && (receive->rx.addr == FI_ADDR_UNSPEC ||
					  receive->rx.addr == source);
}

/* The peer has a message: its receive, else -FI_ENOENT and a new entry for it. */
static int get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **out)
{
	struct node *n = container(srx, struct node, own_srx);
	struct entry **at = &n->posted, *receive, *e;

	while (*at && !matches(*at, attr->addr, attr->tag))
		at = &(*at)->next;
	receive = *at;
	if (receive)
		*at = receive->next;
	e = receive ? receive : entry_new(n);
	e->next = NULL;
	e->rx.addr = attr->addr;
	e->rx.tag = attr->tag;
	e->rx.msg_size = attr->msg_size;
	e->rx.flags = RECEIVE_FLAGS;
	*out = &e->rx;
	return receive ? 0 : -FI_ENOENT;
}

static int queue_tag(struct fi_peer_rx_entry *rx)
{
	append(&((struct node *)rx->owner_context)->queued, (struct entry *)rx);
	return 0;
}

static void foreach_unspec_addr(struct fid_peer_srx *srx,
				fi_addr_t (*source)(struct fi_peer_rx_entry *))
{
	struct entry *e = container(srx, struct node, own_srx)->queued;

	for (; e; e = e->next) {
		if (e->rx.addr == FI_ADDR_UNSPEC)
			e->rx.addr = source(&e->rx);
	}
}

static void free_entry(struct fi_peer_rx_entry *rx)
{
	((struct node *)rx->owner_context)->entries--;
	free(rx);
}

static struct fi_ops_srx_owner srx_ops = {
	.size = sizeof(srx_ops),
	.get_tag = get_tag,
	.queue_tag = queue_tag,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

/* fi_trecv() of this owner. @buf is the context. */
static void receive(struct node *n, void *buf, size_t len, fi_addr_t source,
		    uint64_t tag)
{
	struct entry *mine = entry_new(n), **at = &n->queued, *e;

	mine->iov = (struct iovec){ buf, len };
	mine->rx.count = 1;
	mine->rx.addr = source;
	mine->rx.tag = tag;
	mine->rx.context = buf;
	while (*at && !matches(mine, (*at)->rx.addr, (*at)->rx.tag))
		at = &(*at)->next;
	e = *at;
	if (!e) {
		append(&n->posted, mine);
		return;
	}
	/* The entry of the message becomes that of the receive. */
	*at = e->next;
	e->iov = mine->iov;
	e->rx.count = 1;
	e->rx.context = buf;
	free_entry(&mine->rx);
	call("start_tag", n->own_srx.peer_ops->start_tag(&e->rx));
}

/* The oldest message that waits is not wanted. */
static void discard(struct node *n)
{
	struct entry *e = n->queued;

	n->queued = e->next;
	call("discard_tag", n->own_srx.peer_ops->discard_tag(&e->rx));
	free_entry(&e->rx);
}

/* ---- objects -------------------------------------------------------------- */

static void open_node(struct node *n)
{
	struct fi_peer_cq_context cq = { sizeof(cq), &n->own_cq };
	struct fi_peer_srx_context srx = { sizeof(srx), &n->own_srx };
	struct fi_cq_attr cq_attr = { .flags = FI_PEER };
	struct fi_rx_attr rx_attr = { .op_flags = FI_PEER };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	n->own_cq.fid.fclass = FI_CLASS_PEER_CQ;
	n->own_cq.owner_ops = &cq_ops;
	n->own_srx.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	n->own_srx.owner_ops = &srx_ops;
	call("fi_cq_open", fi_cq_open(domain, &cq_attr, &n->cq, &cq));
	call("fi_srx_context", fi_srx_context(domain, &rx_attr, &n->srx, &srx));
	call("fi_av_open", fi_av_open(domain, &av_attr, &n->av, NULL));
	call("fi_endpoint", fi_endpoint(domain, info, &n->ep, NULL));
	call("bind", fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	call("bind", fi_ep_bind(n->ep, &n->srx->fid, 0));
	call("bind", fi_ep_bind(n->ep, &n->av->fid, 0));
	call("fi_enable", fi_enable(n->ep));
}

/* For peers that register memory with their owner; those here do not. */
static struct fi_ops_domain own_domain_ops = { .size = sizeof(own_domain_ops) };
static struct fi_ops_mr own_mr_ops = { .size = sizeof(own_mr_ops) };
static struct fid_domain own_domain = { .fid.fclass = FI_CLASS_DOMAIN,
					.ops = &own_domain_ops,
					.mr = &own_mr_ops };

static void open_all(const char *provider, const char *name)
{
	struct fi_peer_domain_context context = { sizeof(context),
						  &own_domain };
	struct fi_info *hints = fi_allocinfo();
	int i, ret;

	hints->caps = FI_TAGGED | FI_SEND | FI_RECV | FI_PEER;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->name = name ? strdup(name) : NULL;
	call("fi_getinfo",
	     fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	call("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	ret = fi_domain2(fabric, info, &domain, FI_PEER, &context);
	if (ret == -FI_ENOSYS) /* it registers no memory: it needs no domain */
		ret = fi_domain(fabric, info, &domain, NULL);
	call("fi_domain", ret);
	for (i = 0; i < 2; i++)
		open_node(&node[i]);
}

static void close_all(void)
{
	struct fid *all[] = { &node[0].ep->fid,	 &node[1].ep->fid,
			      &node[0].srx->fid, &node[1].srx->fid,
			      &node[0].av->fid,	 &node[1].av->fid,
			      &node[0].cq->fid,	 &node[1].cq->fid,
			      &domain->fid,	 &fabric->fid };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		call("fi_close", fi_close(all[i]));
	fi_freeinfo(info);
}

/* @at learns the address of @of, which it knows by the number @user_id. */
static fi_addr_t insert(struct node *at, struct node *of, fi_addr_t user_id)
{
	char name[NAME_BYTES];
	size_t len = sizeof(name);
	fi_addr_t addr = user_id;

	call("fi_getname", fi_getname(&of->ep->fid, name, &len));
	if (fi_av_insert(at->av, name, 1, &addr, FI_AV_USER_ID, NULL) != 1)
		call("fi_av_insert", -FI_EINVAL);
	return addr;
}

/* ---- rules ---------------------------------------------------------------- */

/* Progress: the queue that the peer returned is read, but holds nothing. */
static void progress(void)
{
	(void)!fi_cq_read(node[0].cq, NULL, 0);
	(void)!fi_cq_read(node[1].cq, NULL, 0);
}

static void send(fi_addr_t to, const char *text, uint64_t tag)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) + 1 };
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = tag
	};
	ssize_t ret;

	do {
		ret = fi_tsendmsg(node[0].ep, &msg, FI_COMPLETION);
		progress();
	} while (ret == -FI_EAGAIN);
	call("fi_tsendmsg", ret);
}

/* The completion of node 1 with @context, removed; NULL: none comes. */
static const struct done *wait_for(const void *context)
{
	static struct done found;
	struct node *n = &node[1];
	size_t i, polls;

	for (polls = 0; polls < POLLS; polls++, progress()) {
		for (i = 0; i < n->dones; i++) {
			if (n->done[i].context != context)
				continue;
			found = n->done[i];
			n->done[i] = n->done[--n->dones];
			return &found;
		}
	}
	return NULL;
}

/* Until a message waits at node 1. */
static void wait_queued(void)
{
	size_t polls;

	for (polls = 0; !node[1].queued && polls < POLLS; polls++)
		progress();
	check(node[1].queued != NULL, "a message without a receive is queued");
}

int main(int argc, char **argv)
{
	const fi_addr_t user_id = 77;
	const struct done *d;
	char one[16] = "", two[16] = "";
	fi_addr_t to;

	if (argc < 2)
		return 2;
	open_all(argv[1], argv[2]);
	to = insert(&node[0], &node[1], 1);

	send(to, "early", 1);
	wait_queued();
	receive(&node[1], one, sizeof(one), user_id, 1);
	check(!one[0], "a message of unknown source is not given to a receive "
		       "from one source");
	free_entry(&node[1].posted->rx); /* cancelled */
	node[1].posted = NULL;
	insert(&node[1], &node[0], user_id);
	check(node[1].queued->rx.addr == user_id,
	      "an insert tells the owner the sources of queued messages");
	receive(&node[1], one, sizeof(one), user_id, 1);
	d = wait_for(one);
	check(d && !d->err && !strcmp(one, "early"),
	      "a queued message is received");
	check(d->source == user_id, "its source is the number of the owner");

	receive(&node[1], two, sizeof(two), FI_ADDR_UNSPEC, 2);
	send(to, "expected", 2);
	d = wait_for(two);
	check(d && d->len == 9 && !strcmp(two, "expected"),
	      "a message is copied to the receive that was posted for it");

	receive(&node[1], two, 4, user_id, 3);
	send(to, "too long", 3);
	d = wait_for(two);
	check(d && d->err == FI_ETRUNC, "a short buffer gives FI_ETRUNC");

	send(to, "unwanted", 4);
	wait_queued();
	discard(&node[1]);
	check(!wait_for(NULL), "a discarded message has no completion");

	while (node[0].dones < 4)
		progress();
	check(node[0].dones == 4, "each send has one completion");
	close_all();
	check(!node[1].entries, "all entries were given back");
	return 0;
}
