/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message of the soak has in it: who sent it, its place in its stream, and
 * bytes that follow from these.
 */
#ifndef TDT_SOAK_MESSAGE_H
#define TDT_SOAK_MESSAGE_H

#include "board.h"

struct tdt_soak_head {
	uint32_t check; /* of the other members */
	uint16_t from;
	uint16_t kind; /* enum tdt_soak_class */
	uint32_t life, epoch;
	uint64_t number;
	uint64_t len; /* bytes, these included */
};

/* Write the message of @len bytes, at least sizeof(*head), to @buf. */
void tdt_soak_write(void *buf, struct tdt_soak_head *head, size_t len);

/* Is @buf such a message of @len bytes? Out: *@head. */
int tdt_soak_valid(const void *buf, size_t len, struct tdt_soak_head *head);

/*
 * Note in @at that the message of @head came. @strict: no message of the stream
 * may be missing but those that were cut; else its first one, and the first of an
 * epoch, may have any number. NULL, or what is wrong.
 */
const char *tdt_soak_arrived(struct tdt_soak_stream *at,
			     const struct tdt_soak_head *head, int strict);

#endif /* TDT_SOAK_MESSAGE_H */
