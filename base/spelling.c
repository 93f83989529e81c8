/* SPDX-License-Identifier: BSD-2-Clause */
/* See spelling.h. Lock: none, no state. */
#include "base/spelling.h"

#include <string.h>

#include "base/base.h"

size_t tdm_spelling_distance(const char *a, const char *b)
{
	size_t row[TDM_SPELLING_BYTES], n = strlen(b), i, j;

	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 0; a[i]; i++) {
		size_t corner = row[0];

		row[0] = i + 1;
		for (j = 0; j < n; j++) {
			size_t swap = corner + (a[i] != b[j]);

			corner = row[j + 1];
			row[j + 1] = tdm_min(swap, tdm_min(corner, row[j]) + 1);
		}
	}
	return row[n];
}
