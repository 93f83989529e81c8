/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module by which libfabric finds the peer provider of tandem-peer-check,
 * which is in that program. In any other program it offers nothing.
 *
 * No lock: no state.
 */
#include <rdma/providers/fi_prov.h>

/* Defined by tandem-peer-check alone, which exports it. */
extern struct fi_provider *kit_peer_provider(void) __attribute__((weak));

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	return kit_peer_provider ? kit_peer_provider() : NULL;
}
