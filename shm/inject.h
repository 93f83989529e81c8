/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_inject(3) and its like, for shared memory. Locking: domain lock held. */
#ifndef TDM_SHM_INJECT_H
#define TDM_SHM_INJECT_H

#include <stddef.h>
#include <sys/types.h>

#include <rdma/fabric.h>

/*
 * The inject() and injectdata() calls of struct fi_ops_msg and fi_ops_tagged: send
 * @len bytes at @buf, which the caller may reuse at return. @buf is not checked: the
 * owner has done that. @data: remote CQ data. Errors: those of tdm_shm_tx_send(), and
 * -FI_EMSGSIZE.
 */
ssize_t tdm_shm_inject(struct fid_ep *ep, const void *buf, size_t len,
		       fi_addr_t addr);
ssize_t tdm_shm_tinject(struct fid_ep *ep, const void *buf, size_t len,
			fi_addr_t addr, uint64_t tag);
ssize_t tdm_shm_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			   uint64_t data, fi_addr_t addr);
ssize_t tdm_shm_tinjectdata(struct fid_ep *ep, const void *buf, size_t len,
			    uint64_t data, fi_addr_t addr, uint64_t tag);

#endif /* TDM_SHM_INJECT_H */
