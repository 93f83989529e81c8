/* SPDX-License-Identifier: BSD-2-Clause */
/* The provider, as libfabric loads it. */
#ifndef TDM_TCP_PROVIDER_H
#define TDM_TCP_PROVIDER_H

#include <rdma/fabric.h>

/*
 * Returns ep_attr.protocol: TDM_PROTO, or that of the provider for which tandem
 * stands in.
 */
uint32_t tdm_info_protocol(void);

#endif /* TDM_TCP_PROVIDER_H */
