/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that die, stop and come back: each operation ends once with the code
 * of fi_tandem(7) FAULTS, others go on, nothing is left behind.
 */
#include <arpa/inet.h>
#include <atomic>
#include <cctype>
#include <csignal>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/harness/entries.h"
#include "tests/harness/fixture.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/*
 * The files of shared memory, but for the named address vectors that tests of
 * other programs have there meanwhile.
 */
std::set<std::string> files()
{
	std::set<std::string> found;

	for (const std::string &name : tdt_entries("/dev/shm")) {
		if (name.compare(0, 10, "tandem-av."))
			found.insert(name);
	}
	return found;
}

/* The descriptors of this process, and what each of them is. */
std::string descriptors()
{
	std::string all;

	for (const std::string &name : tdt_entries("/proc/self/fd")) {
		std::string path = "/proc/self/fd/" + name;
		char target[256];
		ssize_t n = readlink(path.c_str(), target, sizeof(target));

		all += name + " " + std::string(target, n > 0 ? n : 0) + "\n";
	}
	return all;
}

size_t maps()
{
	size_t n = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:") != nullptr;
	if (f)
		fclose(f);
	return n;
}

/* TDT_ARG: "tcp", or where the child is to be: "HOST" or "HOST PORT". */
struct tdt_world *child_world(int fd, fi_addr_t *parent)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;

	const char *arg = getenv("TDT_ARG");
	static std::string host = arg && isdigit(*arg) ? arg : "", port;

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = !arg || strcmp(arg, "tcp");
	if (host.find(' ') != std::string::npos) {
		port = host.substr(host.find(' ') + 1);
		host.resize(host.find(' '));
		attr.service = port.c_str();
	}
	if (!host.empty())
		attr.node = host.c_str();
	if (tdt_world_open(&attr, &w))
		return nullptr;
	if (tdt_tell_name(fd, &w->eps[0]) ||
	    tdt_hear_name(fd, &w->eps[0], parent))
		return nullptr;
	return w;
}

/* Receives into one large buffer and progresses until it is killed. */
TDT_ROLE(sink)
{
	fi_addr_t parent;
	struct tdt_world *w = child_world(fd, &parent);
	static char buf[8 << 20];
	char cmd;

	(void)arg;
	if (!w)
		return 1;
	tdt_recv(&w->eps[0], buf, sizeof(buf), buf);
	for (;;) {
		tdt_progress(w);
		ssize_t n = tdt_hear_now(fd, &cmd, 1);

		if (n == 0)
			return 0;
		if (n == 1 && cmd == 'c') /* close in order */
			return tdt_world_close(w);
		if (n == 1 && cmd == 'x') /* without */
			return 0;
		if (n == 1 && cmd == 'r')
			tdt_recv(&w->eps[0], buf, sizeof(buf), buf);
		w->eps[0].comp_count = 0;
	}
}

/* Sends tagged messages to the parent, one after the other, until killed. */
TDT_ROLE(source)
{
	fi_addr_t parent;
	struct tdt_world *w = child_world(fd, &parent);
	static char buf[200000];
	uint64_t number = 0;

	(void)arg;
	if (!w)
		return 1;
	for (;;) {
		size_t len = number % 3 ? 64 : sizeof(buf);
		struct tdt_op op = op_of(TDT_SEND, 1, buf, len);

		memcpy(buf, &number, sizeof(number));
		op.addr = parent;
		op.context = buf;
		if (tdt_post(&w->eps[0], &op) ||
		    tdt_wait(&w->eps[0], buf, nullptr))
			return 2;
		number++;
	}
}

class Death : public Case
{
protected:
	struct tdt_child child = { 0, -1 };
	fi_addr_t peer = FI_ADDR_UNSPEC;

	void TearDown() override
	{
		tdt_child_kill(&child, SIGKILL);
		Case::TearDown();
	}

	void start(const char *role, const char *arg = nullptr)
	{
		ASSERT_EQ(0, tdt_child_start(&child, role, arg));
		ASSERT_EQ(0, tdt_hear_name(child.fd, rx(), &peer));
		ASSERT_EQ(0, tdt_tell_name(child.fd, rx()));
	}

