/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The forms of the report for people: fi_tandem(7), REPORT. Each line names its
 * process and endpoint.
 *
 * Lock: the domain's, held.
 */
#include "config.h"

#include "tcp/report_priv.h"

#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/advice.h"
#include "base/env.h"
#include "tcp/domain.h"
#include "tcp/history.h"
#include "tcp/root.h"
#include "tcp/tier_foreign.h"

const char *const tdm_report_kinds[4] = { "none", "shm", "tcp", "foreign" };
const char *const tdm_report_larges[4] = { "", "cma", "bounce", "copy" };

const struct tdm_report_lacking tdm_report_lacks[5] = {
	{ TDM_REPORT_LACKS_REGIONS,
	  "no memory regions (one-sided and atomic operations by tcp)" },
	{ TDM_REPORT_LACKS_DEATH, "no notice of lost peers (by tcp)" },
	{ TDM_REPORT_LACKS_WAKING, "no descriptor (polled)" },
	{ TDM_REPORT_LACKS_CANCEL, "no cancelling of sends" },
	{ TDM_REPORT_LACKS_USER_IDS, "no user ids (sources by tandem)" },
};

static void begin_line(const struct tdm_sheet *s)
{
	fprintf(s->out, "tandem[%d %s]: ", (int)getpid(), s->self);
}

