/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What another process writes to its memory (shm/record.c), fed with anything:
 * records of a ring, heads of chunks, and areas that are left. An input is a
 * byte that chooses the form, then the bytes of that form. What is accepted has
 * the bounds that the receiver relies on.
 */
#include <string.h>

#include "shm/amo.h"
#include "shm/packet.h"
#include "shm/ranges.h"
#include "shm/record.h"
#include "tests/fuzz/fuzz.h"

/* Reads an announcement, writes it again, and compares both. */
static void rts(const uint8_t *p)
{
	uint8_t again[TDM_SHM_BODY_BYTES] = { 0 };
	struct tdm_shm_rts rts;
	uint64_t sum = 0;
	size_t bytes;
	uint32_t i;

	tdm_shm_rts_get(&rts, p);
	tdm_shm_rts_put(again, &rts);
	bytes = rts.count > 1 ? sizeof(rts) :
				offsetof(struct tdm_shm_rts, iov[1]);
	tdt_must(!memcmp(again, p, bytes));
	if (tdm_shm_rts_check(&rts))
		return;
	tdt_must(rts.count <= TDM_SHM_IOV_MOST && rts.len <= SIZE_MAX / 2);
	for (i = 0; i < rts.count; i++) {
		tdt_must(rts.iov[i].addr + rts.iov[i].len >= rts.iov[i].addr);
		sum += rts.iov[i].len;
	}
	tdt_must(!rts.count || sum == rts.len);
}

/* The bodies that have a check of their own. */
static void body(const struct tdm_shm_rec *rec, const uint8_t *p, size_t n)
{
	struct tdm_shm_pull_body pull;
	struct tdm_shm_read read;
	struct tdm_shm_amo amo;

	switch (rec->op) {
	case TDM_SHM_REC_RTS_MSG:
	case TDM_SHM_REC_RTS_TAG:
	case TDM_SHM_REC_RTS_WRITE:
	case TDM_SHM_REC_RTS_READ:
		rts(p);
		break;
	case TDM_SHM_REC_PULL:
		tdt_take(&pull, sizeof(pull), p, n);
		if (!tdm_shm_pull_check(&pull, 1 << 20))
			tdt_must(pull.bytes && pull.offset < 1 << 20 &&
				 pull.offset + pull.bytes <= 1 << 20);
		break;
	case TDM_SHM_REC_READ:
		tdt_take(&read, sizeof(read), p, n);
		tdt_must(tdm_shm_read_check(&read) || read.len <= SIZE_MAX / 2);
		break;
	case TDM_SHM_REC_ATOMIC:
		tdt_take(&amo, sizeof(amo), p, n);
		tdt_must(tdm_shm_amo_check(&amo, rec->aux) ||
			 (amo.bytes && amo.bytes <= TDM_AMO_BYTES));
		break;
	default:
		break;
	}
}

/* Check that @rec, decoded from @word0, fits a slot if tdm_shm_word_small() accepts it. */
static void small(const struct tdm_shm_rec *rec, uint64_t word0, uint8_t flags)
{
	if (tdm_shm_word_small(word0, flags))
		tdt_must(rec->slots == 1 && rec->op <= TDM_SHM_REC_TAG &&
			 rec->flags == flags &&
			 rec->extra + rec->aux <= TDM_SHM_BODY_BYTES);
}

/* Records of a ring, from byte 0 of @p on, as a consumer steps over them. */
static void ring(const uint8_t *p, size_t n)
{
	uint32_t room = (uint32_t)(n / TDM_SHM_SLOT_BYTES);
	struct tdm_shm_rec rec;
	uint64_t word0;

	while (room) {
		memcpy(&word0, p, sizeof(word0));
		tdt_must(tdm_shm_rec_decode(&rec, word0, 0));
		if (tdm_shm_rec_decode(&rec, word0, room)) {
			tdt_must(!tdm_shm_word_small(word0, 0) &&
				 !tdm_shm_word_small(word0, TDM_SHM_REC_DATA));
			return;
		}
		tdt_must(rec.slots && rec.slots <= room);
		small(&rec, word0, 0);
		small(&rec, word0, TDM_SHM_REC_DATA);
		if (rec.op == TDM_SHM_REC_RANGES)
			tdt_must(rec.aux * sizeof(struct tdm_shm_range) +
					 TDM_SHM_HEAD_BYTES <=
				 (size_t)rec.slots * TDM_SHM_SLOT_BYTES);
		else if (rec.slots > 1 && rec.op != TDM_SHM_REC_PAD)
			tdt_must(TDM_SHM_HEAD_BYTES + rec.extra + rec.aux <=
				 (size_t)rec.slots * TDM_SHM_SLOT_BYTES);
		body(&rec, p + TDM_SHM_HEAD_BYTES, TDM_SHM_BODY_BYTES);
		p += (size_t)rec.slots * TDM_SHM_SLOT_BYTES;
		room -= rec.slots;
	}
}

static void chunk(const uint8_t *p, size_t n)
{
	struct {
		struct tdm_shm_chunk chunk;
		uint64_t at, left;
	} in;

	tdt_take(&in, sizeof(in), p, n);
	if (tdm_shm_chunk_check(&in.chunk, in.at, in.left))
		return;
	tdt_must(in.chunk.offset == in.at && in.chunk.len <= in.left);
	tdt_must(in.chunk.len <= TDM_SHM_CHUNK_BYTES);
	tdt_must(!in.chunk.len == !!in.chunk.status);
}

/* The entries of an area. */
static void left(const uint8_t *p, size_t n)
{
	struct tdm_shm_left head;
	struct tdm_shm_rec rec;
	uint64_t word0;

	while (n >= sizeof(head)) {
		memcpy(&head, p, sizeof(head));
		if (tdm_shm_left_check(&head, n))
			return;
		tdt_must(tdm_shm_left_bytes(head.len) <= n);
		tdt_must(head.len <= n - sizeof(head));
		if (head.kind == TDM_SHM_LEFT_RECORD) {
			memcpy(&word0, p + sizeof(head), sizeof(word0));
			if (!tdm_shm_left_decode(&rec, word0, head.len))
				tdt_must(rec.op != TDM_SHM_REC_READ_DATA ||
					 (size_t)rec.aux + TDM_SHM_HEAD_BYTES ==
						 head.len);
		}
		p += tdm_shm_left_bytes(head.len);
		n -= tdm_shm_left_bytes(head.len);
	}
}

int tdt_fuzz_ring(const uint8_t *data, size_t size)
{
	uint8_t *exact;

	if (!size)
		return 0;
	exact = tdt_exact(data + 1, size - 1);
	switch (data[0] % 3) {
	case 0:
		ring(exact, size - 1);
		break;
	case 1:
		chunk(exact, size - 1);
		break;
	default:
		left(exact, size - 1);
	}
	free(exact);
	return 0;
}
