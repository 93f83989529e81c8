/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The evil twin on the wire: what its endpoint sends is broken on its way to the
 * kernel. A record is what the stream has there, as record.h lays it out; the
 * endpoint learns nothing of it. Locking: none, one thread.
 */
#include "twin_break.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/iov.h"
#include "base/os.h"
#include "shm/packet.h"
#include "tcp/wire/greeting.h"

enum {
	RECORDS = 12,	 /* good ones between two breaches, at most */
	PATIENCE_MS = 5, /* for a victim that does not read now */
	JUNK_BYTES = 64,
	FDS = 6,
};

static struct {
	uint64_t random;
	enum tdt_tier tier;
	int on;
	int fd;		/* the connection that is followed, or -1 */
	size_t payload; /* bytes to come until the next record */
	unsigned skip;	/* records until the next breach */
} wire;

uint64_t tdt_chance(uint64_t *random, uint64_t below)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (*random >> 33) % below;
}

static uint64_t chance(uint64_t below)
{
	return tdt_chance(&wire.random, below);
}

void tdt_change(uint64_t *random, uint8_t *p, size_t len)
{
	static const uint64_t values[] = {
		0,	    1,		2,	    0x7f,	0xff,
		0xffff,	    0x10000,	0x7fffffff, 0xffffffff, 1ull << 32,
		1ull << 62, 1ull << 63, ~0ull - 7,  ~0ull,
	};
	size_t width = (size_t)1 << tdt_chance(random, 4), at;
	uint64_t v = 0;

	if (!len)
		return;
	if (width > len)
		width = 1;
	at = (size_t)tdt_chance(random, len / width) * width;
	memcpy(&v, p + at, width);
	switch (tdt_chance(random, 5)) {
	case 0:
		v ^= 1ull << tdt_chance(random, 8 * width);
		break;
	case 1:
		v = values[tdt_chance(random,
				      sizeof(values) / sizeof(values[0]))];
		break;
	case 2:
		v++;
		break;
	case 3:
		v--;
		break;
	default:
		v = tdt_chance(random, 1u << 31) << 32 |
		    tdt_chance(random, 1u << 31);
	}
	memcpy(p + at, &v, width);
}

/* ---- records over TCP ----------------------------------------------------- */

/* Bytes for the kernel in place of those of the endpoint. */
struct parcel {
	uint8_t *bytes;
	size_t len;
	size_t last; /* where the record before begins */
};

static void add(struct parcel *to, const uint8_t *p, size_t n)
{
	memcpy(to->bytes + to->len, p, n);
	to->len += n;
}

/* The record before and the one at @p[n] change places. */
static void exchange(struct parcel *to, const uint8_t *p, size_t n)
{
	uint8_t *last = to->bytes + to->last;
	size_t had = to->len - to->last;

	memmove(last + n, last, had);
	memcpy(last, p, n);
	to->len += n;
}

/* Break the record at @p[n], whose header has @head bytes. */
static void breach(struct parcel *to, const uint8_t *p, size_t n, size_t head)
{
	uint8_t junk[JUNK_BYTES] = { 0 };
	size_t at = to->len;

	wire.skip = (unsigned)chance(RECORDS);
	switch (chance(8)) {
	case 0:
		add(to, p, n);
		add(to, p, n);
		break;
	case 1:
		exchange(to, p, n);
		break;
	case 2:
		add(to, p, (size_t)chance(n));
		break;
	case 3:
		break;
	case 4:
		tdt_change(&wire.random, junk, sizeof(junk));
		add(to, junk, 1 + (size_t)chance(sizeof(junk)));
		add(to, p, n);
		break;
	default:
		add(to, p, n);
		tdt_change(&wire.random, to->bytes + at, head);
	}
}

/*
 * The next piece of the stream, at @p[len]: its bytes; *@head is the length of
 * the header that it begins with, or 0.
 */
static size_t piece(const uint8_t *p, size_t len, size_t *head)
{
	struct tdm_wire_rec rec;
	size_t n;
	int k;

	*head = 0;
	if (!wire.payload) {
		k = len < TDM_WIRE_PREFIX_BYTES ? -1 : tdm_wire_head_bytes(p);
		if (k < 0 || (size_t)k > len || tdm_wire_decode(p, &rec))
			return len;
		*head = (size_t)k;
		wire.payload = rec.len;
	}
	n = tdm_min(wire.payload, len - *head);
	wire.payload -= n;
	return *head + n;
}

static void compose(struct parcel *to, const uint8_t *p, size_t len)
{
	size_t n, head, before;

	for (; len; p += n, len -= n) {
		if (len >= TDM_WIRE_GREETING_BYTES && !wire.payload &&
		    tdm_wire_is_greeting(p, len))
			n = head = TDM_WIRE_GREETING_BYTES;
		else
			n = piece(p, len, &head);
		before = to->len;
		if (!head || !wire.on || wire.skip)
			add(to, p, n);
		else
			breach(to, p, n, head);
		wire.skip -= head && wire.skip;
		to->last = before;
	}
}

