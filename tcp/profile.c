/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of endpoints, fi_profile(3): the unexpected messages of the receive
 * side that the endpoint uses, the peers it has a path to, and what they have
 * exchanged.
 *
 * Nothing is counted for a profile while messages move: a variable is computed
 * when it is read, and events are told by peer/srx_watch.h.
 *
 * Lock: the calls take the domain lock. A thread that runs an event's callback
 * holds it already, and may only read: `telling`.
 */
#include "tcp/profile.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/base.h"
/* fi_profile_open() uses the macro, and no header of libfabric defines it. */
#define container_of(p, type, member)                                          \
	((type *)((char *)(p) - offsetof(type, member)))
#include <rdma/fi_profile.h>

#include "fi_ext_tandem.h"
#include "peer/srx_watch.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tcp/wire/look.h"
#include "tdm_look.h"
#include "tdm_nosys.h"

enum { PROFILE_EVENTS = FI_EVENT_UNEXP_MSG_MATCHED + 1 };

/* The variables that are numbers; vars[] has them in this order. */
enum {
	NUM_UNEXP,
	NUM_POSTED,
	NUM_UNEXP_BYTES,
	NUM_CONNECTIONS,
	NUM_SHM_PEERS,
	NUM_TCP_PEERS,
	NUM_SENT_MSGS,
	NUM_SENT_BYTES,
	NUM_RECEIVED_MSGS,
	NUM_RECEIVED_BYTES,
	NUM_QUEUED,
	NUM_RETRIES,
	NUMS
};

typedef int (*profile_callback)(struct fid_profile *fid,
				struct fi_profile_desc *event, void *param,
				size_t size, void *context);

struct profile {
	struct fid_profile fid;
	struct tdm_ep *ep;
	struct tdm_srx *srx;   /* NULL: the endpoint receives nothing */
	struct tdm_root *root; /* has the pairs; or NULL */
	struct tdm_srx_watch watch;
	int watching; /* 1: `watch` is on the list of srx */
	struct {
		profile_callback call; /* NULL: none */
		void *context;
	} event[PROFILE_EVENTS];
	/* Between start_reads and end_reads: */
	int frozen; /* 1: the values below are read */
	uint64_t num[NUMS];
	size_t kept; /* messages in list[] */
	struct fi_cq_err_entry *list;
};

/* The calling thread runs a callback: it holds the lock of this domain. */
static _Thread_local const struct tdm_domain *telling;

#define NUMBER(var, text, about)                                               \
	{ .id = (uint32_t)(var),                                               \
	  .datatype_sel = fi_primitive_type,                                   \
	  .datatype.primitive = FI_UINT64,                                     \
	  .size = sizeof(uint64_t),                                            \
	  .name = (text),                                                      \
	  .desc = (about) }

/* The last one is no number. */
static struct fi_profile_desc vars[NUMS + 1] = {
	[NUM_UNEXP] = NUMBER(FI_VAR_UNEXP_MSG_CNT, "unexp_msg_cnt",
			     "Unexpected messages that wait for a receive"),
	[NUM_POSTED] = NUMBER(TDM_VAR_POSTED_RECVS, "posted_recv_cnt",
			      "Receives that wait for a message"),
	[NUM_UNEXP_BYTES] =
		NUMBER(TDM_VAR_UNEXP_BYTES, "unexp_bytes",
		       "Memory of unexpected messages, and promised to peers"),
	[NUM_CONNECTIONS] = NUMBER(FI_VAR_CONNECTION_CNT, "connection_cnt",
				   "Peers to which a path is in use"),
	[NUM_SHM_PEERS] = NUMBER(TDM_VAR_SHM_PEERS, "shm_peer_cnt",
				 "Those of them by shared memory"),
	[NUM_TCP_PEERS] = NUMBER(TDM_VAR_TCP_PEERS, "tcp_peer_cnt",
				 "Those of them by TCP"),
	[NUM_SENT_MSGS] = NUMBER(TDM_VAR_SENT_MSGS, "sent_msg_cnt",
				 "Messages sent, one-sided included"),
	[NUM_SENT_BYTES] =
		NUMBER(TDM_VAR_SENT_BYTES, "sent_bytes", "Their payload"),
	[NUM_RECEIVED_MSGS] = NUMBER(TDM_VAR_RECEIVED_MSGS, "received_msg_cnt",
				     "Messages received, one-sided included"),
	[NUM_RECEIVED_BYTES] = NUMBER(TDM_VAR_RECEIVED_BYTES, "received_bytes",
				      "Their payload"),
	[NUM_QUEUED] = NUMBER(TDM_VAR_QUEUED_OPS, "queued_op_cnt",
			      "Operations of which nothing was sent"),
	[NUM_RETRIES] = NUMBER(TDM_VAR_FAILED_CONNECTS, "failed_connect_cnt",
			       "Attempts to connect that failed"),
	[NUMS] = { .id = FI_VAR_UNEXP_MSG_QUEUE,
		   .datatype_sel = fi_defined_type,
		   .datatype.defined = FI_TYPE_CQ_ERR_ENTRY,
		   .size = sizeof(struct fi_cq_err_entry),
		   .name = "unexp_msg_queue",
		   .desc = "Unexpected messages that wait for a receive, one by one" },
};

