/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a transport on the receive side: struct fi_ops_srx_owner of
 * fi_peer(3), and the calls that an importer forwards to the fid.
 *
 * For each message the transport calls get_*(). If that returns -FI_ENOENT, it
 * calls queue_*() for the same message before it calls get_*() for another
 * message of that source. Sources are addresses in the owner's space;
 * FI_ADDR_UNSPEC is a source that is not in the AV (yet).
 *
 * Lock: domain held.
 */
#include "base/trace.h"
#include "peer/import_srx.h"
#include "peer/match_priv.h"
#include "peer/srx_space.h"
#include "tdm_nosys.h"

static tdm_noinline int get_unexpected(struct fid_peer_srx *fid,
				       enum tdm_srx_kind kind,
				       const struct fi_peer_match_attr *attr,
				       struct fi_peer_rx_entry **entry)
{
	struct tdm_srx_msg *msg = tdm_srx_msg_alloc(tdm_srx_of(fid), kind);
	struct tdm_srx_entry *e;

	if (!msg)
		return -FI_ENOMEM;
	e = &msg->e;
	tdm_srx_step(&e->state, TDM_SRX_NEW);
	e->rx.srx = fid;
	e->rx.addr = attr->addr;
	e->rx.msg_size = attr->msg_size;
	e->rx.tag = kind == TDM_SRX_TAG ? attr->tag : 0;
	*entry = &e->rx;
	TDM_TRACE3(unexpected, attr->addr, e->rx.tag, attr->msg_size);
	return -FI_ENOENT;
}

/*
 * Take the part of the multi-recv buffer @e for a message of @size bytes.
 * Returns the part's entry; NULL: out of memory.
 */
static tdm_noinline struct tdm_srx_entry *
get_part(struct tdm_srx *srx, struct tdm_srx_entry *e, size_t size)
{
	struct tdm_srx_msg *child =
		tdm_srx_msg_alloc(srx, (enum tdm_srx_kind)e->kind);

	if (!child)
		return NULL;
	tdm_srx_multi_take(srx, e, child, size);
	return &child->e;
}

/*
 * Begin to fill @e, which must be off the queue of receives, with the message
 * of @attr. Out: *@entry.
 */
static inline int begin(struct fid_peer_srx *fid, struct tdm_srx_entry *e,
			enum tdm_srx_kind kind,
			const struct fi_peer_match_attr *attr,
			struct fi_peer_rx_entry **entry)
{
	tdm_srx_step(&e->state, TDM_SRX_FILLING);
	e->rx.srx = fid;
	e->rx.addr = attr->addr;
	e->rx.tag = kind == TDM_SRX_TAG ? attr->tag : 0;
	*entry = &e->rx;
	TDM_TRACE4(match, attr->addr, e->rx.tag, attr->msg_size, e->rx.context);
	return 0;
}

/*
 * Let the posted receive @item of kind @kind take the message of @attr. Out:
 * *@entry.
 */
static int take(struct fid_peer_srx *fid, struct tdm_match_item *item,
		enum tdm_srx_kind kind, const struct fi_peer_match_attr *attr,
		struct fi_peer_rx_entry **entry)
{
	struct tdm_srx_entry *e = tdm_srx_entry_of_item(item);
	struct tdm_srx *srx = tdm_srx_of(fid);

	if (tdm_unlikely(e->form == TDM_SRX_MULTI)) {
		e = get_part(srx, e, attr->msg_size);
		if (!e)
			return -FI_ENOMEM;
	} else {
		tdm_match_remove(srx->match[kind], &e->item);
		tdm_srx_entry_unpost(srx, e);
		e->rx.msg_size = tdm_min(attr->msg_size, e->iov.iov_len);
	}
	return begin(fid, e, kind, attr, entry);
}

static tdm_noinline int get_other(struct fid_peer_srx *fid,
				  enum tdm_srx_kind kind,
				  const struct fi_peer_match_attr *attr,
				  struct fi_peer_rx_entry **entry)
{
	uint64_t tag = kind == TDM_SRX_TAG ? attr->tag : 0;
	struct tdm_srx *srx = tdm_srx_of(fid);
	struct tdm_match_item *item = NULL;

	if (tdm_likely(!srx->settling))
		item = tdm_match_find_posted(srx->match[kind], attr->addr, tag);
	if (!item)
		return get_unexpected(fid, kind, attr, entry);
	return take(fid, item, kind, attr, entry);
}

