/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Works of a known number of operations, for .ci/counts.sh, which runs them
 * under valgrind and counts instructions and system calls; and the memory of
 * objects, which the program prints itself. One process has both endpoints, so
 * that each count is the same in each run.
 *
 * usage: tandem_count WORK N [domain]
 *
 * WORK is one of works[] below; "domain" asks for FI_THREAD_DOMAIN instead of
 * FI_THREAD_SAFE. The path is that of FI_TANDEM_SHM.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

enum { KEY = 7, BYTES = 8, LARGE = 65536 };

struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to; /* the other side */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct side side[2];
static struct fid_mr *mr;
static char out[LARGE], in[LARGE];

static ssize_t check(const char *what, ssize_t ret)
{
	if (ret < 0) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
		exit(1);
	}
	return ret;
}

static void open_side(struct side *s)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };

	check("fi_domain", fi_domain(fabric, info, &s->domain, NULL));
	check("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	check("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
}

static struct fid_ep *open_ep(struct side *s)
{
	struct fid_ep *ep;

	check("fi_endpoint", fi_endpoint(s->domain, info, &ep, NULL));
	check("fi_ep_bind", fi_ep_bind(ep, &s->av->fid, 0));
	check("fi_ep_bind", fi_ep_bind(ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_enable", fi_enable(ep));
	return ep;
}

struct name {
	char bytes[64];
	size_t len;
};

static struct name name_of(struct fid_ep *ep)
{
	struct name name = { .len = sizeof(name.bytes) };

	check("fi_getname", fi_getname(&ep->fid, name.bytes, &name.len));
	return name;
}

static fi_addr_t insert(struct side *at, struct name name)
{
	fi_addr_t addr;

	if (fi_av_insert(at->av, name.bytes, 1, &addr, 0, NULL) != 1)
		check("fi_av_insert", -FI_EINVAL);
	return addr;
}

static void open_all(int threading)
{
	struct fi_info *hints = fi_allocinfo();
	int i;

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = threading;
	hints->fabric_attr->prov_name = strdup("tandem");
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 21), "127.0.0.1", NULL,
				       FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	for (i = 0; i < 2; i++) {
		open_side(&side[i]);
		side[i].ep = open_ep(&side[i]);
	}
	for (i = 0; i < 2; i++)
		side[i].to = insert(&side[i], name_of(side[!i].ep));
	check("fi_mr_reg", fi_mr_reg(side[1].domain, in, sizeof(in),
				     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
				     0, &mr, NULL));
}

/* ---- works ---------------------------------------------------------------- */

/* A completion at @i; the other side makes progress meanwhile. */
static void wait_at(int i)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(side[i].cq, &e, 1)) == -FI_EAGAIN)
		fi_cq_read(side[!i].cq, NULL, 0);
	check("fi_cq_read", ret);
}