	ssize_t send_once(Bytes &out, int tagged)
	{
		struct tdt_op op =
			op_of(TDT_SEND, tagged, out.data(), out.size());

		op.addr = peer;
		op.context = &out;
		return tdt_post(rx(), &op);
	}

	/*
	 * @addr means the peer: a port that an earlier one left may be its own,
	 * and the first of several that have an address stands for it.
	 */
	void expect_peer(uint64_t addr)
	{
		struct tdt_name a = { TDT_NAME_BYTES, {} }, b = a;

		ASSERT_EQ(0, fi_av_lookup(rx()->av, peer, a.bytes, &a.len));
		ASSERT_EQ(0, fi_av_lookup(rx()->av, addr, b.bytes, &b.len))
			<< addr;
		EXPECT_GE(peer, addr);
		EXPECT_EQ(0, memcmp(a.bytes, b.bytes, a.len))
			<< addr << " is not " << peer;
	}

	/* The tiers the path has. */
	std::vector<const char *> tiers()
	{
		if (tdt_path() == TDT_MIXED)
			return { nullptr, "tcp" };
		return { nullptr };
	}

	void run_all(void (Death::*body)())
	{
		for (const char *tier : tiers()) {
			attr.eq = 1;
			OPEN();
			ASSERT_EQ(0, tdt_warm_up(w));
			tier_ = tier;
			OK((this->*body)());
			close();
		}
	}

public:
	void send_to_killed();
	void one_event();
	void only_events();
	void receive_from_killed();
	void receive_in_order(uint64_t *next);
	void end_all(std::vector<Bytes> &bufs, uint64_t next);
	void still_posted(Bytes &any, Bytes &directed);
	void changed_program();
	void stopped_peer();
	void closed_peer();
	void gone_unseen(char how);

protected:
	const char *tier_ = nullptr;
};

void Death::send_to_killed()
{
	std::vector<Bytes> out(20, filled(300000, 1));
	struct tdt_comp c;
	size_t failures = 0;

	OK(start("sink", tier_));
	Bytes first = filled(10, 2);
	ASSERT_EQ(0, send_once(first, 0));
	ASSERT_EQ(0, tdt_wait(rx(), &first, &c));
	ASSERT_EQ(0, c.err);
	for (auto &b : out)
		ASSERT_EQ(0, send_once(b, 1)); /* nobody receives them */
	tdt_child_kill(&child, SIGKILL);
	for (auto &b : out) {
		ASSERT_EQ(0, tdt_wait(rx(), &b, &c)) << "never ended";
		EXPECT_TRUE(c.err == 0 || c.err == FI_ECONNRESET)
			<< fi_strerror(c.err);
		failures += c.err != 0;
	}
	EXPECT_NE(0u, failures);
	OK(one_event());
	ASSERT_EQ(0, tdt_warm_up(w));
}

void Death::one_event()
{
	struct fi_eq_err_entry eqe;
	struct tdt_name data = { TDT_NAME_BYTES, {} }, name = data;

	memset(&eqe, 0, sizeof(eqe));
	eqe.err_data = data.bytes;
	eqe.err_data_size = data.len;
	ASSERT_LT(0, keep_on([&]() -> ssize_t {
			  return fi_eq_readerr(rx()->eq, &eqe, 0);
		  }));
	EXPECT_EQ(&rx()->ep->fid, eqe.fid);
	OK(expect_peer(eqe.data));
	EXPECT_EQ(FI_ECONNRESET, eqe.err);
	/* fi_eq(3) 2.1, fi_eq_readerr 6: prov_errno is what fi_eq_strerror has
	 * a text for. */
	EXPECT_STREQ(fi_strerror(FI_ECONNRESET),
		     fi_eq_strerror(rx()->eq, eqe.prov_errno, nullptr, nullptr,
				    0));
	ASSERT_EQ(0, fi_av_lookup(rx()->av, peer, name.bytes, &name.len));
	ASSERT_EQ(name.len, eqe.err_data_size);
	EXPECT_EQ(data.bytes, eqe.err_data);
	EXPECT_EQ(0, memcmp(name.bytes, data.bytes, name.len));
	EXPECT_EQ(-FI_EAGAIN, fi_eq_readerr(rx()->eq, &eqe, 0));
	tdt_progress(w);
	EXPECT_EQ(-FI_EAGAIN, fi_eq_readerr(rx()->eq, &eqe, 0));
}

