/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive doubly linked list with a head node. A node that is on no list
 * points at itself: tdm_list_del() of it is harmless, and tdm_list_linked() of
 * it is 0.
 */
#ifndef TDM_BASE_LIST_H
#define TDM_BASE_LIST_H

#include "base/base.h"

struct tdm_list {
	struct tdm_list *next;
	struct tdm_list *prev;
};

static inline void tdm_list_init(struct tdm_list *l)
{
	l->next = l;
	l->prev = l;
}

static inline int tdm_list_empty(const struct tdm_list *head)
{
	return head->next == head;
}

static inline int tdm_list_linked(const struct tdm_list *node)
{
	return node->next != node;
}

static inline void tdm_list_add_after(struct tdm_list *node,
				      struct tdm_list *at)
{
	node->prev = at;
	node->next = at->next;
	at->next->prev = node;
	at->next = node;
}

static inline void tdm_list_push(struct tdm_list *head, struct tdm_list *node)
{
	tdm_list_add_after(node, head);
}

static inline void tdm_list_append(struct tdm_list *head, struct tdm_list *node)
{
	tdm_list_add_after(node, head->prev);
}

/* Unlink @node; harmless when it is on no list. */
static inline void tdm_list_del(struct tdm_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	tdm_list_init(node);
}

/* Remove and return the first node of @head, or NULL when the list is empty. */
static inline struct tdm_list *tdm_list_pop(struct tdm_list *head)
{
	struct tdm_list *node = head->next;

	if (node == head)
		return NULL;
	tdm_list_del(node);
	return node;
}

/* Move all nodes of @from, in order, to the end of @to; @from ends empty. */
static inline void tdm_list_splice(struct tdm_list *to, struct tdm_list *from)
{
	if (tdm_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	tdm_list_init(from);
}

#define tdm_list_entry(node, type, member) tdm_container_of(node, type, member)

#define tdm_list_for_each(pos, head)                                           \
	for (pos = (head)->next; pos != (head); pos = pos->next)

/* @pos may be removed from its list inside the loop body. */
#define tdm_list_for_each_safe(pos, tmp, head)                                 \
	for (pos = (head)->next, tmp = pos->next; pos != (head);               \
	     pos = tmp, tmp = pos->next)

/*
 * An iteration that takes nodes from the two ends of a list in turn: a search
 * for a node near either end is short. The list must not change meanwhile.
 */
struct tdm_list_ends {
	struct tdm_list *front, *back; /* next node from each end; NULL: none */
	int from_back;
};

static inline void tdm_list_ends_init(struct tdm_list_ends *e,
				      const struct tdm_list *head)
{
	int none = tdm_list_empty(head);

	e->front = none ? NULL : head->next;
	e->back = none ? NULL : head->prev;
	e->from_back = 0;
}

/* Returns the next node, or NULL when every node has been returned once. */
static inline struct tdm_list *tdm_list_ends_next(struct tdm_list_ends *e)
{
	struct tdm_list *node = e->from_back ? e->back : e->front;

	if (e->front == e->back)
		e->front = e->back = NULL;
	else if (e->from_back)
		e->back = node->prev;
	else
		e->front = node->next;
	e->from_back = !e->from_back;
	return node;
}

#endif /* TDM_BASE_LIST_H */