/* Not 0 when the connection is gone. A victim that does not read gets less. */
static int deliver(int fd, const uint8_t *p, size_t len)
{
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	while (len) {
		n = tdm_os_system.send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (n < 0 && poll(&wait, 1, PATIENCE_MS) <= 0)
			return 0;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static ssize_t pass_on(int fd, const uint8_t *p, size_t len)
{
	struct parcel to = { .len = 0 };
	int ret;

	/* Twice each record, and junk before each of the shortest. */
	to.bytes = malloc((2 + JUNK_BYTES / TDM_WIRE_PREFIX_BYTES) * len +
			  JUNK_BYTES);
	if (!to.bytes)
		abort();
	compose(&to, p, len);
	ret = deliver(fd, to.bytes, to.len);
	free(to.bytes);
	return ret ? -1 : (ssize_t)len;
}

static ssize_t evil_send(int fd, const void *p, size_t len, int flags)
{
	if (len >= TDM_WIRE_GREETING_BYTES && tdm_wire_is_greeting(p, len)) {
		wire.fd = fd;
		wire.payload = 0;
	}
	if (fd != wire.fd || wire.tier != TDT_TIER_TCP)
		return tdm_os_system.send(fd, p, len, flags);
	return pass_on(fd, p, len);
}

/* ---- packets of the attach socket ----------------------------------------- */

/* Something that is no segment. */
static int odd_fd(void)
{
	switch (chance(5)) {
	case 0:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	case 1:
		return eventfd(0, EFD_CLOEXEC);
	case 2: /* without seals, and empty */
		return memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	case 3:
		return open("/", O_PATH | O_CLOEXEC);
	default:
		return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
}

/* Send the packet with other descriptors. */
static ssize_t with_odd_fds(int fd, struct msghdr *msg, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS * sizeof(int))];
	} room;
	int fds[FDS], n = (int)chance(FDS + 1), i;
	struct cmsghdr *c;
	ssize_t ret;

	memset(&room, 0, sizeof(room));
	for (i = 0; i < n; i++)
		fds[i] = odd_fd();
	msg->msg_control = n ? room.bytes : NULL;
	msg->msg_controllen = n ? CMSG_SPACE((size_t)n * sizeof(int)) : 0;
	c = CMSG_FIRSTHDR(msg);
	if (c) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	}
	ret = tdm_os_system.sendmsg(fd, msg, flags);
	for (i = 0; i < n; i++)
		close(fds[i]);
	return ret;
}

static ssize_t packet(int fd, const struct msghdr *given, int flags)
{
	uint8_t bytes[1024];
	struct iovec iov = { bytes, given->msg_iov->iov_len };
	struct msghdr msg = *given;

	if (!wire.on || chance(3) || iov.iov_len > sizeof(bytes))
		return tdm_os_system.sendmsg(fd, given, flags);
	memcpy(bytes, given->msg_iov->iov_base, iov.iov_len);
	msg.msg_iov = &iov;
	switch (chance(4)) {
	case 0:
		return with_odd_fds(fd, &msg, flags);
	case 1:
		iov.iov_len = (size_t)chance(iov.iov_len + 1);
		break;
	default:
		tdt_change(&wire.random, bytes, iov.iov_len);
	}
	return tdm_os_system.sendmsg(fd, &msg, flags);
}

static ssize_t evil_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t len = tdm_iov_len(msg->msg_iov, msg->msg_iovlen), at = 0, i;
	uint8_t *p;
	ssize_t ret;

	if (wire.tier == TDT_TIER_SHM && msg->msg_iovlen == 1)
		return packet(fd, msg, flags);
	if (wire.tier != TDT_TIER_TCP || fd != wire.fd)
		return tdm_os_system.sendmsg(fd, msg, flags);
	p = malloc(len + 1);
	if (!p)
		abort();
	for (i = 0; i < msg->msg_iovlen; i++) {
		memcpy(p + at, msg->msg_iov[i].iov_base,
		       msg->msg_iov[i].iov_len);
		at += msg->msg_iov[i].iov_len;
	}
	ret = pass_on(fd, p, len);
	free(p);
	return ret;
}

void tdt_wire_begin(uint64_t seed, enum tdt_tier tier)
{
	memset(&wire, 0, sizeof(wire));
	wire.random = seed;
	wire.tier = tier;
	wire.fd = -1;
	wire.skip = (unsigned)chance(RECORDS);
	tdm_os.send = evil_send;
	tdm_os.sendmsg = evil_sendmsg;
}

void tdt_wire_break(int on)
{
	wire.on = on;
}

void tdt_wire_end(void)
{
	tdm_os = tdm_os_system;
}
