/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of the peer provider of the kit; see peer.h.
 *
 * Invariant: objects are never freed, so that a call behind fi_close is found.
 *
 * Lock: none; see peer.h.
 */
#include "kit/peer_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "kit/rule.h"

struct kit_peer_seen kit_peer_seen;
struct kit_peer_do kit_peer_do;
struct kit_peer_want kit_peer_want;
struct kit_peer_ep *kit_peer_eps;

static char faults[KIT_SUBJECTS][KIT_TEXT_BYTES];
static uint64_t names;

void kit_peer_fault(enum kit_about subject, const char *text, ...)
{
	va_list args;

	if (*faults[subject])
		return;
	va_start(args, text);
	vsnprintf(faults[subject], KIT_TEXT_BYTES, text, args);
	va_end(args);
}

void kit_peer_no_fault(enum kit_about subject)
{
	if (*faults[subject])
		kit_broken("%s", faults[subject]);
}

/* ---- all objects ---------------------------------------------------------- */

static enum kit_object kind_of(const struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
		return KIT_FABRIC;
	case FI_CLASS_DOMAIN:
		return KIT_DOMAIN;
	case FI_CLASS_EQ:
		return KIT_EQ;
	case FI_CLASS_CQ:
		return KIT_CQ;
	case FI_CLASS_CNTR:
		return KIT_CNTR;
	case FI_CLASS_AV:
		return KIT_AV;
	case FI_CLASS_SRX_CTX:
		return KIT_SRX;
	case FI_CLASS_EP:
		return KIT_EP;
	default:
		return KIT_OBJECTS;
	}
}

/* Whether @fid has closed, which makes @call of it a fault. */
static int gone(const struct fid *fid, const char *call)
{
	if (kind_of(fid) != KIT_OBJECTS)
		return 0;
	kit_peer_fault(KIT_ON_LAST, "%s of an object that has closed", call);
	return 1;
}

int kit_peer_close(struct fid *fid)
{
	if (gone(fid, "fi_close"))
		return -FI_EINVAL;
	kit_peer_seen.closes[kind_of(fid)]++;
	fid->fclass = FI_CLASS_UNSPEC;
	return 0;
}

int kit_peer_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int kit_peer_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int kit_peer_no_ops(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	return -FI_ENOSYS;
}

struct fi_ops kit_peer_plain_ops = { .size = sizeof(kit_peer_plain_ops),
				     .close = kit_peer_close,
				     .bind = kit_peer_no_bind,
				     .control = kit_peer_no_control,
				     .ops_open = kit_peer_no_ops };

int kit_peer_make(size_t bytes, size_t fclass, void *context, void *out)
{
	struct fid *fid = calloc(1, bytes);
	enum kit_object kind;

	if (!fid)
		abort();
	*fid = (struct fid){ .fclass = fclass,
			     .context = context,
			     .ops = &kit_peer_plain_ops };
	kind = kind_of(fid);
	if (kit_peer_do.refuse[kind]) {
		kit_peer_seen.refused++;
		free(fid);
		return -FI_EINVAL;
	}
	kit_peer_seen.opens[kind]++;
	memcpy(out, &fid, sizeof(fid));
	return 0;
}

/* ---- queues and counters -------------------------------------------------- */

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	kit_step("fi_cq_read by the owner");
	if (gone(&fid->fid, "fi_cq_read"))
		return -FI_EINVAL;
	if (buf || count)
		kit_peer_fault(KIT_ON_DRIVE, "fi_cq_read with %s and count %zu",
			       buf ? "a buffer" : "no buffer", count);
	kit_peer_seen.drives++;
	kit_peer_pass((struct kit_peer_cq *)fid, NULL);
	return kit_peer_seen.drives % 2 ? 0 : -FI_EAGAIN;
}

static ssize_t no_readfrom(struct fid_cq *cq, void *buf, size_t count,
			   fi_addr_t *from)
{
	return -FI_ENOSYS;
}

static ssize_t no_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t no_sread(struct fid_cq *cq, void *buf, size_t count,
			const void *cond, int timeout)
{
	return -FI_ENOSYS;
}

static ssize_t no_sreadfrom(struct fid_cq *cq, void *buf, size_t count,
			    fi_addr_t *from, const void *cond, int timeout)
{
	return -FI_ENOSYS;
}

static int no_signal(struct fid_cq *cq)
{
	return -FI_ENOSYS;
}