static struct fi_profile_desc events[PROFILE_EVENTS] = {
	[FI_EVENT_UNEXP_MSG_RECVD] = { .id = FI_EVENT_UNEXP_MSG_RECVD,
				       .datatype_sel = fi_defined_type,
				       .datatype.defined = FI_TYPE_CQ_ERR_ENTRY,
				       .size = sizeof(struct fi_cq_err_entry),
				       .name = "unexp_msg_recvd",
				       .desc = "An unexpected message begins to wait for a receive" },
	[FI_EVENT_UNEXP_MSG_MATCHED] = { .id = FI_EVENT_UNEXP_MSG_MATCHED,
					 .datatype_sel = fi_defined_type,
					 .datatype.defined =
						 FI_TYPE_CQ_ERR_ENTRY,
					 .size = sizeof(struct fi_cq_err_entry),
					 .name = "unexp_msg_matched",
					 .desc = "A receive takes an unexpected message" },
};

static struct profile *profile_of(struct fid_profile *fid)
{
	return tdm_container_of(fid, struct profile, fid);
}

/*
 * Take the lock for a call on @p. Errors: -FI_EBUSY: the thread is in a
 * callback of another domain.
 */
static int enter(struct profile *p) TDM_TSA(no_thread_safety_analysis)
{
	if (telling)
		return telling == p->ep->domain ? 0 : -FI_EBUSY;
	tdm_lock_acquire(&p->ep->domain->lock);
	return 0;
}

static void leave(struct profile *p) TDM_TSA(no_thread_safety_analysis)
{
	if (!telling)
		tdm_lock_release(&p->ep->domain->lock);
}

/* Not 0 when the endpoint of @p has the variable with index @i in vars[]. */
static int has(const struct profile *p, size_t i)
{
	if (i == NUM_UNEXP_BYTES)
		return p->root && p->srx;
	return i > NUM_UNEXP_BYTES && i < NUMS ? p->root != NULL :
						 p->srx != NULL;
}

/* Add the peer with index @addr to the numbers @num. */
static void add_peer(struct tdm_root *root, fi_addr_t addr, uint64_t *num)
{
	struct tdm_report_path path;
	struct tdm_look look;
	struct tdm_list *pos;
	int t;

	memset(&look, 0, sizeof(look));
	tdm_history_path(root, addr, &path);
	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->look(root, addr, &look);
	if (path.state == TDM_REPORT_IN_USE) {
		num[NUM_CONNECTIONS]++;
		num[NUM_SHM_PEERS] += path.path == TDM_REPORT_SHM;
		num[NUM_TCP_PEERS] += path.path == TDM_REPORT_TCP;
	}
	num[NUM_SENT_MSGS] += path.tx_msgs;
	num[NUM_SENT_BYTES] += path.tx_bytes;
	num[NUM_RECEIVED_MSGS] += path.rx_msgs;
	num[NUM_RECEIVED_BYTES] += path.rx_bytes;
	num[NUM_QUEUED] += look.queued;
	if (!root->pair[addr]->queue)
		return;
	tdm_list_for_each(pos, &root->pair[addr]->queue->waiting)
		num[NUM_QUEUED]++;
}

/*
 * Compute all numbers, or without @peers those of the receive side alone. Out:
 * @num[NUMS].
 */
