/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See plan.h.
 */
#include "bench/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/limit.h"

#define SHM BENCH_TIER_SHM
#define TCP BENCH_TIER_TCP

/* Open MPI's own transports; tandem below it, and UCX. */
#define OB1 "OMPI_MCA_pml=ob1"
#define OVER_TANDEM                                                            \
	"OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi",                                 \
		"OMPI_MCA_mtl_ofi_provider_include=tandem"
#define UCX "OMPI_MCA_pml=ucx", "OMPI_MCA_pml_ucx_tls=any"

const struct bench_entrant bench_entrants[] = {
	{ "tandem", SHM, "tandem", { "FI_TANDEM_SHM=auto" }, 0, 0 },
	{ "tandem-nocma", SHM, "tandem", { "FI_TANDEM_CMA=no" }, 0, 1 },
	{ "tandem-safe", SHM, "tandem", { "BENCH_SAFE=1" }, 0, 1 },
	{ "tandem-tcp", TCP, "tandem", { "FI_TANDEM_SHM=off" }, 0, 0 },
	{ "shm", SHM, "shm", { NULL }, 1, 0 },
	/* Its one-sided operations do not complete, and stop the rest. */
	{ "lnx",
	  SHM,
	  "lnx",
	  { "FI_LNX_PROV_LINKS=shm+tcp", "FI_TCP_IFACE=lo", "BENCH_TAGGED=1" },
	  1,
	  1 },
	{ "shm-nocma", SHM, "shm", { "FI_SHM_DISABLE_CMA=1" }, 1, 1 },
	{ "ompi-sm", SHM, NULL, { OB1, "OMPI_MCA_btl=self,sm" }, 1, 0 },
	{ "ucx-sm", SHM, NULL, { UCX, "UCX_TLS=self,posix,cma" }, 1, 0 },
	{ "ompi-tandem", SHM, NULL, { OVER_TANDEM }, 0, 1 },
	{ "ompi-tandem-tcp",
	  TCP,
	  NULL,
	  { OVER_TANDEM, "FI_TANDEM_SHM=off" },
	  0,
	  1 },
	{ "tcp", TCP, "tcp", { "FI_TCP_IFACE=lo" }, 1, 0 },
	{ "rxm", TCP, "tcp;ofi_rxm", { "FI_TCP_IFACE=lo" }, 1, 0 },
	{ "ompi-tcp",
	  TCP,
	  NULL,
	  { OB1, "OMPI_MCA_btl=self,tcp", "OMPI_MCA_btl_tcp_if_include=lo" },
	  1,
	  1 },
	{ "ucx-tcp",
	  TCP,
	  NULL,
	  { UCX, "UCX_TLS=self,tcp", "UCX_NET_DEVICES=lo" },
	  1,
	  1 },
	{ "tandem",
	  BENCH_TIER_SHM_SLEEP,
	  "tandem",
	  { "FI_TANDEM_SHM=auto", "BENCH_SLEEPS=1" },
	  0,
	  0 },
	{ "tandem-fd",
	  BENCH_TIER_SHM_SLEEP,
	  "tandem",
	  { "FI_TANDEM_SHM=auto", "BENCH_SLEEPS=fd" },
	  0,
	  0 },
	{ "tandem-cond",
	  BENCH_TIER_SHM_SLEEP,
	  "tandem",
	  { "FI_TANDEM_SHM=auto", "BENCH_SLEEPS=cond" },
	  0,
	  0 },
	{ "tandem-yield",
	  BENCH_TIER_SHM_SLEEP,
	  "tandem",
	  { "FI_TANDEM_SHM=auto", "BENCH_SLEEPS=yield" },
	  0,
	  0 },
	{ "tandem-tcp",
	  BENCH_TIER_TCP_SLEEP,
	  "tandem",
	  { "FI_TANDEM_SHM=off", "BENCH_SLEEPS=1" },
	  0,
	  0 },
	{ "tandem-tcp-cond",
	  BENCH_TIER_TCP_SLEEP,
	  "tandem",
	  { "FI_TANDEM_SHM=off", "BENCH_SLEEPS=cond" },
	  0,
	  0 },
	{ "tcp",
	  BENCH_TIER_TCP_SLEEP,
	  "tcp",
	  { "FI_TCP_IFACE=lo", "BENCH_SLEEPS=1" },
	  1,
	  0 },
	{ "rxm",
	  BENCH_TIER_TCP_SLEEP,
	  "tcp;ofi_rxm",
	  { "FI_TCP_IFACE=lo", "BENCH_SLEEPS=1" },
	  1,
	  0 },
};
const size_t bench_entrants_count =
	sizeof(bench_entrants) / sizeof(*bench_entrants);

