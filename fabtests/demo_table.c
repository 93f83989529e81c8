/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of the demo. Each rank judges the rows of all ranks by the same
 * rules and so comes to the same verdict; only rank 0 prints.
 */
#include "fabtests/demo_table.h"

#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>

enum { COMPLAINTS = 10 };

struct judge {
	struct demo *d;
	const uint8_t *rows;
	size_t stride;
	uint64_t bad;
	uint64_t msgs;
	uint64_t bytes;
};

static const struct demo_row *row(const struct judge *j, int rank)
{
	return (const struct demo_row *)(j->rows + (size_t)rank * j->stride);
}

/* The counts of rank @a for its pair with rank @b. */
static const struct demo_cell *cell(const struct judge *j, int a, int b)
{
	return &row(j, a)->cell[b];
}

void demo_table_ask(struct demo *d)
{
	struct tdm_report_path p;
	struct demo_cell *c;
	int r, ret;

	if (!d->fab.report)
		return;
	for (r = 0; r < d->opt.nranks; r++) {
		if (r == d->opt.rank)
			continue;
		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		ret = d->fab.report->path(d->fab.ep, d->fab.addr[r], &p);
		if (ret) {
			demo_bad(d, "report for rank %d: %s", r,
				 fi_strerror(-ret));
			continue;
		}
		c = &d->row->cell[r];
		c->path = p.path;
		c->reason = p.reason;
		c->path_tx_msgs = p.tx_msgs;
		c->path_rx_msgs = p.rx_msgs;
		snprintf(c->reason_text, sizeof(c->reason_text), "%s",
			 p.reason_text ? p.reason_text : "");
	}
}

static const char *tier_name(uint32_t path)
{
	switch (path) {
	case TDM_REPORT_SHM:
		return "shared memory";
	case TDM_REPORT_TCP:
		return "tcp";
	default:
		return "none";
	}
}

static int complain(struct judge *j)
{
	return ++j->bad <= COMPLAINTS && !j->d->opt.rank;
}

static int same_host(const struct judge *j, int a, int b)
{
	return !strcmp(j->d->hosts[a], j->d->hosts[b]);
}

/* The counts must agree: b received from a all that a sent to b. */
static void judge_totals(struct judge *j, int a, int b)
{
	const struct demo_cell *tx = cell(j, a, b), *rx = cell(j, b, a);

	j->msgs += rx->rx_msgs;
	j->bytes += rx->rx_bytes;
	if ((tx->tx_msgs != rx->rx_msgs || tx->tx_bytes != rx->rx_bytes ||
	     tx->tx_sum != rx->rx_sum) &&
	    complain(j))
		printf("wrong: rank %d sent %llu messages, %llu bytes to rank "
		       "%d, which received %llu, %llu%s\n",
		       a, (unsigned long long)tx->tx_msgs,
		       (unsigned long long)tx->tx_bytes, b,
		       (unsigned long long)rx->rx_msgs,
		       (unsigned long long)rx->rx_bytes,
		       tx->tx_sum == rx->rx_sum ? "" : ", not the same ones");
}

static void judge_tier(struct judge *j, int a, int b)
{
	const struct demo_cell *c = cell(j, a, b);
	uint32_t want = same_host(j, a, b) ? TDM_REPORT_SHM : TDM_REPORT_TCP;

	if (c->path != want && complain(j))
		printf("wrong: rank %d reaches rank %d (%s host) by %s%s%s\n",
		       a, b, same_host(j, a, b) ? "same" : "other",
		       tier_name(c->path), c->reason_text[0] ? ": " : "",
		       c->reason_text);
	if ((c->path_tx_msgs != c->all_tx_msgs ||
	     c->path_rx_msgs != c->all_rx_msgs) &&
	    complain(j))
		printf("wrong: rank %d sent %llu and received %llu messages "
		       "with rank %d, but the provider reports %llu and %llu\n",
		       a, (unsigned long long)c->all_tx_msgs,
		       (unsigned long long)c->all_rx_msgs, b,
		       (unsigned long long)c->path_tx_msgs,
		       (unsigned long long)c->path_rx_msgs);
}

static void judge_all(struct judge *j)
{
	int a, b, n = j->d->opt.nranks;

	for (a = 0; a < n; a++) {
		if (row(j, a)->bad && complain(j))
			printf("wrong: rank %d found %llu faults\n", a,
			       (unsigned long long)row(j, a)->bad);
		for (b = 0; b < n; b++) {
			if (a == b)
				continue;
			judge_totals(j, a, b);
			if (demo_fab_is_tandem(&j->d->fab))
				judge_tier(j, a, b);
		}
	}
}

/* "12.3 MB" and the like. */
static const char *in_bytes(uint64_t bytes, char *buf, size_t size)
{
	if (bytes >= 1000000000u)
		snprintf(buf, size, "%.2f GB", (double)bytes / 1e9);
	else
		snprintf(buf, size, "%.1f MB", (double)bytes / 1e6);
	return buf;
}

static void print_pair(const struct judge *j, int a, int b)
{
	const struct demo_cell *c = cell(j, a, b), *back = cell(j, b, a);
	const struct demo_cell *why = c->reason_text[0] ? c : back;
	int tandem = demo_fab_is_tandem(&j->d->fab);
	char pair[32], hosts[2 * DEMO_HOST_BYTES + 4], bytes[32];

	snprintf(pair, sizeof(pair), "%d - %d", a, b);
	snprintf(hosts, sizeof(hosts), "%s%s%s", j->d->hosts[a],
		 same_host(j, a, b) ? "" : " - ",
		 same_host(j, a, b) ? "" : j->d->hosts[b]);
	printf("%-8s %-17s %-14s %9llu %10s %10.2f us %8.2f GB/s  %s\n", pair,
	       hosts, tandem ? tier_name(c->path) : "n/a",
	       (unsigned long long)(c->rx_msgs + back->rx_msgs),
	       in_bytes(c->rx_bytes + back->rx_bytes, bytes, sizeof(bytes)),
	       (double)c->half_ps / 1e6, (double)c->bandwidth / 1e9,
	       !tandem			 ? "n/a" :
	       c->path == TDM_REPORT_SHM ? "" :
					   why->reason_text);
}

static void print_table(const struct judge *j)
{
	int a, b;

	printf("%-8s %-17s %-14s %9s %10s %13s %13s\n", "", "", "", "checked",
	       "checked", "half trip", "bandwidth");
	printf("%-8s %-17s %-14s %9s %10s %13s %13s  %s\n", "pair", "hosts",
	       "tier", "messages", "bytes", "8 B", "1 MiB",
	       "why not shared memory");
	for (a = 0; a < j->d->opt.nranks; a++)
		for (b = a + 1; b < j->d->opt.nranks; b++)
			print_pair(j, a, b);
}

int demo_table_finish(struct demo *d, const struct demo_row *rows)
{
	struct judge j = { .d = d,
			   .rows = (const uint8_t *)rows,
			   .stride = demo_row_bytes(d->opt.nranks) };
	char bytes[32];

	judge_all(&j);
	if (!d->opt.rank) {
		print_table(&j);
		if (j.bad)
			printf("FAILED: %llu checks did not hold\n",
			       (unsigned long long)j.bad);
		else
			printf("%llu messages, %s: every byte right, in order, "
			       "exactly once%s\n",
			       (unsigned long long)j.msgs,
			       in_bytes(j.bytes, bytes, sizeof(bytes)),
			       demo_fab_is_tandem(&d->fab) ?
				       "; every pair on the path its hosts "
				       "call for" :
				       "");
		fflush(stdout);
	}
	return j.bad ? -1 : 0;
}
