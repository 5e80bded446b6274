#include "controller/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <ini.h>

#include "common/opt.h"
#include "common/plat.h"
#include "common/str.h"

#define LOCAL "local"

/* ---- the file ---- */

/* The settings of a section. */
static const struct {
	const char *key;
	size_t offset;
} settings[] = {
	{"url", offsetof(struct host, url)},
	{"lane", offsetof(struct host, lane)},
	{"suite", offsetof(struct host, suite)},
	{"model", offsetof(struct host, model)},
	{"source", offsetof(struct host, source)},
	{"source-ref", offsetof(struct host, source_ref)},
	{"tags", offsetof(struct host, tags)},
};

static char **
setting_of(struct host *h, size_t i)
{
	return (char **)(void *)((char *)h + settings[i].offset);
}

static bool
is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '.' || c == '_' || c == '-';
}

static bool
is_name(const char *s)
{
	size_t n;

	for (n = 0; s[n] != '\0'; n++)
		if (!is_name_byte(s[n]))
			return false;
	return n > 0 && n <= HOST_MAX_NAME && s[0] != '-' && s[0] != '.';
}

static struct host *
find(const struct inventory *inv, const char *name)
{
	size_t i;

	for (i = 0; i < inv->count; i++)
		if (str_eq(inv->hosts[i].name, name))
			return &inv->hosts[i];
	return NULL;
}

const struct host *
inventory_find(const struct inventory *inv, const char *name)
{
	return find(inv, name);
}

