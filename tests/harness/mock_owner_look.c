/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions of a test to a mock owner: queued messages, ended operations,
 * reports of its peer. They change nothing; the others make one call to the peer.
 */
#include "tests/harness/mock_owner.h"

static size_t list_count(const struct tdt_entry *e)
{
	size_t n = 0;

	for (; e; e = e->link)
		n++;
	return n;
}

size_t tdt_owner_queued(const struct tdt_owner *o)
{
	return list_count(o->queued);
}

fi_addr_t tdt_owner_queued_source(const struct tdt_owner *o)
{
	return o->queued ? o->queued->rx.addr : FI_ADDR_NOTAVAIL;
}

size_t tdt_owner_posted(const struct tdt_owner *o)
{
	return list_count(o->posted);
}

const struct tdt_done *tdt_owner_find(const struct tdt_owner *o,
				      const void *context)
{
	size_t i;

	for (i = 0; i < o->dones; i++) {
		if (o->done[i].context == context)
			return &o->done[i];
	}
	return NULL;
}

const struct tdm_peer_event *tdt_owner_event(const struct tdt_owner *o,
					     uint32_t type)
{
	size_t i = o->nevents;

	while (i--) {
		if (o->events[i].type == type)
			return &o->events[i];
	}
	return NULL;
}

fi_addr_t tdt_owner_insert(struct tdt_owner *o, const void *addr, size_t len,
			   fi_addr_t user_id)
{
	fi_addr_t a = user_id;

	if (fi_av_insert(o->av, addr, 1, &a, FI_AV_USER_ID, NULL) != 1)
		return FI_ADDR_NOTAVAIL;
	return a;
}

void tdt_owner_progress(struct tdt_owner *o)
{
	o->driving = 1;
	if (fi_cq_read(o->cq, NULL, 0))
		o->broken++;
	o->driving = 0;
}