TEST_F(Death, SendsToAKilledPeerEndOnce)
{
	/* fi_tandem(7), FAULTS: "Each operation ends exactly once ... the peer
	 * died: FI_ECONNRESET"; "each lost peer writes one error entry", whose
	 * err_data is its socket address. */
	ONLY_TANDEM();
	OK(run_all(&Death::send_to_killed));
}

void Death::only_events()
{
	enum { READ, SREAD, POLL, WAYS };
	struct fid *fids[1] = { &rx()->eq->fid };
	struct pollfd p = { -1, POLLIN, 0 };

	ASSERT_EQ(0, fi_control(&rx()->eq->fid, FI_GETWAIT, &p.fd));
	for (int way = READ; way < WAYS; way++) {
		struct fi_eq_err_entry e;
		uint32_t event;
		ssize_t ret;

		OK(start("sink", tier_));
		Bytes out = filled(10, 2);
		ASSERT_EQ(0, send_once(out, 0));
		ASSERT_EQ(0, tdt_wait(rx(), &out, nullptr));
		tdt_child_kill(&child, SIGKILL);
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		do {
			if (way == POLL && !fi_trywait(w->fabric, fids, 1)) {
				ASSERT_EQ(1,
					  poll(&p, 1, (int)tdt_deadline_ms()));
			}
			ret = way == SREAD ?
				      fi_eq_sread(rx()->eq, &event, &e,
						  sizeof(e),
						  (int)tdt_deadline_ms(), 0) :
				      fi_eq_read(rx()->eq, &event, &e,
						 sizeof(e), 0);
		} while (ret == -FI_EAGAIN && way != SREAD &&
			 tdt_now_ms() < end);
		ASSERT_EQ(-FI_EAVAIL, ret) << way;
		memset(&e, 0, sizeof(e));
		ASSERT_LT(0, fi_eq_readerr(rx()->eq, &e, 0));
		EXPECT_EQ(FI_ECONNRESET, e.err);
		OK(expect_peer(e.data));
	}
}

TEST_F(Death, EventsComeToWhoReadsNothingElse)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 10: With manual
	 * progress, waiting on or reading a queue or counter advances the
	 * operations that report there. A lost peer is reported to the event
	 * queue. */
	ONLY_TANDEM();
	attr.eq_wait = FI_WAIT_FD;
	OK(run_all(&Death::only_events));
}

void Death::receive_in_order(uint64_t *next)
{
	Bytes in(200000);
	struct tdt_comp c;
	uint64_t number;

	for (int i = 0; i < 20; i++) {
		struct iovec v = iov_of(in.data(), in.size());

		ASSERT_EQ(0, tdt_trecv(rx(), &v, 0, 0, &in));
		ASSERT_EQ(0, tdt_wait(rx(), &in, &c));
		ASSERT_EQ(0, c.err);
		memcpy(&number, in.data(), sizeof(number));
		EXPECT_EQ((*next)++, number);
	}
}

/* Cancel the receives @bufs; message @next is the first that they may have. */
void Death::end_all(std::vector<Bytes> &bufs, uint64_t next)
{
	size_t left = 0, cut = 0;
	struct tdt_comp c;
	uint64_t number;

	for (auto &b : bufs)
		fi_cancel(&rx()->ep->fid, &b);
	for (auto &b : bufs) {
		ASSERT_EQ(0, tdt_wait(rx(), &b, &c)) << "never ended";
		if (c.err == FI_ECANCELED) {
			left++;
			continue;
		}
		EXPECT_EQ(0u, left) << "ended before an earlier one";
		if (c.err) {
			EXPECT_EQ(FI_ECONNRESET, c.err);
			cut++;
			continue;
		}
		EXPECT_EQ(0u, cut) << "a message after the one cut off";
		memcpy(&number, b.data(), sizeof(number));
		EXPECT_EQ(next++, number);
	}
	EXPECT_GE(1u, cut) << "only one message can have been cut off";
	/*
	 * A ring has no more than what fits between two long messages, the
	 * socket may have them all.
	 */
	if (tdt_path() != TDT_REMOTE && !tier_) {
		EXPECT_NE(0u, left);
	}
}

