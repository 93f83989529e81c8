/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checksum of what goes over TCP: CRC-32 of ISO 3309, by zlib. It finds bits
 * that have changed by accident, not by intent: proofs are in auth.h. The calls
 * keep no state and need no lock. crc.c, the only user of zlib.
 */
#ifndef TDM_BASE_CRC_H
#define TDM_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the checksum of the bytes whose checksum is @crc (0: there are none)
 * followed by @p[@len].
 */
uint32_t tdm_crc(uint32_t crc, const void *p, size_t len);

#endif /* TDM_BASE_CRC_H */
