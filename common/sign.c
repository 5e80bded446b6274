#include "common/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

struct sign_key {
	EVP_PKEY *pkey;
	char public_hex[SIGN_KEY_HEX];
	char id[DIGEST_HEX];
};

/* ---- base64 ---- */

char *
sign_base64(const void *p, size_t n)
{
	char *out;

	if (n > SIGN_MAX_ENVELOPE || (out = malloc(4 * ((n + 2) / 3) + 1)) == NULL)
		return NULL;
	EVP_EncodeBlock((unsigned char *)out, p, (int)n);
	return out;
}

int
sign_unbase64(const char *text, unsigned char **out, size_t *n, struct err *e)
{
	size_t len = strlen(text), pad = 0;
	unsigned char *p, tail[5];
	int got;

	if (len % 4 != 0 || len > SIGN_MAX_ENVELOPE * 2 ||
	    strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") +
			    (pad = str_ends(text, "==") ? 2 : str_ends(text, "=") ? 1 : 0) !=
		    len)
		return err_set(e, ERR_PARSE, "not base64");
	if ((p = malloc(len / 4 * 3 + 1)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for base64");
	if ((got = EVP_DecodeBlock(p, (const unsigned char *)text, (int)len)) < 0) {
		free(p);
		return err_set(e, ERR_PARSE, "not base64");
	}
	*n = (size_t)got - pad;
	p[*n] = '\0';
	/* one spelling only: bits that belong to no byte are 0 */
	if (len > 0) {
		EVP_EncodeBlock(tail, p + (got - 3), 3 - (int)pad);
		if (memcmp(tail, text + len - 4, 4) != 0) {
			free(p);
			return err_set(e, ERR_PARSE, "not base64");
		}
	}
	*out = p;
	return 0;
}

/* ---- keys ---- */

int
sign_id_of(const char *public_hex, char id[DIGEST_HEX], struct err *e)
{
	uint8_t raw[32];

	if (str_unhex(raw, sizeof raw, public_hex))
		return err_set(e, ERR_PARSE, "a public key is 64 hex digits");
	digest_bytes(raw, sizeof raw, id);
	return 0;
}

void
sign_fingerprint(const char *public_hex, char out[64])
{
	uint8_t raw[32], sum[32];
	char hex[DIGEST_HEX];
	char *b64 = NULL;

	out[0] = '\0';
	if (str_unhex(raw, sizeof raw, public_hex))
		return;
	digest_bytes(raw, sizeof raw, hex);
	if (str_unhex(sum, sizeof sum, hex) == 0 && (b64 = sign_base64(sum, 32)) != NULL) {
		b64[strcspn(b64, "=")] = '\0';
		snprintf(out, 64, "SHA256:%s", b64);
	}
	free(b64);
}

static int
key_fill(struct sign_key *k, struct err *e)
{
	unsigned char raw[32];
	size_t n = sizeof raw;

	if (EVP_PKEY_base_id(k->pkey) != EVP_PKEY_ED25519 ||
	    EVP_PKEY_get_raw_public_key(k->pkey, raw, &n) != 1 || n != sizeof raw)
		return err_set(e, ERR_REFUSED, "not an Ed25519 key");
	str_hex(k->public_hex, raw, sizeof raw);
	return sign_id_of(k->public_hex, k->id, e);
}

static int
key_make(const char *path, struct err *e)
{
	EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	BIO *bio = BIO_new(BIO_s_mem());
	char *pem = NULL, temp[4200], tag[17];
	long n;
	int rc = -1;

	if (pkey == NULL || bio == NULL ||
	    PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL) != 1 ||
	    (n = BIO_get_mem_data(bio, &pem)) <= 0)
		err_set(e, ERR_IO, "cannot make a key");
	else if (plat_random_hex(tag, 16, e) == 0 &&
		str_fmt(temp, sizeof temp, e, "%s.%s", path, tag) == 0 &&
		plat_write_file(temp, pem, (size_t)n, 0600, e) == 0) {
		/* of two that start at once the first makes the key of both */
		rc = link(temp, path) == 0 || errno == EEXIST ? 0
			: err_errno(e, errno, "%s", path);
		unlink(temp);
	}
	if (pem != NULL && bio != NULL)
		OPENSSL_cleanse(pem, (size_t)BIO_get_mem_data(bio, &pem));
	BIO_free(bio);
	EVP_PKEY_free(pkey);
	return rc;
}

int
sign_key_open(const char *path, bool create, struct sign_key **out, struct err *e)
{
	static char no_phrase[] = "";
	struct sign_key *k = NULL;
	struct stat st;
	FILE *f = NULL;
	int fd, rc = -1;

	if (create && !plat_exists(path) && key_make(path, e))
		return err_wrap(e, "key");
	/* a FIFO must not hold us */
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return err_errno(e, errno, "key %s", path);
	if ((f = fdopen(fd, "r")) == NULL) {
		close(fd);
		return err_set(e, ERR_NOMEM, "no memory for a key");
	}
	if (fstat(fd, &st)) {
		err_errno(e, errno, "key %s", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_REFUSED, "key %s: not a regular file", path);
		goto out;
	}
	if ((st.st_mode & 077) != 0) {
		err_set(e, ERR_REFUSED, "key %s: others may read it", path);
		err_hint(e, "chmod 600 %s", path);
		goto out;
	}
	if ((k = calloc(1, sizeof *k)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a key");
		goto out;
	}
	/* an empty pass phrase, so that nothing is asked on a terminal */
	if ((k->pkey = PEM_read_PrivateKey(f, NULL, NULL, no_phrase)) == NULL) {
		err_set(e, ERR_REFUSED, "key %s: not a plain private key in PEM", path);
		goto out;
	}
	if (key_fill(k, e)) {
		err_wrap(e, "key %s", path);
		goto out;
	}
	*out = k, k = NULL;
	rc = 0;
out:
	fclose(f);
	sign_key_free(k);
	return rc;
}

void
sign_key_free(struct sign_key *k)
{
	if (k == NULL)
		return;
	EVP_PKEY_free(k->pkey);
	free(k);
}

const char *
sign_key_public(const struct sign_key *k)
{
	return k->public_hex;
}

const char *
sign_key_id(const struct sign_key *k)
{
	return k->id;
}

/* ---- envelopes ---- */

/* The pre-authentication encoding of DSSE v1. */
static int
pae(const char *type, const void *body, size_t len, struct buf *out, struct err *e)
{
	buf_init(out, SIGN_MAX_ENVELOPE);
	if (buf_addf(out, e, "DSSEv1 %zu %s %zu ", strlen(type), type, len) ||
	    buf_add(out, body, len, e))
		return -1;
	return 0;
}

static int
signature(const struct sign_key *k, const struct buf *message, char **b64, struct err *e)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char sig[64];
	size_t n = sizeof sig;
	int rc = -1;

	if (ctx == NULL || EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->pkey) != 1 ||
	    EVP_DigestSign(ctx, sig, &n, (const unsigned char *)message->data,
		    message->len) != 1)
		err_set(e, ERR_IO, "cannot sign");
	else if ((*b64 = sign_base64(sig, n)) == NULL)
		err_set(e, ERR_NOMEM, "no memory to sign");
	else
		rc = 0;
	EVP_MD_CTX_free(ctx);
	return rc;
}

