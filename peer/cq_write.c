/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The write side of a CQ: the calls that a transport makes on its export of the
 * CQ. Each format has a write call of its own, so that the common case has no
 * branch
 * on the format. See cq_priv.h for the invariants.
 *
 * Locking: domain lock held. Spec: fi_peer(3), fi_ops_cq_owner.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/trace.h"
#include "peer/cq_priv.h"

static struct tdm_cq *cq_from_peer(struct fid_peer_cq *peer)
{
	return tdm_container_of(peer, struct tdm_cq_export, peer)->cq;
}

static inline void put_words(tdm_a64 *slot, unsigned int words,
			     const struct fi_cq_tagged_entry *e)
{
	tdm_a64_store_relaxed(&slot[0], (uintptr_t)e->op_context);
	if (words >= TDM_CQ_WORDS_MSG) {
		tdm_a64_store_relaxed(&slot[1], e->flags);
		tdm_a64_store_relaxed(&slot[2], e->len);
	}
	if (words >= TDM_CQ_WORDS_DATA) {
		tdm_a64_store_relaxed(&slot[3], (uintptr_t)e->buf);
		tdm_a64_store_relaxed(&slot[4], e->data);
	}
	if (words >= TDM_CQ_WORDS_TAGGED)
		tdm_a64_store_relaxed(&slot[5], e->tag);
}

static ssize_t overrun(struct tdm_cq *cq)
{
	if (!cq->overrun)
		TDM_WARN(CQ, "out of memory: completions are lost");
	cq->overrun = 1;
	cq->empty = -FI_EOVERRUN;
	cq->room = 0;
	tdm_wait_signal(&cq->wait);
	return -FI_EOVERRUN;
}

struct tdm_cq_chunk *tdm_cq_chunk_alloc(void)
{
	struct tdm_cq_chunk *chunk = malloc(sizeof(*chunk));

	if (chunk) {
		chunk->next = NULL;
		chunk->first = 0;
		chunk->used = 0;
	}
	return chunk;
}

/*
 * Returns the last chunk of the overflow if it has a free slot, else a new one
 * appended to it. NULL: out of memory.
 */
static struct tdm_cq_chunk *over_room(struct tdm_cq *cq)
{
	struct tdm_cq_chunk *chunk = cq->over_last;

	if (chunk && chunk->used < TDM_CQ_CHUNK_ENTRIES)
		return chunk;
	chunk = cq->spare ? cq->spare : tdm_cq_chunk_alloc();
	if (!chunk)
		return NULL;
	cq->spare = tdm_cq_chunk_alloc();
	if (cq->over_last)
		cq->over_last->next = chunk;
	else
		cq->over = chunk;
	cq->over_last = chunk;
	return chunk;
}

static __attribute__((noinline)) ssize_t
put_over(struct tdm_cq *cq, const struct fi_cq_tagged_entry *e, fi_addr_t src)
{
	struct tdm_cq_chunk *chunk;

	if (cq->overrun)
		return -FI_EOVERRUN;
	chunk = over_room(cq);
	if (!chunk)
		return overrun(cq);
	chunk->slots[chunk->used].entry = *e;
	chunk->slots[chunk->used].src = src;
	chunk->used++;
	cq->over_count++;
	cq->tail++;
	tdm_wait_signal(&cq->wait);
	return 0;
}

static tdm_always_inline ssize_t put(struct fid_peer_cq *peer,
				     unsigned int words,
				     const struct fi_cq_tagged_entry *e,
				     fi_addr_t src)
{
	struct tdm_cq *cq = cq_from_peer(peer);
	size_t slot;

	tdm_assert_held(cq->engine->lock);
	TDM_TRACE5(complete, e->op_context, e->flags, e->len, e->tag, src);
	if (tdm_unlikely(cq->tail - cq->head >= cq->room))
		return put_over(cq, e, src);
	slot = cq->tail & cq->mask;
	put_words(&cq->ring[slot * words], words, e);
	if (cq->src)
		cq->src[slot] = src;
	cq->tail++;
	tdm_wait_signal(&cq->wait);
	return 0;
}

void tdm_cq_refill(struct tdm_cq *cq)
{
	/* the number that follows that of the ring's last entry */
	uint64_t n = cq->tail - cq->over_count;
	struct tdm_cq_chunk *chunk;
	size_t slot;

	while ((chunk = cq->over) && n - cq->head <= cq->mask) {
		slot = n++ & cq->mask;
		cq->over_count--;
		put_words(&cq->ring[slot * cq->words], cq->words,
			  &chunk->slots[chunk->first].entry);
		if (cq->src)
			cq->src[slot] = chunk->slots[chunk->first].src;
		if (++chunk->first < chunk->used)
			continue;
		cq->over = chunk->next;
		if (!cq->over)
			cq->over_last = NULL;
		if (cq->spare) {
			free(chunk);
			continue;
		}
		chunk->next = NULL;
		chunk->first = 0;
		chunk->used = 0;
		cq->spare = chunk;
	}
}

