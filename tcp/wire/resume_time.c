/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See resume_time.h. setup->counts_ns is until when time counts; what is left out
 * later moves all times of the session forward.
 *
 * Lock: held in all of this file.
 */
#include "tcp/wire/resume_time.h"

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/os.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/keep.h"

enum {
	/* The kernel has already waited for the peer in vain. */
	SILENT_MS = 5000,
	/* Longest time between two passes that is no stop. */
	RARE_PASS_MS = 15000,
};

int tdm_resume_is_late(const struct tdm_conn *c)
{
	uint64_t most = tdm_env.peer_timeout_ms * 1000000ull;

	if (!most)
		return 0;
	if (c->setup->why == FI_ETIMEDOUT)
		most = tdm_min(most, SILENT_MS * 1000000ull);
	return c->setup->begun_ns - c->setup->since_ns >= most;
}

void tdm_resume_leave_out(struct tdm_conn *c)
{
	uint64_t now = tdm_os.now_ns();
	struct tdm_setup *s = c->setup;

	if (now <= s->counts_ns)
		return;
	s->since_ns += now - s->counts_ns;
	s->begun_ns += now - s->counts_ns;
	if (c->keep) /* what is kept may be lost for want of memory */
		c->keep->lost_ns += now - s->counts_ns;
	s->counts_ns = now;
}

void tdm_resume_count(struct tdm_conn *c, unsigned ms)
{
	size_t most = tdm_min(tdm_env.peer_timeout_ms / 4, RARE_PASS_MS);

	c->setup->counts_ns = tdm_os.now_ns() + tdm_max(ms, most) * 1000000ull;
}

void tdm_resume_count_nothing(struct tdm_conn *c)
{
	tdm_resume_leave_out(c);
	c->setup->counts_ns = tdm_os.now_ns();
}

void tdm_resume_count_attempt(struct tdm_conn *c, unsigned ms)
{
	tdm_resume_leave_out(c);
	c->setup->begun_ns = tdm_os.now_ns();
	tdm_resume_count(c, ms);
}

void tdm_resume_count_loss(struct tdm_conn *c)
{
	struct tdm_keep *k = c->keep;
	struct tdm_setup *s = c->setup;
	int moved = k->lost_kept_pos != c->kept_pos ||
		    k->lost_rx_pos != c->rx_pos;

	s->begun_ns = tdm_os.now_ns();
	s->counts_ns = s->begun_ns;
	if (!k->lost_ns || moved || !k->owed)
		k->lost_ns = s->begun_ns;
	if (moved)
		k->losses = 0;
	k->owed = c->out || c->borrow;
	k->lost_kept_pos = c->kept_pos;
	k->lost_rx_pos = c->rx_pos;
	s->since_ns = k->lost_ns;
	s->backoff_ms = k->losses ? 1u << tdm_min(k->losses, 9u) : 0;
	k->losses++;
}
