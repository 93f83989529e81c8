/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of a named address vector: its name, its layout, and the checks of
 * its bytes. Pure: no state, no system call. All bytes from such a file are
 * checked here and nowhere else.
 *
 *	0		head: 1 page of words, then a change number per block
 *	TDM_SHARED_ARRAY	fi_addr_t[TDM_SHARED_MOST], for applications
 *	TDM_SHARED_ENTRIES	struct tdm_shared_entry[TDM_SHARED_MOST]
 *
 * The file has its full size from the start; pages that were never written take
 * no memory. A block is TDM_SHARED_BLOCK consecutive entries.
 */
#ifndef TDM_AV_SHARED_FORMAT_H
#define TDM_AV_SHARED_FORMAT_H

#include "av/addr.h"
#include "base/atomic.h"

enum {
	TDM_SHARED_VERSION = 1,
	TDM_SHARED_MOST = 1 << 20, /* addresses */
	TDM_SHARED_BLOCK = 256,	   /* addresses */
	TDM_SHARED_BLOCKS = TDM_SHARED_MOST / TDM_SHARED_BLOCK,
	TDM_SHARED_HEAD_BYTES = 4096 + TDM_SHARED_BLOCKS * 8,
	TDM_SHARED_ARRAY = 1 << 16, /* a multiple of any page size */
	TDM_SHARED_ARRAY_BYTES = TDM_SHARED_MOST * 8,
	TDM_SHARED_ENTRIES = TDM_SHARED_ARRAY + TDM_SHARED_ARRAY_BYTES,
	TDM_SHARED_FILE_BYTES = TDM_SHARED_ENTRIES + TDM_SHARED_MOST * 32,
	TDM_SHARED_PATHNAME_BYTES = 288 /* longest pathname, NUL included */
};

/* The part of the head that never changes while the file exists. */
struct tdm_shared_fixed {
	uint8_t magic[8];
	uint32_t version;
	uint32_t format; /* of the addresses: FI_SOCKADDR_IN, ... */
	uint32_t most, block, entry_bytes;
	uint32_t zero;
};

/*
 * A writer increments begun, makes its change, and sets gen to begun. So begun
 * differs from gen while a process writes, and also after a writer died in the
 * middle of a change.
 */
struct tdm_shared_head {
	struct tdm_shared_fixed fixed;
	tdm_a64 begun; /* number of the change that is being made */
	tdm_a64 gen;   /* number of the last change that is complete */
	tdm_a64 end;   /* one past the highest index ever set */
	tdm_a64 ready; /* number of blocks whose array elements are set */
	uint8_t room[4096 - sizeof(struct tdm_shared_fixed) - 32];
	tdm_a64 block[TDM_SHARED_BLOCKS]; /* number of its last change */
};

tdm_static_assert(sizeof(struct tdm_shared_head) == TDM_SHARED_HEAD_BYTES &&
			  TDM_SHARED_HEAD_BYTES <= TDM_SHARED_ARRAY,
		  "layout of the file");

/*
 * An entry. A free one is all 0, so pages that were never written have free
 * entries.
 */
struct tdm_shared_entry {
	uint8_t kind; /* 0, 4, 6 */
	uint8_t zero;
	uint16_t port;	/* network order */
	uint32_t scope; /* IPv6 link-local, else 0 */
	uint8_t ip[16];
	uint32_t zero2;
	uint32_t sum; /* of all before it */
};

tdm_static_assert(sizeof(struct tdm_shared_entry) == 32, "layout of the file");

/*
 * Offsets in the file, in bytes, of the array's element and of the entry of
 * @index.
 */
static inline uint64_t tdm_shared_array_at(uint32_t index)
{
	return TDM_SHARED_ARRAY + (uint64_t)index * 8;
}

static inline uint64_t tdm_shared_entry_at(uint32_t index)
{
	return TDM_SHARED_ENTRIES + (uint64_t)index * 32;
}

/*
 * Write to @pathname that of the vector @name of domain @domain and user @uid:
 * /dev/shm/tandem-av.UID.DOMAIN.NAME, with all but letters, digits, "-" and "_"
 * as %XX. Errors: -FI_EINVAL for an empty name, or one too long.
 */
int tdm_shared_pathname(char pathname[TDM_SHARED_PATHNAME_BYTES],
			unsigned int uid, const char *domain,
			const char *name) tdm_must_check;

/* Fill in @fixed for addresses of @format. */
void tdm_shared_fixed_init(struct tdm_shared_fixed *fixed, uint32_t format);

/*
 * Returns 0 when @fixed, copied out of a file of @bytes bytes, is the head of a
 * vector of @format. Errors: -FI_EIO: it is no table, or damaged;
 * -FI_ENOPROTOOPT: it has another version; -FI_EINVAL: another address format.
 */
int tdm_shared_fixed_check(const struct tdm_shared_fixed *fixed, uint64_t bytes,
			   uint32_t format) tdm_must_check;

/* Encode @a as the entry @e. */
void tdm_shared_encode(struct tdm_shared_entry *e, const struct tdm_addr *a);

/*
 * Decode @e, a copy of an entry. Returns 1: *@a is set; 0: the entry is free;
 * -FI_EIO: it is invalid, or was being written when it was copied.
 */
int tdm_shared_decode(const struct tdm_shared_entry *e,
		      struct tdm_addr *a) tdm_must_check;

#endif /* TDM_AV_SHARED_FORMAT_H */
