/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of the attach socket. Pure functions over untrusted bytes, in
 * record.c. doc/PROTOCOL-shm.md fixes the values.
 */
#ifndef TDM_SHM_PACKET_H
#define TDM_SHM_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "base/auth.h"
#include "base/base.h"

struct tdm_shm_rec;

#define TDM_SHM_MAGIC 0x314d48536d646e74ull

enum { TDM_SHM_VERSION_LEAST = 1, TDM_SHM_VERSION_MOST = 1 };

enum tdm_shm_msg_type {
	/*
	 * descriptors: segment, hints, eventfd; arg: number of receive contexts
	 * minus 1
	 */
	TDM_SHM_MSG_HELLO = 1,
	TDM_SHM_MSG_REJECT = 2, /* reason */
	TDM_SHM_MSG_READY = 3,
	TDM_SHM_MSG_ABORT = 4,	/* reason */
	TDM_SHM_MSG_RING = 5,	/* descriptor: next ring; arg: slots */
	TDM_SHM_MSG_BOUNCE = 6, /* descriptor: bounce area; arg: chunks */
	TDM_SHM_MSG_LEFT = 7,	/* descriptor: left entries; arg: pages */
	TDM_SHM_MSG_COUNT
};

/* Reasons for ending an attach, as sent over the socket. */
enum tdm_shm_why {
	TDM_SHM_WHY_NONE,
	TDM_SHM_WHY_TIE,   /* the sender's own attach to the receiver wins */
	TDM_SHM_WHY_BUSY,  /* a session is alive, or the owner waits for TCP */
	TDM_SHM_WHY_OTHER, /* the pair uses another transport */
	TDM_SHM_WHY_VERSION,
	TDM_SHM_WHY_RESOURCE, /* memory, descriptors */
	TDM_SHM_WHY_SEGMENT,  /* the receiver's segment is not as required */
	TDM_SHM_WHY_KEY,      /* the receiver of the HELLO has no key */
	TDM_SHM_WHY_COUNT
};

enum {
	/* the sender is registered for GLOBAL_EXPEDITED membarrier */
	TDM_SHM_FEATURE_BARRIER = 1,
	TDM_SHM_FEATURE_CMA = 2,      /* may be read with process_vm_readv */
	TDM_SHM_FEATURE_GROUPS = 4,   /* accepts SELECT of a group */
	TDM_SHM_FEATURE_AUTH = 8,     /* HELLO and READY have proofs */
	TDM_SHM_FEATURE_ATOMIC = 16,  /* accepts ATOMIC */
	TDM_SHM_FEATURE_LEFT = 32,    /* accepts LEFT */
	TDM_SHM_FEATURE_RANGES = 64,  /* accepts RANGES */
	TDM_SHM_FEATURE_STREAM = 128, /* accepts rings over 8192 slots */
};

enum {
	TDM_SHM_MSG_MOST_BYTES = 256,
	TDM_SHM_FDS_MOST = 3,
	TDM_SHM_CTX_MOST = 1 << 16, /* receive contexts of an endpoint */
	TDM_SHM_LEFT_PAGES = 4096,  /* greatest number of pages in an area */
	TDM_SHM_LEFT_AREAS = 4096,  /* greatest number of areas in a session */
};

struct tdm_shm_msg_head {
	uint64_t magic;
	uint16_t type;
	uint16_t bytes; /* of the packet */
	uint32_t arg;
};

struct tdm_shm_hello {
	struct tdm_shm_msg_head head;
	uint16_t version_least;
	uint16_t version_most;
	uint32_t features;
	uint8_t incarnation[16]; /* random, of this endpoint */
	/* address of nonce in the sender's memory, to test CMA */
	uint64_t nonce_addr;
	uint64_t nonce;
	uint32_t slots; /* of the ring in the segment */
	uint32_t bell;	/* bit number in the hints page for this pair */
	uint32_t addrlen;
	uint8_t addr[28]; /* of this endpoint: sockaddr_in or sockaddr_in6 */
};

/*
 * The HELLO of an endpoint with a key; without a key it is struct
 * tdm_shm_hello.
 */
struct tdm_shm_proven_hello {
	struct tdm_shm_hello hello;
	uint8_t nonce[TDM_AUTH_NONCE_BYTES];
	uint8_t proof[TDM_AUTH_PROOF_BYTES];
};

/* The READY of an endpoint with a key. */
struct tdm_shm_ready {
	struct tdm_shm_msg_head head;
	uint8_t proof[TDM_AUTH_PROOF_BYTES];
};

/* A packet that was copied and checked. */
struct tdm_shm_msg {
	enum tdm_shm_msg_type type;
	uint32_t arg;
	/* 1: the READY has a proof, the HELLO is a struct tdm_shm_proven_hello */
	int proven;
	struct tdm_shm_hello hello;		  /* type HELLO only */
	struct tdm_shm_proven_hello proven_hello; /* the whole HELLO */
	uint8_t proof[TDM_AUTH_PROOF_BYTES];	  /* type READY, when proven */
};

/*
 * Decode a packet of @len bytes that came with @nfds descriptors. Out: *@msg.
 * Returns 0, or -1 when the packet is malformed. Of a HELLO of another version
 * only the fields up to the incarnation are checked: ask
 * tdm_shm_hello_version() before using others.
 */
int tdm_shm_msg_decode(struct tdm_shm_msg *msg, const void *buf, size_t len,
		       int nfds) tdm_must_check;

/* Returns the version that both sides support, or -1: there is none. */
int tdm_shm_hello_version(const struct tdm_shm_hello *hello);

/* Kinds of entries in an area that a closing endpoint leaves; 0 ends it. */
enum {
	/* payload of the message or write with this id */
	TDM_SHM_LEFT_PAYLOAD = 1,
	/* a record as in the ring, without lap; id: 0 */
	TDM_SHM_LEFT_RECORD = 2,
};

/*
 * Head of an entry; its bytes follow, then the next head at a multiple of 16.
 * Zeros end the area.
 */
struct tdm_shm_left {
	uint64_t id;
	uint32_t len;  /* bytes */
	uint32_t kind; /* TDM_SHM_LEFT_* */
};

/* Returns the size of an entry with @len bytes of payload, head included. */
static inline size_t tdm_shm_left_bytes(size_t len)
{
	return sizeof(struct tdm_shm_left) + ((len + 15) & ~(size_t)15);
}

/*
 * Check the head of an entry when @room bytes of the area remain. Returns 0, or
 * -1: it ends the area, or the entry is larger than @room bytes.
 */
int tdm_shm_left_check(const struct tdm_shm_left *left,
		       size_t room) tdm_must_check;

/*
 * Decode @word0 of an entry TDM_SHM_LEFT_RECORD of @len bytes, which must be an
 * answer or GOODBYE. Out: *@rec. Returns 0, or -1 when it is neither.
 */
int tdm_shm_left_decode(struct tdm_shm_rec *rec, uint64_t word0,
			size_t len) tdm_must_check;

enum { TDM_SHM_BELLS_MOST = 504 * 64 }; /* bits of a hints page */

tdm_static_assert(sizeof(struct tdm_shm_left) == 16, "layout of what is left");
tdm_static_assert(sizeof(struct tdm_shm_msg_head) == 16, "packet head layout");
tdm_static_assert(sizeof(struct tdm_shm_hello) == 96, "HELLO layout");
tdm_static_assert(sizeof(struct tdm_shm_proven_hello) == 144,
		  "proven HELLO layout");
tdm_static_assert(sizeof(struct tdm_shm_ready) == 48, "READY layout");

#endif /* TDM_SHM_PACKET_H */
