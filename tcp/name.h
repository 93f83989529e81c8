/* SPDX-License-Identifier: BSD-2-Clause */
/* The address that an endpoint is bound to. */
#ifndef TDM_TCP_NAME_H
#define TDM_TCP_NAME_H

struct tdm_ep;

/* The address to bind to: the info's source, or the best interface. */
int tdm_ep_own_name(struct tdm_ep *ep);

#endif /* TDM_TCP_NAME_H */
