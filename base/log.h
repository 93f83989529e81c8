/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logging through libfabric's own log (FI_LOG_LEVEL, FI_LOG_PROV).
 *
 * WARN: something is wrong and somebody should look. INFO: once per object or
 * per pair. DBG: per message; compiled only in debug builds. The function that
 * decides an error logs it, its callers do not. Messages are lower case and
 * end without a newline.
 */
#ifndef TDM_BASE_LOG_H
#define TDM_BASE_LOG_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

extern struct fi_provider tdm_prov;

/*
 * Warn of a mistake in what the user has set, or in the host's files, once: in the
 * log, or on standard error if the log drops warnings, as it does by default. Any
 * thread, any locks.
 */
void tdm_tell_user(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define TDM_LOG_(level, subsys, fmt, ...)                                      \
	do {                                                                   \
		if (fi_log_enabled(&tdm_prov, level, subsys))                  \
			fi_log(&tdm_prov, level, subsys, __func__, __LINE__,   \
			       fmt "\n", ##__VA_ARGS__);                       \
	} while (0)

/* @subsys: CORE, FABRIC, DOMAIN, EP_CTRL, EP_DATA, AV, CQ, EQ, MR, CNTR. */
#define TDM_WARN(subsys, ...)                                                  \
	TDM_LOG_(FI_LOG_WARN, FI_LOG_##subsys, __VA_ARGS__)
#define TDM_INFO(subsys, ...)                                                  \
	TDM_LOG_(FI_LOG_INFO, FI_LOG_##subsys, __VA_ARGS__)
#ifdef TDM_DEBUG
#define TDM_DBG(subsys, ...)                                                   \
	TDM_LOG_(FI_LOG_DEBUG, FI_LOG_##subsys, __VA_ARGS__)
#else
#define TDM_DBG(subsys, ...)                                                   \
	do {                                                                   \
	} while (0)
#endif

#endif /* TDM_BASE_LOG_H */
