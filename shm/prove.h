/* SPDX-License-Identifier: BSD-2-Clause */
/* Proofs of authorization keys in an attach. */
#ifndef TDM_SHM_PROVE_H
#define TDM_SHM_PROVE_H

#include "base/base.h"
#include "shm/attach.h"

/*
 * Make s->proofs->own from @h, our HELLO, with the proof of s->key. Errors:
 * -errno.
 */
int tdm_shm_prove_hello(struct tdm_shm_session *s,
			const struct tdm_shm_hello *h) tdm_must_check;

/*
 * Check @msg, the HELLO of the other side. Not 0 when it proves a key that this
 * side has, or when there is neither proof nor key. The key becomes s->key: an
 * acceptor finds by it which key the attach is for. Later proofs cover this
 * HELLO.
 */
int tdm_shm_check_hello(struct tdm_shm_session *s,
			const struct tdm_shm_msg *msg);

/* Send READY, with the last proof if there is a key. Errors: -errno. */
int tdm_shm_prove_ready(struct tdm_shm_session *s) tdm_must_check;

/* Not 0 when the READY @msg has the right proof, or needs none. */
int tdm_shm_check_ready(const struct tdm_shm_session *s,
			const struct tdm_shm_msg *msg);

#endif /* TDM_SHM_PROVE_H */
