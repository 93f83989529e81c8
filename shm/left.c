/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closing endpoint leaves its peers the payload of injects that it has
 * announced. The inject calls have returned success, so the peer must get the
 * payload even if it has not read the announcement yet. The closing side copies
 * it to sealed memory, an *area*, and sends that over the lifeline, whose
 * socket keeps it until the peer makes progress. So fi_close(3) need not wait
 * for any peer.
 *
 * Answers and GOODBYE that find the ring full are left in the same way. Without
 * them, a peer that is busy meanwhile would report finished operations as lost,
 * and the close as a death.
 *
 * Invariants:
 *  1. The peer reads the areas of a session after all records of the ring: by
 *     then it knows every announcement. GOODBYE is the last record.
 *  2. An announcement without payload in an area fails as with any lost
 *     session.
 *  3. Payload that the receiver keeps counts in the account (tdm_held.h), up to
 *     a bound of its own; beyond it a message stays an announcement.
 */
#include "shm/left.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "shm/cma.h"
#include "shm/ctl.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/rx.h"
#include "shm/unexp.h"

/* ---- closing ------------------------------------------------------------- */

/*
 * The entries that are left to one peer, which go to one area after the other.
 */
struct give {
	struct tdm_shm_session *s;
	struct tdm_shm_region area; /* the area being filled */
	size_t at;		    /* bytes of the area in use */
	size_t rest;		    /* bytes of the entries to come */
	/* 1: only add up the bytes of the entries */
	int counting;
	int ret; /* the first error, -errno */
};

/* Not 0 when @op is an announced inject that the peer has not fetched. */
static int is_left(const struct tdm_shm_op *op)
{
	return op->copy && op->count && !op->cancelled;
}

/* Not 0 when the peer needs the record @ctl although the endpoint closes. */
static int is_answer(const struct tdm_shm_ctl *ctl)
{
	return ctl->op == TDM_SHM_REC_ACK || ctl->op == TDM_SHM_REC_READ_DATA;
}

static size_t record_bytes(const struct tdm_shm_ctl *ctl)
{
	return TDM_SHM_HEAD_BYTES +
	       (ctl->op == TDM_SHM_REC_READ_DATA ? ctl->aux : 0);
}

/* Returns the size of the largest area that this process may make, bytes. */
static size_t area_most(void)
{
	size_t most = (size_t)TDM_SHM_LEFT_PAGES * TDM_SHM_PAGE_BYTES;

	while (most > TDM_SHM_PAGE_BYTES && !tdm_shm_region_allowed(most))
		most /= 2;
	return most;
}

/* Send the area to the peer, if there is one, and unmap it. */
static void hand_over(struct give *g)
{
	if (!g->area.base)
		return;
	if (!g->ret)
		g->ret = tdm_shm_msg_send(
			g->s->lifeline.fd, TDM_SHM_MSG_LEFT,
			(uint32_t)(g->area.bytes / TDM_SHM_PAGE_BYTES),
			tdm_shm_region_fd(&g->area));
	tdm_shm_region_fini(&g->area);
}

/* Begin an area for the remaining entries, of at least @least bytes. */
static void begin_area(struct give *g, size_t least)
{
	size_t n = tdm_max(tdm_min(g->rest, area_most()), least);

	hand_over(g);
	g->at = 0;
	n = (n + TDM_SHM_PAGE_BYTES - 1) & ~(size_t)(TDM_SHM_PAGE_BYTES - 1);
	if (!g->ret)
		g->ret = tdm_shm_region_create(&g->area, "tandem-left", n, 1);
}

/*
 * Returns room for the @len bytes of the next entry; NULL while counting and after
 * an error.
 */
