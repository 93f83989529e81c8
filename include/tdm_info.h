/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Freeing a struct fi_info. Copies may hold authorization keys, and
 * fi_freeinfo(3) does not overwrite the memory that it frees: all other code
 * calls tdm_info_free().
 */
#ifndef TDM_INFO_H
#define TDM_INFO_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "base/auth.h"

/* Overwrite the keys in @list, then free the list. @list may be NULL. */
static inline void tdm_info_free(struct fi_info *list)
{
	struct fi_info *i;

	for (i = list; i; i = i->next) {
		struct fi_domain_attr *d = i->domain_attr;
		struct fi_ep_attr *e = i->ep_attr;

		if (e && e->auth_key && tdm_auth_size_ok(e->auth_key_size))
			tdm_auth_wipe(e->auth_key, e->auth_key_size);
		if (d && d->auth_key && tdm_auth_size_ok(d->auth_key_size))
			tdm_auth_wipe(d->auth_key, d->auth_key_size);
	}
	fi_freeinfo(list);
}

#endif /* TDM_INFO_H */