int
sign_envelope(const struct sign_key *k, const char *payload, size_t len, char **out,
	struct err *e)
{
	struct buf message = {0};
	char *sig = NULL, *body = NULL;
	cJSON *o = NULL, *list, *one = NULL;
	int rc = -1;

	if (pae(SIGN_PAYLOAD_TYPE, payload, len, &message, e) ||
	    signature(k, &message, &sig, e))
		goto out;
	body = sign_base64(payload, len);
	o = cJSON_CreateObject();
	if (body == NULL || o == NULL || !json_add_str(o, "payloadType", SIGN_PAYLOAD_TYPE) ||
	    !json_add_str(o, "payload", body) ||
	    (list = json_add_array(o, "signatures")) == NULL ||
	    (one = cJSON_CreateObject()) == NULL || !cJSON_AddItemToArray(list, one) ||
	    !json_add_str(one, "keyid", k->id) || !json_add_str(one, "sig", sig) ||
	    (*out = json_text(o, true)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for an envelope");
		goto out;
	}
	if (strlen(*out) > SIGN_MAX_ENVELOPE) {
		free(*out);
		*out = NULL;
		err_set(e, ERR_LIMIT, "the envelope is longer than %u bytes", SIGN_MAX_ENVELOPE);
		goto out;
	}
	rc = 0;
out:
	buf_fini(&message);
	cJSON_Delete(o);
	free(body);
	free(sig);
	return rc;
}

static int
signature_check(const char *public_hex, const struct buf *message, const unsigned char *sig,
	size_t n, struct err *e)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_PKEY *pkey = NULL;
	uint8_t raw[32];
	int rc = -1;

	if (str_unhex(raw, sizeof raw, public_hex) == 0)
		pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, sizeof raw);
	if (ctx == NULL || pkey == NULL ||
	    EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) != 1)
		err_set(e, ERR_REFUSED, "signature: the pinned key can not be used");
	else if (n != 64 || EVP_DigestVerify(ctx, sig, n, (const unsigned char *)message->data,
				    message->len) != 1)
		err_set(e, ERR_REFUSED, "signature: not made by the pinned key over these bytes");
	else
		rc = 0;
	EVP_PKEY_free(pkey);
	EVP_MD_CTX_free(ctx);
	return rc;
}

