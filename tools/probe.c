/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of tandem-doctor that calls libfabric:
 *
 *	probe entries              what fi_getinfo(3) offers of tandem
 *	probe listen [-f FACTS] [-k KEYFILE]
 *	probe ask [-f FACTS] [-k KEYFILE] [-t SECONDS] HOST PORT
 *
 * It prints lines "NAME<tab>VALUE..." and leaves conclusions to tandem-doctor.
 * FACTS is a text that the peer of an exchange gets as it is.
 *
 * Invariant: bytes of the peer are used as messages of a kind only after their
 * length was checked.
 * No lock: one thread.
 */
#include "tools/probe.h"

#include <inttypes.h>
#include <link.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

enum {
	ROUNDS = 5, /* the best one counts */
	ROUND_TRIPS = 100,
	LARGE_TRIPS = 3,
	VIEW_BYTES = 200,
	NO_ANSWER = 1, /* exit status */
	USAGE = 2,
};

static int tell_failure(const struct probe *p, const char *step, int ret)
{
	printf("failed\t%s\t%d\t%s\n", step, -ret, p->error);
	return NO_ANSWER;
}

/* ---- entries ------------------------------------------------------------- */

/* A callback of dl_iterate_phdr(3). */
static int tell_file(struct dl_phdr_info *file, size_t size, void *unused)
{
	const char *name = strrchr(file->dlpi_name, '/');

	if (name && strstr(name, "/libtandem-fi"))
		printf("module\t%s\n", file->dlpi_name);
	if (name && strstr(name, "/libfabric.so"))
		printf("library\t%s\n", file->dlpi_name);
	return 0;
}

static void tell_params(void)
{
	struct fi_param *list;
	int i, n;

	if (fi_getparams(&list, &n))
		return;
	for (i = 0; i < n; i++) {
		if (!strncmp(list[i].name, "FI_TANDEM_", 10))
			printf("parameter\t%s\n", list[i].name);
		if (!strcmp(list[i].name, "FI_PROVIDER_PATH"))
			printf("search\t%s\n", list[i].help_string);
	}
	fi_freeparams(list);
}

static void tell_entry(const struct fi_info *i)
{
	char ip[PROBE_ADDR_BYTES] = "?";

	getnameinfo(i->src_addr, (socklen_t)i->src_addrlen, ip, sizeof(ip),
		    NULL, 0, NI_NUMERICHOST);
	printf("entry\t%s\t%s\t%s\n", i->domain_attr->name, ip,
	       i->fabric_attr->name);
}

static int entries(void)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL, *i;
	uint32_t version = fi_version();
	int ret;

	if (!hints)
		return NO_ANSWER;
	hints->fabric_attr->prov_name = strdup("tandem");
	ret = fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	printf("libfabric\t%u.%u\n", FI_MAJOR(version), FI_MINOR(version));
	dl_iterate_phdr(tell_file, NULL);
	tell_params();
	if (ret) {
		printf("failed\tfi_getinfo\t%d\t%s\n", -ret, fi_strerror(-ret));
		return NO_ANSWER;
	}
	version = list->fabric_attr->prov_version;
	printf("release\t%u.%u\n", FI_MAJOR(version), FI_MINOR(version));
	for (i = list; i; i = i->next)
		tell_entry(i);
	fi_freeinfo(list);
	return 0;
}

/* ---- listen -------------------------------------------------------------- */

/* Write address and facts of this side to p->out. Returns their length. */
static size_t put_hello(struct probe *p, const char *facts)
{
	int n = snprintf((char *)p->out, PROBE_LARGE_BYTES, "%s%c%s", p->name,
			 '\0', facts);

	return (size_t)n + 1;
}

/*
 * Find the facts in the hello in p->in, which follow the address. Returns NULL
 * if it is none.
 */
static const char *hello_facts(const struct probe *p)
{
	const uint8_t *end;

	if (!p->rx.len || p->in[p->rx.len - 1])
		return NULL;
	end = memchr(p->in, 0, p->rx.len - 1);
	return end ? (const char *)end + 1 : NULL;
}

/* Prepare the answer to the request in p->in. Returns its length, 0: none. */
static size_t put_answer(struct probe *p, const char *facts, fi_addr_t *to)
{
	*to = p->rx.src;
	switch (p->rx.tag) {
	case PROBE_HELLO:
		if (!hello_facts(p) || fi_av_insertsvc(p->at.av, (char *)p->in,
						       NULL, to, 0, NULL) != 1)
			return 0;
		printf("asked\t%s\n", (char *)p->in);
		return put_hello(p, facts);
	case PROBE_ECHO:
		memcpy(p->out, p->in, p->rx.len);
		return p->rx.len;
	case PROBE_VIEW:
		probe_view(p, *to, (char *)p->out, VIEW_BYTES);
		return strlen((char *)p->out) + 1;
	default:
		return 0;
	}
}

