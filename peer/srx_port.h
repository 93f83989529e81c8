/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port is the export of a receive side to one transport of one endpoint.
 * Included by srx*.c only.
 */
#ifndef TDM_PEER_SRX_PORT_H
#define TDM_PEER_SRX_PORT_H

#include "base/list.h"
#include "peer/srx.h"
#include "tdm_done.h"
#include "tdm_source.h"

/* An export, with what the calls on it need. */
struct tdm_srx_port {
	struct fid_peer_srx fid;
	struct tdm_srx *srx;
	const struct tdm_done *done; /* of its endpoint */
	/* the calls behind those of srx_source.c */
	struct fi_ops_srx_owner *plain_ops;
	int offers; /* 1: the transport passes struct tdm_offer, tdm_source.h */
};

/* The exports of a shared receive side for the transports of one endpoint. */
struct tdm_srx_seat {
	struct tdm_srx_port port[TDM_TRANSPORTS];
	struct tdm_done done;
	struct tdm_list node; /* srx->seats */
};

static inline struct tdm_srx *tdm_srx_of(struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_srx_port, fid)->srx;
}

/* Returns where messages that arrive through @fid are reported. */
static inline const struct tdm_done *
tdm_srx_port_done(const struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_srx_port, fid)->done;
}

/* srx_export.c */

/*
 * Make @port an export of @srx, for an endpoint whose completions and counts go to
 * the objects of @done.
 */
void tdm_srx_port_init(struct tdm_srx *srx, struct tdm_srx_port *port,
		       const struct tdm_done *done);

/* Choose the calls of @port again. Call it after its done has changed. */
void tdm_srx_port_renew(struct tdm_srx_port *port);

/* srx_source.c */

extern struct fi_ops_srx_owner tdm_srx_told_ops;
extern struct tdm_source_ops tdm_srx_source_ops;

#endif /* TDM_PEER_SRX_PORT_H */
