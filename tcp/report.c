/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which path the messages of an endpoint take, and why: for the application
 * (include/fi_ext_tandem.h) and, with FI_TANDEM_REPORT, as a table on stderr
 * when the endpoint closes.
 *
 * The counts of a local pair are the peer's own: the same interface is asked
 * of the peer's endpoint, whose addresses are those of the peer's AV.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "fi_ext_tandem.h"
#include "tcp/ep.h"

/* By enum tdm_reason; the same list as in fi_tandem(7), REPORT. */
static const char *const reasons[TDM_REASON_COUNT] = {
	[TDM_REASON_NONE] = "",
	[TDM_REASON_HOST] = "other host",
	[TDM_REASON_NO_LISTENER] = "no shared memory on the other side",
	[TDM_REASON_UID] = "other user id",
	[TDM_REASON_VERSION] = "incompatible version",
	[TDM_REASON_REFUSED] = "refused by the other side",
	[TDM_REASON_RESOURCE] = "out of memory or file descriptors",
	[TDM_REASON_SEGMENT] = "segment not sealed",
	[TDM_REASON_DISABLED] = "disabled",
};

static void local_counts(struct tdm_ep *ep, const struct tdm_pair *p,
			 struct tdm_report_path *out)
{
	struct tdm_report_path peer;
	struct tdm_report_ops *ops;

	if (!ep->local ||
	    fi_open_ops(&ep->local->fid, TDM_REPORT_OPS, 0, (void **)&ops,
			NULL) ||
	    ops->path(ep->local, p->local, &peer))
		return;
	out->tx_msgs = peer.tx_msgs;
	out->tx_bytes = peer.tx_bytes;
	out->rx_msgs = peer.rx_msgs;
	out->rx_bytes = peer.rx_bytes;
}

/* Lock: held. */
static void path_of(struct tdm_ep *ep, const struct tdm_pair *p,
		    struct tdm_report_path *out)
{
	const struct tdm_conn_stats *s;

	memset(out, 0, sizeof(*out));
	out->reason_text = "";
	if (!p)
		return;
	if (p->path == TDM_PATH_LOCAL) {
		out->path = TDM_REPORT_SHM;
		local_counts(ep, p, out);
		return;
	}
	out->reason = p->reason;
	out->reason_text = reasons[p->reason];
	if (p->path == TDM_PATH_REMOTE && p->conn) {
		out->path = TDM_REPORT_TCP;
		s = tdm_conn_stats(p->conn);
		out->tx_msgs = s->tx_msgs;
		out->tx_bytes = s->tx_bytes;
		out->rx_msgs = s->rx_msgs;
		out->rx_bytes = s->rx_bytes;
	}
}

static int report_path(struct fid_ep *fid, fi_addr_t addr,
		       struct tdm_report_path *out)
{
	struct tdm_ep *ep;
	int ret = 0;

	if (!fid || !out ||
	    (fid->fid.fclass != FI_CLASS_EP && fid->fid.fclass != FI_CLASS_SEP))
		return -FI_EINVAL;
	ep = tdm_ep_whole(tdm_ep_from_fid(fid));
	tdm_lock_acquire(&ep->domain->lock);
	if (!ep->av)
		ret = -FI_ENOAV;
	else if (!tdm_av_has(ep->av, addr))
		ret = -FI_EINVAL;
	else
		path_of(ep, tdm_ep_pair(ep, addr), out);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static struct tdm_report_ops report_ops = {
	.size = sizeof(report_ops),
	.path = report_path,
};

int tdm_report_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	(void)fid;
	(void)context;
	if (!name || !ops)
		return -FI_EINVAL;
	if (strcmp(name, TDM_REPORT_OPS))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &report_ops;
	return 0;
}

void tdm_report_print(struct tdm_ep *ep)
{
	static const char *const kind[] = { "none", "shm", "tcp" };
	char self[TDM_ADDR_STR_BYTES], text[TDM_ADDR_STR_BYTES];
	struct tdm_report_path path;
	struct tdm_addr a;
	size_t i;

	tdm_addr_format(&ep->name, self, sizeof(self));
	fprintf(stderr, "tandem: report of %s, process %d\n", self,
		(int)getpid());
	for (i = 0; i < ep->pairs; i++) {
		if (!ep->pair[i] || tdm_av_addr(ep->av, i, &a))
			continue;
		path_of(ep, ep->pair[i], &path);
		tdm_addr_format(&a, text, sizeof(text));
		fprintf(stderr,
			"tandem:   %zu %s path %s sent %llu (%llu B) "
			"received %llu (%llu B)%s%s\n",
			i, text, kind[path.path],
			(unsigned long long)path.tx_msgs,
			(unsigned long long)path.tx_bytes,
			(unsigned long long)path.rx_msgs,
			(unsigned long long)path.rx_bytes,
			*path.reason_text ? ": " : "", path.reason_text);
	}
}
