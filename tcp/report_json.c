/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report as JSON: one object, on a line of its own, for each endpoint.
 * fi_tandem(7), REPORT lists the members.
 *
 * Lock: the domain's, held.
 */
#include "config.h"

#include "tcp/report_priv.h"

#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp/domain.h"
#include "tcp/root.h"
#include "tcp/tier_foreign.h"

/* Write the member @name, whose value is the text @value. */
static void put_text(const struct tdm_sheet *s, const char *name,
		     const char *value)
{
	const char *c;

	fprintf(s->out, "\"%s\":\"", name);
	for (c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(s->out, "\\%c", *c);
		else if ((unsigned char)*c < 0x20 || *c == 0x7f)
			fprintf(s->out, "\\u%04x", (unsigned)*c);
		else
			fputc(*c, s->out);
	}
	fprintf(s->out, "\",");
}

static void put_number(const struct tdm_sheet *s, const char *name,
		       uint64_t value)
{
	fprintf(s->out, "\"%s\":%llu,", name, (unsigned long long)value);
}

static void put_bool(const struct tdm_sheet *s, const char *name, int value)
{
	fprintf(s->out, "\"%s\":%s,", name, value ? "true" : "false");
}

/* The last member of an object is not followed by a comma. */
static void put_counts(const struct tdm_sheet *s, const char *name,
		       const struct tdm_report_counts *c)
{
	fprintf(s->out,
		"\"%s\":{\"sent\":%llu,\"sent_bytes\":%llu,"
		"\"received\":%llu,\"received_bytes\":%llu}",
		name, (unsigned long long)c->tx_msgs,
		(unsigned long long)c->tx_bytes, (unsigned long long)c->rx_msgs,
		(unsigned long long)c->rx_bytes);
}

static void json_begin(struct tdm_sheet *s)
{
	const struct fi_info *info = s->root->ep.info;
	const uint64_t lacks = tdm_tier_foreign_lacks(s->root);
	const char *sep = "";
	char host[256] = "", libfabric[32];
	size_t i;

	gethostname(host, sizeof(host) - 1);
	snprintf(libfabric, sizeof(libfabric), "%u.%u", FI_MAJOR(fi_version()),
		 FI_MINOR(fi_version()));
	fputc('{', s->out);
	put_text(s, "provider", "tandem");
	put_text(s, "version", PACKAGE_VERSION);
	put_text(s, "libfabric", libfabric);
	put_text(s, "host", host);
	put_number(s, "pid", (uint64_t)getpid());
	put_text(s, "endpoint", s->self);
	put_text(s, "interface", info->domain_attr->name);
	put_text(s, "network", info->fabric_attr->name);
	put_bool(s, "closed", !s->open);
	if (lacks) {
		put_text(s, "local", tdm_env.local);
		fprintf(s->out, "\"lacks\":[");
		for (i = 0; i < TDM_ARRAY_LEN(tdm_report_lacks); i++) {
			if (!(lacks & tdm_report_lacks[i].lack))
				continue;
			fprintf(s->out, "%s\"%s\"", sep,
				tdm_report_lacks[i].text);
			sep = ",";
		}
		fprintf(s->out, "],");
	}
	fprintf(s->out, "\"peers\":[");
}

static void json_peer(struct tdm_sheet *s, const struct tdm_report_peer *peer)
{
	static const char *const state[] = { "none", "in use", "closed",
					     "lost" };
	const struct tdm_report_path *p = &peer->path;
	char text[TDM_ADDR_STR_BYTES];

	fprintf(s->out, s->totals.peers > 1 ? ",{" : "{");
	put_number(s, "index", peer->index);
	put_text(s, "address", tdm_addr_text(&peer->addr, text, sizeof(text)));
	put_text(s, "path", tdm_report_kinds[p->path]);
	put_text(s, "state", state[p->state]);
	put_bool(s, "removed", peer->removed);
	put_number(s, "lives", p->lives);
	put_number(s, "reason", p->reason);
	put_text(s, "reason_text", p->reason_text);
	put_text(s, "error", p->err ? fi_strerror(p->err) : "");
	put_text(s, "large_in", tdm_report_larges[p->large_rx]);
	put_text(s, "large_out", tdm_report_larges[p->large_tx]);
	put_counts(s, "shm", &p->shm);
	fputc(',', s->out);
	put_counts(s, "tcp", &p->tcp);
	fputc(',', s->out);
	put_counts(s, "foreign", &p->foreign);
	fputc('}', s->out);
}

static void json_end(struct tdm_sheet *s)
{
	const struct tdm_report_totals *t = &s->totals;

	fprintf(s->out, "],\"totals\":{");
	put_number(s, "peers", t->peers);
	put_number(s, "shm", t->shm);
	put_number(s, "cma", t->cma);
	put_number(s, "tcp", t->tcp);
	put_number(s, "foreign", t->foreign);
	put_number(s, "lost", t->lost);
	put_number(s, "counts_lost", s->root->lives_lost);
	put_counts(s, "all", &t->all);
	fprintf(s->out, "}}\n");
}

const struct tdm_report_form tdm_report_json = {
	.idle = 1,
	.begin = json_begin,
	.peer = json_peer,
	.end = json_end,
};