static const char *no_strerror(struct fid_cq *cq, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	return "kitpeer";
}

static struct fi_ops_cq cq_ops = { .size = sizeof(cq_ops),
				   .read = cq_read,
				   .readfrom = no_readfrom,
				   .readerr = no_readerr,
				   .sread = no_sread,
				   .sreadfrom = no_sreadfrom,
				   .signal = no_signal,
				   .strerror = no_strerror };

static int cq_close(struct fid *fid)
{
	struct kit_peer_cq *cq = (struct kit_peer_cq *)fid;

	if (cq->lent && fid->fclass == FI_CLASS_CQ &&
	    (cq->lent->owner_ops != cq->copy.owner_ops ||
	     cq->lent->fid.fclass != cq->copy.fid.fclass))
		kit_peer_fault(KIT_ON_STAYS, "the queue that was lent changed "
					     "before the peer's was closed");
	return kit_peer_close(fid);
}

static struct fi_ops cq_fi_ops = { .size = sizeof(cq_fi_ops),
				   .close = cq_close,
				   .bind = kit_peer_no_bind,
				   .control = kit_peer_no_control,
				   .ops_open = kit_peer_no_ops };

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		   struct fid_cq **out, void *context)
{
	const struct fi_peer_cq_context *lent = context;
	struct kit_peer_cq *cq;
	int ret = kit_peer_make(sizeof(*cq), FI_CLASS_CQ, NULL, &cq);

	kit_step("fi_cq_open by the owner");
	if (ret)
		return ret;
	cq->fid.ops = &cq_ops;
	cq->fid.fid.ops = &cq_fi_ops;
	*out = &cq->fid;
	if (!attr || !(attr->flags & FI_PEER)) {
		kit_peer_fault(KIT_ON_CQ, "fi_cq_open without FI_PEER");
		return 0;
	}
	kit_peer_seen.imports[KIT_CQ]++;
	kit_look_cq(lent);
	if (!lent || !lent->cq)
		return -FI_EINVAL;
	cq->lent = lent->cq;
	cq->copy = *lent->cq;
	return 0;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	if (gone(&fid->fid, "fi_cntr_read"))
		return 0;
	kit_peer_pass(NULL, (struct kit_peer_cntr *)fid);
	return 0;
}

static uint64_t no_cntr_readerr(struct fid_cntr *cntr)
{
	return 0;
}

static int no_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return -FI_ENOSYS;
}

static int no_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return -FI_ENOSYS;
}

static struct fi_ops_cntr cntr_ops = { .size = sizeof(cntr_ops),
				       .read = cntr_read,
				       .readerr = no_cntr_readerr,
				       .add = no_cntr_set,
				       .set = no_cntr_set,
				       .wait = no_cntr_wait,
				       .adderr = no_cntr_set,
				       .seterr = no_cntr_set };

static int cntr_close(struct fid *fid)
{
	struct kit_peer_cntr *c = (struct kit_peer_cntr *)fid;

	if (c->lent && fid->fclass == FI_CLASS_CNTR &&
	    c->lent->owner_ops != c->copy.owner_ops)
		kit_peer_fault(KIT_ON_STAYS, "the counter that was lent "
					     "changed before the peer's was "
					     "closed");
	return kit_peer_close(fid);
}

static struct fi_ops cntr_fi_ops = { .size = sizeof(cntr_fi_ops),
				     .close = cntr_close,
				     .bind = kit_peer_no_bind,
				     .control = kit_peer_no_control,
				     .ops_open = kit_peer_no_ops };

static int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		     struct fid_cntr **out, void *context)
{
	const struct fi_peer_cntr_context *lent = context;
	struct kit_peer_cntr *c;
	int ret = kit_peer_make(sizeof(*c), FI_CLASS_CNTR, NULL, &c);

	if (ret)
		return ret;
	c->fid.ops = &cntr_ops;
	c->fid.fid.ops = &cntr_fi_ops;
	*out = &c->fid;
	if (!attr || !(attr->flags & FI_PEER)) {
		kit_peer_fault(KIT_ON_CNTR, "fi_cntr_open without FI_PEER");
		return 0;
	}
	kit_peer_seen.imports[KIT_CNTR]++;
	kit_look_cntr(lent);
	if (!lent || !lent->cntr)
		return -FI_EINVAL;
	c->lent = lent->cntr;
	c->copy = *lent->cntr;
	return 0;
}

