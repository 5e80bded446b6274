#include "common/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/plat.h"
#include "common/str.h"

/*
 * The scanner: a bounded recursive descent that builds nothing but the list of keys of
 * each open object.  cJSON would take duplicate keys, 1e999 and text after the value.
 */
struct key {
	const char *text; /* between the quotes, as written */
	size_t len;
};

struct scan {
	const char *start, *p, *end;
	int depth;
	struct key *keys; /* stack over all open objects */
	size_t count, cap;
	struct err *e;
};

static int value(struct scan *s);

static int
bad(struct scan *s, enum err_code code, const char *what)
{
	const char *q, *line = s->start;
	size_t row = 1;

	for (q = s->start; q < s->p && q < s->end; q++)
		if (*q == '\n')
			row++, line = q + 1;
	return err_set(s->e, code, "JSON: %s at line %zu, column %zu", what, row,
		(size_t)(s->p - line) + 1);
}

static void
space(struct scan *s)
{
	while (s->p < s->end &&
	       (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static int
hex4(struct scan *s, unsigned *out)
{
	unsigned v = 0;
	int i, c;

	if (s->end - s->p < 4)
		return bad(s, ERR_PARSE, "short \\u escape");
	for (i = 0; i < 4; i++) {
		c = *s->p;
		if (c >= '0' && c <= '9')
			c -= '0';
		else if (c >= 'a' && c <= 'f')
			c -= 'a' - 10;
		else if (c >= 'A' && c <= 'F')
			c -= 'A' - 10;
		else
			return bad(s, ERR_PARSE, "bad \\u escape");
		v = v << 4 | (unsigned)c;
		s->p++;
	}
	*out = v;
	return 0;
}

static int
escape(struct scan *s)
{
	unsigned u, low;

	if (++s->p >= s->end)
		return bad(s, ERR_PARSE, "text ends in a string");
	if (strchr("\"\\/bfnrt", *s->p) != NULL && *s->p != '\0') {
		s->p++;
		return 0;
	}
	if (*s->p != 'u')
		return bad(s, ERR_PARSE, "unknown escape");
	s->p++;
	if (hex4(s, &u))
		return -1;
	if (u == 0)
		return bad(s, ERR_PARSE, "NUL character in a string");
	if (u >= 0xdc00 && u <= 0xdfff)
		return bad(s, ERR_PARSE, "lone surrogate");
	if (u >= 0xd800 && u <= 0xdbff) {
		if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
			return bad(s, ERR_PARSE, "lone surrogate");
		s->p += 2;
		if (hex4(s, &low))
			return -1;
		if (low < 0xdc00 || low > 0xdfff)
			return bad(s, ERR_PARSE, "lone surrogate");
	}
	return 0;
}

/* At the opening quote. */
static int
string(struct scan *s, struct key *k)
{
	const char *from = ++s->p;

	while (s->p < s->end && *s->p != '"') {
		if ((unsigned char)*s->p < 0x20)
			return bad(s, ERR_PARSE, "control character in a string");
		if (*s->p == '\\') {
			if (escape(s))
				return -1;
		} else {
			s->p++;
		}
	}
	if (s->p >= s->end)
		return bad(s, ERR_PARSE, "text ends in a string");
	if (k != NULL)
		k->text = from, k->len = (size_t)(s->p - from);
	s->p++;
	return 0;
}

static size_t
digits(struct scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return (size_t)(s->p - from);
}

/* cJSON writes 15 digits, which round the largest doubles up to infinity: what could not
 * be read again is no number either. */
static bool
is_number(double v)
{
	return isfinite(v) && fabs(v) <= 1e308;
}

static int
number(struct scan *s)
{
	const char *from = s->p;
	char copy[64];
	size_t n;

	if (*s->p == '-')
		s->p++;
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (digits(s) == 0)
		return bad(s, ERR_PARSE, "not a value");
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (digits(s) == 0)
			return bad(s, ERR_PARSE, "digit missing after the point");
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (digits(s) == 0)
			return bad(s, ERR_PARSE, "digit missing in the exponent");
	}
	n = (size_t)(s->p - from);
	if (n >= sizeof copy)
		return bad(s, ERR_LIMIT, "number longer than 63 characters");
	memcpy(copy, from, n);
	copy[n] = '\0';
	if (!is_number(strtod(copy, NULL)))
		return bad(s, ERR_PARSE, "number is not finite");
	return 0;
}

static int
word(struct scan *s)
{
	static const char *const words[] = {"true", "false", "null"};
	size_t i, n;

	for (i = 0; i < str_count(words); i++) {
		n = strlen(words[i]);
		if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i], n) == 0) {
			s->p += n;
			return 0;
		}
	}
	return bad(s, ERR_PARSE, "not a value");
}

