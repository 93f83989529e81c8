/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tandem_demo: one rank of a job that shows the provider at work. All ranks
 * send to all others and check everything they receive; then each pair is
 * measured; rank 0 prints a table with the path that each pair used.
 *
 *	tandem_demo -r RANK -n NRANKS -a MYIP -c CONTROLADDR:PORT
 *		    -H HOSTLABEL [-p PROVIDER] [-q]
 *
 * Ranks with the same label are on the same host: tandem must join them by
 * shared memory, and others by TCP. The exit status is 0 only when all checks
 * held on all ranks. For comparison it also works with other providers that
 * have tagged messages and socket addresses, such as tcp; the path is then
 * unknown and not checked.
 *
 * Only libfabric's public API is used, and the public report interface of
 * tandem (<rdma/fi_ext_tandem.h>).
 */
#include "fabtests/demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabtests/demo_measure.h"
#include "fabtests/demo_message.h"
#include "fabtests/demo_table.h"
#include "fabtests/demo_traffic.h"
#include "fabtests/demo_util.h"

enum { BOOT_MS = 30000 };

static int usage(void)
{
	fprintf(stderr, "usage: tandem_demo -r RANK -n NRANKS -a MYIP "
			"-c CONTROLADDR:PORT -H HOSTLABEL\n"
			"                   [-p PROVIDER] [-q]\n"
			"  -r  rank of this process, 0 to NRANKS - 1\n"
			"  -n  number of processes, 2 or more\n"
			"  -a  local IP address for the endpoint\n"
			"  -c  where rank 0 listens and the others connect\n"
			"  -H  ranks with the same label are on the same host\n"
			"  -p  libfabric provider (default: tandem)\n"
			"  -q  no live line\n");
	return -1;
}

static int number(const char *text, int low, int high, int *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (end == text || *end || v < low || v > high)
		return -1;
	*out = (int)v;
	return 0;
}

static int parse(struct demo_options *opt, int argc, char **argv)
{
	int c;

	opt->rank = -1;
	opt->prov = "tandem";
	while ((c = getopt(argc, argv, "r:n:a:c:H:p:q")) != -1) {
		if (c == 'r' && !number(optarg, 0, DEMO_MAX_RANKS, &opt->rank))
			continue;
		if (c == 'n' &&
		    !number(optarg, 2, DEMO_MAX_RANKS, &opt->nranks))
			continue;
		if (c == 'a')
			opt->ip = optarg;
		else if (c == 'c')
			opt->control = optarg;
		else if (c == 'H')
			opt->host = optarg;
		else if (c == 'p')
			opt->prov = optarg;
		else if (c == 'q')
			opt->quiet = 1;
		else
			return usage();
	}
	if (optind != argc || opt->rank < 0 || opt->rank >= opt->nranks ||
	    !opt->ip || !opt->control || !opt->host)
		return usage();
	return 0;
}

/* The data that ranks exchange at the start. */
struct card {
	struct demo_name name;
	char host[DEMO_HOST_BYTES];
};

static int meet(struct demo *d)
{
	int n = d->opt.nranks, i, ret;
	struct card mine, *cards = demo_alloc((size_t)n * sizeof(*cards));
	struct demo_name *names = demo_alloc((size_t)n * sizeof(*names));

	memset(&mine, 0, sizeof(mine));
	snprintf(mine.host, sizeof(mine.host), "%s", d->opt.host);
	ret = demo_fab_name(&d->fab, &mine.name);
	if (ret)
		ret = demo_fatal(d, "%s", d->fab.error);
	else
		ret = demo_exchange(d, &mine, sizeof(mine), cards);
	for (i = 0; i < n && !ret; i++) {
		memcpy(d->hosts[i], cards[i].host, DEMO_HOST_BYTES);
		d->hosts[i][DEMO_HOST_BYTES - 1] = 0;
		names[i] = cards[i].name;
	}
	if (!ret && demo_fab_insert(&d->fab, names, n))
		ret = demo_fatal(d, "%s", d->fab.error);
	free(cards);
	free(names);
	return ret ? ret : demo_barrier(d);
}

static int finish(struct demo *d)
{
	size_t len = demo_row_bytes(d->opt.nranks);
	struct demo_row *rows = demo_alloc(len * (size_t)d->opt.nranks);
	int ret;

	demo_table_ask(d);
	ret = demo_exchange(d, d->row, len, rows);
	if (!ret) {
		d->judged = 1;
		ret = demo_table_finish(d, rows);
	}
	free(rows);
	return ret;
}

static int run(struct demo *d)
{
	d->ctl = demo_ctl_open(d->opt.rank, d->opt.nranks, d->opt.control,
			       BOOT_MS);
	if (!d->ctl)
		return -1;
	if (demo_fab_open(&d->fab, d->opt.prov, d->opt.ip))
		return demo_fatal(d, "provider %s: %s", d->opt.prov,
				  d->fab.error);
	if (meet(d) || demo_traffic_run(d) || demo_measure_run(d))
		return -1;
	return finish(d);
}

int main(int argc, char **argv)
{
	struct demo d;
	int ret;

	memset(&d, 0, sizeof(d));
	if (parse(&d.opt, argc, argv))
		return 2;
	d.row = demo_alloc(demo_row_bytes(d.opt.nranks));
	d.hosts = demo_alloc((size_t)d.opt.nranks * sizeof(*d.hosts));
	ret = run(&d);
	/* A job that broke off has buffers in use: they are left to exit. */
	if (d.judged)
		demo_fab_close(&d.fab);
	demo_ctl_close(d.ctl);
	free(d.hosts);
	free(d.row);
	return ret ? 1 : 0;
}
