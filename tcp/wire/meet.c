/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See meet.h. Each side sends OFFER as the first record of a session and answers
 * that of the other side by TAKEN or DECLINED. A side that has been answered
 * TAKEN knows that the other one can tell the source of its messages.
 *
 * Lock: held in all of this file.
 */
#include "tcp/wire/meet.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/conn.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/out.h"
#include "tcp/wire/send.h"

/* Write the record @step with the payload @p[len]. */
static int put(struct tdm_conn *c, enum tdm_wire_local step, const void *p,
	       size_t len)
{
	const struct tdm_wire_rec rec = {
		.op = TDM_WIRE_LOCAL,
		.step = step,
		.len = (uint32_t)len,
	};
	struct tdm_out *out =
		c->borrow ? NULL : tdm_out_room(c, TDM_WIRE_HEAD_BYTES + len);

	if (!out)
		return -FI_ENOMEM;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	if (len) {
		memcpy(out->bytes + out->tail, p, len);
		out->tail += (uint32_t)len;
		c->tx_seq++;
	}
	return 0;
}

/* Called when there is no memory: the session ends at the next pass. */
static void give_up(struct tdm_conn *c)
{
	c->tx_err = FI_ENOMEM;
	tdm_conn_again(c);
}

void tdm_meet_begin(struct tdm_conn *c)
{
	const struct tdm_tcp_offer *offer = &c->tcp->offer;

	c->wanted = 0;
	if (!offer->len || !(c->features & TDM_WIRE_FEATURE_LOCAL) ||
	    c->mirrored || !memcmp(c->id, c->tcp->id, sizeof(c->id)))
		return;
	c->meeting = calloc(1, sizeof(*c->meeting));
	if (!c->meeting || put(c, TDM_WIRE_OFFER, offer->bytes, offer->len))
		give_up(c);
}

static void answer(struct tdm_conn *c)
{
	const struct tdm_tcp_offer *offer = &c->tcp->offer;
	struct tdm_meeting *m = c->meeting;
	int ret = offer->offered(c->tcp->a.arg, c, m->bytes, m->len);

	m->ours = ret ? TDM_WIRE_DECLINED : TDM_WIRE_TAKEN;
	if (put(c, (enum tdm_wire_local)m->ours, NULL, 0))
		give_up(c);
	else
		tdm_conn_push(c);
}

int tdm_meet_heard(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_meeting *m = c->meeting;

	if (!m || c->tcp->closing)
		return -TDM_WIRE_E_STATE;
	if (rec->step != TDM_WIRE_OFFER) {
		if (m->theirs)
			return -TDM_WIRE_E_STATE;
		m->theirs = (uint8_t)rec->step;
		return 0;
	}
	if (m->len)
		return -TDM_WIRE_E_STATE;
	m->len = rec->len;
	c->cur = NULL;
	c->left = rec->len;
	return 0;
}

void tdm_meet_put(struct tdm_conn *c, const uint8_t *p, size_t n)
{
	struct tdm_meeting *m = c->meeting;

	if (m->got == m->len || !p)
		return;
	n = tdm_min(n, (size_t)(m->len - m->got));
	memcpy(m->bytes + m->got, p, n);
	m->got += (uint32_t)n;
	if (m->got == m->len)
		answer(c);
}

void tdm_meet_end(struct tdm_conn *c)
{
	free(c->meeting);
	c->meeting = NULL;
}

int tdm_conn_meet(struct tdm_conn *c)
{
	const struct tdm_meeting *m;

	tdm_assert_held(c->tcp->a.engine->lock);
	if (!tdm_conn_live(c)) {
		c->wanted = 1;
		tdm_send_begin(c);
		return -FI_EAGAIN;
	}
	m = c->meeting;
	if (!m || m->ours == TDM_WIRE_DECLINED ||
	    m->theirs == TDM_WIRE_DECLINED)
		return c->tx_err ? -FI_EAGAIN : -FI_EOPNOTSUPP;
	return m->ours && m->theirs ? 0 : -FI_EAGAIN;
}

int tdm_conn_may_meet(const struct tdm_conn *c)
{
	return c->meeting != NULL;
}

void tdm_tcp_set_offer(struct tdm_tcp *tcp, const struct tdm_tcp_offer *offer)
{
	tcp->offer = *offer;
}
