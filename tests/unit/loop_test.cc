/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop of a TCP tier when libevent has no memory. */
#include <cstdlib>

#include <event2/event.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

extern "C" {
#include "base/os.h"
#include "tcp/wire/loop.h"
#include "tests/harness/log.h"
}

namespace
{

unsigned left; /* allocations until the one that fails; 0: none does */
bool failed;
unsigned foreign; /* descriptors of the program that were closed */
int lowest;	  /* descriptors from it on are the loop's */

bool fails()
{
	return left && !--left && (failed = true);
}

/* The number that the next descriptor of this process gets. */
int next_fd()
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD, 0);

	close(fd);
	return fd;
}

TEST(Loop, OpenWithEachAllocationOfLibeventFailing)
{
	event_set_mem_functions(
		[](size_t n) { return fails() ? nullptr : malloc(n); },
		[](void *p, size_t n) {
			return fails() ? nullptr : realloc(p, n);
		},
		free);
	tdm_os.close = [](int fd) {
		foreign += fd < lowest;
		return close(fd);
	};
	lowest = next_fd();
	for (unsigned nth = 1;; nth++) {
		struct tdm_loop *loop = nullptr;
		int ret;

		tdt_log_expect("no event loop");
		left = nth;
		failed = false;
		ret = tdm_loop_open(&loop);
		left = 0;
		/* libevent does without some of them. */
		if (!ret)
			tdm_loop_close(loop);
		else
			EXPECT_EQ(-FI_ENOMEM, ret) << nth;
		EXPECT_EQ(0u, foreign) << nth;
		ASSERT_EQ(lowest, next_fd()) << nth;
		if (!failed) {
			EXPECT_EQ(0, ret);
			EXPECT_LT(3u, nth);
			break;
		}
	}
	tdm_os = tdm_os_system;
	event_set_mem_functions(nullptr, nullptr, nullptr);
}

/* TCP needs epoll(7): the error is that of the call, and the log names it. */
TEST(Loop, OpenWithoutEpollSaysWhatWasRefused)
{
	static int error;

	tdm_os.epoll_create1 = [](int) {
		errno = error;
		return -1;
	};
	for (int refusal : { EPERM, ENOSYS, EMFILE }) {
		struct tdm_loop *loop = nullptr;

		error = refusal;
		tdt_log_expect("no event loop: epoll_create1");
		EXPECT_EQ(-refusal, tdm_loop_open(&loop));
		EXPECT_EQ(nullptr, loop);
	}
	tdm_os = tdm_os_system;
}

} // namespace
