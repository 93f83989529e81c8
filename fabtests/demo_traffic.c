/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workload of the demo. Two streams run at the same time from every rank
 * to every other: many small messages, and messages of all sizes up to 4 MiB.
 * Receives are posted for any source, with a mask over source and number, and
 * fewer of them than messages in flight, so that some messages are unexpected.
 *
 * Checked for each message: kind, source, destination, number, length
 * and data; every byte; the source address of fi_cq_readfrom; that it came
 * once. And of each source: that messages matched receives in the order in
 * which both were posted (FI_ORDER_SAS). Completions may come in any order, so
 * the receives are numbered as they are posted, and the ledger records which
 * receive each message got.
 */
#include "fabtests/demo_traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "fabtests/demo_message.h"
#include "fabtests/demo_util.h"

static const size_t small_sizes[] = { 0,   1,	8,   64,   3,	 63,  65,
				      255, 257, 512, 1000, 2048, 4096 };
static const size_t mixed_sizes[] = {
	0, 1, 8, 64, 512, 4096, 8193, 32768, 65537, 262144, 1048576, 4194304,
};

enum { STREAMS = 2, BURST = 8, GUARD_BYTES = 64, GUARD = 0xa5 };

struct stream;

/* A buffer and the operation that uses it. */
struct slot {
	struct demo_op op; /* first: demo_op pointers are cast to slots */
	struct demo *d;
	struct stream *s;
	struct slot *next; /* in a free list */
	uint8_t *buf;
	uint32_t receive; /* number of the posted receive, from 1 */
	uint64_t tag;	  /* of a send */
	uint64_t data;
	size_t len;
};

/* Messages of one stream to one rank. */
struct flow {
	uint32_t next;	      /* number of the next message */
	struct slot *waiting; /* filled, but the provider said try again */
};

struct stream {
	enum demo_kind kind;
	const size_t *sizes;
	size_t nsizes;
	size_t cap;	    /* bytes of the largest message */
	uint32_t per_pair;  /* messages from each rank to each other */
	struct flow *flows; /* [nranks] */
	int turn;	    /* the rank to send to next */
	struct slot *tx_free;
	uint32_t tx_left;   /* not yet posted */
	uint32_t tx_flying; /* posted, not yet completed */
	struct slot *rx_free;
	uint32_t posted;   /* receives */
	uint32_t expected; /* messages of all sources */
	uint32_t received;
	uint32_t *ledger; /* [nranks * per_pair]: receive it got; 0: none */
};

struct traffic {
	struct stream stream[STREAMS];
	size_t inject;
};

/* ---- messages ------------------------------------------------------------ */

/* Every size occurs, in an order that differs between the pairs. */
static size_t message_len(const struct stream *s, uint64_t tag)
{
	uint32_t number = demo_tag_number(tag);
	uint32_t at = number * 5 + number / (uint32_t)s->nsizes +
		      (uint32_t)demo_tag_src(tag) +
		      (uint32_t)demo_tag_dst(tag) * 7;

	return s->sizes[at % s->nsizes];
}

static uint32_t *ledger_at(const struct stream *s, uint64_t tag)
{
	return &s->ledger[(size_t)demo_tag_src(tag) * s->per_pair +
			  demo_tag_number(tag)];
}

/* ---- receiving ----------------------------------------------------------- */

static void give_slot(struct slot **list, struct slot *slot)
{
	slot->next = *list;
	*list = slot;
}

/* Does the tag name a message that somebody sends us in this stream? */
static int known(const struct demo *d, const struct stream *s, uint64_t tag)
{
	int src = demo_tag_src(tag);

	return demo_tag_kind(tag) == s->kind && src < d->opt.nranks &&
	       src != d->opt.rank && demo_tag_dst(tag) == d->opt.rank &&
	       demo_tag_number(tag) < s->per_pair;
}

static void check_payload(struct slot *slot, const struct fi_cq_tagged_entry *e,
			  size_t len)
{
	size_t at =
		demo_pattern_check(slot->buf, len, demo_seed(e->tag, e->data));
	size_t i;

	if (at < len)
		demo_bad(slot->d,
			 "message %u from rank %d: byte %zu of %zu "
			 "is wrong",
			 demo_tag_number(e->tag), demo_tag_src(e->tag), at,
			 len);
	for (i = 0; i < GUARD_BYTES; i++)
		if (slot->buf[slot->s->cap + i] != GUARD)
			break;
	if (i < GUARD_BYTES)
		demo_bad(slot->d,
			 "message %u from rank %d: written beyond "
			 "the buffer",
			 demo_tag_number(e->tag), demo_tag_src(e->tag));
}