static inline int get(struct fid_peer_srx *fid, enum tdm_srx_kind kind,
		      const struct fi_peer_match_attr *attr,
		      struct fi_peer_rx_entry **entry)
{
	uint64_t tag = kind == TDM_SRX_TAG ? attr->tag : 0;
	struct tdm_srx *srx = tdm_srx_of(fid);
	struct tdm_match_item *item =
		tdm_match_first(srx->match[kind], attr->addr, tag);
	struct tdm_srx_entry *e;

	tdm_assert_held(srx->engine->lock);
	if (tdm_unlikely(!item || srx->settling))
		return get_other(fid, kind, attr, entry);
	e = tdm_srx_entry_of_item(item);
	if (tdm_unlikely(e->form != TDM_SRX_PLAIN))
		return get_other(fid, kind, attr, entry);
	tdm_match_remove_first(srx->match[kind], item);
	tdm_srx_entry_show(e);
	e->rx.msg_size = tdm_min(attr->msg_size, e->iov.iov_len);
	return begin(fid, e, kind, attr, entry);
}

/* get() for domains in which addresses are match addresses (tdm_space.h). */
static int get_space(struct fid_peer_srx *fid, enum tdm_srx_kind kind,
		     const struct fi_peer_match_attr *attr,
		     struct fi_peer_rx_entry **entry)
{
	uint64_t tag = kind == TDM_SRX_TAG ? attr->tag : 0;
	fi_addr_t addr = tdm_space_match_addr(attr->addr);
	struct tdm_srx *srx = tdm_srx_of(fid);
	struct tdm_match_item *item = NULL;
	struct tdm_srx_entry *e;
	uint32_t key;
	int ret;

	tdm_assert_held(srx->engine->lock);
	key = tdm_srx_key(srx, addr);
	if (!srx->settling)
		item = tdm_match_find_posted_space(srx->match[kind], addr, key,
						   tag);
	ret = item ? take(fid, item, kind, attr, entry) :
		     get_unexpected(fid, kind, attr, entry);
	if (ret && ret != -FI_ENOENT)
		return ret;
	e = tdm_srx_entry_of_rx(*entry);
	e->from = (uint32_t)addr;
	e->rx.addr = tdm_space_source(addr);
	e->rx.tag = tag;
	if (!ret) {
		e->rx.addr =
			tdm_srx_reported(tdm_srx_port_done(fid), e->rx.addr);
		return 0;
	}
	tdm_srx_msg_of(e)->match.item.addr = addr;
	tdm_srx_msg_of(e)->match.item.key = key;
	return ret;
}

static int get_msg(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(fid, TDM_SRX_MSG, attr, entry);
}

static int get_tag(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(fid, TDM_SRX_TAG, attr, entry);
}

/*
 * get_*() for endpoints whose AV has user ids: a message that is matched at
 * once reports the id of its source. A message that has to wait keeps the
 * address of its source until it is started.
 */
static int get_msg_id(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		      struct fi_peer_rx_entry **entry)
{
	int ret = get(fid, TDM_SRX_MSG, attr, entry);

	if (!ret)
		(*entry)->addr = tdm_srx_reported(tdm_srx_port_done(fid),
						  (*entry)->addr);
	return ret;
}

static int get_tag_id(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		      struct fi_peer_rx_entry **entry)
{
	int ret = get(fid, TDM_SRX_TAG, attr, entry);

	if (!ret)
		(*entry)->addr = tdm_srx_reported(tdm_srx_port_done(fid),
						  (*entry)->addr);
	return ret;
}

static int get_msg_space(struct fid_peer_srx *fid,
			 struct fi_peer_match_attr *attr,
			 struct fi_peer_rx_entry **entry)
{
	return get_space(fid, TDM_SRX_MSG, attr, entry);
}

static int get_tag_space(struct fid_peer_srx *fid,
			 struct fi_peer_match_attr *attr,
			 struct fi_peer_rx_entry **entry)
{
	return get_space(fid, TDM_SRX_TAG, attr, entry);
}

static int queued(struct tdm_srx *srx, struct tdm_srx_msg *msg)
{
	tdm_srx_step(&msg->e.state, TDM_SRX_WAITING);
	if (srx->settling)
		tdm_list_append(&srx->pending, &msg->link);
	if (tdm_unlikely(!tdm_list_empty(&srx->watches)))
		tdm_srx_tell(srx, msg, 0);
	return 0;
}

