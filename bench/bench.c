/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See bench.h.
 */
#include "bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

enum { TAG = 7 };

struct bench_ep {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	size_t inject_bytes;
	char *tx, *rx[2]; /* receives alternate between two buffers */
	size_t bytes;
	unsigned posted;
	struct fi_context2 tx_ctx, rx_ctx[2];
};

static void die(const char *what, int err)
{
	fprintf(stderr, "bench: %s: %s\n", what, fi_strerror(abs(err)));
	exit(1);
}

static void check(const char *what, ssize_t ret)
{
	if (ret < 0)
		die(what, (int)ret);
}

void bench_socket_pair(int fds[2])
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, i;
	socklen_t len = sizeof(sin);

	if (bind(listener, (void *)&sin, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&sin, &len))
		die("listen", errno);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fds[0], (void *)&sin, len))
		die("connect", errno);
	fds[1] = accept(listener, NULL, NULL);
	close(listener);
	for (i = 0; i < 2; i++) {
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
	}
}

void bench_name_pair(int fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		die("socketpair", errno);
}

static void put(int fd, const char *buf, size_t len)
{
	ssize_t n;

	for (; len; buf += n, len -= (size_t)n) {
		n = send(fd, buf, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			die("send", errno);
		n = n < 0 ? 0 : n;
	}
}

static void get(int fd, char *buf, size_t len)
{
	ssize_t n;

	for (; len; buf += n, len -= (size_t)n) {
		n = recv(fd, buf, len, 0);
		if (!n || (n < 0 && errno != EAGAIN))
			die("recv", errno);
		n = n < 0 ? 0 : n;
	}
}

void bench_socket_batch(int fd, size_t bytes, int count, int leader)
{
	char buf[4096] = "";

	if (bytes > sizeof(buf))
		die("limit size", EINVAL);
	for (; count; count--) {
		if (leader)
			put(fd, buf, bytes);
		get(fd, buf, bytes);
		if (!leader)
			put(fd, buf, bytes);
	}
}

static void post(struct bench_ep *b)
{
	unsigned i = b->posted++ % 2;

	check("fi_trecv", fi_trecv(b->ep, b->rx[i], b->bytes, NULL, b->peer,
				   TAG, 0, &b->rx_ctx[i]));
}

static void die_of_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };

	fi_cq_readerr(cq, &err, 0);
	die("completion", err.err);
}

/* Poll until a completion of kind @flag comes. */
static void wait_for(struct bench_ep *b, uint64_t flag)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	do {
		ret = fi_cq_read(b->cq, &e, 1);
		if (ret == -FI_EAVAIL)
			die_of_error(b->cq);
		if (ret < 0 && ret != -FI_EAGAIN)
			die("fi_cq_read", (int)ret);
	} while (ret <= 0 || !(e.flags & flag));
}

static void send_one(struct bench_ep *b, size_t bytes)
{
	ssize_t ret;

	do {
		ret = bytes <= b->inject_bytes ?
			      fi_tinject(b->ep, b->tx, bytes, b->peer, TAG) :
			      fi_tsend(b->ep, b->tx, bytes, NULL, b->peer, TAG,
				       &b->tx_ctx);
		if (ret == -FI_EAGAIN)
			fi_cq_read(b->cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	check("fi_tsend", ret);
}

/* Another receive is posted while the message is on its way. */
static void send_and_post(struct bench_ep *b, size_t bytes)
{
	send_one(b, bytes);
	post(b);
}

void bench_tagged_batch(struct bench_ep *b, size_t bytes, int count, int leader)
{
	for (; count; count--) {
		if (leader)
			send_and_post(b, bytes);
		wait_for(b, FI_RECV);
		if (!leader)
			send_and_post(b, bytes);
	}
}

static struct fi_info *get_info(const char *prov)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	/* Names of shm are its own: all that give it a node would share one. */
	const char *node = strcmp(prov, "shm") ? "127.0.0.1" : NULL;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(prov);
	check("fi_getinfo", fi_getinfo(FI_VERSION(2, 0), node, NULL,
				       node ? FI_SOURCE : 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void exchange_names(struct bench_ep *b, int fd)
{
	char name[256];
	size_t len = sizeof(name);

	check("fi_getname", fi_getname(&b->ep->fid, name, &len));
	if (send(fd, name, len, 0) != (ssize_t)len ||
	    recv(fd, name, sizeof(name), 0) <= 0)
		die("names", errno);
	if (fi_av_insert(b->av, name, 1, &b->peer, 0, NULL) != 1)
		die("fi_av_insert", EINVAL);
}

struct bench_ep *bench_open(const char *prov, int name_fd, size_t bytes)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct bench_ep *b = calloc(1, sizeof(*b));

	b->info = get_info(prov);
	b->bytes = bytes ? bytes : 1;
	b->inject_bytes = b->info->tx_attr->inject_size;
	b->tx = malloc(b->bytes);
	b->rx[0] = malloc(b->bytes);
	b->rx[1] = malloc(b->bytes);
	memset(b->tx, 1, b->bytes);
	check("fi_fabric", fi_fabric(b->info->fabric_attr, &b->fabric, NULL));
	check("fi_domain", fi_domain(b->fabric, b->info, &b->domain, NULL));
	check("fi_cq_open", fi_cq_open(b->domain, &cq, &b->cq, NULL));
	check("fi_av_open", fi_av_open(b->domain, &av, &b->av, NULL));
	check("fi_endpoint", fi_endpoint(b->domain, b->info, &b->ep, NULL));
	check("bind", fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV));
	check("bind", fi_ep_bind(b->ep, &b->av->fid, 0));
	check("fi_enable", fi_enable(b->ep));
	exchange_names(b, name_fd);
	/* One ahead: the answer leaves before its receive is posted again. */
	post(b);
	post(b);
	return b;
}

void bench_close(struct bench_ep *b)
{
	fi_close(&b->ep->fid);
	fi_close(&b->av->fid);
	fi_close(&b->cq->fid);
	fi_close(&b->domain->fid);
	fi_close(&b->fabric->fid);
	fi_freeinfo(b->info);
	free(b->tx);
	free(b->rx[0]);
	free(b->rx[1]);
	free(b);
}
