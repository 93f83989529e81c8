/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a rule in a process of its own, with a deadline. */
#ifndef KIT_RUN_H
#define KIT_RUN_H

#include "kit/rule.h"

/*
 * Run @rule and wait for its end. A process that crashes, hangs or exits without
 * a result has broken the rule. Returns 0, or -errno if there is no process.
 */
int kit_run(const struct kit_rule *rule, struct kit_outcome *outcome);

#endif /* KIT_RUN_H */
