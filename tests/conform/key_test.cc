/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys: fi_endpoint(3) and fi_domain(3) auth_key, fi_av(3)
 * fi_av_insert_auth_key and its relatives.
 */
#include <cstdlib>

#include "keys.h"
#include "tests/harness/sanitized.h"

namespace
{

TEST_F(Keys, EndpointsOfOneKeyTalkThoseOfTwoDoNot)
{
	/* fi_endpoint(3) 2.1, auth_key - Authorization Key 1: Only endpoints of
	 * the same key communicate. */
	ONLY_TANDEM();
	OPEN();
	Own a, b, c;
	std::vector<Own *> all = { &a, &b, &c };
	char out[8] = "hello", in[8] = "", stray[8] = "";

	OK(open_own(a, ONE));
	OK(open_own(b, ONE));
	OK(open_own(c, TWO));
	OK(enable(a));
	OK(enable(b));
	OK(enable(c));
	fi_addr_t b_to_a = insert(b.av, a.ep), c_to_a = insert(c.av, a.ep);

	ASSERT_EQ(0, fi_trecv(a.ep, in, 8, nullptr, FI_ADDR_UNSPEC, 7, 0, in));
	/* A message from the other endpoint, sent first, does not arrive. */
	ASSERT_EQ(0, push(c, c_to_a, stray, 8, 7, all));
	ASSERT_EQ(0, push(b, b_to_a, out, 8, 7, all));
	EXPECT_EQ(1, next_of(a, all).ret);
	EXPECT_STREQ("hello", in);
	EXPECT_EQ(1, next_of(b, all).ret);
	ASSERT_EQ(0, fi_trecv(a.ep, in, 8, nullptr, FI_ADDR_UNSPEC, 7, 0, in));
	for (uint64_t end = tdt_now_ms() + 100; tdt_now_ms() < end;)
		poll_all(all);
	OK(empty(a.cq));
}

TEST_F(Keys, SizesAndCombinations)
{
	/* fi_endpoint(3) 2.1, auth_key_size - Authorization Key Length 2:
	 * auth_key_size is 0 with FI_AV_AUTH_KEY. */
	struct fi_info *hints, *info = nullptr;

	ONLY_TANDEM();
	OPEN();
	hints = tdt_hints(&attr);
	hints->ep_attr->auth_key = (uint8_t *)strdup("short");
	hints->ep_attr->auth_key_size = 5;
	EXPECT_EQ(-FI_ENODATA,
		  fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	free(hints->ep_attr->auth_key);
	hints->ep_attr->auth_key = (uint8_t *)strdup(ONE);
	hints->ep_attr->auth_key_size = strlen(ONE);
	ASSERT_EQ(0, fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	EXPECT_EQ(strlen(ONE), info->ep_attr->auth_key_size);
	EXPECT_EQ(0, memcmp(ONE, info->ep_attr->auth_key, strlen(ONE)));
	EXPECT_GE(info->domain_attr->max_ep_auth_key, 2u);
	fi_freeinfo(info);
	hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	EXPECT_EQ(-FI_ENODATA,
		  fi_getinfo(TDT_API, nullptr, nullptr, 0, hints, &info));
	fi_freeinfo(hints);
}

TEST_F(Keys, InsertLookupRemove)
{
	ONLY_TANDEM();
	OPEN();
	Own o;
	uint8_t buf[64];
	size_t len;
	fi_addr_t h, again, x;

	OK(open_own(o, nullptr));
	/* fi_av(3) 2.1, fi_av_insert_auth_key 3: A size that is none of a key
	 * of this provider is -FI_EINVAL. */
	EXPECT_EQ(-FI_EINVAL, fi_av_insert_auth_key(o.av, ONE, 3, &h, 0));
	EXPECT_EQ(-FI_EINVAL, fi_av_insert_auth_key(o.av, buf, 65, &h, 0));
	EXPECT_EQ(-FI_EBADFLAGS, fi_av_insert_auth_key(o.av, ONE, 20, &h, 1));
	EXPECT_EQ(-FI_EINVAL, fi_av_insert_auth_key(rx()->av, ONE, 20, &h, 0));
	h = handle(o, ONE);
	again = handle(o, ONE);
	EXPECT_EQ(h, again);
	/* fi_av(3) 2.1, fi_av_lookup_auth_key 1: A key that does not fit is cut
	 * off, and auth_key_size becomes the size needed. */
	memset(buf, 0xee, sizeof(buf));
	len = 10;
	ASSERT_EQ(0, fi_av_lookup_auth_key(o.av, h, buf, &len));
	EXPECT_EQ(strlen(ONE), len);
	EXPECT_EQ(0, memcmp(ONE, buf, 10));
	EXPECT_EQ(0xee, buf[10]);
	len = 0;
	EXPECT_EQ(0, fi_av_lookup_auth_key(o.av, h, nullptr, &len));
	EXPECT_EQ(-FI_EINVAL, fi_av_lookup_auth_key(o.av, h + 1, buf, &len));
	/* Addresses: each has a key. */
	x = FI_ADDR_UNSPEC;
	EXPECT_EQ(0, fi_av_insert(o.av, rx()->name, 1, &x, 0, nullptr));
	x = h + 1;
	EXPECT_EQ(0,
		  fi_av_insert(o.av, rx()->name, 1, &x, FI_AUTH_KEY, nullptr));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, x);
	x = h;
	ASSERT_EQ(1,
		  fi_av_insert(o.av, rx()->name, 1, &x, FI_AUTH_KEY, nullptr));
	EXPECT_EQ(0u, x);
	len = sizeof(buf);
	ASSERT_EQ(0, fi_av_lookup_auth_key(o.av, x, buf, &len));
	EXPECT_EQ(0, memcmp(ONE, buf, len));
	/* The other key: another address. */
	x = handle(o, TWO);
	EXPECT_NE(h, x);
	again = x;
	ASSERT_EQ(1,
		  fi_av_insert(o.av, rx()->name, 1, &x, FI_AUTH_KEY, nullptr));
	EXPECT_EQ(1u, x);
	/* fi_av(3) 2.1, fi_av_remove 3: The removal of a key says
	 * FI_AUTH_KEY. */
	EXPECT_EQ(-FI_EINVAL, fi_av_remove(o.av, &again, 1, 0));
	EXPECT_EQ(0, fi_av_remove(o.av, &again, 1, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, fi_av_remove(o.av, &again, 1, FI_AUTH_KEY));
	EXPECT_EQ(0, fi_av_remove(o.av, &h, 1, FI_AUTH_KEY));
	EXPECT_EQ(0, fi_av_remove(o.av, &h, 1, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EINVAL, fi_av_remove(o.av, &h, 1, FI_AUTH_KEY));
}

TEST_F(Keys, UserIdsAreNotOfAnInsert)
{
	/* fi_av(3) 2.1, fi_av_insert 12: User ids of single insertions and
	 * FI_AV_AUTH_KEY exclude each other. */
	ONLY_TANDEM();
	OPEN();
	Own o;
	fi_addr_t x;

	OK(open_own(o, nullptr));
	x = handle(o, ONE);
	EXPECT_EQ(-FI_EINVAL,
		  fi_av_insert(o.av, rx()->name, 1, &x,
			       FI_AUTH_KEY | FI_AV_USER_ID, nullptr));
	x = 17;
	EXPECT_EQ(-FI_EINVAL, fi_av_insert(o.av, rx()->name, 1, &x,
					   FI_AV_USER_ID, nullptr));
}

TEST_F(Keys, InUseByAnEndpointIsBusy)
{
	/* fi_av(3) 2.1, fi_av_remove 3: A key that an open endpoint was enabled
	 * with stays: -FI_EBUSY. */
	ONLY_TANDEM();
	OPEN();
	Own o;
	fi_addr_t h, late;

	OK(open_own(o, nullptr));
	h = handle(o, ONE);
	OK(enable(o));
	late = handle(o, TWO);
	EXPECT_EQ(-FI_EBUSY, fi_av_remove(o.av, &h, 1, FI_AUTH_KEY));
	/* Not of this endpoint: it was enabled before. */
	fi_addr_t x = by_key(o, o, late);
	char b = 0;
	EXPECT_EQ(-FI_EINVAL, fi_send(o.ep, &b, 1, nullptr, x, &b));
	EXPECT_EQ(0, fi_av_remove(o.av, &late, 1, FI_AUTH_KEY));
	ASSERT_EQ(0, drop(&o.ep->fid));
	EXPECT_EQ(0, fi_av_remove(o.av, &h, 1, FI_AUTH_KEY));
}

TEST_F(Keys, ReceivesOfOneKey)
{
	/* fi_av(3) 2.1, fi_av_insert_auth_key 5: A receive with FI_AUTH_KEY
	 * takes messages of peers with that key alone. */
	ONLY_TANDEM();
	OPEN();
	Own at, from;
	std::vector<Own *> all = { &at, &from };
	char out[2][8] = { "by one", "by two" }, in[3][8] = {};
	fi_addr_t h[2], k[2], src[2];
	struct fi_msg_tagged m;
	struct iovec v;

	OK(open_own(at, nullptr));
	OK(open_own(from, nullptr));
	OK(both_keys(at, h));
	OK(both_keys(from, k));
	src[0] = by_key(from, at, k[0]);
	src[1] = by_key(from, at, k[1]);
	memset(&m, 0, sizeof(m));
	m.msg_iov = &v;
	m.iov_count = 1;
	m.tag = 5;
	/* Posted first for the second key, whose message comes last. */
	for (int i = 1; i >= 0; i--) {
		v = iov_of(in[i], 8);
		m.addr = h[i];
		m.context = in[i];
		ASSERT_EQ(0, fi_trecvmsg(at.ep, &m, FI_AUTH_KEY));
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, push(from, src[i], out[i], 8, 5, all));
		EXPECT_EQ(1, next_of(from, all).ret);
		Entry e = next_of(at, all);
		ASSERT_EQ(1, e.ret);
		EXPECT_EQ(in[i], e.e.op_context);
		EXPECT_STREQ(out[i], in[i]);
		/* Nobody there knows the sender yet. */
		EXPECT_EQ(FI_ADDR_NOTAVAIL, e.src);
	}
	/* Unexpected, and known: by its address for that key. */
	ASSERT_EQ(0, push(from, src[1], out[1], 8, 5, all));
	EXPECT_EQ(1, next_of(from, all).ret);
	fi_addr_t one = by_key(at, from, h[0]), two = by_key(at, from, h[1]);
	EXPECT_NE(one, two);
	v = iov_of(in[0], 8);
	m.addr = h[0];
	m.context = in[0];
	ASSERT_EQ(0, fi_trecvmsg(at.ep, &m, FI_AUTH_KEY));
	m.addr = one;
	ASSERT_EQ(0, fi_trecvmsg(at.ep, &m, 0));
	for (uint64_t end = tdt_now_ms() + 50; tdt_now_ms() < end;)
		poll_all(all);
	OK(empty(at.cq));
	v = iov_of(in[2], 8);
	m.addr = h[1];
	m.context = in[2];
	ASSERT_EQ(0, fi_trecvmsg(at.ep, &m, FI_AUTH_KEY));
	Entry e = next_of(at, all);
	ASSERT_EQ(1, e.ret);
	EXPECT_EQ(in[2], e.e.op_context);
	EXPECT_EQ(two, e.src);
	EXPECT_STREQ(out[1], in[2]);
	/* A handle is none without the flag, and the flag needs a handle. */
	EXPECT_EQ(-FI_EINVAL, fi_trecvmsg(at.ep, &m, 0));
	m.addr = two;
	EXPECT_EQ(-FI_EINVAL, fi_trecvmsg(at.ep, &m, FI_AUTH_KEY));
	EXPECT_EQ(-FI_EOPNOTSUPP, fi_trecvmsg(rx()->ep, &m, FI_AUTH_KEY));
}

TEST_F(Keys, SourceErrorsTellTheKey)
{
	/* fi_av(3) 2.1, fi_av_insert_auth_key 9: Without user ids,
	 * FI_EADDRNOTAVAIL entries tell the fi_addr_t of the key; with them
	 * FI_ADDR_NOTAVAIL until the key has an id. */
	ONLY_TANDEM();
	OPEN();
	for (uint64_t flags : { uint64_t(0), uint64_t(FI_AV_USER_ID) }) {
		Own at, from;
		std::vector<Own *> all = { &at, &from };
		char out[8] = "hello", in[8];
		fi_addr_t h[2], k[2];

		OK(open_own(at, nullptr, FI_SOURCE | FI_SOURCE_ERR, flags));
		OK(open_own(from, nullptr));
		OK(both_keys(at, h));
		OK(both_keys(from, k));
		EXPECT_EQ(flags ? 0 : -FI_EINVAL,
			  fi_av_set_user_id(at.av, h[1], 4711, FI_AUTH_KEY));
		EXPECT_EQ(-FI_EINVAL,
			  fi_av_set_user_id(at.av, 5, 4711, FI_AUTH_KEY));
		for (int i = 0; i < 2; i++) {
			fi_addr_t to = by_key(from, at, k[i]);
			fi_addr_t want = !flags ? h[i] :
					 i	? 4711 :
						  FI_ADDR_NOTAVAIL;

			ASSERT_EQ(0, fi_trecv(at.ep, in, 8, nullptr,
					      FI_ADDR_UNSPEC, 7, 0, in));
			ASSERT_EQ(0, push(from, to, out, 8, 7, all));
			Entry e = next_of(at, all);
			ASSERT_EQ(-FI_EAVAIL, e.ret);
			EXPECT_EQ(FI_EADDRNOTAVAIL, e.err.err);
			EXPECT_EQ(want, e.err.src_addr);
			EXPECT_EQ(in, e.err.op_context);
			EXPECT_STREQ(out, in);
			EXPECT_EQ(1, next_of(from, all).ret);
		}
	}
}

TEST_F(Keys, EachKeyHasASessionOfTheSamePath)
{
	/* fi_tandem(7), KEYS: two endpoints have a session for each key that
	 * they share, by shared memory where that is used. */
	ONLY_TANDEM();
	OPEN();
	Own at, from;
	std::vector<Own *> all = { &at, &from };
	uint32_t want = tdt_path() == TDT_REMOTE ? TDM_REPORT_TCP :
						   TDM_REPORT_SHM;
	fi_addr_t h[2], k[2], to[2], back[2], self[2];
	char out[8] = "hello", in[8];

	OK(open_own(at, nullptr));
	OK(open_own(from, nullptr));
	OK(both_keys(at, h));
	OK(both_keys(from, k));
	for (int i = 0; i < 2; i++) {
		to[i] = by_key(from, at, k[i]);
		back[i] = by_key(at, from, h[i]);
		self[i] = by_key(at, at, h[i]);
	}
	auto message = [&](Own &o, fi_addr_t by, Own &target,
			   fi_addr_t source) {
		memset(in, 0, sizeof(in));
		ASSERT_EQ(0, fi_trecv(target.ep, in, 8, nullptr, source, 7, 0,
				      in));
		ASSERT_EQ(0, push(o, by, out, 8, 7, all));
		for (bool sent = false, got = false; !sent || !got;) {
			Own &next = &o == &target || !sent ? o : target;
			Entry e = next_of(next, all);

			ASSERT_EQ(1, e.ret);
			(e.e.flags & FI_RECV ? got : sent) = true;
			if (e.e.flags & FI_RECV) {
				EXPECT_EQ(source, e.src);
			}
		}
		EXPECT_STREQ("hello", in);
	};
	for (int i = 0; i < 2; i++) {
		for (int n = 0; n <= i; n++)
			OK(message(from, to[i], at, back[i]));
		OK(message(at, back[i], from, to[i]));
		OK(message(at, self[i], at, self[i]));
	}
	for (int i = 0; i < 2; i++) {
		struct tdm_report_path p = path(from, to[i]);

		EXPECT_EQ(want, p.path);
		EXPECT_EQ(1u + (unsigned)i, p.tx_msgs);
		EXPECT_EQ(1u, p.rx_msgs);
		EXPECT_EQ(want, path(at, back[i]).path);
	}
	/* One of the two leaves; the other key's address stays. */
	ASSERT_EQ(0, fi_av_remove(from.av, &to[0], 1, 0));
	OK(message(from, to[1], at, back[1]));
	to[0] = by_key(from, at, k[0]);
	OK(message(from, to[0], at, back[0]));
}

TEST_F(Keys, AKeyOfAnEndpointMeetsThatOfAVector)
{
	/* fi_tandem(7), KEYS: it is the secret that has to be the same, whether
	 * an endpoint or its address vector has it. */
	ONLY_TANDEM();
	OPEN();
	Own at, from;
	std::vector<Own *> all = { &at, &from };
	fi_addr_t h[2];
	char out[8] = "hello", in[8];

	OK(open_own(at, nullptr));
	OK(open_own(from, TWO));
	OK(both_keys(at, h));
	OK(enable(from));
	fi_addr_t to = insert(from.av, at.ep), back = by_key(at, from, h[1]);
	for (bool there : { true, false }) {
		Own &o = there ? from : at, &target = there ? at : from;

		memset(in, 0, sizeof(in));
		ASSERT_EQ(0, fi_trecv(target.ep, in, 8, nullptr,
				      there ? back : to, 7, 0, in));
		ASSERT_EQ(0, push(o, there ? to : back, out, 8, 7, all));
		ASSERT_EQ(1, next_of(o, all).ret);
		ASSERT_EQ(1, next_of(target, all).ret);
		EXPECT_STREQ("hello", in);
	}
	EXPECT_EQ(path(from, to).path, path(at, back).path);
	EXPECT_EQ(tdt_path() == TDT_REMOTE ? TDM_REPORT_TCP : TDM_REPORT_SHM,
		  path(at, back).path);
}

TEST_F(Keys, AKeyThatThePeerDoesNotHaveIsNoWay)
{
	/* fi_av(3) 2.1, fi_av_insert_auth_key 1: endpoints have the keys of
	 * their address vector; nothing comes by another one. */
	ONLY_TANDEM();
	OPEN();
	Own at, from;
	std::vector<Own *> all = { &at, &from };
	fi_addr_t k[2], h, to[2];
	char stray[8] = "stray", out[8] = "hello", in[2][8];

	OK(open_own(at, nullptr));
	OK(open_own(from, nullptr));
	h = handle(at, TWO);
	OK(enable(at));
	OK(both_keys(from, k));
	for (int i = 0; i < 2; i++)
		to[i] = by_key(from, at, k[i]);
	fi_addr_t back = by_key(at, from, h);
	for (char *p : { in[0], in[1] })
		ASSERT_EQ(0, fi_trecv(at.ep, p, 8, nullptr, FI_ADDR_UNSPEC, 7,
				      0, p));
	ASSERT_EQ(0, push(from, to[0], stray, 8, 7, all));
	ASSERT_EQ(0, push(from, to[1], out, 8, 7, all));
	Entry e = next_of(from, all);
	ASSERT_EQ(1, e.ret);
	EXPECT_EQ(out, e.e.op_context);
	e = next_of(at, all);
	ASSERT_EQ(1, e.ret);
	EXPECT_EQ(back, e.src);
	EXPECT_STREQ("hello", in[0]);
	/* The other one is still under way, and ends where it began. */
	for (uint64_t end = tdt_now_ms() + 50; tdt_now_ms() < end;)
		poll_all(all);
	OK(empty(at.cq));
	OK(empty(from.cq));
	ASSERT_EQ(0, fi_cancel(&from.ep->fid, stray));
	e = next_of(from, all);
	ASSERT_EQ(-FI_EAVAIL, e.ret);
	EXPECT_EQ(FI_ECANCELED, e.err.err);
	OK(empty(at.cq));
}

size_t stream_length()
{
	const char *n = getenv("TANDEM_TEST_MESSAGES");

	return n ? strtoul(n, nullptr, 0) : 20000;
}

/* Two keys, the same tags, the same two endpoints: nothing crosses. */
TEST_F(Keys, StreamsDoNotCross)
{
	ONLY_TANDEM();
	OPEN();
	Own at, from;
	std::vector<Own *> all = { &at, &from };
	const size_t n = stream_length() / 2, window = 32;
	static uint64_t out[2][32], in[2][32];
	fi_addr_t h[2], k[2], to[2];
	size_t sent[2] = {}, posted[2] = {}, got[2] = {}, done = 0;
	struct fi_msg_tagged m;
	struct iovec v;

	OK(open_own(at, nullptr));
	OK(open_own(from, nullptr));
	OK(both_keys(at, h));
	OK(both_keys(from, k));
	memset(&m, 0, sizeof(m));
	m.msg_iov = &v;
	m.iov_count = 1;
	for (int i = 0; i < 2; i++)
		to[i] = by_key(from, at, k[i]);
	while (got[0] + got[1] < 2 * n) {
		for (int i = 0; i < 2; i++) {
			if (posted[i] < n && posted[i] - got[i] < window) {
				v = iov_of(&in[i][posted[i] % window], 8);
				m.addr = h[i];
				m.tag = posted[i] & 3;
				m.context = &in[i][posted[i]++ % window];
				ASSERT_EQ(0,
					  fi_trecvmsg(at.ep, &m, FI_AUTH_KEY));
			}
			if (sent[i] < n && sent[i] - got[i] < window / 2) {
				uint64_t *o = &out[i][sent[i] % window];

				*o = sent[i] << 1 | (uint64_t)i;
				ASSERT_EQ(0, push(from, to[i], o, 8,
						  sent[i] & 3, all));
				sent[i]++;
			}
		}
		struct fi_cq_tagged_entry e;

		while (fi_cq_read(from.cq, &e, 1) == 1)
			done++;
		while (fi_cq_read(at.cq, &e, 1) == 1) {
			uint64_t *p = (uint64_t *)e.op_context;
			int i = p >= in[1] && p < in[1] + window;

			ASSERT_EQ((uint64_t)i, *p & 1) << "a message crossed";
			got[i]++;
		}
	}
	while (done < 2 * n) {
		ASSERT_EQ(1, next_of(from, all).ret);
		done++;
	}
}

/* A key that lies in memory only where a test puts it: never this table. */
unsigned char scanned(size_t i)
{
	return (unsigned char)(0xa7 ^ (i * 37 + 11));
}

const size_t SCANNED = 32;

/*
 * How often the second half of that key lies in memory that can be written and
 * is of no file. A free block of the heap keeps that half.
 */
size_t copies()
{
	const size_t half = SCANNED / 2;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perm[8];
	unsigned long from, to;
	size_t hits = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, perm) != 3 ||
		    strncmp(perm, "rw", 2) || strchr(line, '/') ||
		    strstr(line, "[stack]"))
			continue;
		for (auto *p = (const unsigned char *)from;
		     p + half <= (const unsigned char *)to; p++) {
			size_t n = 0;

			while (n < half && p[n] == scanned(half + n))
				n++;
			hits += n == half;
		}
	}
	if (f)
		fclose(f);
	return hits;
}

