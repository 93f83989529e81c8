/* SPDX-License-Identifier: BSD-2-Clause */
/* See sim_flow.h. Locking: none, one thread. */
#include "sim_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void tds_flow_free(struct tds_flow *f)
{
	free(f->bytes);
	free(f->seg);
	memset(f, 0, sizeof(*f));
}

static void *more(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	if (!p)
		abort();
	return p;
}

static void add_segment(struct tds_flow *f, uint64_t due)
{
	if (f->first && f->first == f->segs)
		f->first = f->segs = 0;
	if (f->segs > f->first && f->seg[f->segs - 1].due > due)
		due = f->seg[f->segs - 1].due; /* in order */
	if (f->segs == f->seg_room) {
		f->seg_room = f->seg_room ? f->seg_room * 2 : 16;
		f->seg = more(f->seg, f->seg_room * sizeof(*f->seg));
	}
	f->seg[f->segs].end = f->tail;
	f->seg[f->segs++].due = due;
}

void tds_flow_write(struct tds_flow *f, const struct iovec *iov, size_t count,
		    size_t len, uint64_t due)
{
	size_t held = f->tail - f->head, i;

	if (held + len > f->room) {
		f->room = (held + len) * 2;
		f->bytes = more(f->bytes, f->room);
	}
	for (i = 0; i < count && len; i++) {
		size_t n = tdm_min(iov[i].iov_len, len);

		memcpy(f->bytes + (f->tail - f->head), iov[i].iov_base, n);
		f->tail += n;
		len -= n;
	}
	add_segment(f, due);
}

size_t tds_flow_read(struct tds_flow *f, const struct iovec *iov, size_t count,
		     size_t len)
{
	size_t left = tdm_min(len, (size_t)(f->arrived - f->head)), done = 0, i;

	for (i = 0; i < count && left; i++) {
		size_t n = tdm_min(iov[i].iov_len, left);

		memcpy(iov[i].iov_base, f->bytes + done, n);
		done += n;
		left -= n;
	}
	f->head += done;
	memmove(f->bytes, f->bytes + done, f->tail - f->head);
	return done;
}

int tds_flow_arrive(struct tds_flow *f, size_t window)
{
	uint64_t before = f->arrived, now = tds_now();

	while (f->first < f->segs && f->seg[f->first].due <= now) {
		uint64_t end = f->seg[f->first].end;

		if (end > f->head + window) {
			f->arrived = tdm_max(f->arrived, f->head + window);
			break;
		}
		f->arrived = end;
		f->first++;
	}
	if (f->fin && f->arrived == f->tail && f->fin_due <= now)
		f->fin_arrived = 1;
	return f->arrived != before;
}

uint64_t tds_flow_next(const struct tds_flow *f, size_t window)
{
	if (f->first < f->segs)
		return f->arrived - f->head >= window ? TDS_NEVER :
							f->seg[f->first].due;
	return f->fin && !f->fin_arrived ? f->fin_due : TDS_NEVER;
}

void tds_flow_cut(struct tds_flow *f)
{
	f->tail = f->arrived;
	f->first = f->segs = 0;
	f->fin = f->fin_arrived;
}

void tds_flow_delay(struct tds_flow *f, uint64_t later)
{
	size_t i;

	for (i = f->first; i < f->segs; i++)
		f->seg[i].due = tdm_max(f->seg[i].due, later);
	f->fin_due = tdm_max(f->fin_due, later);
}
