/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The read side of a CQ: the application's calls. See cq_priv.h for the
 * invariants.
 *
 * A read that cannot return as many entries as were asked for makes one pass of
 * progress, even when an error is what stops it: an application whose every
 * read meets an error, such as that of a peek, must still advance. Entries
 * written before an error are returned first; then reads return -FI_EAVAIL
 * until fi_cq_readerr takes the error.
 *
 * Locking: the calls take the domain lock; the static functions expect it.
 * Spec: fi_cq(3).
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "peer/cq_priv.h"
#include "peer/errstr.h"
#include "peer/patience.h"

static inline struct tdm_cq *cq_of(struct fid_cq *fid)
{
	return tdm_container_of(fid, struct tdm_cq, fid);
}

/* Returns how many entries come before the first error. */
static inline uint64_t readable(const struct tdm_cq *cq)
{
	uint64_t stop = tdm_unlikely(cq->errs != NULL) ? cq->errs->at :
							 cq->tail;

	return stop - cq->head;
}

/* Returns the result of a read that finds no entry. */
static ssize_t nothing(const struct tdm_cq *cq)
{
	if (cq->errs)
		return -FI_EAVAIL;
	return cq->empty;
}

/* Copy one entry, with loads as wide as the stores that wrote it. */
static inline void get_words(uint64_t *to, const tdm_a64 *slot,
			     unsigned int words)
{
	to[0] = tdm_a64_load_relaxed(&slot[0]);
	if (words >= TDM_CQ_WORDS_MSG) {
		to[1] = tdm_a64_load_relaxed(&slot[1]);
		to[2] = tdm_a64_load_relaxed(&slot[2]);
	}
	if (words >= TDM_CQ_WORDS_DATA) {
		to[3] = tdm_a64_load_relaxed(&slot[3]);
		to[4] = tdm_a64_load_relaxed(&slot[4]);
	}
	if (words >= TDM_CQ_WORDS_TAGGED)
		to[5] = tdm_a64_load_relaxed(&slot[5]);
}

/*
 * Copy @n entries from head on. @words is a constant at each call of this
 * function.
 */
static tdm_always_inline void get_run(const struct tdm_cq *cq, uint64_t *to,
				      size_t n, unsigned int words)
{
	const uint64_t mask = cq->mask;
	const uint64_t end = cq->head + n;
	const tdm_a64 *ring = cq->ring;
	uint64_t at;

	for (at = cq->head; at != end; at++, to += words)
		get_words(to, &ring[(at & mask) * words], words);
}

static void get_sources(const struct tdm_cq *cq, fi_addr_t *src, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		src[i] = cq->src ? cq->src[(cq->head + i) & cq->mask] :
				   FI_ADDR_NOTAVAIL;
}

/* Copy @n entries that are in the ring and move head. */
static tdm_noinline void get_many(struct tdm_cq *cq, uint64_t *to,
				  fi_addr_t *src, size_t n)
{
	switch (cq->words) {
	case TDM_CQ_WORDS_TAGGED:
		get_run(cq, to, n, TDM_CQ_WORDS_TAGGED);
		break;
	case TDM_CQ_WORDS_DATA:
		get_run(cq, to, n, TDM_CQ_WORDS_DATA);
		break;
	case TDM_CQ_WORDS_MSG:
		get_run(cq, to, n, TDM_CQ_WORDS_MSG);
		break;
	default:
		get_run(cq, to, n, TDM_CQ_WORDS_CONTEXT);
	}
	if (src)
		get_sources(cq, src, n);
	cq->head += n;
}

/* As get_many(), but fast for @n 1, which most reads find. */
static inline void get_entries(struct tdm_cq *cq, uint64_t *to, fi_addr_t *src,
			       size_t n)
{
	if (tdm_unlikely(n != 1 || src)) {
		get_many(cq, to, src, n);
		return;
	}
	if (tdm_likely(cq->words == TDM_CQ_WORDS_TAGGED))
		get_run(cq, to, 1, TDM_CQ_WORDS_TAGGED);
	else
		get_words(to, &cq->ring[(cq->head & cq->mask) * cq->words],
			  cq->words);
	cq->head++;
}

/* As get_many(), with an overflow: the ring is refilled while it is read. */
static __attribute__((noinline)) void get_over(struct tdm_cq *cq, uint64_t *to,
					       fi_addr_t *src, size_t n)
{
	size_t part;

	while (n) {
		part = tdm_min(n, cq->tail - cq->over_count - cq->head);
		get_entries(cq, to, src, part);
		tdm_cq_refill(cq);
		to += part * cq->words;
		if (src)
			src += part;
		n -= part;
	}
}

/*
 * Read up to @count entries. Returns how many, or the error code when there is
 * none.
 */
static inline ssize_t take(struct tdm_cq *cq, void *buf, fi_addr_t *src,
			   size_t count)
{
	size_t n = readable(cq);

	if (!n)
		return nothing(cq);
	if (n > count)
		n = count;
	if (tdm_unlikely(cq->over != NULL))
		get_over(cq, buf, src, n);
	else
		get_entries(cq, buf, src, n);
	if (cq->head == cq->tail && !cq->errs) {
		cq->head = 0;
		cq->tail = 0;
	}
	return (ssize_t)n;
}