/* ---- rows ---------------------------------------------------------------- */

struct list {
	struct bench_row *rows;
	size_t count, room;
	const char *part;
	int quick;
};

/* How many operations fill about a third of a millisecond. */
static uint32_t batch(uint64_t bytes)
{
	uint64_t n = (1u << 21) / (bytes + 32768);

	return n < 2 ? 2 : (uint32_t)n;
}

static const char *size_text(char *text, size_t room, uint64_t n)
{
	if (n >= 1u << 20 && !(n % (1u << 20)))
		snprintf(text, room, "%lluM", (unsigned long long)n >> 20);
	else if (n >= 1u << 10 && !(n % (1u << 10)))
		snprintf(text, room, "%lluK", (unsigned long long)n >> 10);
	else
		snprintf(text, room, "%llu", (unsigned long long)n);
	return text;
}

const char *bench_tier_name(enum bench_tier tier)
{
	return tier == SHM || tier == BENCH_TIER_SHM_SLEEP ? "shm" : "tcp";
}

void bench_row_label(char *text, size_t room, const struct bench_row *row)
{
	char size[32], window[32] = "";

	if (row->order.window > 1)
		snprintf(window, sizeof(window), " w%u", row->order.window);
	if (row->order.pairs)
		snprintf(window, sizeof(window), " x%u", row->order.pairs);
	snprintf(text, room, "%s %s %s%s", bench_tier_name(row->tier),
		 row->group, size_text(size, sizeof(size), row->order.bytes),
		 window);
}

static void add(struct list *l, const struct bench_row *row)
{
	char label[128];

	bench_row_label(label, sizeof(label), row);
	if (l->part && !strstr(label, l->part))
		return;
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->rows = realloc(l->rows, l->room * sizeof(*l->rows));
	}
	l->rows[l->count++] = *row;
}

static void half_round_trip(struct list *l, enum bench_tier tier,
			    enum bench_kind kind, const char *group,
			    uint64_t bytes)
{
	struct bench_row row = {
		.group = group,
		.tier = tier,
		.order = { .kind = kind,
			   .bytes = bytes,
			   .window = 1,
			   .count = batch(bytes),
			   .lcount = batch(bytes) },
	};

	if (tier == TCP)
		row.order.limit = BENCH_LIMIT_TCP;
	else if (bytes <= 64)
		row.order.limit = BENCH_LIMIT_LINE;
	else
		row.order.limit = bytes <= 8192 ? BENCH_LIMIT_COPY :
						  BENCH_LIMIT_LARGE;
	add(l, &row);
}

/* Rows of @window operations at a time, in batches of @n or more. */
static void batches(struct list *l, enum bench_tier tier, enum bench_kind kind,
		    const char *group, uint64_t bytes, uint32_t window,
		    uint32_t n)
{
	struct bench_row row = {
		.group = group,
		.tier = tier,
		.order = { .kind = kind,
			   .limit = tier == TCP	 ? BENCH_LIMIT_TCP_STREAM :
				    bytes > 8192 ? BENCH_LIMIT_LARGE :
						   BENCH_LIMIT_LINE,
			   .bytes = bytes,
			   .window = window,
			   .count = n < window ? window : n / window * window,
			   .lcount = batch(bytes) },
	};
	unsigned together = tier == TCP ? bench_limit_together(bytes) : 1;

	row.order.lcount =
		(row.order.lcount + together - 1) / together * together;
	add(l, &row);
}

