/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the provider's log lines while a test runs. A warning that the test
 * does not expect fails it. Thread-safe.
 */
#ifndef TDT_LOG_H
#define TDT_LOG_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Take over libfabric's log: warnings of the provider under test are kept,
 * all else goes where FI_LOG_LEVEL sends it. Once per process, after the
 * environment is final (it loads the providers).
 */
void tdt_log_start(void);

/* Forget all warnings and all expectations. */
void tdt_log_reset(void);

/* Warnings that contain @text are fine until the next reset. Copied. */
void tdt_log_expect(const char *text);

/* Number of kept warnings that contain @text ("" counts all). */
size_t tdt_log_count(const char *text);

/*
 * From now on keep what the provider says at @level and below it, apart from
 * the warnings; FI_LOG_WARN keeps nothing more. Forgets what was kept so far.
 */
void tdt_log_listen(int level);

/* Number of lines that contain @text among those, warnings included. */
size_t tdt_log_heard(const char *text);

/* The first warning nobody expected, or NULL. Valid until the next reset. */
const char *tdt_log_unexpected(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_LOG_H */
