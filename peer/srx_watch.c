/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer/srx_watch.h"

#include <string.h>

#include "peer/srx_priv.h"

void tdm_srx_watch(struct tdm_srx *srx, struct tdm_srx_watch *w)
{
	tdm_assert_held(srx->engine->lock);
	tdm_list_append(&srx->watches, &w->node);
}

void tdm_srx_unwatch(struct tdm_srx_watch *w)
{
	tdm_list_del(&w->node);
}

static void describe(const struct tdm_srx_msg *msg, struct fi_cq_err_entry *out)
{
	const struct fi_peer_rx_entry *rx = &msg->e.rx;

	memset(out, 0, sizeof(*out));
	out->flags = FI_RECV | (rx->flags & FI_REMOTE_CQ_DATA) |
		     (msg->e.kind == TDM_SRX_TAG ? FI_TAGGED : FI_MSG);
	out->len = rx->msg_size;
	out->tag = msg->e.kind == TDM_SRX_TAG ? rx->tag : 0;
	out->data = rx->flags & FI_REMOTE_CQ_DATA ? rx->cq_data : 0;
	out->src_addr = tdm_srx_reported(tdm_srx_port_done(rx->srx), rx->addr);
}

void tdm_srx_tell(struct tdm_srx *srx, const struct tdm_srx_msg *msg,
		  int matched)
{
	struct fi_cq_err_entry entry;
	struct tdm_list *pos;

	describe(msg, &entry);
	tdm_list_for_each(pos, &srx->watches) {
		struct tdm_srx_watch *w =
			tdm_list_entry(pos, struct tdm_srx_watch, node);

		w->changed(w, matched, &entry);
	}
}

size_t tdm_srx_waiting(struct tdm_srx *srx, struct fi_cq_err_entry *list,
		       size_t most)
{
	struct tdm_list *pos;
	size_t n = 0;
	int kind;

	tdm_assert_held(srx->engine->lock);
	for (kind = 0; kind < TDM_SRX_KINDS; kind++) {
		tdm_list_for_each(pos, tdm_match_arrived(srx->match[kind])) {
			if (n++ < most)
				describe(tdm_srx_msg_of_all(pos), &list[n - 1]);
		}
	}
	tdm_list_for_each(pos, &srx->claimed) {
		if (n++ < most)
			describe(tdm_srx_msg_of_link(pos), &list[n - 1]);
	}
	return n;
}
