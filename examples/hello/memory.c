/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process writes into the memory of another one, and reads from it, over whatever
 * provider FI_PROVIDER names:
 *
 *	memory			prints its address, and lends its memory
 *	memory ADDRESS		writes a line there, and reads it again
 *
 * Messages say where the memory is, and when it is needed no more. hello.c opens the
 * endpoint.
 */
#include <stdio.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "examples/hello/hello.h"

enum { BOARD_BYTES = 4096 };

/* The server's memory, as others have to name it. */
struct board {
	uint64_t at;  /* of its first byte */
	uint64_t key; /* that lets them in */
};

static struct fi_context2 first, second; /* of operations under way */

/* Repeat CALL while the provider has no room, making progress; it must succeed. */
#define MUST(n, call)                                                          \
	do {                                                                   \
		ssize_t ret_;                                                  \
                                                                               \
		while ((ret_ = (call)) == -FI_EAGAIN)                          \
			node_progress(n);                                      \
		check(#call, ret_);                                            \
	} while (0)

static void lend(struct node *n)
{
	static char memory[BOARD_BYTES];
	struct address mine, client;
	struct board board = { 0 };
	struct fid_mr *mr;
	fi_addr_t peer;
	char end;

	/* Others may read and write this memory, and no other. */
	check("fi_mr_reg",
	      fi_mr_reg(n->domain, memory, sizeof(memory),
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
	board.key = fi_mr_key(mr);
	/* Bytes are named by their address here, or by their place in the region. */
	if (n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		board.at = (uintptr_t)memory;

	MUST(n, fi_recv(n->ep, &client, sizeof(client), NULL, FI_ADDR_UNSPEC,
			&first));
	node_address(n, &mine);
	address_print(&mine);
	node_wait(n, 1);
	peer = node_add(n, &client);
	MUST(n,
	     fi_recv(n->ep, &end, sizeof(end), NULL, FI_ADDR_UNSPEC, &first));
	MUST(n, fi_send(n->ep, &board, sizeof(board), NULL, peer, &second));
	/* The client writes meanwhile: nothing here tells when. */
	node_wait(n, 2);
	memory[BOARD_BYTES - 1] = 0;
	printf("the client wrote: %s\n", memory);
	check("fi_close", fi_close(&mr->fid));
}

static void use(struct node *n, const char *text)
{
	static char line[] = "one-sided, from far away", again[sizeof(line)];
	struct address mine, server;
	struct board board;
	fi_addr_t peer;
	char end = 0;

	address_parse(&server, text);
	peer = node_add(n, &server);
	node_address(n, &mine);
	MUST(n, fi_recv(n->ep, &board, sizeof(board), NULL, FI_ADDR_UNSPEC,
			&first));
	MUST(n, fi_send(n->ep, &mine, sizeof(mine), NULL, peer, &second));
	node_wait(n, 2);

	MUST(n, fi_write(n->ep, line, sizeof(line), NULL, peer, board.at,
			 board.key, &first));
	node_wait(n, 1);
	MUST(n, fi_read(n->ep, again, sizeof(again), NULL, peer, board.at,
			board.key, &first));
	node_wait(n, 1);
	printf("read again: %s\n", again);
	check("the same line", strcmp(again, line) ? -FI_EIO : 0);

	MUST(n, fi_send(n->ep, &end, sizeof(end), NULL, peer, &second));
	node_wait(n, 1);
}

int main(int argc, char **argv)
{
	struct node n;

	node_open(&n, FI_MSG | FI_RMA);
	if (argc > 1)
		use(&n, argv[1]);
	else
		lend(&n);
	node_close(&n);
	return 0;
}
