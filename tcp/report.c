/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which path the messages of an endpoint take, and why: for the application
 * (include/fi_ext_tandem.h) and, with FI_TANDEM_REPORT, as a report on stderr or
 * in a file when the endpoint closes, or when the process ends with it open.
 *
 * The processes of a job may share one stderr or file: a report is written by
 * one call, so that lines of other processes do not mix with it.
 *
 * Lock: the domain's, taken by the calls of the application and, if it is free,
 * at the end of the process; held when an endpoint closes.
 */
#include "tcp/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "tcp/opened.h"
#include "tcp/profile.h"
#include "tcp/report_priv.h"
#include "tcp/root.h"
#include "tcp/tier.h"

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

static const struct tdm_report_form *const forms[] = {
	[TDM_FORM_PLAIN] = &tdm_report_plain,
	[TDM_FORM_SUMMARY] = &tdm_report_summary,
	[TDM_FORM_FULL] = &tdm_report_full,
	[TDM_FORM_JSON] = &tdm_report_json,
};

static void count(struct tdm_report_totals *t, const struct tdm_report_path *p)
{
	t->peers++;
	t->shm += p->path == TDM_REPORT_SHM;
	t->tcp += p->path == TDM_REPORT_TCP;
	t->foreign += p->path == TDM_REPORT_FOREIGN;
	t->lost += p->state == TDM_REPORT_LOST;
	t->cma += p->path == TDM_REPORT_SHM &&
		  (p->large_rx == TDM_REPORT_LARGE_CMA ||
		   p->large_tx == TDM_REPORT_LARGE_CMA);
	if (p->reason < TDM_REPORT_REASONS)
		t->reasons[p->reason]++;
	t->all.tx_msgs += p->tx_msgs;
	t->all.tx_bytes += p->tx_bytes;
	t->all.rx_msgs += p->rx_msgs;
	t->all.rx_bytes += p->rx_bytes;
}

static void visit(struct tdm_sheet *s, const struct tdm_report_form *form,
		  const struct tdm_report_peer *peer)
{
	count(&s->totals, &peer->path);
	form->peer(s, peer);
}

static void visit_removed(struct tdm_sheet *s,
			  const struct tdm_report_form *form)
{
	struct tdm_report_peer peer = { .removed = 1 };
	struct tdm_list *pos;

	tdm_list_for_each(pos, &s->root->removed) {
		const struct tdm_history *l =
			tdm_list_entry(pos, struct tdm_history, node);

		tdm_history_path_removed(s->root, l, &peer.path);
		peer.index = l->index;
		peer.addr = l->addr;
		visit(s, form, &peer);
	}
}

/*
 * Visit each address that has had traffic or a path; with form->idle the others
 * too.
 */
static void visit_present(struct tdm_sheet *s,
			  const struct tdm_report_form *form)
{
	struct tdm_report_peer peer = { .removed = 0 };
	struct tdm_av *av = s->root->ep.av;
	fi_addr_t i;

	for (i = 0; av && i < tdm_av_end(av); i++) {
		if (tdm_av_addr(av, i, &peer.addr) || tdm_av_lowest(av, i) != i)
			continue;
		tdm_history_path(s->root, i, &peer.path);
		if (!form->idle && peer.path.path == TDM_REPORT_NONE &&
		    !tdm_ep_pair_of(s->root, i))
			continue;
		peer.index = i;
		visit(s, form, &peer);
	}
}

static void print_sheet(struct tdm_sheet *s)
{
	const struct tdm_report_form *form = forms[tdm_env.report];

	form->begin(s);
	visit_removed(s, form);
	visit_present(s, form);
	form->end(s);
}

/*
 * Write the name of the report's file to @buf[@len]: %p in it stands for the
 * process id, %% for %. Returns 0, or -1: it is too long.
 */
static int file_name(char *buf, size_t len)
{
	const char *c = tdm_env.report_file;
	size_t n = 0;

	for (; *c && n < len - 1; c++) {
		if (*c != '%' || (c[1] != 'p' && c[1] != '%'))
			buf[n++] = *c;
		else if (*++c == '%')
			buf[n++] = '%';
		else
			n += (size_t)snprintf(buf + n, len - n, "%d",
					      (int)getpid());
	}
	if (*c || n >= len)
		return -1;
	buf[n] = '\0';
	return 0;
}

/* Append @text, @len bytes, to the report's file. Returns 0 or a negative errno. */
static int append(const char *text, size_t len)
{
	char name[PATH_MAX];
	ssize_t n = 0;
	int fd, err;

	if (file_name(name, sizeof(name)))
		return -ENAMETOOLONG;
	fd = tdm_os.open_file(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			      0666);
	if (fd < 0)
		return -errno;
	while (len &&
	       ((n = tdm_os.write(fd, text, len)) > 0 || errno == EINTR)) {
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	err = n < 0 ? -errno : 0;
	tdm_os.close(fd);
	return err;
}

static void put_out(const char *text, size_t len)
{
	static tdm_a32 told;
	int ret;

	if (!tdm_env.report_file) {
		fwrite(text, 1, len, stderr);
		return;
	}
	ret = append(text, len);
	if (!ret)
		return;
	if (!tdm_a32_load_relaxed(&told))
		tdm_tell_user("the report cannot be written to %s "
			      "(FI_TANDEM_REPORT): %s",
			      tdm_env.report_file, strerror(-ret));
	tdm_a32_store_relaxed(&told, 1);
	fwrite(text, 1, len, stderr);
}

static void print_report(struct tdm_root *root, int open)
{
	struct tdm_sheet s = { .root = root, .open = open };
	char own[TDM_ADDR_STR_BYTES], *text = NULL;
	size_t len = 0;
	int t;

	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->deliver(root->ep.domain);
	s.self = tdm_addr_text(&root->name, own, sizeof(own));
	s.out = open_memstream(&text, &len);
	if (!s.out) {
		s.out = stderr;
		print_sheet(&s);
		return;
	}
	print_sheet(&s);
	if (!fclose(s.out))
		put_out(text, len);
	free(text);
}

void tdm_report_print(struct tdm_root *root)
{
	print_report(root, 0);
}

static void print_domain(struct tdm_domain *d)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &d->roots)
		print_report(tdm_list_entry(pos, struct tdm_root, node), 1);
}

void tdm_report_exit(void)
{
	if (tdm_env.report)
		tdm_opened_idle(print_domain);
}
