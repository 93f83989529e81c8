/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces that fi_getinfo(3) offers, the best first. */
#ifndef TDM_TCP_OFFER_H
#define TDM_TCP_OFFER_H

#include <stddef.h>

#include "base/base.h"
#include "tcp/iface.h"

/*
 * Find the interfaces for @ask, the best first. Out: *@table, which the caller
 * frees, and *@count, at least 1. Errors: -FI_ENODATA, with the reason logged;
 * -FI_ENOMEM.
 */
int tdm_iface_offer(const struct tdm_iface_ask *ask, struct tdm_iface **table,
		    size_t *count) tdm_must_check;

/*
 * Called when the host name @node stands for @ask->src, a loopback address:
 * warns if @ask allows an interface that other hosts reach.
 */
void tdm_iface_tell_local(const struct tdm_iface_ask *ask, const char *node);

#endif /* TDM_TCP_OFFER_H */
