/* SPDX-License-Identifier: BSD-2-Clause */
/* The authorization key of the environment, fi_tandem(7), KEYS. env_key.c. */
#ifndef TDM_BASE_ENV_KEY_H
#define TDM_BASE_ENV_KEY_H

#include "base/auth.h"

/*
 * Allocates an array with the key that FI_TANDEM_AUTH_KEY_FILE or else
 * FI_TANDEM_AUTH_KEY gives, of id 0. Out: *@keys, which the caller frees with
 * tdm_auth_free(); NULL: none is set. Errors: -FI_ENOKEY: it cannot be used, and
 * the user was told why; -FI_ENOMEM. Lock: none.
 */
int tdm_env_key(struct tdm_auth_keys **keys) tdm_must_check;

#endif /* TDM_BASE_ENV_KEY_H */