static void check(struct slot *slot, const struct fi_cq_tagged_entry *e,
		  fi_addr_t from)
{
	const uint64_t flags = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA;
	struct demo *d = slot->d;
	int src = demo_tag_src(e->tag);
	uint32_t number = demo_tag_number(e->tag), *entry;
	size_t len;

	if (!known(d, slot->s, e->tag)) {
		demo_bad(d, "tag %llx belongs to no message",
			 (unsigned long long)e->tag);
		return;
	}
	len = message_len(slot->s, e->tag);
	if (e->len != len || e->data != demo_data(e->tag, len))
		demo_bad(d,
			 "message %u from rank %d: length %zu, data %llx, "
			 "not %zu, %llx",
			 number, src, e->len, (unsigned long long)e->data, len,
			 (unsigned long long)demo_data(e->tag, len));
	else
		check_payload(slot, e, len);
	if ((e->flags & flags) != flags)
		demo_bad(d, "message %u from rank %d: flags %llx", number, src,
			 (unsigned long long)e->flags);
	if (from != d->fab.addr[src])
		demo_bad(d, "message %u from rank %d: source address %llx",
			 number, src, (unsigned long long)from);
	entry = ledger_at(slot->s, e->tag);
	if (*entry)
		demo_bad(d, "message %u from rank %d came twice", number, src);
	*entry = slot->receive;
}

static void received(struct demo_op *op, const struct fi_cq_tagged_entry *e,
		     fi_addr_t from)
{
	struct slot *slot = (struct slot *)op;
	struct demo *d = slot->d;
	struct demo_cell *cell;

	check(slot, e, from);
	slot->s->received++;
	d->msgs++;
	d->bytes += e->len;
	if (known(d, slot->s, e->tag)) {
		cell = &d->row->cell[demo_tag_src(e->tag)];
		cell->rx_msgs++;
		cell->rx_bytes += e->len;
		cell->rx_sum += demo_seed(e->tag, e->data);
		cell->all_rx_msgs++;
	}
	give_slot(&slot->s->rx_free, slot);
}

static int post_receives(struct demo *d, struct stream *s)
{
	struct slot *slot;
	long ret;

	while ((slot = s->rx_free) && s->posted < s->expected) {
		slot->receive = s->posted + 1;
		ret = fi_trecv(d->fab.ep, slot->buf, s->cap, NULL,
			       FI_ADDR_UNSPEC,
			       demo_tag(s->kind, 0, d->opt.rank, 0),
			       DEMO_TAG_ANY, &slot->op);
		if (ret)
			return demo_again(d, "fi_trecv", ret);
		s->rx_free = slot->next;
		s->posted++;
	}
	return 0;
}

/* ---- sending ------------------------------------------------------------- */

static void sent(struct demo_op *op, const struct fi_cq_tagged_entry *e,
		 fi_addr_t from)
{
	struct slot *slot = (struct slot *)op;

	if ((e->flags & (FI_SEND | FI_TAGGED)) != (FI_SEND | FI_TAGGED))
		demo_bad(slot->d, "send completed with flags %llx",
			 (unsigned long long)e->flags);
	slot->s->tx_flying--;
	give_slot(&slot->s->tx_free, slot);
}

/* The next message to @dst, made once however often it is tried. */
static struct slot *next_message(struct demo *d, struct stream *s, int dst)
{
	struct flow *flow = &s->flows[dst];
	struct slot *slot = flow->waiting;

	if (slot || !(slot = s->tx_free))
		return slot;
	s->tx_free = slot->next;
	slot->tag = demo_tag(s->kind, d->opt.rank, dst, flow->next);
	slot->len = message_len(s, slot->tag);
	slot->data = demo_data(slot->tag, slot->len);
	demo_pattern_fill(slot->buf, slot->len,
			  demo_seed(slot->tag, slot->data));
	flow->waiting = slot;
	return slot;
}

static void count_sent(struct demo *d, const struct slot *slot, int dst)
{
	struct demo_cell *cell = &d->row->cell[dst];

	cell->tx_msgs++;
	cell->tx_bytes += slot->len;
	cell->tx_sum += demo_seed(slot->tag, slot->data);
	cell->all_tx_msgs++;
}

