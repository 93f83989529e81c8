/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses that are also in the AV of the peer provider: those whose IP
 * belongs to this network namespace, with their index as user id. An address
 * that the peer's AV does not accept is reached by TCP; the insert succeeds all
 * the same. For the files of av/ only; av.h declares the functions for others.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_AV_LOCAL_H
#define TDM_AV_LOCAL_H

#include "av/av_priv.h"

/*
 * Open the peer's AV, unless @link is NULL or the peer has none. Lock: taken
 * inside.
 */
void tdm_av_local_open(struct tdm_av *av, struct tdm_link *link,
		       const struct fi_av_attr *attr);

/*
 * Called after @a was inserted at @index: brings the peer's AV, the counts of
 * keys and @av->moved up to date. @low: its lowest index before. @here:
 * tdm_locality_filter(). Errors: -FI_ENOMEM: the peer's AV does not have it. Until
 * it does, the sender of messages from @a is unknown to the peer.
 */
int tdm_av_placed(struct tdm_av *av, const struct tdm_addr *a, uint32_t index,
		  uint32_t low, uint64_t here);

/*
 * Insert @index, the lowest index of @a, into the peer's AV if the address may
 * be local and is not there. Errors: -FI_ENOMEM.
 */
int tdm_av_local_lowest(struct tdm_av *av, uint32_t index,
			const struct tdm_addr *a);

/* Remove @index from the peer's AV, if it is there. */
void tdm_av_local_remove(struct tdm_av *av, uint32_t index);

/*
 * Called after changes that set @av->moved: the peer looks up the sources of
 * messages again that an endpoint does not know any more.
 */
void tdm_av_local_moved(struct tdm_av *av);

#endif /* TDM_AV_LOCAL_H */
