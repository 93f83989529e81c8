/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closing endpoint leaves its peers the payload of injects that it has
 * announced. Their calls have returned success, so the peer gets them although
 * it may not have looked at the announcement yet: the closing side copies them
 * to sealed memory and hands that over by the lifeline, where it waits for the
 * peer's progress as long as it takes. So fi_close(3) waits for nobody.
 *
 * Acknowledgements go the same way when the ring is full: a peer that does not
 * look at its ring meanwhile would take what it has delivered for lost.
 *
 * Invariants:
 *  1. The area of a session is looked at when all records of the ring have been
 *     taken, so every announcement is known by then.
 *  2. An announcement that nothing is left for ends as with any lost session.
 *  3. What is kept counts in the account (tdm_held.h), up to a bound of its own;
 *     beyond it a message stays an announcement.
 */
#include "shm/left.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "shm/path.h"
#include "shm/unexp.h"
#include "base/log.h"

/* ---- closing ------------------------------------------------------------- */

/* Is @op an inject that the peer was told of and does not have? */
static int leaves(const struct tdm_shm_op *op)
{
	return op->copy && op->count && !op->cancelled;
}

/* The next of @pair's operations behind @pos that leaves, or NULL. */
static struct tdm_shm_op *next_of(const struct tdm_shm_pair *pair,
				  const struct tdm_list *pos)
{
	for (pos = pos->next; pos != &pair->ops; pos = pos->next) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, node);

		if (leaves(op))
			return op;
	}
	return NULL;
}

/* The largest area that this process may make, bytes. */
static size_t area_most(void)
{
	size_t most = (size_t)TDM_SHM_LEFT_PAGES * TDM_SHM_PAGE_BYTES;

	while (most > TDM_SHM_PAGE_BYTES && !tdm_shm_region_allowed(most))
		most /= 2;
	return most;
}

static uint32_t pages_of(size_t bytes)
{
	return (uint32_t)((bytes + TDM_SHM_PAGE_BYTES - 1) /
			  TDM_SHM_PAGE_BYTES);
}

/* Pages for @op and what follows it, no more than an area may have. */
static uint32_t pages_from(const struct tdm_shm_pair *pair,
			   const struct tdm_shm_op *op)
{
	size_t most = area_most(), sum = 0;

	for (; op; op = next_of(pair, &op->node)) {
		size_t n = tdm_shm_left_bytes(op->bytes);

		if (sum && n > most - sum)
			break;
		sum += n;
	}
	return pages_of(sum);
}

/* Copy @op and what follows it as far as there is room; returns the next. */
static const struct tdm_shm_op *fill(const struct tdm_shm_pair *pair,
				     const struct tdm_shm_region *area,
				     const struct tdm_shm_op *op)
{
	uint8_t *to = area->base;
	size_t room = area->bytes;

	for (; op; op = next_of(pair, &op->node)) {
		size_t n = tdm_shm_left_bytes(op->bytes);
		struct tdm_shm_left head = {
			.id = tdm_shm_op_id(op),
			.len = (uint32_t)op->bytes,
			.kind = TDM_SHM_LEFT_PAYLOAD,
		};

		if (n > room)
			break;
		memcpy(to, &head, sizeof(head));
		memcpy(to + sizeof(head), op->copy, op->bytes);
		to += n;
		room -= n;
	}
	return op;
}

static int create(struct tdm_shm_region *area, uint32_t pages)
{
	return tdm_shm_region_create(area, "tandem-left",
				     (size_t)pages * TDM_SHM_PAGE_BYTES, 1);
}

/* Send @area of @pages and drop it here. */
static int hand_over(struct tdm_shm_session *s, struct tdm_shm_region *area,
		     uint32_t pages)
{
	int ret = tdm_shm_msg_send(s->life.fd, TDM_SHM_MSG_LEFT, pages,
				   tdm_shm_region_fd(area));

	tdm_shm_region_fini(area);
	return ret;
}

static int give_payload(struct tdm_shm_pair *pair)
{
	const struct tdm_shm_op *op = next_of(pair, &pair->ops);
	struct tdm_shm_region area;
	int ret = 0;

	while (op && !ret) {
		uint32_t pages = pages_from(pair, op);

		ret = create(&area, pages);
		if (ret)
			break;
		op = fill(pair, &area, op);
		ret = hand_over(pair->sess, &area, pages);
	}
	return ret;
}

enum { ACK_BYTES = sizeof(struct tdm_shm_left) + 16 };

