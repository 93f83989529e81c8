/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a TLS connection. See tls.h.
 *
 *   records of the protocol -> SSL_write -> out[] -> the socket
 *                           <- SSL_read  <- in[]  <-
 *
 * Invariants:
 *  1. All system calls are made here, through tdm_os: OpenSSL reads and writes the
 *     buffers by a BIO.
 *  2. SSL_write is called when out[] has room for a whole record, so it takes all
 *     it is given, and never has to be repeated with the same bytes.
 *  3. The socket is read when in[] is empty.
 *
 * Lock: held in all of this file.
 */
#include "tcp/wire/tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>

#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "base/os.h"
#include "tcp/wire/sock.h"
#include "tcp/wire/tls_priv.h"

enum {
	RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
	/* a record with head and tag, and one that tells new keys */
	ROOM_BYTES = RECORD_BYTES + 512,
};

/* ---- the buffers --------------------------------------------------------- */

/* Read from the socket to in[], which is empty. Returns as recv(2). */
static ssize_t fill(struct tdm_tls *t)
{
	ssize_t n;

	do
		n = tdm_os.recv(t->fd, t->in, sizeof(t->in), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	t->in_from = 0;
	t->in_to = n > 0 ? (uint32_t)n : 0;
	if (n > 0)
		t->parted = 0;
	return n;
}

/* Offer out[] to the kernel. 0: it has all of it, or nothing may be sent; -1: errno. */
static int flush(struct tdm_tls *t)
{
	return t->quiet ?
		       0 :
		       tdm_sock_flush(t->fd, t->out, &t->out_from, &t->out_to);
}

static int bio_write(BIO *bio, const char *p, int len)
{
	struct tdm_tls *t = BIO_get_data(bio);
	size_t n = tdm_min((size_t)len, sizeof(t->out) - t->out_to);

	BIO_clear_retry_flags(bio);
	if (!n) {
		BIO_set_retry_write(bio);
		return -1;
	}
	memcpy(t->out + t->out_to, p, n);
	t->out_to += (uint32_t)n;
	return (int)n;
}

static int bio_read(BIO *bio, char *p, int len)
{
	struct tdm_tls *t = BIO_get_data(bio);
	ssize_t n = 1;

	BIO_clear_retry_flags(bio);
	if (t->in_from == t->in_to)
		n = fill(t);
	if (n > 0) {
		n = (ssize_t)tdm_min((size_t)len,
				     (size_t)(t->in_to - t->in_from));
		memcpy(p, t->in + t->in_from, (size_t)n);
		t->in_from += (uint32_t)n;
		return (int)n;
	}
	if (n < 0 && tdm_os_later(errno)) {
		BIO_set_retry_read(bio);
		return -1;
	}
	t->eof = !n;
	t->err = n ? errno : 0;
	return (int)n;
}

static long bio_ctrl(BIO *bio, int what, long num, void *p)
{
	const struct tdm_tls *t = BIO_get_data(bio);

	(void)num;
	(void)p;
	switch (what) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return t->eof;
	default:
		return 0;
	}
}

BIO_METHOD *tdm_tls_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "tandem");

	if (m && BIO_meth_set_write(m, bio_write) &&
	    BIO_meth_set_read(m, bio_read) && BIO_meth_set_ctrl(m, bio_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- a TLS session ------------------------------------------------------- */

void tdm_tls_free(struct tdm_tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

struct tdm_tls *tdm_tls_new(struct tdm_tls_ctx *ctx, int fd, int accepts,
			    const struct tdm_auth_key *key)
{
	struct tdm_tls *t = malloc(sizeof(*t));
	BIO *bio = BIO_new(ctx->method);

	if (t)
		memset(t, 0, offsetof(struct tdm_tls, in));
	if (t)
		t->ssl = SSL_new(ctx->ssl);
	if (!bio || !t || !t->ssl) {
		BIO_free(bio);
		tdm_tls_free(t);
		return NULL;
	}
	t->ctx = ctx;
	t->fd = fd;
	t->key = key;
	t->quiet = accepts && ctx->keys;
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_app_data(t->ssl, t);
	if (accepts) {
		SSL_set_accept_state(t->ssl);
	} else {
		SSL_set_connect_state(t->ssl);
		tdm_tls_insist(t);
	}
	return t;
}

int tdm_tls_ready(const struct tdm_tls *t)
{
	return t->ready;
}

const char *tdm_tls_why(const struct tdm_tls *t)
{
	return t->why;
}

/* Remember why the handshake, or what followed, has failed. */
static void keep_why(struct tdm_tls *t)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	if (t->eof)
		why = "the connection was closed";
	else if (t->err)
		why = fi_strerror(t->err);
	snprintf(t->why, sizeof(t->why), "TLS: %s", why ? why : "no handshake");
	ERR_clear_error();
}

/* One step of the handshake, and what it has to say. Returns SSL_get_error(3). */
static int step(struct tdm_tls *t)
{
	int ret, code;

	ERR_clear_error();
	ret = SSL_do_handshake(t->ssl);
	code = ret == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, ret);
	if (code != SSL_ERROR_NONE && code != SSL_ERROR_WANT_READ &&
	    code != SSL_ERROR_WANT_WRITE) {
		keep_why(t);
		/* An alert tells the peer why; who knows no key hears nothing. */
		t->quiet |= t->ctx->keys && SSL_is_server(t->ssl);
	}
	/* Bytes that the kernel refuses leave later: tdm_tls_pending(). */
	(void)flush(t);
	return code;
}

int tdm_tls_shake(struct tdm_tls *t)
{
	int code;

	if (t->ready)
		return 0;
	do
		code = step(t);
	while (code == SSL_ERROR_WANT_WRITE && !t->quiet &&
	       !tdm_tls_pending(t));
	if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE)
		return -FI_EAGAIN;
	if (code != SSL_ERROR_NONE)
		return -FI_ECONNREFUSED;
	t->ready = 1;
	return 0;
}

