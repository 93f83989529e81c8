/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A seat is the set of exports of a shared receive side for one endpoint,
 * fi_endpoint(3) "SHARED CONTEXTS". Each transport of each endpoint has its own
 * port, so that entry->srx tells to which endpoint a message came and which
 * transport has its bytes.
 *
 * Invariants:
 *  1. srx->done is that of the oldest seat: receives that end without a message
 *     are reported there.
 *  2. A seat may be closed only when no entry refers to one of its ports: after
 *     its waiting messages have been discarded and the transports have given
 *     back the entries they were filling.
 *
 * Lock: domain held.
 */
#include <stdlib.h>

#include "peer/srx_priv.h"

int tdm_srx_seat_open(struct tdm_srx *srx, struct tdm_srx_seat **out)
{
	struct tdm_srx_seat *seat =
		(struct tdm_srx_seat *)calloc(1, sizeof(*seat));
	int i;

	if (!seat)
		return -FI_ENOMEM;
	for (i = 0; i < TDM_TRANSPORTS; i++)
		tdm_srx_port_init(srx, &seat->port[i], &seat->done);
	tdm_list_init(&seat->node);
	tdm_list_append(&srx->seats, &seat->node);
	*out = seat;
	return 0;
}

struct fid_peer_srx *tdm_srx_seat_export(struct tdm_srx_seat *seat,
					 enum tdm_transport t)
{
	return &seat->port[t].fid;
}

static void settle_done(struct tdm_srx *srx)
{
	static const struct tdm_done none;
	const struct tdm_done *done = &none;

	if (!tdm_list_empty(&srx->seats))
		done = &tdm_list_entry(srx->seats.next, struct tdm_srx_seat,
				       node)
				->done;
	tdm_srx_set_done(srx, done);
}

void tdm_srx_seat_set_done(struct tdm_srx_seat *seat,
			   const struct tdm_done *done)
{
	int i;

	seat->done = *done;
	for (i = 0; i < TDM_TRANSPORTS; i++)
		tdm_srx_port_renew(&seat->port[i]);
	settle_done(seat->port[0].srx);
}

static int came_by(const struct tdm_srx_seat *seat,
		   const struct tdm_srx_msg *msg)
{
	int i;

	for (i = 0; i < TDM_TRANSPORTS; i++) {
		if (msg->e.rx.srx == &seat->port[i].fid)
			return 1;
	}
	return 0;
}

static void flush_queue(struct tdm_srx_seat *seat, struct tdm_match *match)
{
	struct tdm_srx *srx = seat->port[0].srx;
	struct tdm_list *pos, *tmp;
	struct tdm_srx_msg *msg;

	tdm_list_for_each_safe(pos, tmp, tdm_match_arrived(match)) {
		msg = tdm_srx_msg_of_all(pos);
		if (!came_by(seat, msg))
			continue;
		tdm_srx_take(srx, msg);
		tdm_srx_discard(srx, msg);
	}
}

void tdm_srx_seat_flush(struct tdm_srx_seat *seat)
{
	struct tdm_srx *srx = seat->port[0].srx;
	struct tdm_list *pos, *tmp;
	struct tdm_srx_msg *msg;

	tdm_assert_held(srx->engine->lock);
	srx->held.closing = 1;
	flush_queue(seat, srx->match[TDM_SRX_MSG]);
	flush_queue(seat, srx->match[TDM_SRX_TAG]);
	/* The message is gone: a later FI_CLAIM finds none. */
	tdm_list_for_each_safe(pos, tmp, &srx->claimed) {
		msg = tdm_srx_msg_of_link(pos);
		if (!came_by(seat, msg))
			continue;
		tdm_list_del(&msg->link);
		if (msg->e.state == TDM_SRX_LOST)
			tdm_srx_entry_free(srx, &msg->e);
		else
			tdm_srx_discard(srx, msg);
	}
	srx->held.closing = 0; /* other seats stay */
}

void tdm_srx_seat_close(struct tdm_srx_seat *seat)
{
	struct tdm_srx *srx;

	if (!seat)
		return;
	srx = seat->port[0].srx;
	tdm_list_del(&seat->node);
	settle_done(srx);
	free(seat);
}

int tdm_srx_filling(const struct tdm_srx *srx)
{
	const struct tdm_list *pos;
	size_t still = 0;
	int i;

	for (i = 0; i < TDM_SRX_KINDS; i++) {
		still += tdm_match_posted_count(srx->match[i]);
		still += tdm_match_arrived_count(srx->match[i]);
	}
	tdm_list_for_each(pos, &srx->claimed)
		still++;
	return srx->pool.in_use + srx->msgs.in_use > still;
}
