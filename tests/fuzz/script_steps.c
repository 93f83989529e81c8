/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each kind of step calls: script_play.h.
 *
 * Spec: fi_msg(3), fi_tagged(3), fi_rma(3), fi_atomic(3), fi_mr(3).
 */
#include "tests/fuzz/script_play.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

static const size_t sizes[] = { 0,     1,     8,     63,     192,
				256,   1000,  4096,  4097,   8192,
				16384, 40000, 65536, 131072, 300000 };

/* ---- messages ------------------------------------------------------------ */

/* Whom a step means: an endpoint, anybody, or an address that is none. */
static fi_addr_t whom(const struct tdt_ep *ep, const struct step *s)
{
	switch (s->peer % 8) {
	case 0:
		return ep->peers[ep->index];
	case 1:
		return FI_ADDR_UNSPEC;
	case 2:
		return s->peer & 0x80 ? 4711 : ep->peers[!ep->index];
	default:
		return ep->peers[!ep->index];
	}
}

/* Give @d a buffer of @bytes, not 0. */
static void allot(struct deed *d, size_t bytes)
{
	d->buf = malloc(bytes);
	if (!d->buf)
		abort();
}

static uint8_t *buffer(struct play *p, struct deed *d, const struct step *s)
{
	size_t bytes;

	d->size = sizes[s->size % (sizeof(sizes) / sizeof(*sizes))];
	bytes = d->size ? d->size : 1;
	allot(d, bytes);
	memset(d->buf, (int)(d - p->deeds) + 1, bytes);
	return d->buf;
}

static void message(struct play *p, struct deed *d, const struct step *s,
		    struct tdt_op *op)
{
	op->tagged = s->how >> 1 & 1;
	op->buf = buffer(p, d, s);
	op->len = d->size;
	op->pieces = s->how >> 6;
	op->addr = whom(d->ep, s);
	op->tag = s->tag & 3;
	/* No receive from anybody takes those: their order would not be told. */
	if (op->addr == d->ep->peers[d->ep->index]) {
		op->tagged = 1;
		op->tag |= SELF_TAG_BIT;
	}
	op->ignore = s->tag >> 2 & 3;
	op->data = s->arg;
	op->context = &d->context;
}

/* Post @op for @d: it ends, unless @silent. Returns what the call returned. */
static ssize_t post(struct play *p, struct deed *d, const struct tdt_op *op,
		    int silent)
{
	ssize_t ret = tdt_post(d->ep, op);

	if (ret == -FI_ETIMEDOUT)
		tdt_script_broke(p, "a call gave -FI_EAGAIN for ever");
	d->open = !ret && !silent;
	return ret;
}

ssize_t tdt_script_send(struct play *p, struct deed *d, const struct step *s)
{
	static const uint64_t flags[] = {
		FI_INJECT,
		FI_MORE,
		FI_TRANSMIT_COMPLETE,
		FI_DELIVERY_COMPLETE,
		FI_COMPLETION,
		FI_REMOTE_CQ_DATA,
		FI_INJECT_COMPLETE,
		FI_FENCE,
	};
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	message(p, d, s, &op);
	op.call = (enum tdt_call)(TDT_SEND + (s->how >> 2 & 7) % 6);
	if (s->flags & 8)
		op.flags |= flags[s->flags & 7];
	if (s->flags & 0x80)
		op.flags |= flags[s->flags >> 4 & 7];
	return post(p, d, &op,
		    op.call == TDT_INJECT || op.call == TDT_INJECTDATA);
}

ssize_t tdt_script_receive(struct play *p, struct deed *d, const struct step *s)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	message(p, d, s, &op);
	op.call = (enum tdt_call)(TDT_RECV + (s->how >> 2 & 7) % 3);
	if (op.call == TDT_RECVMSG && s->flags & 1) {
		op.flags = FI_MULTI_RECV;
		op.tagged = 0;
		op.pieces = 0;
		d->multi = 1;
	}
	d->receive = 1;
	return post(p, d, &op, 0);
}

ssize_t tdt_script_peek(struct play *p, struct deed *d, const struct step *s)
{
	struct tdt_op op;
	ssize_t ret;

	tdt_script_rest(p);
	memset(&op, 0, sizeof(op));
	message(p, d, s, &op);
	op.call = TDT_RECVMSG;
	op.flags = FI_PEEK;
	if (s->flags & 1)
		op.flags |= s->flags & 2 ? FI_CLAIM : FI_DISCARD;
	ret = post(p, d, &op, 0);
	tdt_script_await(p, d);
	if (ret || p->broken || tdt_script_end_of(p, d)->err ||
	    !(op.flags & FI_CLAIM))
		return ret;
	op.flags = s->flags & 4 ? FI_CLAIM | FI_DISCARD : FI_CLAIM;
	d->receive = 1;
	ret = post(p, d, &op, 0);
	tdt_script_await(p, d);
	return ret;
}

