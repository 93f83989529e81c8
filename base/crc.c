/* SPDX-License-Identifier: BSD-2-Clause */
/* See crc.h. */
#include "base/crc.h"

#include <zlib.h>

uint32_t tdm_crc(uint32_t crc, const void *p, size_t len)
{
	return (uint32_t)crc32_z(crc, p, len);
}
