/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/inject.h"

tdm_a64 tdm_inject_bytes;
