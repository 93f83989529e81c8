/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_info->nic of a network interface. */
#ifndef TDM_TCP_NIC_H
#define TDM_TCP_NIC_H

#include <rdma/fabric.h>

struct tdm_iface;

/*
 * Allocates the description of @i as fi_nic(3) defines it. The caller frees it
 * with fi_close() of its fid, as fi_freeinfo(3) does; FI_DUP copies it. @bus 1:
 * it tells the place on the PCI bus. NULL: out of memory.
 */
struct fid_nic *tdm_nic_open(const struct tdm_iface *i, int bus);

#endif /* TDM_TCP_NIC_H */
