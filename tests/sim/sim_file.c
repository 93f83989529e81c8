/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors, files, and those kinds of them that are not sockets: see
 * sim_file.h. As in Linux, an epoll set refers to a file until the last
 * descriptor of that is closed, is level triggered, and may be a member of
 * another one.
 *
 * Locking: none, one thread.
 */
#include "sim_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct event {
	struct tds_file f;
	uint64_t count;
};

struct timer {
	struct tds_file f;
	uint64_t due; /* 0: disarmed */
};

struct set {
	struct tds_file f;
	struct tdm_list watches; /* by of_set */
	int busy;		 /* in events(): a set in itself */
};

struct pid {
	struct tds_file f;
	struct tds_proc *proc;
};

static unsigned open_files;

static unsigned event_events(struct tds_file *f)
{
	return (((struct event *)f)->count ? POLLIN : 0u) | POLLOUT;
}

static unsigned timer_events(struct tds_file *f)
{
	uint64_t due = ((struct timer *)f)->due;

	return due && due <= tds_now() ? POLLIN : 0;
}

static unsigned pid_events(struct tds_file *f)
{
	return ((struct pid *)f)->proc->dead ? POLLIN : 0;
}

/* What of the events of @w is asked for; errors always are. */
static unsigned asked(const struct tds_watch *w)
{
	return tds_events(w->file) & (w->ev.events | POLLERR | POLLHUP);
}

static unsigned set_events(struct tds_file *f)
{
	struct set *s = (struct set *)f;
	struct tdm_list *pos;
	unsigned ready = 0;

	if (s->busy)
		return 0;
	s->busy = 1;
	tdm_list_for_each(pos, &s->watches) {
		if (asked(tdm_list_entry(pos, struct tds_watch, of_set)))
			ready = POLLIN;
	}
	s->busy = 0;
	return ready;
}

static void watch_free(struct tds_watch *w)
{
	tdm_list_del(&w->of_set);
	tdm_list_del(&w->of_file);
	free(w);
}

static void set_close(struct tds_file *f)
{
	struct set *s = (struct set *)f;

	while (!tdm_list_empty(&s->watches))
		watch_free(tdm_list_entry(s->watches.next, struct tds_watch,
					  of_set));
	free(f);
}

static void plain_close(struct tds_file *f)
{
	free(f);
}

static const struct tds_kind_ops plain_ops[TDS_KINDS] = {
	[TDS_EPOLL] = { set_events, set_close },
	[TDS_EVENT] = { event_events, plain_close },
	[TDS_TIMER] = { timer_events, plain_close },
	[TDS_PID] = { pid_events, plain_close },
};

static const struct tds_kind_ops *ops_of(enum tds_kind kind)
{
	switch (kind) {
	case TDS_TCP:
		return &tds_tcp_ops;
	case TDS_UNIX:
		return &tds_unix_ops;
	case TDS_MEMORY:
		return &tds_memory_ops;
	default:
		return &plain_ops[kind];
	}
}

unsigned tds_events(struct tds_file *f)
{
	return f ? ops_of(f->kind)->events(f) : 0;
}

void *tds_file_new(enum tds_kind kind, size_t bytes)
{
	struct tds_file *f = calloc(1, bytes);

	if (!f)
		abort();
	f->kind = kind;
	f->refs = 1;
	tdm_list_init(&f->watches);
	open_files++;
	return f;
}

void tds_file_hold(struct tds_file *f)
{
	f->refs++;
}

void tds_file_release(struct tds_file *f)
{
	if (--f->refs)
		return;
	while (!tdm_list_empty(&f->watches))
		watch_free(tdm_list_entry(f->watches.next, struct tds_watch,
					  of_file));
	open_files--;
	ops_of(f->kind)->last_close(f);
}

unsigned tds_open_files(void)
{
	return open_files;
}

int tds_fd_new(struct tds_file *f)
{
	struct tds_proc *p = tds_self();
	int fd;

	for (fd = 3; fd < (int)p->fds_most; fd++) {
		if (p->fds[fd])
			continue;
		p->fds[fd] = f;
		p->nfds++;
		tds_trace("process %d opens %d, kind %d", p->pid, fd, f->kind);
		return tds_did(fd);
	}
	tds_file_release(f);
	return tds_fail(EMFILE);
}

struct tds_file *tds_file_of(int fd)
{
	struct tds_proc *p = tds_self();

	if (fd >= 0 && fd < TDS_FDS && p->fds[fd])
		return p->fds[fd];
	errno = EBADF;
	return NULL;
}

void *tds_kind_of(int fd, enum tds_kind kind)
{
	struct tds_file *f = tds_file_of(fd);

	if (f && f->kind == kind)
		return f;
	if (f)
		errno = ENOTSOCK;
	return NULL;
}

int tds_close(int fd)
{
	struct tds_file *f = tds_file_of(fd);
	struct tds_proc *p = tds_self();

	if (p->dead)
		return 0;
	if (!f)
		return tds_fail(EBADF);
	p->fds[fd] = NULL;
	p->nfds--;
	tds_trace("process %d closes %d", p->pid, fd);
	tds_file_release(f);
	return tds_did(0);
}

void tds_fds_close(struct tds_proc *p)
{
	int fd;

	for (fd = 0; fd < TDS_FDS; fd++) {
		struct tds_file *f = p->fds[fd];

		p->fds[fd] = NULL;
		if (f)
			tds_file_release(f);
	}
	p->nfds = 0;
}

int tds_pidfd(struct tds_proc *proc)
{
	struct pid *p = tds_file_new(TDS_PID, sizeof(*p));

	p->proc = proc;
	return tds_fd_new(&p->f);
}

