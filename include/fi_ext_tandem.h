/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the provider tandem offers beyond the libfabric API: which path the
 * messages of an endpoint take to each peer, and why. Installed as
 * <rdma/fi_ext_tandem.h>; plain C, also usable from C++. Nothing else of
 * tandem is needed to compile against it.
 *
 * Documented in fi_tandem(7), section REPORT.
 */
#ifndef FI_EXT_TANDEM_H
#define FI_EXT_TANDEM_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

/*
 * Name for fi_open_ops(3) on an endpoint of tandem:
 *
 *	struct tdm_report_ops *ops;
 *	int ret = fi_open_ops(&ep->fid, TDM_REPORT_OPS, 0, (void **)&ops, NULL);
 *
 * Another provider, or a release of tandem without this interface, gives an
 * error (-FI_ENOSYS or -FI_EINVAL). *ops is static storage of the provider;
 * it stays valid while the endpoint is open.
 */
#define TDM_REPORT_OPS "tandem_report_1"

/* Values of tdm_report_path.path; never renumbered. */
enum tdm_report_kind {
	TDM_REPORT_NONE = 0, /* not decided yet: nothing was sent or received */
	TDM_REPORT_SHM = 1,  /* shared memory */
	TDM_REPORT_TCP = 2   /* TCP */
};

/* The path between one endpoint and one peer, as it is now. */
struct tdm_report_path {
	uint32_t path;		 /* enum tdm_report_kind */
	uint32_t reason;	 /* 0: none needed; else a row of the table of
				    reasons in fi_tandem(7), never renumbered */
	const char *reason_text; /* English, static storage, never NULL; ""
				    when reason is 0 */
	uint64_t tx_msgs;	 /* messages sent: their operations completed */
	uint64_t tx_bytes;	 /* payload of these, in bytes */
	uint64_t rx_msgs;	 /* messages received into a posted buffer */
	uint64_t rx_bytes;	 /* payload of these, in bytes */
};

struct tdm_report_ops {
	/*
	 * Bytes of this structure in the running provider. A member beyond it
	 * is not there: check before use.
	 */
	size_t size;

	/*
	 * How does @ep reach the peer @addr of its address vector?
	 *
	 * Out: *@out, written only on success. The counts belong to this
	 * endpoint and to the present life of the peer: they start at 0 when
	 * a peer comes back after it was lost. Two indices of one address
	 * (aliases) give the same answer.
	 * Returns 0, -FI_EINVAL when @addr is not in the address vector or
	 * @ep is not an endpoint of tandem, -FI_ENOAV when none is bound.
	 * Does not block, makes no progress, opens no connection. Safe in the
	 * threading level of the domain, like any call on @ep.
	 */
	int (*path)(struct fid_ep *ep, fi_addr_t addr,
		    struct tdm_report_path *out);
};

#endif /* FI_EXT_TANDEM_H */
