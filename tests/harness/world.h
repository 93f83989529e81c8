/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small world of endpoints in one process, opened through libfabric as an
 * application would, and driven by one thread that polls all queues (manual
 * progress). Plain C, so that GoogleTest bodies and C programs share it.
 *
 * The path is chosen for the whole process (TANDEM_TEST_PATH): "local" (shared
 * memory), "remote" (TCP only) or "mixed" (one endpoint of the world keeps to
 * TCP, so that the others are reached by both tiers at once).
 *
 * Nothing here sleeps: every wait polls until it is fulfilled or the deadline
 * is over, and then returns -FI_ETIMEDOUT.
 */
#ifndef TDT_WORLD_H
#define TDT_WORLD_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TDT_MAX_EPS = 16, TDT_NAME_BYTES = 128 };

enum tdt_path { TDT_LOCAL, TDT_REMOTE, TDT_MIXED };

/* The API version the tests speak. */
#define TDT_API FI_VERSION(1, 21)

enum tdt_path tdt_path(void);

/* TANDEM_TEST_PROV, or "tandem". */
const char *tdt_prov_name(void);

/*
 * Set the environment of the path, and FI_PROVIDER_PATH to the build tree's
 * module when it is unset. Before the first libfabric call of the process.
 * Does nothing in a child: it has its parent's environment.
 */
void tdt_environment(void);

/* The attributes of a world; tdt_attr_init() sets the defaults. */
struct tdt_attr {
	size_t eps; /* endpoints; each other endpoint is in each AV */
	enum fi_ep_type type;
	uint64_t caps;
	uint64_t tx_op_flags, rx_op_flags;
	enum fi_cq_format format;
	enum fi_wait_obj wait; /* of the CQs */
	enum fi_wait_obj cntr_wait;
	enum fi_wait_obj set; /* a wait set per endpoint, with its queues */
	size_t cq_size;	      /* entries; 0: provider's choice */
	size_t tx_size, rx_size;
	uint32_t tclass, domain_tclass;
	uint64_t tx_bind, rx_bind; /* further CQ bind flags */
	enum fi_threading threading;
	enum fi_progress progress; /* control and data */
	int one_cq;		   /* both directions in one CQ */
	int no_cq;		   /* nothing bound */
	int cntrs;		   /* bind counters */
	int eq;			   /* bind an EQ */
	enum fi_wait_obj eq_wait;  /* of the EQ */
	int one_domain;		   /* all endpoints in one domain and one AV */
	int no_enable;		   /* leave them disabled, with empty AVs */
	int no_insert;		   /* leave the AVs empty */
	int no_tcp_only;	   /* mixed: do not keep the last one to TCP */
	int tcp_last;		   /* keep the last one to TCP in any case */
	uint64_t av_flags;	   /* fi_av_open */
	const char *av_name;	   /* all AVs are this one: no_insert */
	uint32_t max_group;	   /* max_group_id of the domains */
	const void *key;	   /* auth_key of the domains, key_size bytes */
	size_t key_size; /* or FI_AV_AUTH_KEY: no_enable goes with it */
	uint32_t addr_format;
	const char *node;	  /* source address, "127.0.0.1" */
	const char *service;	  /* port; NULL: any */
	struct fi_provider *prov; /* linked in: not through libfabric's core */
};

/* A completion as read, of whichever format; err is 0 for a success. */
struct tdt_comp {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src; /* from readfrom, receive CQ only */
	int rx;	       /* read from the receive CQ */
	int err;       /* positive fi_errno of an error entry */
	int prov_errno;
	size_t olen;
	uint8_t err_data[TDT_NAME_BYTES]; /* cut to that */
	size_t err_data_size;		  /* of what there was */
};

struct tdt_ep {
	struct tdt_world *world;
	size_t index;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	fi_addr_t *map_addr; /* of a named AV */
	struct fid_cq *tx_cq, *rx_cq;
	struct fid_cntr *tx_cntr, *rx_cntr;
	struct fid_eq *eq;
	struct fid_wait *set;
	struct fid_ep *ep;
	uint8_t name[TDT_NAME_BYTES];
	size_t namelen;
	fi_addr_t peers[TDT_MAX_EPS]; /* index: endpoint of the world */
	struct tdt_comp *comps; /* read and not yet waited for, in order */
	size_t comp_count, comp_room;
};

struct tdt_world {
	struct tdt_attr attr;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct tdt_ep eps[TDT_MAX_EPS];
	size_t count;
	int bad; /* first unexpected result of a CQ read, negative */
	char error_text[256]; /* fi_cq_strerror(3) of the error read last */
};

/* Two endpoints, three when the path is mixed; see the .c for the rest. */
void tdt_attr_init(struct tdt_attr *attr);

/* Hints for @attr; the caller frees them with fi_freeinfo(). */
struct fi_info *tdt_hints(const struct tdt_attr *attr);

/*
 * Out: *@world, to be closed by tdt_world_close(). Errors: of the call that
 * failed; tdt_error() says which.
 */
int tdt_world_open(const struct tdt_attr *attr, struct tdt_world **world);

/* Close everything; the first error of an fi_close is returned. */
int tdt_world_close(struct tdt_world *world);

/* Close one endpoint and its queues; others stay. */
int tdt_ep_close(struct tdt_ep *ep);

/* Open endpoint @ep again after tdt_ep_close(), on a new address. */
int tdt_ep_open(struct tdt_ep *ep);

/* fi_enable, fi_getname, insert all others into the AV. */
int tdt_ep_enable(struct tdt_ep *ep);

/* The call that failed last, for messages. */
const char *tdt_error(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_WORLD_H */
