/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes that are offered, and what hints make of them. */
#ifndef TDM_TCP_ATTR_H
#define TDM_TCP_ATTR_H

#include <rdma/fabric.h>

/*
 * Allocates an info with every attribute at its default and no address. The
 * caller frees it by tdm_info_free(). NULL: out of memory.
 */
struct fi_info *tdm_info_base(void);

/*
 * Apply @hints to @info (from tdm_info_base()) by the rules of fi_getinfo(3).
 * Errors: -FI_ENODATA, with the reason logged at INFO level.
 */
int tdm_info_apply(uint32_t version, const struct fi_info *hints,
		   struct fi_info *info);

/*
 * Check the attributes of an info that the application passes to fi_domain or
 * fi_endpoint. Returns 0 or -FI_EINVAL.
 */
int tdm_info_check(const struct fi_info *info);

/*
 * Returns the capabilities in the direction @side of an endpoint or context
 * whose attributes name @asked and whose endpoint has @whole. Bits of the other
 * direction are ignored; a kind without a direction gets that of @side. If
 * @asked has no bit of @side, those of @whole.
 */
uint64_t tdm_caps_side(uint64_t asked, uint64_t side, uint64_t whole);

/*
 * As tdm_info_check(), for the attributes of a context, fi_srx_context() and
 * the like. @attr may be NULL.
 */
int tdm_tx_attr_check(const struct fi_tx_attr *attr);
int tdm_rx_attr_check(const struct fi_rx_attr *attr);

#endif /* TDM_TCP_ATTR_H */
