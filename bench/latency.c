/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Half round trip of a small tagged message as a multiple of what the machine
 * itself needs, in one noisy run.
 *
 *   tandem_latency shm|tcp [-s BYTES] [-n PAIRS] [-p PROVIDER] [-r CSV]
 *
 * The limit is the bounce of one cache line (shm) or of the same bytes over
 * a bare loopback socket (tcp). Limit and subject run in the same two pinned
 * processes, in alternating batches of 64 round trips; the 25th percentile of
 * each is compared, since a preempted batch is not a measurement. A machine
 * whose cores move apart and together is split into regimes by the limit; below
 * 35 ns both are threads of one core, which then share its execution units.
 *
 * FI_TANDEM_SHM is set to "only" or "off" to pin the path.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"

enum { BATCH = 64, WARM_UP = 32, MAX_PAIRS = 100000 };

struct options {
	int tcp;
	size_t size;
	int pairs;
	const char *prov;
	const char *csv;
};

/* Written by both sides; each word on two lines of its own. */
struct shared {
	volatile uint64_t ping;
	char pad1[120];
	volatile uint64_t pong;
	char pad2[120];
};

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* One batch of cache-line bounces. @n counts on over batches. */
static void line_batch(struct shared *s, int leader, uint64_t *n)
{
	int i;

	for (i = 0; i < BATCH; i++) {
		++*n;
		if (leader) {
			s->ping = *n;
			while (s->pong != *n)
				relax();
		} else {
			while (s->ping != *n)
				relax();
			s->pong = *n;
		}
	}
}

/* One batch of the limit: lines or bare TCP. */
static void limit_batch(const struct options *o, struct shared *s, int fd,
			int leader, uint64_t *n)
{
	if (o->tcp)
		bench_socket_batch(fd, o->size + BENCH_HEADER_BYTES, BATCH,
				   leader);
	else
		line_batch(s, leader, n);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double p25(const double *v, int n)
{
	double *copy = malloc((size_t)n * sizeof(*copy)), r;

	memcpy(copy, v, (size_t)n * sizeof(*copy));
	qsort(copy, (size_t)n, sizeof(*copy), compare);
	r = copy[n / 4];
	free(copy);
	return r;
}

/* Ratio over the pairs whose limit lies in [lo, hi). */
static void print_regime(const char *name, const double *limit,
			 const double *subject, int n, double lo, double hi)
{
	double *l = malloc((size_t)n * sizeof(*l));
	double *s = malloc((size_t)n * sizeof(*s));
	int i, k = 0;

	for (i = 0; i < n; i++) {
		if (limit[i] < lo || limit[i] >= hi)
			continue;
		l[k] = limit[i];
		s[k++] = subject[i];
	}
	if (k >= 100)
		printf("  %-8s %6d pairs  limit %8.1f ns  subject %8.1f ns  "
		       "ratio %.2f\n",
		       name, k, p25(l, k), p25(s, k), p25(s, k) / p25(l, k));
	free(l);
	free(s);
}

static void print_result(const struct options *o, const double *limit,
			 const double *subject, int n)
{
	FILE *csv = o->csv ? fopen(o->csv, "w") : NULL;
	int i;

	printf("%s, %s, %zu B tagged, half round trip\n", o->prov,
	       o->tcp ? "tcp" : "shared memory", o->size);
	print_regime("all", limit, subject, n, 0, 1e12);
	if (!o->tcp) {
		print_regime("threads", limit, subject, n, 0, 35);
		print_regime("fast", limit, subject, n, 35, 90);
		print_regime("middle", limit, subject, n, 90, 180);
		print_regime("slow", limit, subject, n, 180, 1e12);
	}
	if (!csv)
		return;
	fprintf(csv, "limit_ns,subject_ns\n");
	for (i = 0; i < n; i++)
		fprintf(csv, "%.1f,%.1f\n", limit[i], subject[i]);
	fclose(csv);
}

static void run(const struct options *o, struct shared *s, int fd,
		struct bench_ep *ep, int leader)
{
	double *limit = calloc((size_t)o->pairs, sizeof(*limit));
	double *subject = calloc((size_t)o->pairs, sizeof(*subject));
	uint64_t n = 0, t0, t1, t2;
	int i, k = 0;

	for (i = 0; i < o->pairs + WARM_UP; i++) {
		t0 = now_ns();
		limit_batch(o, s, fd, leader, &n);
		t1 = now_ns();
		bench_tagged_batch(ep, o->size, BATCH, leader);
		t2 = now_ns();
		if (i < WARM_UP)
			continue;
		limit[k] = (double)(t1 - t0) / BATCH / 2;
		subject[k++] = (double)(t2 - t1) / BATCH / 2;
	}
	if (leader)
		print_result(o, limit, subject, k);
	free(limit);
	free(subject);
}

static void usage(void)
{
	fprintf(stderr, "usage: tandem_latency shm|tcp [-s BYTES] [-n PAIRS] "
			"[-p PROVIDER] [-r CSV]\n");
	exit(2);
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	*o = (struct options){ .size = 8, .pairs = 1500, .prov = "tandem" };
	while ((c = getopt(argc, argv, "s:n:p:r:")) != -1) {
		if (c == 's')
			o->size = strtoul(optarg, NULL, 0);
		else if (c == 'n')
			o->pairs = atoi(optarg);
		else if (c == 'p')
			o->prov = optarg;
		else if (c == 'r')
			o->csv = optarg;
		else
			usage();
	}
	if (optind != argc - 1 || o->pairs < 100 || o->pairs > MAX_PAIRS)
		usage();
	o->tcp = !strcmp(argv[optind], "tcp");
	if (!o->tcp && strcmp(argv[optind], "shm"))
		usage();
}

int main(int argc, char **argv)
{
	int limit_fds[2], name_fds[2], leader, status = 0;
	struct options o;
	struct shared *s;
	struct bench_ep *ep;
	pid_t child;

	parse(argc, argv, &o);
	setenv("FI_TANDEM_SHM", o.tcp ? "off" : "only", 1);
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bench_socket_pair(limit_fds);
	bench_name_pair(name_fds);
	child = fork();
	leader = child > 0;
	if (!leader)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(!leader);
	ep = bench_open(o.prov, name_fds[!leader], o.size);
	run(&o, s, limit_fds[!leader], ep, leader);
	bench_close(ep);
	if (leader)
		waitpid(child, &status, 0);
	return status ? 1 : 0;
}