/* ---- calls --------------------------------------------------------------- */

static int s_eventfd(unsigned int value, int flags)
{
	struct event *e = tds_file_new(TDS_EVENT, sizeof(*e));

	(void)flags;
	e->count = value;
	return tds_fd_new(&e->f);
}

static int s_timerfd_create(int clock, int flags)
{
	struct timer *t = tds_file_new(TDS_TIMER, sizeof(*t));

	(void)clock;
	(void)flags;
	return tds_fd_new(&t->f);
}

static int s_timerfd_settime(int fd, int flags, const struct itimerspec *value,
			     struct itimerspec *old)
{
	struct timer *t = tds_kind_of(fd, TDS_TIMER);

	(void)flags;
	(void)old;
	if (!t)
		return tds_fail(EBADF);
	t->due = (uint64_t)value->it_value.tv_sec * TDS_S +
		 (uint64_t)value->it_value.tv_nsec;
	return tds_did(0);
}

static ssize_t s_read(int fd, void *buf, size_t len)
{
	struct event *e = tds_kind_of(fd, TDS_EVENT);

	if (!e || len < sizeof(e->count))
		return tds_fail(e ? EINVAL : EBADF);
	if (!e->count)
		return tds_fail(EAGAIN);
	memcpy(buf, &e->count, sizeof(e->count));
	e->count = 0;
	return tds_did(sizeof(e->count));
}

static ssize_t s_write(int fd, const void *buf, size_t len)
{
	struct event *e = tds_kind_of(fd, TDS_EVENT);
	uint64_t n;

	if (!e || len != sizeof(n))
		return tds_fail(e ? EINVAL : EBADF);
	memcpy(&n, buf, sizeof(n));
	e->count += n;
	return tds_did(sizeof(n));
}

static int s_epoll_create1(int flags)
{
	struct set *s = tds_file_new(TDS_EPOLL, sizeof(*s));

	(void)flags;
	tdm_list_init(&s->watches);
	return tds_fd_new(&s->f);
}

static struct tds_watch *watch_of(struct set *s, const struct tds_file *f,
				  int fd)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &s->watches) {
		struct tds_watch *w =
			tdm_list_entry(pos, struct tds_watch, of_set);

		if (w->file == f && w->fd == fd)
			return w;
	}
	return NULL;
}

static void watch_new(struct set *s, struct tds_file *f, int fd,
		      const struct epoll_event *ev)
{
	struct tds_watch *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->file = f;
	w->fd = fd;
	w->ev = *ev;
	tdm_list_append(&s->watches, &w->of_set);
	tdm_list_append(&f->watches, &w->of_file);
}

static int s_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct set *s = tds_kind_of(epfd, TDS_EPOLL);
	struct tds_file *f = tds_file_of(fd);
	struct tds_watch *w;

	if (!s || !f)
		return tds_fail(EBADF);
	w = watch_of(s, f, fd);
	if (op == EPOLL_CTL_ADD ? w != NULL : !w)
		return tds_fail(w ? EEXIST : ENOENT);
	if (op == EPOLL_CTL_ADD)
		watch_new(s, f, fd, ev);
	else if (op == EPOLL_CTL_MOD)
		w->ev = *ev;
	else
		watch_free(w);
	return tds_did(0);
}

/* The one that was reported goes to the end, so that none starves. */
static int s_epoll_wait(int epfd, struct epoll_event *out, int max, int ms)
{
	struct set *s = tds_kind_of(epfd, TDS_EPOLL);
	struct tdm_list *pos, *tmp, taken;
	int n = 0;

	if (!s || ms)
		return tds_fail(s ? EINVAL : EBADF);
	tdm_list_init(&taken);
	tdm_list_for_each_safe(pos, tmp, &s->watches) {
		struct tds_watch *w =
			tdm_list_entry(pos, struct tds_watch, of_set);
		unsigned events = n < max ? asked(w) : 0;

		if (!events || (max > 1 && tds_one_of(16)))
			continue;
		out[n] = w->ev;
		out[n++].events = events;
		tdm_list_del(&w->of_set);
		tdm_list_append(&taken, &w->of_set);
	}
	tdm_list_splice(&s->watches, &taken);
	return tds_did(n);
}

/* Sleep; the others go on meanwhile. */
static void sleep_ms(int ms)
{
	if (tds_self()->dead)
		return;
	if (tds_others_run)
		tds_others_run((unsigned)ms);
	else
		tds_advance((uint64_t)ms * TDS_MS);
}

static int s_poll(struct pollfd *fds, nfds_t count, int ms)
{
	nfds_t i;
	int n = 0;

	for (i = 0; i < count; i++) {
		struct tds_file *f = fds[i].fd < 0 ? NULL :
						     tds_file_of(fds[i].fd);

		fds[i].revents = 0;
		if (fds[i].fd >= 0 && !f)
			fds[i].revents = POLLNVAL;
		if (f)
			fds[i].revents = (short)(tds_events(f) &
						 ((unsigned)fds[i].events |
						  POLLERR | POLLHUP));
		n += fds[i].revents != 0;
	}
	if (!n && ms)
		sleep_ms(ms);
	return tds_did(n);
}

void tds_file_install(void)
{
	tdm_os.eventfd = s_eventfd;
	tdm_os.timerfd_create = s_timerfd_create;
	tdm_os.timerfd_settime = s_timerfd_settime;
	tdm_os.read = s_read;
	tdm_os.write = s_write;
	tdm_os.close = tds_close;
	tdm_os.epoll_create1 = s_epoll_create1;
	tdm_os.epoll_ctl = s_epoll_ctl;
	tdm_os.epoll_wait = s_epoll_wait;
	tdm_os.poll = s_poll;
}
