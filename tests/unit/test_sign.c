#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/proc.h"
#include "common/sign.h"
#include "common/str.h"
#include "tests/unit/repo.h"

/* RFC 8032, section 7.1, test 1 and test 2: secret and public key. */
#define SECRET_1 "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define PUBLIC_1 "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
#define SECRET_2 "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
#define PUBLIC_2 "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"

#define STATEMENT(type, predicate_type, rest) \
	"{\"_type\":\"" type "\",\"predicateType\":\"" predicate_type "\"" rest "}"
#define REST ",\"subject\":[],\"predicate\":{\"a\":1}"
#define GOOD STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v1", REST)

struct place {
	char dir[256], path[300];
	struct sign_key *key;
	struct err e;
};

/* PKCS#8 of RFC 8410: a fixed head, then the 32 bytes. */
static void
key_write(struct place *p, const char *name, const char *secret, unsigned mode)
{
	uint8_t der[48];
	char *b64, pem[256];

	assert_int_equal(str_unhex(der, 16, "302e020100300506032b657004220420"), 0);
	assert_int_equal(str_unhex(der + 16, 32, secret), 0);
	b64 = sign_base64(der, sizeof der);
	assert_non_null(b64);
	snprintf(pem, sizeof pem, "-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n", b64);
	free(b64);
	repo_write(p->dir, name, pem, mode);
	snprintf(p->path, sizeof p->path, "%s/%s", p->dir, name);
}

static int
place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	assert_non_null(p);
	repo_folder(p->dir, sizeof p->dir);
	key_write(p, "key.pem", SECRET_1, 0600);
	assert_int_equal(sign_key_open(p->path, false, &p->key, &p->e), 0);
	*state = p;
	return 0;
}

static int
place_remove(void **state)
{
	struct place *p = *state;

	sign_key_free(p->key);
	repo_remove(p->dir);
	free(p);
	return 0;
}

static char *
envelope_of(struct place *p, const char *payload)
{
	char *text = NULL;

	if (sign_envelope(p->key, payload, strlen(payload), &text, &p->e))
		fail_msg("%s", p->e.msg);
	return text;
}

static void
opens(struct place *p, const char *text)
{
	struct sign_opened o = {0};

	if (sign_open(text, strlen(text), PUBLIC_1, &o, &p->e))
		fail_msg("%s", p->e.msg);
	assert_non_null(o.statement);
	sign_opened_fini(&o);
}

