/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random traffic through the receive side, against a model of plain lists
 * that says which message each receive gets. Checked: the pairs are those of
 * the model, every receive ends exactly once, every multi-recv buffer is
 * released exactly once and after its last part, every entry comes back.
 * TDT_SRX_SCHEDULES raises the number of runs, TDT_SEED repeats one.
 */
#include "srx_mock.h"

#include <algorithm>
#include <random>
#include <set>

#include "tests/harness/seeded.h"

using namespace srx_test;

namespace
{

enum { SOURCES = 4, BUF = 64 };

struct Rx {
	char buf[BUF];
	bool tagged, multi;
	fi_addr_t src;
	uint64_t tag, ignore;
	size_t len, used, min;
	bool spent, cancelled;
	std::set<uint64_t> owed; /* messages it was given */
	unsigned ended;		 /* entries that end it */
	struct fi_context ctx;	 /* its context */

	size_t left() const
	{
		return len - used;
	}
};

struct Wait {
	uint64_t id;
	bool tagged;
	fi_addr_t src; /* as far as known */
	fi_addr_t real;
	uint64_t tag;
	size_t size;
	Mock *from;
	struct fi_peer_rx_entry *entry;
};

class SrxRandom : public Srx
{
protected:
	unsigned upto(unsigned n)
	{
		return unsigned(rng() % n);
	}

	bool fits(const Rx &r, const Wait &w)
	{
		return r.tagged == w.tagged &&
		       (!directed || r.src == ANY || r.src == w.src) &&
		       (!r.tagged || !((r.tag ^ w.tag) & ~r.ignore));
	}

	/* ---- the model ---- */

	void give(Rx *r, const Wait &w)
	{
		r->owed.insert(w.id);
		if (r->multi) {
			r->used += std::min(w.size, r->left());
			if (r->left() && r->left() >= r->min)
				return;
		}
		r->spent = true;
		posted.erase(std::find(posted.begin(), posted.end(), r));
	}

	bool model_arrive(const Wait &w)
	{
		for (Rx *r : posted) {
			if (fits(*r, w)) {
				give(r, w);
				return true;
			}
		}
		return false;
	}

	void model_post(Rx *r)
	{
		posted.push_back(r);
		for (size_t i = 0; i < waiting.size() && !r->spent;) {
			if (fits(*r, waiting[i])) {
				give(r, waiting[i]);
				waiting.erase(waiting.begin() + long(i));
			} else {
				i++;
			}
		}
	}

	void model_resolve(Mock *t)
	{
		std::vector<uint64_t> learned;

		for (auto &w : waiting) {
			if (w.from == t && w.src == ANY) {
				w.src = w.real;
				learned.push_back(w.id);
			}
		}
		for (uint64_t id : learned) {
			auto w = std::find_if(waiting.begin(), waiting.end(),
					      [&](const Wait &x) {
						      return x.id == id;
					      });

			if (model_arrive(*w))
				waiting.erase(w);
		}
	}

	/* ---- the operations ---- */

	Rx *make_rx(bool tagged)
	{
		all.emplace_back(new Rx());
		Rx *r = all.back().get();

		r->tagged = tagged;
		r->multi = !upto(5);
		r->src = upto(2) ? ANY : upto(SOURCES);
		r->tag = tagged ? upto(4) : 0;
		r->ignore = tagged && upto(2) ? upto(4) : 0;
		r->len = r->multi ? 24 + upto(BUF - 24) : 8 + upto(12);
		r->min = 8;
		return r;
	}

	void do_post()
	{
		Rx *r = make_rx(upto(2));

		if (posted.size() >= 32)
			return;
		ASSERT_EQ(post((r->tagged ? FI_TAGGED : FI_MSG) |
				       FI_COMPLETION |
				       (r->multi ? FI_MULTI_RECV : 0),
			       r->src, r->tag, r->buf, r->len, &r->ctx,
			       r->ignore),
			  0);
		model_post(r);
	}

	void do_arrive()
	{
		Wait w = {};
		Msg m = {};

		w.id = ++last_id;
		w.real = upto(SOURCES);
		w.from = w.real & 1 ? a.get() : b.get();
		w.src = known[w.real & 1] || upto(3) ? w.real : ANY;
		w.tagged = upto(2);
		w.tag = w.tagged ? upto(4) : 0;
		w.size = 8 + upto(10);
		m.tagged = w.tagged;
		m.src = w.src;
		m.late = w.real;
		m.tag = w.tag;
		m.text.assign(w.size, 'x');
		memcpy(&m.text[0], &w.id, 8);
		w.from->hold = upto(2);
		w.entry = w.from->arrive(m);
		w.from->hold = upto(2);
		bool taken = model_arrive(w);
		ASSERT_EQ(w.from->last_get, taken ? 0 : -FI_ENOENT);
		if (!taken)
			waiting.push_back(w);
	}

	void do_cancel()
	{
		if (posted.empty())
			return;
		Rx *r = posted[upto(unsigned(posted.size()))];

		ASSERT_EQ(tdm_srx_cancel(srx, &r->ctx), 0);
		posted.erase(std::find(posted.begin(), posted.end(), r));
		r->cancelled = true;
		r->spent = true;
	}

	void do_finish()
	{
		Mock *t = upto(2) ? a.get() : b.get();

		if (!t->held.empty())
			t->finish(t->held[upto(unsigned(t->held.size()))]);
	}

	void do_lose()
	{
		if (waiting.empty())
			return;
		size_t i = upto(unsigned(waiting.size()));

		waiting[i].from->give_back(waiting[i].entry);
		waiting.erase(waiting.begin() + long(i));
	}

