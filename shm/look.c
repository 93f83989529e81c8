/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answers of an endpoint to the owner's questions about peers: the path of each for
 * the report, depths of queues for statistics, and whether a session is alive.
 *
 * Lock: held.
 */
#include "shm/look.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "fi_ext_tandem.h"
#include "shm/av.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/pair.h"
#include "tdm_live.h"
#include "tdm_look.h"

/* ---- report -------------------------------------------------------------- */

static int report_path(struct fid_ep *fid, fi_addr_t addr,
		       struct tdm_report_path *out)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);
	const struct tdm_shm_pair *pair;
	struct tdm_shm_addr name;

	if (out->size < sizeof(*out))
		return -FI_EINVAL;
	if (!ep->av)
		return -FI_ENOAV;
	if (tdm_shm_av_addr(ep->av, addr, &name))
		return -FI_EINVAL;
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->reason_text = "";
	pair = tdm_shm_pair_find(ep, &name, 0);
	if (!pair)
		return 0;
	if (pair->state == TDM_SHM_PAIR_UP) {
		out->path = TDM_REPORT_SHM;
		out->state = TDM_REPORT_IN_USE;
	}
	out->tx_msgs = pair->tx_msgs;
	out->tx_bytes = pair->tx_bytes;
	out->rx_msgs = pair->rx_msgs;
	out->rx_bytes = pair->rx_bytes;
	out->shm.tx_msgs = pair->tx_msgs;
	out->shm.tx_bytes = pair->tx_bytes;
	out->shm.rx_msgs = pair->rx_msgs;
	out->shm.rx_bytes = pair->rx_bytes;
	out->large_rx = tdm_shm_pair_large_rx(pair);
	out->large_tx = pair->self ? TDM_REPORT_LARGE_COPY : pair->large_tx;
	return 0;
}

static struct tdm_report_ops report_ops = {
	.size = sizeof(report_ops),
	.path = report_path,
};

/* ---- liveness ------------------------------------------------------------ */

static int live(struct fid_ep *fid, const void *addr, size_t len, uint32_t key)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);
	struct tdm_shm_pair *pair;
	struct tdm_shm_addr name;

	if (tdm_shm_addr_set(&name, addr, len))
		return 0;
	name.key = key;
	pair = tdm_shm_pair_find(ep, &name, 0);
	if (!pair || pair->state != TDM_SHM_PAIR_UP)
		return 0;
	/* The process may have ended since the last check. */
	if (pair->sess && !tdm_shm_session_alive(pair->sess))
		tdm_shm_pair_break(pair, FI_ECONNRESET);
	return 1;
}

static void ask(struct fid_ep *fid,
		int (*waits)(void *arg, const void *addr, size_t len,
			     uint32_t key),
		void *arg)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);

	ep->owner_waits = waits;
	ep->owner_arg = arg;
}

static struct tdm_live_ops live_ops = {
	.size = sizeof(live_ops),
	.live = live,
	.ask = ask,
};

/* ---- statistics ---------------------------------------------------------- */

static void look(struct fid_ep *fid, fi_addr_t addr, struct tdm_look *out)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);
	const struct tdm_shm_pair *pair;
	struct tdm_shm_addr name;
	struct tdm_list *pos;

	if (!ep->av || tdm_shm_av_addr(ep->av, addr, &name))
		return;
	pair = tdm_shm_pair_find(ep, &name, 0);
	if (!pair)
		return;
	out->held += pair->unexp_bytes;
	if (pair->state != TDM_SHM_PAIR_UP)
		return;
	tdm_list_for_each(pos, &pair->ctl)
		out->queued++;
	tdm_list_for_each(pos, &pair->pending)
		out->pending++;
	out->credit =
		(uint64_t)tdm_shm_ring_free(&pair->tx) * TDM_SHM_SLOT_BYTES;
}

static struct tdm_look_ops look_ops = {
	.size = sizeof(look_ops),
	.look = look,
};

void *tdm_shm_look_ops(const char *name)
{
	if (!strcmp(name, TDM_REPORT_OPS))
		return &report_ops;
	if (!strcmp(name, TDM_LIVE_OPS))
		return &live_ops;
	return strcmp(name, TDM_LOOK_OPS) ? NULL : &look_ops;
}