/* ---- receive contexts ----------------------------------------------------- */

static int srx_close(struct fid *fid)
{
	struct kit_peer_srx *srx = (struct kit_peer_srx *)fid;

	if (srx->lent && fid->fclass == FI_CLASS_SRX_CTX &&
	    (srx->lent->owner_ops != srx->copy.owner_ops ||
	     srx->lent->peer_ops != &kit_peer_srx_ops))
		kit_peer_fault(KIT_ON_STAYS, "the receive context that was "
					     "lent changed before the peer's "
					     "was closed");
	return kit_peer_close(fid);
}

static struct fi_ops srx_fi_ops = { .size = sizeof(srx_fi_ops),
				    .close = srx_close,
				    .bind = kit_peer_no_bind,
				    .control = kit_peer_no_control,
				    .ops_open = kit_peer_no_ops };

static int srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		    struct fid_ep **out, void *context)
{
	const struct fi_peer_srx_context *lent = context;
	struct kit_peer_srx *srx;
	int ret = kit_peer_make(sizeof(*srx), FI_CLASS_SRX_CTX, NULL, &srx);

	kit_step("fi_srx_context by the owner");
	if (ret)
		return ret;
	srx->fid.fid.ops = &srx_fi_ops;
	*out = &srx->fid;
	if (!attr || !(attr->op_flags & FI_PEER)) {
		kit_peer_fault(KIT_ON_SRX, "fi_srx_context without FI_PEER");
		return 0;
	}
	kit_peer_seen.imports[KIT_SRX]++;
	kit_look_srx(lent);
	if (!lent || !lent->srx)
		return -FI_EINVAL;
	srx->lent = lent->srx;
	srx->lent->peer_ops = &kit_peer_srx_ops;
	srx->copy = *lent->srx;
	return 0;
}

/* ---- address vectors ------------------------------------------------------ */

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct kit_peer_av *av = (struct kit_peer_av *)fid;
	const char *name = addr;
	size_t i;

	kit_step("fi_av_insert by the owner");
	if (gone(&fid->fid, "fi_av_insert"))
		return -FI_EINVAL;
	for (i = 0; i < count && av->count < KIT_PEER_ADDRS_MOST; i++) {
		memcpy(&av->name[av->count], name, sizeof(av->name[0]));
		name += KIT_PEER_NAME_BYTES;
		av->user_id[av->count] = av->count;
		kit_peer_seen.inserts++;
		if (flags & FI_AV_USER_ID)
			av->user_id[av->count] = fi_addr[i];
		if (fi_addr)
			fi_addr[i] = av->count;
		av->count++;
	}
	kit_peer_resolve(av);
	return (int)i;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct kit_peer_av *av = (struct kit_peer_av *)fid;
	size_t i;

	for (i = 0; i < count; i++) {
		if (fi_addr[i] < av->count)
			av->name[fi_addr[i]] = 0;
		else
			kit_peer_fault(KIT_ON_ADDR,
				       "fi_av_remove of the address %#llx, "
				       "which was not inserted",
				       (unsigned long long)fi_addr[i]);
	}
	return 0;
}

static struct fi_ops_av av_ops = { .size = sizeof(av_ops),
				   .insert = av_insert,
				   .remove = av_remove };

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **out, void *context)
{
	struct kit_peer_av *av;
	int ret = kit_peer_make(sizeof(*av), FI_CLASS_AV, NULL, &av);

	if (ret)
		return ret;
	av->fid.ops = &av_ops;
	*out = &av->fid;
	return 0;
}

