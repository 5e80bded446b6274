/*
 * sign - Ed25519 keys, and evidence as a DSSE envelope over an in-toto Statement v1.
 *
 * Formats: DSSE v1 (PAE "DSSEv1 len type len body"), in-toto Statement v1, key id =
 * SHA-256 of the 32 raw public key bytes in hex.  Key files are PKCS#8 PEM, mode 0600.
 */
#ifndef COMMON_SIGN_H
#define COMMON_SIGN_H

#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "common/digest.h"
#include "common/err.h"

#define SIGN_PAYLOAD_TYPE "application/vnd.in-toto+json"
#define SIGN_STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define SIGN_PREDICATE_TYPE "urn:verify:verify-run/v1"
#define SIGN_KEY_HEX 65 /* 32 raw bytes in hex, and the NUL */
#define SIGN_MAX_ENVELOPE (32u << 20)

struct sign_key; /* a private key */

/* Reads the key file; makes one (0600, atomically) when there is none and create is
 * true.  ERR_REFUSED when others may read it.  Gives *out, freed with sign_key_free. */
CHECKED int sign_key_open(const char *path, bool create, struct sign_key **out,
	struct err *e);
void sign_key_free(struct sign_key *k);
/* The raw public key and its id, both hex. */
const char *sign_key_public(const struct sign_key *k);
const char *sign_key_id(const struct sign_key *k);
/* "SHA256:base64" as ssh prints fingerprints, of the raw public key. */
void sign_fingerprint(const char *public_hex, char out[64]);
CHECKED int sign_id_of(const char *public_hex, char id[DIGEST_HEX], struct err *e);

/* Signs payload bytes.  Gives envelope JSON text, freed with free(). */
CHECKED int sign_envelope(const struct sign_key *k, const char *payload, size_t len,
	char **out, struct err *e);

/* The layers of an envelope, each named when it fails. */
struct sign_opened {
	cJSON *statement;      /* owned */
	char key_id[DIGEST_HEX];
};
/* Checks envelope form, payload type, signature by public_hex (64 hex), statement type
 * and predicate type, in that order; ERR_REFUSED (signature) or ERR_PARSE (form), the
 * message beginning with the layer: "envelope: ...", "signature: ...",
 * "statement: ...", "predicate: ...".  Fill with {0}; free with sign_opened_fini. */
CHECKED int sign_open(const char *envelope, size_t len, const char *public_hex,
	struct sign_opened *out, struct err *e);
void sign_opened_fini(struct sign_opened *o);

/* base64 (RFC 4648, with padding).  Give text or bytes freed with free(). */
char *sign_base64(const void *p, size_t n);
CHECKED int sign_unbase64(const char *text, unsigned char **out, size_t *n,
	struct err *e);

#endif
