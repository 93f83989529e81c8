/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which path the messages of an endpoint take, and why: for the application
 * (include/fi_ext_tandem.h) and, with FI_TANDEM_REPORT, as a table on stderr
 * when the endpoint closes, or when the process ends with it open.
 *
 * The processes of a job share one stderr: each line names its endpoint, and a
 * report is written by one call, so that lines of other processes do not mix
 * with it.
 *
 * Lock: the domain's, taken by the calls of the application and, if it is free,
 * at the end of the process; held when an endpoint closes.
 */
#include "tcp/report.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "fi_ext_tandem.h"
#include "tcp/opened.h"
#include "tcp/profile.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tcp/tier_foreign.h"

static int report_path(struct fid_ep *fid, fi_addr_t addr,
		       struct tdm_report_path *out)
{
	const size_t least = offsetof(struct tdm_report_path, reason_text) +
			     sizeof(out->reason_text);
	struct tdm_report_path path;
	struct tdm_ep *ep;
	int ret = 0;

	if (!fid || !out || out->size < least ||
	    (fid->fid.fclass != FI_CLASS_EP && fid->fid.fclass != FI_CLASS_SEP))
		return -FI_EINVAL;
	ep = tdm_ep_from_fid(fid);
	tdm_lock_acquire(&ep->domain->lock);
	if (!ep->av)
		ret = -FI_ENOAV;
	else if (!tdm_av_has(ep->av, addr))
		ret = -FI_EINVAL;
	else
		tdm_history_path(ep->root, addr, &path);
	tdm_lock_release(&ep->domain->lock);
	if (ret)
		return ret;
	path.size = tdm_min(out->size, sizeof(path));
	memcpy(out, &path, path.size);
	return 0;
}

static struct tdm_report_ops report_ops = {
	.size = sizeof(report_ops),
	.path = report_path,
};

int tdm_report_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	if (!name || !ops)
		return -FI_EINVAL;
	if (strcmp(name, TDM_REPORT_OPS))
		return tdm_profile_open(fid, name, flags, ops, context);
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &report_ops;
	return 0;
}

/* ---- FI_TANDEM_REPORT ---------------------------------------------------- */

/* The endpoint and the stream for its lines. */
struct sheet {
	FILE *out;
	struct tdm_root *root;
	char self[TDM_ADDR_STR_BYTES];
	size_t peers, shm, tcp, foreign;
};

static void begin_line(const struct sheet *s)
{
	fprintf(s->out, "tandem[%d %s]: ", (int)getpid(), s->self);
}

static void print_counts(const struct sheet *s,
			 const struct tdm_report_counts *c)
{
	fprintf(s->out, " sent %llu (%llu B) received %llu (%llu B)",
		(unsigned long long)c->tx_msgs, (unsigned long long)c->tx_bytes,
		(unsigned long long)c->rx_msgs,
		(unsigned long long)c->rx_bytes);
}

static int any(const struct tdm_report_counts *c)
{
	return c->tx_msgs || c->rx_msgs;
}

static void print_foreign(const struct sheet *s,
			  const struct tdm_report_path *p)
{
	print_counts(s, &p->foreign);
	if (!any(&p->tcp))
		return;
	fprintf(s->out, ", by tcp");
	print_counts(s, &p->tcp);
}

/* Messages that went over the other path before this one was agreed. */
static void print_before(const struct sheet *s, const struct tdm_report_path *p)
{
	const struct tdm_report_counts *other =
		p->path == TDM_REPORT_SHM ? &p->tcp : &p->shm;

	if (p->path == TDM_REPORT_NONE || p->path == TDM_REPORT_FOREIGN ||
	    !any(other))
		return;
	fprintf(s->out, ", before by %s",
		p->path == TDM_REPORT_SHM ? "tcp" : "shm");
	print_counts(s, other);
}

static void print_end(const struct sheet *s, const struct tdm_report_path *p,
		      int removed)
{
	static const char *const large[] = { "", "cma", "bounce", "copy" };

	if (p->large_rx)
		fprintf(s->out, ", large in by %s", large[p->large_rx]);
	if (p->large_tx)
		fprintf(s->out, ", large out by %s", large[p->large_tx]);
	if (p->lives > 1)
		fprintf(s->out, ", %llu lives", (unsigned long long)p->lives);
	if (*p->reason_text)
		fprintf(s->out, ": %s", p->reason_text);
	if (p->state == TDM_REPORT_CLOSED)
		fprintf(s->out, "; closed by the peer");
	else if (p->state == TDM_REPORT_LOST)
		fprintf(s->out, "; lost: %s", fi_strerror(p->err));
	if (removed)
		fprintf(s->out, "; removed");
	fputc('\n', s->out);
}

