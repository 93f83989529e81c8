/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the kernel about one TCP socket each. The kernel answers while
 * the question is being sent, so nothing here waits.
 *
 * Spec: sock_diag(7), netlink(7), <linux/inet_diag.h>.
 */
#include "tcp/wire/diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/os.h"

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

int tdm_diag_open(void)
{
	int fd = tdm_os.socket(AF_NETLINK,
			       SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
			       NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

/* Write IP and port of @a, in network order. */
static void put_addr(const struct tdm_addr *a, __be32 *ip, __be16 *port)
{
	if (a->u.sa.sa_family == AF_INET6) {
		memcpy(ip, &a->u.in6.sin6_addr, sizeof(a->u.in6.sin6_addr));
		*port = a->u.in6.sin6_port;
	} else {
		memcpy(ip, &a->u.in.sin_addr, sizeof(a->u.in.sin_addr));
		*port = a->u.in.sin_port;
	}
}

static int ask(int fd, const struct tdm_addr *local,
	       const struct tdm_addr *remote)
{
	struct question q;
	ssize_t n;

	memset(&q, 0, sizeof(q));
	q.head.nlmsg_len = sizeof(q);
	q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	q.head.nlmsg_flags = NLM_F_REQUEST;
	q.req.sdiag_family = (uint8_t)local->u.sa.sa_family;
	q.req.sdiag_protocol = IPPROTO_TCP;
	q.req.idiag_states = ~0u;
	put_addr(local, q.req.id.idiag_src, &q.req.id.idiag_sport);
	if (remote)
		put_addr(remote, q.req.id.idiag_dst, &q.req.id.idiag_dport);
	if (local->u.sa.sa_family == AF_INET6)
		q.req.id.idiag_if = local->u.in6.sin6_scope_id;
	q.req.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
	q.req.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	n = tdm_os.send(fd, &q, sizeof(q), 0);
	if (n < 0)
		return -errno;
	return (size_t)n == sizeof(q) ? 0 : -FI_EIO;
}

int tdm_diag_find(int fd, const struct tdm_addr *local,
		  const struct tdm_addr *remote, struct tdm_diag_sock *sock)
{
	union {
		struct nlmsghdr head;
		uint8_t bytes[1024];
	} in;
	struct inet_diag_msg msg;
	ssize_t n;
	int ret = ask(fd, local, remote);

	if (ret)
		return ret;
	n = tdm_os.recv(fd, &in, sizeof(in), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	/*
	 * If there is no such socket the kernel sends an error message instead.
	 */
	if ((size_t)n < NLMSG_LENGTH(sizeof(msg)) ||
	    in.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -FI_ENOENT;
	memcpy(&msg, NLMSG_DATA(&in.head), sizeof(msg));
	sock->uid = msg.idiag_uid;
	sock->held = msg.idiag_inode != 0;
	sock->listening = msg.idiag_state == TCP_LISTEN;
	return 0;
}
