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
 * Both functions: UINT64_MAX stands for any number from about 2 * 10^18 on. They return 0, or
 * -1: the text is no such number, and *@out is undefined.
 */

/* Set *@out to the number whose decimal digits are the bytes from @text up to @end. */
int tdm_number_digits(const char *text, const char *end,
		      uint64_t *out) tdm_must_check;

/*
 * Set *@out to the number that @text is: digits and a unit of @list, whose last unit is
 * the empty one.
 */
int tdm_number_parse(const char *text, const struct tdm_unit *list,
		     uint64_t *out) tdm_must_check;

#endif /* TDM_BASE_NUMBER_H */