/* Refused, with the layer that failed in front; nothing is given. */
static void
refuses_by(struct place *p, const char *text, size_t len, const char *public_hex,
	const char *layer, enum err_code code)
{
	struct sign_opened o = {0};
	char *copy = malloc(len > 0 ? len : 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	memset(&p->e, 0, sizeof p->e);
	assert_int_equal(sign_open(copy, len, public_hex, &o, &p->e), -1);
	if (!str_starts(p->e.msg, layer))
		fail_msg("wanted %s, got %s", layer, p->e.msg);
	assert_int_equal(p->e.code, code);
	assert_null(o.statement);
	free(copy);
}

static void
refuses(struct place *p, const char *text, const char *layer, enum err_code code)
{
	refuses_by(p, text, strlen(text), PUBLIC_1, layer, code);
}

/* ---- keys ---- */

static void
public_key_is_that_of_the_standard(void **state)
{
	struct place *p = *state;
	struct sign_key *k = NULL;
	char id[DIGEST_HEX], sum[DIGEST_HEX];
	uint8_t raw[32];

	assert_string_equal(sign_key_public(p->key), PUBLIC_1);
	key_write(p, "two.pem", SECRET_2, 0600);
	assert_int_equal(sign_key_open(p->path, true, &k, &p->e), 0);
	assert_string_equal(sign_key_public(k), PUBLIC_2);
	assert_int_equal(str_unhex(raw, 32, PUBLIC_2), 0);
	digest_bytes(raw, 32, sum);
	assert_string_equal(sign_key_id(k), sum);
	assert_int_equal(sign_id_of(PUBLIC_2, id, &p->e), 0);
	assert_string_equal(id, sum);
	assert_int_equal(sign_id_of("zz", id, &p->e), -1);
	sign_key_free(k);
	sign_key_free(NULL);
}

static void
fingerprint_is_unpadded_base64_of_the_digest(void **state)
{
	struct place *p = *state;
	char text[64], *b64;
	uint8_t sum[32];

	sign_fingerprint(PUBLIC_1, text);
	assert_int_equal(str_unhex(sum, 32, sign_key_id(p->key)), 0);
	b64 = sign_base64(sum, 32);
	assert_int_equal(strlen(b64), 44);
	assert_int_equal(strlen(text), 7 + 43);
	assert_memory_equal(text, "SHA256:", 7);
	assert_memory_equal(text + 7, b64, 43);
	free(b64);
	sign_fingerprint("not a key", text);
	assert_string_equal(text, "");
}

static void
new_key_is_made_once_and_for_us_only(void **state)
{
	struct place *p = *state;
	struct sign_key *k = NULL, *again = NULL;
	struct stat st;

	snprintf(p->path, sizeof p->path, "%s/new.pem", p->dir);
	assert_int_equal(sign_key_open(p->path, false, &k, &p->e), -1);
	assert_int_equal(p->e.code, ERR_NOTFOUND);
	umask(0);
	assert_int_equal(sign_key_open(p->path, true, &k, &p->e), 0);
	umask(022);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(sign_key_open(p->path, true, &again, &p->e), 0);
	assert_string_equal(sign_key_public(k), sign_key_public(again));
	sign_key_free(k);
	sign_key_free(again);
	snprintf(p->path, sizeof p->path, "%s/no/new.pem", p->dir);
	assert_int_equal(sign_key_open(p->path, true, &k, &p->e), -1);
}

static void
key_that_others_may_read_is_refused(void **state)
{
	static const unsigned modes[] = {0644, 0640, 0604, 0620, 0602, 0610, 0601, 0777};
	struct place *p = *state;
	struct sign_key *k = NULL;
	size_t i;

	for (i = 0; i < str_count(modes); i++) {
		key_write(p, "open.pem", SECRET_2, modes[i]);
		assert_int_equal(sign_key_open(p->path, true, &k, &p->e), -1);
		assert_int_equal(p->e.code, ERR_REFUSED);
		assert_true(str_starts(p->e.hint, "chmod 600 "));
		assert_null(k);
	}
}

static void
key_file_that_is_none_is_refused(void **state)
{
	static const char *const texts[] = {"", "x", "-----BEGIN PRIVATE KEY-----\n",
		"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
		"-----END PUBLIC KEY-----\n")};
	struct place *p = *state;
	struct sign_key *k = NULL;
	size_t i;

	for (i = 0; i < str_count(texts); i++) {
		repo_write(p->dir, "bad.pem", texts[i], 0600);
		snprintf(p->path, sizeof p->path, "%s/bad.pem", p->dir);
		assert_int_equal(sign_key_open(p->path, true, &k, &p->e), -1);
		assert_int_equal(p->e.code, ERR_REFUSED);
	}
	assert_int_equal(sign_key_open(p->dir, true, &k, &p->e), -1);
	snprintf(p->path, sizeof p->path, "%s/fifo", p->dir);
	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_int_equal(sign_key_open(p->path, true, &k, &p->e), -1);
	assert_int_equal(p->e.code, ERR_REFUSED);
	assert_null(k);
}

static void
pem_save(struct place *p, EVP_PKEY *pkey, const EVP_CIPHER *cipher, const char *phrase)
{
	char pass[32] = "";
	FILE *f;

	snprintf(p->path, sizeof p->path, "%s/other.pem", p->dir);
	unlink(p->path);
	umask(077);
	f = fopen(p->path, "w");
	umask(022);
	assert_non_null(f);
	if (phrase != NULL)
		snprintf(pass, sizeof pass, "%s", phrase);
	assert_int_equal(PEM_write_PKCS8PrivateKey(f, pkey, cipher, phrase ? pass : NULL,
		phrase ? (int)strlen(pass) : 0, NULL, NULL), 1);
	fclose(f);
}

/* Nothing may be asked: with a terminal or without, the answer is a refusal. */
static void
encrypted_key_is_refused_without_a_question(void **state)
{
	struct place *p = *state;
	struct sign_key *k = NULL;
	EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	int64_t begun = plat_mono_ms();

	assert_non_null(pkey);
	pem_save(p, pkey, EVP_aes_256_cbc(), "secret");
	EVP_PKEY_free(pkey);
	assert_int_equal(sign_key_open(p->path, false, &k, &p->e), -1);
	assert_int_equal(p->e.code, ERR_REFUSED);
	assert_null(k);
	assert_true(plat_mono_ms() - begun < 5000);
}