static uint8_t *add_entry(struct give *g, uint32_t kind, uint64_t id,
			  size_t len)
{
	const struct tdm_shm_left head = { id, (uint32_t)len, kind };
	size_t n = tdm_shm_left_bytes(len);
	uint8_t *to;

	if (g->counting) {
		g->rest += n;
		return NULL;
	}
	if (!g->area.base || g->area.bytes - g->at < n)
		begin_area(g, n);
	g->rest -= n;
	if (g->ret)
		return NULL;
	to = (uint8_t *)g->area.base + g->at;
	g->at += n;
	memcpy(to, &head, sizeof(head));
	return to + sizeof(head);
}

static void give_payload(struct give *g, const struct tdm_shm_op *op)
{
	uint8_t *to = add_entry(g, TDM_SHM_LEFT_PAYLOAD, tdm_shm_op_id(op),
				op->bytes);

	if (to)
		memcpy(to, op->copy, op->bytes);
}

static void give_record(struct give *g, const struct tdm_shm_ctl *ctl)
{
	uint8_t *to = add_entry(g, TDM_SHM_LEFT_RECORD, 0, record_bytes(ctl));
	uint64_t word0;

	if (!to)
		return;
	word0 = tdm_shm_ctl_encode(ctl, to);
	memcpy(to, &word0, sizeof(word0));
}

/* Add the payload of all injects of @pair. Returns how many there are. */
static size_t each_payload(struct give *g, struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;
	size_t n = 0;

	tdm_list_for_each(pos, &pair->pending) {
		const struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, node);

		if (!is_left(op))
			continue;
		give_payload(g, op);
		n++;
	}
	return n;
}

/*
 * Add the answers of @pair that wait for the ring, and GOODBYE after them. Returns
 * the number of answers.
 */
static size_t each_record(struct give *g, struct tdm_shm_pair *pair)
{
	const struct tdm_shm_ctl bye = { .op = TDM_SHM_REC_GOODBYE };
	struct tdm_list *pos;
	size_t n = 0;

	tdm_list_for_each(pos, &pair->ctl) {
		const struct tdm_shm_ctl *ctl =
			tdm_list_entry(pos, struct tdm_shm_ctl, node);

		if (!is_answer(ctl))
			continue;
		give_record(g, ctl);
		n++;
	}
	give_record(g, &bye);
	return n;
}

static void give_each(struct tdm_shm_pair *pair, const char *what,
		      size_t (*each)(struct give *, struct tdm_shm_pair *))
{
	struct give g = { .s = pair->sess, .counting = 1 };
	size_t n = each(&g, pair);

	g.counting = 0;
	each(&g, pair);
	hand_over(&g);
	/* No warning if the peer is gone, or if only GOODBYE is lost. */
	if (n && g.ret && g.ret != -EPIPE && g.ret != -ECONNRESET)
		TDM_WARN(EP_DATA, "%s are lost at fi_close: %s", what,
			 fi_strerror(-g.ret));
}

void tdm_shm_left_give(struct tdm_shm_pair *pair)
{
	int takes = pair->sess->features & TDM_SHM_FEATURE_LEFT;

	tdm_shm_ctl_flush(pair);
	/* Payload first: the peer stops reading the lifeline at GOODBYE. */
	if (takes)
		give_each(pair, "injected messages", each_payload);
	if (tdm_shm_ctl_goodbye(pair) && takes)
		give_each(pair, "answers", each_record);
}

/* ---- the other side ------------------------------------------------------ */

int tdm_shm_left_take(struct tdm_shm_session *s, uint32_t pages, int fd)
{
	struct tdm_shm_region *left;
	int ret;

	if (s->nleft == TDM_SHM_LEFT_AREAS)
		return -FI_EPROTO;
	left = realloc(s->left, (s->nleft + 1) * sizeof(*left));
	if (!left)
		return -FI_EAGAIN;
	s->left = left;
	ret = tdm_shm_region_map(&left[s->nleft], fd,
				 (size_t)pages * TDM_SHM_PAGE_BYTES, 1);
	if (ret)
		return ret == TDM_SHM_BAD_REGION ? -FI_EPROTO : -FI_EAGAIN;
	s->nleft++;
	return 0;
}