ssize_t tdt_script_cancel(struct play *p, struct deed *d, const struct step *s)
{
	struct deed *victim = &p->deeds[s->arg % p->count];
	ssize_t ret;

	tdt_script_rest(p);
	if (victim != d && (victim->ep != d->ep || !victim->receive))
		return 0;
	ret = fi_cancel(&d->ep->ep->fid, &victim->context);
	tdt_script_rest(p);
	return ret;
}

/* ---- memory -------------------------------------------------------------- */

/* Where in the region of the peer, by the key that the step chooses. */
static struct fi_rma_iov target(const struct play *p, const struct tdt_ep *ep,
				const struct step *s, size_t len)
{
	size_t peer = s->peer & 1 ? ep->index : !ep->index;
	struct fid_mr *mr = p->mr[peer];
	struct fi_rma_iov r = { 0, len, 0 };

	if (s->at % 16 == 15)
		mr = p->read_only[peer];
	r.key = fi_mr_key(mr);
	if (s->at % 16 == 14)
		r.key += 4711;
	r.addr = (uint64_t)s->arg * OFFSET_BYTES + s->at / 16;
	if (ep->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		r.addr += (uintptr_t)p->region[peer];
	return r;
}

static ssize_t rma_call(struct deed *d, const struct step *s, fi_addr_t to,
			const struct fi_rma_iov *r)
{
	struct fid_ep *ep = d->ep->ep;
	struct iovec iov = { d->buf, d->size };
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = to,
		.rma_iov = r,
		.rma_iov_count = 1,
		.context = &d->context,
		.data = s->tag,
	};

	switch ((s->how >> 2 & 7) % 6) {
	case 0:
		return fi_write(ep, d->buf, d->size, NULL, to, r->addr, r->key,
				&d->context);
	case 1:
		return fi_read(ep, d->buf, d->size, NULL, to, r->addr, r->key,
			       &d->context);
	case 2:
		return fi_inject_write(ep, d->buf, d->size, to, r->addr,
				       r->key);
	case 3:
		return fi_writedata(ep, d->buf, d->size, NULL, s->tag, to,
				    r->addr, r->key, &d->context);
	case 4:
		return fi_writemsg(ep, &msg,
				   s->flags & 1 ? FI_DELIVERY_COMPLETE :
						  FI_INJECT);
	default:
		return fi_readmsg(ep, &msg, 0);
	}
}

/*
 * Make @call at @len bytes of the region that the step chooses, until it is taken, and
 * wait for its end; with @silent it has none.
 */
static ssize_t at_target(struct play *p, struct deed *d, const struct step *s,
			 size_t len, int silent,
			 ssize_t (*call)(struct deed *d, const struct step *s,
					 fi_addr_t to,
					 const struct fi_rma_iov *r))
{
	fi_addr_t to = d->ep->peers[s->peer & 1 ? d->ep->index : !d->ep->index];
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	struct fi_rma_iov r = target(p, d->ep, s, len);
	ssize_t ret;

	do {
		ret = call(d, s, to, &r);
	} while (tdt_script_again(p, ret, end));
	d->open = !ret && !silent;
	tdt_script_await(p, d);
	tdt_script_rest(p);
	return ret;
}

ssize_t tdt_script_rma(struct play *p, struct deed *d, const struct step *s)
{
	buffer(p, d, s);
	return at_target(p, d, s, d->size, (s->how >> 2 & 7) % 6 == 2,
			 rma_call);
}

static ssize_t atomic_call(struct deed *d, const struct step *s, fi_addr_t to,
			   const struct fi_rma_iov *r)
{
	enum fi_datatype type = (enum fi_datatype)(s->tag % TYPES);
	enum fi_op op = (enum fi_op)(s->flags % OPS);
	struct fid_ep *ep = d->ep->ep;
	size_t n = s->size % ATOMS;
	uint8_t *operand = d->buf, *result = operand + ATOMS * ATOM_BYTES,
		*compare = result + ATOMS * ATOM_BYTES;

	switch ((s->how >> 2 & 7) % 4) {
	case 0:
		return fi_atomic(ep, operand, n, NULL, to, r->addr, r->key,
				 type, op, &d->context);
	case 1:
		return fi_inject_atomic(ep, operand, n, to, r->addr, r->key,
					type, op);
	case 2:
		return fi_fetch_atomic(ep, operand, n, NULL, result, NULL, to,
				       r->addr, r->key, type, op, &d->context);
	default:
		return fi_compare_atomic(ep, operand, n, NULL, compare, NULL,
					 result, NULL, to, r->addr, r->key,
					 type, op, &d->context);
	}
}

ssize_t tdt_script_atomic(struct play *p, struct deed *d, const struct step *s)
{
	d->size = 3 * ATOMS * ATOM_BYTES;
	allot(d, d->size);
	tdt_fill(d->buf, d->size, s->arg);
	return at_target(p, d, s, 0, (s->how >> 2 & 7) % 4 == 1, atomic_call);
}
