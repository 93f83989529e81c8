/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports of results.
 *
 * Lock: none; one thread.
 */
#include "kit/report.h"

#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

static const char *const result_text[] = {
	[KIT_OPEN] = "open",	     [KIT_HELD] = "held",
	[KIT_BROKEN] = "broken",     [KIT_ABSENT] = "not offered",
	[KIT_UNTRIED] = "not tried",
};

size_t kit_rows_with(const struct kit_row *rows, size_t count,
		     enum kit_result result)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		n += rows[i].outcome.result == result;
	return n;
}

/* "fi_peer(3), PEER CQ, paragraph 3" */
static void put_place(const struct kit_rule *rule)
{
	fputs(rule->page, stdout);
	if (rule->section)
		printf(", %s", rule->section);
	if (rule->paragraph)
		printf(", paragraph %u", rule->paragraph);
}

void kit_report_rule(const struct kit_rule *rule)
{
	printf("%-16s %s\n%17s", rule->name, rule->sentence, "");
	put_place(rule);
	putchar('\n');
}

void kit_report_table(const struct kit_row *rows, size_t count)
{
	size_t i;

	printf("%s%s%s as %s, libfabric %u.%u\n\n", kit_subject.provider,
	       kit_subject.domain ? ", domain " : "",
	       kit_subject.domain ? kit_subject.domain : "",
	       kit_subject.is_owner ? "the owner" : "a peer",
	       FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
	for (i = 0; i < count; i++) {
		const struct kit_outcome *o = &rows[i].outcome;

		printf("%-11s  %-16s %s\n%30s", result_text[o->result],
		       rows[i].rule->name, rows[i].rule->sentence, "");
		put_place(rows[i].rule);
		if (*o->text)
			printf("\n%30s-> %s", "", o->text);
		putchar('\n');
	}
	printf("\n%zu held, %zu broken, %zu not offered, %zu not tried\n",
	       kit_rows_with(rows, count, KIT_HELD),
	       kit_rows_with(rows, count, KIT_BROKEN),
	       kit_rows_with(rows, count, KIT_ABSENT),
	       kit_rows_with(rows, count, KIT_UNTRIED));
}

/*
 * A string of JSON. Bytes that are no ASCII are written as the code points of
 * Latin-1, so that the output is valid whatever a provider returns.
 */
static void put_string(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	putchar('"');
	for (; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20 || *c > 0x7e)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void put_member(const char *name, const char *text, const char *behind)
{
	put_string(name);
	fputs(": ", stdout);
	if (text)
		put_string(text);
	else
		fputs("null", stdout);
	fputs(behind, stdout);
}

static void put_row(const struct kit_row *row, const char *behind)
{
	fputs("    { ", stdout);
	put_member("rule", row->rule->name, ", ");
	put_member("result", result_text[row->outcome.result], ",\n      ");
	put_member("sentence", row->rule->sentence, ",\n      ");
	put_member("page", row->rule->page, ", ");
	put_member("section", row->rule->section, ", ");
	printf("\"paragraph\": %u,\n      ", row->rule->paragraph);
	put_member("reason", *row->outcome.text ? row->outcome.text : NULL,
		   " }");
	printf("%s\n", behind);
}

void kit_report_json(const struct kit_row *rows, size_t count)
{
	char version[32];
	size_t i;

	snprintf(version, sizeof(version), "%u.%u", FI_MAJOR(fi_version()),
		 FI_MINOR(fi_version()));
	fputs("{ ", stdout);
	put_member("provider", kit_subject.provider, ", ");
	put_member("role", kit_subject.is_owner ? "owner" : "peer", ", ");
	put_member("domain", kit_subject.domain, ", ");
	put_member("libfabric", version, ",\n");
	printf("  \"held\": %zu, \"broken\": %zu, \"not_offered\": %zu,\n"
	       "  \"not_tried\": %zu,\n",
	       kit_rows_with(rows, count, KIT_HELD),
	       kit_rows_with(rows, count, KIT_BROKEN),
	       kit_rows_with(rows, count, KIT_ABSENT),
	       kit_rows_with(rows, count, KIT_UNTRIED));
	puts("  \"rules\": [");
	for (i = 0; i < count; i++)
		put_row(&rows[i], i + 1 < count ? "," : "");
	puts("  ] }");
}