/* Two spellings of one key ("a" and "\u0061") are caught after parsing, in tree(). */
static int
key_push(struct scan *s, size_t base, const struct key *k)
{
	struct key *grown;
	size_t i;
	char what[96];

	for (i = base; i < s->count; i++)
		if (s->keys[i].len == k->len &&
		    memcmp(s->keys[i].text, k->text, k->len) == 0) {
			snprintf(what, sizeof what, "duplicate key \"%.*s\"",
				k->len < 48 ? (int)k->len : 48, k->text);
			return bad(s, ERR_PARSE, what);
		}
	if (s->count == s->cap) {
		grown = realloc(s->keys, (s->cap + 64) * 2 * sizeof *grown);
		if (grown == NULL)
			return err_set(s->e, ERR_NOMEM, "no memory for JSON keys");
		s->keys = grown;
		s->cap = (s->cap + 64) * 2;
	}
	s->keys[s->count++] = *k;
	return 0;
}

static int
object(struct scan *s)
{
	size_t base = s->count;
	struct key k = {NULL, 0};

	s->p++;
	space(s);
	if (s->p < s->end && *s->p == '}') {
		s->p++;
		return 0;
	}
	for (;;) {
		space(s);
		if (s->p >= s->end || *s->p != '"')
			return bad(s, ERR_PARSE, "key expected");
		/* quadratic in the keys of one object, so they have a maximum */
		if (s->count - base >= 1024)
			return bad(s, ERR_LIMIT, "more than 1024 keys in an object");
		if (string(s, &k) || key_push(s, base, &k))
			return -1;
		space(s);
		if (s->p >= s->end || *s->p != ':')
			return bad(s, ERR_PARSE, "':' expected");
		s->p++;
		if (value(s))
			return -1;
		space(s);
		if (s->p < s->end && *s->p == ',') {
			s->p++;
			continue;
		}
		if (s->p >= s->end || *s->p != '}')
			return bad(s, ERR_PARSE, "',' or '}' expected");
		s->p++;
		s->count = base;
		return 0;
	}
}

static int
array(struct scan *s)
{
	s->p++;
	space(s);
	if (s->p < s->end && *s->p == ']') {
		s->p++;
		return 0;
	}
	for (;;) {
		if (value(s))
			return -1;
		space(s);
		if (s->p < s->end && *s->p == ',') {
			s->p++;
			continue;
		}
		if (s->p >= s->end || *s->p != ']')
			return bad(s, ERR_PARSE, "',' or ']' expected");
		s->p++;
		return 0;
	}
}

static int
value(struct scan *s)
{
	int rc;

	space(s);
	if (s->p >= s->end)
		return bad(s, ERR_PARSE, "text ends where a value is expected");
	if (++s->depth > JSON_MAX_DEPTH)
		return bad(s, ERR_LIMIT, "nested too deep");
	switch (*s->p) {
	case '{':
		rc = object(s);
		break;
	case '[':
		rc = array(s);
		break;
	case '"':
		rc = string(s, NULL);
		break;
	case 't':
	case 'f':
	case 'n':
		rc = word(s);
		break;
	default:
		rc = number(s);
	}
	s->depth--;
	return rc;
}

