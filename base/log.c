/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider that the lines of the log name. tcp/provider.c gives it its
 * calls when the module is loaded; parts that are used without a module log
 * under the same name.
 */
#include "base/log.h"

struct fi_provider tdm_prov = { .name = "tandem" };
