/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector of the owner, fi_av(3): a dense table from fi_addr_t to the
 * socket address of an endpoint, and back. It knows nothing of endpoints except
 * the list of those bound to it, and has no state of connections or peers: an
 * endpoint makes a pair when it first uses an address.
 *
 * Entries are 16 bytes for IPv4; the reverse lookup is an open-addressing
 * table of 8-byte slots. The same address inserted twice gets two indices
 * (duplicates); the reverse lookup gives the lowest live one.
 *
 * The functions are in av.c, those of the peer provider's AV in local.c, of
 * user ids in user_id.c, of named vectors in follow.c. All functions: domain lock
 * held, unless they say otherwise.
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
	struct tdm_link *link;	/* whose AV gets local addresses; or NULL */
	uint32_t addr_format;	/* of the domain: FI_SOCKADDR_IN, _IN6, ... */
	uint32_t max_group;	/* max_group_id of the domain */
	int collective;		/* addresses may be in TDM_COLL_GROUP */
	int keys;		/* addresses have keys: FI_AV_AUTH_KEY */
	const char *domain;	/* its name; NULL: it has none */
	struct tdm_list *named; /* list for tdm_av_follow_all(), or NULL */
};

/*
 * Open an AV. In: @attr as the application gave it to fi_av_open(3). Out: *@av;
 * attr->type, and attr->map_addr when the vector has a name. Errors:
 * -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; -FI_ENOSYS for a name in a domain with
 * keys, and those of tdm_shared_open(). Lock: taken inside.
 */
int tdm_av_open(const struct tdm_av_attr *owner, struct fi_av_attr *attr,
		void *context, struct tdm_av **av) tdm_must_check;

struct tdm_av *tdm_av_from_fid(struct fid_av *fid);
struct fid_av *tdm_av_fid(struct tdm_av *av);

/*
 * Set *@addr to the address at index @fi_addr. Errors: -FI_EINVAL when there is
 * none.
 */
int tdm_av_addr(const struct tdm_av *av, fi_addr_t fi_addr,
		struct tdm_addr *addr) tdm_must_check;

/*
 * Returns the layout of the addresses of @av: rx_ctx_bits of fi_av_open(3), and
 * groups.
 */
const struct tdm_space *tdm_av_space(const struct tdm_av *av);

/* Returns the keys of @av; NULL when addresses have none. */
struct tdm_keyring *tdm_av_keys(const struct tdm_av *av);

/* Returns the lock of the domain of @av. */
struct tdm_lock *tdm_av_lock(const struct tdm_av *av);

/* Returns the number of the key of the address at @fi_addr; 0: none. */
uint32_t tdm_av_key(const struct tdm_av *av, fi_addr_t fi_addr);

/* Not 0 when there is an address at index @fi_addr. */
int tdm_av_has(const struct tdm_av *av, fi_addr_t fi_addr);

/*
 * Returns the lowest index of @addr, or FI_ADDR_UNSPEC when it is not inserted.
 */
fi_addr_t tdm_av_find(const struct tdm_av *av, const struct tdm_addr *addr);

/* 0 when no address in @av has the IP of @addr; else one may have it. */
int tdm_av_may_know(const struct tdm_av *av, const struct tdm_addr *addr);

/*
 * Returns the lowest index of the address at @fi_addr, which must be set.
 * Messages from that address report it as their source.
 */
fi_addr_t tdm_av_lowest(const struct tdm_av *av, fi_addr_t fi_addr);

/* Returns one more than the highest index that was ever set. */
fi_addr_t tdm_av_end(const struct tdm_av *av);

/*
 * Returns the user ids of the addresses, which inserts and removals change;
 * their count is 0 while there are none. Valid as long as @av.
 */
const struct tdm_user_ids *tdm_av_user_ids(const struct tdm_av *av);

/*
 * Returns the next higher index of the address at @fi_addr, which must be set;
 * FI_ADDR_UNSPEC if there is none.
 */
fi_addr_t tdm_av_next_same(const struct tdm_av *av, fi_addr_t fi_addr);

/*
 * Returns the address of @fi_addr in the peer provider's AV; inserts it there
 * if its IP belongs to this network namespace and it has not been inserted.
 * FI_ADDR_NOTAVAIL when the remote endpoint cannot be local, or when the insert
 * failed.
 */
fi_addr_t tdm_av_local(struct tdm_av *av, fi_addr_t fi_addr);

/*
 * As tdm_av_local(), but without inserting: FI_ADDR_NOTAVAIL if it has not been
 * inserted.
 */
fi_addr_t tdm_av_local_known(const struct tdm_av *av, fi_addr_t fi_addr);

/*
 * Remove @fi_addr from the AV of the peer provider and insert it again, so that
 * the next send attaches anew.
 */
void tdm_av_local_renew(struct tdm_av *av, fi_addr_t fi_addr);

/*
 * Returns the peer provider's AV, to which its endpoints are bound; NULL
 * without a link.
 */
struct fid_av *tdm_av_local_fid(struct tdm_av *av);

/*
 * An endpoint bound to an AV. @changed runs once after each call that inserted
 * or removed addresses. @moved 0: no address that was there before has another
 * lowest index now, and none was removed. @removed runs before an index is
 * removed.
 */
struct tdm_av_user {
	struct tdm_list node; /* G: domain */
	void (*changed)(struct tdm_av_user *user, int moved);
	void (*removed)(struct tdm_av_user *user, fi_addr_t fi_addr);
	/*
	 * Called when the first user id is set: tdm_av_user_ids(). May be NULL.
	 */
	void (*user_ids)(struct tdm_av_user *user);
};

/*
 * Add or remove a user of @av. While @av has users, fi_close() of it returns
 * -FI_EBUSY.
 */
void tdm_av_attach(struct tdm_av *av, struct tdm_av_user *user);
void tdm_av_detach(struct tdm_av *av, struct tdm_av_user *user);

/* Not 0 when @av has a name, so that other processes may change it. */
int tdm_av_is_named(const struct tdm_av *av);

/*
 * Apply the changes that other processes made to the file of the named @av, and
 * call its users; does nothing without a name. tdm_av_follow_all() does so for
 * each vector opened with @named. A removal has the effects of fi_av_remove(3),
 * so do not call these from within a transport.
 */
void tdm_av_follow(struct tdm_av *av);
void tdm_av_follow_all(struct tdm_list *named);

/* Have fi_close() of @av call @closed(@arg) at its end. */
void tdm_av_on_close(struct tdm_av *av, void (*closed)(void *arg), void *arg);

#endif /* TDM_AV_AV_H */