	void do_resolve()
	{
		Mock *t = upto(2) ? a.get() : b.get();

		t->resolve();
		model_resolve(t);
	}

	void do_forget()
	{
		fi_addr_t addr = upto(SOURCES);

		tdm_srx_forget(srx, addr);
		for (auto &w : waiting) {
			if (w.src == addr)
				w.src = ANY;
		}
	}

	/* A peek, then perhaps the claim: with a buffer or as a discard. */
	void do_peek()
	{
		uint64_t how[] = { 0, FI_DISCARD, FI_CLAIM };
		uint64_t f = how[upto(3)];
		Rx *r = make_rx(true);
		size_t i = 0;

		r->multi = false;
		check();
		ASSERT_EQ(peek(FI_PEEK | f, r->src, r->tag, &r->ctx, r->ignore),
			  0);
		Comp c = one();
		while (i < waiting.size() && !fits(*r, waiting[i]))
			i++;
		if (i == waiting.size()) {
			ASSERT_EQ(c.err, FI_ENOMSG);
			return;
		}
		ASSERT_EQ(c.err, 0);
		ASSERT_EQ(c.tag, waiting[i].tag);
		ASSERT_EQ(c.len, waiting[i].size);
		ASSERT_EQ(c.src, waiting[i].src);
		if (!f)
			return;
		Wait w = waiting[i];
		waiting.erase(waiting.begin() + long(i));
		if (f == FI_DISCARD)
			return;
		if (upto(2)) {
			ASSERT_EQ(peek(FI_CLAIM | FI_DISCARD, ANY, 0, &r->ctx),
				  0);
			one();
			return;
		}
		ASSERT_EQ(post(FI_TAGGED | FI_COMPLETION | FI_CLAIM, ANY, 0,
			       r->buf, r->len, &r->ctx),
			  0);
		r->owed.insert(w.id);
		r->spent = true;
	}

	/* ---- what the queue says ---- */

	void check_entry(const Comp &c)
	{
		Rx *r = nullptr;
		uint64_t id;

		for (auto &x : all) {
			if (&x->ctx == c.context)
				r = x.get();
		}
		ASSERT_NE(r, nullptr);
		ASSERT_EQ(r->ended, 0u);
		if (c.err == FI_ECANCELED) {
			ASSERT_TRUE(r->cancelled && r->owed.empty());
			ASSERT_EQ(!!(c.flags & FI_MULTI_RECV), r->multi);
			r->ended++;
			return;
		}
		if (c.flags & FI_MULTI_RECV) {
			ASSERT_EQ(c.flags, FI_MULTI_RECV);
			ASSERT_TRUE(r->multi && r->spent && !r->cancelled &&
				    r->owed.empty());
			r->ended++;
			return;
		}
		ASSERT_TRUE(c.err == 0 || c.err == FI_ETRUNC);
		ASSERT_GE(static_cast<char *>(c.buf), r->buf);
		ASSERT_LE(static_cast<char *>(c.buf) + c.len, r->buf + r->len);
		ASSERT_GE(c.len, 8u);
		memcpy(&id, c.buf, 8);
		ASSERT_EQ(r->owed.erase(id), 1u);
		if (!r->multi)
			r->ended++;
	}

	void check()
	{
		for (const Comp &c : cq.got)
			check_entry(c);
		cq.got.clear();
		ASSERT_EQ(tdm_srx_left(srx), 64 - posted.size());
	}

	void step()
	{
		switch (upto(16)) {
		case 0:
			return do_cancel();
		case 1:
			return do_lose();
		case 2:
			return upto(4) ? do_resolve() : do_forget();
		case 3:
		case 4:
			return do_peek();
		case 5:
		case 6:
		case 7:
			return do_finish();
		default:
			return bias > upto(100) ? do_post() : do_arrive();
		}
	}

	void run(uint64_t seed)
	{
		rng.seed(seed);
		directed = upto(4);
		open(directed ? TDM_SRX_DIRECTED_MSG | TDM_SRX_DIRECTED_TAG : 0,
		     64, 8);
		bias = 20 + upto(60);
		known[0] = upto(2);
		known[1] = upto(2);
		all.clear();
		posted.clear();
		waiting.clear();
		for (int i = 0; i < 150 && !HasFatalFailure(); i++) {
			step();
			if (!HasFatalFailure())
				check();
		}
		while (!HasFatalFailure() && !a->held.empty())
			a->finish(a->held[0]);
		while (!HasFatalFailure() && !b->held.empty())
			b->finish(b->held[0]);
		if (HasFatalFailure())
			return;
		check();
		for (auto &r : all) {
			ASSERT_TRUE(r->owed.empty());
			ASSERT_EQ(r->ended, r->spent ? 1u : 0u);
		}
	}

	std::mt19937_64 rng;
	bool directed = false, known[2] = {};
	unsigned bias = 0;
	uint64_t last_id = 0;
	std::vector<std::unique_ptr<Rx>> all;
	std::vector<Rx *> posted;
	std::vector<Wait> waiting;
};

TEST_F(SrxRandom, EveryReceiveEndsOnceWithItsMessage)
{
	const char *again = getenv("TDT_SEED");
	uint64_t n = tdt_number("TDT_SRX_SCHEDULES", 3000);
	uint64_t seed = tdt_number("TDT_SEED", 1);

	for (uint64_t i = 0; i < (again ? 1 : n); i++) {
		run(seed + i);
		ASSERT_FALSE(HasFailure())
			<< "repeat with TDT_SEED=" << seed + i;
	}
}

} // namespace