static void
key_of_another_kind_is_refused(void **state)
{
	struct place *p = *state;
	struct sign_key *k = NULL;
	EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");

	assert_non_null(pkey);
	pem_save(p, pkey, NULL, NULL);
	EVP_PKEY_free(pkey);
	assert_int_equal(sign_key_open(p->path, false, &k, &p->e), -1);
	assert_int_equal(p->e.code, ERR_REFUSED);
	assert_non_null(strstr(p->e.msg, "Ed25519"));
	pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED448");
	assert_non_null(pkey);
	pem_save(p, pkey, NULL, NULL);
	EVP_PKEY_free(pkey);
	assert_int_equal(sign_key_open(p->path, false, &k, &p->e), -1);
}

/* ---- base64 ---- */

static void
base64_is_that_of_the_standard(void **state)
{
	/* RFC 4648, section 10 */
	static const char *const rows[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="},
		{"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	struct err e = {0};
	unsigned char *back;
	char *text;
	size_t i, n;

	(void)state;
	for (i = 0; i < str_count(rows); i++) {
		text = sign_base64(rows[i][0], strlen(rows[i][0]));
		assert_string_equal(text, rows[i][1]);
		free(text);
		assert_int_equal(sign_unbase64(rows[i][1], &back, &n, &e), 0);
		assert_int_equal(n, strlen(rows[i][0]));
		assert_string_equal((char *)back, rows[i][0]);
		free(back);
	}
}

static void
text_that_is_not_base64_is_refused(void **state)
{
	static const char *const bad[] = {"Z", "Zg", "Zg=", "Zg===", "=", "==", "====", "A===", "Zm9v=",
		"Zm9v\n", " Zm9v", "Zm 9", "Zm9v Zm9", "Zm9-", "Zm9_", "Zm=v", "Z===Zm9v", "Zg==Zm9v",
		"Zm9v\xc3\xa9z9", "Zh==", "Zm9=", "ZmB=", "Zm9vYn=="};
	struct err e;
	unsigned char *back = NULL;
	size_t i, n;

	(void)state;
	for (i = 0; i < str_count(bad); i++) {
		memset(&e, 0, sizeof e);
		if (sign_unbase64(bad[i], &back, &n, &e) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(e.code, ERR_PARSE);
	}
	assert_null(back);
}

static void
random_bytes_survive_base64(void **state)
{
	unsigned char bytes[200], *back;
	struct err e = {0};
	char *text;
	size_t n, got;

	(void)state;
	for (n = 0; n < sizeof bytes; n++) {
		assert_int_equal(plat_random(bytes, n, &e), 0);
		text = sign_base64(bytes, n);
		assert_int_equal(sign_unbase64(text, &back, &got, &e), 0);
		assert_int_equal(got, n);
		assert_memory_equal(back, bytes, n);
		free(back);
		free(text);
	}
}

/* ---- envelopes ---- */

static void
own_envelope_opens_with_its_key_only(void **state)
{
	struct place *p = *state;
	struct sign_opened o = {0};
	char *text = envelope_of(p, GOOD);

	assert_int_equal(sign_open(text, strlen(text), PUBLIC_1, &o, &p->e), 0);
	assert_string_equal(o.key_id, sign_key_id(p->key));
	assert_int_equal(json_int(json_get(o.statement, "predicate"), "a", 0), 1);
	sign_opened_fini(&o);
	sign_opened_fini(&o);
	refuses_by(p, text, strlen(text), PUBLIC_2, "signature: ", ERR_REFUSED);
	refuses_by(p, text, strlen(text), "", "signature: ", ERR_REFUSED);
	refuses_by(p, text, strlen(text), "00", "signature: ", ERR_REFUSED);
	free(text);
}

/* DSSE v1: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body, lengths in decimal. */
static void
parts_of(const char *text, char *message, size_t size, size_t *n, unsigned char **sig)
{
	cJSON *o = NULL;
	struct err e = {0};
	unsigned char *body;
	size_t body_len, sig_len;
	int head;

	assert_int_equal(json_parse(text, strlen(text), 1u << 20, &o, &e), 0);
	assert_string_equal(json_str(o, "payloadType"), "application/vnd.in-toto+json");
	assert_int_equal(sign_unbase64(json_str(o, "payload"), &body, &body_len, &e), 0);
	assert_int_equal(sign_unbase64(json_str(cJSON_GetArrayItem(json_get(o, "signatures"), 0),
		"sig"), sig, &sig_len, &e), 0);
	assert_int_equal(sig_len, 64);
	head = snprintf(message, size, "DSSEv1 28 application/vnd.in-toto+json %zu ", body_len);
	assert_true((size_t)head + body_len < size);
	memcpy(message + head, body, body_len);
	*n = (size_t)head + body_len;
	free(body);
	cJSON_Delete(o);
}

static void
bytes_save(struct place *p, const char *name, const void *bytes, size_t n, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", p->dir, name);
	assert_int_equal(plat_write_file(path, bytes, n, 0600, &p->e), 0);
}

/* Another program, another reading of the standard. */
static void
openssl_verifies_the_envelope_by_hand(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD), *out = NULL, *errs = NULL;
	char tool[4096], message[4096], msg_path[300], sig_path[300], key_path[300];
	const char *argv[] = {tool, "pkeyutl", "-verify", "-pubin", "-inkey", key_path, "-keyform",
		"DER", "-rawin", "-in", msg_path, "-sigfile", sig_path, NULL};
	unsigned char *sig;
	uint8_t der[44];
	struct proc_result r;
	size_t n;

	parts_of(text, message, sizeof message, &n, &sig);
	assert_int_equal(str_unhex(der, 12, "302a300506032b6570032100"), 0);
	assert_int_equal(str_unhex(der + 12, 32, PUBLIC_1), 0);
	bytes_save(p, "m", message, n, msg_path, sizeof msg_path);
	bytes_save(p, "s", sig, 64, sig_path, sizeof sig_path);
	bytes_save(p, "k", der, sizeof der, key_path, sizeof key_path);
	free(sig);
	free(text);
	if (plat_find_tool("openssl", tool, sizeof tool, &p->e))
		skip();
	assert_int_equal(proc_capture(argv, NULL, 30000, 1000, &out, &errs, &r, &p->e), 0);
	if (r.exit != 0)
		fail_msg("%s%s", out, errs);
	assert_non_null(strstr(out, "Signature Verified Successfully"));
	free(out);
	free(errs);
	/* and it is no rubber stamp */
	message[n - 1] ^= 1;
	bytes_save(p, "m", message, n, msg_path, sizeof msg_path);
	assert_int_equal(proc_capture(argv, NULL, 30000, 1000, NULL, NULL, &r, &p->e), 0);
	assert_int_not_equal(r.exit, 0);
}

/* Ed25519 is deterministic: the same bytes have the same signature, made here by hand. */
static void
signature_is_the_one_made_by_hand(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD), message[4096];
	unsigned char *sig, own[64];
	uint8_t secret[32];
	size_t n, own_len = sizeof own;
	EVP_PKEY *pkey;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	parts_of(text, message, sizeof message, &n, &sig);
	assert_int_equal(str_unhex(secret, 32, SECRET_1), 0);
	pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, 32);
	assert_int_equal(EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey), 1);
	assert_int_equal(EVP_DigestSign(ctx, own, &own_len, (unsigned char *)message, n), 1);
	assert_memory_equal(own, sig, 64);
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(pkey);
	free(sig);
	free(text);
}

