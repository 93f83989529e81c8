/* SPDX-License-Identifier: BSD-2-Clause */
/* The network interfaces that the kernel has. */
#ifndef TDM_TCP_IFSCAN_H
#define TDM_TCP_IFSCAN_H

#include <stddef.h>

#include "base/base.h"
#include "tcp/iface.h"

/*
 * Read all addresses of interfaces that are up, those without carrier as well.
 * Out: *@table, which the caller frees, and *@count. Errors: -FI_ENODATA,
 * -FI_ENOMEM.
 */
int tdm_iface_scan(struct tdm_iface **table, size_t *count) tdm_must_check;

#endif /* TDM_TCP_IFSCAN_H */
