/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of capabilities that are not offered: fi_atomic(3) and
 * fi_collective(3). An application that makes them although it was granted
 * neither is told so; libfabric calls through the tables without a look.
 */
#include "tcp/ep.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>

#define NO(ret, name, ...)                                                     \
	static ret no_##name(__VA_ARGS__)                                      \
	{                                                                      \
		return -FI_EOPNOTSUPP;                                         \
	}

/* clang-format off */

NO(ssize_t, write, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        fi_addr_t a4, uint64_t a5, uint64_t a6, enum fi_datatype a7,
        enum fi_op a8, void *a9)
NO(ssize_t, writev, struct fid_ep *a0, const struct fi_ioc *a1, void **a2,
        size_t a3, fi_addr_t a4, uint64_t a5, uint64_t a6, enum fi_datatype a7,
        enum fi_op a8, void *a9)
NO(ssize_t, writemsg, struct fid_ep *a0, const struct fi_msg_atomic *a1,
        uint64_t a2)
NO(ssize_t, inject, struct fid_ep *a0, const void *a1, size_t a2, fi_addr_t a3,
        uint64_t a4, uint64_t a5, enum fi_datatype a6, enum fi_op a7)
NO(ssize_t, readwrite, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        void *a4, void *a5, fi_addr_t a6, uint64_t a7, uint64_t a8,
        enum fi_datatype a9, enum fi_op a10, void *a11)
NO(ssize_t, readwritev, struct fid_ep *a0, const struct fi_ioc *a1, void **a2,
        size_t a3, struct fi_ioc *a4, void **a5, size_t a6, fi_addr_t a7,
        uint64_t a8, uint64_t a9, enum fi_datatype a10, enum fi_op a11,
        void *a12)
NO(ssize_t, readwritemsg, struct fid_ep *a0, const struct fi_msg_atomic *a1,
        struct fi_ioc *a2, void **a3, size_t a4, uint64_t a5)
NO(ssize_t, compwrite, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        const void *a4, void *a5, void *a6, void *a7, fi_addr_t a8,
        uint64_t a9, uint64_t a10, enum fi_datatype a11, enum fi_op a12,
        void *a13)
NO(ssize_t, compwritev, struct fid_ep *a0, const struct fi_ioc *a1, void **a2,
        size_t a3, const struct fi_ioc *a4, void **a5, size_t a6,
        struct fi_ioc *a7, void **a8, size_t a9, fi_addr_t a10, uint64_t a11,
        uint64_t a12, enum fi_datatype a13, enum fi_op a14, void *a15)
NO(ssize_t, compwritemsg, struct fid_ep *a0, const struct fi_msg_atomic *a1,
        const struct fi_ioc *a2, void **a3, size_t a4, struct fi_ioc *a5,
        void **a6, size_t a7, uint64_t a8)
NO(int, valid, struct fid_ep *a0, enum fi_datatype a1, enum fi_op a2,
        size_t *a3)

NO(ssize_t, barrier, struct fid_ep *a0, fi_addr_t a1, void *a2)
NO(ssize_t, broadcast, struct fid_ep *a0, void *a1, size_t a2, void *a3,
        fi_addr_t a4, fi_addr_t a5, enum fi_datatype a6, uint64_t a7, void *a8)
NO(ssize_t, gather_all, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        void *a4, void *a5, fi_addr_t a6, enum fi_datatype a7, uint64_t a8,
        void *a9)
NO(ssize_t, reduce_all, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        void *a4, void *a5, fi_addr_t a6, enum fi_datatype a7, enum fi_op a8,
        uint64_t a9, void *a10)
NO(ssize_t, reduce, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        void *a4, void *a5, fi_addr_t a6, fi_addr_t a7, enum fi_datatype a8,
        enum fi_op a9, uint64_t a10, void *a11)
NO(ssize_t, gather, struct fid_ep *a0, const void *a1, size_t a2, void *a3,
        void *a4, void *a5, fi_addr_t a6, fi_addr_t a7, enum fi_datatype a8,
        uint64_t a9, void *a10)
NO(ssize_t, msg, struct fid_ep *a0, const struct fi_msg_collective *a1,
        struct fi_ioc *a2, void **a3, size_t a4, uint64_t a5)
NO(ssize_t, barrier2, struct fid_ep *a0, fi_addr_t a1, uint64_t a2, void *a3)

/* clang-format on */

struct fi_ops_atomic tdm_no_atomic_ops = {
	.size = sizeof(tdm_no_atomic_ops),
	.write = no_write,
	.writev = no_writev,
	.writemsg = no_writemsg,
	.inject = no_inject,
	.readwrite = no_readwrite,
	.readwritev = no_readwritev,
	.readwritemsg = no_readwritemsg,
	.compwrite = no_compwrite,
	.compwritev = no_compwritev,
	.compwritemsg = no_compwritemsg,
	.writevalid = no_valid,
	.readwritevalid = no_valid,
	.compwritevalid = no_valid,
};

struct fi_ops_collective tdm_no_collective_ops = {
	.size = sizeof(tdm_no_collective_ops),
	.barrier = no_barrier,
	.broadcast = no_broadcast,
	.alltoall = no_gather_all,
	.allreduce = no_reduce_all,
	.allgather = no_gather_all,
	.reduce_scatter = no_reduce_all,
	.reduce = no_reduce,
	.scatter = no_gather,
	.gather = no_gather,
	.msg = no_msg,
	.barrier2 = no_barrier2,
};