/* ---- damage ---- */

static char *
replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *out;

	assert_non_null(at);
	out = malloc(strlen(text) + strlen(to) + 1);
	assert_non_null(out);
	memcpy(out, text, (size_t)(at - text));
	memcpy(out + (at - text), to, strlen(to) + 1);
	memcpy(out + (at - text) + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
	return out;
}

static void
refuses_replaced(struct place *p, const char *text, const char *from, const char *to,
	const char *layer, enum err_code code)
{
	char *bad = replaced(text, from, to);

	refuses(p, bad, layer, code);
	free(bad);
}

static void
no_flipped_bit_goes_unseen(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD);
	struct sign_opened o;
	size_t i, n = strlen(text), opened = 0;

	for (i = 0; i < n * 8; i++) {
		text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
		memset(&o, 0, sizeof o);
		if (sign_open(text, n, PUBLIC_1, &o, NULL) == 0) {
			/* only blanks between members may change into blanks */
			assert_true(strchr(" \t\r\n", text[i / 8]) != NULL);
			opened++;
			sign_opened_fini(&o);
		}
		text[i / 8] = (char)(text[i / 8] ^ 1 << i % 8);
	}
	assert_true(opened < 40);
	opens(p, text);
	free(text);
}

static void
cut_envelope_is_refused_at_every_length(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD);
	size_t n, whole = strlen(text);

	while (text[whole - 1] == '\n')
		whole--;
	for (n = 0; n < whole; n++)
		refuses_by(p, text, n, PUBLIC_1, "envelope: ", ERR_PARSE);
	free(text);
}

