/* SPDX-License-Identifier: BSD-2-Clause */
/* The DSCP of IP packets for each traffic class, fi_endpoint(3) "Traffic Class". */
#ifndef TDM_TCP_WIRE_TCLASS_H
#define TDM_TCP_WIRE_TCLASS_H

#include <stdint.h>

/*
 * Returns the code point (DSCP, 0 to 63) for IP packets of @tclass: its own
 * value, or the one that RFC 4594 and RFC 8622 recommend for the traffic that
 * its label describes. -1: none, the kernel decides.
 */
int tdm_tclass_dscp(uint32_t tclass);

#endif /* TDM_TCP_WIRE_TCLASS_H */
