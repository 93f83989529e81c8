/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of the attach socket (shm/record.c) fed with anything. An input is
 * a byte, the number of descriptors that came, then the packet. A packet that is
 * accepted has the descriptors and the bounds that its receiver relies on.
 */
#include <string.h>

#include "shm/addr.h"
#include "shm/packet.h"
#include "shm/record.h"
#include "tests/fuzz/fuzz.h"

static void hello(const struct tdm_shm_msg *msg, const uint8_t *p, size_t len)
{
	const struct tdm_shm_hello *h = &msg->hello;
	struct tdm_shm_addr addr;

	tdt_must(len >= sizeof(*h) && !memcmp(h, p, sizeof(*h)));
	tdt_must(h->version_least && h->version_least <= h->version_most);
	if (tdm_shm_hello_version(h) < 0)
		return;
	tdt_must(h->slots >= TDM_SHM_SLOTS_LEAST &&
		 h->slots <= TDM_SHM_SLOTS_MOST);
	tdt_must(h->bell < TDM_SHM_BELLS_MOST);
	tdt_must(h->head.arg < TDM_SHM_CTX_MOST);
	tdt_must(h->addrlen <= sizeof(h->addr));
	tdt_must(!tdm_shm_addr_set(&addr, h->addr, h->addrlen));
	tdt_must(msg->proven == !!(h->features & TDM_SHM_FEATURE_AUTH));
	if (msg->proven)
		tdt_must(len >= sizeof(msg->proven_hello) &&
			 !memcmp(&msg->proven_hello, p,
				 sizeof(msg->proven_hello)));
}

static void accepted(const struct tdm_shm_msg *msg, const uint8_t *p,
		     size_t len, int nfds)
{
	static const int wanted[TDM_SHM_MSG_COUNT] = {
		[TDM_SHM_MSG_HELLO] = 3,
		[TDM_SHM_MSG_RING] = 1,
		[TDM_SHM_MSG_BOUNCE] = 1,
		[TDM_SHM_MSG_LEFT] = 1,
	};

	tdt_must(msg->type >= TDM_SHM_MSG_HELLO &&
		 msg->type < TDM_SHM_MSG_COUNT);
	tdt_must(nfds == wanted[msg->type]);
	switch (msg->type) {
	case TDM_SHM_MSG_HELLO:
		hello(msg, p, len);
		break;
	case TDM_SHM_MSG_REJECT:
	case TDM_SHM_MSG_ABORT:
		tdt_must(msg->arg && msg->arg < TDM_SHM_WHY_COUNT);
		break;
	case TDM_SHM_MSG_RING:
		tdt_must(msg->arg >= TDM_SHM_SLOTS_LEAST &&
			 msg->arg <= TDM_SHM_SLOTS_MOST);
		break;
	case TDM_SHM_MSG_BOUNCE:
		tdt_must(msg->arg && msg->arg <= TDM_SHM_CHUNKS_MOST);
		break;
	case TDM_SHM_MSG_LEFT:
		tdt_must(msg->arg && msg->arg <= TDM_SHM_LEFT_PAGES);
		break;
	default:
		tdt_must(msg->proven == (len == sizeof(struct tdm_shm_ready)));
	}
}

int tdt_fuzz_attach(const uint8_t *data, size_t size)
{
	struct tdm_shm_msg msg;
	uint8_t *exact;
	int nfds;

	if (!size)
		return 0;
	nfds = data[0] % (TDM_SHM_FDS_MOST + 1);
	exact = tdt_exact(data + 1, size - 1);
	/* What was not written must not be used. */
	memset(&msg, 0xa5, sizeof(msg));
	if (!tdm_shm_msg_decode(&msg, exact, size - 1, nfds))
		accepted(&msg, exact, size - 1, nfds);
	free(exact);
	return 0;
}