/* Answers requests until the process is killed or the queue fails. */
static int listen_for(const struct probe_options *o)
{
	struct probe p;
	fi_addr_t to;
	size_t len;
	uint64_t tag;
	int ret = probe_open(&p, o);

	/* Not longer than tandem-doctor, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!ret) {
		ret = probe_receive(&p, 0);
		if (!ret)
			ret = probe_wait(&p, &p.rx, 0);
		len = ret ? 0 : put_answer(&p, o->facts, &to);
		tag = p.rx.tag | PROBE_ANSWER;
		if (!len || to == FI_ADDR_NOTAVAIL)
			continue;
		/* A peer that ends before its answer concerns that peer only. */
		if (!probe_send(&p, len, to, tag, 0))
			probe_wait(&p, &p.tx, 0);
		p.tx.err = 0;
	}
	ret = tell_failure(&p, "listen", ret);
	probe_close(&p);
	return ret;
}

/* ---- ask ----------------------------------------------------------------- */

/* Send the first @len bytes of p->out and wait for the answer. */
static int exchange(struct probe *p, fi_addr_t to, uint64_t kind, size_t len,
		    unsigned seconds)
{
	uint64_t deadline = probe_now_ns() + seconds * 1000000000ull;
	int ret = probe_receive(p, kind | PROBE_ANSWER);

	if (!ret)
		ret = probe_send(p, len, to, kind, deadline);
	if (!ret)
		ret = probe_wait(p, &p->rx, deadline);
	return ret ? ret : probe_wait(p, &p->tx, deadline);
}

/*
 * Measure round trips of @len bytes. Out: *@best_ns, the mean of the fastest
 * round.
 */
static int measure(struct probe *p, fi_addr_t to, size_t len, int trips,
		   unsigned seconds, double *best_ns)
{
	double ns;
	uint64_t start;
	int round, i, ret;

	*best_ns = 0;
	for (round = 0; round < ROUNDS; round++) {
		start = probe_now_ns();
		for (i = 0; i < trips; i++) {
			ret = exchange(p, to, PROBE_ECHO, len, seconds);
			if (ret)
				return ret;
		}
		ns = (double)(probe_now_ns() - start) / trips;
		if (!round || ns < *best_ns)
			*best_ns = ns;
	}
	return 0;
}

static int talk(struct probe *p, const struct probe_options *o, fi_addr_t to)
{
	const char *facts;
	double small, large;
	int ret = exchange(p, to, PROBE_HELLO, put_hello(p, o->facts),
			   o->seconds);

	if (ret)
		return tell_failure(p, "hello", ret);
	facts = hello_facts(p);
	if (facts)
		printf("facts\t%s\n", facts);
	ret = measure(p, to, 8, ROUND_TRIPS, o->seconds, &small);
	if (ret)
		return tell_failure(p, "small", ret);
	ret = measure(p, to, PROBE_LARGE_BYTES, LARGE_TRIPS, o->seconds,
		      &large);
	if (ret)
		return tell_failure(p, "large", ret);
	printf("speed\t%.2f\t%.0f\n", small / 2000,
	       PROBE_LARGE_BYTES / (large / 2) * 1000);
	ret = exchange(p, to, PROBE_VIEW, 0, o->seconds);
	if (ret)
		return tell_failure(p, "view", ret);
	p->in[p->rx.len ? p->rx.len - 1 : 0] = 0;
	printf("there\t%s\n", (char *)p->in);
	return 0;
}

static int ask(const struct probe_options *o)
{
	char view[VIEW_BYTES];
	struct probe p;
	fi_addr_t to;
	int ret = probe_open(&p, o);

	if (ret) {
		ret = tell_failure(&p, "open", ret);
	} else if (fi_av_insertsvc(p.at.av, o->host, o->service, &to, 0,
				   NULL) != 1) {
		snprintf(p.error, sizeof(p.error), "no such address");
		ret = tell_failure(&p, "insert", -FI_EADDRNOTAVAIL);
	} else {
		ret = talk(&p, o, to);
		probe_view(&p, to, view, sizeof(view));
		printf("here\t%s\n", view);
	}
	probe_close(&p);
	return ret;
}

/* ---- command line -------------------------------------------------------- */

int main(int argc, char **argv)
{
	struct probe_options o = { .facts = "", .seconds = 10 };
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "f:k:t:")) != -1) {
		switch (c) {
		case 'f':
			o.facts = optarg;
			break;
		case 'k':
			o.key_file = optarg;
			break;
		case 't':
			o.seconds = (unsigned)atoi(optarg);
			break;
		default:
			return USAGE;
		}
	}
	argc -= optind;
	argv += optind;
	if (argc == 1 && !strcmp(argv[0], "entries"))
		return entries();
	if (argc == 1 && !strcmp(argv[0], "listen"))
		return listen_for(&o);
	if (argc == 3 && !strcmp(argv[0], "ask")) {
		o.host = argv[1];
		o.service = argv[2];
		return ask(&o);
	}
	fprintf(stderr, "usage: probe entries | listen | ask HOST PORT\n");
	return USAGE;
}
