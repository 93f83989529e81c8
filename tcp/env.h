/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the parameters of fi_tandem(7), ENVIRONMENT, into tdm_env. */
#ifndef TDM_TCP_ENV_H
#define TDM_TCP_ENV_H

/*
 * Define all parameters with the libfabric core and fill tdm_env. Called once,
 * from fi_prov_ini(), before any other thread can exist in the provider.
 */
void tdm_env_init(void);

#endif /* TDM_TCP_ENV_H */
