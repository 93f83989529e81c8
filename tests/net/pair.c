/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of two processes that exchange all kinds of operations and check them, by
 * libfabric's public interface alone:
 *
 *	pair SIDE ADDRESS SEED COUNT LARGEST SECONDS
 *
 * SIDE is 1 or 2; ADDRESS is its own. Standard output leads to standard input of
 * the other side: they tell each other the addresses of their endpoints, and that
 * they have finished. The seed, the same for both, decides what each of COUNT
 * operations of a side is, and of how many bytes, at most LARGEST:
 *
 *	a message, or a tagged message with one of two tags: three streams. A
 *	quarter of them ask for FI_DELIVERY_COMPLETE
 *	a write into the memory of the other side, which is read back
 *	a fetch-add of 1 to a word of the other side
 *
 * Receive N of a stream must get message N of that stream, whole. Each fetch-add
 * must get another number below their count, and the word must be that count in
 * the end. Receives are posted beyond the last message, to see one too many.
 *
 * Exit status: 0 when all of both sides has come and was right. 1: something was
 * wrong, an operation failed, or SECONDS were over; a line says what.
 * No lock: one thread.
 */
#include "tests/net/pair.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "tests/harness/seeded.h"

enum {
	WAIT_MS = 50, /* until the other side's lines are looked at again */
	NAME_BYTES = 64,
};

struct pair pair;

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

void pair_tell(const char *what)
{
	fprintf(stderr,
		"side %d: %s: sent %ju received %ju of %ju (%ju bytes), "
		"%ju writes read back, %ju fetch-adds\n",
		pair.side, what, (uintmax_t)pair.sent, (uintmax_t)pair.received,
		(uintmax_t)pair.to_come, (uintmax_t)pair.bytes,
		(uintmax_t)pair.read_back, (uintmax_t)pair.added);
}

void pair_die(const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pair_tell(text);
	exit(1);
}

void pair_need(ssize_t ret, const char *what)
{
	if (ret)
		pair_die("%s: %s", what, fi_strerror((int)-ret));
}

/* ---- what is to be done --------------------------------------------------- */

static size_t plan_len(uint64_t *chance)
{
	static const size_t below[] = {
		1, 128, 128, 2048, 2048, 16384, 131072, LARGEST_BYTES + 1
	};
	size_t most = below[tdt_seeded(chance, 8)];

	if (most > pair.largest + 1)
		most = pair.largest + 1;
	return (size_t)tdt_seeded(chance, most);
}

struct plan pair_plan(int side, uint64_t number)
{
	static const enum kind kinds[] = {
		MESSAGE,  MESSAGE,  MESSAGE,  MESSAGE,	MESSAGE,  TAGGED_1,
		TAGGED_1, TAGGED_1, TAGGED_1, TAGGED_2, TAGGED_2, TAGGED_2,
		WRITE,	  WRITE,    ADD,      ADD,
	};
	uint64_t chance = tdt_mix(pair.seed * 2 + (uint64_t)side) ^
			  tdt_mix(number + 1);
	struct plan plan;

	plan.kind = kinds[tdt_seeded(&chance, 16)];
	plan.delivery = tdt_seeded(&chance, 4) == 0;
	plan.len = plan_len(&chance);
	plan.key = tdt_seeded(&chance, UINT64_MAX);
	return plan;
}

/* Count what both sides have to do. */
static void plan_all(void)
{
	uint64_t i;

	for (i = 0; i < pair.count; i++) {
		pair.adds += pair_plan(pair.side, i).kind == ADD;
		pair.adds_here += pair_plan(3 - pair.side, i).kind == ADD;
		pair.to_come += pair_plan(3 - pair.side, i).kind < STREAMS;
	}
	pair.fetched = calloc(pair.adds + 1, 1);
	if (!pair.fetched)
		pair_die("no memory");
}

/* ---- the endpoint --------------------------------------------------------- */

static void open_endpoint(void)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED,
				    .size = 256,
				    .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *hints = fi_allocinfo();
	const char *step;
	int ret;

	if (!hints)
		pair_die("no memory");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
				      FI_MR_ALLOCATED | FI_MR_LOCAL;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup("tandem");
	ret = fi_getinfo(FI_VERSION(2, 1), pair.address, NULL, FI_SOURCE, hints,
			 &pair.at.info);
	pair_need(ret, "fi_getinfo");
	fi_freeinfo(hints);
	ret = tool_endpoint_open(&pair.at, &queue, &step);
	pair_need(ret, ret ? step : "");
}

/* One region has all buffers: those of operations, of receives, and the target. */
static void make_memory(void)
{
	size_t each = (pair.largest / 64 + 1) * 64, i, n = 0;
	size_t areas = 3 * SLOTS + STREAMS * RECEIVES;
	int ret;

	pair.m.bytes = areas * each + 4096;
	pair.m.base = aligned_alloc(4096, (pair.m.bytes / 4096 + 1) * 4096);
	if (!pair.m.base)
		pair_die("no memory");
	memset(pair.m.base, 0, pair.m.bytes);
	for (i = 0; i < SLOTS; i++) {
		pair.ops[i].buf = pair.m.base + each * n++;
		pair.ops[i].back = pair.m.base + each * n++;
		pair.ops[i].place = each * i;
	}
	for (i = 0; i < STREAMS * RECEIVES; i++)
		pair.receives[i / RECEIVES][i % RECEIVES].buf =
			pair.m.base + each * n++;
	pair.m.target = pair.m.base + each * n;
	pair.m.word = (uint64_t *)(void *)(pair.m.base + areas * each);
	pair.m.one = pair.m.word + 1;
	*pair.m.one = 1;
	ret = fi_mr_reg(pair.at.domain, pair.m.base, pair.m.bytes,
			FI_SEND | FI_RECV | FI_READ | FI_WRITE |
				FI_REMOTE_READ | FI_REMOTE_WRITE,
			0, (uint64_t)pair.side, 0, &pair.mr, NULL);
	pair_need(ret, "fi_mr_reg");
	pair.desc = fi_mr_desc(pair.mr);
}

