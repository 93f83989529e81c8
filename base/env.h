/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters of fi_tandem(7), ENVIRONMENT. */
#ifndef TDM_BASE_ENV_H
#define TDM_BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

enum tdm_shm_mode {
	TDM_SHM_AUTO, /* shared memory where possible */
	TDM_SHM_OFF,  /* never used, whoever asks */
	TDM_SHM_ONLY, /* a peer without shared memory is unreachable */
};

/* The form of the report, fi_tandem(7). */
enum tdm_form {
	TDM_FORM_NONE, /* 0: no report is printed */
	TDM_FORM_PLAIN,
	TDM_FORM_SUMMARY,
	TDM_FORM_FULL,
	TDM_FORM_JSON,
};

/*
 * The FI_TANDEM_* parameters, read once when the provider loads, clamped.
 * fi_tandem(7) documents each. Never written afterwards.
 */
struct tdm_env {
	enum tdm_shm_mode shm;
	/* the provider between processes of a host; NULL: the embedded one */
	const char *local;
	const char *shm_dir; /* base/folder.h; NULL: none */
	const char *iface;   /* list, base/iflist.h, or NULL */
	uint16_t port_low;   /* 0: any port */
	uint16_t port_high;
	unsigned conn_timeout_ms; /* 0: never give up */
	/* TDM_REFUSED_UNSET: by tdm_refused_over() */
	unsigned refused_timeout_ms;
	unsigned peer_timeout_ms; /* 0: never */
	int resume;		  /* 0: a lost connection ends the session */
	int crc;		  /* 1: ask for checksums over TCP */
	const char *congestion;	  /* base/congestion.h; NULL: none chosen */
	size_t eager_bytes;	  /* TCP: largest message sent without RTS */
	size_t shm_eager_bytes;	  /* shm: largest message copied via ring */
	size_t unexp_max_bytes;	  /* unexpected messages held per endpoint */
	size_t inject_max_bytes;  /* injected messages held per process */
	int cma;		  /* 0: never use process_vm_readv */
	enum tdm_form report;
	const char *report_file; /* NULL: standard error; %p: process id */
	int stat;		 /* 0: no statistics for tandem-stat(1) */
	/* base/env_key.h; NULL: none */
	const char *auth_key_file, *auth_key;
	int tls; /* 1: TLS over TCP */
	/* files in PEM; NULL: none */
	const char *tls_cert, *tls_key, *tls_ca;
	const char *stand_in; /* name of another provider, or NULL */
};

extern struct tdm_env tdm_env;

enum {
	TDM_REFUSED_BRIEF_MS = 2000,
	TDM_REFUSED_UNSET = -1,
};

/*
 * Not 0 when operations to a peer end because its host has answered for @ns
 * nanoseconds that nobody listens at its address. @brief: 1: the peer is not
 * expected to start there: it was there, or operations have waited in vain.
 * fi_tandem(7), FAULTS. Lock: none.
 */
static inline int tdm_refused_over(uint64_t ns, int brief)
{
	unsigned ms = tdm_env.refused_timeout_ms;

	if (ms == (unsigned)TDM_REFUSED_UNSET) {
		if (!tdm_env.conn_timeout_ms || !brief)
			return 0;
		ms = TDM_REFUSED_BRIEF_MS;
	}
	return ns >= ms * 1000000ull;
}

/*
 * Define all parameters with the libfabric core and fill tdm_env. Called once,
 * from fi_prov_ini(), before any other thread can exist in the provider.
 */
void tdm_env_init(void);

#endif /* TDM_BASE_ENV_H */
