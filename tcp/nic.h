/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_info->nic of a network interface. */
#ifndef TDM_TCP_NIC_H
#define TDM_TCP_NIC_H

#include <rdma/fabric.h>

struct tdm_iface;

/*
 * nic.c: the description of @i as fi_nic(3) defines it. The caller owns it and
 * frees it with fi_close() of its fid, as fi_freeinfo(3) does; FI_DUP copies
 * it. @bus: 1 to tell the place on the PCI bus. NULL: no memory.
 */
struct fid_nic *tdm_nic_open(const struct tdm_iface *i, int bus);

#endif /* TDM_TCP_NIC_H */
