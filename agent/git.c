#include "agent/git.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/plat.h"

/* Before every command.  core.fsmonitor and hooks would run programs of the repository,
 * autocrlf would change the bytes of a checkout, ext:: runs anything. */
static const char *const before[] = {
	"--no-optional-locks", "--no-pager", "-c", "safe.directory=*",
	"-c", "protocol.ext.allow=never", "-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false", "-c", "core.autocrlf=false",
	"-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=true",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "color.ui=never",
	"-c", "advice.detachedHead=false",
};

/* A caller inside a hook has GIT_DIR and the like set; they would move everything. */
static const char *const surroundings[] = {
	"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=https:ssh:file",
	"GIT_LFS_SKIP_SMUDGE=1", "GIT_ASKPASS", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE=never",
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE",
	"GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_PREFIX", "GIT_CEILING_DIRECTORIES",
	"GIT_TRACE", "GIT_LITERAL_PATHSPECS",
	"GIT_CONFIG_PARAMETERS", "GIT_ATTR_SOURCE", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE",
	"GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS=1",
};

struct sink {
	const struct git *g;
	struct buf *out;
	struct digest *digest;
	char line[320];  /* of stderr, so far */
	size_t len;
	char said[320];  /* the last "fatal:" or "error:" line, else the last line */
	bool weighty;
	struct err err;
};

int
git_init(struct git *g, struct transcript *log, struct err *e)
{
	memset(g, 0, sizeof *g);
	g->log = log;
	return plat_find_tool("git", g->exe, sizeof g->exe, e);
}

static void
sink_line(struct sink *s)
{
	bool weighty;

	s->line[s->len] = '\0';
	weighty = str_starts(s->line, "fatal: ") || str_starts(s->line, "error: ");
	if (s->len > 0 && (weighty || !s->weighty)) {
		str_show(s->said, sizeof s->said, s->line, s->len);
		s->weighty = weighty;
	}
	s->len = 0;
}

static void
sink_stderr(struct sink *s, const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] == '\n' || p[i] == '\r')
			sink_line(s);
		else if (s->len < sizeof s->line - 1)
			s->line[s->len++] = p[i] ? p[i] : '?';
}

static int
sink_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct sink *s = arg;

	if (stream != 1) {
		sink_stderr(s, p, n);
		return 0;
	}
	if (s->digest != NULL)
		digest_add(s->digest, p, n);
	return s->out != NULL ? buf_add(s->out, p, n, &s->err) : 0;
}

static int
sink_tick(void *arg)
{
	struct sink *s = arg;

	return s->g->tick != NULL ? s->g->tick(s->g->arg) : 0;
}

/* What the command did, as an error of ours. */
static int
git_judge(struct sink *s, const char *verb, const struct proc_result *r, struct err *e)
{
	char did[64];

	if (r->cancelled)
		return err_set(e, ERR_CANCELLED, "git %s: cancelled", verb);
	if (r->timed_out)
		return err_set(e, ERR_TIMEOUT, "git %s: no end within the time limit", verb);
	if (s->err.code != ERR_NONE)
		return err_set(e, s->err.code, "git %s: %s", verb, s->err.msg);
	if (r->exit == 0)
		return 0;
	if (s->len > 0)
		sink_line(s);
	if (strstr(s->said, "No space left on device") != NULL)
		return err_set(e, ERR_NOSPACE, "git %s: %s", verb, s->said);
	proc_describe(r, did, sizeof did);
	return err_set(e, ERR_BLOCKED, "git %s: %s", verb, s->said[0] ? s->said : did);
}

int
git_run(struct git *g, const char *cwd, const char *const *args, struct buf *out,
	struct digest *d, struct err *e)
{
	const char *argv[1 + str_count(before) + GIT_MAX_ARGS + 1];
	const char *env[str_count(surroundings) + 3];
	char index[4096 + 16], tree[4096 + 16];
	struct sink s = {.g = g, .out = out, .digest = d};
	struct proc_spec spec = {.argv = argv, .cwd = cwd, .env = env,
		.timeout_ms = g->timeout_ms, .chunk = sink_chunk, .tick = sink_tick,
		.arg = &s};
	struct proc_result r;
	size_t i, n = 0;