/* ---- endpoints ------------------------------------------------------------ */

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct kit_peer_ep *ep = (struct kit_peer_ep *)fid;

	if (ep->enabled)
		kit_peer_fault(KIT_ON_BIND, "fi_ep_bind behind fi_enable");
	if (bfid->ops == &kit_peer_plain_ops && bfid->fclass == FI_CLASS_AV)
		ep->av = (struct kit_peer_av *)bfid;
	else if (bfid->ops == &srx_fi_ops)
		ep->srx = (struct kit_peer_srx *)bfid;
	else if (bfid->ops == &cntr_fi_ops && flags & FI_RECV)
		ep->rx_cntr = (struct kit_peer_cntr *)bfid;
	else if (bfid->ops == &cntr_fi_ops && flags & FI_SEND)
		ep->tx_cntr = (struct kit_peer_cntr *)bfid;
	else if (bfid->ops == &cq_fi_ops && flags & FI_TRANSMIT)
		ep->tx = (struct kit_peer_cq *)bfid;
	if (bfid->ops == &cq_fi_ops && flags & FI_RECV)
		ep->rx = (struct kit_peer_cq *)bfid;
	if (bfid->ops != &cq_fi_ops && bfid->ops != &kit_peer_plain_ops &&
	    bfid->ops != &srx_fi_ops && bfid->ops != &cntr_fi_ops)
		kit_peer_fault(KIT_ON_BIND,
			       "fi_ep_bind of an object of class "
			       "%zu that is not the peer's",
			       bfid->fclass);
	if (flags & FI_TRANSMIT)
		ep->tx_flags = flags;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct kit_peer_ep *ep = (struct kit_peer_ep *)fid;

	if (command != FI_ENABLE)
		return -FI_ENOSYS;
	kit_step("fi_enable by the owner");
	if (!ep->av || !ep->srx || !ep->tx || !ep->rx)
		kit_peer_fault(KIT_ON_BIND, "fi_enable without %s",
			       !ep->av	? "an address vector" :
			       !ep->srx ? "a receive context" :
					  "completion queues");
	if (!ep->av || !ep->srx || !ep->tx || !ep->rx)
		return -FI_EINVAL;
	ep->enabled = 1;
	ep->next = kit_peer_eps;
	kit_peer_eps = ep;
	return 0;
}

static int ep_close(struct fid *fid)
{
	struct kit_peer_ep *ep = (struct kit_peer_ep *)fid, **at;

	kit_step("fi_close of the endpoint by the owner");
	if (gone(fid, "fi_close"))
		return -FI_EINVAL;
	for (at = &kit_peer_eps; *at; at = &(*at)->next) {
		if (*at != ep)
			continue;
		*at = ep->next;
		kit_peer_drop(ep);
		break;
	}
	if ((ep->rx && !ep->rx->fid.fid.fclass) ||
	    (ep->tx && !ep->tx->fid.fid.fclass) ||
	    (ep->av && !ep->av->fid.fid.fclass))
		kit_peer_fault(KIT_ON_LAST,
			       "what is bound to the endpoint was closed "
			       "before it");
	return kit_peer_close(fid);
}

static struct fi_ops ep_fi_ops = { .size = sizeof(ep_fi_ops),
				   .close = ep_close,
				   .bind = ep_bind,
				   .control = ep_control,
				   .ops_open = kit_peer_no_ops };

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	const uint64_t name[2] = { ((struct kit_peer_ep *)fid)->name };
	const size_t room = *len;

	*len = sizeof(name);
	if (addr)
		memcpy(addr, name, room < sizeof(name) ? room : sizeof(name));
	return room < sizeof(name) ? -FI_ETOOSMALL : 0;
}

static struct fi_ops_cm cm_ops = { .size = sizeof(cm_ops),
				   .getname = ep_getname };

/* Receives are the owner's; some owners look for them there when asked back. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct kit_peer_ep *ep = (struct kit_peer_ep *)fid;
	struct fid_ep *lent = ep->srx ? &ep->srx->lent->ep_fid : NULL;

	if (!lent || !lent->ops || !lent->ops->cancel)
		return -FI_ENOENT;
	return lent->ops->cancel(&lent->fid, context);
}

static int ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	return -FI_ENOPROTOOPT;
}

static int ep_setopt(fid_t fid, int level, int name, const void *val,
		     size_t len)
{
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep ep_ops = { .size = sizeof(ep_ops),
				   .cancel = ep_cancel,
				   .getopt = ep_getopt,
				   .setopt = ep_setopt };

static int ep_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **out, void *context)
{
	struct kit_peer_ep *ep;
	int ret = kit_peer_make(sizeof(*ep), FI_CLASS_EP, context, &ep);

	if (ret)
		return ret;
	ep->name = ++names;
	ep->op_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->fid.fid.ops = &ep_fi_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.msg = &kit_peer_msg_ops;
	ep->fid.tagged = &kit_peer_tagged_ops;
	*out = &ep->fid;
	return 0;
}

struct fi_ops_domain kit_peer_domain_ops = { .size = sizeof(
						     struct fi_ops_domain),
					     .av_open = av_open,
					     .cq_open = cq_open,
					     .endpoint = ep_open,
					     .cntr_open = cntr_open,
					     .srx_ctx = srx_open };
