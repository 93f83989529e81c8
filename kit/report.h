/* SPDX-License-Identifier: BSD-2-Clause */
/* Results on stdout: a table for people, or JSON. */
#ifndef KIT_REPORT_H
#define KIT_REPORT_H

#include <stddef.h>

#include "kit/rule.h"

struct kit_row {
	const struct kit_rule *rule;
	struct kit_outcome outcome;
};

/* Returns how many of @rows have @result. */
size_t kit_rows_with(const struct kit_row *rows, size_t count,
		     enum kit_result result);

void kit_report_table(const struct kit_row *rows, size_t count);
void kit_report_json(const struct kit_row *rows, size_t count);

/* One rule, without a result. */
void kit_report_rule(const struct kit_rule *rule);

#endif /* KIT_REPORT_H */