/* Another peer fills @any; @directed, to the dead one, is there as well. */
void Death::still_posted(Bytes &any, Bytes &directed)
{
	Bytes out = filled(any.size(), 7);
	struct iovec v = iov_of(out.data(), out.size());
	struct tdt_comp c;

	EXPECT_EQ(0u, tdt_pending(w)) << "a receive without a message ended";
	ASSERT_EQ(0, tdt_tsend(ep(1), rx(), &v, 77, &out));
	ASSERT_EQ(0, tdt_wait(rx(), &any, &c));
	EXPECT_EQ(0, c.err) << fi_strerror(c.err);
	EXPECT_EQ(out, any);
	ASSERT_EQ(0, tdt_wait(ep(1), &out, &c));
	EXPECT_EQ(0, c.err) << fi_strerror(c.err);
	EXPECT_EQ(0, fi_cancel(&rx()->ep->fid, &directed));
	OK(failed(rx(), &directed, FI_ECANCELED));
}

void Death::receive_from_killed()
{
	Bytes any(300), directed(300);
	struct iovec v = iov_of(any.data(), any.size());
	uint64_t next = 0;

	OK(start("source", tier_));
	ASSERT_EQ(0, tdt_trecv(rx(), &v, 77, 0, &any));
	ASSERT_EQ(0, fi_trecv(rx()->ep, directed.data(), directed.size(),
			      nullptr, peer, 78, 0, &directed));
	OK(receive_in_order(&next));
	/* Now receives that are matched, or not, when it dies. */
	std::vector<Bytes> bufs(8, Bytes(200000));
	for (auto &b : bufs) {
		v = iov_of(b.data(), b.size());
		ASSERT_EQ(0, tdt_trecv(rx(), &v, 0, 0, &b));
	}
	tdt_child_kill(&child, SIGKILL);
	/* Its end is known once a send to it has failed. */
	Bytes out = filled(10, 2);
	struct tdt_comp c;
	do {
		ASSERT_EQ(0, send_once(out, 0));
		ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
	} while (!c.err);
	OK(end_all(bufs, next));
	OK(still_posted(any, directed));
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Death, ReceivesFromAKilledPeerEndOnce)
{
	/* fi_tandem(7), FAULTS: whole messages are delivered, in order, one
	 * that was cut off ends with FI_ECONNRESET, and "Receives that no
	 * message has matched stay posted." */
	ONLY_TANDEM();
	OK(run_all(&Death::receive_from_killed));
}

void Death::stopped_peer()
{
	Bytes out = filled(2 << 20, 1), first = filled(10, 2);
	struct tdt_comp c;

	OK(start("sink", tier_));
	ASSERT_EQ(0, send_once(first, 0));
	ASSERT_EQ(0, tdt_wait(rx(), &first, &c));
	tdt_child_kill(&child, SIGSTOP);
	ASSERT_EQ(0, send_once(out, 0));
	tdt_settle(w, 100);
	ASSERT_EQ(0, tdt_warm_up(w)); /* others do not notice */
	char cmd = 'r';
	ASSERT_EQ(0, tdt_tell(child.fd, &cmd, 1));
	tdt_child_kill(&child, SIGCONT);
	ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
	EXPECT_EQ(0, c.err) << fi_strerror(c.err);
	tdt_child_kill(&child, SIGKILL);
}

TEST_F(Death, StoppedPeerIsNotDead)
{
	/* fi_tandem(7), FAULTS: A process that makes no progress for a long
	 * time counts as stopped, not as unreachable. */
	ONLY_TANDEM();
	OK(run_all(&Death::stopped_peer));
}

