/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tandem_av: what addresses cost. Inserts, lookups and reverse lookups of 10^5
 * and of 10^6 IPv4 addresses, as ratios to a plain copy of the same bytes that
 * is measured in alternation with them, and the memory of an address. The
 * provider tcp inserts the same addresses in the same rounds.
 *
 * The reverse lookup has no call in libfabric: it is measured on the table
 * inside (av/table.h). Everything else goes through libfabric.
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "av/table.h"

enum { MOST_ROUNDS = 64 };

/* A provider's domain, or nothing when there is no such provider. */
struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

enum what { COPY, INSERT, LOOKUP, REVERSE, TCP_INSERT, WHATS };

struct run {
	size_t n;
	int rounds;
	struct sockaddr_in *addr; /* addr[n] */
	struct sockaddr_in *copy;
	fi_addr_t *out;
	double ns[WHATS][MOST_ROUNDS]; /* per address */
	double bytes;		       /* of memory, per address */
};

static void check(const char *what, ssize_t ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "tandem_av: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static double now_ns(void)
{
	struct timespec ts;

	/* Nothing here waits: the processor time of other programs is not ours. */
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int side_open(struct side *s, const char *prov)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		check("fi_allocinfo", -FI_ENOMEM);
	hints->fabric_attr->prov_name = strdup(prov);
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	ret = fi_getinfo(FI_VERSION(2, 1), "127.0.0.1", NULL, FI_SOURCE, hints,
			 &s->info);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	check("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	check("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	return 0;
}

static void side_close(struct side *s)
{
	if (!s->info)
		return;
	fi_close(&s->domain->fid);
	fi_close(&s->fabric->fid);
	fi_freeinfo(s->info);
}

static struct fid_av *insert(const struct side *s, struct run *r, double *ns)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = r->n };
	struct fid_av *av;
	double start;
	int ret;

	check("fi_av_open", fi_av_open(s->domain, &attr, &av, NULL));
	start = now_ns();
	ret = fi_av_insert(av, r->addr, r->n, r->out, 0, NULL);
	*ns = (now_ns() - start) / (double)r->n;
	if (ret != (int)r->n)
		check("fi_av_insert", ret < 0 ? ret : -FI_EOTHER);
	return av;
}

static double lookup(struct fid_av *av, const struct run *r)
{
	double start = now_ns();
	struct sockaddr_in sin;
	size_t len, i;

	for (i = 0; i < r->n; i++) {
		len = sizeof(sin);
		if (fi_av_lookup(av, i, &sin, &len) ||
		    sin.sin_addr.s_addr != r->addr[i].sin_addr.s_addr)
			check("fi_av_lookup", -FI_EOTHER);
	}
	return (now_ns() - start) / (double)r->n;
}

static double reverse(const struct tdm_table *t, const struct run *r)
{
	double start = now_ns();
	struct tdm_addr a;
	size_t i;

	memset(&a, 0, sizeof(a));
	for (i = 0; i < r->n; i++) {
		memcpy(&a, &r->addr[i], sizeof(r->addr[i]));
		if (tdm_table_find(t, &a) != i)
			check("tdm_table_find", -FI_EOTHER);
	}
	return (now_ns() - start) / (double)r->n;
}

static double copy(const struct run *r)
{
	double start = now_ns();

	memcpy(r->copy, r->addr, r->n * sizeof(*r->addr));
	/* Keep the compiler from removing the copy, whose result is unused. */
	__asm__ volatile("" : : "r"(r->copy) : "memory");
	return (now_ns() - start) / (double)r->n;
}

static void table_fill(struct tdm_table *t, const struct run *r)
{
	struct tdm_addr a;
	uint32_t index, low;
	size_t i;

	memset(&a, 0, sizeof(a));
	check("tdm_table_init", tdm_table_init(t, r->n));
	for (i = 0; i < r->n; i++) {
		memcpy(&a, &r->addr[i], sizeof(r->addr[i]));
		check("tdm_table_add",
		      tdm_table_add(t, &a, tdm_addr_hash(&a), &index, &low));
	}
}

static double memory(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd);
}

static void run(struct run *r, const struct side *own, const struct side *tcp)
{
	struct tdm_table t;
	struct fid_av *av;
	double before;
	size_t i;
	int k;

	r->addr = calloc(r->n, sizeof(*r->addr));
	r->copy = calloc(r->n, sizeof(*r->copy));
	r->out = calloc(r->n, sizeof(*r->out));
	if (!r->addr || !r->copy || !r->out)
		check("calloc", -FI_ENOMEM);
	for (i = 0; i < r->n; i++) {
		/* 64 processes on each node of 10/8. */
		r->addr[i].sin_family = AF_INET;
		r->addr[i].sin_port = htons((uint16_t)(5000 + i % 64));
		r->addr[i].sin_addr.s_addr =
			htonl(0x0a000001 + (uint32_t)(i / 64));
	}
	memset(r->copy, 1, r->n * sizeof(*r->copy));
	table_fill(&t, r);
	for (k = 0; k < r->rounds; k++) {
		r->ns[COPY][k] = copy(r);
		before = memory();
		av = insert(own, r, &r->ns[INSERT][k]);
		r->bytes = (memory() - before) / (double)r->n;
		r->ns[LOOKUP][k] = lookup(av, r);
		fi_close(&av->fid);
		r->ns[REVERSE][k] = reverse(&t, r);
		if (tcp->info) {
			av = insert(tcp, r, &r->ns[TCP_INSERT][k]);
			fi_close(&av->fid);
		}
	}
	tdm_table_fini(&t);
	free(r->addr);
	free(r->copy);
	free(r->out);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The first quartile: what the machine does when left alone. */
static double quartile(struct run *r, enum what w)
{
	qsort(r->ns[w], (size_t)r->rounds, sizeof(double), by_value);
	return r->ns[w][r->rounds / 4];
}

static double report(struct run *r, int have_tcp)
{
	static const char *const name[] = { "copy", "insert", "lookup",
					    "reverse lookup", "tcp insert" };
	double q[WHATS];
	int w;

	for (w = COPY; w < WHATS; w++)
		q[w] = quartile(r, (enum what)w);
	printf("%zu addresses, %d rounds\n", r->n, r->rounds);
	for (w = COPY; w < (have_tcp ? WHATS : TCP_INSERT); w++)
		printf("  %-15s %8.2f ns each %9.1f copies\n", name[w], q[w],
		       q[w] / q[COPY]);
	printf("  %-15s %8.1f bytes each\n", "memory", r->bytes);
	if (have_tcp)
		printf("  %-15s %8.1f times that of tcp\n", "insert rate",
		       q[TCP_INSERT] / q[INSERT]);
	return q[INSERT];
}

int main(void)
{
	static struct run small = { .n = 100000, .rounds = 15 };
	static struct run large = { .n = 1000000, .rounds = 5 };
	struct side own = { 0 }, tcp = { 0 };
	double few, many;

	check("fi_getinfo", side_open(&own, "tandem"));
	if (side_open(&tcp, "tcp"))
		tcp.info = NULL;
	run(&small, &own, &tcp);
	run(&large, &own, &tcp);
	few = report(&small, tcp.info != NULL);
	many = report(&large, tcp.info != NULL);
	printf("an insert among 10^6 costs %.2f times one among 10^5\n",
	       many / few);
	side_close(&tcp);
	side_close(&own);
	return 0;
}
