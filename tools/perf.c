/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tandem-perf(1): latency, rate and bandwidth between two processes, over any
 * provider of libfabric.
 *
 * Invariant: an error ends the exchange with one client. The side that finds it
 * tells the other one, so that both print the reason.
 * No lock: one thread.
 */
#include "tools/perf.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/perf_fab.h"
#include "tools/perf_report.h"

enum {
	FAILED = 1,
	USAGE = 2,
	NEWS_MS = 500, /* for the end of the other side to be heard of */
};

static const char default_provider[] = "tandem";

/*
 * Something failed. If the reason is that the other side failed or is gone, that
 * is the message; else the other side hears of it.
 */
static int give_up(struct perf *p)
{
	struct pollfd news = { .fd = p->c.fd, .events = POLLIN };
	char error[PERF_TEXT_BYTES];

	memcpy(error, p->c.error, sizeof(error));
	if (p->c.fd >= 0 && !p->c.told) {
		if (p->at.ep)
			poll(&news, 1, NEWS_MS);
		if (!perf_control_check(&p->c))
			perf_control_say(&p->c, "error %.400s", error);
	}
	fprintf(stderr, "tandem-perf: %s\n", p->c.error);
	return FAILED;
}

/* ---- client -------------------------------------------------------------- */

/* Have the server open what @p->job says. Returns 0, 1: it has not that; or -1. */
static int open_there(struct perf *p, char *address)
{
	char line[PERF_LINE_BYTES];

	if (perf_control_say(&p->c, "open %s %s %llu %u %d",
			     perf_pattern_names[p->job.pattern],
			     p->job.provider,
			     (unsigned long long)p->job.largest, p->job.window,
			     p->job.check) ||
	    perf_control_hear(&p->c, line, 0))
		return -1;
	if (!strncmp(line, "absent ", 7)) {
		perf_control_fail(&p->c, "%s: %s", p->c.peer, line + 7);
		return 1;
	}
	if (strncmp(line, "opened ", 7))
		return perf_control_fail(&p->c, "%s said \"%.40s\"", p->c.peer,
					 line);
	strcpy(address, line + 7);
	return 0;
}

static int meet(struct perf *p, const char *address)
{
	char mine[PERF_LINE_BYTES / 2 + 256], line[PERF_LINE_BYTES];

	if (perf_fab_describe(p, mine, sizeof(mine)) ||
	    perf_control_say(&p->c, "peer %s", mine) ||
	    perf_control_hear(&p->c, line, 0))
		return -1;
	return perf_fab_meet(p, address);
}

static int close_there(struct perf *p)
{
	char line[PERF_LINE_BYTES];

	if (perf_control_say(&p->c, "close") ||
	    perf_control_hear(&p->c, line, 0))
		return -1;
	return 0;
}

static uint64_t largest_of(const struct perf_options *o)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < o->sizes; i++)
		most = o->size[i] > most ? o->size[i] : most;
	return most;
}

static int measure_sizes(struct perf *p, struct perf_report *r)
{
	const int fixed = p->job.pattern == PERF_ATOMIC;
	const size_t n = fixed ? 1 : p->o->sizes;
	size_t i;

	for (i = 0; i < n; i++) {
		struct perf_row row = { .pattern = p->job.pattern };

		snprintf(row.provider, sizeof(row.provider), "%s",
			 p->at.info->fabric_attr->prov_name);
		row.bytes = fixed ? PERF_ATOMIC_BYTES : p->o->size[i];
		if (perf_measure(p, &row))
			return -1;
		/* The path is known when messages have taken it. */
		if (!i)
			perf_report_head(r, p);
		if (perf_report_row(r, &row))
			return perf_control_fail(&p->c, "no memory");
	}
	return 0;
}

/* Returns 0, 1: one of the sides does not offer @pattern; or -1. */
static int measure_pattern(struct perf *p, struct perf_report *r,
			   enum perf_pattern pattern)
{
	char address[PERF_LINE_BYTES];
	int ret;

	p->job.pattern = pattern;
	p->job.largest = pattern == PERF_ATOMIC ? PERF_ATOMIC_BYTES :
						  largest_of(p->o);
	ret = open_there(p, address);
	if (ret)
		return ret;
	ret = perf_fab_open(p);
	if (!ret)
		ret = meet(p, address);
	if (!ret)
		ret = measure_sizes(p, r);
	if (ret >= 0 && close_there(p))
		ret = -1;
	if (ret >= 0)
		perf_fab_close(p);
	return ret;
}