static int
add_host(struct inventory *inv, const char *name, struct host **out, struct err *e)
{
	struct host *grown;

	if (!is_name(name)) {
		err_set(e, ERR_PARSE, "\"%.60s\" is no name of a host", name);
		return err_hint(e, "letters, digits, '.', '_' and '-', at most %d",
			HOST_MAX_NAME);
	}
	if (inv->count == INVENTORY_MAX_HOSTS)
		return err_set(e, ERR_LIMIT, "more than %d hosts", INVENTORY_MAX_HOSTS);
	grown = realloc(inv->hosts, (inv->count + 1) * sizeof *grown);
	if (grown == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the inventory");
	inv->hosts = grown;
	*out = &inv->hosts[inv->count++];
	memset(*out, 0, sizeof **out);
	return str_copy((*out)->name, sizeof (*out)->name, name, e);
}

struct reading {
	struct inventory *inv;
	struct err *e;
};

static int
add_setting(struct reading *r, const char *section, const char *key, const char *value)
{
	const char *words[str_count(settings)], *near;
	struct host *h;
	char **slot;
	size_t i;

	if (section[0] == '\0')
		return err_set(r->e, ERR_PARSE, "\"%.40s\" stands before the first [host]",
			key);
	if ((h = find(r->inv, section)) == NULL && add_host(r->inv, section, &h, r->e))
		return -1;
	for (i = 0; i < str_count(settings) && !str_eq(settings[i].key, key); i++)
		words[i] = settings[i].key;
	if (i == str_count(settings)) {
		err_set(r->e, ERR_PARSE, "[%s]: no such setting: \"%.40s\"", section, key);
		if ((near = opt_nearest(key, words, str_count(words))) != NULL)
			return err_hint(r->e, "did you mean %s?", near);
		return err_hint(r->e, "url, lane, suite, model, source, source-ref, tags");
	}
	slot = setting_of(h, i);
	if (*slot != NULL) {
		err_set(r->e, ERR_PARSE, "[%s]: %s is given twice", section, key);
		return err_hint(r->e, "a line that begins with a blank continues the last");
	}
	if (*value == '\0')
		return err_set(r->e, ERR_PARSE, "[%s]: %s is empty", section, key);
	if ((*slot = strdup(value)) == NULL)
		return err_set(r->e, ERR_NOMEM, "no memory for the inventory");
	return 0;
}

/* The form that libinih wants: 0 stops it at this line. */
static int
on_setting(void *user, const char *section, const char *name, const char *value)
{
	struct reading *r = user;

	if (r->e->code != ERR_NONE)
		return 0;
	return add_setting(r, section, name, value ? value : "") == 0;
}

/* libinih cuts long lines and long section names without a word: refuse them first. */
static int
check_lines(const char *text, size_t len, struct err *e)
{
	const char *p = text, *end = text + len, *line_end, *close;
	int line = 1;

	if (!str_is_utf8(text, len) || memchr(text, '\0', len) != NULL) {
		err_set(e, ERR_PARSE, "not a text in UTF-8");
		return err_hint(e, "save the file as UTF-8");
	}
	for (; p < end; p = line_end + 1, line++) {
		if ((line_end = memchr(p, '\n', (size_t)(end - p))) == NULL)
			line_end = end;
		if (line_end - p > INVENTORY_MAX_LINE)
			return err_set(e, ERR_LIMIT, "line %d is longer than %d bytes", line,
				INVENTORY_MAX_LINE);
		p += strspn(p, " \t");
		if (p >= line_end || *p != '[')
			continue;
		close = memchr(p, ']', (size_t)(line_end - p));
		if (close != NULL && close - p - 1 > HOST_MAX_NAME)
			return err_set(e, ERR_PARSE, "line %d: a host's name has at most %d "
				"bytes", line, HOST_MAX_NAME);
	}
	return 0;
}

int
inventory_parse(const char *text, size_t len, struct inventory **out, struct err *e)
{
	struct inventory *inv = NULL;
	struct err inner = {0};
	struct reading r = {NULL, &inner};
	struct host *local;
	char *copy = NULL;
	int line, rc = -1;

	if (len > INVENTORY_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "more than %u bytes", INVENTORY_MAX_BYTES);
	if ((copy = malloc(len + 1)) == NULL ||
	    (inv = calloc(1, sizeof *inv)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the inventory");
		goto out;
	}
	memcpy(copy, text, len);
	copy[len] = '\0';
	r.inv = inv;
	if (check_lines(copy, len, e) || add_host(inv, LOCAL, &local, e))
		goto out;
	line = ini_parse_string(copy, on_setting, &r);
	if (line != 0 || inner.code != ERR_NONE) {
		if (inner.code == ERR_NONE) {
			err_set(&inner, ERR_PARSE, "neither [host] nor name = value");
			err_hint(&inner, "a host is a line [NAME], its settings follow");
		}
		*e = inner;
		err_wrap(e, "line %d", line);
		goto out;
	}
	*out = inv, inv = NULL;
	rc = 0;
out:
	inventory_free(inv);
	free(copy);
	return rc;
}

int
inventory_load(const char *path, struct inventory **out, struct err *e)
{
	char own[4096], *text = NULL;
	size_t len = 0;
	int rc = -1;

	if (path == NULL) {
		if (plat_xdg("CONFIG", "verify/hosts.conf", own, sizeof own, e))
			return -1;
		if (!plat_exists(own))
			return inventory_parse("", 0, out, e);
		path = own;
	}
	if (plat_read_file(path, INVENTORY_MAX_BYTES, &text, &len, e) == 0)
		rc = inventory_parse(text, len, out, e);
	free(text);
	return rc ? err_wrap(e, "%s", path) : 0;
}

void
inventory_free(struct inventory *inv)
{
	size_t i, k;

	if (inv == NULL)
		return;
	for (i = 0; i < inv->count; i++)
		for (k = 0; k < str_count(settings); k++)
			free(*setting_of(&inv->hosts[i], k));
	free(inv->hosts);
	free(inv);
}

int
inventory_need(const struct inventory *inv, const char *name, const struct host **out,
	struct err *e)
{
	const char **words, *near = NULL;
	size_t i;

	if ((*out = inventory_find(inv, name)) != NULL)
		return 0;
	err_set(e, ERR_USAGE, "no such host: \"%.60s\"", name);
	if ((words = calloc(inv->count, sizeof *words)) != NULL) {
		for (i = 0; i < inv->count; i++)
			words[i] = inv->hosts[i].name;
		near = opt_nearest(name, words, inv->count);
	}
	if (near != NULL)
		err_hint(e, "did you mean %s?", near);
	else
		err_hint(e, "\"hosts\" lists them; write it into hosts.conf as [%.40s]", name);
	free(words);
	return -1;
}

/* ---- the host grammar ---- */

/* An expression while it is read. */
struct expansion {
	struct host_names *out;
	const char *all;      /* the whole, for messages */
	char user[HOST_MAX_USER + 1];
	struct err *e;
};

static int
bad_hosts(const struct expansion *x, const char *at, const char *what)
{
	err_set(x->e, ERR_USAGE, "hosts \"%.80s\": %s at \"%.24s\"", x->all, what, at);
	return err_hint(x->e, "like node[01-04,06],gh200-lab-3");
}

static int
push_name(struct expansion *x, const char *name)
{
	struct host_name *grown;
	size_t i;

	if (!is_name(name))
		return bad_hosts(x, name, "no name of a host");
	for (i = 0; i < x->out->count; i++)
		if (str_eq(x->out->item[i].name, name) && str_eq(x->out->item[i].user, x->user))
			return 0;
	if (x->out->count == HOSTS_MAX)
		return err_set(x->e, ERR_LIMIT, "more than %d hosts", HOSTS_MAX);
	grown = realloc(x->out->item, (x->out->count + 1) * sizeof *grown);
	if (grown == NULL)
		return err_set(x->e, ERR_NOMEM, "no memory for the hosts");
	x->out->item = grown;
	if (str_copy(grown[x->out->count].name, sizeof grown->name, name, x->e) ||
	    str_copy(grown[x->out->count].user, sizeof grown->user, x->user, x->e))
		return -1;
	x->out->count++;
	return 0;
}

/* Digits at p into at most 9, so that the number stays small. */
static int
take_number(struct expansion *x, const char **p, unsigned *value, int *digits)
{
	*value = 0;
	for (*digits = 0; **p >= '0' && **p <= '9'; (*digits)++, (*p)++) {
		if (*digits == 9)
			return bad_hosts(x, *p, "a number is too long");
		*value = *value * 10 + (unsigned)(**p - '0');
	}
	return *digits > 0 ? 0 : bad_hosts(x, *p, "a number is missing");
}

static int expand(struct expansion *x, const char *head, const char *p, const char *end);

static int
expand_range(struct expansion *x, const char *head, const char **p, const char *rest,
	const char *end)
{
	char grown[HOST_MAX_NAME * 2];
	const char *at = *p;
	unsigned from, to;
	int width, digits;

	if (take_number(x, p, &from, &width))
		return -1;
	to = from;
	if (**p == '-') {
		(*p)++;
		if (take_number(x, p, &to, &digits))
			return -1;
	}
	if (to < from || to - from >= HOSTS_MAX)
		return bad_hosts(x, at, to < from ? "a range runs backwards" :
			"a range is too long");
	for (; from <= to; from++) {
		if (str_fmt(grown, sizeof grown, x->e, "%s%0*u", head, width, from) ||
		    strlen(grown) > HOST_MAX_NAME)
			return bad_hosts(x, at, "a name is too long");
		if (expand(x, grown, rest, end))
			return -1;
	}
	return 0;
}

/* p stands on '[': each number of it, followed by what stands behind ']'. */
static int
expand_brackets(struct expansion *x, const char *head, const char *p, const char *end)
{
	const char *close = memchr(p, ']', (size_t)(end - p)), *open = p;

	if (close == NULL)
		return bad_hosts(x, p, "a bracket is not closed");
	for (p++;; p++) {
		if (expand_range(x, head, &p, close + 1, end))
			return -1;
		if (p == close)
			return 0;
		if (*p != ',')
			return bad_hosts(x, open, "only numbers, ranges and commas");
	}
}

/* Names that begin with head and go on as [p, end) says. */
static int
expand(struct expansion *x, const char *head, const char *p, const char *end)
{
	char name[HOST_MAX_NAME + 1];
	size_t n = strlen(head);

	memcpy(name, head, n);
	for (; p < end; p++) {
		name[n] = '\0';
		if (*p == '[')
			return expand_brackets(x, name, p, end);
		if (!is_name_byte(*p))
			return bad_hosts(x, p, "a byte that no name has");
		if (n == HOST_MAX_NAME)
			return bad_hosts(x, p, "a name is too long");
		name[n++] = *p;
	}
	name[n] = '\0';
	return push_name(x, name);
}

/* [p, end) is one item between commas. */
static int
expand_item(struct expansion *x, const char *p, const char *end)
{
	const char *at = memchr(p, '@', (size_t)(end - p)), *u;
	size_t n;

	x->user[0] = '\0';
	if (at != NULL) {
		n = (size_t)(at - p);
		for (u = p; u < at; u++)
			if (!is_name_byte(*u))
				return bad_hosts(x, u, "no user's name");
		if (n == 0 || n > HOST_MAX_USER || *p == '-')
			return bad_hosts(x, p, "no user's name");
		memcpy(x->user, p, n);
		x->user[n] = '\0';
		p = at + 1;
	}
	if (p == end)
		return bad_hosts(x, p, "a name is missing");
	return expand(x, "", p, end);
}

int
host_names_add(struct host_names *h, const char *expression, struct err *e)
{
	struct expansion x = {.out = h, .all = expression, .e = e};
	const char *p = expression, *q;
	int depth;

	for (;; p = q + 1) {
		for (q = p, depth = 0; *q != '\0' && (*q != ',' || depth > 0); q++)
			depth += *q == '[' ? 1 : *q == ']' ? -1 : 0;
		if (expand_item(&x, p, q))
			return -1;
		if (*q == '\0')
			return 0;
	}
}

void
host_names_fini(struct host_names *h)
{
	free(h->item);
	h->item = NULL;
	h->count = 0;
}

static int
need_host(const struct inventory *inv, const struct host_name *n, const struct host **out,
	struct err *e)
{
	if (n->user[0] != '\0') {
		err_set(e, ERR_USAGE, "not supported yet: %s@%s needs ssh, which comes later",
			n->user, n->name);
		return err_hint(e, "a host is reached by http on loopback or a unix socket");
	}
	return inventory_need(inv, n->name, out, e);
}

int
inventory_resolve(const struct inventory *inv, char *const *words, int n,
	const struct host ***out, size_t *count, struct err *e)
{
	struct host_names names = {0};
	const struct host **list = NULL;
	size_t i;
	int k, rc = -1;

	for (k = 0; k < n; k++)
		if (host_names_add(&names, words[k], e))
			goto out;
	if ((list = calloc(names.count + 1, sizeof *list)) == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the hosts");
		goto out;
	}
	for (i = 0; i < names.count; i++)
		if (need_host(inv, &names.item[i], &list[i], e))
			goto out;
	*count = names.count;
	*out = list, list = NULL;
	rc = 0;
out:
	free(list);
	host_names_fini(&names);
	return rc;
}

/* ---- how a host is reached ---- */

static int
reach_socket(const char *path, struct reach *out, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, ERR_USAGE, "unix:%.80s: the path is not absolute", path);
	if (str_copy(out->socket, sizeof out->socket, path, e))
		return err_wrap(e, "path of a socket");
	/* libcurl wants a host even where the socket decides; it is only named. */
	if (str_copy(out->base, sizeof out->base, "http://localhost", e))
		return -1;
	return str_fmt(out->shown, sizeof out->shown, e, "unix:%s", path);
}

static bool
is_loopback(const char *host)
{
	return str_eq(host, "localhost") || str_eq(host, "[::1]") ||
		(str_starts(host, "127.") && strspn(host, "0123456789.") == strlen(host));
}

static int
reach_url(const char *url, struct reach *out, struct err *e)
{
	char *host = NULL, *path = NULL, *query = NULL;
	CURLU *u = curl_url();
	size_t n = strlen(url);
	int rc = -1;

	if (u == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a URL");
	if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK) {
		err_set(e, ERR_USAGE, "not a URL: \"%.80s\"", url);
		goto out;
	}
	if (!is_loopback(host)) {
		err_set(e, ERR_USAGE, "not supported yet: %.80s is not on this machine", url);
		err_hint(e, "http on loopback and unix:/PATH work; forward a port for others");
		goto out;
	}
	if (!str_eq(path, "/") ||
	    curl_url_get(u, CURLUPART_QUERY, &query, 0) == CURLUE_OK) {
		err_set(e, ERR_USAGE, "\"%.80s\" goes on behind the port", url);
		goto out;
	}
	while (n > 0 && url[n - 1] == '/')
		n--;
	out->socket[0] = '\0';
	if (str_fmt(out->base, sizeof out->base, e, "%.*s", (int)n, url) ||
	    str_copy(out->shown, sizeof out->shown, out->base, e))
		goto out;
	rc = 0;
out:
	curl_free(host);
	curl_free(path);
	curl_free(query);
	curl_url_cleanup(u);
	return rc;
}

int
host_reach(const struct host *h, struct reach *out, struct err *e)
{
	char path[4096];
	const char *url = h->url;
	int rc;

	memset(out, 0, sizeof *out);
	if (url == NULL && str_eq(h->name, LOCAL)) {
		rc = plat_xdg("STATE", "verify-agent/agent.sock", path, sizeof path, e) ||
			reach_socket(path, out, e);
	} else if (url == NULL) {
		err_set(e, ERR_USAGE, "its section has no url");
		rc = err_hint(e, "url = http://127.0.0.1:PORT or unix:/PATH in hosts.conf");
	} else if (str_starts(url, "unix:")) {
		rc = reach_socket(url + 5, out, e);
	} else if (str_starts(url, "http://")) {
		rc = reach_url(url, out, e);
	} else {
		err_set(e, ERR_USAGE, "not supported yet: \"%.*s\" (ssh and https come later)",
			(int)strcspn(url, ":"), url);
		rc = err_hint(e, "http://127.0.0.1:PORT and unix:/PATH work");
	}
	return rc ? err_wrap(e, "host %s", h->name) : 0;
}
