/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of tandem-perf.
 * No lock: one thread.
 */
#include "config.h"

#include "tools/perf.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

const char *const perf_pattern_names[PERF_PATTERNS] = { "message", "tagged",
							"write", "read",
							"atomic" };

static const char help[] =
	"usage: tandem-perf [OPTION...]          on one host: the server\n"
	"       tandem-perf [OPTION...] HOST     on another or the same\n"
	"\n"
	"  -p, --provider NAME     provider of libfabric (tandem)\n"
	"  -t, --test LIST         message, tagged, write, read, atomic; all "
	"(tagged)\n"
	"  -m, --measure LIST      latency, rate, bandwidth; all (all)\n"
	"  -s, --size RANGE        bytes: FIRST:LAST doubles, or a list "
	"(1:4M)\n"
	"  -w, --window N          operations under way, for rate and bandwidth "
	"(64)\n"
	"  -n, --iterations N      operations for each figure\n"
	"  -S, --seconds S         time for each figure (0.2)\n"
	"  -c, --check             check all data\n"
	"  -d, --domain NAME       domain of the provider: an interface\n"
	"  -a, --address ADDRESS   address of the own endpoint\n"
	"      --port N            TCP port where the two sides meet (47593)\n"
	"      --timeout S         without an answer (10)\n"
	"  -k, --keep              server: go on after the first client\n"
	"      --csv               print CSV\n"
	"      --plot FILE.svg     draw the figures, by gnuplot\n"
	"  -V, --version; -h, --help\n"
	"\n"
	"The client decides what is measured. See tandem-perf(1).\n";

enum { OPT_PORT = 256, OPT_TIMEOUT, OPT_CSV, OPT_PLOT };

static int wrong(const char *what, const char *text)
{
	fprintf(stderr, "tandem-perf: not a %s: %s\n", what, text);
	return -1;
}

enum perf_pattern perf_pattern_of(const char *name, size_t len)
{
	int i;

	for (i = 0; i < PERF_PATTERNS; i++) {
		if (strlen(perf_pattern_names[i]) == len &&
		    !strncmp(perf_pattern_names[i], name, len))
			return i;
	}
	return PERF_PATTERNS;
}

/* A number from @low to @high. Returns 0 or -1. */
static int number(const char *what, const char *text, uint64_t low,
		  uint64_t high, uint64_t *out)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (end == text || *end || *text == '-' || v < low || v > high)
		return wrong(what, text);
	*out = v;
	return 0;
}

/* Bytes with K, M or G, up to @end. Returns 0 or -1. */
static int size_of(const char *text, const char **end, uint64_t *out)
{
	static const char units[] = "KMG";
	char *after;
	unsigned long long v = strtoull(text, &after, 10);
	const char *unit = *after ? strchr(units, *after & ~0x20) : NULL;

	if (after == text || *text == '-' || v > PERF_BYTES_MOST)
		return -1;
	if (unit && *unit) {
		v <<= 10 * (unit - units + 1);
		after++;
	}
	*end = after;
	*out = v;
	return v > PERF_BYTES_MOST ? -1 : 0;
}

static int add_size(struct perf_options *o, uint64_t bytes)
{
	if (o->sizes == PERF_SIZES_MOST)
		return -1;
	o->size[o->sizes++] = bytes;
	return 0;
}

/* FIRST, or FIRST:LAST with each twice the one before, up to @end. */
static int add_range(struct perf_options *o, const char *text, const char **end)
{
	uint64_t first, last;

	if (size_of(text, end, &first) || add_size(o, first))
		return -1;
	if (**end != ':')
		return 0;
	if (size_of(*end + 1, end, &last) || last < first)
		return -1;
	while ((first = first ? 2 * first : 1) <= last) {
		if (add_size(o, first))
			return -1;
	}
	return 0;
}

static int sizes(struct perf_options *o, const char *text)
{
	const char *at = text;

	for (o->sizes = 0;; at++) {
		if (add_range(o, at, &at) || (*at && *at != ','))
			return wrong("range of sizes", text);
		if (!*at)
			return 0;
	}
}