/* An entry with payload; its head has been checked. */
struct item {
	uint64_t id;
	const uint8_t *data;
	size_t len;
};

/* All payload that was left, by id. */
struct index {
	struct item *item; /* [count] */
	size_t count, room;
};

static int by_id(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int add(struct index *all, const struct item *item)
{
	size_t room = tdm_max(all->room * 2, (size_t)64);
	struct item *grown;

	if (all->count == all->room) {
		grown = realloc(all->item, room * sizeof(*grown));
		if (!grown)
			return -FI_ENOMEM;
		all->item = grown;
		all->room = room;
	}
	all->item[all->count++] = *item;
	return 0;
}

/*
 * Handle the records of @area and add its payload to @all. Stops for want of
 * memory and at an invalid record. Returns 1 after GOODBYE.
 */
static int add_area(struct tdm_shm_pair *pair, struct index *all,
		    const struct tdm_shm_region *area)
{
	const uint8_t *at = area->base;
	size_t room = area->bytes;
	struct tdm_shm_left head;

	while (room >= sizeof(head)) {
		struct item item;
		int ret;

		memcpy(&head, at, sizeof(head));
		if (tdm_shm_left_check(&head, room))
			return 0;
		item.id = head.id;
		item.data = at + sizeof(head);
		item.len = head.len;
		ret = head.kind == TDM_SHM_LEFT_RECORD ?
			      tdm_shm_rx_left(pair, item.data, item.len) :
			      add(all, &item);
		if (ret)
			return ret == -FI_ESHUTDOWN;
		at += tdm_shm_left_bytes(head.len);
		room -= tdm_shm_left_bytes(head.len);
	}
	return 0;
}

/* Returns the payload of the message that @rts announces, or NULL. */
static const void *find(const struct index *all, const struct tdm_shm_rts *rts)
{
	const struct item key = { .id = rts->id };
	const struct item *item;

	item = bsearch(&key, all->item, all->count, sizeof(key), by_id);
	return item && item->len == rts->len ? item->data : NULL;
}

/* Turn @u, an announced message, into one that has its payload, @data. */
static void keep(struct tdm_shm_pair *pair, struct tdm_shm_unexp *u,
		 const void *data)
{
	size_t len = u->pull->rts.len;
	struct tdm_shm_unexp *whole;

	if (!tdm_held_keeps(pair->ep->account, tdm_shm_unexp_bytes(pair, len)))
		return;
	whole = tdm_shm_unexp_alloc(pair, len);
	if (!whole)
		return;
	memcpy(whole->data, data, len);
	u->entry->peer_context = whole;
	tdm_pool_free(&pair->ep->pulls, u->pull);
	tdm_shm_unexp_free(u);
}

static void keep_all(struct tdm_shm_pair *pair, const struct index *all)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &pair->ep->unexps) {
		struct tdm_shm_unexp *u =
			tdm_list_entry(pos, struct tdm_shm_unexp, node);
		const void *data;

		if (u->pair != pair || u->epoch != pair->epoch || !u->pull ||
		    !u->entry)
			continue;
		data = find(all, &u->pull->rts);
		if (data)
			keep(pair, u, data);
	}
}

static void place_all(struct tdm_shm_pair *pair, const struct index *all)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &pair->pulls) {
		struct tdm_shm_pull *pull =
			tdm_list_entry(pos, struct tdm_shm_pull, node);
		const void *data = pull->entry ? find(all, &pull->rts) : NULL;

		if (data)
			tdm_shm_pull_left(pull, data);
	}
}

int tdm_shm_left_place(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	struct index all = { NULL, 0, 0 };
	int bye = 0;
	uint32_t i;

	tdm_shm_lifeline_last(pair);
	for (i = 0; i < s->nleft; i++)
		bye |= add_area(pair, &all, &s->left[i]);
	if (!all.count)
		return bye;
	qsort(all.item, all.count, sizeof(*all.item), by_id);
	keep_all(pair, &all);
	place_all(pair, &all);
	free(all.item);
	return bye;
}