int
json_check(const char *text, size_t len, size_t max_bytes, struct err *e)
{
	struct scan s = {.start = text, .p = text, .end = text + len, .e = e};
	int rc;

	if (len > max_bytes)
		return err_set(e, ERR_LIMIT, "JSON: %zu bytes, more than %zu", len, max_bytes);
	if (len >= 2 && (((unsigned char)text[0] == 0xff && (unsigned char)text[1] == 0xfe) ||
			((unsigned char)text[0] == 0xfe && (unsigned char)text[1] == 0xff) ||
			text[0] == '\0' || text[1] == '\0'))
		return err_set(e, ERR_PARSE, "JSON: UTF-16 or UTF-32; UTF-8 is wanted");
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return err_set(e, ERR_PARSE, "JSON: begins with a byte order mark");
	if (!str_is_utf8(text, len))
		return err_set(e, ERR_PARSE, "JSON: not UTF-8");
	rc = value(&s);
	if (rc == 0) {
		space(&s);
		if (s.p != s.end)
			rc = bad(&s, ERR_PARSE, "text after the value");
	}
	free(s.keys);
	return rc;
}

/* Escaped spellings of one key are equal only once they are decoded. */
static int
duplicate(const cJSON *o, struct err *e)
{
	const cJSON *a, *b;

	cJSON_ArrayForEach(a, o) {
		if (cJSON_IsObject(o))
			for (b = a->next; b != NULL; b = b->next)
				if (strcmp(a->string, b->string) == 0)
					return err_set(e, ERR_PARSE,
						"JSON: duplicate key \"%.48s\"", a->string);
		if (a->child != NULL && duplicate(a, e))
			return -1;
	}
	return 0;
}

int
json_parse(const char *text, size_t len, size_t max_bytes, cJSON **out, struct err *e)
{
	cJSON *o;

	if (json_check(text, len, max_bytes, e))
		return -1;
	if ((o = cJSON_ParseWithLength(text, len)) == NULL)
		return err_set(e, ERR_NOMEM, "JSON: no memory, or a limit of the parser");
	if (memchr(text, '\\', len) != NULL && duplicate(o, e)) {
		cJSON_Delete(o);
		return -1;
	}
	*out = o;
	return 0;
}

int
json_load(const char *path, size_t max_bytes, cJSON **out, struct err *e)
{
	char *text = NULL;
	size_t len;
	int rc;

	if (plat_read_file(path, max_bytes, &text, &len, e))
		return -1;
	if ((rc = json_parse(text, len, max_bytes, out, e)))
		err_wrap(e, "%s", path);
	free(text);
	return rc;
}

const char *
json_object_in(const char *text, size_t len, size_t *n)
{
	const char *p = text, *end = text + len;

	while (p < end && *p != '{') {
		p = memchr(p, '\n', (size_t)(end - p));
		if (p == NULL)
			return NULL;
		p++;
	}
	while (end > p && end[-1] != '}')
		end--;
	*n = (size_t)(end - p);
	return p < end ? p : NULL;
}

const cJSON *
json_get(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

const char *
json_str(const cJSON *o, const char *key)
{
	return cJSON_GetStringValue((cJSON *)json_get(o, key));
}

bool
json_bool(const cJSON *o, const char *key, bool fallback)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsBool(v) ? cJSON_IsTrue(v) : fallback;
}

double
json_num(const cJSON *o, const char *key, double fallback)
{
	const cJSON *v = json_get(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : fallback;
}

int64_t
json_int(const cJSON *o, const char *key, int64_t fallback)
{
	const cJSON *v = json_get(o, key);

	if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) ||
	    fabs(v->valuedouble) > JSON_MAX_INT)
		return fallback;
	return (int64_t)v->valuedouble;
}

const cJSON *
json_path(const cJSON *o, const char *path)
{
	char key[64];
	size_t n;

	while (o != NULL && *path != '\0') {
		n = strcspn(path, ".");
		if (n >= sizeof key)
			return NULL;
		memcpy(key, path, n);
		key[n] = '\0';
		o = json_get(o, key);
		path += n + (path[n] == '.');
	}
	return o;
}

const char *
json_path_str(const cJSON *o, const char *path)
{
	return cJSON_GetStringValue((cJSON *)json_path(o, path));
}

