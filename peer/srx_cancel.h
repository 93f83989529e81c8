/* SPDX-License-Identifier: BSD-2-Clause */
/* The index that srx_cancel.c keeps between calls of fi_cancel. */
#ifndef TDM_PEER_SRX_CANCEL_H
#define TDM_PEER_SRX_CANCEL_H

struct tdm_srx;

/* Free the index, if there is one. Lock: domain held. */
void tdm_srx_index_free(struct tdm_srx *srx);

#endif /* TDM_PEER_SRX_CANCEL_H */
