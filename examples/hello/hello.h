/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both programs of this folder use this: an endpoint, its address as text, and
 * waiting. A call that fails ends the program with a message.
 */
#ifndef EXAMPLES_HELLO_H
#define EXAMPLES_HELLO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

enum { ADDRESS_BYTES = 256 };

/* An endpoint and the objects that belong to it. */
struct node {
	struct fi_info *info;	   /* what the provider offers */
	struct fid_fabric *fabric; /* the network */
	struct fid_domain *domain; /* the interface; regions belong to it */
	struct fid_av *av;	   /* addresses of peers */
	struct fid_cq *cq;	   /* which operations have ended */
	struct fid_ep *ep;	   /* sends and receives */
	int ended;		   /* operations that nobody has waited for */
};

/* The address of an endpoint, as peers need it. */
struct address {
	uint64_t bytes;
	uint8_t name[ADDRESS_BYTES];
};

/* @ret of the call @what: if it is an error, end the program. */
void check(const char *what, ssize_t ret);

/*
 * Open a node of the first provider that offers @caps, of those that the variable
 * FI_PROVIDER allows.
 */
void node_open(struct node *n, uint64_t caps);
void node_close(struct node *n);

/* The address of @n. */
void node_address(const struct node *n, struct address *a);

/* Enter @a into the address vector of @n: the number for sends to it. */
fi_addr_t node_add(struct node *n, const struct address *a);

/* Let the provider make progress, and see whether an operation has ended. */
void node_progress(struct node *n);

/* Wait for @operations to end. */
void node_wait(struct node *n, int operations);

/* An address as hexadecimal digits, for people to carry from here to there. */
void address_print(const struct address *a);
void address_parse(struct address *a, const char *text);

#endif /* EXAMPLES_HELLO_H */