/* Every other message that is small enough goes by fi_tinjectdata. */
static int send_to(struct demo *d, struct traffic *t, struct stream *s, int dst)
{
	struct slot *slot = next_message(d, s, dst);
	fi_addr_t addr = d->fab.addr[dst];
	int inject;
	long ret;

	if (!slot)
		return 0;
	inject = slot->len <= t->inject && slot->tag & 1;
	if (inject)
		ret = fi_tinjectdata(d->fab.ep, slot->buf, slot->len,
				     slot->data, addr, slot->tag);
	else
		ret = fi_tsenddata(d->fab.ep, slot->buf, slot->len, NULL,
				   slot->data, addr, slot->tag, &slot->op);
	if (ret)
		return demo_again(d, "fi_tsenddata", ret);
	count_sent(d, slot, dst);
	s->flows[dst].waiting = NULL;
	s->flows[dst].next++;
	s->tx_left--;
	if (inject)
		give_slot(&s->tx_free, slot);
	else
		s->tx_flying++;
	return 0;
}

static int push_sends(struct demo *d, struct traffic *t, struct stream *s)
{
	int i, dst;

	for (i = 0; i < BURST && s->tx_left; i++) {
		dst = s->turn;
		s->turn = (s->turn + 1) % d->opt.nranks;
		if (dst != d->opt.rank && s->flows[dst].next < s->per_pair &&
		    send_to(d, t, s, dst))
			return -1;
	}
	return 0;
}

/* ---- set-up and end ------------------------------------------------------ */

static void make_slots(struct demo *d, struct stream *s, int n,
		       struct slot **list, demo_done_fn done)
{
	struct slot *slot;

	while (n--) {
		slot = demo_alloc(sizeof(*slot));
		slot->op.done = done;
		slot->d = d;
		slot->s = s;
		slot->buf = demo_alloc(s->cap + GUARD_BYTES);
		memset(slot->buf + s->cap, GUARD, GUARD_BYTES);
		give_slot(list, slot);
	}
}

static void free_slots(struct slot *slot)
{
	struct slot *next;

	for (; slot; slot = next) {
		next = slot->next;
		free(slot->buf);
		free(slot);
	}
}

static uint32_t clamp(uint32_t v, uint32_t low, uint32_t high)
{
	return v < low ? low : v > high ? high : v;
}

static void make_stream(struct demo *d, struct stream *s, int ntx, int nrx)
{
	uint32_t others = (uint32_t)d->opt.nranks - 1;

	s->flows = demo_alloc((size_t)d->opt.nranks * sizeof(*s->flows));
	s->turn = (d->opt.rank + 1) % d->opt.nranks;
	s->cap = s->sizes[s->nsizes - 1];
	s->tx_left = s->expected = others * s->per_pair;
	s->ledger = demo_alloc((size_t)d->opt.nranks * s->per_pair *
			       sizeof(*s->ledger));
	make_slots(d, s, ntx, &s->tx_free, sent);
	make_slots(d, s, nrx, &s->rx_free, received);
}

/* The whole takes about the same time for any number of ranks. */
static void make_traffic(struct demo *d, struct traffic *t)
{
	uint32_t pairs = (uint32_t)(d->opt.nranks * (d->opt.nranks - 1));
	uint32_t rounds = clamp(480 / pairs, 2, 120);
	struct stream *small = &t->stream[0], *mixed = &t->stream[1];

	t->inject = d->fab.info->tx_attr->inject_size;
	small->kind = DEMO_SMALL;
	small->sizes = small_sizes;
	small->nsizes = sizeof(small_sizes) / sizeof(small_sizes[0]);
	small->per_pair = clamp(320000 / pairs, 1000, 60000);
	mixed->kind = DEMO_MIXED;
	mixed->sizes = mixed_sizes;
	mixed->nsizes = sizeof(mixed_sizes) / sizeof(mixed_sizes[0]);
	mixed->per_pair = rounds * (uint32_t)mixed->nsizes;
	make_stream(d, small, 64, 64);
	make_stream(d, mixed, 4, 6);
}

static void free_traffic(struct traffic *t)
{
	struct stream *s;

	for (s = t->stream; s < t->stream + STREAMS; s++) {
		free_slots(s->tx_free);
		free_slots(s->rx_free);
		free(s->flows);
		free(s->ledger);
	}
}