int
json_need_str(const cJSON *o, const char *key, const char **out, struct err *e)
{
	if ((*out = json_str(o, key)) == NULL)
		return err_set(e, ERR_PARSE, "\"%s\" must be a string and is %s", key,
			json_get(o, key) == NULL ? "missing" : "of another type");
	return 0;
}

int
json_need_int(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *out,
	struct err *e)
{
	const cJSON *v = json_get(o, key);

	if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble))
		return err_set(e, ERR_PARSE, "\"%s\" must be a whole number and is %s", key,
			v == NULL ? "missing" : "of another type");
	if (v->valuedouble < (double)min || v->valuedouble > (double)max ||
	    fabs(v->valuedouble) > JSON_MAX_INT)
		return err_set(e, ERR_PARSE, "\"%s\" is %.17g, outside %lld to %lld", key,
			v->valuedouble, (long long)min, (long long)max);
	*out = (int64_t)v->valuedouble;
	return 0;
}

int
json_known(const cJSON *o, const char *const *keys, struct err *e)
{
	const char *const *k;
	const cJSON *v;

	/* the entries of an array have no names */
	if (!cJSON_IsObject(o))
		return err_set(e, ERR_PARSE, "not an object");
	cJSON_ArrayForEach(v, o) {
		for (k = keys; *k != NULL && strcmp(*k, v->string) != 0; k++)
			;
		if (*k == NULL)
			return err_set(e, ERR_PARSE, "unknown field \"%.64s\"", v->string);
	}
	return 0;
}

bool
json_add(cJSON *o, const char *key, cJSON *item)
{
	if (item == NULL)
		return false;
	if (cJSON_AddItemToObject(o, key, item))
		return true;
	cJSON_Delete(item);
	return false;
}

bool
json_add_str(cJSON *o, const char *key, const char *s)
{
	return json_add(o, key, s == NULL ? cJSON_CreateNull() : cJSON_CreateString(s));
}

/* Length of the character at s, 0 when there is no whole one. */
static size_t
character(const char *s, size_t len)
{
	unsigned char c = (unsigned char)*s;
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	return c != '\0' && n <= len && str_is_utf8(s, n) ? n : 0;
}

bool
json_add_text(cJSON *o, const char *key, const char *s, size_t len)
{
	struct buf b;
	size_t i, n;
	bool ok = false;

	buf_init(&b, len * 3 + 1);
	if (buf_add(&b, "", 0, NULL))
		goto out;
	for (i = 0; i < len; i += n > 0 ? n : 1) {
		n = character(s + i, len - i);
		if (buf_add(&b, n > 0 ? s + i : "\xef\xbf\xbd", n > 0 ? n : 3, NULL))
			goto out;
	}
	ok = json_add_str(o, key, b.data);
out:
	buf_fini(&b);
	return ok;
}

bool
json_add_int(cJSON *o, const char *key, int64_t v)
{
	return json_add(o, key, cJSON_CreateNumber((double)v));
}

bool
json_add_num(cJSON *o, const char *key, double v)
{
	return json_add(o, key, is_number(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

bool
json_add_bool(cJSON *o, const char *key, bool v)
{
	return json_add(o, key, cJSON_CreateBool(v));
}

bool
json_add_null(cJSON *o, const char *key)
{
	return json_add(o, key, cJSON_CreateNull());
}

cJSON *
json_add_object(cJSON *o, const char *key)
{
	return cJSON_AddObjectToObject(o, key);
}

cJSON *
json_add_array(cJSON *o, const char *key)
{
	return cJSON_AddArrayToObject(o, key);
}

char *
json_text(const cJSON *o, bool pretty)
{
	char *text, *grown;
	size_t n;

	text = pretty ? cJSON_Print(o) : cJSON_PrintUnformatted(o);
	if (text == NULL || !pretty)
		return text;
	n = strlen(text);
	if ((grown = realloc(text, n + 2)) == NULL) {
		free(text);
		return NULL;
	}
	grown[n] = '\n';
	grown[n + 1] = '\0';
	return grown;
}
