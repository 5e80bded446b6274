#include "common/mask.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mask_impl.h"
#include "common/str.h"

int
mask_new(struct mask **out, struct err *e)
{
	if ((*out = calloc(1, sizeof **out)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for ids");
	return 0;
}

void
mask_free(struct mask *m)
{
	if (m == NULL)
		return;
	free(m->ids);
	free(m);
}

/* ---- the table ---- */

static struct mask_id *
id_find(const struct mask *m, enum mask_kind kind, const char *real)
{
	size_t i;

	for (i = 0; i < m->count; i++)
		if (m->ids[i].kind == kind && strcmp(m->ids[i].real, real) == 0)
			return &m->ids[i];
	return NULL;
}

static int
id_add(struct mask *m, enum mask_kind kind, const char *real, struct mask_id **out, struct err *e)
{
	struct mask_id *grown;
	size_t room;

	if ((*out = id_find(m, kind, real)) != NULL)
		return 0;
	if (m->count == MASK_MAX_IDS)
		return err_set(e, ERR_LIMIT, "more than %d ids", MASK_MAX_IDS);
	if (m->count == m->room) {
		room = m->room ? 2 * m->room : 32;
		if ((grown = realloc(m->ids, room * sizeof *grown)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for ids");
		m->ids = grown;
		m->room = room;
	}
	*out = &m->ids[m->count];
	memset(*out, 0, sizeof **out);
	(*out)->kind = kind;
	if (str_copy((*out)->real, sizeof (*out)->real, real, e))
		return -1;
	m->count++;
	return 0;
}

/* Letters become letters and digits digits, counting from the right. */
static void
word_make(const char *real, unsigned n, char *out)
{
	size_t i = strlen(real);
	unsigned base;
	char zero;

	out[i] = '\0';
	while (i-- > 0) {
		if (!isalnum((unsigned char)real[i])) {
			out[i] = real[i];
			continue;
		}
		base = isdigit((unsigned char)real[i]) ? 10 : 26;
		zero = base == 10 ? '0' : isupper((unsigned char)real[i]) ? 'A' : 'a';
		out[i] = (char)((unsigned char)zero + n % base);
		n /= base;
	}
}

/* The first digits differ, as in a real id: its beginning alone may name it.  0x12 is "2100". */
static void
uuid_make(unsigned n, char *out)
{
	snprintf(out, MASK_BYTES, "%x%x%x%x0000111122223333" "44444444%04x", n & 15, n >> 4 & 15, n >> 8 & 15,
		n >> 12 & 15, n & 0xffff);
}

/* 16 digits in hex whose number has as many digits in decimal as the real one's. */
static void
number_make(const char *real, unsigned n, char *out)
{
	uint64_t value = strtoull(real, NULL, 16), low = 1;

	while (value >= 10) {
		value /= 10;
		low *= 10;
	}
	snprintf(out, MASK_BYTES, "%016llx", (unsigned long long)(low + n));
}

/* Addresses that are set apart for texts. */
static void
ipv4_make(unsigned n, char *out)
{
	static const char *const nets[] = {"198.51.100", "203.0.113", "192.0.2"};

	snprintf(out, MASK_BYTES, "%s.%u", nets[n / 250 % 3], n % 250 + 1);
}

static void
candidate(enum mask_kind kind, const char *real, unsigned n, char *out)
{
	if (kind == MASK_UUID)
		uuid_make(n, out);
	else if (kind == MASK_NUMBER)
		number_make(real, n, out);
	else if (kind == MASK_IPV4)
		ipv4_make(n, out);
	else if (kind == MASK_IPV6)
		snprintf(out, MASK_BYTES, "2001:db8::%x", n);
	else if (kind == MASK_MAC)
		snprintf(out, MASK_BYTES, "02:00:00:%02x:%02x:%02x", n >> 16 & 255, n >> 8 & 255, n & 255);
	else
		word_make(real, n, out);
}

static bool
is_taken(const struct mask *m, const char *made)
{
	size_t i;

	for (i = 0; i < m->count; i++)
		if (strcasecmp(m->ids[i].real, made) == 0 || strcmp(m->ids[i].made, made) == 0)
			return true;
	return false;
}

static int
id_make(struct mask *m, struct mask_id *id, struct err *e)
{
	char made[MASK_BYTES];
	unsigned tries;

	if (id->made[0] != '\0')
		return 0;
	for (tries = 0; tries < 65536; tries++) {
		candidate(id->kind, id->real, ++m->made[id->kind], made);
		if (is_taken(m, made))
			continue;
		memcpy(id->made, made, sizeof made);
		m->replaced++;
		return 0;
	}
	return err_set(e, ERR_LIMIT, "no more made-up ids in the form of \"%.2s...\"", id->real);
}

/* ---- learning ---- */

/* One that identifies nobody, or a word of the tools themselves. */
static bool
is_common(const char *name)
{
	static const char *const names[] = {"localhost", "localdomain", "root", "admin", "user", "host",
		"test", "gpu", "cuda", "nvidia", "amd", "intel", "mesa", "vulkan", "rocm", "device", "linux",
		"windows", "ubuntu", "debian", "fedora", "centos", "rocky", "arch", "alpine", "nixos", "wsl",
		"docker", "container", "nobody", "render", "video", "usr", "shared", "public", "offline", "state"};
	size_t i;

	for (i = 0; i < str_count(names); i++)
		if (strcasecmp(names[i], name) == 0)
			return true;
	return strlen(name) < 3;
}

int
mask_name(struct mask *m, const char *name, struct err *e)
{
	struct mask_id *id;
	const char *dot = strchr(name, '.');
	char head[MASK_BYTES];

	if (is_common(name) || strlen(name) >= MASK_BYTES)
		return 0;
	/* a host's first name is not rarely said alone, and stays a part of the long one */
	if (dot != NULL) {
		snprintf(head, sizeof head, "%.*s", (int)(dot - name), name);
		if (!is_common(head) && id_add(m, MASK_WORD, head, &id, e))
			return -1;
		name = dot + 1;
		if (strchr(name, '.') == NULL)
			return 0; /* a domain of one word: "local" */
	}
	return id_add(m, MASK_WORD, name, &id, e);
}

int
mask_address(struct mask *m, const char *address, struct err *e)
{
	struct mask_id *id;
	struct mask_match f;
	size_t n = strcspn(address, "%/"), pos = 0;

	if (!mask_next(m, address, n, &pos, &f) || f.at != 0 || f.n != n)
		return 0;
	return id_add(m, f.kind, f.real, &id, e);
}

int
mask_learn(struct mask *m, const char *text, size_t len, struct err *e)
{
	struct mask_id *id;
	struct mask_match f;
	size_t pos = 0;

	while (mask_next(m, text, len, &pos, &f))
		if (f.kind != MASK_CUT && id_add(m, f.kind, f.real, &id, e))
			return -1;
	pos = 0;
	while (mask_next_said(text, len, &pos, f.real))
		if (!is_common(f.real) && id_add(m, MASK_WORD, f.real, &id, e))
			return -1;
	return 0;
}

/* ---- replacing ---- */

/* The digits of `made` in the form of the n bytes at p: hyphens and capitals where they were. */
static int
hex_form(struct buf *b, const char *p, size_t n, const char *made, struct err *e)
{
	bool upper = false, lower = false;
	size_t i;
	char c;

	for (i = 0; i < n; i++) {
		upper |= isupper((unsigned char)p[i]) != 0;
		lower |= islower((unsigned char)p[i]) != 0;
	}
	for (i = 0; i < n; i++) {
		c = isxdigit((unsigned char)p[i]) && *made != '\0' ? *made++ : p[i];
		if (upper && !lower)
			c = (char)toupper((unsigned char)c);
		if (buf_add(b, &c, 1, e))
			return -1;
	}
	return 0;
}

static int
match_write(struct mask *m, const struct mask_match *f, const char *text, struct buf *b, struct err *e)
{
	struct mask_id *id;

	if (id_add(m, f->kind == MASK_CUT ? MASK_UUID : f->kind, f->real, &id, e) || id_make(m, id, e))
		return -1;
	if (f->decimal)
		return buf_addf(b, e, "%llu", (unsigned long long)strtoull(id->made, NULL, 16));
	if (f->kind == MASK_UUID || f->kind == MASK_NUMBER || f->kind == MASK_CUT)
		return hex_form(b, text + f->at, f->n, id->made, e);
	return buf_add(b, id->made, strlen(id->made), e);
}

int
mask_apply(struct mask *m, const char *text, size_t len, char **out, size_t *out_len, struct err *e)
{
	struct mask_match f;
	struct buf b;
	size_t pos = 0, from = 0;

	buf_init(&b, 2 * len + 4096);
	while (mask_next(m, text, len, &pos, &f)) {
		if (buf_add(&b, text + from, f.at - from, e) || match_write(m, &f, text, &b, e))
			goto fail;
		from = f.at + f.n;
	}
	if (buf_add(&b, text + from, len - from, e))
		goto fail;
	*out_len = b.len;
	*out = buf_take(&b);
	return 0;
fail:
	buf_fini(&b);
	return -1;
}

size_t
mask_count(const struct mask *m)
{
	return m->replaced;
}

/* Without regard to where it stands: the digits of a real id, hyphens left away. */
static bool
digits_stand(const char *text, size_t len, const char *real)
{
	size_t i, k, n = strlen(real);

	for (i = 0; i < len; i++) {
		size_t at = i;

		for (k = 0; k < n && at < len; at++) {
			if (text[at] == '-' && k > 0)
				continue;
			if (tolower((unsigned char)text[at]) != real[k])
				break;
			k++;
		}
		if (k == n)
			return true;
	}
	return false;
}

bool
mask_left(const struct mask *m, const char *text, size_t len)
{
	struct mask_match f;
	const struct mask_id *id;
	size_t i, pos = 0;
	char decimal[32];

	for (i = 0; i < m->count; i++) {
		id = &m->ids[i];
		if (id->kind != MASK_UUID && id->kind != MASK_NUMBER)
			continue;
		snprintf(decimal, sizeof decimal, "%llu", id->kind == MASK_NUMBER
			? (unsigned long long)strtoull(id->real, NULL, 16) : 0ull);
		if (digits_stand(text, len, id->real) ||
		    (id->kind == MASK_NUMBER && strlen(decimal) > 8 && digits_stand(text, len, decimal)))
			return true;
	}
	while (mask_next(m, text, len, &pos, &f))
		if (f.kind != MASK_CUT && id_find(m, f.kind, f.real) != NULL)
			return true;
	return false;
}
