/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named address vectors: keeps the table of this process equal to the shared
 * file (follow.c). For the files of av/ only.
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
 * Copy the entries of the file to the table of @av, and add @av to the list
 * @named, unless that is NULL. @count: expected number of addresses. Errors:
 * -FI_ENOMEM, -FI_EIO. Lock: taken inside.
 */
int tdm_av_first_follow(struct tdm_av *av, struct tdm_list *named,
			size_t count) tdm_must_check;

/*
 * Begin and end a change of a named vector, for tdm_av_change_begin() and
 * tdm_av_change_end(). Lock: the vector's, held.
 */
void tdm_av_shared_begin(struct tdm_av *av);
void tdm_av_shared_end(struct tdm_av *av);

/*
 * Called before and after changes of a vector. begin: locks the file so that no
 * other process changes it, copies earlier changes from it, and sets
 * av->unwritable to an error if the vector cannot be changed now; end: unlocks
 * it. Both do nothing without a name. Lock: held.
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
