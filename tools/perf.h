/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tandem-perf: what its files share. Both sides open one endpoint for each
 * pattern, as one line of the client says; then the client orders runs, each one
 * measure at one size, and times them. One thread.
 *
 *	client					server
 *	open PATTERN PROVIDER LARGEST WINDOW CHECK
 *						opened NAME KEY BASE
 *						absent WHY
 *	peer NAME KEY BASE
 *						ready
 *	run MEASURE BYTES WINDOW COUNT SERIAL
 *						ready
 *	  (messages or one-sided operations)
 *	verify SEED COUNT			(one-sided, with CHECK)
 *						right
 *	end
 *						done
 *	close
 *						closed
 */
#ifndef TANDEM_PERF_H
#define TANDEM_PERF_H

#include <stdint.h>
#include <stdio.h>

#include <rdma/fi_domain.h>

#include "tools/endpoint.h"
#include "tools/perf_control.h"

enum perf_pattern {
	PERF_MESSAGE,
	PERF_TAGGED,
	PERF_WRITE,
	PERF_READ,
	PERF_ATOMIC, /* fetch-add of 64 bits */
	PERF_PATTERNS
};

/* Bits of perf_options.measures. */
enum perf_measure {
	PERF_LATENCY = 1,
	PERF_RATE = 2,
	PERF_BANDWIDTH = 4,
	PERF_STREAM = PERF_RATE | PERF_BANDWIDTH, /* one run gives both */
};

enum {
	PERF_SIZES_MOST = 64,
	PERF_WINDOW_MOST = 4096,
	PERF_BYTES_MOST = 1 << 30,
	/* of a window whose data are checked, if it has more than one */
	PERF_CHECKED_BYTES = 1 << 26,
	PERF_NAME_BYTES = 512, /* an address of an endpoint */
	PERF_ATOMIC_BYTES = 8,
};

extern const char *const perf_pattern_names[PERF_PATTERNS];

#define PERF_PORT "47593" /* where the two sides meet */

/* The options of the command line. */
struct perf_options {
	const char *host; /* NULL: this is the server */
	const char *port;
	const char *provider; /* NULL: the default, or the client's */
	const char *domain;   /* of fi_getinfo(3), or NULL */
	const char *address;  /* source address, or NULL */
	unsigned patterns;    /* bits 1 << enum perf_pattern */
	int patterns_are_all; /* "all": those that there are */
	unsigned measures;
	uint64_t size[PERF_SIZES_MOST];
	size_t sizes;
	unsigned window;
	uint64_t iterations; /* 0: as many as @seconds takes */
	double seconds;	     /* for each measure and size */
	unsigned timeout_s;  /* without any answer */
	int check, csv, keep;
	const char *plot; /* file, or NULL */
};

/* The pattern that is open, as both sides know it. */
struct perf_job {
	enum perf_pattern pattern;
	char provider[128];
	uint64_t largest; /* bytes */
	unsigned window;
	int check;
};

/* An operation. Its address tells which one has ended. */
struct perf_op {
	struct fi_context2 ctx; /* first */
	unsigned char *buf;	/* to check when it has ended */
	uint64_t len, seed;	/* 0: is not checked */
};

struct perf {
	const struct perf_options *o;
	struct perf_control c;
	struct perf_job job;
	struct tool_endpoint at;
	struct fid_mr *mr;
	void *desc;
	fi_addr_t peer;
	uint64_t base, key;	/* of the peer's @rx */
	unsigned char *tx, *rx; /* of each run: @slots of @stride bytes */
	size_t area_bytes;	/* of each of them */
	size_t stride;
	unsigned slots; /* 1 without a check: all use the same memory */
	struct perf_op *sends, *receives; /* one for each in the window */
	unsigned tx_pending, rx_pending;
	uint64_t idle; /* reads of the queue in a row that found nothing */
	uint64_t idle_since_ns;
	uint64_t added; /* what atomic operations have made of the word */
};

struct perf_row {
	char provider[128]; /* what fi_getinfo(3) calls the one that was taken */
	enum perf_pattern pattern;
	uint64_t bytes;
	unsigned window;
	uint64_t latency_iterations; /* 0: not measured */
	double min_us, median_us, p99_us;
	uint64_t stream_iterations; /* operations; 0: not measured */
	double per_s, mb_per_s;
};

/* ---- perf_run.c: measures ------------------------------------------------- */

/* The client: measure what @row names and add the figures. Returns 0 or -1. */
int perf_measure(struct perf *p, struct perf_row *row);

/* The server: carry out the run of the line "run ...". Returns 0 or -1. */
int perf_serve_run(struct perf *p, const char *line);

/* ---- perf_options.c ------------------------------------------------------- */

/*
 * Read the command line. Returns 0, or -1 after a message; ends the program for
 * --help and --version.
 */
int perf_options_parse(struct perf_options *o, int argc, char **argv);

/* The pattern of that name, or PERF_PATTERNS. */
enum perf_pattern perf_pattern_of(const char *name, size_t len);

#endif /* TANDEM_PERF_H */