void Death::gone_unseen(char how)
{
	Bytes out = filled(8, 2);
	struct fi_cq_tagged_entry e;
	size_t told = 0;
	struct tdt_comp c;

	OK(start("sink", tier_));
	for (int i = 0; i < 500; i++) {
		ASSERT_EQ(0, send_once(out, 1));
		ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
		ASSERT_EQ(0, c.err);
	}
	if (how == 'k') {
		tdt_child_kill(&child, SIGKILL);
	} else {
		ASSERT_EQ(0, tdt_tell(child.fd, &how, 1));
		EXPECT_EQ(0, tdt_child_wait(&child));
	}
	for (; told <= 1000; told++) {
		ssize_t ret = fi_tsend(rx()->ep, out.data(), out.size(),
				       nullptr, peer, 1, &out);

		/*
		 * Full: the peer has read little, and says it without a send.
		 */
		if (ret == -FI_EAGAIN) {
			ASSERT_EQ('k', how);
			return;
		}
		ASSERT_EQ(0, ret) << fi_strerror((int)-ret);
		/* Asks for no more than there is: no progress is made. */
		ret = fi_cq_read(rx()->tx_cq, &e, 1);
		if (ret != 1)
			break;
	}
	EXPECT_GE(how == 'k' ? 128u : 0u, told)
		<< "sends ended well after the peer had gone";
	ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
	EXPECT_EQ(FI_ECONNRESET, c.err) << fi_strerror(c.err);
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Death, SendsToWhoIsGoneSoonFail)
{
	/* fi_tandem(7), FAULTS: an application that does nothing but send, and
	 * read completions that are there, learns at the first send that the
	 * peer has closed its endpoint, and at the 65th that it was killed. */
	ONLY_TANDEM();
	for (char how : { 'k', 'c' }) {
		attr.eq = 1;
		OPEN();
		OK(gone_unseen(how));
		close();
	}
}

void Death::closed_peer()
{
	Bytes first = filled(10, 2);
	struct tdt_comp c;
	char cmd = 'c';

	OK(start("sink", tier_));
	ASSERT_EQ(0, send_once(first, 0));
	ASSERT_EQ(0, tdt_wait(rx(), &first, &c));
	ASSERT_EQ(0, c.err);
	Bytes big = filled(300000, 1);
	ASSERT_EQ(0, send_once(big, 1)); /* nobody receives it */
	tdt_settle(w, 10);
	ASSERT_EQ(0, tdt_tell(child.fd, &cmd, 1));
	ASSERT_EQ(0, tdt_wait(rx(), &big, &c));
	EXPECT_TRUE(c.err == 0 || c.err == FI_ECONNRESET) << fi_strerror(c.err);
	tdt_settle(w, 20);
	EXPECT_EQ(0, tdt_child_wait(&child));
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Death, PeerThatClosesIsLostInOrder)
{
	/* fi_tandem(7), FAULTS: FI_ECONNRESET if the peer died or closed its
	 * endpoint. */
	ONLY_TANDEM();
	OK(run_all(&Death::closed_peer));
}

/*
 * A host that is this program's alone: a process that starts again finds its
 * port free. On a shared host another process might have been given the port.
 */
std::string host_of_ours()
{
	static const unsigned int drawn = std::random_device()();
	std::string host = "127";

	for (unsigned int shift : { 0u, 8u, 16u })
		host += "." + std::to_string(1 + (drawn >> shift) % 254);
	return host;
}

/* The port of the address at @index, as text. */
std::string port_of(struct fid_av *av, fi_addr_t index)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);

	memset(&sin, 0, sizeof(sin));
	EXPECT_EQ(0, fi_av_lookup(av, index, &sin, &len));
	return std::to_string(ntohs(sin.sin_port));
}

