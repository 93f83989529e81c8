/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bad network between two network namespaces. It makes a TUN device in the
 * namespace in which it was started (host 1) and one in another (host 2), and
 * forwards packets between them until SIGTERM or SIGINT. Words NAME=VALUE:
 *
 *	other=PATH	the namespace of host 2, as /proc/PID/ns/net. Required
 *	tun=PATH	the device of TUN (/dev/net/tun)
 *	seed=N		of all chance (1)
 *	loss=N		drops N of 1000 packets
 *	duplicate=N	sends a copy, up to 10 ms later, of N of 1000
 *	reorder=N	holds N of 1000 back by 1 to 10 ms; later ones overtake
 *	delay=MS	each way
 *	jitter=MS	up to so much more delay, which changes no order
 *	rate=N		kbit/s each way; 0: without a limit
 *	buffer=MS	with rate: drops what would wait longer (500)
 *	mtu=BYTES	of both devices (1500); IPv6 needs 1280
 *	blackhole=BYTES	longer packets vanish, and nobody is told
 *	cut=N		1: drops all from host 1, 2: all from host 2, 3: both,
 *	cut_at=MS	from so long after the first TCP packet on (0)
 *	cut_for=MS	for so long
 *	flip=N		flips one bit of payload in one of N TCP segments that
 *			have any, and mends the checksum
 *
 * The devices are called badnet0; host N has 10.78.0.N/24, fd00:78::N/64 and
 * fe80::78:N/64. It prints "ready" when both are up, and at the end a line with
 * the counts. Exit status: 0, 1 after an error.
 *
 * Invariants:
 *  1. What happens to packet N of a direction depends on the seed, the
 *     direction and N; not on other packets, but for the limits of rate and
 *     buffer, and not on the clock, but for cut.
 *  2. Packets of a direction leave in the order in which they came, but for
 *     copies and those that reorder holds back.
 * No lock: one thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/seeded.h"

enum {
	MTU_MOST_BYTES = 65535,
	MTU_IPV6_BYTES = 1280,
	HOLD_MOST_MS = 10, /* of a copy, or of a packet that is held back */
	READS = 64,	   /* of a device before the other has its turn */
	WAITING_MOST = 1 << 16, /* packets */
};

#define MS UINT64_C(1000000) /* in nanoseconds */

struct packet {
	uint64_t due_ns, number; /* the number tells those of one time apart */
	int from;
	size_t len;
	unsigned char bytes[];
};

/* A direction, named by the host that sends. */
struct way {
	int fd; /* the device of that host */
	uint64_t packets, bytes, lost, duplicated, reordered, flipped;
	uint64_t vanished; /* in the black hole */
	uint64_t cut, overflowed, refused;
	uint64_t line_free_ns; /* when the line has sent what it has */
	uint64_t last_due_ns;
};

static struct options {
	const char *other, *tun;
	uint64_t seed, loss, duplicate, reorder, delay, jitter, rate, buffer;
	uint64_t mtu, blackhole, cut, cut_at, cut_for, flip;
} o = { .tun = "/dev/net/tun", .seed = 1, .buffer = 500, .mtu = 1500 };

static struct way ways[2];
static struct packet *waiting[WAITING_MOST]; /* a heap: the first due is first */
static size_t waiting_count;
static uint64_t first_tcp_ns; /* 0: there was none */
static volatile sig_atomic_t ended;

static void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void die(const char *format, ...)
{
	va_list args;

	fputs("badnet: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- options ------------------------------------------------------------- */

static void set_number(const char *word, const char *value)
{
	static const struct {
		const char *name;
		uint64_t *at, most;
	} numbers[] = {
		{ "seed", &o.seed, UINT64_MAX },
		{ "loss", &o.loss, 1000 },
		{ "duplicate", &o.duplicate, 1000 },
		{ "reorder", &o.reorder, 1000 },
		{ "delay", &o.delay, 10000 },
		{ "jitter", &o.jitter, 10000 },
		{ "rate", &o.rate, 100000000 },
		{ "buffer", &o.buffer, 60000 },
		{ "mtu", &o.mtu, MTU_MOST_BYTES },
		{ "blackhole", &o.blackhole, MTU_MOST_BYTES },
		{ "cut", &o.cut, 3 },
		{ "cut_at", &o.cut_at, 3600000 },
		{ "cut_for", &o.cut_for, 3600000 },
		{ "flip", &o.flip, UINT32_MAX },
	};
	size_t i, len = (size_t)(value - word) - 1;
	char *end;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strlen(numbers[i].name) != len ||
		    strncmp(numbers[i].name, word, len))
			continue;
		errno = 0;
		*numbers[i].at = strtoull(value, &end, 10);
		if (*value < '0' || *value > '9' || *end || errno ||
		    *numbers[i].at > numbers[i].most)
			die("not a value: %s", word);
		return;
	}
	die("no such option: %s", word);
}

