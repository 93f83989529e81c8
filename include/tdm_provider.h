/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The built-in peer's provider entry, and the events that a peer writes to the
 * EQ it imports, beyond fi_peer(3).
 */
#ifndef TDM_PROVIDER_H
#define TDM_PROVIDER_H

#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_prov.h>

/*
 * Returns the embedded shared-memory peer provider "tandem-shm",
 * shm/provider.c; static storage. Its objects can be opened only with FI_PEER:
 * each imports the owner's object.
 */
struct fi_provider *tdm_shm_provider(void);

/*
 * Why a pair does not use shared memory. The text for each is in the table of
 * fi_tandem(7), section REPORT.
 */
enum tdm_reason {
	TDM_REASON_NONE,	/* shared memory is used */
	TDM_REASON_HOST,	/* address of another network namespace */
	TDM_REASON_NO_LISTENER, /* nobody listens on the attach socket */
	TDM_REASON_UID,		/* the other process has another user id */
	TDM_REASON_VERSION,	/* incompatible record version */
	TDM_REASON_REFUSED,	/* the other side chose TCP */
	TDM_REASON_RESOURCE,	/* memory, descriptors or a system call */
	TDM_REASON_SEGMENT,	/* segment not sealed as required */
	TDM_REASON_DISABLED,	/* FI_TANDEM_SHM=off or endpoint option */
	/* another process holds our attach socket's name */
	TDM_REASON_NAME,
	/* messages go by the provider of FI_TANDEM_LOCAL */
	TDM_REASON_FOREIGN,
	TDM_REASON_FOLDER,    /* our folder of FI_TANDEM_SHM_DIR is unusable */
	TDM_REASON_NO_SOCKET, /* that folder has no socket of the peer */
	TDM_REASON_COUNT
};

/*
 * An event that a peer provider writes to the imported EQ: fi_eq_write(eq,
 * FI_NOTIFY, &event, sizeof(event), 0). entry.fid is the peer provider's
 * endpoint, entry.data the owner's address of the remote endpoint
 * (FI_ADDR_UNSPEC when it is not inserted).
 */
enum tdm_peer_event_type {
	TDM_PEER_UP,	  /* attached: the pair uses shared memory */
	TDM_PEER_REFUSED, /* attach failed; err and reason tell why */
	TDM_PEER_LOST,	  /* an attached pair has lost its peer */
};

struct tdm_peer_event {
	struct fi_eq_entry entry;
	uint32_t type;	  /* enum tdm_peer_event_type */
	uint32_t reason;  /* enum tdm_reason */
	int32_t err;	  /* positive fi_errno; 0 with TDM_PEER_UP */
	uint32_t addrlen; /* bytes used of addr */
	uint8_t addr[28]; /* the remote endpoint's sockaddr_in or _in6 */
	uint32_t cma;	  /* 1: large messages use process_vm_readv */
	/* TDM_PEER_LOST: counts of the session that ended, fi_ext_tandem.h. */
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
	uint32_t large_rx, large_tx; /* enum tdm_report_large */
};

#endif /* TDM_PROVIDER_H */