class KeyMemory : public Keys
{
protected:
	static void wipe(struct fi_info *i)
	{
		memset(i->ep_attr->auth_key, 0, i->ep_attr->auth_key_size);
		fi_freeinfo(i);
	}

	struct fi_info *with_key(bool scalable)
	{
		struct fi_info *hints = tdt_hints(&attr), *i = nullptr;
		auto *key = (uint8_t *)malloc(SCANNED);

		for (size_t n = 0; n < SCANNED; n++)
			key[n] = scanned(n);
		hints->ep_attr->auth_key = key;
		hints->ep_attr->auth_key_size = SCANNED;
		if (scalable)
			hints->ep_attr->tx_ctx_cnt = 2;
		EXPECT_EQ(0, fi_getinfo(TDT_API, "127.0.0.1", nullptr,
					FI_SOURCE, hints, &i));
		wipe(hints);
		return i;
	}

	/* All that copies what it is opened with, opened and closed. */
	void live(bool scalable)
	{
		struct fi_info *i = with_key(scalable);
		struct fid_domain *d;
		struct fid_ep *e, *other;

		ASSERT_NE(nullptr, i);
		ASSERT_EQ(0, fi_domain(w->fabric, i, &d, nullptr));
		made.push_back(&d->fid);
		struct fid_av *a = av(d);
		struct fid_cq *q = cq(d);

		if (scalable) {
			ASSERT_EQ(0, fi_scalable_ep(d, i, &e, nullptr));
			made.push_back(&e->fid);
			ASSERT_EQ(0, fi_tx_context(e, 0, nullptr, &other,
						   nullptr));
			made.push_back(&other->fid);
		} else {
			ASSERT_EQ(0, fi_endpoint(d, i, &e, nullptr));
			made.push_back(&e->fid);
			ASSERT_EQ(0, fi_ep_bind(e, &a->fid, 0));
			ASSERT_EQ(0, fi_ep_bind(e, &q->fid,
						FI_TRANSMIT | FI_RECV));
			ASSERT_EQ(0, fi_enable(e));
			ASSERT_EQ(0, fi_ep_alias(e, &other, FI_TRANSMIT));
			made.push_back(&other->fid);
		}
		EXPECT_LT(0u, copies()) << "nothing can be found";
		wipe(i);
		close_parts();
	}
};

TEST_F(KeyMemory, NothingIsLeftOfAKey)
{
	/* fi_tandem(7), KEYS: when the objects opened with a key are closed, no
	 * copy of it is in the memory of the process. */
	ONLY_TANDEM();
	if (TDT_SANITIZED)
		GTEST_SKIP() << "the sanitizer's own memory is too large";
	OPEN();
	for (bool scalable : { false, true }) {
		OK(live(scalable));
		EXPECT_EQ(0u, copies()) << (scalable ? "scalable" : "plain");
	}
}

} // namespace
