/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exports of a receive side: a port is what one transport of one endpoint
 * sees of it. Included by srx*.c only.
 */
#ifndef TDM_PEER_SRX_PORT_H
#define TDM_PEER_SRX_PORT_H

#include "peer/srx.h"
#include "base/list.h"
#include "tdm_done.h"
#include "tdm_source.h"

/* One export. */
struct tdm_srx_port {
	struct fid_peer_srx fid;
	struct tdm_srx *srx;
	const struct tdm_done *done; /* of the endpoint it was made for */
	struct fi_ops_srx_owner *plain_ops; /* but for tdm_source.h */
	int offers; /* its transport says whose messages it has: tdm_source.h */
};

/* An endpoint's exports of a receive side that others use as well. */
struct tdm_srx_seat {
	struct tdm_srx_port port[TDM_TRANSPORTS];
	struct tdm_done done;
	struct tdm_list node; /* srx->seats */
};

static inline struct tdm_srx *tdm_srx_of(struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_srx_port, fid)->srx;
}

/* Where what came by @fid ends. */
static inline const struct tdm_done *
tdm_srx_port_done(const struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_srx_port, fid)->done;
}

/* srx_export.c */

/* Make @port an export of @srx, for an endpoint whose receives end at @done. */
void tdm_srx_port_init(struct tdm_srx *srx, struct tdm_srx_port *port,
		       const struct tdm_done *done);

/* The done of @port changed. */
void tdm_srx_port_renew(struct tdm_srx_port *port);

/* srx_source.c */

extern struct fi_ops_srx_owner tdm_srx_told_ops;
extern struct tdm_source_ops tdm_srx_source_ops;

#endif /* TDM_PEER_SRX_PORT_H */
