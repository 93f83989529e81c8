/* SPDX-License-Identifier: BSD-2-Clause */
/* How an operation ended, as the owner reports it: tdm_done.h. */
#ifndef TDM_RESULT_H
#define TDM_RESULT_H

#include <stddef.h>

#include <rdma/fi_errno.h>

struct sockaddr;

struct tdm_result {
	size_t len;	/* bytes placed in the buffer of a receive */
	size_t olen;	/* bytes of its message that did not fit */
	int err;	/* positive fi_errno; 0: success */
	int prov_errno; /* the transport's own reason, or 0 */
	/* of a failure: the remote endpoint; valid during the call; or NULL */
	const struct sockaddr *peer;
};

/* Returns the result of a success; @len bytes were placed. */
static inline struct tdm_result tdm_succeeded(size_t len)
{
	struct tdm_result r = { len, 0, 0, 0, NULL };

	return r;
}

/*
 * Returns the result of a failure with @err; @len bytes were placed before it.
 */
static inline struct tdm_result tdm_failed(int err, int prov_errno, size_t len)
{
	struct tdm_result r = { len, 0, err, prov_errno, NULL };

	return r;
}

/*
 * Returns the result of a message that was too long: @len bytes of it fitted
 * the receive, @olen did not.
 */
static inline struct tdm_result tdm_truncated(size_t len, size_t olen)
{
	struct tdm_result r = { len, olen, FI_ETRUNC, 0, NULL };

	return r;
}

/*
 * Returns @r with the address of the remote endpoint: @peer, an IPv4 or IPv6
 * socket address, or NULL.
 */
static inline struct tdm_result tdm_result_of(struct tdm_result r,
					      const void *peer)
{
	r.peer = (const struct sockaddr *)peer;
	return r;
}

#endif /* TDM_RESULT_H */
