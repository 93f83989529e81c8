/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does an IP address belong to this network namespace? Such a peer is a
 * candidate for local; the proof is the attach (shm/attach.c).
 */
#ifndef TDM_AV_LOCALITY_H
#define TDM_AV_LOCALITY_H

#include "av/addr.h"

/*
 * Not 0 when the IP of @a is one of this network namespace's own. The list
 * of interface addresses is read once and again when an unknown address is
 * asked for more than a second after the last reading. Thread-safe.
 */
int tdm_locality_is_here(const struct tdm_addr *a);

/* Forget the list (tests, and after fork into another namespace). */
void tdm_locality_reset(void);

#endif /* TDM_AV_LOCALITY_H */