static tdm_always_inline ssize_t read_from(struct fid_cq *fid, void *buf,
					   fi_addr_t *src, size_t count)
{
	struct tdm_cq *cq = cq_of(fid);
	struct tdm_engine *engine = cq->engine;
	int vain = 0;
	ssize_t ret;

	tdm_lock_acquire(engine->lock);
	if (!count || readable(cq) < count || tdm_unlikely(engine->owed))
		engine->progress(engine);
	ret = take(cq, buf, src, count);
	if (tdm_likely(ret == -FI_EAGAIN))
		vain = tdm_engine_vain(engine);
	else
		engine->vain = 0;
	tdm_lock_release(engine->lock);
	if (tdm_unlikely(vain))
		tdm_engine_yield(engine);
	return ret;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return read_from(fid, buf, NULL, count);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *src)
{
	return read_from(fid, buf, src, count);
}

/*
 * Returns the size of struct fi_cq_err_entry in the application's version of
 * the API: src_addr came with 1.20, err_data_size with 1.5.
 */
static size_t err_entry_bytes(uint32_t api_version)
{
	if (api_version && FI_VERSION_LT(api_version, FI_VERSION(1, 5)))
		return offsetof(struct fi_cq_err_entry, err_data_size);
	if (api_version && FI_VERSION_LT(api_version, FI_VERSION(1, 20)))
		return offsetof(struct fi_cq_err_entry, src_addr);
	return sizeof(struct fi_cq_err_entry);
}

/*
 * Fill the application's entry. If the application gave a buffer for error
 * data, copy the data there; else give it a pointer that is valid until the
 * next error is read.
 */
static void fill_err(struct tdm_cq *cq, struct fi_cq_err_entry *to,
		     struct tdm_cq_err *err)
{
	struct fi_cq_err_entry *from = &err->entry;
	const size_t bytes = err_entry_bytes(cq->engine->api_version);
	const int sized = bytes >
			  offsetof(struct fi_cq_err_entry, err_data_size);
	const size_t room = sized ? to->err_data_size : 0;

	cq->err_data = from->err_data;
	if (room && to->err_data) {
		from->err_data_size = tdm_min(room, from->err_data_size);
		if (from->err_data_size)
			memcpy(to->err_data, from->err_data,
			       from->err_data_size);
		from->err_data = to->err_data;
	}
	cq->last.data = from->err_data;
	cq->last.err = from->err;
	cq->last.prov_errno = from->prov_errno;
	cq->last.peer = err->peer;
	memcpy(to, from, bytes);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	struct tdm_cq *cq = cq_of(fid);
	struct tdm_lock *lock = cq->engine->lock;
	struct tdm_cq_err *err;
	ssize_t ret = 1;

	if (!buf)
		return -FI_EINVAL;
	tdm_lock_acquire(lock);
	err = cq->errs;
	if (!err || readable(cq)) {
		ret = readable(cq) ? -FI_EAGAIN : cq->empty;
		goto out;
	}
	free(cq->err_data);
	cq->errs = err->next;
	cq->nerrs--;
	if (!cq->errs)
		cq->errs_end = &cq->errs;
	fill_err(cq, buf, err);
	tdm_pool_free(&cq->err_pool, err);
out:
	tdm_lock_release(lock);
	return ret;
}

struct sread {
	const struct tdm_cq *cq;
	size_t want; /* entries */
};

static int sread_ready(void *arg)
{
	const struct sread *s = arg;

	return s->cq->tail - s->cq->head >= s->want || s->cq->errs ||
	       s->cq->overrun;
}

/*
 * When the time is over before the threshold is reached, the call returns the
 * entries there are; -FI_EAGAIN means that there are none. Thresholds above the
 * size of the CQ are lowered to it: posts are refused when the CQ is full, so a
 * higher threshold might never be reached.
 */
TDM_TSA(no_thread_safety_analysis)
static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	struct tdm_cq *cq = cq_of(fid);
	struct sread s = { cq, 1 };
	ssize_t ret;

	if (!tdm_wait_blocks(&cq->wait))
		return -FI_ENOSYS;
	if (cq->wait_cond == FI_CQ_COND_THRESHOLD && cond)
		s.want = tdm_clamp(*(const size_t *)cond, 1, cq->size);
	ret = tdm_wait_until(&cq->wait, sread_ready, &s, timeout,
			     &cq->interrupt);
	if (ret && ret != -FI_EAGAIN)
		return ret;
	if (ret)
		tdm_lock_acquire(cq->engine->lock);
	ret = take(cq, buf, src, count);
	tdm_lock_release(cq->engine->lock);
	return ret;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct tdm_cq *cq = cq_of(fid);

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	tdm_lock_acquire(cq->engine->lock);
	cq->interrupt = 1;
	tdm_wait_wake(&cq->wait);
	tdm_lock_release(cq->engine->lock);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	struct tdm_cq *cq = cq_of(fid);
	struct tdm_lock *lock = cq->engine->lock;
	struct tdm_errlast last;

	tdm_lock_acquire(lock);
	last = cq->last;
	tdm_lock_release(lock);
	return tdm_errstr(&last, prov_errno, err_data, buf, len);
}

struct fi_ops_cq tdm_cq_ops = {
	.size = sizeof(tdm_cq_ops),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};