static void parse(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *value = strchr(argv[i], '=');

		if (!value)
			die("not NAME=VALUE: %s", argv[i]);
		value++;
		if (!strncmp(argv[i], "other=", 6))
			o.other = value;
		else if (!strncmp(argv[i], "tun=", 4))
			o.tun = value;
		else
			set_number(argv[i], value);
	}
	if (!o.other)
		die("other=PATH names no second namespace");
}

/* ---- devices ------------------------------------------------------------- */

/* As the kernel has it; <linux/ipv6.h> does not go with <netinet/in.h>. */
struct address6 {
	struct in6_addr address;
	uint32_t prefix_bits;
	int index; /* of the device */
};

static void named(struct ifreq *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->ifr_name, sizeof(r->ifr_name), "badnet0");
}

static void order(int s, unsigned long what, void *arg, const char *name)
{
	if (ioctl(s, what, arg))
		die("%s: %s", name, strerror(errno));
}

static void set_address4(int s, unsigned long what, const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct ifreq r;

	named(&r);
	inet_pton(AF_INET, text, &a.sin_addr);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	order(s, what, &r, text);
}

/* A kernel without IPv6 gets no such address. */
static void set_address6(const char *text, int index)
{
	struct address6 a = { .prefix_bits = 64, .index = index };
	int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		return;
	inet_pton(AF_INET6, text, &a.address);
	order(s, SIOCSIFADDR, &a, text);
	close(s);
}

static void set_up(int host)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[INET6_ADDRSTRLEN];
	struct ifreq r;

	if (s < 0)
		die("socket: %s", strerror(errno));
	named(&r);
	r.ifr_mtu = (int)o.mtu;
	order(s, SIOCSIFMTU, &r, "mtu");
	snprintf(text, sizeof(text), "10.78.0.%d", host);
	set_address4(s, SIOCSIFADDR, text);
	set_address4(s, SIOCSIFNETMASK, "255.255.255.0");
	named(&r);
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	order(s, SIOCSIFFLAGS, &r, "up");
	order(s, SIOCGIFINDEX, &r, "index");
	if (o.mtu >= MTU_IPV6_BYTES) {
		snprintf(text, sizeof(text), "fd00:78::%d", host);
		set_address6(text, r.ifr_ifindex);
		snprintf(text, sizeof(text), "fe80::78:%d", host);
		set_address6(text, r.ifr_ifindex);
	}
	close(s);
}