static void
changed_members_are_refused_by_layer(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD), *body = sign_base64(GOOD, strlen(GOOD));
	const struct {
		const char *from, *to, *layer;
		enum err_code code;
	} rows[] = {
		{"application/vnd.in-toto+json", "application/json", "envelope: ", ERR_PARSE},
		{"application/vnd.in-toto+json", "", "envelope: ", ERR_PARSE},
		{"\"payloadType\"", "\"payloadtype\"", "envelope: ", ERR_PARSE},
		{"\"payloadType\"", "\"extra\":1,\"payloadType\"", "envelope: ", ERR_PARSE},
		{"\"payloadType\"", "\"payload\":\"e30=\",\"payloadType\"", "envelope: ", ERR_PARSE},
		{"\"keyid\"", "\"cert\":\"x\",\"keyid\"", "envelope: ", ERR_PARSE},
		{"\"sig\"", "\"sigx\"", "envelope: ", ERR_PARSE},
		{"\"signatures\"", "\"signature\"", "envelope: ", ERR_PARSE},
		{body, "", "signature: ", ERR_REFUSED},
		{body, "e30=", "signature: ", ERR_REFUSED},
		{body, "e30", "envelope: ", ERR_PARSE},
		{body, "!!!!", "envelope: ", ERR_PARSE},
	};
	size_t i;

	for (i = 0; i < str_count(rows); i++)
		refuses_replaced(p, text, rows[i].from, rows[i].to, rows[i].layer, rows[i].code);
	free(body);
	free(text);
}

static void
signatures_must_be_one_object(void **state)
{
	static const char *const lists[] = {"[]", "{}", "null", "\"x\"", "[null]", "[1]", "[[]]",
		"[[\"sig\"]]", "[[[]],{}]", "[{}]", "[{\"sig\":\"AAAA\"}]", "[{\"keyid\":\"x\",\"sig\":\"AAAA\"}]",
		"[{\"keyid\":1,\"sig\":\"AAAA\"}]"};
	struct place *p = *state;
	char text[512];
	size_t i;

	for (i = 0; i < str_count(lists); i++) {
		snprintf(text, sizeof text, "{\"payloadType\":\"application/vnd.in-toto+json\","
			"\"payload\":\"e30=\",\"signatures\":%s}", lists[i]);
		refuses(p, text, "envelope: ", ERR_PARSE);
	}
	refuses(p, "[]", "envelope: ", ERR_PARSE);
	refuses(p, "[\"payload\"]", "envelope: ", ERR_PARSE);
	refuses(p, "7", "envelope: ", ERR_PARSE);
	refuses(p, "", "envelope: ", ERR_PARSE);
}

static void
second_signature_is_refused_even_when_both_are_right(void **state)
{
	struct place *p = *state;
	cJSON *o = NULL, *list;
	char *text = envelope_of(p, GOOD), *two;

	assert_int_equal(json_parse(text, strlen(text), 1u << 20, &o, &p->e), 0);
	list = cJSON_GetObjectItemCaseSensitive(o, "signatures");
	cJSON_AddItemToArray(list, cJSON_Duplicate(cJSON_GetArrayItem(list, 0), true));
	two = json_text(o, false);
	refuses(p, two, "envelope: ", ERR_PARSE);
	free(two);
	cJSON_Delete(o);
	free(text);
}

/* keyid is not covered by the signature; it may not name somebody else. */
static void
key_id_of_another_key_is_refused(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD), other[DIGEST_HEX];

	assert_int_equal(sign_id_of(PUBLIC_2, other, &p->e), 0);
	refuses_replaced(p, text, sign_key_id(p->key), other, "signature: ", ERR_REFUSED);
	free(text);
}