TEST_F(Death, PeerThatComesBackIsANewOne)
{
	/*
	 * fi_tandem(7), FAULTS: "A peer that restarts at the same address is a
	 * new peer: a new path is agreed, and no message of the former process
	 * is delivered."
	 */
	ONLY_TANDEM();
	const std::string host = host_of_ours();

	OPEN();
	OK(start("sink", host.c_str()));
	fi_addr_t first = peer;
	std::string port = port_of(rx()->av, peer);

	for (int life = 0; life < 4; life++) {
		Bytes small = filled(10, 2), lost = filled(300000, 1);
		struct tdt_comp c;

		peer = first;
		ASSERT_EQ(0, send_once(small, 0));
		ASSERT_EQ(0, tdt_wait(rx(), &small, &c));
		ASSERT_EQ(0, c.err)
			<< fi_strerror(c.err) << " in life " << life;
		ASSERT_EQ(0, send_once(lost, 1));
		tdt_child_kill(&child, SIGKILL);
		OK(start("sink", (host + " " + port).c_str()));
		/* Its own address stays valid; the new index is a duplicate. */
		ASSERT_EQ(0, tdt_wait(rx(), &lost, &c));
		EXPECT_EQ(FI_ECONNRESET, c.err) << fi_strerror(c.err);
	}
}

TEST_F(Death, RangeOfPortsIsFreeAgainAfterADeath)
{
	/* fi_tandem(7), FI_TANDEM_PORT_RANGE: "Connections of a process that
	 * has ended do not keep a port from being used again." */
	ONLY_TANDEM();
	const std::string host = host_of_ours();

	OPEN();
	OK(start("sink", host.c_str()));
	std::string port = port_of(rx()->av, peer);
	setenv("FI_TANDEM_PORT_RANGE", (port + "-" + port).c_str(), 1);

	for (int life = 0; life < 3; life++) {
		Bytes small = filled(10, 2), lost = filled(300000, 1);
		struct tdt_comp c;

		ASSERT_EQ(0, send_once(small, 0));
		ASSERT_EQ(0, tdt_wait(rx(), &small, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		ASSERT_EQ(0, send_once(lost, 1));
		tdt_child_kill(&child, SIGKILL);
		ASSERT_EQ(0, tdt_wait(rx(), &lost, &c));
		EXPECT_EQ(FI_ECONNRESET, c.err) << fi_strerror(c.err);
		start("sink", host.c_str());
		if (HasFatalFailure())
			break;
		EXPECT_EQ(port, port_of(rx()->av, peer));
	}
	unsetenv("FI_TANDEM_PORT_RANGE");
}

/* Sends to a port where nobody is, and tells how it ended. */
TDT_ROLE(caller)
{
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	struct sockaddr_in sin;
	struct tdt_comp c;
	char out = 1;
	int result[2] = { -1, -1 };

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &w))
		return 1;
	memcpy(&sin, w->eps[0].name, sizeof(sin));
	sin.sin_port = htons(static_cast<uint16_t>(atoi(arg)));
	if (fi_av_insert(w->eps[0].av, &sin, 1, &w->eps[0].peers[0], 0,
			 nullptr) != 1)
		return 2;
	memset(&c, 0, sizeof(c));
	result[0] = static_cast<int>(
		tdt_send(&w->eps[0], &w->eps[0], &out, 1, &out));
	if (!result[0])
		result[1] = tdt_wait(&w->eps[0], &out, &c) ? -1 : c.err;
	tdt_tell(fd, result, sizeof(result));
	return tdt_world_close(w);
}

TEST_F(Death, NobodyThereIsRefusedInTime)
{
	/* fi_tandem(7), FAULTS: FI_ECONNREFUSED if the peer could not be
	 * reached in FI_TANDEM_CONN_TIMEOUT: by an entry, or by the call. */
	int result[2] = { 0, 0 };

	ONLY_TANDEM();
	setenv("FI_TANDEM_CONN_TIMEOUT", "1", 1);
	EXPECT_EQ(0, tdt_child_start(&child, "caller", "1"));
	unsetenv("FI_TANDEM_CONN_TIMEOUT");
	ASSERT_EQ(static_cast<ssize_t>(sizeof(result)),
		  tdt_hear(child.fd, result, sizeof(result)));
	if (result[0]) {
		EXPECT_EQ(-FI_ECONNREFUSED, result[0]);
	} else {
		EXPECT_EQ(FI_ECONNREFUSED, result[1]);
	}
	EXPECT_EQ(0, tdt_child_wait(&child));
}

