/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of an error, for fi_cq_strerror and fi_eq_strerror. These calls get a
 * prov_errno, which is a fabric errno value of either sign, and err_data, but
 * not its size. So a queue keeps what it said of the error that was read last:
 * for that error the text names the peer and the reason, without a look at
 * memory of the application's.
 */
#ifndef TDM_PEER_ERRSTR_H
#define TDM_PEER_ERRSTR_H

#include <netinet/in.h>
#include <stddef.h>

#include <rdma/fi_eq.h>

#include "base/base.h"

/* The socket address of a peer. */
union tdm_errpeer {
	struct sockaddr sa; /* sa_family AF_UNSPEC: unknown */
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* The error that was read last; all 0: none. */
struct tdm_errlast {
	const void *data; /* err_data as the application got it */
	int err, prov_errno;
	union tdm_errpeer peer;
};

/*
 * Set *@peer to the socket address in the @len bytes of @err_data, or, if they are
 * none, to unknown. Returns not 0 when they are one.
 */
int tdm_errpeer_set(union tdm_errpeer *peer, const void *err_data, size_t len);

/*
 * Give the application *@from, which fi_eq_readerr(3) returns: if *@to has a
 * buffer for error data, they are copied there; else it gets a pointer to those
 * of @from. Keeps in *@last what the application got.
 */
void tdm_errlast_eq(struct tdm_errlast *last, struct fi_eq_err_entry *to,
		    const struct fi_eq_err_entry *from);

/*
 * Returns a text for @prov_errno, with peer and reason if it and @err_data are
 * those of *@last: "Connection refused: 192.0.2.1:4711: reason". It is valid
 * until the next call of this thread. Also writes it to buf[@len], cut if need
 * be and NUL-terminated, unless @buf is NULL or @len 0.
 */
const char *tdm_errstr(const struct tdm_errlast *last, int prov_errno,
		       const void *err_data, char *buf, size_t len);

#endif /* TDM_PEER_ERRSTR_H */
