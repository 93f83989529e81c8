/* SPDX-License-Identifier: BSD-2-Clause */
/* How much two names differ, to find the one that a user meant. spelling.c. */
#ifndef TDM_BASE_SPELLING_H
#define TDM_BASE_SPELLING_H

#include <stddef.h>

enum { TDM_SPELLING_BYTES = 48 }; /* longest name, with its end */

/*
 * Edit distance: letters to insert, delete or replace to turn @a into @b; at
 * most TDM_SPELLING_BYTES. Both are shorter than that. Lock: none.
 */
size_t tdm_spelling_distance(const char *a, const char *b);

#endif /* TDM_BASE_SPELLING_H */
