/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers that every test includes and that take longest to compile. They
 * are compiled once for all tests (tests/local.am); each test still includes
 * those that it needs.
 */
#ifndef TDT_PRECOMPILED_H
#define TDT_PRECOMPILED_H

#include <gtest/gtest.h>

#endif /* TDT_PRECOMPILED_H */