static int patterns(struct perf_options *o, const char *text)
{
	enum perf_pattern pattern;
	size_t len;
	const char *at;

	o->patterns_are_all = !strcmp(text, "all");
	o->patterns = o->patterns_are_all ? (1u << PERF_PATTERNS) - 1 : 0;
	for (at = text; !o->patterns_are_all; at += len + 1) {
		len = strcspn(at, ",");
		pattern = perf_pattern_of(at, len);
		if (pattern == PERF_PATTERNS)
			return wrong("test", text);
		o->patterns |= 1u << pattern;
		if (!at[len])
			break;
	}
	return 0;
}

static int measures(struct perf_options *o, const char *text)
{
	static const char *const names[] = { "latency", "rate", "bandwidth" };
	size_t len, i;
	const char *at;

	o->measures = 0;
	if (!strcmp(text, "all")) {
		o->measures = PERF_LATENCY | PERF_STREAM;
		return 0;
	}
	for (at = text;; at += len + 1) {
		len = strcspn(at, ",");
		for (i = 0; i < 3; i++) {
			if (strlen(names[i]) == len &&
			    !strncmp(names[i], at, len))
				break;
		}
		if (i == 3)
			return wrong("measure", text);
		o->measures |= 1u << i;
		if (!at[len])
			return 0;
	}
}

static int seconds(struct perf_options *o, const char *text)
{
	char *end;

	o->seconds = strtod(text, &end);
	if (end == text || *end || !(o->seconds > 0) || o->seconds > 3600)
		return wrong("time in seconds", text);
	return 0;
}

/* Options with a value that says what is measured. Returns 0 or -1. */
static int take_measured(struct perf_options *o, int c, const char *value)
{
	uint64_t n;
	int ret = 0;

	switch (c) {
	case 't':
		return patterns(o, value);
	case 'm':
		return measures(o, value);
	case 's':
		return sizes(o, value);
	case 'n':
		return number("number of operations", value, 1, 1u << 30,
			      &o->iterations);
	case 'S':
		return seconds(o, value);
	case 'w':
		ret = number("window", value, 1, PERF_WINDOW_MOST, &n);
		break;
	default:
		return -1;
	}
	if (!ret)
		o->window = (unsigned)n;
	return ret;
}

static int take_option(struct perf_options *o, int c, char *value)
{
	uint64_t n = 0;

	switch (c) {
	case 'p':
		o->provider = value;
		return 0;
	case 'd':
		o->domain = value;
		return 0;
	case 'a':
		o->address = value;
		return 0;
	case 'c':
		o->check = 1;
		return 0;
	case 'k':
		o->keep = 1;
		return 0;
	case OPT_CSV:
		o->csv = 1;
		return 0;
	case OPT_PLOT:
		o->plot = value;
		return 0;
	case OPT_PORT:
		o->port = value;
		return number("port", value, 0, 65535, &n);
	case OPT_TIMEOUT:
		if (number("time in seconds", value, 1, 86400, &n))
			return -1;
		o->timeout_s = (unsigned)n;
		return 0;
	default:
		return take_measured(o, c, value);
	}
}

static const struct option options[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "test", required_argument, NULL, 't' },
	{ "measure", required_argument, NULL, 'm' },
	{ "size", required_argument, NULL, 's' },
	{ "window", required_argument, NULL, 'w' },
	{ "iterations", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "check", no_argument, NULL, 'c' },
	{ "domain", required_argument, NULL, 'd' },
	{ "address", required_argument, NULL, 'a' },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "keep", no_argument, NULL, 'k' },
	{ "csv", no_argument, NULL, OPT_CSV },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

int perf_options_parse(struct perf_options *o, int argc, char **argv)
{
	int c;

	*o = (struct perf_options){
		.port = PERF_PORT, .window = 64, .seconds = 0.2, .timeout_s = 10
	};
	sizes(o, "1:4M");
	patterns(o, "tagged");
	measures(o, "all");
	while ((c = getopt_long(argc, argv, "p:t:m:s:w:n:S:cd:a:kVh", options,
				NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? help :
					 "tandem-perf " PACKAGE_VERSION "\n",
			      stdout);
			exit(0);
		}
		if (c == '?') {
			fputs("tandem-perf --help lists the options\n", stderr);
			return -1;
		}
		if (take_option(o, c, optarg))
			return -1;
	}
	o->host = argv[optind];
	if (optind < argc - 1) {
		fprintf(stderr, "tandem-perf: one host, not %s too\n",
			argv[optind + 1]);
		return -1;
	}
	return 0;
}