static void
signature_of_another_length_is_refused(void **state)
{
	struct place *p = *state;
	char *text = envelope_of(p, GOOD), *sig, *b64;
	unsigned char bytes[96] = {0};
	cJSON *o = NULL;
	size_t n;

	assert_int_equal(json_parse(text, strlen(text), 1u << 20, &o, &p->e), 0);
	sig = strdup(json_str(cJSON_GetArrayItem(json_get(o, "signatures"), 0), "sig"));
	cJSON_Delete(o);
	for (n = 0; n < sizeof bytes; n += 16) {
		b64 = sign_base64(bytes, n);
		refuses_replaced(p, text, sig, b64, "signature: ", ERR_REFUSED);
		free(b64);
	}
	free(sig);
	free(text);
}

/* Signed well, and still not what we take. */
static void
statement_of_another_kind_is_refused_by_layer(void **state)
{
	static const struct {
		const char *payload, *layer;
	} rows[] = {
		{STATEMENT("https://in-toto.io/Statement/v0.1", "urn:verify:verify-run/v1", REST), "statement: "},
		{STATEMENT("", "urn:verify:verify-run/v1", REST), "statement: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v2", REST), "predicate: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "https://in-toto.io/attestation/test-result/v0.1", REST), "predicate: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v1", ",\"subject\":[]"), "statement: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v1", ",\"predicate\":{}"), "statement: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v1", ",\"subject\":{},\"predicate\":{}"), "statement: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v1", ",\"subject\":[],\"predicate\":[]"), "statement: "},
		{STATEMENT("https://in-toto.io/Statement/v1", "urn:verify:verify-run/v1", ",\"subject\":[],\"predicate\":{},\"predicate\":{\"x\":1}"), "statement: "},
		{"{\"_type\":1,\"predicateType\":\"urn:verify:verify-run/v1\"" REST "}", "statement: "},
		{"{\"_type\":\"https://in-toto.io/Statement/v1\"" REST "}", "statement: "},
		{"{}", "statement: "}, {"[]", "statement: "}, {"null", "statement: "}, {"", "statement: "},
		{"not json", "statement: "}, {"{\"a\":NaN}", "statement: "}, {GOOD "x", "statement: "},
		{"\xef\xbb\xbf" GOOD, "statement: "},
	};
	struct place *p = *state;
	char *text;
	size_t i;

	for (i = 0; i < str_count(rows); i++) {
		text = envelope_of(p, rows[i].payload);
		refuses(p, text, rows[i].layer, ERR_PARSE);
		free(text);
	}
}

static void
envelope_too_large_to_be_opened_is_not_made(void **state)
{
	struct place *p = *state;
	size_t n = SIGN_MAX_ENVELOPE / 4 * 3 + 100;
	char *big = malloc(n), *text = NULL;

	assert_non_null(big);
	memset(big, 'x', n);
	assert_int_equal(sign_envelope(p->key, big, n, &text, &p->e), -1);
	assert_int_equal(p->e.code, ERR_LIMIT);
	assert_null(text);
	free(big);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)
		IN_PLACE(public_key_is_that_of_the_standard),
		IN_PLACE(fingerprint_is_unpadded_base64_of_the_digest),
		IN_PLACE(new_key_is_made_once_and_for_us_only),
		IN_PLACE(key_that_others_may_read_is_refused),
		IN_PLACE(key_file_that_is_none_is_refused),
		IN_PLACE(encrypted_key_is_refused_without_a_question),
		IN_PLACE(key_of_another_kind_is_refused),
		cmocka_unit_test(base64_is_that_of_the_standard),
		cmocka_unit_test(text_that_is_not_base64_is_refused),
		cmocka_unit_test(random_bytes_survive_base64),
		IN_PLACE(own_envelope_opens_with_its_key_only),
		IN_PLACE(openssl_verifies_the_envelope_by_hand),
		IN_PLACE(signature_is_the_one_made_by_hand),
		IN_PLACE(no_flipped_bit_goes_unseen),
		IN_PLACE(cut_envelope_is_refused_at_every_length),
		IN_PLACE(changed_members_are_refused_by_layer),
		IN_PLACE(signatures_must_be_one_object),
		IN_PLACE(second_signature_is_refused_even_when_both_are_right),
		IN_PLACE(key_id_of_another_key_is_refused),
		IN_PLACE(signature_of_another_length_is_refused),
		IN_PLACE(statement_of_another_kind_is_refused_by_layer),
		IN_PLACE(envelope_too_large_to_be_opened_is_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
