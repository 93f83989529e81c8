/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations, fi_atomic(3), at both ends.
 *
 *   ATOMIC -->          the owner of the region carries it out, in ring order
 *          <-- ACK          base: status; others when refused
 *          <-- READ_DATA    the former values
 *
 * At the initiator a fetching operation completes as a read does.
 *
 * Invariants:
 *  1. An operation is carried out once, in the step that consumes its record:
 *     all that can fail for want of memory comes before.
 *  2. Operands are copied out of the ring before they are used.
 *  3. The answer is a control record, which waits for free slots if need be.
 * Locking: domain lock held. Spec: fi_atomic(3), include/tdm_rma.h,
 * doc/PROTOCOL-shm.md "Atomic operations".
 */
#include "shm/amo.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "shm/bell.h"
#include "shm/ctl.h"
#include "shm/progress.h"
#include "shm/rma.h"
#include "shm/tx.h"
#include "tdm_amo_calls.h"

enum {
	/* Slots of the longest ATOMIC; READ_DATA is shorter. */
	SLOTS_MOST = (TDM_SHM_HEAD_BYTES + sizeof(struct tdm_shm_amo) +
		      TDM_AMO_BYTES + TDM_SHM_SLOT_BYTES - 1) /
		     TDM_SHM_SLOT_BYTES,
};

/*
 * The longest operation, behind a PAD that is one slot shorter, and the slot
 * that is never used.
 */
tdm_static_assert(2 * (SLOTS_MOST + TDM_SHM_RANGES_SLOTS) - 1 +
				  TDM_SHM_TX_SPARE + 1 <=
			  TDM_SHM_RING_SMALL_SLOTS,
		  "every ring takes the longest operation once it is empty");

/* The former values of the target, on their way back to the initiator. */
struct result {
	struct tdm_shm_ctl ctl; /* the READ_DATA, or an ACK */
	uint8_t bytes[];
};

/* ---- initiator ----------------------------------------------------------- */

ssize_t tdm_shm_amo_send(struct tdm_shm_pair *pair, const struct tdm_xfer *x)
{
	const struct tdm_amo_call *call = x->amo;
	const struct tdm_shm_amo body = {
		.where = { .key = x->rma_key, .addr = x->rma_addr },
		.bytes = call->bytes,
		.amo = call->amo,
	};
	uint32_t n = tdm_shm_rec_slots(sizeof(body) + x->len);
	struct tdm_shm_op *op;
	uint8_t *slot;
	uint64_t id;

	if (!pair->peer_atomics)
		return -FI_EOPNOTSUPP;
	slot = tdm_shm_ranges_room(pair, x, n);
	if (!slot)
		return tdm_shm_tx_full(pair, x);
	op = tdm_shm_op_new(pair, x);
	if (!op) {
		(void)tdm_shm_ep_pass(pair->ep);
		return -FI_EAGAIN;
	}
	tdm_shm_ranges_put(pair, x);
	if (call->result_count) {
		op->len = call->bytes;
		op->bytes = call->bytes;
		op->count = (uint32_t)call->result_count;
		memcpy(op->iov, call->result,
		       call->result_count * sizeof(*call->result));
	}
	id = tdm_shm_op_id(op);
	memcpy(slot + 8, &id, 8);
	memcpy(slot + TDM_SHM_HEAD_BYTES, &body, sizeof(body));
	tdm_iov_copy_from(slot + TDM_SHM_HEAD_BYTES + sizeof(body), x->iov,
			  x->count, 0, x->len);
	tdm_shm_ring_publish(&pair->tx, n,
			     tdm_shm_word0(0, TDM_SHM_REC_ATOMIC, 0,
					   (uint16_t)x->len));
	tdm_shm_bell(pair);
	return 0;
}

/* ---- target -------------------------------------------------------------- */

/* Allocates memory for @bytes of former values. NULL: out of memory. */
static struct result *result_new(struct tdm_shm_pair *pair, size_t bytes)
{
	struct result *r = calloc(1, sizeof(*r) + bytes);

	if (!r)
		return NULL;
	r->ctl.kind = TDM_SHM_CTL_RESULT;
	tdm_list_init(&r->ctl.node);
	pair->nserves++;
	return r;
}

struct tdm_shm_ctl *tdm_shm_result_new(struct tdm_shm_pair *pair, size_t n,
				       uint8_t **bytes)
{
	struct result *r = result_new(pair, n);

	if (!r)
		return NULL;
	*bytes = r->bytes;
	return &r->ctl;
}

void tdm_shm_amo_write(const struct tdm_shm_ctl *ctl, uint8_t *body)
{
	const struct result *r = tdm_container_of(ctl, struct result, ctl);

	memcpy(body, r->bytes, ctl->aux);
}

void tdm_shm_amo_drop(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl)
{
	pair->nserves--;
	free(tdm_container_of(ctl, struct result, ctl));
}