int tdm_tls_pending(const struct tdm_tls *t)
{
	return !t->quiet && t->out_from < t->out_to;
}

/* ---- output -------------------------------------------------------------- */

/* Encrypt @len bytes at @p as one record. Returns not 0 when that failed. */
static int seal(struct tdm_tls *t, const void *p, size_t len)
{
	ERR_clear_error();
	if (++t->sealed >= TDM_TLS_SEALED_MOST) {
		t->sealed = 0;
		if (SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
			return -1;
	}
	return SSL_write(t->ssl, p, (int)len) == (int)len ? 0 : -1;
}

/* Encrypt the @len bytes from @off on in iov[@n] as one record. */
static int seal_range(struct tdm_tls *t, const struct iovec *iov, size_t n,
		      size_t off, size_t len)
{
	uint8_t joined[RECORD_BYTES];
	size_t i = 0, skip = off;

	while (skip >= iov[i].iov_len)
		skip -= iov[i++].iov_len;
	if (iov[i].iov_len - skip >= len)
		return seal(t, (const uint8_t *)iov[i].iov_base + skip, len);
	tdm_iov_copy_from(joined, iov, n, off, len);
	return seal(t, joined, len);
}

ssize_t tdm_tls_send(struct tdm_tls *t, const struct iovec *iov, size_t n)
{
	size_t all = tdm_iov_len(iov, n), off = 0;

	if (flush(t))
		return -1;
	if (!t->ready) {
		errno = EAGAIN;
		return -1;
	}
	do {
		while (off < all && t->out_to + ROOM_BYTES <= sizeof(t->out)) {
			size_t len = tdm_min(all - off, (size_t)RECORD_BYTES);

			if (seal_range(t, iov, n, off, len)) {
				ERR_clear_error();
				errno = ECONNRESET;
				return -1;
			}
			off += len;
		}
		/* Bytes that the kernel refuses are kept for the next call. */
	} while (!flush(t) && off < all);
	return (ssize_t)off;
}

/* ---- input --------------------------------------------------------------- */

/* Nothing more comes from @t, which is broken. */
static ssize_t broken_input(const struct tdm_tls *t)
{
	if (t->eof)
		return 0;
	errno = t->err ? t->err : EBADMSG;
	return -1;
}

/* Called when SSL_read() or SSL_peek() has returned @ret, which is no success. */
static ssize_t no_input(struct tdm_tls *t, int ret)
{
	const int code = SSL_get_error(t->ssl, ret);

	if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) {
		ERR_clear_error();
		errno = EAGAIN;
		return -1;
	}
	if (code == SSL_ERROR_ZERO_RETURN)
		t->eof = 1;
	else if (code == SSL_ERROR_SSL)
		keep_why(t);
	ERR_clear_error();
	t->broken = 1;
	return broken_input(t);
}

/*
 * Called before a read. Returns 1: the handshake is done, and bytes to be sent were
 * offered to the kernel; 0: the peer has closed the connection; -1: errno.
 */
static int begin_input(struct tdm_tls *t)
{
	int ret = tdm_tls_shake(t);

	if (!ret) {
		(void)flush(t);
		ERR_clear_error();
		return t->broken ? (int)broken_input(t) : 1;
	}
	if (t->eof)
		return 0;
	errno = ret == -FI_EAGAIN ? EAGAIN : ECONNREFUSED;
	return -1;
}

ssize_t tdm_tls_recv(struct tdm_tls *t, uint8_t *p, size_t room)
{
	size_t got = 0;
	int n = begin_input(t);

	if (n <= 0)
		return n;
	while (got < room) {
		n = SSL_read(t->ssl, p + got,
			     (int)tdm_min(room - got, (size_t)1 << 30));
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (!got)
		return no_input(t, n);
	if (n <= 0)
		(void)no_input(t, n); /* for the next call */
	return (ssize_t)got;
}

ssize_t tdm_tls_peek(struct tdm_tls *t)
{
	uint8_t byte;
	int n = begin_input(t);

	if (n <= 0)
		return n;
	n = SSL_peek(t->ssl, &byte, 1);
	return n > 0 ? n : no_input(t, n);
}

int tdm_tls_stuck(struct tdm_tls *t)
{
	const int part = SSL_has_pending(t->ssl), stuck = part && t->parted;

	t->parted = (uint8_t)part;
	return stuck;
}

int tdm_tls_waiting(const struct tdm_tls *t)
{
	return t->in_from < t->in_to || t->broken || SSL_pending(t->ssl) > 0;
}
