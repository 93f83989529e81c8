/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules about what begins and ends: objects that are closed, and processes.
 *
 * No lock: one thread. The other process of the last rules is forked before
 * libfabric is used.
 */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "kit/node.h"
#include "kit/rule.h"

static struct kit_pair p;

static struct kit_message message(const struct kit_world *world, size_t len,
				  uint64_t tag)
{
	return (struct kit_message){ .kind = kit_kind(world),
				     .len = len,
				     .tag = tag,
				     .flags = FI_COMPLETION };
}

static void carry(void)
{
	struct kit_message m = message(&p.world, 300, 1);
	struct kit_op *recv = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	struct kit_op *send = kit_send(&p.a, p.to, &m);

	kit_wait(recv);
	kit_wait(send);
	kit_check(recv, send, &m);
}

/* One message of each length waits at b. */
static void fill(void)
{
	struct kit_message m;
	int i;

	for (i = 0; i < KIT_SIZES; i++) {
		m = message(&p.world, kit_size[i], (uint64_t)i);
		kit_send(&p.a, p.to, &m);
	}
	kit_wait_queued(&p.b, KIT_SIZES);
}

/* ---- the beginning -------------------------------------------------------- */

static void early_progress(void)
{
	static struct kit_node c;

	kit_pair_open(&p, 0);
	kit_node_open(&c, NULL, KIT_NO_BIND);
	kit_step("fi_cq_read before the endpoint is bound");
	kit_progress();
	c.flags = KIT_NO_ENABLE;
	kit_node_start(&c);
	kit_step("fi_cq_read before the endpoint is enabled");
	kit_progress();
	kit_step("fi_enable");
	if (fi_enable(c.ep))
		kit_broken("fi_enable failed");
	carry();
}

static void never_enabled(void)
{
	static struct kit_node c, d;

	kit_pair_open(&p, 0);
	kit_node_open(&c, NULL, KIT_NO_BIND);
	kit_node_open(&d, NULL, KIT_NO_ENABLE);
	kit_node_close(&c, "esac");
	kit_node_close(&d, "esac");
	carry();
}

static void again(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		kit_pair_open(&p, 0);
		carry();
		kit_close_all();
	}
}

/* ---- orders of closing ---------------------------------------------------- */

static void endpoint_first(void)
{
	kit_pair_open(&p, 0);
	carry();
	kit_node_close(&p.a, "esac");
	kit_node_close(&p.b, "eacs");
}

static void srx_first(void)
{
	kit_pair_open(&p, 0);
	carry();
	kit_node_close(&p.b, "seca");
	kit_node_close(&p.a, "seac");
}

static void posted(void)
{
	struct kit_message m;
	struct kit_op *recv;
	int i;

	kit_pair_open(&p, 0);
	carry();
	m = message(&p.world, 10, 9);
	recv = kit_recv(&p.b, &m, 10, FI_ADDR_UNSPEC);
	for (i = 0; i < 3; i++)
		kit_recv(&p.b, &m, 10, p.source);
	kit_node_close(&p.b, "esac");
	kit_node_close(&p.a, "esac");
	if (recv->ended)
		kit_broken("a receive without a message ended when the "
			   "endpoint closed");
}

static void discarded(void)
{
	kit_pair_open(&p, 0);
	fill();
	while (p.b.own_srx.queued)
		kit_srx_discard(&p.b.own_srx);
	kit_node_close(&p.b, "esac");
	kit_node_close(&p.a, "esac");
}

static void waiting(void)
{
	kit_pair_open(&p, 0);
	fill();
	kit_node_close(&p.b, "esac");
	kit_node_close(&p.a, "esac");
}

static void unread(void)
{
	struct kit_message m;
	int i;

	kit_pair_open(&p, 0);
	carry();
	for (i = 0; i < KIT_SIZES; i++) {
		struct kit_op *send;

		m = message(&p.world, kit_size[i], 1);
		(void)kit_try_send(&p.a, p.to, &m, &send);
	}
	kit_node_close(&p.b, "esac");
	kit_node_close(&p.a, "esac");
}

static void sender_first(void)
{
	struct kit_message m;
	int i;

	kit_pair_open(&p, 0);
	fill();
	kit_node_close(&p.a, "esac");
	for (i = 0; i < KIT_SIZES; i++) {
		m = message(&p.world, kit_size[i], (uint64_t)i);
		kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	}
	kit_settle();
	kit_node_close(&p.b, "esac");
}

/* ---- operations on memory ------------------------------------------------- */

static void rma_error(void)
{
	struct kit_op *op;
	ssize_t ret;

	kit_world_open(&p.world,
		       FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ |
			       FI_REMOTE_WRITE,
		       FI_MR_VIRT_ADDR);
	kit_node_open(&p.a, &p.world, 0);
	kit_node_open(&p.b, NULL, 0);
	p.to = kit_insert(&p.a, &p.b, 1, NULL);
	kit_insert(&p.b, &p.a, 77, NULL);
	op = kit_op_new(&p.a, KIT_MSG, 64, 1);
	op->what = "read";
	do {
		kit_step("fi_read of memory that is not registered");
		ret = fi_read(p.a.ep, op->bytes, op->room, NULL, p.to, 64, 99,
			      op);
		kit_settle();
	} while (ret == -FI_EAGAIN);
	if (ret)
		return;
	kit_wait(op);
	if (!op->err)
		kit_broken("fi_read of memory that is not registered "
			   "completes without an error");
}

/* ---- the death of a process ----------------------------------------------- */

