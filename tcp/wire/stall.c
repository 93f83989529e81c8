/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See stall.h. A peer that holds the memory could keep the endpoint waiting for good: not
 * even the end of its connection is read. So strangers, who may be many and are
 * nobody's choice, give theirs up.
 */
#include "tcp/wire/stall.h"

#include "base/log.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/share.h"

static const uint64_t stall_long_ns = 200000000;

void tdm_stall(struct tdm_conn *c, const uint8_t *p, size_t n)
{
	struct tdm_stage *stage = c->tcp->stage;

	TDM_DBG(EP_DATA, "no memory for a message, it is tried again");
	if (!stage->since_ns)
		stage->since_ns = tdm_os.now_ns();
	stage->stalled = c;
	stage->at = (uint32_t)(p - stage->bytes);
	stage->end = stage->at + (uint32_t)n;
	tdm_conn_again(c);
}

void tdm_stall_relieve(struct tdm_tcp *tcp)
{
	struct tdm_stage *stage = tcp->stage;
	uint64_t now = tdm_os.now_ns();

	if (now - stage->since_ns > stall_long_ns && tdm_share_relieve(tcp))
		stage->since_ns = now;
}

void tdm_stall_forget(struct tdm_conn *c)
{
	struct tdm_stage *stage = c->tcp->stage;

	if (stage->stalled != c)
		return;
	stage->stalled = NULL;
	stage->since_ns = 0;
}
