/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measurements of the demo: half round trip and bandwidth of each pair,
 * one pair at a time, while the other ranks sleep.
 */
#ifndef DEMO_MEASURE_H
#define DEMO_MEASURE_H

#include "fabtests/demo.h"

/*
 * Measure all pairs. Fills half_ps and bandwidth of d->row for the pairs in
 * which this rank is the lower one. 0, or -1 when the job is over.
 */
int demo_measure_run(struct demo *d);

#endif /* DEMO_MEASURE_H */
