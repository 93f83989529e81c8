/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named address vectors: how a table follows the shared file (follow.c). For
 * the files of av/ only.
 */
#ifndef TDM_AV_FOLLOW_H
#define TDM_AV_FOLLOW_H

#include "av/av_priv.h"

/*
 * Open the file for the name of @attr. Errors: those of tdm_shared_open().
 * Lock: not held.
 */
int tdm_av_share(struct tdm_av *av, const struct tdm_av_attr *owner,
		 const struct fi_av_attr *attr) tdm_must_check;

/*
 * Take over the entries of the file, and join the list @named, unless that is
 * NULL. @count: expected addresses. Errors: -FI_ENOMEM, -FI_EIO. Lock: taken
 * inside.
 */
int tdm_av_first_follow(struct tdm_av *av, struct tdm_list *named,
			size_t count) tdm_must_check;

/* tdm_av_change_begin() and _end() of a named vector. */
void tdm_av_shared_begin(struct tdm_av *av);
void tdm_av_shared_end(struct tdm_av *av);

/*
 * Called around changes of a vector: keeps other processes from changing it,
 * and takes over their earlier changes. Sets av->unwritable. Does nothing
 * without a name. Lock: held.
 */
static inline void tdm_av_change_begin(struct tdm_av *av)
{
	if (tdm_unlikely(av->shared != NULL))
		tdm_av_shared_begin(av);
}

static inline void tdm_av_change_end(struct tdm_av *av)
{
	if (tdm_unlikely(av->shared != NULL))
		tdm_av_shared_end(av);
}

#endif /* TDM_AV_FOLLOW_H */
