/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the files which drive libfabric share. */
#ifndef BENCH_FAB_H
#define BENCH_FAB_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <sys/types.h>

#include "bench/subject.h"

/* The entries of @provider for loopback with @caps; NULL: there is none. */
struct fi_info *bench_fab_info(const char *provider, uint64_t caps);

/* @ret of the call @what: if it is negative, give up. */
void bench_fab_check(const char *what, ssize_t ret);

/*
 * A set: one domain, queue and address vector, @count endpoints, and the addresses
 * of the @peers endpoints of the other side. A subject has one of a single
 * endpoint; some rows have another to themselves.
 */
struct bench_set {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_mr *mr; /* NULL: none; closed with the set */
	struct fid_ep **ep;
	size_t count;
	fi_addr_t *peer;
	size_t peers;
};

/*
 * Open @set as @info says, which becomes the set's, with @count endpoints. Gives
 * up if @info is NULL. Its queue has @wait, or no wait object if the provider
 * does not offer that one.
 */
void bench_set_open(struct bench_set *set, struct fi_info *info,
		    enum fi_wait_obj wait, size_t count);

/* Both sides: tell each other the addresses; the other one has @peers. */
void bench_set_meet(struct bench_subject *s, struct bench_set *set,
		    size_t peers);

/* Close what is open of @set. */
void bench_set_close(struct bench_set *set);

/*
 * The works for which a row has a set to itself. begin: an order comes, the set
 * of the last one may go. prepare and work are those of a batch.
 */
void bench_extra_begin(struct bench_subject *s, const struct bench_order *o);
void bench_extra_prepare(struct bench_subject *s, const struct bench_order *o);
void bench_extra_work(struct bench_subject *s, const struct bench_order *o);

#endif /* BENCH_FAB_H */
