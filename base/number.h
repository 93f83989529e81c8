/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as users write them, with a unit: 64K, 30s. number.c. Lock: none. */
#ifndef TDM_BASE_NUMBER_H
#define TDM_BASE_NUMBER_H

#include <stdint.h>

#include "base/base.h"

struct tdm_unit {
	const char *text; /* upper and lower case are the same */
	uint64_t factor;
};

/*
 * Set *@out to the number whose decimal digits are the bytes from @text up to @end; to
 * a larger one than any range has if it is beyond 64 bits. Returns 0, or -1: no digit,
 * or another character; *@out is then undefined.
 */
int tdm_number_digits(const char *text, const char *end,
		      uint64_t *out) tdm_must_check;

/*
 * Set *@out to the number that @text is: digits and a unit of @list, whose last unit is
 * the empty one. UINT64_MAX stands for what is beyond 64 bits. Returns 0, or -1.
 */
int tdm_number_parse(const char *text, const struct tdm_unit *list,
		     uint64_t *out) tdm_must_check;

#endif /* TDM_BASE_NUMBER_H */