/* queue_msg() and queue_tag(), whose entries tell their kind. */
static int queue(struct fi_peer_rx_entry *rx)
{
	struct tdm_srx_msg *msg = tdm_srx_msg_of(tdm_srx_entry_of_rx(rx));
	struct tdm_srx *srx = tdm_srx_of(rx->srx);

	tdm_assert_held(srx->engine->lock);
	assert(msg->e.state == TDM_SRX_NEW);
	msg->match.item.addr = rx->addr;
	msg->match.item.tag = rx->tag;
	msg->match.item.ignore = 0;
	tdm_match_arrive(srx->match[msg->e.kind], &msg->match);
	return queued(srx, msg);
}

/*
 * queue() for domains with match addresses; get_*() has stored that of the
 * source.
 */
static int queue_space(struct fi_peer_rx_entry *rx)
{
	struct tdm_srx_msg *msg = tdm_srx_msg_of(tdm_srx_entry_of_rx(rx));
	struct tdm_srx *srx = tdm_srx_of(rx->srx);

	tdm_assert_held(srx->engine->lock);
	assert(msg->e.state == TDM_SRX_NEW);
	msg->match.item.tag = rx->tag;
	msg->match.item.ignore = 0;
	tdm_match_arrive_space(srx->match[msg->e.kind], &msg->match);
	return queued(srx, msg);
}

static tdm_noinline void free_other(struct tdm_srx *srx,
				    struct fi_peer_rx_entry *rx)
{
	struct tdm_srx_entry *e = tdm_srx_entry_of_rx(rx), *parent = NULL;

	if (e->state == TDM_SRX_CLAIMED) {
		tdm_srx_step(&e->state, TDM_SRX_LOST);
		return;
	}
	assert(e->state == TDM_SRX_FILLING || e->state == TDM_SRX_NEW ||
	       e->state == TDM_SRX_WAITING);
	if (e->state == TDM_SRX_WAITING)
		tdm_srx_take(srx, tdm_srx_msg_of(e));
	if (e->unexpected)
		parent = tdm_srx_msg_of(e)->parent;
	if (parent)
		parent->side->port = rx->srx;
	tdm_srx_entry_free(srx, e);
	if (parent)
		tdm_srx_multi_put(srx, parent);
}

static void free_entry(struct fi_peer_rx_entry *rx)
{
	struct tdm_srx *srx = tdm_srx_of(rx->srx);
	struct tdm_srx_entry *e = tdm_srx_entry_of_rx(rx);

	tdm_assert_held(srx->engine->lock);
	if (tdm_unlikely(rx->flags & FI_RMA)) {
		/* an entry of a region, not of this receive side */
		srx->free_rma(rx);
		return;
	}
	if (tdm_unlikely(e->form | e->unexpected)) {
		free_other(srx, rx);
		return;
	}
	assert(e->state == TDM_SRX_FILLING);
	tdm_srx_entry_put(srx, e);
}

/*
 * Ask the transport behind @fid, by @get_addr, for the sources of its messages
 * of one kind whose source is unknown.
 */
static void resolve(struct tdm_srx *srx, enum tdm_srx_kind kind,
		    struct fid_peer_srx *fid,
		    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct tdm_list *pos, *tmp;
	struct tdm_match_item *item;
	struct tdm_srx_msg *msg;
	fi_addr_t addr;

	tdm_list_for_each_safe(pos, tmp, tdm_match_unknown(srx->match[kind])) {
		item = tdm_list_entry(pos, struct tdm_match_item, bucket);
		msg = tdm_srx_msg_of_item(item);
		if (msg->e.rx.srx != fid)
			continue;
		addr = get_addr(&msg->e.rx);
		if (addr == FI_ADDR_UNSPEC)
			continue;
		msg->e.rx.addr = addr;
		tdm_match_set_source(srx->match[kind], item,
				     tdm_srx_match_addr(srx, item, addr));
		if (!tdm_list_linked(&msg->link))
			tdm_list_append(&srx->pending, &msg->link);
	}
}

static void
foreach_unspec_addr(struct fid_peer_srx *fid,
		    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct tdm_srx *srx = tdm_srx_of(fid);
	struct fi_peer_rx_entry *rx;
	struct tdm_list *pos;

	tdm_assert_held(srx->engine->lock);
	resolve(srx, TDM_SRX_MSG, fid, get_addr);
	resolve(srx, TDM_SRX_TAG, fid, get_addr);
	tdm_list_for_each(pos, &srx->claimed) {
		rx = &tdm_srx_msg_of_link(pos)->e.rx;
		if (tdm_srx_entry_of_rx(rx)->state == TDM_SRX_CLAIMED &&
		    rx->srx == fid && rx->addr == FI_ADDR_UNSPEC)
			rx->addr = get_addr(rx);
	}
	tdm_srx_settle(srx);
}

