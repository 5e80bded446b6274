#include "agent/conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ini.h>

#include "common/job.h"
#include "common/plat.h"

#define KIB 1024u
#define MIB (1024u * 1024u)
#define GIB (1024ull * 1024u * 1024u)
#define DAY_S 86400u

const struct conf_row conf_rows[CONF_COUNT] = {
	[CONF_MAX_CONNECTIONS] = {"http", "max_connections", 4, 4096, 256, "connections",
		"open connections; beyond, idle ones are closed and only health is answered"},
	[CONF_MAX_STREAMS] = {"http", "max_streams", 1, 1024, 64, "streams",
		"event streams open at the same time"},
	[CONF_IDLE_TIMEOUT] = {"http", "idle_timeout_s", 1, 3600, 30, "seconds",
		"a connection without traffic is closed after this"},
	[CONF_HEARTBEAT] = {"http", "heartbeat_s", 1, 300, 15, "seconds",
		"a silent event stream gets an empty line so often"},
	[CONF_MAX_BODY] = {"http", "max_body_bytes", 1024, JOB_MAX_BYTES, JOB_MAX_BYTES,
		"bytes", "largest request body"},
	[CONF_MAX_HEADER] = {"http", "max_header_bytes", 4096, 65536, 16384, "bytes",
		"memory of one connection: request line and headers must fit"},
	[CONF_MAX_QUEUE] = {"jobs", "max_queue", 1, 1024, 64, "jobs",
		"jobs that may wait; a further one is refused with 503"},
	[CONF_MAX_KNOWN] = {"jobs", "max_known", 16, 1000000, 100000, "jobs",
		"job records kept; beyond, the oldest pruned ones are forgotten"},
	[CONF_JOB_TIMEOUT] = {"jobs", "timeout_s", 10, 7 * DAY_S, 6 * 3600, "seconds",
		"a whole job; then it ends incomplete, reason timeout"},
	[CONF_CANCEL_GRACE] = {"jobs", "cancel_grace_s", 1, 600, 10, "seconds",
		"from asking a worker to stop until it is killed"},
	[CONF_STOP_GRACE] = {"jobs", "stop_grace_s", 1, 600, 20, "seconds",
		"the same when the agent itself is stopped"},
	[CONF_LOG_CAP] = {"work", "log_cap_bytes", 64 * KIB, GIB, 16 * MIB, "bytes",
		"kept of one log: head and tail, the count of dropped bytes between"},
	[CONF_BUILD_TIMEOUT] = {"work", "build_timeout_s", 10, 7 * DAY_S, 2 * 3600, "seconds",
		"configure and build of the engine"},
	[CONF_SMOKE_TIMEOUT] = {"work", "smoke_timeout_s", 1, DAY_S, 600, "seconds",
		"one run of the engine"},
	[CONF_FIXTURE_TIMEOUT] = {"work", "fixture_timeout_s", 1, DAY_S, 600, "seconds",
		"the kernel fixtures; the engine's own test of one op"},
	[CONF_KEEP_DAYS] = {"spool", "keep_days", 0, 36500, 14, "days",
		"an acknowledged job's files are kept so long; others for ever"},
	[CONF_SPOOL_BYTES] = {"spool", "max_bytes", MIB, 1024 * GIB, 10 * GIB, "bytes",
		"beyond, acknowledged jobs' files go earlier, oldest first"},
};

const struct conf_text_row conf_texts[CONF_TEXT_COUNT] = {
	[CONF_STATE] = {"agent", "state", "$STATE_DIRECTORY, else $XDG_STATE_HOME/verify-agent",
		"folder of key, jobs, events, spool and cache"},
	[CONF_LISTEN] = {"agent", "listen", "unix:STATE/agent.sock",
		"unix:/PATH, 127.0.0.1:PORT or [::1]:PORT; port 0 is any free one"},
};

