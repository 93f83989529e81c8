/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabrics of the owner, fi_fabric(3). */
#ifndef TDM_TCP_FABRIC_H
#define TDM_TCP_FABRIC_H

#include <rdma/fabric.h>

#include "base/list.h"

struct tdm_import_eq;

struct tdm_fabric {
	struct fid_fabric fid;
	char *name;   /* of the network; NULL: of all */
	size_t users; /* domains, EQs and wait sets; atomic */
	/* the EQ imported last and not closed, or NULL; atomic */
	struct tdm_import_eq *lent_eq;
	struct tdm_list opened; /* in the list of opened.c */
};

/* fi_fabric(3) for this provider; the core's struct fi_provider.fabric. */
int tdm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

#endif /* TDM_TCP_FABRIC_H */