/* The receive side owns its exports: an importer must not close them. */
static int export_close(struct fid *fid)
{
	return -FI_ENOSYS;
}

static struct fid_peer_srx *port_from_fid(fid_t fid)
{
	return tdm_container_of(fid, struct fid_peer_srx, ep_fid.fid);
}

static ssize_t export_cancel(fid_t fid, void *context)
{
	return tdm_srx_cancel(tdm_srx_of(port_from_fid(fid)), context);
}

static int export_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	struct tdm_srx *srx = tdm_srx_of(port_from_fid(fid));

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(srx->min_multi_recv)) {
		*len = sizeof(srx->min_multi_recv);
		return -FI_ETOOSMALL;
	}
	memcpy(val, &srx->min_multi_recv, sizeof(srx->min_multi_recv));
	*len = sizeof(srx->min_multi_recv);
	return 0;
}

static int export_setopt(fid_t fid, int level, int name, const void *val,
			 size_t len)
{
	size_t bytes;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len != sizeof(bytes))
		return -FI_EINVAL;
	memcpy(&bytes, val, sizeof(bytes));
	tdm_srx_set_min_multi_recv(tdm_srx_of(port_from_fid(fid)), bytes);
	return 0;
}

static struct fi_ops_srx_owner owner_ops = {
	.size = sizeof(owner_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

static struct fi_ops_srx_owner id_ops = {
	.size = sizeof(id_ops),
	.get_msg = get_msg_id,
	.get_tag = get_tag_id,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

static struct fi_ops_srx_owner space_ops = {
	.size = sizeof(space_ops),
	.get_msg = get_msg_space,
	.get_tag = get_tag_space,
	.queue_msg = queue_space,
	.queue_tag = queue_space,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

static struct tdm_user_id_ops tdm_srx_user_id_ops = {
	.size = sizeof(tdm_srx_user_id_ops),
	.id = tdm_srx_id,
};

static int export_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (!strcmp(name, TDM_USER_ID_OPS))
		*ops = &tdm_srx_user_id_ops;
	else if (!strcmp(name, TDM_SOURCE_OPS))
		*ops = &tdm_srx_source_ops;
	else if (!strcmp(name, TDM_HELD_OPS))
		*ops = &tdm_srx_of(port_from_fid(fid))->held;
	else
		return -FI_ENOSYS;
	return 0;
}

static struct fi_ops export_ops = {
	.size = sizeof(export_ops),
	.close = export_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = export_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep export_ep_ops = {
	.size = sizeof(export_ep_ops),
	.cancel = export_cancel,
	.getopt = export_getopt,
	.setopt = export_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

void tdm_srx_port_init(struct tdm_srx *srx, struct tdm_srx_port *port,
		       const struct tdm_done *done)
{
	port->srx = srx;
	port->done = done;
	port->fid.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	port->fid.ep_fid.fid.context = srx;
	port->fid.ep_fid.fid.ops = &export_ops;
	port->fid.ep_fid.ops = &export_ep_ops;
	tdm_srx_port_renew(port);
}

void tdm_srx_port_renew(struct tdm_srx_port *port)
{
	port->plain_ops = port->srx->spaces    ? &space_ops :
			  port->done->user_ids ? &id_ops :
						 &owner_ops;
	port->fid.owner_ops = port->done->strangers && port->offers ?
				      &tdm_srx_told_ops :
				      port->plain_ops;
}

fi_addr_t tdm_srx_id(struct fid_peer_srx *fid, fi_addr_t addr)
{
	/*
	 * The export of a group has no user ids; the exports of its contexts
	 * have.
	 */
	const struct tdm_done *done = tdm_import_done(fid);

	if (fid->ep_fid.fid.ops == &export_ops)
		done = tdm_srx_port_done(fid);
	return done ? tdm_srx_reported(done, addr) : addr;
}

uint64_t tdm_srx_refused(const struct fid_peer_srx *fid)
{
	const struct tdm_done *done = tdm_import_done(fid);

	if (fid->ep_fid.fid.ops == &export_ops)
		done = tdm_srx_port_done(fid);
	return done ? done->refused : 0;
}