/* Make the device of @host in the namespace of this process. */
static int open_device(int host)
{
	int fd = open(o.tun, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct ifreq r;

	if (fd < 0)
		die("%s: %s", o.tun, strerror(errno));
	named(&r);
	r.ifr_flags = IFF_TUN | IFF_NO_PI;
	order(fd, TUNSETIFF, &r, "TUNSETIFF");
	set_up(host);
	return fd;
}

static void enter_other(void)
{
	int fd = open(o.other, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("%s: %s", o.other, strerror(errno));
	close(fd);
}

/* ---- the queue ----------------------------------------------------------- */

static int is_before(const struct packet *a, const struct packet *b)
{
	return a->due_ns < b->due_ns ||
	       (a->due_ns == b->due_ns && a->number < b->number);
}

static void exchange(size_t a, size_t b)
{
	struct packet *p = waiting[a];

	waiting[a] = waiting[b];
	waiting[b] = p;
}

/* Queue a copy of the packet; it is lost if there is no room. */
static void push(int from, const unsigned char *bytes, size_t len,
		 uint64_t due_ns)
{
	static uint64_t number;
	struct packet *p = NULL;
	size_t i = waiting_count;

	if (waiting_count < WAITING_MOST)
		p = malloc(sizeof(*p) + len);
	if (!p) {
		ways[from].overflowed++;
		return;
	}
	p->due_ns = due_ns;
	p->number = number++;
	p->from = from;
	p->len = len;
	memcpy(p->bytes, bytes, len);
	waiting[waiting_count++] = p;
	for (; i && is_before(waiting[i], waiting[(i - 1) / 2]);
	     i = (i - 1) / 2)
		exchange(i, (i - 1) / 2);
}

/* Take the first packet. The caller frees it. */
static struct packet *pop(void)
{
	struct packet *first = waiting[0];
	size_t i = 0, child;

	waiting[0] = waiting[--waiting_count];
	while ((child = 2 * i + 1) < waiting_count) {
		if (child + 1 < waiting_count &&
		    is_before(waiting[child + 1], waiting[child]))
			child++;
		if (!is_before(waiting[child], waiting[i]))
			break;
		exchange(i, child);
		i = child;
	}
	return first;
}

static void send_due(uint64_t now)
{
	struct packet *p;

	while (waiting_count && waiting[0]->due_ns <= now) {
		p = pop();
		if (write(ways[!p->from].fd, p->bytes, p->len) < 0)
			ways[p->from].refused++;
		free(p);
	}
}

/* ---- what happens to a packet -------------------------------------------- */

/*
 * Find TCP in a packet. Returns the length of its header and payload, and in
 * *@at where it begins; 0: the packet has none, or a part only.
 */
static size_t tcp_of(const unsigned char *p, size_t len, size_t *at)
{
	if (len >= 20 && p[0] >> 4 == 4) {
		*at = (size_t)(p[0] & 15) * 4;
		if (p[9] != IPPROTO_TCP || (p[6] & 0x3f) || p[7])
			return 0;
	} else if (len >= 40 && p[0] >> 4 == 6) {
		*at = 40;
		if (p[6] != IPPROTO_TCP)
			return 0;
	} else {
		return 0;
	}
	return len >= *at + 20 ? len - *at : 0;
}

/* The word of 16 bits at @i of @len bytes, as the checksum has it. */
static uint32_t word_at(const unsigned char *p, size_t len, size_t i)
{
	return (uint32_t)p[i] << 8 | (i + 1 < len ? p[i + 1] : 0);
}

/*
 * Flip the bit that @draw chooses in the payload of @tcp, and mend the checksum
 * (RFC 1624, equation 3). Returns 0 if there is no payload.
 */
static int flip_bit(unsigned char *tcp, size_t len, uint64_t draw)
{
	size_t head = (size_t)(tcp[12] >> 4) * 4, place;
	uint32_t sum;

	if (head >= len)
		return 0;
	place = head + (size_t)(draw / 8 % (len - head));
	sum = (word_at(tcp, len, 16) ^ 0xffff) +
	      (word_at(tcp, len, place & ~(size_t)1) ^ 0xffff);
	tcp[place] ^= (unsigned char)(1u << draw % 8);
	sum += word_at(tcp, len, place & ~(size_t)1);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	tcp[16] = (unsigned char)((sum ^ 0xffff) >> 8);
	tcp[17] = (unsigned char)(sum ^ 0xffff);
	return 1;
}

static int is_cut(int from, uint64_t now)
{
	uint64_t begin = first_tcp_ns + o.cut_at * MS;

	return (o.cut & 1u << from) && first_tcp_ns && now >= begin &&
	       now < begin + o.cut_for * MS;
}

/*
 * When a packet of @len bytes has left the line of @w, which it keeps busy; 0:
 * there are too many before it.
 */
static uint64_t leaves_ns(struct way *w, size_t len, uint64_t now)
{
	if (!o.rate)
		return now;
	if (w->line_free_ns < now)
		w->line_free_ns = now;
	if (w->line_free_ns - now > o.buffer * MS)
		return 0;
	w->line_free_ns += len * 8 * MS / o.rate;
	return w->line_free_ns;
}

/* Is the packet lost, for another reason than that the line is busy? */
static int is_lost(int from, size_t len, uint64_t now, int chance)
{
	struct way *w = &ways[from];

	if (is_cut(from, now))
		w->cut++;
	else if (o.blackhole && len > o.blackhole)
		w->vanished++;
	else if (chance)
		w->lost++;
	else
		return 0;
	return 1;
}

static void handle(int from, unsigned char *p, size_t len, uint64_t now)
{
	struct way *w = &ways[from];
	uint64_t chance = tdt_mix(o.seed * 2 + (uint64_t)from) ^
			  tdt_mix(++w->packets);
	/* Each packet draws all of them: see invariant 1. */
	int lose = tdt_seeded(&chance, 1000) < o.loss;
	int copy = tdt_seeded(&chance, 1000) < o.duplicate;
	int hold = tdt_seeded(&chance, 1000) < o.reorder;
	uint64_t jitter = tdt_seeded(&chance, o.jitter * MS + 1);
	uint64_t held = MS + tdt_seeded(&chance, (HOLD_MOST_MS - 1) * MS);
	int flip = o.flip && !tdt_seeded(&chance, o.flip);
	size_t at = 0, tcp = tcp_of(p, len, &at);
	uint64_t due;

	w->bytes += len;
	if (tcp && !first_tcp_ns)
		first_tcp_ns = now;
	if (is_lost(from, len, now, lose))
		return;
	due = leaves_ns(w, len, now);
	if (!due) {
		w->overflowed++;
		return;
	}
	if (flip && tcp)
		w->flipped += (uint64_t)flip_bit(
			p + at, tcp, tdt_seeded(&chance, UINT64_MAX));
	due += o.delay * MS + jitter;
	if (due < w->last_due_ns)
		due = w->last_due_ns;
	w->reordered += (uint64_t)hold;
	if (!hold)
		w->last_due_ns = due;
	push(from, p, len, due + (hold ? held : 0));
	if (copy) {
		w->duplicated++;
		push(from, p, len, due + held);
	}
}

/* ---- the loop ------------------------------------------------------------ */

static void take(int from, uint64_t now)
{
	static unsigned char bytes[MTU_MOST_BYTES + 1];
	ssize_t len;
	int i;

	for (i = 0; i < READS; i++) {
		len = read(ways[from].fd, bytes, sizeof(bytes));
		if (len < 0 && errno != EAGAIN && errno != EINTR)
			die("reading packets of host %d: %s", from + 1,
			    strerror(errno));
		if (len <= 0)
			return;
		handle(from, bytes, (size_t)len, now);
	}
}

static void forward(const sigset_t *unblocked)
{
	struct pollfd fds[2] = { { .fd = ways[0].fd, .events = POLLIN },
				 { .fd = ways[1].fd, .events = POLLIN } };
	struct timespec wait;
	uint64_t now, ns;
	int i, n;

	while (!ended) {
		now = now_ns();
		send_due(now);
		ns = waiting_count ? waiting[0]->due_ns - now : 0;
		wait.tv_sec = (time_t)(ns / 1000000000);
		wait.tv_nsec = (long)(ns % 1000000000);
		n = ppoll(fds, 2, waiting_count ? &wait : NULL, unblocked);
		if (n < 0 && errno != EINTR)
			die("ppoll: %s", strerror(errno));
		for (i = 0; n > 0 && i < 2; i++) {
			if (fds[i].revents)
				take(i, now_ns());
		}
	}
}

/* The counts of both ways together. */
static void report(void)
{
	struct way sum = { 0 };
	int i;

	for (i = 0; i < 2; i++) {
		sum.packets += ways[i].packets;
		sum.bytes += ways[i].bytes;
		sum.lost += ways[i].lost;
		sum.duplicated += ways[i].duplicated;
		sum.reordered += ways[i].reordered;
		sum.flipped += ways[i].flipped;
		sum.vanished += ways[i].vanished;
		sum.cut += ways[i].cut;
		sum.overflowed += ways[i].overflowed;
		sum.refused += ways[i].refused;
	}
	printf("packets %ju bytes %ju lost %ju duplicated %ju reordered %ju "
	       "flipped %ju vanished %ju cut %ju overflowed %ju refused %ju\n",
	       (uintmax_t)sum.packets, (uintmax_t)sum.bytes,
	       (uintmax_t)sum.lost, (uintmax_t)sum.duplicated,
	       (uintmax_t)sum.reordered, (uintmax_t)sum.flipped,
	       (uintmax_t)sum.vanished, (uintmax_t)sum.cut,
	       (uintmax_t)sum.overflowed, (uintmax_t)sum.refused);
}

static void end(int sig)
{
	(void)sig;
	ended = 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = end };
	sigset_t blocked, before;

	parse(argc, argv);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	ways[0].fd = open_device(1);
	enter_other();
	ways[1].fd = open_device(2);
	puts("ready");
	fflush(stdout);
	forward(&before);
	report();
	return 0;
}