static void compute(const struct profile *p, uint64_t *num, int peers)
{
	struct tdm_tcp_look tcp;
	size_t i, posted = 0, waiting;

	memset(num, 0, NUMS * sizeof(*num));
	if (p->srx) {
		tdm_srx_depth(p->srx, &posted, &waiting);
		num[NUM_POSTED] = posted;
		num[NUM_UNEXP] = tdm_srx_waiting(p->srx, NULL, 0);
	}
	if (!peers || !p->root || !p->root->tcp)
		return;
	tdm_tcp_look(p->root->tcp, &tcp);
	num[NUM_UNEXP_BYTES] = tcp.account;
	num[NUM_RETRIES] = tcp.retries;
	for (i = 0; i < p->root->pairs; i++) {
		/* All indices of an address share one path. */
		if (p->root->pair[i] && tdm_av_lowest(p->root->ep.av, i) == i)
			add_peer(p->root, i, num);
	}
}

/* ---- Variables ----------------------------------------------------------- */

static void thaw(struct profile *p)
{
	p->frozen = 0;
	free(p->list);
	p->list = NULL;
	p->kept = 0;
}

/*
 * Copy the variables. Without memory for the messages, they are only counted.
 */
static void freeze(struct profile *p)
{
	thaw(p);
	compute(p, p->num, 1);
	p->list = (struct fi_cq_err_entry *)calloc(p->num[NUM_UNEXP] + 1,
						   sizeof(*p->list));
	if (p->list) {
		p->kept = p->num[NUM_UNEXP];
		if (p->srx)
			tdm_srx_waiting(p->srx, p->list, p->kept);
	}
	p->frozen = 1;
}

/*
 * Copy as many messages as *@size bytes hold to @data. Out: *@size, the bytes
 * of all.
 */
static ssize_t read_queue(struct profile *p, void *data, size_t *size)
{
	const size_t one = sizeof(struct fi_cq_err_entry);
	size_t room = data ? *size / one : 0, all;

	if (p->frozen) {
		all = p->kept;
		room = tdm_min(room, all);
		if (room)
			memcpy(data, p->list, room * one);
	} else {
		all = tdm_srx_waiting(p->srx, (struct fi_cq_err_entry *)data,
				      room);
		room = tdm_min(room, all);
	}
	*size = all * one;
	return (ssize_t)(room * one);
}

static ssize_t read_count(uint64_t value, void *data, size_t *size)
{
	size_t room = *size;

	*size = sizeof(value);
	if (!data || room < sizeof(value))
		return -FI_ETOOSMALL;
	memcpy(data, &value, sizeof(value));
	return sizeof(value);
}

static ssize_t read_any(struct profile *p, size_t i, void *data, size_t *size)
{
	uint64_t num[NUMS];

	if (i == NUMS)
		return read_queue(p, data, size);
	if (!p->frozen)
		compute(p, num, i >= NUM_UNEXP_BYTES);
	return read_count(p->frozen ? p->num[i] : num[i], data, size);
}

static ssize_t profile_read_var(struct fid_profile *fid, uint32_t id,
				void *data, size_t *size)
{
	struct profile *p = profile_of(fid);
	ssize_t ret;
	size_t i;

	if (!size)
		return -FI_EINVAL;
	for (i = 0; i < TDM_ARRAY_LEN(vars) && vars[i].id != id; i++)
		;
	if (i == TDM_ARRAY_LEN(vars) || !has(p, i))
		return -FI_EINVAL;
	ret = enter(p);
	if (ret)
		return ret;
	ret = read_any(p, i, data, size);
	leave(p);
	return ret;
}

static void profile_start_reads(struct fid_profile *fid, uint64_t flags)
{
	struct profile *p = profile_of(fid);

	(void)flags;
	if (enter(p))
		return;
	freeze(p);
	leave(p);
}

static void profile_end_reads(struct fid_profile *fid, uint64_t flags)
{
	struct profile *p = profile_of(fid);

	(void)flags;
	if (enter(p))
		return;
	thaw(p);
	leave(p);
}

static ssize_t profile_query_vars(struct fid_profile *fid,
				  struct fi_profile_desc *list, size_t *count)
{
	const struct profile *p = profile_of(fid);
	size_t i, n = 0, most;