/* Carry out @a at the owner of the region. Returns an enum tdm_shm_status. */
static unsigned carry_out(struct tdm_shm_pair *pair, struct tdm_rma_atomic *a)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct fi_peer_rx_entry entry;

	if (!ep->rma)
		return TDM_SHM_STATUS_ACCESS;
	switch (ep->rma->atomic(ep->domain->owner, pair->srx, a, &entry)) {
	case 0:
		tdm_done_recv(&ep->done, &entry, a->rma.len);
		return TDM_SHM_STATUS_OK;
	case -FI_EOPNOTSUPP:
		return TDM_SHM_STATUS_OPERATION;
	default:
		return TDM_SHM_STATUS_ACCESS;
	}
}

static int is_full(const struct tdm_shm_pair *pair)
{
	return pair->nserves >= TDM_SHM_SERVES_MOST;
}

int tdm_shm_amo_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		   const uint8_t *slot)
{
	uint64_t operands[TDM_AMO_BYTES / sizeof(uint64_t)];
	struct tdm_rma_atomic a = { .operands = operands };
	struct tdm_shm_amo body;
	struct result *r;
	unsigned status;
	int fetch;

	memcpy(&body, slot + TDM_SHM_HEAD_BYTES, sizeof(body));
	if (tdm_shm_amo_check(&body, rec->aux) || is_full(pair))
		return -FI_EPROTO;
	if (!pair->srx)
		return -FI_EAGAIN;
	fetch = tdm_amo_fetches(&body.amo);
	r = result_new(pair, fetch ? body.bytes : 0);
	if (!r)
		return -FI_EAGAIN;
	memcpy(operands, slot + TDM_SHM_HEAD_BYTES + rec->extra, rec->aux);
	memcpy(&r->ctl.tag, slot + 8, 8);
	tdm_shm_rma_request(&a.rma, pair, &body.where, 0);
	a.rma.len = body.bytes;
	a.amo = body.amo;
	a.result = fetch ? r->bytes : NULL;
	status = carry_out(pair, &a);
	r->ctl.op = TDM_SHM_REC_ACK;
	r->ctl.aux = (uint16_t)status;
	pair->rx_msgs++;
	pair->rx_bytes += rec->aux;
	if (fetch && status == TDM_SHM_STATUS_OK) {
		r->ctl.op = TDM_SHM_REC_READ_DATA;
		r->ctl.aux = (uint16_t)body.bytes;
		pair->tx_msgs++;
		pair->tx_bytes += body.bytes;
	}
	tdm_shm_ctl_send(pair, &r->ctl);
	return 0;
}

/* ---- fi_atomic(3) -------------------------------------------------------- */

/* Returns the flag of fi_query_atomic() for a family of calls. */
static uint64_t family(enum tdm_amo_kind kind)
{
	static const uint64_t flags[] = {
		[TDM_AMO_BASE] = 0,
		[TDM_AMO_FETCH] = FI_FETCH_ATOMIC,
		[TDM_AMO_COMPARE] = FI_COMPARE_ATOMIC,
	};

	return flags[kind];
}

/* The owner decides which operations exist and how long a value is. */
static int query(const struct tdm_shm_ep *ep, enum tdm_amo_kind kind,
		 enum fi_datatype type, enum fi_op op,
		 struct fi_atomic_attr *attr)
{
	struct fid_domain *owner = ep->domain->owner;

	return tdm_likely(owner != NULL) ?
		       fi_query_atomic(owner, type, op, attr, family(kind)) :
		       -FI_EOPNOTSUPP;
}

static ssize_t post(struct fid_ep *fid, const struct tdm_amo_ask *ask,
		    const struct tdm_amo_where *where, uint64_t flags)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);
	struct fi_atomic_attr attr;
	struct tdm_amo_post p;
	int ret = query(ep, ask->kind, ask->type, ask->op, &attr);

	if (!ret)
		ret = tdm_amo_prepare(&p, ask, attr.size);
	if (ret)
		return ret;
	tdm_amo_address(&p, where, flags);
	return tdm_shm_rma_send(ep, &p.x);
}

static int message_flags(struct fid_ep *fid, uint64_t given, uint64_t *flags)
{
	*flags = given | tdm_shm_ep_from_fid(fid)->tx_comp;
	return 0;
}

/* fi_endpoint(3): op_flags hold for calls without flags of their own. */
static uint64_t default_flags(struct fid_ep *fid)
{
	const struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);

	return ep->tx_flags | ep->tx_comp;
}

static int valid(struct fid_ep *fid, enum tdm_amo_kind kind,
		 enum fi_datatype type, enum fi_op op, size_t *count)
{
	struct fi_atomic_attr attr;
	int ret = query(tdm_shm_ep_from_fid(fid), kind, type, op, &attr);

	if (!ret)
		*count = attr.count;
	return ret;
}

struct tdm_amo_table tdm_shm_amo_calls = {
	.ops = TDM_AMO_OPS,
	.post = post,
	.flags = default_flags,
	.message_flags = message_flags,
	.valid = valid,
};
