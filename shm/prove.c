/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attach of endpoints with a key: a HELLO or READY has a proof that its
 * sender knows the key.
 *
 *	initiator: HELLO, nonce, proof h of it	  -> else no answer
 *	acceptor:  HELLO, nonce, proof s of both  -> else ABORT
 *	initiator: READY, proof c of both, whole  -> else as if it had closed
 *
 * Neither side maps the other's memory, and the acceptor sends no descriptor,
 * before it has checked the proof that came with the memory or before it.
 *
 * Locking: domain lock held. Spec: doc/PROTOCOL.md "Keys",
 * doc/PROTOCOL-shm.md "Attach".
 */
#include "shm/prove.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "shm/ep.h"
#include "shm/lifeline.h"

enum { PROVEN = offsetof(struct tdm_shm_proven_hello, proof) };

/*
 * Returns the bytes that the proof in @at covers; @first is the message that it
 * answers, or NULL.
 */
static struct tdm_auth_text text_of(const struct tdm_shm_proven_hello *at,
				    const struct tdm_shm_proven_hello *first)
{
	return tdm_auth_text(at, PROVEN, first, sizeof(*first));
}

/*
 * Returns the bytes that the last proof covers: both HELLOs with their proofs.
 */
static struct tdm_auth_text whole(const struct tdm_shm_proven_hello *initiator,
				  const struct tdm_shm_proven_hello *acceptor)
{
	return tdm_auth_text(acceptor, sizeof(*acceptor), initiator,
			     sizeof(*initiator));
}

static int is_initiator(const struct tdm_shm_session *s)
{
	return s->state == TDM_SHM_SESSION_SENT;
}

static int proofs_alloc(struct tdm_shm_session *s)
{
	if (!s->proofs)
		s->proofs = calloc(1, sizeof(*s->proofs));
	return s->proofs ? 0 : -FI_ENOMEM;
}

int tdm_shm_prove_hello(struct tdm_shm_session *s,
			const struct tdm_shm_hello *h)
{
	int first = is_initiator(s), ret = proofs_alloc(s);
	struct tdm_auth_text text;
	struct tdm_shm_proven_hello *own;

	if (ret)
		return ret;
	own = &s->proofs->own;
	own->hello = *h;
	own->hello.features |= TDM_SHM_FEATURE_AUTH;
	own->hello.head.bytes = sizeof(*own);
	ret = tdm_auth_nonce(own->nonce);
	if (ret)
		return ret;
	text = text_of(own, first ? NULL : &s->proofs->peer);
	return tdm_auth_prove(s->key,
			      first ? TDM_AUTH_SHM_HELLO : TDM_AUTH_SHM_SERVER,
			      &text, own->proof);
}

/*
 * Returns the key that @msg proves: the initiator's own if @msg answers it,
 * else any key of the endpoint. NULL: none.
 */
static const struct tdm_auth_key *proven(const struct tdm_shm_session *s,
					 const struct tdm_shm_msg *msg)
{
	const uint8_t *proof = msg->proven_hello.proof;
	int first = is_initiator(s);
	struct tdm_auth_text text =
		text_of(&msg->proven_hello, first ? &s->proofs->own : NULL);

	if (!first)
		return tdm_auth_which(s->ep->keys, TDM_AUTH_SHM_HELLO, &text,
				      proof);
	return tdm_auth_check(s->key, TDM_AUTH_SHM_SERVER, &text, proof) ?
		       s->key :
		       NULL;
}

int tdm_shm_check_hello(struct tdm_shm_session *s,
			const struct tdm_shm_msg *msg)
{
	const struct tdm_auth_key *key;

	if (!s->ep->keys || !msg->proven)
		return !s->ep->keys && !msg->proven;
	key = proven(s, msg);
	if (!key || proofs_alloc(s))
		return 0;
	s->key = key;
	s->proofs->peer = msg->proven_hello;
	return 1;
}

int tdm_shm_prove_ready(struct tdm_shm_session *s)
{
	struct tdm_shm_ready r = {
		.head.magic = TDM_SHM_MAGIC,
		.head.type = TDM_SHM_MSG_READY,
		.head.bytes = sizeof(r),
	};
	struct tdm_auth_text text;
	int ret;

	if (!s->key)
		return tdm_shm_msg_send(s->lifeline.fd, TDM_SHM_MSG_READY, 0,
					-1);
	text = whole(&s->proofs->own, &s->proofs->peer);
	ret = tdm_auth_prove(s->key, TDM_AUTH_SHM_CLIENT, &text, r.proof);
	return ret ? ret :
		     tdm_shm_packet_send(s->lifeline.fd, &r, sizeof(r), NULL,
					 0);
}

int tdm_shm_check_ready(const struct tdm_shm_session *s,
			const struct tdm_shm_msg *msg)
{
	struct tdm_auth_text text;

	if (!s->key || !msg->proven)
		return !s->key && !msg->proven;
	text = whole(&s->proofs->peer, &s->proofs->own);
	return tdm_auth_check(s->key, TDM_AUTH_SHM_CLIENT, &text, msg->proof);
}