static size_t count_acks(const struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;
	size_t n = 0;

	tdm_list_for_each(pos, &pair->ctl)
		n += tdm_list_entry(pos, struct tdm_shm_ctl, node)->op ==
		     TDM_SHM_REC_ACK;
	return n;
}

static void fill_acks(const struct tdm_shm_pair *pair,
		      const struct tdm_shm_region *area)
{
	struct tdm_list *pos;
	size_t at = 0;

	tdm_list_for_each(pos, &pair->ctl) {
		const struct tdm_shm_ctl *ctl =
			tdm_list_entry(pos, struct tdm_shm_ctl, node);
		const struct tdm_shm_left head = { .id = ctl->tag,
						   .len = sizeof(uint32_t),
						   .kind = TDM_SHM_LEFT_ACK };
		const uint32_t status = ctl->aux;
		uint8_t *to = (uint8_t *)area->base + at;

		if (ctl->op != TDM_SHM_REC_ACK)
			continue;
		if (area->bytes - at < ACK_BYTES)
			return;
		memcpy(to, &head, sizeof(head));
		memcpy(to + sizeof(head), &status, sizeof(status));
		at += ACK_BYTES;
	}
}

static int give_acks(struct tdm_shm_pair *pair)
{
	size_t bytes = count_acks(pair) * ACK_BYTES;
	struct tdm_shm_region area;
	uint32_t pages;
	int ret;

	if (!bytes)
		return 0;
	pages = pages_of(tdm_min(bytes, area_most()));
	ret = create(&area, pages);
	if (ret)
		return ret;
	fill_acks(pair, &area);
	return hand_over(pair->sess, &area, pages);
}

/* A peer that is gone does not want it. */
static void tell_loss(int ret, const char *what)
{
	if (ret && ret != -EPIPE && ret != -ECONNRESET)
		TDM_WARN(EP_DATA, "%s are lost at fi_close: %s", what,
			 fi_strerror(-ret));
}

void tdm_shm_left_give(struct tdm_shm_pair *pair)
{
	if (!(pair->sess->features & TDM_SHM_FEATURE_LEFT))
		return;
	tdm_shm_ctl_flush(pair);
	tell_loss(give_acks(pair), "acknowledgements");
	tell_loss(give_payload(pair), "injected messages");
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

/* One payload, its head checked. */
struct item {
	uint64_t id;
	const uint8_t *data;
	size_t len;
};

/* All that was left, by id. */
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

/* The operation may have ended by now, by an ACK in the ring. */
static void take_ack(struct tdm_shm_pair *pair, uint64_t id, const void *data)
{
	uint32_t status;

	memcpy(&status, data, sizeof(status));
	(void)tdm_shm_op_ack(pair, id, status);
}

/*
 * Take the acknowledgements of @area and add its payload to @all. Without
 * memory the rest is lost.
 */
static void add_area(struct tdm_shm_pair *pair, struct index *all,
		     const struct tdm_shm_region *area)
{
	const uint8_t *at = area->base;
	size_t room = area->bytes;
	struct tdm_shm_left head;

	while (room >= sizeof(head)) {
		struct item item;

		memcpy(&head, at, sizeof(head));
		if (tdm_shm_left_check(&head, room))
			return;
		item.id = head.id;
		item.data = at + sizeof(head);
		item.len = head.len;
		if (head.kind == TDM_SHM_LEFT_ACK)
			take_ack(pair, item.id, item.data);
		else if (add(all, &item))
			return;
		at += tdm_shm_left_bytes(head.len);
		room -= tdm_shm_left_bytes(head.len);
	}
}

/* The payload of the message that @rts announces, or NULL. */
static const void *find(const struct index *all, const struct tdm_shm_rts *rts)
{
	const struct item key = { .id = rts->id };
	const struct item *item;

	item = bsearch(&key, all->item, all->count, sizeof(key), by_id);
	return item && item->len == rts->len ? item->data : NULL;
}

/* The announced @u becomes a message that came with its payload. */
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

void tdm_shm_left_place(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	struct index all = { NULL, 0, 0 };
	uint32_t i;

	tdm_shm_life_last(pair);
	for (i = 0; i < s->nleft; i++)
		add_area(pair, &all, &s->left[i]);
	if (!all.count)
		return;
	qsort(all.item, all.count, sizeof(*all.item), by_id);
	keep_all(pair, &all);
	place_all(pair, &all);
	free(all.item);
}
