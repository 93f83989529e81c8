/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address vector, for the files of av/: its members, and the functions of
 * av.c. insert.h, local.h, symmetric.h, event.h, user_id.h and follow.h declare the
 * others.
 */
#ifndef TDM_AV_AV_PRIV_H
#define TDM_AV_AV_PRIV_H

#include "av/av.h"
#include "av/table.h"
#include "tdm_user_id.h"

struct tdm_av_queue;
struct tdm_eq;
struct tdm_shared;

struct tdm_av {
	struct fid_av fid;
	struct tdm_engine *engine;
	struct tdm_table table;	      /* G: domain */
	struct tdm_user_ids user_ids; /* G: domain */
	struct fid_av *local;	      /* the peer provider's AV, or NULL */
	uint64_t flags;		      /* of fi_av_open(3) */
	enum fi_av_type type;	      /* as it was asked for */
	uint32_t format; /* FI_SOCKADDR_IN, _IN6, FI_SOCKADDR, STR */
	struct tdm_space space;
	struct tdm_keyring *keys;   /* G: domain; NULL: addresses have none */
	struct tdm_eq *eq;	    /* fi_av_bind(), or NULL; G: domain */
	struct tdm_av_queue *queue; /* of a vector opened with FI_EVENT */
	struct tdm_list users;	    /* struct tdm_av_user; G: domain */
	struct tdm_list sets;	    /* struct tdm_av_set; G: domain */
	uint64_t set_count;	    /* sets opened so far; G: domain */
	struct tdm_shared *shared;  /* of a named one, or NULL; G: domain */
	struct tdm_list named_node; /* in tdm_av_attr.named */
	/*
	 * 1: since the last changed() an index was removed, or another one
	 * became the lowest of an address; G: domain
	 */
	int moved;
	int unwritable; /* error for all changes at present, or 0; G: domain */
	void (*closed)(void *arg);
	void *closed_arg;
};

static inline struct tdm_av *tdm_av_of(struct fid_av *fid)
{
	return tdm_container_of(fid, struct tdm_av, fid);
}

/*
 * Remove @index, which must be set, from this process's table. The caller must
 * then call tdm_av_tell_changed(), since a duplicate may be the lowest index now.
 * Lock: held.
 */
void tdm_av_drop(struct tdm_av *av, uint32_t index);

#endif /* TDM_AV_AV_PRIV_H */
