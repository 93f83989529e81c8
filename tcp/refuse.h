/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines that say why hints and attributes are refused: each names the
 * attribute and, with the names of fi_tostr(3), the bits or value not offered.
 * Any thread, any locks.
 */
#ifndef TDM_TCP_REFUSE_H
#define TDM_TCP_REFUSE_H

#include <rdma/fabric.h>

#include "base/log.h"

/*
 * Set the level of these lines in the calling thread, FI_LOG_INFO at first. A
 * caller that changes it must restore it.
 */
void tdm_refuse_set_level(enum fi_log_level level);
enum fi_log_level tdm_refuse_level(void);

/* Log a line of this kind with the caller's own text. */
#define TDM_REFUSED(...) TDM_LOG_(tdm_refuse_level(), FI_LOG_CORE, __VA_ARGS__)

/* These four return -FI_ENODATA. An amount: @asked is more than @most. */
int tdm_refuse_amount(const char *what, uint64_t asked, uint64_t most);

/* Flags: @missing are the bits that are not offered. */
int tdm_refuse_bits(const char *what, enum fi_type type, uint64_t missing);

/* One value of an enumeration: @type is the one of fi_tostr(3). */
int tdm_refuse_value(const char *what, enum fi_type type, uint32_t asked);

/* Any other hint: @why says it in words. */
int tdm_refuse_hint(const char *what, const char *why);

/* Log at INFO level why @call is refused with @ret. Returns @ret. */
int tdm_refuse_call(int ret, const char *call, const char *why);

#endif /* TDM_TCP_REFUSE_H */