	argv[n++] = g->exe;
	for (i = 0; i < str_count(before); i++)
		argv[n++] = before[i];
	for (i = 0; args[i] != NULL; i++) {
		if (i == GIT_MAX_ARGS)
			return err_set(e, ERR_LIMIT, "git %s: too many words", args[0]);
		argv[n++] = args[i];
	}
	argv[n] = NULL;
	for (i = n = 0; i < str_count(surroundings); i++)
		if ((g->index == NULL || strcmp(surroundings[i], "GIT_INDEX_FILE") != 0) &&
		    (g->work_tree == NULL || strcmp(surroundings[i], "GIT_WORK_TREE") != 0))
			env[n++] = surroundings[i];
	if (g->work_tree != NULL) {
		if (str_fmt(tree, sizeof tree, e, "GIT_WORK_TREE=%s", g->work_tree))
			return -1;
		env[n++] = tree;
	}
	if (g->index != NULL) {
		if (str_fmt(index, sizeof index, e, "GIT_INDEX_FILE=%s", g->index))
			return -1;
		env[n++] = index;
	}
	env[n] = NULL;
	if (transcript_run(g->log, &spec, NULL, &r, e))
		return err_wrap(e, "git %s", args[0]);
	return git_judge(&s, args[0], &r, e);
}

int
git_line(struct git *g, const char *cwd, const char *const *args, char *out, size_t size,
	struct err *e)
{
	struct buf b;
	int rc = -1;

	buf_init(&b, GIT_MAX_OUTPUT);
	if (git_run(g, cwd, args, &b, NULL, e))
		goto out;
	if (b.len > 0)
		b.data[strcspn(b.data, "\r\n")] = '\0';
	rc = str_copy(out, size, b.len > 0 ? b.data : "", e);
out:
	buf_fini(&b);
	return rc;
}

/* "git@host:path": a colon before any slash, and something that can be a host. */
static bool
is_scp(const char *s)
{
	const char *at = strchr(s, '@'), *colon = strchr(s, ':');

	if (at == NULL || colon == NULL || at > colon || at == s || colon[1] == '\0')
		return false;
	for (; s < colon; s++)
		if (!isalnum((unsigned char)*s) && strchr("@._-", *s) == NULL)
			return false;
	return at[1] != '-';
}

bool
git_is_url(const char *spec)
{
	static const char *const schemes[] = {"https://", "ssh://", "file://"};
	size_t i;

	for (i = 0; i < str_count(schemes); i++)
		if (str_starts(spec, schemes[i]))
			/* A host like "-oProxyCommand=" would be an option of ssh. */
			return spec[strlen(schemes[i])] != '-' &&
				spec[strlen(schemes[i])] != '\0';
	return spec[0] != '-' && is_scp(spec);
}

bool
git_is_ref(const char *ref)
{
	size_t i, n = strlen(ref);

	if (n == 0 || n > 200 || ref[0] == '-' || ref[0] == '/' || ref[n - 1] == '/' ||
	    strstr(ref, "..") != NULL || strstr(ref, "@{") != NULL || str_ends(ref, ".lock"))
		return false;
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)ref[i]) && strchr("._/@+-", ref[i]) == NULL)
			return false;
	return true;
}

int
git_clean_url(const char *url, char *out, size_t size, struct err *e)
{
	const char *host = strstr(url, "://"), *end, *at = NULL, *p, *colon;
	int scheme, name = 0;

	if (host == NULL)
		return str_copy(out, size, url, e);
	host += 3;
	scheme = (int)(host - url);
	end = host + strcspn(host, "/?#");
	for (p = host; p < end; p++)
		if (*p == '@')
			at = p;
	/* A user name is an address for ssh, and a secret as often as not for https. */
	if (at != NULL && str_starts(url, "ssh://")) {
		colon = memchr(host, ':', (size_t)(at - host));
		name = (int)((colon != NULL ? colon : at) - host);
	}
	p = at != NULL ? at + 1 : host;
	return str_fmt(out, size, e, "%.*s%.*s%s%.*s", scheme, url, name, host,
		name > 0 ? "@" : "", (int)strcspn(p, "?#"), p);
}
