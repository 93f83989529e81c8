/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger of a play: see sim_check.c and sim_play.h.
 *
 * Locking: none, one thread.
 */
#ifndef TDS_SIM_CHECK_H
#define TDS_SIM_CHECK_H

#include "sim_play.h"
#include "tests/harness/seeded.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Note that something is wrong; the first time counts. Takes a printf format. */
void tds_wrong(struct tds_play *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

struct tds_op *tds_op_new(struct tds_play *p, struct tds_ep *e,
			  enum tds_op_kind kind, size_t len);
void tds_op_done(struct tds_play *p, struct tds_ep *e,
		 const struct fi_cq_tagged_entry *c, fi_addr_t src);
void tds_op_failed(struct tds_play *p, struct tds_ep *e,
		   const struct fi_cq_err_entry *c);

/* May an operation of @e with @place fail with @err? */
int tds_may_fail(const struct tds_ep *e, int place, int err);

/* Bits of enum tds_harm for each pair of @e and @place, both ways. */
void tds_harm(struct tds_play *p, int place, int other, unsigned harm);

/* Not 0: sends of living endpoints that have not ended, or were not received. */
int tds_open_sends(struct tds_play *p);
int tds_missing(struct tds_play *p);

/* Order, and each message once or lost with reason. */
void tds_judge(struct tds_play *p);

#ifdef __cplusplus
}
#endif

#endif /* TDS_SIM_CHECK_H */
