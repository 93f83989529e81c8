/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Advice to users about errors of the network and the system, for the log and
 * the report. Lock: none.
 */
#ifndef TDM_BASE_ADVICE_H
#define TDM_BASE_ADVICE_H

/*
 * Returns the cause of the error @err, positive, as far as the error alone tells it,
 * and the remedy; "" for errors without advice. Static storage.
 */
const char *tdm_advice(int err);

/* The same where shared memory, or what it needs, was refused with @err. */
const char *tdm_advice_local(int err);

/* Returns advice for a process that may not read memory of others. Static storage. */
const char *tdm_advice_cma(void);

#endif /* TDM_BASE_ADVICE_H */
