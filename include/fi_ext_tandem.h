/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An extension of the libfabric API by the provider tandem: which path the
 * messages of an endpoint take to each peer, and why. Installed as
 * <rdma/fi_ext_tandem.h>; plain C, also usable from C++. Nothing else of
 * tandem is needed to compile against it.
 *
 * Documented in fi_tandem_report(3), and in fi_tandem(7), section REPORT.
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
 *
 * Both structures below may grow at their ends in later releases; each says
 * its own size, so that a program and a provider of different releases agree
 * on the members that both know. The name changes only if a member changes.
 */
#define TDM_REPORT_OPS "tandem_report_2"

/* Values of tdm_report_path.path; never renumbered. */
enum tdm_report_kind {
	TDM_REPORT_NONE = 0, /* no path has been agreed with the peer */
	TDM_REPORT_SHM = 1,  /* shared memory */
	TDM_REPORT_TCP = 2,  /* TCP */
	/* messages by the provider of FI_TANDEM_LOCAL, all else by TCP */
	TDM_REPORT_FOREIGN = 3
};

/*
 * Services that the provider of FI_TANDEM_LOCAL lacks, and who gives them instead:
 * bits of tdm_report_path.lacks; never renumbered.
 */
enum tdm_report_lack {
	TDM_REPORT_LACKS_REGIONS = 1, /* one-sided and atomic operations: TCP */
	TDM_REPORT_LACKS_DEATH = 2,   /* notice of a lost peer: TCP */
	TDM_REPORT_LACKS_WAKING = 4,  /* it is polled each millisecond */
	TDM_REPORT_LACKS_CANCEL = 8,  /* sends cannot be cancelled */
	TDM_REPORT_LACKS_USER_IDS = 16 /* sources are looked up by tandem */
};

/* Values of tdm_report_path.state; never renumbered. */
enum tdm_report_state {
	TDM_REPORT_IDLE = 0,   /* no path has been agreed */
	TDM_REPORT_IN_USE = 1, /* the path is in use */
	TDM_REPORT_CLOSED = 2, /* was in use; the peer closed its endpoint */
	TDM_REPORT_LOST = 3    /* was in use; it failed with the error err */
};

/*
 * How the payload of large messages gets from one process to the other through
 * shared memory; never renumbered.
 */
enum tdm_report_large {
	TDM_REPORT_LARGE_NONE = 0,   /* not known yet, or another path */
	TDM_REPORT_LARGE_CMA = 1,    /* read by process_vm_readv(2) */
	TDM_REPORT_LARGE_BOUNCE = 2, /* copied through a shared area */
	TDM_REPORT_LARGE_COPY = 3    /* sent to the endpoint itself: one copy */
};

/* The traffic of one path. */
struct tdm_report_counts {
	uint64_t tx_msgs;  /* sent: their operations completed */
	uint64_t tx_bytes; /* their payload */
	uint64_t rx_msgs;  /* received into a posted buffer */
	uint64_t rx_bytes; /* their payload */
};

/*
 * The path between one endpoint and one peer. A life of a path lasts from the
 * agreement of both sides until the peer closes its endpoint or is lost; when
 * the peer comes back, the next life begins.
 */
struct tdm_report_path {
	size_t size;		 /* in: sizeof(struct tdm_report_path) of the
				    caller; out: bytes that were written */
	uint32_t path;		 /* enum tdm_report_kind; of the last life when
				    it has ended */
	uint32_t reason;	 /* 0: none needed; else a row of the table of
				    reasons in fi_tandem(7), never renumbered */
	const char *reason_text; /* English, static storage, never NULL; ""
				    when reason is 0 */
	uint64_t tx_msgs;	 /* the sums of shm, tcp and foreign, below */
	uint64_t tx_bytes;
	uint64_t rx_msgs;
	uint64_t rx_bytes;
	uint32_t state; /* enum tdm_report_state */
	int32_t err;	/* positive fi_errno; TDM_REPORT_LOST only */
	/* enum tdm_report_large: of what the peer sends, in the last life */
	uint32_t large_rx;
	uint32_t large_tx; /* of what this endpoint sends; known after the
			      first large message */
	uint64_t lives;	   /* lives the path has had, this one included */
	struct tdm_report_counts shm; /* of all lives, by path */
	struct tdm_report_counts tcp;
	struct tdm_report_counts foreign;
	const char *provider; /* TDM_REPORT_FOREIGN: its name, else NULL */
	uint64_t lacks;	      /* enum tdm_report_lack, with provider */
};

struct tdm_report_ops {
	/*
	 * Bytes of this structure in the running provider. A member beyond it
	 * is not there: check before use.
	 */
	size_t size;

	/*
	 * Tells how @ep reaches the peer @addr of its address vector.
	 *
	 * In: out->size, the bytes of *@out. Out: so many bytes of the answer;
	 * nothing on failure. The counts belong to this endpoint and to all lives of the
	 * peer since its address was inserted. Two indices of one address
	 * (duplicates) give the same answer.
	 * Returns 0, -FI_EINVAL when @addr is not in the address vector, @ep
	 * is not an endpoint of tandem or out->size ends before the end of
	 * reason_text, -FI_ENOAV when no address vector is bound.
	 * Does not block, makes no progress, opens no connection. Safe in the
	 * threading level of the domain, like any call on @ep.
	 */
	int (*path)(struct fid_ep *ep, fi_addr_t addr,
		    struct tdm_report_path *out);
};

/*
 * Variables of a profile, fi_profile(3), beside those of libfabric; all of type
 * FI_UINT64. fi_tandem(7), section PROFILES. Never renumbered.
 */
enum tdm_profile_var {
	TDM_VAR_POSTED_RECVS = (0x7a4 << 16) + 1, /* wait for a message */
	TDM_VAR_UNEXP_BYTES, /* of unexpected messages, and promised to peers */
	TDM_VAR_SHM_PEERS,   /* to which a path by shared memory is in use */
	TDM_VAR_TCP_PEERS,
	/* operations that completed, one-sided included, and their payload */
	TDM_VAR_SENT_MSGS,
	TDM_VAR_SENT_BYTES,
	TDM_VAR_RECEIVED_MSGS,
	TDM_VAR_RECEIVED_BYTES,
	TDM_VAR_QUEUED_OPS,	/* operations of which nothing was sent */
	TDM_VAR_FAILED_CONNECTS /* attempts to connect that failed */
};

#endif /* FI_EXT_TANDEM_H */