/* The other process ends with its result, unless it was to be killed. */
static void exchange(int fd, struct kit_node *own, char *name)
{
	char mine[KIT_NAME_BYTES] = "";

	kit_name(own, mine);
	if (write(fd, mine, sizeof(mine)) != sizeof(mine) ||
	    recv(fd, name, KIT_NAME_BYTES, MSG_WAITALL) != KIT_NAME_BYTES) {
		if (kit_outcome->result != KIT_OPEN)
			_exit(0);
		kit_broken("the other process ended");
	}
}

/* Sends what has room, says so, and makes progress until it is killed. */
static __attribute__((noreturn)) void other(int fd)
{
	char name[KIT_NAME_BYTES], byte = 0;
	struct kit_message m;
	struct kit_op *send;
	ssize_t ret;
	int i;

	kit_world_open(&p.world, 0, 0);
	kit_node_open(&p.a, &p.world, 0);
	exchange(fd, &p.a, name);
	p.to = kit_insert_name(&p.a, name, 1, NULL);
	for (i = 0; i < KIT_SIZES; i++) {
		m = message(&p.world, kit_size[i], (uint64_t)i);
		do {
			ret = kit_try_send(&p.a, p.to, &m, &send);
			kit_settle();
		} while (ret == -FI_EAGAIN);
		if (ret == -FI_EHOSTUNREACH)
			kit_absent("another process is not reached");
		if (ret)
			kit_broken("a send to another process: %s",
				   fi_strerror((int)-ret));
	}
	if (write(fd, &byte, 1) != 1)
		_exit(1);
	for (;;)
		kit_progress();
}

/*
 * Messages of another process wait at b, and it has died. *@name is that of its
 * endpoint.
 */
static fi_addr_t bereave(void)
{
	char name[KIT_NAME_BYTES];
	struct pollfd news;
	fi_addr_t to;
	int fd[2], i;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		_exit(1);
	kit_step("the other process");
	pid = fork();
	if (!pid) {
		close(fd[0]);
		other(fd[1]);
	}
	close(fd[1]);
	kit_world_open(&p.world, 0, 0);
	kit_node_open(&p.b, NULL, 0);
	exchange(fd[0], &p.b, name);
	to = kit_insert_name(&p.b, name, 77, &p.source);
	news = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	kit_step("progress for messages of another process");
	while (!poll(&news, 1, 0))
		kit_progress();
	if (kit_outcome->result != KIT_OPEN)
		_exit(0);
	for (i = 0; i < 10; i++)
		kit_settle();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return to;
}

static void death_of_sender(void)
{
	static struct kit_op *recv[KIT_SIZES];
	struct kit_message m;
	size_t at;
	int i;

	bereave();
	for (i = 0; i < KIT_SIZES; i++) {
		m = message(&p.world, kit_size[i], (uint64_t)i);
		recv[i] = kit_recv(&p.b, &m, m.len, FI_ADDR_UNSPEC);
	}
	for (i = 0; i < 10; i++)
		kit_settle();
	for (i = 0; i < KIT_SIZES; i++) {
		kit_op_guards(recv[i]);
		if (!recv[i]->ended || recv[i]->err)
			continue;
		for (at = 0; at < kit_size[i]; at++) {
			if (recv[i]->bytes[at] ==
			    kit_byte((uint32_t)i * 7 + 1, at))
				continue;
			kit_broken("byte %zu of %zu from a dead process is "
				   "wrong",
				   at, kit_size[i]);
		}
	}
	kit_node_close(&p.b, "esac");
}

static void death_and_discard(void)
{
	bereave();
	while (p.b.own_srx.queued)
		kit_srx_discard(&p.b.own_srx);
	kit_settle();
	kit_node_close(&p.b, "esac");
}

static void death_of_receiver(void)
{
	fi_addr_t to = bereave();
	struct kit_message m;
	struct kit_op *send;
	int i;

	for (i = 0; i < 10 * KIT_SIZES; i++) {
		m = message(&p.world, kit_size[i % KIT_SIZES], 1);
		(void)kit_try_send(&p.b, to, &m, &send);
		kit_settle();
	}
	kit_node_close(&p.b, "esac");
}

#define CLOSE "fi_endpoint(3)"

const struct kit_rule kit_rules_end[] = {
	{ "begin.progress", "guide", NULL, 0,
	  "progress before fi_enable does no harm", early_progress },
	{ "begin.unused", CLOSE, "fi_close", 0,
	  "an endpoint that was never enabled closes", never_enabled },
	{ "begin.again", CLOSE, "fi_close", 0,
	  "what has closed may be opened again", again },
	{ "close.endpoint", "guide", NULL, 0,
	  "the endpoint may close before the SRX", endpoint_first },
	{ "close.srx", "guide", NULL, 0,
	  "the SRX may close before the endpoint", srx_first },
	{ "close.posted", CLOSE, "fi_close", 0,
	  "the owner's receives are left alone when the endpoint closes",
	  posted },
	{ "close.discarded", "guide", NULL, 0,
	  "the endpoint closes when the messages that waited are discarded",
	  discarded },
	{ "close.waiting", "guide", NULL, 0,
	  "the endpoint closes while messages wait; entries come back once",
	  waiting },
	{ "close.unread", CLOSE, "fi_close", 0,
	  "the endpoint closes while messages are on their way", unread },
	{ "close.sender", CLOSE, "fi_close", 0,
	  "the sender closes while its messages wait, which are then started",
	  sender_first },
	{ "rma.error", "fi_cq(3)", "fi_cq_readerr", 0,
	  "a read that fails has its context, in the queue of sends",
	  rma_error },
	{ "death.start", "guide", NULL, 0,
	  "messages of a process that died may be started", death_of_sender },
	{ "death.discard", "guide", NULL, 0,
	  "messages of a process that died may be discarded",
	  death_and_discard },
	{ "death.send", "guide", NULL, 0,
	  "sends to a process that died are refused, end, or stay",
	  death_of_receiver },
	{ 0 },
};
