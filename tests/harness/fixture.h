/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GoogleTest side of the harness: a fixture that owns a world and checks
 * at the end of each test that no completion came unasked and that everything
 * closes.
 *
 * Endpoint 0 receives, the others send: one over the tier of the path, two in
 * a mixed world (the second keeps to TCP). Tests run over all senders().
 */
#ifndef TDT_FIXTURE_H
#define TDT_FIXTURE_H

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "buffers.h"
#include "drive.h"
#include "log.h"
#include "world.h"

/* Restart the time limit of the watchdog, for a test of many parts. Defined in main.cc. */
void tdt_watchdog_restart();

class Case : public testing::Test
{
protected:
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;

	Case()
	{
		tdt_attr_init(&attr);
	}

	void TearDown() override
	{
		if (!w)
			return;
		tdt_progress(w);
		EXPECT_EQ(0, w->bad) << "a CQ read failed";
		EXPECT_EQ(0u, tdt_pending(w)) << "completions nobody asked for";
		close();
	}

	void close()
	{
		EXPECT_EQ(0, tdt_world_close(w)) << tdt_error();
		w = nullptr;
	}

	void open()
	{
		ASSERT_EQ(nullptr, w);
		ASSERT_EQ(0, tdt_world_open(&attr, &w)) << tdt_error();
	}

	/* Repeat @call, with progress, while it returns -FI_EAGAIN. */
	ssize_t keep_on(const std::function<ssize_t()> &call)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		while ((ret = call()) == -FI_EAGAIN && tdt_now_ms() < end)
			tdt_progress(w);
		return ret;
	}

	/*
	 * @wait lasts @ms milliseconds. A loaded machine may run the thread
	 * late, but not each time: one call is less than two seconds late.
	 */
	static void lasts(int ms, const std::function<void()> &wait)
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		const uint64_t least = static_cast<uint64_t>(ms);
		uint64_t start, took;

		do {
			start = tdt_now_ms();
			wait();
			took = tdt_now_ms() - start;
			ASSERT_GE(took + 1, least);
		} while (took > least + 2000 && start < end);
		EXPECT_LE(took, least + 2000) << "never in time";
	}

	struct tdt_ep *ep(size_t i)
	{
		return &w->eps[i];
	}
	struct tdt_ep *rx()
	{
		return &w->eps[0];
	}

	std::vector<struct tdt_ep *> senders()
	{
		std::vector<struct tdt_ep *> list;

		for (size_t i = 1; i < w->count; i++)
			list.push_back(&w->eps[i]);
		return list;
	}

	/* The address of @from as @at has it. */
	static fi_addr_t addr(const struct tdt_ep *at,
			      const struct tdt_ep *from)
	{
		return at->peers[from->index];
	}

	/*
	 * Make sure that all that @from sent to rx() before has arrived there:
	 * a tagged message behind it (FI_ORDER_SAS) is received.
	 */
	void fence(struct tdt_ep *from)
	{
		static const uint64_t tag = 0xfe2ce00000000000;
		char out = 1, in = 0;
		struct iovec ov = iov_of(&out, 1), iv = iov_of(&in, 1);

		ASSERT_EQ(0, tdt_trecv(rx(), &iv, tag | from->index, 0, &in));
		ASSERT_EQ(0,
			  tdt_tsend(from, rx(), &ov, tag | from->index, &out));
		ASSERT_EQ(0, tdt_wait(rx(), &in, nullptr));
		if (!attr.tx_bind) {
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
		}
	}

	/* Wait for a success with exactly these flags. */
	void done(struct tdt_ep *at, void *context, uint64_t flags,
		  struct tdt_comp *out = nullptr)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(at, context, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		if (attr.format != FI_CQ_FORMAT_CONTEXT) {
			EXPECT_EQ(flags, c.flags);
		}
		if (out)
			*out = c;
	}

	/* Wait for an error entry with code @err. */
	void failed(struct tdt_ep *at, void *context, int err,
		    struct tdt_comp *out = nullptr)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(at, context, &c));
		EXPECT_EQ(err, c.err) << fi_strerror(c.err);
		if (out)
			*out = c;
	}
};

#define OPEN() ASSERT_NO_FATAL_FAILURE(open())
#define OK(call) ASSERT_NO_FATAL_FAILURE(call)

/* Tests of what another provider does differently. */
#define ONLY_TANDEM()                                                          \
	do {                                                                   \
		if (strcmp(tdt_prov_name(), "tandem"))                         \
			GTEST_SKIP() << "a rule of tandem's own";              \
	} while (0)

#endif /* TDT_FIXTURE_H */
