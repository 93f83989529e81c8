/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the receive side: what srx_cancel.c remembers between calls. */
#ifndef TDM_PEER_SRX_CANCEL_H
#define TDM_PEER_SRX_CANCEL_H

struct tdm_srx;

/* Free what earlier searches have left. Domain lock held. */
void tdm_srx_index_free(struct tdm_srx *srx);

#endif /* TDM_PEER_SRX_CANCEL_H */