static void print_counts(const struct tdm_sheet *s,
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

static void print_foreign(const struct tdm_sheet *s,
			  const struct tdm_report_path *p)
{
	print_counts(s, &p->foreign);
	if (!any(&p->tcp))
		return;
	fprintf(s->out, ", by tcp");
	print_counts(s, &p->tcp);
}

/* Messages that went over the other path before this one was agreed. */
static void print_before(const struct tdm_sheet *s,
			 const struct tdm_report_path *p)
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

static void print_end(const struct tdm_sheet *s,
		      const struct tdm_report_peer *peer)
{
	const struct tdm_report_path *p = &peer->path;

	if (p->large_rx)
		fprintf(s->out, ", large in by %s",
			tdm_report_larges[p->large_rx]);
	if (p->large_tx)
		fprintf(s->out, ", large out by %s",
			tdm_report_larges[p->large_tx]);
	if (p->lives > 1)
		fprintf(s->out, ", %llu lives", (unsigned long long)p->lives);
	if (*p->reason_text)
		fprintf(s->out, ": %s", p->reason_text);
	if (p->state == TDM_REPORT_CLOSED)
		fprintf(s->out, "; closed by the peer");
	else if (p->state == TDM_REPORT_LOST)
		fprintf(s->out, "; lost: %s", fi_strerror(p->err));
	if (peer->removed)
		fprintf(s->out, "; removed");
	fputc('\n', s->out);
}

static void print_peer(struct tdm_sheet *s, const struct tdm_report_peer *peer)
{
	const struct tdm_report_counts none = { .tx_msgs = 0 };
	const struct tdm_report_path *p = &peer->path;
	char text[TDM_ADDR_STR_BYTES];

	begin_line(s);
	fprintf(s->out, "%llu %s path %s", (unsigned long long)peer->index,
		tdm_addr_text(&peer->addr, text, sizeof(text)),
		tdm_report_kinds[p->path]);
	if (p->path == TDM_REPORT_FOREIGN)
		print_foreign(s, p);
	else
		print_counts(s, p->path == TDM_REPORT_SHM ? &p->shm :
				p->path == TDM_REPORT_TCP ? &p->tcp :
							    &none);
	print_before(s, p);
	print_end(s, peer);
}

/*
 * Print what a foreign provider lacks, and which transport serves instead; nothing
 * for an endpoint without one.
 */
static void print_lacks(struct tdm_sheet *s)
{
	const uint64_t bits = tdm_tier_foreign_lacks(s->root);
	const char *sep = ": ";
	size_t i;

	if (!bits)
		return;
	begin_line(s);
	fprintf(s->out, "messages by provider %s", tdm_env.local);
	for (i = 0; i < TDM_ARRAY_LEN(tdm_report_lacks); i++) {
		if (!(bits & tdm_report_lacks[i].lack))
			continue;
		fprintf(s->out, "%s%s", sep, tdm_report_lacks[i].text);
		sep = ", ";
	}
	fputc('\n', s->out);
}

static void print_last(const struct tdm_sheet *s)
{
	if (s->open)
		fprintf(s->out, ", not closed");
	if (s->root->lives_lost)
		fprintf(s->out, "; no memory for the counts of %zu that ended",
			s->root->lives_lost);
	fputc('\n', s->out);
}

static void plain_end(struct tdm_sheet *s)
{
	const struct tdm_report_totals *t = &s->totals;

	begin_line(s);
	fprintf(s->out, "%zu peers, %zu shm, %zu tcp", t->peers, t->shm,
		t->tcp);
	if (t->foreign)
		fprintf(s->out, ", %zu foreign", t->foreign);
	print_last(s);
}

static void print_reasons(const struct tdm_sheet *s)
{
	const char *sep = " (";
	uint32_t i;

	for (i = 1; i < TDM_REPORT_REASONS; i++) {
		if (!s->totals.reasons[i])
			continue;
		fprintf(s->out, "%s%zu %s", sep, s->totals.reasons[i],
			tdm_reason_text(i));
		sep = ", ";
	}
	if (*sep == ',')
		fputc(')', s->out);
}

static void summary_end(struct tdm_sheet *s)
{
	const struct tdm_report_totals *t = &s->totals;

	begin_line(s);
	fprintf(s->out, "%zu peers, %zu shm", t->peers, t->shm);
	if (t->cma)
		fprintf(s->out, " (%zu by cma)", t->cma);
	fprintf(s->out, ", %zu tcp", t->tcp);
	if (t->foreign)
		fprintf(s->out, ", %zu foreign", t->foreign);
	print_reasons(s);
	fputc(',', s->out);
	print_counts(s, &t->all);
	if (t->lost)
		fprintf(s->out, ", %zu lost", t->lost);
	print_last(s);
}

/* Errors of lost peers for which the report has advice: bits of sheet->errors. */
static const int errors[] = { FI_ECONNREFUSED, FI_ETIMEDOUT,   FI_ENETUNREACH,
			      FI_EHOSTUNREACH, FI_ENOPROTOOPT, FI_EKEYREJECTED };

static void full_peer(struct tdm_sheet *s, const struct tdm_report_peer *peer)
{
	const struct tdm_report_path *p = &peer->path;
	size_t i;

	print_peer(s, peer);
	if (p->large_rx == TDM_REPORT_LARGE_BOUNCE ||
	    p->large_tx == TDM_REPORT_LARGE_BOUNCE)
		s->bounce = 1;
	for (i = 0; i < TDM_ARRAY_LEN(errors); i++)
		if (p->state == TDM_REPORT_LOST && p->err == errors[i])
			s->errors |= 1u << i;
}

static void advise(const struct tdm_sheet *s, const char *what,
		   const char *advice)
{
	if (!*advice)
		return;
	begin_line(s);
	fprintf(s->out, "%s -> %s\n", what, advice);
}

static void full_end(struct tdm_sheet *s)
{
	uint32_t i;

	for (i = 1; i < TDM_REPORT_REASONS; i++)
		if (s->totals.reasons[i])
			advise(s, tdm_reason_text(i), tdm_reason_advice(i));
	for (i = 0; i < TDM_ARRAY_LEN(errors); i++)
		if (s->errors & 1u << i)
			advise(s, fi_strerror(errors[i]),
			       tdm_advice(errors[i]));
	if (s->bounce)
		advise(s, "large messages by bounce", tdm_advice_cma());
	summary_end(s);
}

static void full_begin(struct tdm_sheet *s)
{
	const struct fi_info *info = s->root->ep.info;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	begin_line(s);
	fprintf(s->out,
		"tandem %s, libfabric %u.%u, host %s, interface %s (%s)\n",
		PACKAGE_VERSION, FI_MAJOR(fi_version()), FI_MINOR(fi_version()),
		host, info->domain_attr->name, info->fabric_attr->name);
	print_lacks(s);
}

static void no_peer(struct tdm_sheet *s, const struct tdm_report_peer *p)
{
	(void)s;
	(void)p;
}

const struct tdm_report_form tdm_report_plain = {
	.begin = print_lacks,
	.peer = print_peer,
	.end = plain_end,
};

const struct tdm_report_form tdm_report_summary = {
	.begin = print_lacks,
	.peer = no_peer,
	.end = summary_end,
};

const struct tdm_report_form tdm_report_full = {
	.idle = 1,
	.begin = full_begin,
	.peer = full_peer,
	.end = full_end,
};
