/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every test includes and takes longest to read. It is compiled once for
 * all of them (tests/local.am) and says nothing that a test does not say.
 */
#ifndef TDT_PRECOMPILED_H
#define TDT_PRECOMPILED_H

#include <gtest/gtest.h>

#endif /* TDT_PRECOMPILED_H */
