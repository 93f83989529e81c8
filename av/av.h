/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector of the owner, fi_av(3): a dense table from fi_addr_t to the
 * socket address of an endpoint, and back. Knows nothing of endpoints beyond
 * the list of those bound to it, and has no connection or peer state: an
 * endpoint makes a pair at first use.
 *
 * Entries are 16 bytes for IPv4; the reverse lookup is an open-addressing
 * table of 8-byte slots. The same address inserted twice gets two indices
 * (aliases); the reverse lookup gives the lowest live one.
 *
 * av.c has these functions, but for user ids (ids.c) and named vectors (follow.c).
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_AV_AV_H
#define TDM_AV_AV_H

#include <rdma/fi_domain.h>

#include "av/addr.h"
#include "base/list.h"
#include "tdm_engine.h"
#include "tdm_space.h"

struct tdm_av;
struct tdm_user_ids;
struct tdm_keyring;
struct tdm_link;

struct tdm_av_attr {
	struct tdm_engine *engine;
	struct tdm_link *link;	/* its peer's AV is filled too; or NULL */
	uint32_t addr_format;	/* of the domain: FI_SOCKADDR_IN, _IN6, ... */
	uint32_t max_group;	/* max_group_id of the domain */
	int keys;		/* addresses have keys: FI_AV_AUTH_KEY */
	const char *domain;	/* its name; NULL: it has none */
	struct tdm_list *named; /* list for tdm_av_follow_all(), or NULL */
};

/*
 * Open an AV. In: @attr as fi_av_open(3) got it; attr->type is written back,
 * and attr->map_addr when there is a name. Errors: -FI_EINVAL, -FI_EBADFLAGS,
 * -FI_ENOMEM; -FI_ENOSYS for a name where there are keys, and those of
 * tdm_shared_open(). Lock: taken inside.
 */
int tdm_av_open(const struct tdm_av_attr *owner, struct fi_av_attr *attr,
		void *context, struct tdm_av **av) tdm_must_check;

struct tdm_av *tdm_av_from_fid(struct fid_av *fid);
struct fid_av *tdm_av_fid(struct tdm_av *av);

/*
 * The address behind @fi_addr. Out: *@addr. Errors: -FI_EINVAL when the index
 * is out of range or unset.
 */
int tdm_av_addr(const struct tdm_av *av, fi_addr_t fi_addr,
		struct tdm_addr *addr) tdm_must_check;

/* The layout of its addresses: rx_ctx_bits of fi_av_open(3), and groups. */
const struct tdm_space *tdm_av_space(const struct tdm_av *av);

/* Its keys, NULL when addresses have none. */
struct tdm_keyring *tdm_av_keys(const struct tdm_av *av);

/* The domain lock. */
struct tdm_lock *tdm_av_lock(const struct tdm_av *av);

/* The number of the key of @fi_addr; 0: none. */
uint32_t tdm_av_key(const struct tdm_av *av, fi_addr_t fi_addr);

/* Not 0 when @fi_addr is set. */
int tdm_av_has(const struct tdm_av *av, fi_addr_t fi_addr);

/* The lowest live index of @addr, or FI_ADDR_UNSPEC when it is not inserted. */
fi_addr_t tdm_av_find(const struct tdm_av *av, const struct tdm_addr *addr);

/* 0 when no address in @av has the IP of @addr; else one may have it. */
int tdm_av_may_know(const struct tdm_av *av, const struct tdm_addr *addr);

/*
 * The lowest live index of the address behind @fi_addr, which is set. Messages
 * from the address report it as their source.
 */
fi_addr_t tdm_av_lowest(const struct tdm_av *av, fi_addr_t fi_addr);

/* One past the highest index that was ever set. */
fi_addr_t tdm_av_end(const struct tdm_av *av);

/*
 * The user ids, which change with inserts and removals; count is 0 while there
 * are none. Valid as long as @av.
 */
const struct tdm_user_ids *tdm_av_ids(const struct tdm_av *av);

/*
 * The next higher index of the same address, FI_ADDR_UNSPEC at the end;
 * @fi_addr is set.
 */
fi_addr_t tdm_av_next_alias(const struct tdm_av *av, fi_addr_t fi_addr);

/*
 * The address of @fi_addr in the peer's AV, inserted there at first use when
 * its IP belongs to this network namespace. FI_ADDR_NOTAVAIL when the peer
 * cannot be local, or when the insert failed.
 */
fi_addr_t tdm_av_local(struct tdm_av *av, fi_addr_t fi_addr);

/* The same without inserting: FI_ADDR_NOTAVAIL if it has not been inserted. */
fi_addr_t tdm_av_local_known(const struct tdm_av *av, fi_addr_t fi_addr);

/* Remove @fi_addr from the peer's AV and insert it again, for a new attach. */
void tdm_av_local_renew(struct tdm_av *av, fi_addr_t fi_addr);

/* The peer's AV, for binding its endpoints; NULL without a link. */
struct fid_av *tdm_av_local_fid(struct tdm_av *av);

/*
 * An endpoint bound to an AV. @inserted runs once after each fi_av_insert
 * call that added an address, @removed before an index is removed.
 */
struct tdm_av_user {
	struct tdm_list node; /* G: domain */
	void (*inserted)(struct tdm_av_user *user);
	void (*removed)(struct tdm_av_user *user, fi_addr_t fi_addr);
	/* Called when the first user id is set: tdm_av_ids(). May be NULL. */
	void (*ids)(struct tdm_av_user *user);
};

/* Bind / unbind an endpoint; while one is bound fi_close gives -FI_EBUSY. */
void tdm_av_attach(struct tdm_av *av, struct tdm_av_user *user);
void tdm_av_detach(struct tdm_av *av, struct tdm_av_user *user);

/* Not 0 when @av is named: other processes change it too. */
int tdm_av_is_named(const struct tdm_av *av);

/*
 * Take over the changes of other processes to @av, and tell its users; does
 * nothing without a name. A removal has the effects of fi_av_remove(3), so do
 * not call this from within a transport. follow_all: each AV opened with
 * @named.
 */
void tdm_av_follow(struct tdm_av *av);
void tdm_av_follow_all(struct tdm_list *named);

/* Run @closed(@arg) when fi_close ends @av. */
void tdm_av_on_close(struct tdm_av *av, void (*closed)(void *arg), void *arg);

#endif /* TDM_AV_AV_H */