TEST_F(Death, CloseThatWaitsForAStoppedPeerHoldsUpNobody)
{
	/* fi_tandem(7), LIMITS: fi_close(3) waits for what was injected;
	 * "Other objects of the domain can be used meanwhile." */
	ONLY_TANDEM();
	attr.one_domain = 1;
	OPEN();
	OK(start("sink"));
	Bytes out = filled(64, 1);
	struct tdt_op op = op_of(TDT_INJECT, 0, out.data(), out.size());
	std::atomic<bool> begun(false), closed(false);
	struct tdt_comp c;
	unsigned calls = 0;

	ASSERT_EQ(0, send_once(out, 0));
	ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
	tdt_child_kill(&child, SIGSTOP);
	op.addr = peer;
	for (int refused = 0; refused < 1000;) {
		ssize_t ret = tdt_post_once(rx(), &op);

		ASSERT_TRUE(!ret || ret == -FI_EAGAIN) << ret;
		refused = ret ? refused + 1 : 0;
	}
	uint64_t took = 0;
	std::thread closer([&] {
		uint64_t start = tdt_now_ms();

		begun = true;
		EXPECT_EQ(0, fi_close(&rx()->ep->fid));
		took = tdt_now_ms() - start;
		closed = true;
	});
	while (!begun)
		poll(nullptr, 0, 1);
	while (!closed) {
		struct fi_cq_tagged_entry e;

		EXPECT_EQ(-FI_EAGAIN, fi_cq_read(ep(1)->rx_cq, &e, 1));
		poll(nullptr, 0, 1);
		calls++;
	}
	closer.join();
	rx()->ep = nullptr;
	if (tdt_path() == TDT_REMOTE) {
		EXPECT_LE(900u, took) << "did not wait";
		/* If fi_close kept the lock, one call would return before it
		 * has taken it, and one after the end. */
		EXPECT_LE(3u, calls) << "of " << took << " ms";
	}
}

/* The descriptors that @before has not, and that exec(2) leaves open. */
std::string inherited(const std::set<std::string> &before)
{
	std::string all;

	for (const std::string &name : tdt_entries("/proc/self/fd")) {
		int flags = fcntl(atoi(name.c_str()), F_GETFD);

		if (!before.count(name) && flags >= 0 && !(flags & FD_CLOEXEC))
			all += name + " ";
	}
	return all;
}

/*
 * Receives a message, answers with the descriptors that exec(2) leaves open,
 * and then runs another program.
 */
TDT_ROLE(execs)
{
	const std::set<std::string> before = tdt_entries("/proc/self/fd");
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	fi_addr_t parent;
	struct tdt_comp c;
	char in[10], word, text[256] = "";

	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = !arg || strcmp(arg, "tcp");
	attr.wait = attr.cntr_wait = attr.eq_wait = FI_WAIT_FD;
	attr.cntrs = attr.eq = 1;
	if (tdt_world_open(&attr, &w) || tdt_tell_name(fd, &w->eps[0]) ||
	    tdt_hear_name(fd, &w->eps[0], &parent))
		return 1;
	if (tdt_recv(&w->eps[0], in, sizeof(in), in) ||
	    tdt_wait(&w->eps[0], in, &c) || c.err)
		return 2;
	if (tdt_entries("/proc/self/fd").size() <= before.size())
		return 3;
	snprintf(text, sizeof(text), "%s", inherited(before).c_str());
	if (tdt_tell(fd, text, sizeof(text)))
		return 4;
	while (tdt_hear_now(fd, &word, 1) == -EAGAIN)
		tdt_progress(w);
	execlp("sleep", "sleep", "100000", nullptr);
	return 5;
}

