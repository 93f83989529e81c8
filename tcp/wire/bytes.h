/* SPDX-License-Identifier: BSD-2-Clause */
/* Little-endian integers at any address. */
#ifndef TDM_TCP_WIRE_BYTES_H
#define TDM_TCP_WIRE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Returns the integer at @p. */
static inline uint16_t tdm_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t tdm_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t tdm_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* Write @v to @p. */
static inline void tdm_put16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void tdm_put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void tdm_put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

#endif /* TDM_TCP_WIRE_BYTES_H */