static void print_path(struct sheet *s, fi_addr_t index,
		       const struct tdm_addr *addr,
		       const struct tdm_report_path *p, int removed)
{
	static const char *const kind[] = { "none", "shm", "tcp", "foreign" };
	const struct tdm_report_counts none = { .tx_msgs = 0 };
	char text[TDM_ADDR_STR_BYTES];

	s->peers++;
	s->shm += p->path == TDM_REPORT_SHM;
	s->tcp += p->path == TDM_REPORT_TCP;
	s->foreign += p->path == TDM_REPORT_FOREIGN;
	begin_line(s);
	fprintf(s->out, "%llu %s path %s", (unsigned long long)index,
		tdm_addr_text(addr, text, sizeof(text)), kind[p->path]);
	if (p->path == TDM_REPORT_FOREIGN)
		print_foreign(s, p);
	else
		print_counts(s, p->path == TDM_REPORT_SHM ? &p->shm :
				p->path == TDM_REPORT_TCP ? &p->tcp :
							    &none);
	print_before(s, p);
	print_end(s, p, removed);
}

static void print_removed(struct sheet *s)
{
	struct tdm_report_path path;
	struct tdm_list *pos;

	tdm_list_for_each(pos, &s->root->removed) {
		const struct tdm_history *l =
			tdm_list_entry(pos, struct tdm_history, node);

		tdm_history_path_removed(s->root, l, &path);
		print_path(s, l->index, &l->addr, &path, 1);
	}
}

/* Print a line for each address that has had traffic or a path. */
static void print_present(struct sheet *s)
{
	struct tdm_report_path path;
	struct tdm_addr a;
	fi_addr_t i;

	if (!s->root->ep.av)
		return;
	for (i = 0; i < tdm_av_end(s->root->ep.av); i++) {
		if (tdm_av_addr(s->root->ep.av, i, &a) ||
		    tdm_av_lowest(s->root->ep.av, i) != i)
			continue;
		tdm_history_path(s->root, i, &path);
		if (path.path != TDM_REPORT_NONE || tdm_ep_pair_of(s->root, i))
			print_path(s, i, &a, &path, 0);
	}
}

/*
 * Print what a foreign provider lacks, and which transport serves instead; nothing
 * for an endpoint without one.
 */
static void print_lacks(const struct sheet *s)
{
	static const struct {
		uint64_t lack;
		const char *text;
	} lacks[] = {
		{ TDM_REPORT_LACKS_REGIONS,
		  "no memory regions (one-sided and atomic operations by tcp)" },
		{ TDM_REPORT_LACKS_DEATH, "no notice of lost peers (by tcp)" },
		{ TDM_REPORT_LACKS_WAKING, "no descriptor (polled)" },
		{ TDM_REPORT_LACKS_CANCEL, "no cancelling of sends" },
		{ TDM_REPORT_LACKS_USER_IDS,
		  "no user ids (sources by tandem)" },
	};
	const uint64_t bits = tdm_tier_foreign_lacks(s->root);
	const char *sep = ": ";
	size_t i;

	if (!bits)
		return;
	begin_line(s);
	fprintf(s->out, "messages by provider %s", tdm_env.local);
	for (i = 0; i < TDM_ARRAY_LEN(lacks); i++) {
		if (!(bits & lacks[i].lack))
			continue;
		fprintf(s->out, "%s%s", sep, lacks[i].text);
		sep = ", ";
	}
	fputc('\n', s->out);
}

static void print_sheet(struct sheet *s, const char *when)
{
	print_lacks(s);
	print_removed(s);
	print_present(s);
	begin_line(s);
	fprintf(s->out, "%zu peers, %zu shm, %zu tcp", s->peers, s->shm,
		s->tcp);
	if (s->foreign)
		fprintf(s->out, ", %zu foreign", s->foreign);
	fprintf(s->out, "%s", when);
	if (s->root->lives_lost)
		fprintf(s->out, "; no memory for the counts of %zu that ended",
			s->root->lives_lost);
	fputc('\n', s->out);
}

static void print_report(struct tdm_root *root, const char *when)
{
	struct sheet s = { .root = root };
	char own[TDM_ADDR_STR_BYTES], *text = NULL;
	size_t len = 0;
	int t;

	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->deliver(root->ep.domain);
	snprintf(s.self, sizeof(s.self), "%s",
		 tdm_addr_text(&root->name, own, sizeof(own)));
	s.out = open_memstream(&text, &len);
	if (!s.out) {
		s.out = stderr;
		print_sheet(&s, when);
		return;
	}
	print_sheet(&s, when);
	if (!fclose(s.out))
		fwrite(text, 1, len, stderr);
	free(text);
}

void tdm_report_print(struct tdm_root *root)
{
	print_report(root, "");
}

static void print_domain(struct tdm_domain *d)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &d->roots)
		print_report(tdm_list_entry(pos, struct tdm_root, node),
			     ", not closed");
}

void tdm_report_exit(void)
{
	if (tdm_env.report)
		tdm_opened_idle(print_domain);
}