/* Repeat @call while the other side has to make progress for it. */
#define KEEP_ON(i, call)                                                       \
	do {                                                                   \
		ssize_t ret_;                                                  \
                                                                               \
		while ((ret_ = (call)) == -FI_EAGAIN)                          \
			fi_cq_read(side[!(i)].cq, NULL, 0);                    \
		check(#call, ret_);                                            \
	} while (0)

static void post_one(struct fid_ep *ep, size_t len)
{
	check("fi_trecv",
	      fi_trecv(ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
}

/* Side @i sends by @ep, one of its own. */
static void send_one(int i, struct fid_ep *ep, fi_addr_t to, size_t len)
{
	KEEP_ON(i, fi_tsend(ep, out, len, NULL, to, 1, NULL));
}

static void one_message(int i, size_t len)
{
	post_one(side[!i].ep, len);
	send_one(i, side[i].ep, side[i].to, len);
	wait_at(!i);
	wait_at(i);
}

/* A message there, a message back: N is the number of both. */
static void message(long n)
{
	while (n--)
		one_message(n & 1, BYTES);
}

/* As message(), by the call that carries remote CQ data and has no completion. */
static void inject_data(long n)
{
	for (; n; n--) {
		int i = n & 1;

		post_one(side[!i].ep, BYTES);
		KEEP_ON(i, fi_tinjectdata(side[i].ep, out, BYTES, KEY,
					  side[i].to, 1));
		wait_at(!i);
	}
}

static void large(long n)
{
	while (n--)
		one_message(n & 1, LARGE);
}

static void unexpected(long n)
{
	while (n--) {
		int i = n & 1;

		send_one(i, side[i].ep, side[i].to, BYTES);
		wait_at(i);
		fi_cq_read(side[!i].cq, NULL, 0);
		post_one(side[!i].ep, BYTES);
		wait_at(!i);
	}
}

/* N is a multiple of 64: so many wait together. */
static void rate(long n)
{
	int i;

	for (; n > 0; n -= 64) {
		for (i = 0; i < 64; i++)
			post_one(side[1].ep, BYTES);
		for (i = 0; i < 64; i++)
			send_one(0, side[0].ep, side[0].to, BYTES);
		for (i = 0; i < 64; i++) {
			wait_at(1);
			wait_at(0);
		}
	}
}

static void write_(long n)
{
	while (n--) {
		KEEP_ON(0, fi_write(side[0].ep, out, BYTES, NULL, side[0].to, 0,
				    KEY, NULL));
		wait_at(0);
	}
}

static void read_(long n)
{
	while (n--) {
		KEEP_ON(0, fi_read(side[0].ep, out, BYTES, NULL, side[0].to, 0,
				   KEY, NULL));
		wait_at(0);
	}
}

static void empty(long n)
{
	struct fi_cq_tagged_entry e;

	one_message(0, BYTES);
	while (n--)
		fi_cq_read(side[0].cq, &e, 1);
}

static void post(long n)
{
	while (n--)
		post_one(side[0].ep, BYTES);
}

/* ---- memory ---------------------------------------------------------------- */

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void show(size_t before, long n)
{
	printf("%.1f\n", ((double)heap() - (double)before) / (double)n);
}

static void mem_post(long n)
{
	size_t before = heap();

	post(n);
	show(before, n);
}

static void mem_address(long n)
{
	size_t before = heap();
	char text[64];
	long i;

	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "10.%ld.%ld.%ld", i >> 16 & 255,
			 i >> 8 & 255, i & 255);
		if (fi_av_insertsvc(side[0].av, text, "4711", NULL, 0, NULL) !=
		    1)
			check("fi_av_insertsvc", -FI_EINVAL);
	}
	show(before, n);
}

static void mem_endpoint(long n)
{
	size_t before = heap();
	long i;

	for (i = 0; i < n; i++)
		open_ep(&side[0]);
	show(before, n);
}

/* ---- idle peers, in a process of their own --------------------------------- */

static int to_child[2], to_parent[2];

static void say(int fd, const void *buf, size_t len)
{
	if (write(fd, buf, len) != (ssize_t)len)
		exit(1);
}

static void hear(int fd, void *buf, size_t len)
{
	if (read(fd, buf, len) != (ssize_t)len)
		exit(1);
}

/*
 * The process of the peers: @n endpoints of side 0 that send a message and get
 * one each.
 */
static void be_peers(long n)
{
	struct name name;
	fi_addr_t to;

	hear(to_child[0], &name, sizeof(name));
	to = insert(&side[0], name);
	while (n--) {
		struct fid_ep *ep = open_ep(&side[0]);

		name = name_of(ep);
		say(to_parent[1], &name, sizeof(name));
		post_one(ep, BYTES);
		send_one(0, ep, to, BYTES);
		wait_at(0);
		wait_at(0);
	}
	while (read(to_child[0], in, 1) > 0)
		;
}

/* Shared memory that this process has mapped, bytes. */
static size_t mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	size_t sum = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		char *end;
		size_t from = strtoul(line, &end, 16);

		if (strstr(line, "memfd:"))
			sum += strtoul(end + 1, NULL, 16) - from;
	}
	if (maps)
		fclose(maps);
	return sum;
}

/* Memory for each of @n peers that were talked to and are idle, address too. */
static void mem_peer(long n)
{
	struct name name = name_of(side[0].ep);
	size_t before = 0, map = 0;
	long i;

	say(to_child[1], &name, sizeof(name));
	for (i = 0; i < n; i++) {
		/* The first peer pays for what serves all of them. */
		if (i == 1) {
			before = heap();
			map = mapped();
		}
		hear(to_parent[0], &name, sizeof(name));
		post_one(side[0].ep, BYTES);
		wait_at(0);
		send_one(0, side[0].ep, insert(&side[0], name), BYTES);
		wait_at(0);
	}
	for (i = 0; i < 1000; i++)
		fi_cq_read(side[0].cq, NULL, 0);
	show(before, n - 1);
	printf("%.1f\n", ((double)mapped() - (double)map) / (double)(n - 1));
}

static const struct {
	const char *name;
	void (*run)(long n);
} works[] = {
	{ "message", message },
	{ "inject-data", inject_data },
	{ "large", large },
	{ "unexpected", unexpected },
	{ "rate", rate },
	{ "write", write_ },
	{ "read", read_ },
	{ "empty", empty },
	{ "post", post },
	{ "mem-post", mem_post },
	{ "mem-address", mem_address },
	{ "mem-endpoint", mem_endpoint },
	{ "mem-peer", mem_peer },
};

static void *end_at_once(void *arg)
{
	return arg;
}

/* The C library locks for real from the second thread on. */
static void be_threaded(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, end_at_once, NULL))
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 3)
		return 2;
	be_threaded();
	if (!strcmp(argv[1], "mem-peer")) {
		if (pipe(to_child) || pipe(to_parent))
			return 1;
		if (!fork()) {
			close(to_child[1]);
			open_all(FI_THREAD_SAFE);
			be_peers(atol(argv[2]));
			_exit(0);
		}
		close(to_child[0]);
	}
	open_all(argc > 3 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE);
	for (i = 0; i < sizeof(works) / sizeof(*works); i++) {
		if (!strcmp(argv[1], works[i].name)) {
			works[i].run(atol(argv[2]));
			return 0;
		}
	}
	return 2;
}
