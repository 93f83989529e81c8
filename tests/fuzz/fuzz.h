/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target is one function that takes any bytes and aborts when a promise
 * is broken. .ci/fuzz.sh gives it the name that libFuzzer calls; the unit tests
 * link those of parsers, and run a fixed number of inputs.
 */
#ifndef TDT_FUZZ_H
#define TDT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each returns 0. */
int tdt_fuzz_addr(const uint8_t *data, size_t size);	  /* av/addr.c */
int tdt_fuzz_stream(const uint8_t *data, size_t size);	  /* records of TCP */
int tdt_fuzz_greeting(const uint8_t *data, size_t size);  /* HELLO, REJECT */
int tdt_fuzz_ring(const uint8_t *data, size_t size);	  /* shm/record.c */
int tdt_fuzz_attach(const uint8_t *data, size_t size);	  /* its packets */
int tdt_fuzz_shared_av(const uint8_t *data, size_t size); /* a vector's file */
int tdt_fuzz_env(const uint8_t *data, size_t size);	  /* FI_TANDEM_* */
int tdt_fuzz_session(const uint8_t *data, size_t size);	  /* a whole session */
int tdt_fuzz_script(const uint8_t *data, size_t size); /* calls, both tiers */

/* Abort unless @so. */
static inline void tdt_must(int so)
{
	if (!so)
		abort();
}

/* Returns a copy of @p[@n], to be freed, in memory of exactly its length. */
static inline uint8_t *tdt_exact(const uint8_t *p, size_t n)
{
	uint8_t *exact = (uint8_t *)malloc(n ? n : 1);

	if (!exact)
		abort();
	memcpy(exact, p, n);
	return exact;
}

/* Copy the beginning of a form of @want bytes, zeros behind the @n that there are. */
static inline void tdt_take(void *to, size_t want, const uint8_t *p, size_t n)
{
	memset(to, 0, want);
	memcpy(to, p, n < want ? n : want);
}

/*
 * Returns a copy, to be freed, of the text at @p[@n]: up to a NUL, or all of it. Not by
 * strndup(3), which may read the byte behind the text.
 */
static inline char *tdt_text(const uint8_t *p, size_t n)
{
	char *text = (char *)calloc(1, n + 1);

	if (!text)
		abort();
	memcpy(text, p, strnlen((const char *)p, n));
	return text;
}

#ifdef __cplusplus
}
#endif

#endif /* TDT_FUZZ_H */
