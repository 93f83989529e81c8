/* SPDX-License-Identifier: BSD-2-Clause */
/* See spares.h. */
#include "base/spares.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Remove number @i of the kept ones, and return it. */
static void *drop(struct tdm_spares *s, uint32_t i)
{
	void *buf = s->kept[i].buf;

	s->bytes -= s->kept[i].bytes;
	s->count--;
	memmove(&s->kept[i], &s->kept[i + 1],
		(s->count - i) * sizeof(s->kept[0]));
	return buf;
}

static int is_kept_size(uint32_t bytes)
{
	return bytes >= TDM_SPARES_SMALLEST && bytes <= TDM_SPARES_LARGEST;
}

void *tdm_spares_take(struct tdm_spares *s, uint32_t bytes, uint32_t *got)
{
	uint32_t i = is_kept_size(bytes) ? s->count : 0;
	void *buf;

	while (i-- > 0) {
		if (s->kept[i].bytes < bytes ||
		    s->kept[i].bytes > bytes + bytes / 4)
			continue;
		*got = s->kept[i].bytes;
		return drop(s, i);
	}
	*got = bytes;
	buf = malloc(bytes);
	if (!buf && s->count) {
		tdm_spares_fini(s);
		buf = malloc(bytes);
	}
	return buf;
}

void tdm_spares_give(struct tdm_spares *s, void *buf, uint32_t bytes)
{
	if (!buf)
		return;
	if (!is_kept_size(bytes)) {
		free(buf);
		return;
	}
	while (s->count == TDM_SPARES_MOST ||
	       s->bytes + bytes > TDM_SPARES_MOST_BYTES)
		free(drop(s, 0));
	s->kept[s->count].buf = buf;
	s->kept[s->count++].bytes = bytes;
	s->bytes += bytes;
}

void tdm_spares_fini(struct tdm_spares *s)
{
	while (s->count)
		free(drop(s, s->count - 1));
}