static void windowed(struct list *l, enum bench_tier tier, enum bench_kind kind,
		     const char *group, uint64_t bytes, uint32_t window)
{
	batches(l, tier, kind, group, bytes, window, batch(bytes) * 4);
}

static void sizes(struct list *l, enum bench_tier tier)
{
	uint64_t bytes;

	half_round_trip(l, tier, BENCH_LATENCY, "half-rtt", 8);
	for (bytes = 64; bytes <= 4u << 20; bytes *= l->quick ? 4 : 2)
		half_round_trip(l, tier, BENCH_LATENCY, "half-rtt", bytes);
	half_round_trip(l, tier, BENCH_LATE, "late", 8);
	for (bytes = 4096; bytes <= 4u << 20; bytes *= l->quick ? 8 : 4)
		half_round_trip(l, tier, BENCH_LATE, "late", bytes);
}

static void rates(struct list *l, enum bench_tier tier)
{
	uint32_t w;

	for (w = 1; w <= 1024; w *= l->quick ? 8 : 2) {
		windowed(l, tier, BENCH_RATE, "rate", 8, w);
		windowed(l, tier, BENCH_INJECT, "inject", 8, w);
	}
}

static void multi_receives(struct list *l, enum bench_tier tier)
{
	uint32_t w;

	for (w = l->quick ? 64 : 1; w <= 1024; w *= l->quick ? 8 : 4)
		windowed(l, tier, BENCH_MULTI, "multi-recv", 8, w);
}

static void streams(struct list *l, enum bench_tier tier)
{
	uint64_t bytes;

	for (bytes = 4096; bytes <= 64u << 20; bytes *= l->quick ? 8 : 2) {
		windowed(l, tier, BENCH_STREAM, "stream", bytes, 8);
		if (bytes > 4u << 20)
			continue;
		windowed(l, tier, BENCH_STREAM_LATE, "stream-late", bytes, 8);
		windowed(l, tier, BENCH_STREAM_FRESH, "stream-fresh", bytes, 8);
		if (l->quick)
			continue;
		windowed(l, tier, BENCH_STREAM, "stream", bytes, 1);
		windowed(l, tier, BENCH_STREAM, "stream", bytes, 64);
	}
}

static void one_sided(struct list *l, enum bench_tier tier)
{
	uint64_t bytes;

	for (bytes = 8; bytes <= 4u << 20; bytes *= 8) {
		windowed(l, tier, BENCH_WRITE, "write", bytes, 1);
		windowed(l, tier, BENCH_READ, "read", bytes, 1);
		windowed(l, tier, BENCH_WRITE, "write", bytes, 16);
		windowed(l, tier, BENCH_READ, "read", bytes, 16);
	}
	for (bytes = 8; bytes <= 4u << 20; bytes *= l->quick ? 4096 : 8) {
		windowed(l, tier, BENCH_WRITE_PLACED, "write-placed", bytes, 1);
		windowed(l, tier, BENCH_WRITE_PLACED, "write-placed", bytes,
			 16);
		half_round_trip(l, tier, BENCH_WRITE_DATA, "write-data", bytes);
	}
	windowed(l, tier, BENCH_FETCH_ADD, "fetch-add", 8, 1);
	windowed(l, tier, BENCH_FETCH_ADD, "fetch-add", 8, 16);
}

/*
 * A batch is several queues where they are short: to prepare one takes longer
 * than what is measured.
 */
enum { QUEUES = 16, QUEUED = 1024 };

