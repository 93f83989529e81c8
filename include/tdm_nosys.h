/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stubs for calls that an object does not offer, shared by all ops tables.
 * libfabric exports no such stubs, and an empty slot would crash the
 * application. Named tdm_no_<table>_<call>; each returns -FI_ENOSYS.
 */
#ifndef TDM_NOSYS_H
#define TDM_NOSYS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "base/base.h"

#define TDM_NO(ret, name, ...)                                                 \
	static inline tdm_unused ret tdm_no_##name(__VA_ARGS__)                \
	{                                                                      \
		return -FI_ENOSYS;                                             \
	}

/* clang-format off */

/* struct fi_ops */
TDM_NO(int, fi_close, struct fid *a0)
TDM_NO(int, fi_bind, struct fid *a0, struct fid *a1, uint64_t a2)
TDM_NO(int, fi_control, struct fid *a0, int a1, void *a2)
TDM_NO(int, fi_ops_open, struct fid *a0, const char *a1, uint64_t a2,
        void **a3, void *a4)
TDM_NO(int, fi_tostr, const struct fid *a0, char *a1, size_t a2)
TDM_NO(int, fi_ops_set, struct fid *a0, const char *a1, uint64_t a2, void *a3,
        void *a4)

/* struct fi_ops_fabric */
TDM_NO(int, fabric_passive_ep, struct fid_fabric *a0, struct fi_info *a1,
        struct fid_pep **a2, void *a3)
TDM_NO(int, fabric_eq_open, struct fid_fabric *a0, struct fi_eq_attr *a1,
        struct fid_eq **a2, void *a3)
TDM_NO(int, fabric_wait_open, struct fid_fabric *a0, struct fi_wait_attr *a1,
        struct fid_wait **a2)

/* struct fi_ops_domain */
TDM_NO(int, domain_scalable_ep, struct fid_domain *a0, struct fi_info *a1,
        struct fid_ep **a2, void *a3)
TDM_NO(int, domain_poll_open, struct fid_domain *a0, struct fi_poll_attr *a1,
        struct fid_poll **a2)
TDM_NO(int, domain_stx_ctx, struct fid_domain *a0, struct fi_tx_attr *a1,
        struct fid_stx **a2, void *a3)
TDM_NO(int, domain_srx_ctx, struct fid_domain *a0, struct fi_rx_attr *a1,
        struct fid_ep **a2, void *a3)
TDM_NO(int, domain_query_collective, struct fid_domain *a0,
        enum fi_collective_op a1, struct fi_collective_attr *a2, uint64_t a3)

/* struct fi_ops_mr */
TDM_NO(int, mr_reg, struct fid *a0, const void *a1, size_t a2, uint64_t a3,
        uint64_t a4, uint64_t a5, uint64_t a6, struct fid_mr **a7, void *a8)
TDM_NO(int, mr_regv, struct fid *a0, const struct iovec *a1, size_t a2,
        uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, struct fid_mr **a7,
        void *a8)
TDM_NO(int, mr_regattr, struct fid *a0, const struct fi_mr_attr *a1,
        uint64_t a2, struct fid_mr **a3)

/* struct fi_ops_av */
TDM_NO(int, av_insertsvc, struct fid_av *a0, const char *a1, const char *a2,
        fi_addr_t *a3, uint64_t a4, void *a5)
TDM_NO(int, av_insertsym, struct fid_av *a0, const char *a1, size_t a2,
        const char *a3, size_t a4, fi_addr_t *a5, uint64_t a6, void *a7)
TDM_NO(int, av_av_set, struct fid_av *a0, struct fi_av_set_attr *a1,
        struct fid_av_set **a2, void *a3)
TDM_NO(int, av_insert_auth_key, struct fid_av *a0, const void *a1, size_t a2,
        fi_addr_t *a3, uint64_t a4)
TDM_NO(int, av_lookup_auth_key, struct fid_av *a0, fi_addr_t a1, void *a2,
        size_t *a3)
TDM_NO(int, av_set_user_id, struct fid_av *a0, fi_addr_t a1, fi_addr_t a2,
        uint64_t a3)

