/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of a prov_errno, for fi_cq_strerror and fi_eq_strerror. The codes are
 * fabric errno values of either sign: the transport's own reason, or, where an
 * entry is written without one, its err. err_data adds nothing to them.
 */
#ifndef TDM_PEER_ERRSTR_H
#define TDM_PEER_ERRSTR_H

#include <stdio.h>

#include <rdma/fi_errno.h>

/*
 * Returns a static text for @prov_errno. Also writes it to buf[len], cut if
 * need be and NUL-terminated, unless @buf is NULL or @len 0.
 */
static inline const char *tdm_errstr(int prov_errno, char *buf, size_t len)
{
	const char *text = fi_strerror(prov_errno);

	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}

#endif /* TDM_PEER_ERRSTR_H */
