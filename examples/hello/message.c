/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes exchange tagged messages, over whatever provider FI_PROVIDER names:
 *
 *	message			prints its address, and waits
 *	message ADDRESS		sends a greeting there, and prints the answer
 *
 * hello.c opens the endpoint.
 */
#include <stdio.h>
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "examples/hello/hello.h"

/* A receive takes the messages with its tag, in the order in which they come. */
enum { GREETING = 1, ANSWER = 2 };

/* A message says from where it comes: the other side needs that to answer. */
struct letter {
	struct address sender;
	char text[64];
};

static struct fi_context2 sending, receiving;

static void post_receive(struct node *n, struct letter *l, uint64_t tag)
{
	check("fi_trecv", fi_trecv(n->ep, l, sizeof(*l), NULL, FI_ADDR_UNSPEC,
				   tag, 0, &receiving));
}

static void send_to(struct node *n, fi_addr_t peer, struct letter *l,
		    uint64_t tag)
{
	ssize_t ret;

	/* -FI_EAGAIN: there is no room at the moment. Make progress, try again. */
	while ((ret = fi_tsend(n->ep, l, sizeof(*l), NULL, peer, tag,
			       &sending)) == -FI_EAGAIN)
		node_progress(n);
	check("fi_tsend", ret);
}

static void serve(struct node *n)
{
	struct letter in = { 0 }, out = { .text = "hello, client" };

	post_receive(n, &in, GREETING);
	node_address(n, &out.sender);
	address_print(&out.sender);
	node_wait(n, 1);
	in.text[sizeof(in.text) - 1] = 0;
	printf("received: %s\n", in.text);
	send_to(n, node_add(n, &in.sender), &out, ANSWER);
	node_wait(n, 1);
}

static void greet(struct node *n, const char *text)
{
	struct letter in = { 0 }, out = { .text = "hello, server" };
	struct address server;

	address_parse(&server, text);
	node_address(n, &out.sender);
	/* The buffer for the answer is there before the answer can be. */
	post_receive(n, &in, ANSWER);
	send_to(n, node_add(n, &server), &out, GREETING);
	node_wait(n, 2);
	in.text[sizeof(in.text) - 1] = 0;
	printf("received: %s\n", in.text);
}

int main(int argc, char **argv)
{
	struct node n;

	node_open(&n, FI_TAGGED);
	if (argc > 1)
		greet(&n, argv[1]);
	else
		serve(&n);
	node_close(&n);
	return 0;
}
