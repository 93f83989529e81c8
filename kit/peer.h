/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "kitpeer", the peer provider of the kit: an owner under test is told to link
 * it. Endpoints of one process copy messages in memory. Each call that the owner
 * makes, and each object that it lends, is looked at; what breaks the contract is
 * a fault on the subject that it is about. peer_info.c has the provider, peer.c the
 * objects, peer_look.c what is looked at when one is lent, peer_msg.c and
 * peer_send.c the messages.
 *
 * Lock: none; the owner makes one call at a time.
 */
#ifndef KIT_PEER_H
#define KIT_PEER_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/providers/fi_prov.h>

#define KIT_PEER_NAME "kitpeer"

/* The subject of a fault; a rule asks for the faults on one subject. */
enum kit_about {
	KIT_ON_INFO,
	KIT_ON_CQ,
	KIT_ON_CNTR,
	KIT_ON_DOMAIN,
	KIT_ON_EQ,
	KIT_ON_SRX,
	KIT_ON_SRX_EP, /* the calls of ep_fid */
	KIT_ON_BIND,
	KIT_ON_DRIVE,
	KIT_ON_STAYS,	  /* what is lent is valid until the peer's closes */
	KIT_ON_LAST,	  /* calls to objects that have closed */
	KIT_ON_MATCH,	  /* flags and fields of an entry that has a receive */
	KIT_ON_BUFFER,	  /* its iov */
	KIT_ON_DESC,	  /* its desc */
	KIT_ON_WANT,	  /* FI_COMPLETION */
	KIT_ON_ENTRY,	  /* of a message without a receive */
	KIT_ON_ENTRY_SRX, /* srx of an entry */
	KIT_ON_GET,	  /* the results of get_* */
	KIT_ON_QUEUE,	  /* the results of queue_* */
	KIT_ON_START,	  /* start_* and discard_*: which entries */
	KIT_ON_CONTEXT,	  /* peer_context is the peer's */
	KIT_ON_UNSPEC,	  /* for which entries get_addr() is called */
	KIT_ON_ADDR,	  /* addresses in sends */
	KIT_ON_LEFT,	  /* messages that wait when the endpoint closes */
	KIT_ON_CLOSE,	  /* what the application closes */
	KIT_SUBJECTS,
};

/* Objects by kind, for refusals and counts. */
enum kit_object {
	KIT_FABRIC,
	KIT_DOMAIN,
	KIT_EQ,
	KIT_CQ,
	KIT_CNTR,
	KIT_AV,
	KIT_SRX,
	KIT_EP,
	KIT_OBJECTS,
};

/* Calls of the owner. */
struct kit_peer_seen {
	size_t infos;  /* fi_getinfo */
	size_t shared; /* with FI_PEER */
	size_t opens[KIT_OBJECTS], closes[KIT_OBJECTS];
	size_t imports[KIT_OBJECTS]; /* opens with FI_PEER */
	size_t sends, arrivals;
	size_t matches, misses; /* results of get_* */
	size_t starts, discards;
	size_t asked;	/* get_addr() */
	size_t drives;	/* fi_cq_read */
	size_t refused; /* opens, by struct kit_peer_do */
	size_t ids,
		inserts; /* addresses inserted with FI_AV_USER_ID, and all */
};

/* Orders of a rule to the peer. */
struct kit_peer_do {
	int refuse[KIT_OBJECTS]; /* the open call fails with -FI_EINVAL */
	int refuse_info;
	int hide;      /* sources are FI_ADDR_UNSPEC in get_* */
	int hold;      /* messages stay where they are */
	int fail;      /* receives end with this error; FI_ETRUNC: never */
	int fail_send; /* sends end with this error */
	size_t busy;   /* so many sends return -FI_EAGAIN */
	int later;     /* what is started ends in the next pass, not within */
};

/* The receives that the application has posted, if all are alike. */
struct kit_peer_want {
	size_t room; /* bytes; 0: not all have the same */
};

extern struct kit_peer_want kit_peer_want;
extern struct kit_peer_seen kit_peer_seen;
extern struct kit_peer_do kit_peer_do;

/* The provider, for the module that libfabric loads (door.c). */
__attribute__((visibility("default"))) struct fi_provider *
kit_peer_provider(void);

/* The owner has broken the contract; the first fault of a subject is kept. */
__attribute__((format(printf, 2, 3))) void
kit_peer_fault(enum kit_about subject, const char *text, ...);

/* The rule is broken if there is a fault on @subject. */
void kit_peer_no_fault(enum kit_about subject);

#endif /* KIT_PEER_H */