struct reading {
	const char *name;
	const char *at, *end; /* text not yet read */
	unsigned line;
	bool long_line;
	struct conf *conf;
	unsigned seen[CONF_COUNT], seen_text[CONF_TEXT_COUNT]; /* line, 0: not yet */
	bool failed;
	struct err *e;
};

void
conf_default(struct conf *c)
{
	size_t i;

	memset(c, 0, sizeof *c);
	for (i = 0; i < CONF_COUNT; i++)
		c->v[i] = conf_rows[i].def;
}

static int
fail_at(struct reading *r)
{
	r->failed = true;
	err_wrap(r->e, "%s:%u", r->name, r->line);
	return 0; /* libinih's word for an error */
}

/* libinih asks for one line a time, which is how the line number is known. */
static char *
line_next(char *out, int size, void *arg)
{
	struct reading *r = arg;
	const char *nl;
	size_t n;

	if (r->at == r->end || r->failed)
		return NULL;
	nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
	n = nl != NULL ? (size_t)(nl - r->at) + 1 : (size_t)(r->end - r->at);
	r->line++;
	if (n > CONF_MAX_LINE || n + 1 > (size_t)size || memchr(r->at, '\0', n) != NULL) {
		err_set(r->e, ERR_PARSE, "longer than %d bytes, or not text",
			CONF_MAX_LINE);
		err_hint(r->e, "one `key = value` a line; comments begin with #");
		fail_at(r);
		return NULL;
	}
	memcpy(out, r->at, n);
	out[n] = '\0';
	r->at += n;
	return out;
}

static int
set_twice(struct reading *r, const char *key, unsigned before)
{
	err_set(r->e, ERR_PARSE, "%s was set in line %u already", key, before);
	err_hint(r->e, "keep one of the two (a line that begins with a space goes on "
		"with the line above)");
	return fail_at(r);
}

static int
number_set(struct reading *r, size_t i, const char *value)
{
	const struct conf_row *row = &conf_rows[i];

	if (r->seen[i] != 0)
		return set_twice(r, row->key, r->seen[i]);
	r->seen[i] = r->line;
	if (str_u64(value, row->min, row->max, &r->conf->v[i], r->e)) {
		err_wrap(r->e, "%s", row->key);
		err_hint(r->e, "a whole number of %s from %" PRIu64 " to %" PRIu64
			", without unit", row->unit, row->min, row->max);
		return fail_at(r);
	}
	return 1;
}

static int
text_set(struct reading *r, size_t i, const char *value)
{
	if (r->seen_text[i] != 0)
		return set_twice(r, conf_texts[i].key, r->seen_text[i]);
	r->seen_text[i] = r->line;
	if (value[0] == '\0') {
		err_set(r->e, ERR_PARSE, "%s is empty", conf_texts[i].key);
		err_hint(r->e, "remove the line to get the default");
		return fail_at(r);
	}
	if (str_copy(r->conf->text[i], CONF_MAX_TEXT, value, r->e)) {
		err_wrap(r->e, "%s", conf_texts[i].key);
		return fail_at(r);
	}
	return 1;
}

static int
key_unknown(struct reading *r, const char *section, const char *key)
{
	struct buf b;
	size_t i;

	buf_init(&b, 4096);
	for (i = 0; i < CONF_TEXT_COUNT; i++)
		if (strcmp(section, conf_texts[i].section) == 0 &&
		    buf_addf(&b, NULL, " %s", conf_texts[i].key))
			break;
	for (i = 0; i < CONF_COUNT; i++)
		if (strcmp(section, conf_rows[i].section) == 0 &&
		    buf_addf(&b, NULL, " %s", conf_rows[i].key))
			break;
	if (b.len > 0) {
		err_set(r->e, ERR_PARSE, "[%.30s] has no setting \"%.60s\"", section, key);
		err_hint(r->e, "it has:%.140s", b.data);
	} else {
		err_set(r->e, ERR_PARSE, "there is no section [%.60s]", section);
		err_hint(r->e, "sections are [agent], [http], [jobs], [work], [spool]");
	}
	buf_fini(&b);
	return fail_at(r);
}

