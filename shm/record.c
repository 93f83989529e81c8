/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Validation of all bytes the shared-memory tier gets from another process.
 *
 * Invariants:
 *  1. Nothing here trusts a length, count or kind, or reads shared memory, but for
 *     tdm_shm_rts_get(), which copies it once.
 *  2. An accepted value is in range for every use by the callers, who add only
 *     the checks that need their own state (is this id mine?).
 * Locking: none, no state. Spec: doc/PROTOCOL-shm.md.
 */
#include "shm/record.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "shm/addr.h"
#include "shm/amo.h"
#include "shm/msg.h"
#include "shm/packet.h"
#include "shm/ranges.h"

/* Decode a record with @extra bytes of the body before the payload. */
static int eager_decode(struct tdm_shm_rec *rec, size_t extra, uint32_t room)
{
	if (rec->flags & ~(TDM_SHM_REC_DATA | TDM_SHM_REC_DELIVER))
		return -1;
	if (rec->aux > TDM_SHM_EAGER_MOST_BYTES)
		return -1;
	rec->extra = (uint32_t)extra;
	rec->slots = tdm_shm_rec_slots(extra + rec->aux);
	return rec->slots <= room ? 0 : -1;
}

static int rma_decode(struct tdm_shm_rec *rec, uint32_t room)
{
	switch (rec->op) {
	case TDM_SHM_REC_WRITE:
		return rec->flags & ~TDM_SHM_REC_DATA ?
			       -1 :
			       eager_decode(
				       rec,
				       sizeof(struct tdm_shm_where) +
					       tdm_shm_rec_extra(rec->flags),
				       room);
	case TDM_SHM_REC_READ_DATA:
		return rec->flags ? -1 : eager_decode(rec, 0, room);
	case TDM_SHM_REC_ATOMIC:
		return rec->flags || rec->aux > TDM_AMO_BYTES ?
			       -1 :
			       eager_decode(rec, sizeof(struct tdm_shm_amo),
					    room);
	case TDM_SHM_REC_RANGES:
		rec->slots = tdm_shm_ranges_slots(rec->aux);
		return rec->flags || !rec->aux ||
				       rec->aux >= TDM_RMA_IOV_LIMIT ||
				       rec->slots > room ?
			       -1 :
			       0;
	case TDM_SHM_REC_RTS_WRITE:
		return rec->flags & ~TDM_SHM_REC_DATA || rec->aux ? -1 : 0;
	case TDM_SHM_REC_READ:
	case TDM_SHM_REC_RTS_READ:
		return rec->flags || rec->aux ? -1 : 0;
	default:
		return -1;
	}
}

int tdm_shm_rec_decode(struct tdm_shm_rec *rec, uint64_t word0, uint32_t room)
{
	rec->op = (uint8_t)(word0 >> 32);
	rec->flags = (uint8_t)(word0 >> 40);
	rec->aux = (uint16_t)(word0 >> 48);
	rec->slots = 1;
	rec->extra = 0;
	if (!room)
		return -1;
	switch (rec->op) {
	case TDM_SHM_REC_MSG:
	case TDM_SHM_REC_TAG:
		return eager_decode(
			rec, tdm_shm_msg_extra(rec->flags, rec->aux), room);
	case TDM_SHM_REC_RTS_MSG:
	case TDM_SHM_REC_RTS_TAG:
		return rec->flags & ~TDM_SHM_REC_DATA || rec->aux ? -1 : 0;
	case TDM_SHM_REC_ACK:
		return rec->flags || rec->aux > TDM_SHM_STATUS_OPERATION ? -1 :
									   0;
	case TDM_SHM_REC_PULL:
	case TDM_SHM_REC_FAIL:
		return rec->flags || rec->aux > 1 ? -1 : 0;
	case TDM_SHM_REC_GOODBYE:
		return rec->flags || rec->aux ? -1 : 0;
	case TDM_SHM_REC_PAD:
		rec->slots = rec->aux;
		return rec->flags || rec->aux != room ? -1 : 0;
	case TDM_SHM_REC_SELECT:
		return rec->flags ? -1 : 0;
	case TDM_SHM_REC_MOVED:
		return rec->flags || rec->aux < TDM_SHM_SLOTS_LEAST ||
				       rec->aux > TDM_SHM_SLOTS_MOST ?
			       -1 :
			       0;
	default:
		return rma_decode(rec, room);
	}
}

