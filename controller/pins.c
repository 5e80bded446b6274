#include "controller/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/plat.h"
#include "common/str.h"

#define PATH_SIZE 4096
#define FIELDS 3

/* ---- one line ---- */

struct line {
	char host[HOST_MAX_NAME + 1];
	struct pin pin;
};

/* text is one line, cut at will.  1: a pin, 0: blank or comment, -1: neither. */
static int
line_parse(char *text, struct line *out)
{
	char *field[FIELDS];

	text[strcspn(text, "\r\n")] = '\0';
	if (text[strspn(text, " \t")] == '\0' || text[0] == '#')
		return 0;
	if (str_split(text, false, field, FIELDS) != FIELDS ||
	    !str_is_hex(field[1], SIGN_KEY_HEX - 1) || plat_utc_parse(field[2]) < 0)
		return -1;
	if (str_copy(out->host, sizeof out->host, field[0], NULL) ||
	    str_copy(out->pin.key, sizeof out->pin.key, field[1], NULL) ||
	    str_copy(out->pin.since, sizeof out->pin.since, field[2], NULL))
		return -1;
	return 1;
}

/* Finds the host in the text; at and len are its line when found.  1 found, 0 not. */
static int
find(const char *text, const char *host, struct line *out, size_t *at, size_t *len,
	struct err *e)
{
	const char *p = text;
	char copy[256];
	int n = 1, kind;
	size_t size;

	for (; *p != '\0'; p += size, n++) {
		size = strcspn(p, "\n");
		if (size >= sizeof copy)
			return err_set(e, ERR_PARSE, "line %d is too long for a pin", n);
		memcpy(copy, p, size);
		copy[size] = '\0';
		size += p[size] == '\n';
		if ((kind = line_parse(copy, out)) < 0) {
			err_set(e, ERR_PARSE, "line %d is no pin", n);
			return err_hint(e, "a pin is: HOST 64-HEX-DIGITS DATE");
		}
		if (kind == 1 && str_eq(out->host, host)) {
			*at = (size_t)(p - text), *len = size;
			return 1;
		}
	}
	return 0;
}

/* ---- the file ---- */

static int
path_of(const char *given, char *out, struct err *e)
{
	if (given != NULL)
		return str_copy(out, PATH_SIZE, given, e);
	return plat_xdg("DATA", "verify/pins", out, PATH_SIZE, e);
}

/* Gives the text; a missing file is an empty one. */
static int
load(const char *path, char **out, struct err *e)
{
	size_t len = 0;

	*out = NULL;
	if (!plat_exists(path)) {
		if ((*out = calloc(1, 1)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for the pins");
		return 0;
	}
	if (plat_read_file(path, PINS_MAX_BYTES, out, &len, e))
		return -1;
	if (strlen(*out) == len)
		return 0;
	free(*out);
	*out = NULL;
	return err_set(e, ERR_PARSE, "%s: not a text", path);
}

/* Holds other writers off until the descriptor is closed. */
static int
lock(const char *path, int *fd, struct err *e)
{
	char beside[PATH_SIZE], *slash;

	if (str_copy(beside, sizeof beside, path, e))
		return -1;
	if ((slash = strrchr(beside, '/')) != NULL && slash != beside) {
		*slash = '\0';
		if (plat_mkdirs(beside, 0700, e))
			return -1;
	}
	if (str_fmt(beside, sizeof beside, e, "%s.lock", path))
		return -1;
	if ((*fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
		return err_errno(e, errno, "%s", beside);
	while (flock(*fd, LOCK_EX) != 0)
		if (errno != EINTR)
			return err_errno(e, errno, "%s", beside);
	return 0;
}

/* Puts a line for the host where the old one stood, or at the end. */
static int
store(const char *path, const char *text, size_t at, size_t len, const char *host,
	const char *key, struct err *e)
{
	struct buf b;
	char now[24];
	int rc = -1;

	plat_utc(plat_now_ms(), now);
	buf_init(&b, PINS_MAX_BYTES);
	if (buf_add(&b, text, at, e) ||
	    (at > 0 && text[at - 1] != '\n' && buf_add(&b, "\n", 1, e)) ||
	    buf_addf(&b, e, "%s %s %s\n", host, key, now) ||
	    buf_add(&b, text + at + len, strlen(text + at + len), e))
		goto out;
	rc = plat_write_file(path, b.data, b.len, 0600, e);
out:
	buf_fini(&b);
	return rc;
}

int
pins_find(const char *given, const char *host, struct pin *out, struct err *e)
{
	char path[PATH_SIZE], *text = NULL;
	struct line l;
	size_t at, len;
	int found;

	if (path_of(given, path, e) || load(path, &text, e))
		return -1;
	found = find(text, host, &l, &at, &len, e);
	free(text);
	if (found < 0)
		return err_wrap(e, "%s", path);
	if (found == 0)
		return err_set(e, ERR_NOTFOUND, "no key of host %s is pinned", host);
	*out = l.pin;
	return 0;
}

static int
refuse(const char *host, const struct pin *old, const char *key, struct err *e)
{
	char was[64], is[64];

	sign_fingerprint(old->key, was);
	sign_fingerprint(key, is);
	err_set(e, ERR_REFUSED, "the agent of host %s shows another key: pinned %s since %s, "
		"shown %s", host, was, old->since, is);
	return err_hint(e, "if its agent was set up anew: verify-controller pin %.40s "
		"--replace", host);
}

/* Both ways of pinning: replace decides what a different key means. */
static int
put(const char *given, const char *host, const char *key, bool replace, bool *fresh,
	struct err *e)
{
	char path[PATH_SIZE], *text = NULL;
	size_t at = 0, len = 0;
	struct line l;
	int found, fd = -1, rc = -1;

	*fresh = false;
	if (!str_is_hex(key, SIGN_KEY_HEX - 1))
		return err_set(e, ERR_PARSE, "a public key has %d hex digits",
			SIGN_KEY_HEX - 1);
	if (path_of(given, path, e) || lock(path, &fd, e) || load(path, &text, e))
		goto out;
	if ((found = find(text, host, &l, &at, &len, e)) < 0) {
		err_wrap(e, "%s", path);
		goto out;
	}
	if (found == 1 && str_eq(l.pin.key, key)) {
		rc = 0;
		goto out;
	}
	if (found == 1 && !replace) {
		refuse(host, &l.pin, key, e);
		goto out;
	}
	if (found == 0)
		at = strlen(text), len = 0;
	if (store(path, text, at, len, host, key, e))
		goto out;
	*fresh = true;
	rc = 0;
out:
	free(text);
	if (fd >= 0)
		close(fd);
	return rc;
}

int
pins_check(const char *path, const char *host, const char *key, bool *fresh,
	struct err *e)
{
	return put(path, host, key, false, fresh, e);
}

int
pins_replace(const char *path, const char *host, const char *key, struct err *e)
{
	bool fresh;

	return put(path, host, key, true, &fresh, e);
}