static int
pair_take(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	size_t i;

	if (r->failed)
		return 0;
	for (i = 0; i < CONF_COUNT; i++)
		if (strcmp(section, conf_rows[i].section) == 0 &&
		    strcmp(key, conf_rows[i].key) == 0)
			return number_set(r, i, value);
	for (i = 0; i < CONF_TEXT_COUNT; i++)
		if (strcmp(section, conf_texts[i].section) == 0 &&
		    strcmp(key, conf_texts[i].key) == 0)
			return text_set(r, i, value);
	return key_unknown(r, section, key);
}

int
conf_parse(const char *text, size_t len, const char *name, struct conf *c, struct err *e)
{
	struct err local = {0};
	struct reading r = {
		.name = name, .at = text, .end = text + len, .conf = c,
		.e = e != NULL ? e : &local,
	};
	int bad;

	if (len > CONF_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "%s: more than %d bytes", name,
			CONF_MAX_BYTES);
	bad = ini_parse_stream(line_next, &r, pair_take, &r);
	if (r.failed)
		return -1;
	if (bad < 0)
		return err_set(e, ERR_NOMEM, "%s: no memory", name);
	if (bad > 0) {
		err_set(e, ERR_PARSE, "%s:%d: neither a [section] nor `key = value`", name,
			bad);
		return err_hint(e, "comments begin with #");
	}
	return 0;
}

/* The default file: the user's own, else the system's; "" when there is none. */
static int
default_path(char *out, size_t size, struct err *e)
{
	static const char system_wide[] = "/etc/verify/agent.conf";
	char dir[4096];

	if (plat_xdg("CONFIG", "verify", dir, sizeof dir, NULL) == 0 &&
	    str_fmt(out, size, NULL, "%s/agent.conf", dir) == 0 && plat_exists(out))
		return 0;
	return str_copy(out, size, plat_exists(system_wide) ? system_wide : "", e);
}

int
conf_load(const char *path, struct conf *c, struct err *e)
{
	char found[4200], *text = NULL;
	size_t len = 0;
	int rc;

	conf_default(c);
	if (path == NULL) {
		if (default_path(found, sizeof found, e))
			return -1;
		if (found[0] == '\0')
			return 0;
		path = found;
	}
	if (plat_read_file(path, CONF_MAX_BYTES, &text, &len, e)) {
		err_wrap(e, "configuration");
		return err_hint(e, "check the path of --config");
	}
	rc = conf_parse(text, len, path, c, e);
	free(text);
	return rc;
}

static int
section_sample(struct buf *b, const char *section, struct err *e)
{
	size_t i;

	if (buf_addf(b, e, "\n[%s]\n", section))
		return -1;
	for (i = 0; i < CONF_TEXT_COUNT; i++) {
		const struct conf_text_row *t = &conf_texts[i];

		if (strcmp(t->section, section) == 0 &&
		    buf_addf(b, e, "# %s\n# default: %s\n#%s =\n", t->help, t->def, t->key))
			return -1;
	}
	for (i = 0; i < CONF_COUNT; i++) {
		const struct conf_row *t = &conf_rows[i];

		if (strcmp(t->section, section) == 0 &&
		    buf_addf(b, e, "# %s\n# %s, %" PRIu64 " to %" PRIu64 "\n#%s = %" PRIu64
			    "\n", t->help, t->unit, t->min, t->max, t->key, t->def))
			return -1;
	}
	return 0;
}

int
conf_sample(struct buf *b, struct err *e)
{
	static const char *const sections[] = {"agent", "http", "jobs", "work", "spool"};
	size_t i;

	if (buf_addf(b, e, "# verify-agent.conf: every setting with its default.\n"
		"# Read from --config, else $XDG_CONFIG_HOME/verify/agent.conf, else\n"
		"# /etc/verify/agent.conf.  Made by `verify-agent serve --print-config`.\n"))
		return -1;
	for (i = 0; i < str_count(sections); i++)
		if (section_sample(b, sections[i], e))
			return -1;
	return 0;
}
