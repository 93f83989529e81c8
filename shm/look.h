/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of an endpoint to the owner's questions about its peers. */
#ifndef TDM_SHM_LOOK_H
#define TDM_SHM_LOOK_H

/*
 * Returns the table of calls @name that an endpoint offers by fi_open_ops(3):
 * that of fi_ext_tandem.h, tdm_live.h or tdm_look.h; NULL: it is none of them.
 * Lock: not needed.
 */
void *tdm_shm_look_ops(const char *name);

#endif /* TDM_SHM_LOOK_H */
