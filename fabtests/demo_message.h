/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The description that every message of the demo carries, whatever its length.
 * The tag has its kind, source, destination and sequence number; the remote CQ
 * data has its length and the seed of its payload.
 *
 *	tag   63..60 kind | 59..46 source | 45..32 destination | 31..0 number
 *	data  63..24 seed | 23..0 length in bytes
 */
#ifndef DEMO_MESSAGE_H
#define DEMO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "fabtests/demo_util.h"

enum demo_kind {
	DEMO_SMALL = 1, /* all-to-all, up to 4 KiB */
	DEMO_MIXED,	/* all-to-all, up to 4 MiB */
	DEMO_PING,	/* measurements between two ranks */
	DEMO_BULK,
	DEMO_BULK_ACK
};

enum { DEMO_MAX_RANKS = 1 << 14 };

/* Bits of the tag that an any-source receive ignores. */
#define DEMO_TAG_ANY (((uint64_t)0x3fff << 46) | 0xffffffffu)

static inline uint64_t demo_tag(enum demo_kind kind, int src, int dst,
				uint32_t number)
{
	return (uint64_t)kind << 60 | (uint64_t)src << 46 |
	       (uint64_t)dst << 32 | number;
}

static inline enum demo_kind demo_tag_kind(uint64_t tag)
{
	return (enum demo_kind)(tag >> 60);
}

static inline int demo_tag_src(uint64_t tag)
{
	return (int)(tag >> 46 & 0x3fff);
}

static inline int demo_tag_dst(uint64_t tag)
{
	return (int)(tag >> 32 & 0x3fff);
}

static inline uint32_t demo_tag_number(uint64_t tag)
{
	return (uint32_t)tag;
}

static inline uint64_t demo_data(uint64_t tag, size_t len)
{
	return demo_mix(tag ^ len) << 24 | len;
}

/* Seed of the payload's pattern. */
static inline uint64_t demo_seed(uint64_t tag, uint64_t data)
{
	return demo_mix(data ^ demo_mix(tag));
}

#endif /* DEMO_MESSAGE_H */
