/* SPDX-License-Identifier: BSD-2-Clause */
/* See number.h. No state: no lock. */
#include "base/number.h"

#include <string.h>
#include <strings.h>

int tdm_number_digits(const char *text, const char *end, uint64_t *out)
{
	uint64_t v = 0;

	if (text == end)
		return -1;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v < UINT64_MAX / 100 ? v * 10 + (uint64_t)(*text - '0') :
					   UINT64_MAX;
	}
	*out = v;
	return 0;
}

int tdm_number_parse(const char *text, const struct tdm_unit *list,
		     uint64_t *out)
{
	size_t n = strspn(text, "0123456789");
	uint64_t v;

	while (*list->text && strcasecmp(text + n, list->text))
		list++;
	if (strcasecmp(text + n, list->text) ||
	    tdm_number_digits(text, text + n, &v))
		return -1;
	*out = v > UINT64_MAX / list->factor ? UINT64_MAX : v * list->factor;
	return 0;
}
