/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Growth: a pair begins with a ring of one page and moves to larger ones as it
 * is used.
 *
 * Invariant: one move at a time. The sender hands over the next ring only after
 * the peer has reached the present one.
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Growth".
 */
#include "shm/grow.h"

#include "shm/bell.h"
#include "shm/lifeline.h"
#include "shm/tx.h"

enum {
	GROW_LONG_SLOTS = 4, /* average slots of a long message, or more */
	GROW_STREAM_SLOTS = 4096,
	GROW_AHEAD_RECORDS = 2, /* least by which a stream is ahead */
};

/*
 * A pair that writes GROW_STREAM_SLOTS in less than this time has a stream.
 * Messages of many slots gain most from it, so pairs that send such ones may be
 * slower.
 */
static const uint64_t grow_stream_ns = 500 * 1000;
static const uint64_t grow_stream_long_ns = 2500 * 1000;

/*
 * A small ring stays in the caches of both processes: each store of the sender
 * takes a line away from the receiver's cache, and each load takes it back. In
 * a ring larger than a core's cache, the lines have gone to the cache that the
 * cores share, or to memory, before they are used again, and both sides are
 * several times faster. So a pair that writes much in a short time gets such a
 * ring, if at some check it was more than two records of average length ahead of its
 * peer, not counting what the peer may have consumed without telling: in a conversation
 * of one message each way, or of two, the first use of each page would delay a message.
 */
void tdm_shm_grow_pace(struct tdm_shm_pair *pair, uint64_t now, uint32_t n)
{
	uint64_t waiting = pair->tx.head - pair->tx.credit;
	uint64_t slots = pair->tx.head - pair->paced_head;
	uint64_t msgs = pair->tx_msgs - pair->paced_msgs;
	uint64_t within = slots > GROW_LONG_SLOTS * msgs ? grow_stream_long_ns :
							   grow_stream_ns;
	uint64_t record = tdm_max((uint64_t)n, msgs ? slots / msgs : 0);

	if (waiting >
	    tdm_shm_ring_unshown(pair->tx.count) + GROW_AHEAD_RECORDS * record)
		pair->paced_ahead = 1;
	if (slots < GROW_STREAM_SLOTS && now - pair->paced_ns < within)
		return;
	if (slots >= GROW_STREAM_SLOTS && pair->paced_ns &&
	    now - pair->paced_ns < within && pair->paced_ahead &&
	    pair->peer_streams)
		pair->stream = pair->grow_in = 1;
	pair->paced_head = pair->tx.head;
	pair->paced_msgs = pair->tx_msgs;
	pair->paced_ns = now;
	pair->paced_ahead = 0;
}

static uint32_t next_slots(const struct tdm_shm_pair *pair)
{
	uint32_t slots = pair->tx.count;

	if (pair->stream && slots < TDM_SHM_RING_STREAM_SLOTS)
		return TDM_SHM_RING_STREAM_SLOTS;
	if (slots < TDM_SHM_RING_BUSY_SLOTS)
		return TDM_SHM_RING_BUSY_SLOTS;
	if (slots < TDM_SHM_RING_LARGE_SLOTS)
		return TDM_SHM_RING_LARGE_SLOTS;
	return 0;
}

void tdm_shm_grow_now(struct tdm_shm_pair *pair)
{
	uint32_t slots = next_slots(pair);
	uint64_t gen = pair->tx.gen + 1;
	uint8_t *slot;
	int stream;

	pair->grow_in = 0;
	pair->stalls = 0;
	if (!slots || !pair->sess || pair->no_grow)
		return;
	slot = tdm_shm_tx_room(pair, 1, 0);
	/* One move at a time: the peer must have reached the present ring. */
	tdm_shm_tx_credit(pair);
	if (pair->broken || pair->tx.credit < pair->tx.base)
		return;
	if (!slot)
		return;
	/*
	 * The ring of a stream is tried once; after any other failure the ring
	 * stays as it is for good.
	 */
	stream = pair->stream;
	pair->stream = 0;
	if (stream)
		pair->peer_streams = 0;
	if (tdm_shm_lifeline_ring(pair, slots)) {
		pair->no_grow = !stream;
		return;
	}
	memcpy(slot + 8, &gen, 8);
	tdm_shm_ring_publish(&pair->tx, 1,
			     tdm_shm_word0(0, TDM_SHM_REC_MOVED, 0,
					   (uint16_t)slots));
	tdm_shm_lifeline_moved(pair);
	tdm_shm_ring_tx_init(&pair->tx,
			     tdm_shm_seg_slots(pair->sess->own_ring.base),
			     slots, pair->sess->dirty);
	pair->tx.gen++;
	tdm_shm_ring_look(&pair->tx, pair->tx.head);
	pair->eager_most = tdm_shm_eager_room(slots, pair->ep->eager_most);
	tdm_shm_bell(pair);
}
