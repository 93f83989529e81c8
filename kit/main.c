/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tandem-peer-check: is a provider a peer as fi_peer(3) describes one? The
 * manual page tandem-peer-check(1) has the options and the exit status.
 *
 * Lock: none; one thread.
 */
#include "config.h"

#include <fnmatch.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/app.h"
#include "kit/report.h"
#include "kit/run.h"

enum { ROWS_MOST = 128, SECONDS = 10, SECONDS_MOST = 3600 };
enum { EXIT_BROKEN = 1, EXIT_USAGE = 2, EXIT_NOTHING = 3 };

static const struct kit_rule *const tables[] = {
	kit_rules_open,	   kit_rules_message,	 kit_rules_queue,
	kit_rules_receive, kit_rules_unexpected, kit_rules_address,
	kit_rules_end,
};

static const struct kit_rule *const owner_tables[] = {
	kit_owner_open, kit_owner_message, kit_owner_receive,
	kit_owner_wait, kit_owner_end,
};

static struct kit_row rows[ROWS_MOST];
static size_t count;
static const char *pattern = "*";
static int json;

static void usage(FILE *to)
{
	fputs("usage: tandem-peer-check [OPTION...] PROVIDER\n"
	      "\n"
	      "  -o, --owner           PROVIDER is the owner, not the peer\n"
	      "  -d, --domain NAME     ask for the domain of this name\n"
	      "  -n, --node ADDRESS    ask for this source address\n"
	      "  -r, --rule PATTERN    only rules whose names match\n"
	      "  -t, --timeout SECONDS the time for one rule (10)\n"
	      "  -j, --json            print JSON\n"
	      "  -l, --list            print the rules and end\n"
	      "  -V, --version         print the version and end\n"
	      "  -h, --help            print this text and end\n",
	      to);
}

static void choose_of(const struct kit_rule *rule)
{
	for (; rule->name; rule++) {
		if (fnmatch(pattern, rule->name, 0))
			continue;
		if (count == ROWS_MOST)
			abort();
		rows[count++].rule = rule;
	}
}

static void choose(void)
{
	size_t i, n = kit_subject.is_owner ?
			      sizeof(owner_tables) / sizeof(*owner_tables) :
			      sizeof(tables) / sizeof(*tables);

	for (i = 0; i < n; i++)
		choose_of(kit_subject.is_owner ? owner_tables[i] : tables[i]);
}

static int list(void)
{
	size_t i;

	for (i = 0; i < count; i++)
		kit_report_rule(rows[i].rule);
	return 0;
}

static unsigned seconds_of(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text || !n || n > SECONDS_MOST) {
		fprintf(stderr, "tandem-peer-check: not a time: %s\n", text);
		exit(EXIT_USAGE);
	}
	return (unsigned)n;
}

/* Returns whether the rules are to be listed only. */
static int parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "owner", no_argument, NULL, 'o' },
		{ "domain", required_argument, NULL, 'd' },
		{ "node", required_argument, NULL, 'n' },
		{ "rule", required_argument, NULL, 'r' },
		{ "timeout", required_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "list", no_argument, NULL, 'l' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, only_list = 0;

	while ((c = getopt_long(argc, argv, "od:n:r:t:jlVh", options, NULL)) !=
	       -1) {
		if (c == 'o')
			kit_subject.is_owner = 1;
		else if (c == 'd')
			kit_subject.domain = optarg;
		else if (c == 'n')
			kit_subject.node = optarg;
		else if (c == 'r')
			pattern = optarg;
		else if (c == 't')
			kit_subject.seconds = seconds_of(optarg);
		else if (c == 'j')
			json = 1;
		else if (c == 'l')
			only_list = 1;
		else if (c == 'V' || c == 'h') {
			if (c == 'h')
				usage(stdout);
			else
				puts("tandem-peer-check " PACKAGE_VERSION);
			exit(0);
		} else {
			usage(stderr);
			exit(EXIT_USAGE);
		}
	}
	kit_subject.provider = argv[optind];
	choose();
	if (!only_list && (optind != argc - 1 || !count)) {
		if (!count)
			fputs("tandem-peer-check: no such rule\n", stderr);
		usage(stderr);
		exit(EXIT_USAGE);
	}
	return only_list;
}

static int is_in(const struct kit_rule *table, const struct kit_rule *rule)
{
	for (; table->name; table++) {
		if (table == rule)
			return 1;
	}
	return 0;
}

/*
 * Run the rules. Those about messages are not tried if no message arrives, which
 * would break each of them for one reason. Returns 0 or -errno.
 */
static int run(void)
{
	const struct kit_rule *open = kit_subject.is_owner ? kit_owner_open :
							     kit_rules_open;
	const struct kit_rule *first =
		kit_subject.is_owner ? kit_owner_message : kit_rules_message;
	struct kit_outcome message = { KIT_OPEN, "", "" };
	size_t i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++) {
		struct kit_row *row = &rows[i];

		if (is_in(open, row->rule)) {
			ret = kit_run(row->rule, &row->outcome);
			continue;
		}
		if (message.result == KIT_OPEN)
			ret = kit_run(first, &message);
		if (row->rule == first) {
			row->outcome = message;
		} else if (message.result == KIT_HELD) {
			ret = kit_run(row->rule, &row->outcome);
		} else {
			row->outcome.result = KIT_UNTRIED;
			strcpy(row->outcome.text,
			       "the rule \"message\" does not hold");
		}
	}
	return ret;
}

int main(int argc, char **argv)
{
	int ret;

	kit_subject.seconds = SECONDS;
	if (parse(argc, argv))
		return list();
	if (kit_subject.is_owner)
		kit_app_link();
	ret = run();
	if (ret) {
		fprintf(stderr, "tandem-peer-check: %s\n", strerror(-ret));
		return EXIT_USAGE;
	}
	if (json)
		kit_report_json(rows, count);
	else
		kit_report_table(rows, count);
	if (fflush(stdout) || ferror(stdout))
		return EXIT_USAGE;
	if (kit_rows_with(rows, count, KIT_BROKEN))
		return EXIT_BROKEN;
	return kit_rows_with(rows, count, KIT_HELD) ? 0 : EXIT_NOTHING;
}
