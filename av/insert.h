/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The insert calls, and the insertion of one address. For the files of av/
 * only.
 */
#ifndef TDM_AV_INSERT_H
#define TDM_AV_INSERT_H

#include "av/av_priv.h"

/* One call that inserts. */
struct tdm_av_call {
	struct tdm_av *av;
	fi_addr_t *fi_addr; /* [count] of the application, or NULL */
	int *errs;	    /* [count] of the application: FI_SYNC_ERR */
	void *context;	    /* of the events, with FI_EVENT */
	uint64_t flags;
	uint64_t here;	 /* tdm_locality_filter(), or all ones */
	size_t count;	 /* addresses in all */
	size_t at;	 /* the one to insert next */
	size_t inserted; /* addresses inserted */
	int keyed;	 /* 1: the addresses have keys, or must have */
};

/*
 * Insert @a, whose tdm_addr_hash() is @hash, as the next address of @call; or,
 * if @err is negative, record @err as the result of that address. Lock: held.
 */
void tdm_av_put(struct tdm_av_call *call, const struct tdm_addr *a,
		uint64_t hash, int err);

/*
 * Call the peer provider, if need be, and changed() of all users of @av, since
 * addresses were inserted or removed. Lock: held.
 */
void tdm_av_tell_changed(struct tdm_av *av);

/*
 * End @call after its last address: call the users of the vector and, with
 * FI_EVENT, write the final event. Lock: held.
 */
void tdm_av_put_end(struct tdm_av_call *call);

/* Insert all addresses of the application's array. Lock: held. */
void tdm_av_put_array(struct tdm_av_call *call, const void *array);

int tdm_av_insert(struct fid_av *fid, const void *addr, size_t count,
		  fi_addr_t *fi_addr, uint64_t flags, void *context);
int tdm_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
		     fi_addr_t *fi_addr, uint64_t flags, void *context);
int tdm_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
		     const char *service, size_t svccnt, fi_addr_t *fi_addr,
		     uint64_t flags, void *context);

/*
 * Decode address @i of the application's @array, in the format of @av. *@at,
 * which starts at @array, is moved to the next address for formats of different
 * sizes. Errors: -FI_EINVAL.
 */
int tdm_av_decode(const struct tdm_av *av, const void *array, size_t i,
		  const char **at, struct tdm_addr *a);

#endif /* TDM_AV_INSERT_H */