/* ---- the other side's lines ----------------------------------------------- */

/* Is a line there, within @wait_ms? Out: *@line, of LINE_BYTES. */
static int hear(char *line, int wait_ms)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char *end = memchr(pair.in, '\n', pair.have);
	ssize_t n;

	if (!end && poll(&in, 1, wait_ms) > 0) {
		n = read(0, pair.in + pair.have, sizeof(pair.in) - pair.have);
		if (n <= 0)
			pair_die("the other side has ended");
		pair.have += (size_t)n;
		end = memchr(pair.in, '\n', pair.have);
	}
	if (!end)
		return 0;
	*end++ = '\0';
	memcpy(line, pair.in, (size_t)(end - pair.in));
	pair.have -= (size_t)(end - pair.in);
	memmove(pair.in, end, pair.have);
	return 1;
}

static void say_name(void)
{
	unsigned char name[NAME_BYTES];
	size_t len = sizeof(name), i;
	uint64_t base = 0;

	pair_need(fi_getname(&pair.at.ep->fid, name, &len), "fi_getname");
	if (pair.at.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		base = (uintptr_t)pair.m.base;
	for (i = 0; i < len; i++)
		printf("%02x", name[i]);
	printf(" %jx %jx\n", (uintmax_t)fi_mr_key(pair.mr), (uintmax_t)base);
	fflush(stdout);
}

/* The scope of a link-local address is the number of a device of this host. */
static void set_scope(unsigned char *name)
{
	const struct sockaddr_in6 *own = pair.at.info->src_addr;
	struct sockaddr_in6 in6;

	memcpy(&in6, name, sizeof(in6));
	if (in6.sin6_family != AF_INET6 ||
	    !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
		return;
	in6.sin6_scope_id = own->sin6_scope_id;
	memcpy(name, &in6, sizeof(in6));
}

static void hear_name(void)
{
	unsigned char name[NAME_BYTES] = { 0 };
	char line[LINE_BYTES], hex[2 * NAME_BYTES + 1];
	uintmax_t key, base;
	unsigned byte;
	size_t i;

	if (!hear(line, (int)(pair.deadline_s - now_s()) * 1000))
		pair_die("the other side said nothing");
	if (sscanf(line, "%128s %jx %jx", hex, &key, &base) != 3)
		pair_die("no address: %s", line);
	for (i = 0; sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		name[i] = (unsigned char)byte;
	pair.peer_key = key;
	pair.peer_base = base;
	set_scope(name);
	if (fi_av_insert(pair.at.av, name, 1, &pair.peer, 0, NULL) != 1)
		pair_die("fi_av_insert refuses the other side's address");
}

/* ---- the exchange -------------------------------------------------------- */

/* Until all of both sides has ended. */
static void exchange(void)
{
	char line[LINE_BYTES];
	int done = 0;

	while (!done || !pair.peer_done) {
		pair_post_receives();
		pair_post_operations();
		pair_look(WAIT_MS);
		if (!done && pair.ended == pair.count &&
		    pair.received == pair.to_come) {
			puts("done");
			fflush(stdout);
			done = 1;
		}
		if (!pair.peer_done && hear(line, 0))
			pair.peer_done = 1;
		if (now_s() > pair.deadline_s)
			pair_die("the time is over");
	}
	pair_look(0);
	if (*pair.m.word != pair.adds_here)
		pair_die("the word is %ju after %ju fetch-adds",
			 (uintmax_t)*pair.m.word, (uintmax_t)pair.adds_here);
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fputs("usage: pair SIDE ADDRESS SEED COUNT LARGEST SECONDS\n",
		      stderr);
		return 2;
	}
	pair.side = atoi(argv[1]);
	pair.address = argv[2];
	pair.seed = strtoull(argv[3], NULL, 10);
	pair.count = strtoull(argv[4], NULL, 10);
	pair.largest = strtoul(argv[5], NULL, 10);
	pair.deadline_s = now_s() + strtoull(argv[6], NULL, 10);
	if ((pair.side != 1 && pair.side != 2) || pair.count > COUNT_MOST ||
	    pair.largest < 8 || pair.largest > LARGEST_BYTES)
		pair_die("SIDE is 1 or 2, LARGEST 8 to 1048576");
	plan_all();
	open_endpoint();
	make_memory();
	say_name();
	hear_name();
	exchange();
	pair_tell("all right");
	fi_close(&pair.at.ep->fid);
	pair.at.ep = NULL;
	fi_close(&pair.mr->fid);
	tool_endpoint_close(&pair.at);
	free(pair.m.base);
	free(pair.fetched);
	return 0;
}