static void matching(struct list *l, enum bench_tier tier)
{
	uint32_t depth, n;

	for (depth = 1; depth <= 8192; depth *= 8) {
		n = depth * QUEUES < QUEUED ? depth * QUEUES : QUEUED;
		batches(l, tier, BENCH_MATCH, "match", 8, depth, n);
		batches(l, tier, BENCH_UNEXPECTED, "unexpected", 8, depth, n);
	}
}

/* A row of @order, one operation at a time. */
static void single(struct list *l, enum bench_tier tier, const char *group,
		   struct bench_order order)
{
	struct bench_row row = { .group = group, .tier = tier, .order = order };

	row.order.window = 1;
	add(l, &row);
}

static void contacts(struct list *l, enum bench_tier tier)
{
	struct bench_order order = { .kind = BENCH_START,
				     .limit = BENCH_LIMIT_OPEN,
				     .count = 1,
				     .lcount = 8,
				     .batches = 4 };
	uint32_t n;

	single(l, tier, "start-up", order);
	order.kind = BENCH_FIRST;
	order.limit = BENCH_LIMIT_CONNECT;
	for (n = 1; n <= (l->quick ? 1 : 16); n *= 4) {
		order.bytes = order.count = n;
		single(l, tier, "first", order);
	}
}

static void idle_peers(struct list *l, enum bench_tier tier)
{
	static const uint16_t peers[] = { 0, 1, 10, 100, 250, 1000 };
	struct bench_order order = { .kind = BENCH_IDLE,
				     .limit = BENCH_LIMIT_CALL,
				     .count = 1000,
				     .lcount = 100 };
	size_t i;

	for (i = 0; i < sizeof(peers) / sizeof(*peers); i++) {
		order.bytes = peers[i];
		if (!l->quick || !peers[i] || peers[i] == 10)
			single(l, tier, "idle", order);
	}
}

/* Pairs of ranks on the same two cores. */
static void ranks(struct list *l, enum bench_tier tier)
{
	struct bench_order order = { .kind = BENCH_LATENCY,
				     .limit = tier == TCP ? BENCH_LIMIT_WAKE :
							    BENCH_LIMIT_YIELD,
				     .bytes = 8,
				     .count = 32,
				     .lcount = 32,
				     .batches = BENCH_BATCHES - 2 };
	uint32_t n;

	for (n = l->quick ? 4 : 2; n <= (l->quick ? 4 : BENCH_PAIRS_MOST);
	     n *= 2) {
		order.pairs = n;
		single(l, tier, "ranks", order);
	}
}

static void others(struct list *l, enum bench_tier tier)
{
	single(l, tier, "empty",
	       (struct bench_order){ .kind = BENCH_EMPTY,
				     .limit = BENCH_LIMIT_CALL,
				     .count = 1000,
				     .lcount = 100 });
	single(l, tier == SHM ? BENCH_TIER_SHM_SLEEP : BENCH_TIER_TCP_SLEEP,
	       "wake",
	       (struct bench_order){ .kind = BENCH_WAKE,
				     .limit = BENCH_LIMIT_WAKE,
				     .bytes = 8,
				     .count = 32,
				     .lcount = 32 });
}

size_t bench_plan(struct bench_row **rows, const char *part, int quick)
{
	struct list l = { .part = part, .quick = quick };
	const enum bench_tier tiers[] = { SHM, TCP };
	size_t i;

	for (i = 0; i < 2; i++) {
		sizes(&l, tiers[i]);
		rates(&l, tiers[i]);
		multi_receives(&l, tiers[i]);
		streams(&l, tiers[i]);
		one_sided(&l, tiers[i]);
		matching(&l, tiers[i]);
		contacts(&l, tiers[i]);
		idle_peers(&l, tiers[i]);
		ranks(&l, tiers[i]);
		others(&l, tiers[i]);
	}
	*rows = l.rows;
	return l.count;
}
