/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the address vector. Included by the files of av/ only:
 *
 *	av.c		life, removal, lookup, what the endpoints ask
 *	insert.c	the three insert calls, and how one address gets in
 *	symmetric.c	the addresses that fi_av_insertsym(3) names
 *	event.c		inserts of a vector opened with FI_EVENT
 *	ids.c		user ids
 *	follow.c	named vectors: what others do to them (follow.h)
 */
#ifndef TDM_AV_AV_PRIV_H
#define TDM_AV_AV_PRIV_H

#include "av/av.h"
#include "av/table.h"
#include "tdm_ids.h"

struct tdm_av_queue;
struct tdm_eq;
struct tdm_shared;

struct tdm_av {
	struct fid_av fid;
	struct tdm_engine *engine;
	struct tdm_table table;	 /* G: domain */
	struct tdm_user_ids ids; /* G: domain */
	struct fid_av *local;	 /* the peer's AV, or NULL */
	uint64_t flags;		 /* it was opened with */
	uint32_t format;	 /* FI_SOCKADDR_IN, _IN6, FI_SOCKADDR, STR */
	struct tdm_space space;
	struct tdm_keyring *keys;   /* G: domain; NULL: addresses have none */
	struct tdm_eq *eq;	    /* fi_av_bind(), or NULL; G: domain */
	struct tdm_av_queue *queue; /* of a vector opened with FI_EVENT */
	struct tdm_list users;	    /* struct tdm_av_user; G: domain */
	struct tdm_shared *shared;  /* of a named one, or NULL; G: domain */
	struct tdm_list named_node; /* in tdm_av_attr.named */
	int unwritable; /* why nothing can be changed now, or 0; G: domain */
	void (*closed)(void *arg);
	void *closed_arg;
};

/* ---- insert.c ------------------------------------------------------------ */

/* One call that inserts. */
struct tdm_av_call {
	struct tdm_av *av;
	fi_addr_t *fi_addr; /* [count] of the application, or NULL */
	int *errs;	    /* [count] of the application: FI_SYNC_ERR */
	void *context;	    /* of the events, with FI_EVENT */
	uint64_t flags;
	uint64_t here; /* tdm_locality_filter() */
	size_t count;  /* addresses in all */
	size_t at;     /* the next one */
	size_t done;   /* inserted */
	int keyed;     /* addresses have keys, or should have */
};

/*
 * The next address of @call is @a, with tdm_addr_hash() @hash, or could not be
 * had: @err is a negative fi_errno. Lock: held.
 */
void tdm_av_put(struct tdm_av_call *call, const struct tdm_addr *a,
		uint64_t hash, int err);

/* All addresses of @call were put. Lock: held. */
void tdm_av_put_end(struct tdm_av_call *call);

/* Put all addresses of the application's array. Lock: held. */
void tdm_av_put_array(struct tdm_av_call *call, const void *array);

int tdm_av_insert(struct fid_av *fid, const void *addr, size_t count,
		  fi_addr_t *fi_addr, uint64_t flags, void *context);
int tdm_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
		     fi_addr_t *fi_addr, uint64_t flags, void *context);
int tdm_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
		     const char *service, size_t svccnt, fi_addr_t *fi_addr,
		     uint64_t flags, void *context);

/*
 * Decode one address of the application, in the format of @av. For formats of
 * mixed size *@at moves on; it starts at the array. Errors: -FI_EINVAL.
 */
int tdm_av_decode(const struct tdm_av *av, const void *array, size_t i,
		  const char **at, struct tdm_addr *a);

/*
 * @a is at @index from now on, and was lowest at @low before: tell the peer.
 * @here: tdm_locality_filter(). Lock: held.
 */
void tdm_av_placed(struct tdm_av *av, const struct tdm_addr *a, uint32_t index,
		   uint32_t low, uint64_t here);

/* ---- av.c ---------------------------------------------------------------- */

/*
 * Take @index, which is set, out of this process's table. The caller ends by
 * tdm_av_tell_inserted(): an alias may have become the lowest. Lock: held.
 */