enum { RTS_ONE_BYTES = 48 };

tdm_static_assert(sizeof(struct tdm_shm_rts_write) == TDM_SHM_BODY_BYTES,
		  "RTS_WRITE fills one slot");
tdm_static_assert(sizeof(struct tdm_shm_rts) == 96 &&
			  offsetof(struct tdm_shm_rts, iov) + 16 ==
				  RTS_ONE_BYTES &&
			  TDM_SHM_HEAD_BYTES + RTS_ONE_BYTES ==
				  TDM_CACHE_LINE_BYTES,
		  "RTS record layout");
tdm_static_assert(sizeof(struct tdm_shm_rts) <= TDM_SHM_BODY_BYTES,
		  "RTS fits one slot");
tdm_static_assert(sizeof(struct tdm_shm_chunk) == 32, "chunk head layout");
tdm_static_assert(TDM_SHM_CHUNKS_MOST * sizeof(struct tdm_shm_chunk) <=
			  TDM_SHM_CHUNK_BYTES,
		  "table of chunk heads");

void tdm_shm_rts_put(uint8_t *body, const struct tdm_shm_rts *rts)
{
	memcpy(body, rts, RTS_ONE_BYTES);
	if (tdm_unlikely(rts->count > 1))
		memcpy(body + RTS_ONE_BYTES,
		       (const uint8_t *)rts + RTS_ONE_BYTES,
		       sizeof(*rts) - RTS_ONE_BYTES);
}

void tdm_shm_rts_get(struct tdm_shm_rts *rts, const uint8_t *body)
{
	memcpy(rts, body, RTS_ONE_BYTES);
	if (tdm_unlikely(rts->count > 1))
		memcpy((uint8_t *)rts + RTS_ONE_BYTES, body + RTS_ONE_BYTES,
		       sizeof(*rts) - RTS_ONE_BYTES);
}

int tdm_shm_rts_check(const struct tdm_shm_rts *rts)
{
	uint64_t sum = 0;
	uint32_t i;

	if (rts->count > TDM_SHM_IOV_MOST || rts->len > SIZE_MAX / 2)
		return -1;
	if (!rts->count)
		return 0;
	for (i = 0; i < rts->count; i++) {
		uint64_t end;

		if (__builtin_add_overflow(sum, rts->iov[i].len, &sum) ||
		    __builtin_add_overflow(rts->iov[i].addr, rts->iov[i].len,
					   &end))
			return -1;
	}
	return sum == rts->len ? 0 : -1;
}

int tdm_shm_pull_check(const struct tdm_shm_pull_body *pull, uint64_t len)
{
	if (!pull->bytes || pull->offset > len ||
	    pull->bytes > len - pull->offset)
		return -1;
	return 0;
}

int tdm_shm_read_check(const struct tdm_shm_read *read)
{
	return read->len > SIZE_MAX / 2 ? -1 : 0;
}

int tdm_shm_amo_check(const struct tdm_shm_amo *amo, uint16_t len)
{
	return tdm_amo_fits(&amo->amo, amo->bytes, len) ? 0 : -1;
}

int tdm_shm_chunk_check(const struct tdm_shm_chunk *chunk, uint64_t at,
			uint64_t left)
{
	if (chunk->offset != at)
		return -1;
	if (chunk->status)
		return chunk->status > TDM_SHM_STATUS_ACCESS || chunk->len ?
			       -1 :
			       0;
	return chunk->len && chunk->len <= TDM_SHM_CHUNK_BYTES &&
			       chunk->len <= left ?
		       0 :
		       -1;
}

int tdm_shm_left_check(const struct tdm_shm_left *left, size_t room)
{
	if (left->kind == TDM_SHM_LEFT_RECORD && left->len < TDM_SHM_HEAD_BYTES)
		return -1;
	return left->kind && left->kind <= TDM_SHM_LEFT_RECORD &&
			       tdm_shm_left_bytes(left->len) <= room ?
		       0 :
		       -1;
}

