/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inserts of a vector opened with FI_EVENT. Addresses without a name to resolve
 * are inserted in the call itself, events included, unless earlier inserts
 * wait. All others wait in a queue, in the order of the calls, for a thread
 * that exists only while there is such work.
 *
 * Invariants:
 *  1. Inserts take effect in the order of the calls, so that indices are those
 *     of a vector without FI_EVENT.
 *  2. Each insert that was begun ends by one FI_AV_COMPLETE, after one error
 *     event for each address that failed; FI_ECANCELED for those that fi_close
 *     prevented.
 *  3. While the thread resolves a name it holds no lock and uses only its own
 *     copies, so that fi_close does not wait for the resolver. The queue may
 *     outlive the vector; thread or fi_close frees it, whichever is last.
 *
 * Locking: the queue's mutex, then the domain lock, then the EQ's. The mutex
 * is held by each insert and by the thread, except while a name is resolved.
 * Under FI_THREAD_DOMAIN the domain lock becomes real when the thread starts.
 *
 * Spec: fi_av(3), FI_EVENT.
 */
#include "av/event.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av_priv.h"
#include "av/follow.h"
#include "av/insert.h"
#include "av/locality.h"
#include "av/symmetric.h"
#include "base/log.h"
#include "base/os.h"
#include "peer/eq.h"

/* An insert that waits. */
struct job {
	struct tdm_list node;
	struct tdm_av_call call;
	/* addr NULL: its range */
	struct tdm_av_range range;
	size_t next;	       /* next node of the range to insert */
	char *strings;	       /* of the range */
	struct tdm_addr *addr; /* [call.count] of insert, or NULL */
	int *err;	       /* [call.count] */
};

struct tdm_av_queue {
	pthread_mutex_t mutex;
	struct tdm_list jobs; /* struct job, oldest first; G: mutex */
	struct tdm_av *av;    /* NULL: it was closed; G: mutex */
	int running;	      /* 1: the thread exists; G: mutex */
};

void tdm_av_event_err(const struct tdm_av_call *call, size_t i, int err)
{
	struct fi_eq_err_entry e = {
		.fid = &call->av->fid.fid,
		.context = call->context,
		.data = i,
		.err = -err,
		.prov_errno = -err,
	};

	if (tdm_eq_keep_err(call->av->eq, &e))
		TDM_WARN(AV, "an error event of an insert is lost");
}

void tdm_av_event_end(const struct tdm_av_call *call)
{
	struct fi_eq_entry e = {
		.fid = &call->av->fid.fid,
		.context = call->context,
		.data = call->inserted,
	};

	if (tdm_eq_keep(call->av->eq, FI_AV_COMPLETE, &e, sizeof(e)) < 0)
		TDM_WARN(AV, "the event of an insert is lost");
}

static void job_free(struct job *job)
{
	free(job->strings);
	free(job->addr);
	free(job->err);
	free(job);
}

static void queue_free(struct tdm_av_queue *q)
{
	pthread_mutex_destroy(&q->mutex);
	free(q);
}

int tdm_av_queue_open(struct tdm_av *av)
{
	struct tdm_av_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -FI_ENOMEM;
	pthread_mutex_init(&q->mutex, NULL);
	tdm_list_init(&q->jobs);
	q->av = av;
	av->queue = q;
	return 0;
}

TDM_TSA(no_thread_safety_analysis)
void tdm_av_queue_hold(struct tdm_av *av)
{
	if (av->queue)
		pthread_mutex_lock(&av->queue->mutex);
}

TDM_TSA(no_thread_safety_analysis)
void tdm_av_queue_release(struct tdm_av *av)
{
	if (av->queue)
		pthread_mutex_unlock(&av->queue->mutex);
}

TDM_TSA(no_thread_safety_analysis)
void tdm_av_queue_cancel(struct tdm_av *av)
{
	struct tdm_av_queue *q = av->queue;
	struct tdm_list *node;
	int running;

	if (!q)
		return;
	while ((node = tdm_list_pop(&q->jobs))) {
		struct job *job = tdm_list_entry(node, struct job, node);

		while (job->call.at < job->call.count)
			tdm_av_put(&job->call, NULL, 0, -FI_ECANCELED);
		tdm_av_put_end(&job->call);
		job_free(job);
	}
	q->av = NULL;
	av->queue = NULL;
	running = q->running;
	pthread_mutex_unlock(&q->mutex);
	if (!running)
		queue_free(q);
}

/*
 * Insert addresses that have been resolved: all of the job's array, or one node
 * of its range, which begins at @first or failed with @err.
 */
static void job_put(struct job *job, const struct tdm_addr *first, int err)
{
	struct tdm_av_call *call = &job->call;
	size_t i;

	if (!job->addr) {
		tdm_av_range_put(&job->range, call, first, err);
		return;
	}
	tdm_av_change_begin(call->av);
	for (i = 0; i < call->count; i++)
		tdm_av_put(call, &job->addr[i], tdm_addr_hash(&job->addr[i]),
			   job->err[i]);
	tdm_av_change_end(call->av);
}

static int job_left(const struct job *job)
{
	return job->call.at < job->call.count;
}

/* Copy the strings of @r. Returns the memory to free later, or NULL. */
static char *copy_strings(struct tdm_av_range *r)
{
	size_t node = r->node ? strlen(r->node) + 1 : 0;
	size_t service = r->service ? strlen(r->service) + 1 : 0;
	char *copy = malloc(node + service + 1);

	if (!copy)
		return NULL;
	if (node)
		r->node = memcpy(copy, r->node, node);
	if (service)
		r->service = memcpy(copy + node, r->service, service);
	return copy;
}

