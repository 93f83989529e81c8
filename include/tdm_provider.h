/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What owner and peer know of each other beyond fi_peer(3): the parameters,
 * the built-in peer's provider entry, and the shape of the events a peer
 * writes to the EQ it imports.
 */
#ifndef TDM_PROVIDER_H
#define TDM_PROVIDER_H

#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_prov.h>

enum tdm_shm_mode {
	TDM_SHM_AUTO, /* shared memory where it can be had */
	TDM_SHM_OFF,  /* none sent, none accepted */
	TDM_SHM_ONLY, /* peers that cannot be reached by it are unreachable */
};

/*
 * The FI_TANDEM_* parameters, read once when the provider loads, clamped.
 * fi_tandem(7) documents each. Never written afterwards.
 */
struct tdm_env {
	enum tdm_shm_mode shm;
	const char *iface; /* interface name or NULL */
	uint16_t port_low; /* 0: any port */
	uint16_t port_high;
	unsigned conn_timeout_ms; /* 0: never give up */
	unsigned peer_timeout_ms; /* 0: never */
	size_t eager_bytes;	  /* TCP: largest message sent without RTS */
	size_t shm_eager_bytes;	  /* shm: largest message copied via ring */
	size_t unexp_max_bytes;	  /* unexpected messages held per endpoint */
	size_t inject_max_bytes;  /* injected messages held per process */
	int cma;		  /* 0: never use process_vm_readv */
	int report;		  /* 1: table of peers at endpoint close */
	const char *stand_in;	  /* name of another provider, or NULL */
};

extern struct tdm_env tdm_env;

/*
 * The embedded shared-memory peer. Static storage. It opens only with FI_PEER:
 * every object it needs is imported from the owner that calls it.
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
	TDM_REASON_NAME,	/* somebody else has our attach socket's name */
	TDM_REASON_COUNT
};

/*
 * Event a peer writes to the imported EQ: fi_eq_write(eq, FI_NOTIFY, &event,
 * sizeof(event), 0). entry.fid is the peer's endpoint, entry.data the pair's
 * address in the owner's space (FI_ADDR_UNSPEC when it is not inserted).
 */
enum tdm_peer_event_type {
	TDM_PEER_UP,	  /* attached; the pair uses the peer */
	TDM_PEER_REFUSED, /* cannot be attached: err and reason say why */
	TDM_PEER_LOST,	  /* was attached, is gone: err says how */
};

struct tdm_peer_event {
	struct fi_eq_entry entry;
	uint32_t type;	  /* enum tdm_peer_event_type */
	uint32_t reason;  /* enum tdm_reason */
	int32_t err;	  /* positive fi_errno; 0 with TDM_PEER_UP */
	uint32_t addrlen; /* bytes used of addr */
	uint8_t addr[28]; /* the remote endpoint's sockaddr_in or _in6 */
	uint32_t cma;	  /* 1: large messages use process_vm_readv */
	/* TDM_PEER_LOST: of the session that ended, fi_ext_tandem.h. */
	uint64_t tx_msgs, tx_bytes, rx_msgs, rx_bytes;
	uint32_t large_rx, large_tx; /* enum tdm_report_large */
};

#endif /* TDM_PROVIDER_H */
