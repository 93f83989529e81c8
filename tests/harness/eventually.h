/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a condition, which is the test's own progress. */
#ifndef TDT_EVENTUALLY_H
#define TDT_EVENTUALLY_H

#include <functional>

#include "tests/harness/drive.h"

/* Has @cond held before the deadline? @step runs between the looks. */
inline bool tdt_eventually(const std::function<bool()> &cond,
			   const std::function<void()> &step)
{
	const uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	while (!cond()) {
		step();
		if (tdt_now_ms() > end)
			return false;
	}
	return true;
}

#endif /* TDT_EVENTUALLY_H */