/*
 * Set *@a to the first address of the job's next node. While a name is
 * resolved, the mutex is not held.
 */
static int resolve(struct tdm_av_queue *q, const struct job *job,
		   struct tdm_addr *a)
{
	struct tdm_av_range r = job->range;
	const size_t n = job->next;
	char *strings;
	int ret;

	if (!tdm_av_range_is_named(&r))
		return tdm_av_range_node(&r, n, a);
	strings = copy_strings(&r);
	if (!strings)
		return -FI_ENOMEM;
	pthread_mutex_unlock(&q->mutex);
	ret = tdm_av_range_node(&r, n, a);
	pthread_mutex_lock(&q->mutex);
	free(strings);
	return ret;
}

/* Insert one node of the oldest job, or all of its array. Lock: queue. */
static void step(struct tdm_av_queue *q)
{
	struct job *job = tdm_list_entry(q->jobs.next, struct job, node);
	struct tdm_addr first;
	int err = 0;

	if (job_left(job) && !job->addr)
		err = resolve(q, job, &first);
	if (!q->av)
		return; /* fi_close has freed the job */
	tdm_lock_acquire(q->av->engine->lock);
	job->call.here = tdm_locality_filter();
	if (job_left(job))
		job_put(job, &first, err);
	job->next++;
	if (!job_left(job)) {
		tdm_av_put_end(&job->call);
		tdm_list_del(&job->node);
		job_free(job);
	}
	tdm_lock_release(q->av->engine->lock);
}

static void *run(void *arg)
{
	struct tdm_av_queue *q = arg;
	int closed;

	pthread_mutex_lock(&q->mutex);
	while (q->av && !tdm_list_empty(&q->jobs))
		step(q);
	q->running = 0;
	closed = !q->av;
	pthread_mutex_unlock(&q->mutex);
	if (closed)
		queue_free(q);
	return NULL;
}

/* Append @job to the queue and start the thread if it does not run. */
static int enqueue(struct tdm_av_queue *q, struct job *job)
{
	pthread_t thread;

	if (!q->running) {
		tdm_lock_enable(q->av->engine->lock);
		if (tdm_os.thread_create(&thread, run, q))
			return -FI_EAGAIN;
		pthread_detach(thread);
		q->running = 1;
	}
	tdm_list_append(&q->jobs, &job->node);
	return 0;
}

static struct job *job_of_array(const struct tdm_av_call *call,
				const void *array)
{
	struct job *job = calloc(1, sizeof(*job));
	const char *at = array;
	size_t i;

	if (!job)
		return NULL;
	job->call = *call;
	job->addr = malloc((call->count + 1) * sizeof(*job->addr));
	job->err = malloc((call->count + 1) * sizeof(*job->err));
	if (!job->addr || !job->err) {
		job_free(job);
		return NULL;
	}
	for (i = 0; i < call->count; i++)
		job->err[i] =
			tdm_av_decode(call->av, array, i, &at, &job->addr[i]);
	return job;
}

static struct job *job_of_range(const struct tdm_av_call *call,
				const struct tdm_av_range *range)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->call = *call;
	job->range = *range;
	job->strings = copy_strings(&job->range);
	if (!job->strings) {
		job_free(job);
		return NULL;
	}
	return job;
}

static int queue_job(struct tdm_av_queue *q, struct job *job)
{
	int ret;

	if (!job)
		return -FI_ENOMEM;
	ret = enqueue(q, job);
	if (ret)
		job_free(job);
	return ret;
}

int tdm_av_queue_insert(struct tdm_av_call *call, const void *array)
{
	struct tdm_av *av = call->av;
	struct tdm_av_queue *q = av->queue;
	int ret = 0;

	pthread_mutex_lock(&q->mutex);
	if (tdm_list_empty(&q->jobs)) {
		tdm_lock_acquire(av->engine->lock);
		tdm_av_put_array(call, array);
		tdm_lock_release(av->engine->lock);
	} else {
		ret = queue_job(q, job_of_array(call, array));
	}
	pthread_mutex_unlock(&q->mutex);
	return ret;
}

/* Insert a range that has no names to resolve. Lock: queue. */
static void insert_range(struct tdm_av_call *call, const struct tdm_av_range *r)
{
	struct tdm_lock *lock = call->av->engine->lock;
	struct tdm_addr a;
	size_t n;
	int ret;

	tdm_lock_acquire(lock);
	call->here = tdm_locality_filter();
	for (n = 0; n < r->nodecnt; n++) {
		ret = tdm_av_range_node(r, n, &a);
		tdm_av_range_put(r, call, &a, ret);
	}
	tdm_av_put_end(call);
	tdm_lock_release(lock);
}

int tdm_av_queue_range(struct tdm_av_call *call,
		       const struct tdm_av_range *range)
{
	struct tdm_av_queue *q = call->av->queue;
	int ret = 0;

	pthread_mutex_lock(&q->mutex);
	if (tdm_list_empty(&q->jobs) &&
	    (!call->count || !tdm_av_range_is_named(range)))
		insert_range(call, range);
	else
		ret = queue_job(q, job_of_range(call, range));
	pthread_mutex_unlock(&q->mutex);
	return ret;
}
