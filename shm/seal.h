/* SPDX-License-Identifier: BSD-2-Clause */
/* Proofs of authorization keys in an attach. */
#ifndef TDM_SHM_SEAL_H
#define TDM_SHM_SEAL_H

#include "base/base.h"
#include "shm/attach.h"

/*
 * @h, our HELLO, becomes s->seals->own with the proof of s->key. Errors:
 * -errno.
 */
int tdm_shm_seal_hello(struct tdm_shm_session *s,
		       const struct tdm_shm_hello *h) tdm_must_check;

/*
 * Judge @msg, the other side's HELLO. Not 0: it proves the key of the attach,
 * which an acceptor finds by that (s->key), or there is neither proof nor key.
 * Later proofs cover this HELLO.
 */
int tdm_shm_seal_ok(struct tdm_shm_session *s, const struct tdm_shm_msg *msg);

/* Send READY, with the last proof where there is a key. Errors: -errno. */
int tdm_shm_seal_ready(struct tdm_shm_session *s) tdm_must_check;

/* Not 0 when the READY @msg has the proof it must have. */
int tdm_shm_seal_done(const struct tdm_shm_session *s,
		      const struct tdm_shm_msg *msg);

#endif /* TDM_SHM_SEAL_H */