int tdm_shm_left_decode(struct tdm_shm_rec *rec, uint64_t word0, size_t len)
{
	size_t body = 0;

	if (tdm_shm_rec_decode(rec, word0, TDM_SHM_SLOTS_MOST))
		return -1;
	switch (rec->op) {
	case TDM_SHM_REC_READ_DATA:
		body = rec->aux;
		break;
	case TDM_SHM_REC_ACK:
	case TDM_SHM_REC_GOODBYE:
		break;
	default:
		return -1;
	}
	return len == TDM_SHM_HEAD_BYTES + body ? 0 : -1;
}

int tdm_shm_hello_version(const struct tdm_shm_hello *h)
{
	int most = h->version_most < TDM_SHM_VERSION_MOST ?
			   h->version_most :
			   TDM_SHM_VERSION_MOST;

	if (most < h->version_least || most < TDM_SHM_VERSION_LEAST)
		return -1;
	return most;
}

static int hello_decode(struct tdm_shm_msg *msg, const void *buf, size_t len)
{
	static const uint8_t zero[16];
	struct tdm_shm_hello *h = &msg->hello;

	if (len < sizeof(*h))
		return -1;
	memcpy(h, buf, sizeof(*h));
	if (h->features & TDM_SHM_FEATURE_AUTH &&
	    tdm_shm_hello_version(h) >= 0) {
		if (len < sizeof(msg->proven_hello))
			return -1;
		memcpy(&msg->proven_hello, buf, sizeof(msg->proven_hello));
		msg->proven = 1;
	}
	if (!h->version_least || h->version_least > h->version_most ||
	    !memcmp(h->incarnation, zero, sizeof(zero)))
		return -1;
	if (tdm_shm_hello_version(h) < 0)
		return 0;
	if (h->slots < TDM_SHM_SLOTS_LEAST || h->slots > TDM_SHM_SLOTS_MOST ||
	    h->bell >= TDM_SHM_BELLS_MOST || h->addrlen > sizeof(h->addr) ||
	    h->head.arg >= TDM_SHM_CTX_MOST)
		return -1;
	return tdm_shm_sockaddr_check(h->addr, h->addrlen);
}

int tdm_shm_msg_decode(struct tdm_shm_msg *msg, const void *buf, size_t len,
		       int nfds)
{
	struct tdm_shm_msg_head head;
	int want = 0;

	if (len < sizeof(head) || len > TDM_SHM_MSG_MOST_BYTES)
		return -1;
	memcpy(&head, buf, sizeof(head));
	if (head.magic != TDM_SHM_MAGIC || head.bytes != len)
		return -1;
	msg->type = (enum tdm_shm_msg_type)head.type;
	msg->arg = head.arg;
	msg->proven = 0;
	switch (head.type) {
	case TDM_SHM_MSG_HELLO:
		if (nfds != 3)
			return -1;
		return hello_decode(msg, buf, len);
	case TDM_SHM_MSG_REJECT:
	case TDM_SHM_MSG_ABORT:
		if (head.arg == TDM_SHM_WHY_NONE ||
		    head.arg >= TDM_SHM_WHY_COUNT)
			return -1;
		break;
	case TDM_SHM_MSG_READY:
		if (len != sizeof(struct tdm_shm_ready))
			break;
		memcpy(msg->proof, (const char *)buf + sizeof(head),
		       sizeof(msg->proof));
		msg->proven = 1;
		return nfds ? -1 : 0;
	case TDM_SHM_MSG_RING:
		if (head.arg < TDM_SHM_SLOTS_LEAST ||
		    head.arg > TDM_SHM_SLOTS_MOST)
			return -1;
		want = 1;
		break;
	case TDM_SHM_MSG_BOUNCE:
		if (!head.arg || head.arg > TDM_SHM_CHUNKS_MOST)
			return -1;
		want = 1;
		break;
	case TDM_SHM_MSG_LEFT:
		if (!head.arg || head.arg > TDM_SHM_LEFT_PAGES)
			return -1;
		want = 1;
		break;
	default:
		return -1;
	}
	return nfds == want && len == sizeof(head) ? 0 : -1;
}
