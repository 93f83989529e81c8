/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider under whose name lines are logged. tcp/provider.c fills in its
 * calls when the module is loaded; tests that link parts without the module log
 * under the same name.
 *
 * Lock: none. tdm_prov is not written after the module is loaded.
 */
#include "base/log.h"

struct fi_provider tdm_prov = { .name = "tandem" };