void tdm_av_drop(struct tdm_av *av, uint32_t index);

/* Have the peer learn @index, or forget it. Lock: held. */
void tdm_av_local_insert(struct tdm_av *av, uint32_t index);
void tdm_av_local_remove(struct tdm_av *av, uint32_t index);

/* After addresses were added. Lock: held. */
void tdm_av_tell_inserted(struct tdm_av *av);

/* ---- symmetric.c --------------------------------------------------------- */

/* Consecutive services of consecutive nodes: fi_av_insertsym(3). */
struct tdm_av_range {
	const char *node;    /* a host name; NULL: base has the address */
	const char *service; /* a service name; NULL: port, or that of base */
	size_t nodecnt, svccnt;
	struct tdm_addr base; /* first address, numeric */
	int port;	      /* first port; negative: a fi_errno */
	int err;	      /* no address can be had: a negative fi_errno */
	uint32_t format;
};

/*
 * The addresses that @node and @service stand for; both stay the caller's,
 * for as long as @r. Nothing is resolved yet. Errors: -FI_EINVAL when they are
 * missing where they must not be, for too many addresses, and for a name
 * without a number at its end when there is more than one node.
 */
int tdm_av_range_init(struct tdm_av_range *r, uint32_t format, const char *node,
		      const char *service) tdm_must_check;

/* Not 0 when addresses have to be asked for, which may take seconds. */
static inline int tdm_av_range_is_named(const struct tdm_av_range *r)
{
	return !r->err && (r->node || r->service);
}

/*
 * The first address of node @n, with its port. May block for as long as the
 * resolver does. Errors: negative fi_errno. Lock: not needed, not to be held
 * when the range is named.
 */
int tdm_av_range_node(const struct tdm_av_range *r, size_t n,
		      struct tdm_addr *a) tdm_must_check;

/* Put the addresses of one node: @first and the ports after it. Lock: held. */
void tdm_av_range_put(const struct tdm_av_range *r, struct tdm_av_call *call,
		      const struct tdm_addr *first, int err);

/* ---- event.c ------------------------------------------------------------- */

int tdm_av_queue_open(struct tdm_av *av) tdm_must_check;

/*
 * Hold off all other inserts of a vector opened with FI_EVENT: outermost, taken
 * before the domain lock. Do nothing for others.
 */
void tdm_av_queue_hold(struct tdm_av *av);
void tdm_av_queue_release(struct tdm_av *av);

/*
 * End what is queued: FI_ECANCELED for each address. The queue is gone
 * afterwards. Lock: queue held, domain held.
 */
void tdm_av_queue_cancel(struct tdm_av *av);

/*
 * Run @call for the addresses at @array, or those of @range: at once when
 * nothing waits before it and no name has to be resolved, else by a thread.
 * Errors: -FI_ENOMEM, -FI_EAGAIN (no thread), with nothing done.
 */
int tdm_av_queue_insert(struct tdm_av_call *call,
			const void *array) tdm_must_check;
int tdm_av_queue_range(struct tdm_av_call *call,
		       const struct tdm_av_range *range) tdm_must_check;

/* Events of address @i, and of the whole. Lock: held. */
void tdm_av_event_err(const struct tdm_av_call *call, size_t i, int err);
void tdm_av_event_end(const struct tdm_av_call *call);

/* ---- ids.c --------------------------------------------------------------- */

/* Make room for the id of @index. Errors: -FI_ENOMEM. Lock: held. */
int tdm_av_ids_reserve(struct tdm_av *av, uint32_t index) tdm_must_check;

/* The id of @index from now on; there is room. Lock: held. */
void tdm_av_ids_set(struct tdm_av *av, uint32_t index, fi_addr_t id);

/* @index goes, and what is inserted there next has no id. Lock: held. */
void tdm_av_ids_drop(struct tdm_av *av, uint32_t index);

int tdm_av_set_user_id(struct fid_av *fid, fi_addr_t fi_addr, fi_addr_t user_id,
		       uint64_t flags);

#endif /* TDM_AV_AV_PRIV_H */