/* Envelope form; gives payload and signature bytes. */
static int
envelope_parts(const cJSON *o, struct sign_opened *out, unsigned char **payload,
	size_t *payload_len, unsigned char **sig, size_t *sig_len, struct err *e)
{
	static const char *const known[] = {"payloadType", "payload", "signatures", NULL};
	static const char *const known_sig[] = {"keyid", "sig", NULL};
	const cJSON *list = json_get(o, "signatures"), *one;
	const char *type, *body, *text, *keyid;

	if (!cJSON_IsObject(o))
		return err_set(e, ERR_PARSE, "not an object");
	if (json_known(o, known, e) || json_need_str(o, "payloadType", &type, e) ||
	    json_need_str(o, "payload", &body, e))
		return -1;
	if (strcmp(type, SIGN_PAYLOAD_TYPE) != 0)
		return err_set(e, ERR_PARSE, "payloadType is \"%.80s\", wanted %s", type,
			SIGN_PAYLOAD_TYPE);
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 1)
		return err_set(e, ERR_PARSE, "exactly one signature is wanted");
	one = cJSON_GetArrayItem(list, 0);
	if (json_known(one, known_sig, e) || json_need_str(one, "sig", &text, e) ||
	    json_need_str(one, "keyid", &keyid, e))
		return -1;
	if (!str_is_hex(keyid, 64))
		return err_set(e, ERR_PARSE, "keyid is not 64 hex digits");
	memcpy(out->key_id, keyid, DIGEST_HEX);
	return sign_unbase64(body, payload, payload_len, e) ||
			sign_unbase64(text, sig, sig_len, e)
		? -1
		: 0;
}

/* The signature does not cover the key id: one that names another key is no evidence. */
static int
key_id_check(const struct sign_opened *o, const char *public_hex, struct err *e)
{
	char id[DIGEST_HEX];

	if (sign_id_of(public_hex, id, e))
		return err_set(e, ERR_REFUSED, "signature: the pinned key can not be used");
	if (strcmp(id, o->key_id) != 0)
		return err_set(e, ERR_REFUSED, "signature: made by key %.12s, pinned is %.12s",
			o->key_id, id);
	return 0;
}

static int
statement_check(const cJSON *st, struct err *e)
{
	const char *type, *predicate;

	if (!cJSON_IsObject(st))
		return err_set(e, ERR_PARSE, "statement: not an object");
	if (json_need_str(st, "_type", &type, e) ||
	    json_need_str(st, "predicateType", &predicate, e))
		return err_wrap(e, "statement");
	if (strcmp(type, SIGN_STATEMENT_TYPE) != 0)
		return err_set(e, ERR_PARSE, "statement: _type is \"%.80s\", wanted %s", type,
			SIGN_STATEMENT_TYPE);
	if (strcmp(predicate, SIGN_PREDICATE_TYPE) != 0)
		return err_set(e, ERR_PARSE, "predicate: type is \"%.80s\", wanted %s", predicate,
			SIGN_PREDICATE_TYPE);
	if (!cJSON_IsArray(json_get(st, "subject")) || !cJSON_IsObject(json_get(st, "predicate")))
		return err_set(e, ERR_PARSE, "statement: subject or predicate is missing");
	return 0;
}

int
sign_open(const char *envelope, size_t len, const char *public_hex, struct sign_opened *out,
	struct err *e)
{
	struct buf message = {0};
	unsigned char *payload = NULL, *sig = NULL;
	size_t payload_len = 0, sig_len = 0;
	cJSON *o = NULL;
	int rc = -1;

	memset(out, 0, sizeof *out);
	if (json_parse(envelope, len, SIGN_MAX_ENVELOPE, &o, e) ||
	    envelope_parts(o, out, &payload, &payload_len, &sig, &sig_len, e)) {
		err_wrap(e, "envelope");
		goto out;
	}
	if (key_id_check(out, public_hex, e) ||
	    pae(SIGN_PAYLOAD_TYPE, payload, payload_len, &message, e) ||
	    signature_check(public_hex, &message, sig, sig_len, e))
		goto out;
	if (json_parse((char *)payload, payload_len, SIGN_MAX_ENVELOPE, &out->statement, e)) {
		err_wrap(e, "statement");
		goto out;
	}
	if (statement_check(out->statement, e))
		goto out;
	rc = 0;
out:
	if (rc)
		sign_opened_fini(out);
	buf_fini(&message);
	free(payload);
	free(sig);
	cJSON_Delete(o);
	return rc;
}

void
sign_opened_fini(struct sign_opened *o)
{
	cJSON_Delete(o->statement);
	o->statement = NULL;
}
