/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target is one function that takes any bytes and aborts when a promise
 * is broken. Linked with libFuzzer by .ci/fuzz.sh, and with the unit tests,
 * which run a fixed number of inputs.
 */
#ifndef TDT_FUZZ_H
#define TDT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* TDT_FUZZ_H */
