/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers from a seed, and the bytes of messages that follow from a key, by
 * words: for programs that spend much of their time in them; and what the environment
 * says of seeds.
 */
#ifndef TDT_SEEDED_H
#define TDT_SEEDED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the number that the environment variable @name is, such as the seed of a test
 * or how often it plays; @otherwise when it is not set, or empty.
 */
uint64_t tdt_number(const char *name, uint64_t otherwise);

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014): mixes the bits of @x. */
uint64_t tdt_mix(uint64_t x);

/* A number below @below, not 0; @state is the generator's. */
uint64_t tdt_seeded(uint64_t *state, uint64_t below);

/* Fill @buf with @len bytes that follow from @key; has it these bytes? */
void tdt_seeded_fill(void *buf, size_t len, uint64_t key);
int tdt_seeded_same(const void *buf, size_t len, uint64_t key);

/* Flip the bit of the @len bytes at @p, at least 1, that @draw chooses. */
void tdt_flip_bit(void *p, size_t len, uint64_t draw);

#ifdef __cplusplus
}
#endif

#endif /* TDT_SEEDED_H */
