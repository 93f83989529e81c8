/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of a capability that is not offered: fi_collective(3). libfabric
 * calls through the tables without a check, so an application that makes such a
 * call gets -FI_ENOSYS.
 *
 * No state: no lock.
 */
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>

#include "tcp/ep.h"

#define NO(ret, name, ...)                                                     \
	static ret no_##name(__VA_ARGS__)                                      \
	{                                                                      \
		return -FI_EOPNOTSUPP;                                         \
	}

/* clang-format off */

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