/* struct fi_ops_ep */
TDM_NO(ssize_t, ep_cancel, fid_t a0, void *a1)
TDM_NO(int, ep_getopt, fid_t a0, int a1, int a2, void *a3, size_t *a4)
TDM_NO(int, ep_setopt, fid_t a0, int a1, int a2, const void *a3, size_t a4)
TDM_NO(int, ep_tx_ctx, struct fid_ep *a0, int a1, struct fi_tx_attr *a2,
        struct fid_ep **a3, void *a4)
TDM_NO(int, ep_rx_ctx, struct fid_ep *a0, int a1, struct fi_rx_attr *a2,
        struct fid_ep **a3, void *a4)
TDM_NO(ssize_t, ep_size_left, struct fid_ep *a0)

/* struct fi_ops_msg */
TDM_NO(ssize_t, msg_recv, struct fid_ep *a0, void *a1, size_t a2, void *a3,
        fi_addr_t a4, void *a5)
TDM_NO(ssize_t, msg_recvv, struct fid_ep *a0, const struct iovec *a1,
        void **a2, size_t a3, fi_addr_t a4, void *a5)
TDM_NO(ssize_t, msg_recvmsg, struct fid_ep *a0, const struct fi_msg *a1,
        uint64_t a2)

/* struct fi_ops_tagged */
TDM_NO(ssize_t, tagged_recv, struct fid_ep *a0, void *a1, size_t a2, void *a3,
        fi_addr_t a4, uint64_t a5, uint64_t a6, void *a7)
TDM_NO(ssize_t, tagged_recvv, struct fid_ep *a0, const struct iovec *a1,
        void **a2, size_t a3, fi_addr_t a4, uint64_t a5, uint64_t a6, void *a7)
TDM_NO(ssize_t, tagged_recvmsg, struct fid_ep *a0,
        const struct fi_msg_tagged *a1, uint64_t a2)

/* struct fi_ops_cm */
TDM_NO(int, cm_setname, fid_t a0, void *a1, size_t a2)
TDM_NO(int, cm_getname, fid_t a0, void *a1, size_t *a2)
TDM_NO(int, cm_getpeer, struct fid_ep *a0, void *a1, size_t *a2)
TDM_NO(int, cm_connect, struct fid_ep *a0, const void *a1, const void *a2,
        size_t a3)
TDM_NO(int, cm_listen, struct fid_pep *a0)
TDM_NO(int, cm_accept, struct fid_ep *a0, const void *a1, size_t a2)
TDM_NO(int, cm_reject, struct fid_pep *a0, fid_t a1, const void *a2, size_t a3)
TDM_NO(int, cm_shutdown, struct fid_ep *a0, uint64_t a1)
TDM_NO(int, cm_join, struct fid_ep *a0, const void *a1, uint64_t a2,
        struct fid_mc **a3, void *a4)

/* struct fi_ops_cq */
TDM_NO(ssize_t, cq_readfrom, struct fid_cq *a0, void *a1, size_t a2,
        fi_addr_t *a3)
TDM_NO(ssize_t, cq_readerr, struct fid_cq *a0, struct fi_cq_err_entry *a1,
        uint64_t a2)
TDM_NO(ssize_t, cq_sread, struct fid_cq *a0, void *a1, size_t a2,
        const void *a3, int a4)
TDM_NO(ssize_t, cq_sreadfrom, struct fid_cq *a0, void *a1, size_t a2,
        fi_addr_t *a3, const void *a4, int a5)
TDM_NO(int, cq_signal, struct fid_cq *a0)

/* struct fi_ops_eq */
TDM_NO(ssize_t, eq_read, struct fid_eq *a0, uint32_t *a1, void *a2, size_t a3,
        uint64_t a4)
TDM_NO(ssize_t, eq_readerr, struct fid_eq *a0, struct fi_eq_err_entry *a1,
        uint64_t a2)
TDM_NO(ssize_t, eq_write, struct fid_eq *a0, uint32_t a1, const void *a2,
        size_t a3, uint64_t a4)
TDM_NO(ssize_t, eq_sread, struct fid_eq *a0, uint32_t *a1, void *a2, size_t a3,
        int a4, uint64_t a5)

/* struct fi_ops_cntr */
TDM_NO(int, cntr_add, struct fid_cntr *a0, uint64_t a1)
TDM_NO(int, cntr_wait, struct fid_cntr *a0, uint64_t a1, int a2)

/* clang-format on */

#undef TDM_NO

#endif /* TDM_NOSYS_H */