	if (!count)
		return -FI_EINVAL;
	most = list ? *count : 0;
	for (i = 0; i < TDM_ARRAY_LEN(vars); i++) {
		if (!has(p, i))
			continue;
		if (n < most)
			list[n] = vars[i];
		n++;
	}
	*count = n;
	return (ssize_t)tdm_min(n, most);
}

/* ---- Events -------------------------------------------------------------- */

static ssize_t profile_query_events(struct fid_profile *fid,
				    struct fi_profile_desc *list, size_t *count)
{
	const struct profile *p = profile_of(fid);
	size_t n = p->srx ? PROFILE_EVENTS : 0, most;

	if (!count)
		return -FI_EINVAL;
	most = list ? tdm_min(*count, n) : 0;
	if (most)
		memcpy(list, events, most * sizeof(*list));
	*count = n;
	return (ssize_t)most;
}

static void tell(struct tdm_srx_watch *w, int matched,
		 struct fi_cq_err_entry *msg)
{
	struct profile *p = tdm_container_of(w, struct profile, watch);
	int e = matched ? FI_EVENT_UNEXP_MSG_MATCHED : FI_EVENT_UNEXP_MSG_RECVD;

	if (!p->event[e].call)
		return;
	telling = p->ep->domain;
	p->event[e].call(&p->fid, &events[e], msg, sizeof(*msg),
			 p->event[e].context);
	telling = NULL;
}

static void settle_watch(struct profile *p)
{
	int wanted = 0, i;

	for (i = 0; i < PROFILE_EVENTS; i++)
		wanted |= p->event[i].call != NULL;
	if (wanted && !p->watching)
		tdm_srx_watch(p->srx, &p->watch);
	if (!wanted && p->watching)
		tdm_srx_unwatch(&p->watch);
	p->watching = wanted;
}

static int profile_reg_callback(struct fid_profile *fid, uint32_t id,
				profile_callback call, void *context)
{
	struct profile *p = profile_of(fid);

	if (id >= PROFILE_EVENTS || !p->srx)
		return -FI_EINVAL;
	if (telling)
		return -FI_EBUSY;
	tdm_lock_acquire(&p->ep->domain->lock);
	p->event[id].call = call;
	p->event[id].context = context;
	settle_watch(p);
	tdm_lock_release(&p->ep->domain->lock);
	return 0;
}

/* ---- The object ---------------------------------------------------------- */

static void profile_reset(struct fid_profile *fid, uint64_t flags)
{
	profile_end_reads(fid, flags);
}

static int profile_close(struct fid *fid)
{
	struct profile *p = tdm_container_of(fid, struct profile, fid.fid);
	struct tdm_domain *d = p->ep->domain;

	if (telling)
		return -FI_EBUSY;
	tdm_lock_acquire(&d->lock);
	memset(p->event, 0, sizeof(p->event));
	if (p->srx)
		settle_watch(p);
	p->ep->users--;
	tdm_lock_release(&d->lock);
	thaw(p);
	free(p);
	return 0;
}

static struct fi_ops profile_fid_ops = {
	.size = sizeof(profile_fid_ops),
	.close = profile_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_profile_ops profile_ops = {
	.size = sizeof(profile_ops),
	.reset = profile_reset,
	.query_vars = profile_query_vars,
	.query_events = profile_query_events,
	.read_var = profile_read_var,
	.reg_callback = profile_reg_callback,
	.start_reads = profile_start_reads,
	.end_reads = profile_end_reads,
};

int tdm_profile_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	struct profile *p;

	if (!name || !ops)
		return -FI_EINVAL;
	if (strcmp(name, TDM_PROFILE_OPS))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	p = (struct profile *)calloc(1, sizeof(*p));
	if (!p)
		return -FI_ENOMEM;
	p->fid.fid.fclass = FI_CLASS_PROFILE;
	p->fid.fid.context = context;
	p->fid.fid.ops = &profile_fid_ops;
	p->fid.ops = &profile_ops;
	p->watch.changed = tell;
	p->ep = ep;
	tdm_lock_acquire(&ep->domain->lock);
	if (!ep->enabled) {
		tdm_lock_release(&ep->domain->lock);
		free(p);
		return -FI_EOPBADSTATE;
	}
	p->srx = ep->srx;
	p->root = ep->root;
	ep->users++;
	tdm_lock_release(&ep->domain->lock);
	/* fi_profile_open() finds the object by the offset of this member. */
	*ops = &p->fid.ops;
	return 0;
}