void Death::changed_program()
{
	Bytes first = filled(10, 2), big = filled(300000, 1);
	char text[256] = "";
	int status;
	struct tdt_comp c;

	OK(start("execs", tier_));
	ASSERT_EQ(0, send_once(first, 0));
	ASSERT_EQ(0, tdt_wait(rx(), &first, &c));
	ASSERT_EQ(0, c.err);
	ASSERT_EQ(static_cast<ssize_t>(sizeof(text)),
		  tdt_hear(child.fd, text, sizeof(text)));
	EXPECT_STREQ("", text) << "are not closed by exec(2)";
	ASSERT_EQ(0, send_once(big, 1)); /* nobody receives it */
	tdt_settle(w, 10);
	EXPECT_EQ(0u, tdt_pending(w));
	ASSERT_EQ(0, tdt_tell(child.fd, "e", 1));
	OK(failed(rx(), &big, FI_ECONNRESET));
	EXPECT_EQ(0, waitpid(child.pid, &status, WNOHANG)) << "it has ended";
	tdt_child_kill(&child, SIGKILL);
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Death, D14_AnotherProgramInItsProcessIsItsEnd)
{
	/* fi_tandem(7), FAULTS: "the peer died or closed its endpoint". All
	 * descriptors are close-on-exec, so that peers notice exec(2), and the
	 * new program has nothing of the provider's. */
	ONLY_TANDEM();
	OK(run_all(&Death::changed_program));
}

TEST_F(Death, NothingIsLeftOfDeadPeers)
{
	/* No descriptor, no mapping, no file is left. */
	ONLY_TANDEM();
	std::set<std::string> shm = files();
	/* A domain opens its descriptors for sleepers when a caller first
	 * sleeps, on a loaded machine in any call: here at once. */
	attr.wait = FI_WAIT_FD;
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	size_t fds = 0, mapped = 0;
	std::string was;

	for (int i = 0; i < 8; i++) {
		Bytes out = filled(300000, 1), first = filled(10, 2);
		struct tdt_comp c;

		OK(start("sink"));
		ASSERT_EQ(0, send_once(first, 0));
		ASSERT_EQ(0, tdt_wait(rx(), &first, &c));
		ASSERT_EQ(0, send_once(out, 1));
		tdt_child_kill(&child, SIGKILL);
		ASSERT_EQ(0, tdt_wait(rx(), &out, &c));
		ASSERT_EQ(0, fi_av_remove(rx()->av, &peer, 1, 0));
		tdt_settle(w, 50);
		if (i == 1) {
			fds = tdt_entries("/proc/self/fd").size();
			was = descriptors();
			mapped = maps();
		}
	}
	EXPECT_GE(fds, tdt_entries("/proc/self/fd").size())
		<< was << "are now\n"
		<< descriptors();
	EXPECT_GE(mapped, maps());
	EXPECT_EQ(shm, files());
}

TEST_F(Death, EveryMomentIsAsGoodAsAnother)
{
	/* Killed at random points of a stream; the survivor ends everything and
	 * talks to the next one. */
	ONLY_TANDEM();
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (unsigned round = 0; round < 15; round++) {
		std::vector<Bytes> in(16, Bytes(200000));
		struct tdt_comp c;

		OK(start("source"));
		for (auto &b : in) {
			struct iovec v = iov_of(b.data(), b.size());
			ASSERT_EQ(0, tdt_trecv(rx(), &v, 0, 0, &b));
		}
		for (unsigned i = 0; i < round * round * 40; i++)
			tdt_progress(w);
		tdt_child_kill(&child, SIGKILL);
		tdt_settle(w, 20);
		for (auto &b : in)
			fi_cancel(&rx()->ep->fid, &b);
		for (auto &b : in) {
			ASSERT_EQ(0, tdt_wait(rx(), &b, &c));
			EXPECT_TRUE(!c.err || c.err == FI_ECANCELED ||
				    c.err == FI_ECONNRESET)
				<< fi_strerror(c.err);
		}
		ASSERT_EQ(0, fi_av_remove(rx()->av, &peer, 1, 0));
	}
	ASSERT_EQ(0, tdt_warm_up(w));
}

} // namespace
