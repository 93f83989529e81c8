/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workload of the demo: tagged messages from every rank to every other,
 * received from any source, each checked.
 */
#ifndef DEMO_TRAFFIC_H
#define DEMO_TRAFFIC_H

#include "fabtests/demo.h"

/*
 * Run the workload to its end on all ranks and check it. Fills the tx_ and rx_
 * members of d->row. 0, or -1 when the job is over; a check that does not hold
 * is counted in d->row->bad and is no reason to stop.
 */
int demo_traffic_run(struct demo *d);

#endif /* DEMO_TRAFFIC_H */
