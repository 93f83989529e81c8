/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Basics that every file shares: typed downcasts, compile-time checks, and
 * small arithmetic. Nothing here allocates, locks or calls the system.
 */
#ifndef TDM_BASE_BASE_H
#define TDM_BASE_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define tdm_static_assert(expr, why) static_assert(expr, why)
#else
#define tdm_static_assert(expr, why) _Static_assert(expr, why)
#endif

#define tdm_must_check __attribute__((warn_unused_result))
#define tdm_unused __attribute__((unused))
#define tdm_always_inline inline __attribute__((always_inline))
/*
 * Inlines all calls in the function, also of functions of other files, unless
 * the callee is tdm_noinline.
 */
#define tdm_flatten __attribute__((flatten))
/* Never inlined: it would take registers of the function that calls it. */
#define tdm_noinline __attribute__((noinline))
#define tdm_likely(x) __builtin_expect(!!(x), 1)
#define tdm_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Cache line size for which structures shared between processes are laid out.
 */
enum { TDM_CACHE_LINE_BYTES = 64 };

#define TDM_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/*
 * A pointer to the structure of type @type whose member @member @ptr points to.
 * The assignment to a typed pointer makes a wrong member a compile-time error;
 * a plain cast of the pointer would hide it.
 */
#define tdm_container_of(ptr, type, member)                                    \
	__extension__({                                                        \
		const __typeof__(((type *)0)->member) *tdm_mptr_ = (ptr);      \
		(type *)((uintptr_t)tdm_mptr_ - offsetof(type, member));       \
	})

static inline size_t tdm_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t tdm_max(size_t a, size_t b)
{
	return a > b ? a : b;
}

static inline uint64_t tdm_clamp(uint64_t v, uint64_t lo, uint64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* Returns the smallest power of two >= @v; 1 for 0. @v must be <= 2^63. */
static inline uint64_t tdm_roundup_pow2(uint64_t v)
{
	return v <= 1 ? 1 : 1ull << (64 - __builtin_clzll(v - 1));
}

#endif /* TDM_BASE_BASE_H */
