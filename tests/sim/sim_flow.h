/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a simulated connection: bytes that were written, of which some
 * have arrived, of which some were read; see sim_net.c.
 *
 * Locking: none, one thread.
 */
#ifndef TDS_SIM_FLOW_H
#define TDS_SIM_FLOW_H

#include <sys/uio.h>

#include "sim.h"

struct tds_segment {
	uint64_t end; /* offset in the stream */
	uint64_t due;
};

/* Zeroed: empty. Offsets count from the begin of the stream. */
struct tds_flow {
	unsigned char *bytes; /* those from head on */
	size_t room;
	uint64_t head, arrived, tail;
	struct tds_segment *seg; /* seg[first..segs), in order */
	size_t first, segs, seg_room;
	int fin, fin_arrived; /* the writer has shut it down */
	uint64_t fin_due;
};

void tds_flow_free(struct tds_flow *f);

/* Append @len bytes of @iov[@count], that are due at @due. */
void tds_flow_write(struct tds_flow *f, const struct iovec *iov, size_t count,
		    size_t len, uint64_t due);

/* Take up to @len arrived bytes to @iov[@count]. Returns how many. */
size_t tds_flow_read(struct tds_flow *f, const struct iovec *iov, size_t count,
		     size_t len);

/* What is due arrives, while less than @window is unread. Not 0: some did. */
int tds_flow_arrive(struct tds_flow *f, size_t window);

/* When the next bytes or the end arrive, or TDS_NEVER. */
uint64_t tds_flow_next(const struct tds_flow *f, size_t window);

/* What has not arrived is lost; @later: it takes until then at least. */
void tds_flow_cut(struct tds_flow *f);
void tds_flow_delay(struct tds_flow *f, uint64_t later);

#endif /* TDS_SIM_FLOW_H */
