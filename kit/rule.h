/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A rule of fi_peer(3), and how a rule ends. Each rule runs in a process of its
 * own (run.c); the functions here are for that process.
 */
#ifndef KIT_RULE_H
#define KIT_RULE_H

#include <stdint.h>

enum { KIT_TEXT_BYTES = 240 };

enum kit_result {
	KIT_OPEN, /* the rule has not ended */
	KIT_HELD,
	KIT_BROKEN,
	KIT_ABSENT, /* the provider does not offer what the rule is about */
	KIT_UNTRIED,
};

struct kit_outcome {
	enum kit_result result;
	char step[KIT_TEXT_BYTES]; /* what the process did last */
	char text[KIT_TEXT_BYTES]; /* why, unless it held */
};

struct kit_rule {
	const char *name;
	const char *page;    /* of a manual, or "guide" */
	const char *section; /* of the page; NULL: the page is enough */
	unsigned paragraph;  /* of the section, from 1; 0: none */
	const char *sentence;
	void (*run)(void); /* returns if the rule held */
};

/* Ends with an element without a name. */
extern const struct kit_rule kit_rules_open[], kit_rules_message[],
	kit_rules_queue[], kit_rules_receive[], kit_rules_unexpected[],
	kit_rules_address[], kit_rules_end[];

/* Rules about owners. */
extern const struct kit_rule kit_owner_open[], kit_owner_message[],
	kit_owner_receive[], kit_owner_wait[], kit_owner_end[];

/* The provider under test, from the command line. */
struct kit_subject {
	const char *provider;
	int is_owner;	    /* else it is the peer */
	const char *domain; /* NULL: the first that is offered */
	const char *node;   /* NULL, or the source address to ask for */
	unsigned seconds;   /* the time for one rule */
};

extern struct kit_subject kit_subject;

/* Where outcomes go: memory that the parent shares. */
extern struct kit_outcome *kit_outcome;

/* What is done now; it is reported if the provider crashes or hangs there. */
__attribute__((format(printf, 1, 2))) void kit_step(const char *text, ...);

/*
 * The provider has broken the contract in a call that the owner got. The first
 * text is kept; the rule is broken when it ends. Returns to the provider.
 */
__attribute__((format(printf, 1, 2))) void kit_breach(const char *text, ...);

/* From now on breaches are not noted. */
void kit_forgive(void);

/* End of the process. Not for callbacks: objects of the provider are closed. */
__attribute__((noreturn, format(printf, 1, 2))) void
kit_broken(const char *text, ...);
__attribute__((noreturn, format(printf, 1, 2))) void
kit_absent(const char *text, ...);

/* End of a rule that has returned: closes all, then holds if there is no breach. */
__attribute__((noreturn)) void kit_return(void);

/* End of the process if there was a breach. */
void kit_no_breach(void);

/* Milliseconds until a condition that a rule waits for counts as never met. */
int64_t kit_patience_ms(void);

/* A monotonic clock. */
int64_t kit_now_ms(void);

#endif /* KIT_RULE_H */
