/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A domain without transports: an engine whose progress is a function of the
 * test, whose descriptor is an eventfd the test makes readable, and whose
 * lock is real.
 */
#ifndef TDT_FAKE_ENGINE_H
#define TDT_FAKE_ENGINE_H

#include <functional>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern "C" {
#include "tdm_engine.h"
#include <rdma/fi_errno.h>
}

namespace tdt
{

class FakeEngine
{
	/* The engine with the way back to its owner. */
	struct Holder {
		struct tdm_engine engine;
		FakeEngine *self;
	};
	Holder holder = {};

public:
	struct tdm_engine &engine = holder.engine;
	struct tdm_lock lock = {};
	int fd = -1;
	int passes = 0;	      /* calls of progress */
	int arms = 0;	      /* calls of arm that said 0 */
	bool pending = false; /* arm says -FI_EAGAIN; G: lock */
	std::function<void()> on_progress;

	explicit FakeEngine(int locked = 1)
	{
		holder.self = this;
		tdm_lock_init(&lock, locked);
		engine.lock = &lock;
		engine.progress = progress;
		engine.arm = arm;
		engine.wait_fd = wait_fd;
	}

	~FakeEngine()
	{
		if (fd >= 0)
			close(fd);
		tdm_lock_fini(&lock);
	}

	FakeEngine(const FakeEngine &) = delete;

	/* A transport has work: the next pass of progress finds it. */
	void kick()
	{
		const uint64_t one = 1;

		tdm_lock_acquire(&lock);
		pending = true;
		if (fd >= 0)
			(void)!write(fd, &one, sizeof(one));
		tdm_lock_release(&lock);
	}

	template <typename F> void locked(F f)
	{
		tdm_lock_acquire(&lock);
		f();
		tdm_lock_release(&lock);
	}

private:
	static FakeEngine *of(struct tdm_engine *e)
	{
		return reinterpret_cast<Holder *>(e)->self;
	}

	static void progress(struct tdm_engine *e)
	{
		FakeEngine *f = of(e);

		tdm_assert_held(&f->lock);
		f->passes++;
		f->pending = false;
		if (f->on_progress)
			f->on_progress();
	}

	static int arm(struct tdm_engine *e)
	{
		FakeEngine *f = of(e);
		uint64_t n;

		tdm_assert_held(&f->lock);
		if (f->pending)
			return -FI_EAGAIN;
		(void)!read(f->fd, &n, sizeof(n));
		f->arms++;
		return 0;
	}

	static int wait_fd(struct tdm_engine *e)
	{
		FakeEngine *f = of(e);

		if (f->fd < 0)
			f->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		return f->fd;
	}
};

/* Whether @fd is readable now. */
inline bool readable(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, 0) == 1;
}

} // namespace tdt

#endif /* TDT_FAKE_ENGINE_H */
