/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TDT_SANITIZED: the program is built for the address or the thread sanitizer,
 * which makes everything slower and has a heap of its own.
 */
#ifndef TDT_SANITIZED_H
#define TDT_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TDT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TDT_SANITIZED 1
#endif
#endif
#ifndef TDT_SANITIZED
#define TDT_SANITIZED 0
#endif

#endif /* TDT_SANITIZED_H */
