/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Typed wrappers over the compiler's atomic builtins, for words that another
 * thread or process reads or writes. A word is wrapped in a struct so that a
 * plain access does not compile. (C11 _Atomic cannot be read by C++17, and
 * the tests are C++.)
 */
#ifndef TDM_BASE_ATOMIC_H
#define TDM_BASE_ATOMIC_H

#include <stdint.h>

typedef struct {
	uint32_t v;
} tdm_a32;

typedef struct {
	uint64_t v;
} tdm_a64;

static inline uint32_t tdm_a32_load_acquire(const tdm_a32 *a)
{
	return __atomic_load_n(&a->v, __ATOMIC_ACQUIRE);
}

static inline uint32_t tdm_a32_load_relaxed(const tdm_a32 *a)
{
	return __atomic_load_n(&a->v, __ATOMIC_RELAXED);
}

static inline void tdm_a32_store_release(tdm_a32 *a, uint32_t v)
{
	__atomic_store_n(&a->v, v, __ATOMIC_RELEASE);
}

static inline void tdm_a32_store_relaxed(tdm_a32 *a, uint32_t v)
{
	__atomic_store_n(&a->v, v, __ATOMIC_RELAXED);
}

static inline uint64_t tdm_a64_load_acquire(const tdm_a64 *a)
{
	return __atomic_load_n(&a->v, __ATOMIC_ACQUIRE);
}

static inline uint64_t tdm_a64_load_relaxed(const tdm_a64 *a)
{
	return __atomic_load_n(&a->v, __ATOMIC_RELAXED);
}

static inline void tdm_a64_store_release(tdm_a64 *a, uint64_t v)
{
	__atomic_store_n(&a->v, v, __ATOMIC_RELEASE);
}

static inline void tdm_a64_store_relaxed(tdm_a64 *a, uint64_t v)
{
	__atomic_store_n(&a->v, v, __ATOMIC_RELAXED);
}

static inline uint64_t tdm_a64_fetch_and(tdm_a64 *a, uint64_t v)
{
	return __atomic_fetch_and(&a->v, v, __ATOMIC_ACQ_REL);
}

static inline uint64_t tdm_a64_fetch_or(tdm_a64 *a, uint64_t v)
{
	return __atomic_fetch_or(&a->v, v, __ATOMIC_ACQ_REL);
}

static inline uint64_t tdm_a64_fetch_add(tdm_a64 *a, uint64_t v)
{
	return __atomic_fetch_add(&a->v, v, __ATOMIC_ACQ_REL);
}

static inline uint64_t tdm_a64_exchange(tdm_a64 *a, uint64_t v)
{
	return __atomic_exchange_n(&a->v, v, __ATOMIC_ACQ_REL);
}

/* Orders all loads and stores before the call against the stores after it. */
static inline void tdm_fence_release(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Orders the stores before the call against the loads after it. */
static inline void tdm_fence_full(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Ask the processor to fetch the cache line of @p for reading. Nothing is
 * accessed; @p need not be mapped.
 */
static inline void tdm_prefetch(const void *p)
{
	__builtin_prefetch(p);
}

/*
 * Ask the processor to fetch the cache line of @p for writing: other cores give
 * up their copies now, while this one has other work. Nothing is accessed; @p
 * need not be mapped. On x86-64 the instruction is written out: the compiler's
 * builtin would fetch for reading unless the build names a processor that has
 * prefetchw, but every 64-bit x86 processor accepts it.
 */
static inline void tdm_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

static inline void tdm_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif /* TDM_BASE_ATOMIC_H */