static ssize_t write_context(struct fid_peer_cq *peer, void *context,
			     uint64_t flags, size_t len, void *buf,
			     uint64_t data, uint64_t tag, fi_addr_t src)
{
	const struct fi_cq_tagged_entry e = { context, flags, len,
					      buf,     data,  tag };

	return put(peer, TDM_CQ_WORDS_CONTEXT, &e, src);
}

static ssize_t write_msg(struct fid_peer_cq *peer, void *context,
			 uint64_t flags, size_t len, void *buf, uint64_t data,
			 uint64_t tag, fi_addr_t src)
{
	const struct fi_cq_tagged_entry e = { context, flags, len,
					      buf,     data,  tag };

	return put(peer, TDM_CQ_WORDS_MSG, &e, src);
}

static ssize_t write_data(struct fid_peer_cq *peer, void *context,
			  uint64_t flags, size_t len, void *buf, uint64_t data,
			  uint64_t tag, fi_addr_t src)
{
	const struct fi_cq_tagged_entry e = { context, flags, len,
					      buf,     data,  tag };

	return put(peer, TDM_CQ_WORDS_DATA, &e, src);
}

static ssize_t write_tagged(struct fid_peer_cq *peer, void *context,
			    uint64_t flags, size_t len, void *buf,
			    uint64_t data, uint64_t tag, fi_addr_t src)
{
	const struct fi_cq_tagged_entry e = { context, flags, len,
					      buf,     data,  tag };

	return put(peer, TDM_CQ_WORDS_TAGGED, &e, src);
}

/* Write the address of a peer to @to, in the format of the domain. */
static void write_peer(const struct tdm_engine *engine,
		       struct fi_cq_err_entry *to,
		       const union tdm_errpeer *peer)
{
	to->err_data_size = 0;
	to->err_data = malloc(TDM_SOURCE_ADDR_BYTES);
	if (to->err_data)
		to->err_data_size = engine->source_addr(
			engine, &peer->sa, to->err_data, TDM_SOURCE_ADDR_BYTES);
}

/*
 * Give @to a copy of the error data of @from. Without memory the error is
 * reported without data: the application acts on its code.
 */
static void dup_err_data(struct fi_cq_err_entry *to,
			 const struct fi_cq_err_entry *from)
{
	to->err_data = NULL;
	to->err_data_size = 0;
	if (!from->err_data || !from->err_data_size)
		return;
	to->err_data = malloc(from->err_data_size);
	if (!to->err_data)
		return;
	memcpy(to->err_data, from->err_data, from->err_data_size);
	to->err_data_size = from->err_data_size;
}

static ssize_t write_err(struct fid_peer_cq *peer,
			 const struct fi_cq_err_entry *entry)
{
	struct tdm_cq *cq = cq_from_peer(peer);
	struct tdm_cq_err *err;

	tdm_assert_held(cq->engine->lock);
	TDM_TRACE4(complete_error, entry->op_context, entry->flags, entry->len,
		   entry->err);
	if (cq->overrun)
		return -FI_EOVERRUN;
	err = tdm_pool_alloc(&cq->err_pool);
	if (!err)
		return overrun(cq);
	err->next = NULL;
	err->at = cq->tail;
	err->entry = *entry;
	if (!err->entry.prov_errno)
		err->entry.prov_errno = entry->err;
	if (tdm_errpeer_set(&err->peer, entry->err_data,
			    entry->err_data ? entry->err_data_size : 0) &&
	    cq->engine->source_addr)
		write_peer(cq->engine, &err->entry, &err->peer);
	else
		dup_err_data(&err->entry, entry);
	cq->nerrs++;
	*cq->errs_end = err;
	cq->errs_end = &err->next;
	tdm_wait_signal(&cq->wait);
	return 0;
}

static struct fi_ops_cq_owner context_ops = {
	.size = sizeof(context_ops),
	.write = write_context,
	.writeerr = write_err,
};

static struct fi_ops_cq_owner msg_ops = {
	.size = sizeof(msg_ops),
	.write = write_msg,
	.writeerr = write_err,
};

static struct fi_ops_cq_owner data_ops = {
	.size = sizeof(data_ops),
	.write = write_data,
	.writeerr = write_err,
};

static struct fi_ops_cq_owner tagged_ops = {
	.size = sizeof(tagged_ops),
	.write = write_tagged,
	.writeerr = write_err,
};

struct fi_ops_cq_owner *tdm_cq_owner_ops(unsigned int words)
{
	switch (words) {
	case TDM_CQ_WORDS_CONTEXT:
		return &context_ops;
	case TDM_CQ_WORDS_MSG:
		return &msg_ops;
	case TDM_CQ_WORDS_DATA:
		return &data_ops;
	default:
		return &tagged_ops;
	}
}