static int client(struct perf *p)
{
	struct perf_report report = { .o = p->o };
	int pattern, ret;

	snprintf(p->job.provider, sizeof(p->job.provider), "%s",
		 p->o->provider ? p->o->provider : default_provider);
	p->job.window = p->o->window;
	p->job.check = p->o->check;
	if (p->o->plot && !perf_can_plot()) {
		fputs("tandem-perf: --plot needs gnuplot\n", stderr);
		return FAILED;
	}
	if (perf_control_connect(&p->c, p->o->host, p->o->port))
		return give_up(p);
	for (pattern = 0; pattern < PERF_PATTERNS; pattern++) {
		if (!(p->o->patterns & 1u << pattern))
			continue;
		ret = measure_pattern(p, &report, pattern);
		if (ret < 0 || (ret && !p->o->patterns_are_all))
			return give_up(p);
		if (ret)
			fprintf(stderr, "tandem-perf: no figures for %s: %s\n",
				perf_pattern_names[pattern], p->c.error);
	}
	ret = !report.rows || (p->o->plot && perf_report_plot(&report)) ?
		      FAILED :
		      0;
	free(report.row);
	return ret;
}

/* ---- server -------------------------------------------------------------- */

/* The line "open ...". Returns 0, or -1. */
static int open_here(struct perf *p, const char *line)
{
	char mine[PERF_LINE_BYTES / 2 + 256], name[16] = "";
	unsigned long long largest = 0;
	int ret;

	if (sscanf(line, "open %15s %127s %llu %u %d", name, p->job.provider,
		   &largest, &p->job.window, &p->job.check) != 5 ||
	    largest > PERF_BYTES_MOST || !p->job.window ||
	    p->job.window > PERF_WINDOW_MOST)
		return perf_control_fail(&p->c, "%s ordered \"%.60s\"",
					 p->c.peer, line);
	p->job.pattern = perf_pattern_of(name, strlen(name));
	p->job.largest = largest;
	if (p->job.pattern == PERF_PATTERNS)
		return perf_control_fail(&p->c, "%s ordered the test %s",
					 p->c.peer, name);
	if (p->o->provider && strcmp(p->o->provider, p->job.provider))
		return perf_control_fail(&p->c,
					 "the client asks for %s, the server "
					 "was started for %s",
					 p->job.provider, p->o->provider);
	ret = perf_fab_open(p);
	if (ret > 0) {
		perf_fab_close(p);
		return perf_control_say(&p->c, "absent %.400s", p->c.error);
	}
	if (ret || perf_fab_describe(p, mine, sizeof(mine)))
		return -1;
	return perf_control_say(&p->c, "opened %s", mine);
}

/* Carry out one line of the client. Returns 0 or -1. */
static int obey(struct perf *p, const char *line)
{
	if (!p->at.ep)
		return open_here(p, line);
	if (!strncmp(line, "peer ", 5))
		return perf_fab_meet(p, line + 5) ?
			       -1 :
			       perf_control_say(&p->c, "ready");
	if (!strcmp(line, "close")) {
		perf_fab_close(p);
		return perf_control_say(&p->c, "closed");
	}
	return perf_serve_run(p, line);
}

static int serve(struct perf *p, int listener)
{
	char line[PERF_LINE_BYTES];
	int ret = 0;

	if (perf_control_accept(&p->c, listener))
		return give_up(p);
	while (!ret) {
		if (perf_control_hear(&p->c, line, 1)) {
			/* Between tests the client may go. */
			if (p->at.ep || !p->c.closed)
				ret = give_up(p);
			break;
		}
		if (obey(p, line))
			ret = give_up(p);
	}
	perf_fab_close(p);
	perf_control_close(&p->c);
	return ret;
}

static int server(struct perf *p)
{
	unsigned port;
	int ret, listener = perf_control_listen(&p->c, p->o->port, &port);

	if (listener < 0)
		return give_up(p);
	printf("waiting at port %u: on the other side, tandem-perf --port=%u "
	       "HOST\n",
	       port, port);
	fflush(stdout);
	do {
		ret = serve(p, listener);
	} while (p->o->keep);
	close(listener);
	return ret;
}

int main(int argc, char **argv)
{
	struct perf_options o;
	struct perf p = { .o = &o, .c = { .fd = -1 } };
	int ret;

	if (perf_options_parse(&o, argc, argv))
		return USAGE;
	signal(SIGPIPE, SIG_IGN);
	p.c.timeout_s = o.timeout_s;
	p.c.progress = perf_idle_progress;
	p.c.arg = &p;
	ret = o.host ? client(&p) : server(&p);
	perf_fab_close(&p);
	perf_control_close(&p.c);
	if (fflush(stdout) || ferror(stdout)) {
		fputs("tandem-perf: cannot write the output\n", stderr);
		return FAILED;
	}
	return ret;
}