static void missing(struct demo *d, void *arg)
{
	struct traffic *t = arg;
	struct stream *s;
	uint32_t i, have;
	int r;

	for (s = t->stream; s < t->stream + STREAMS; s++) {
		fprintf(stderr,
			"tandem_demo: rank %d: messages up to %zu B: "
			"%u sends without completion\n",
			d->opt.rank, s->cap, s->tx_flying);
		for (r = 0; r < d->opt.nranks; r++) {
			if (r == d->opt.rank)
				continue;
			for (have = i = 0; i < s->per_pair; i++)
				have += !!s->ledger[(size_t)r * s->per_pair + i];
			if (have < s->per_pair ||
			    s->flows[r].next < s->per_pair)
				fprintf(stderr,
					"tandem_demo: rank %d: rank %d:"
					" %u of %u received, %u sent\n",
					d->opt.rank, r, have, s->per_pair,
					s->flows[r].next);
		}
	}
}

/* Each later message of a source got a receive that was posted later. */
static void check_order(struct demo *d, const struct stream *s)
{
	const uint32_t *ledger;
	uint32_t i, last;
	int src;

	for (src = 0; src < d->opt.nranks; src++) {
		if (src == d->opt.rank)
			continue;
		ledger = &s->ledger[(size_t)src * s->per_pair];
		for (last = i = 0; i < s->per_pair; i++) {
			if (!ledger[i])
				demo_bad(d,
					 "message %u from rank %d never "
					 "came",
					 i, src);
			else if (ledger[i] < last)
				demo_bad(d,
					 "message %u from rank %d overtook "
					 "an earlier one",
					 i, src);
			last = ledger[i] > last ? ledger[i] : last;
		}
	}
}

static int run(struct demo *d, struct traffic *t)
{
	struct stream *s;
	int busy = 1;

	while (busy) {
		if (demo_turn(d))
			return -1;
		busy = 0;
		for (s = t->stream; s < t->stream + STREAMS; s++) {
			if (post_receives(d, s) || push_sends(d, t, s))
				return -1;
			busy |= s->tx_left || s->tx_flying ||
				s->received < s->expected;
		}
	}
	return 0;
}

/* ---- a message too many? ------------------------------------------------- */

struct peek {
	struct demo_op op; /* first */
	int state;	   /* 0: under way, 1: nothing there, 2: a message */
};

static void peek_found(struct demo_op *op, const struct fi_cq_tagged_entry *e,
		       fi_addr_t from)
{
	((struct peek *)op)->state = 2;
}

static int peek_failed(struct demo_op *op, const struct fi_cq_err_entry *e)
{
	((struct peek *)op)->state = 1;
	return e->err == FI_ENOMSG ? 0 : -1;
}

/* All have received all: nothing else may wait in the queue. */
static int check_nothing_left(struct demo *d)
{
	struct peek peek = { .op = { .done = peek_found,
				     .failed = peek_failed } };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC,
				     .ignore = ~(uint64_t)0,
				     .context = &peek.op };
	long ret;

	while ((ret = fi_trecvmsg(d->fab.ep, &msg, FI_PEEK)))
		if (demo_again(d, "fi_trecvmsg FI_PEEK", ret) || demo_turn(d))
			return -1;
	while (!peek.state)
		if (demo_turn(d))
			return -1;
	if (peek.state == 2)
		demo_bad(d, "a message came that nobody sent, or one twice");
	return 0;
}

int demo_traffic_run(struct demo *d)
{
	struct traffic *t = demo_alloc(sizeof(*t));
	uint64_t goal = 0;
	int i, ret;

	make_traffic(d, t);
	for (i = 0; i < STREAMS; i++)
		goal += (uint64_t)t->stream[i].expected *
			(uint64_t)d->opt.nranks;
	d->missing = missing;
	d->missing_arg = t;
	demo_phase(d, "all to all", goal);
	ret = run(d, t);
	if (!ret)
		ret = demo_barrier(d);
	d->missing = NULL;
	if (ret)
		return -1; /* buffers may still be in use: left to exit */
	for (i = 0; i < STREAMS; i++)
		check_order(d, &t->stream[i]);
	ret = check_nothing_left(d);
	free_traffic(t);
	free(t);
	return ret;
}
