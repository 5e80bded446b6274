#include "agent/serve.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/http.h"
#include "agent/work.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define PROGRAM "verify-agent"
#define SPARE_FILES 128 /* descriptors that are no connections */
#define HELP_BYTES 16384

const struct opt serve_opts[SERVE_OPT_COUNT] = {
	{"config", 'c', OPT_TEXT, offsetof(struct serve_values, config), .word = "FILE",
		.help = "settings; else $XDG_CONFIG_HOME/verify/agent.conf, else "
			"/etc/verify/agent.conf"},
	{"state", 's', OPT_TEXT, offsetof(struct serve_values, state), .word = "DIR",
		.help = "folder of key, jobs and spool; else [agent] state, else "
			"$STATE_DIRECTORY, else $XDG_STATE_HOME/verify-agent"},
	{"listen", 'l', OPT_TEXT, offsetof(struct serve_values, listen), .word = "ADDRESS",
		.help = "unix:/PATH, 127.0.0.1:PORT or [::1]:PORT (port 0: any free one); "
			"else systemd's socket, else unix:STATE/agent.sock"},
	{"foreground", 'f', OPT_FLAG, offsetof(struct serve_values, foreground),
		.help = "stay in the foreground, as it always does"},
	{"probe", 0, OPT_FLAG, offsetof(struct serve_values, probe),
		.help = "print what GET /v1/host answers, and exit"},
	{"print-config", 0, OPT_FLAG, offsetof(struct serve_values, print_config),
		.help = "print a configuration file with every setting, its range and its "
			"default, and exit"},
};

const char serve_help[] =
	"Answers on a Unix socket (0660) or on loopback until SIGTERM or SIGINT; then the\n"
	"running job is asked to write its report, and waiting jobs stay for the next\n"
	"start.  The address is printed and stands in STATE/listen.\n"
	"Settings and their ranges: verify-agent serve --print-config.\n";

/* What a child that holds the private key tells the server, which never does. */
struct key_answer {
	struct err e;
	struct serve_key key;
};

static void
key_child(const char *path, int fd)
{
	struct key_answer a;
	struct sign_key *k = NULL;
	ssize_t n;

	memset(&a, 0, sizeof a);
	if (sign_key_open(path, true, &k, &a.e) == 0 &&
	    str_copy(a.key.id, sizeof a.key.id, sign_key_id(k), &a.e) == 0 &&
	    str_copy(a.key.public_hex, sizeof a.key.public_hex, sign_key_public(k),
		    &a.e) == 0)
		sign_fingerprint(a.key.public_hex, a.key.fingerprint);
	sign_key_free(k);
	n = write(fd, &a, sizeof a);
	_exit(n == (ssize_t)sizeof a ? 0 : EXIT_INCOMPLETE);
}

/* Before there is any thread.  The process that strangers talk to never sees the private
 * key; the workers read it themselves. */
static int
key_open(const char *state, struct serve_key *out, struct err *e)
{
	struct key_answer a;
	char path[4096];
	int fds[2], status;
	pid_t pid;
	ssize_t n;

	if (str_fmt(path, sizeof path, e, "%s/key.pem", state))
		return -1;
	if (pipe(fds))
		return err_errno(e, errno, "pipe");
	if ((pid = fork()) == 0)
		key_child(path, fds[1]);
	close(fds[1]);
	n = pid > 0 ? read(fds[0], &a, sizeof a) : -1;
	close(fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || n != (ssize_t)sizeof a)
		return err_set(e, ERR_IO, "%s: the child that reads it failed", path);
	if (a.e.code != ERR_NONE) {
		if (e != NULL)
			*e = a.e;
		return -1;
	}
	*out = a.key;
	return 0;
}

int
serve_state_dir(const struct conf *c, const char *given, char *out, size_t size,
	struct err *e)
{
	const char *systemd = getenv("STATE_DIRECTORY");

	/* git, cmake and the engine run in folders of their own */
	if (given != NULL && given[0] != '\0')
		return plat_absolute(given, out, size, e);
	if (c->text[CONF_STATE][0] != '\0')
		return plat_absolute(c->text[CONF_STATE], out, size, e);
	if (systemd != NULL && systemd[0] != '\0')
		return str_fmt(out, size, e, "%.*s", (int)strcspn(systemd, ":"), systemd);
	return plat_xdg("STATE", PROGRAM, out, size, e);
}

static int
socket_open(struct serve *s, const char *given, struct err *e)
{
	const char *conf = s->conf.text[CONF_LISTEN];
	char address[4200];
	struct err none = {0};

	if (given != NULL)
		return listen_open(given, &s->listener, e);
	if (listen_open(NULL, &s->listener, &none) == 0)
		return 0;
	if (none.code != ERR_NOTFOUND) {
		*e = none;
		return -1;
	}
	if (conf[0] != '\0')
		return listen_open(conf, &s->listener, e);
	if (str_fmt(address, sizeof address, e, "unix:%s/agent.sock", store_dir(s->store)))
		return -1;
	return listen_open(address, &s->listener, e);
}

static void
files_raise(const struct conf *c)
{
	rlim_t want = (rlim_t)c->v[CONF_MAX_CONNECTIONS] + HTTP_RESERVE +
		(rlim_t)c->v[CONF_MAX_STREAMS] + SPARE_FILES;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= want)
		return;
	lim.rlim_cur = want < lim.rlim_max ? want : lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur < want)
		fprintf(stderr, PROGRAM ": only %lu files may be open; lower "
			"max_connections\n", (unsigned long)lim.rlim_cur);
}

static void
on_ended(void *arg, const char *id)
{
	struct serve *s = arg;

	stream_ended(s->streams, id);
}

static int
listen_file(const struct serve *s, bool there, struct err *e)
{
	char path[4096], text[300];

	if (str_fmt(path, sizeof path, e, "%s/listen", store_dir(s->store)))
		return -1;
	if (!there) {
		unlink(path);
		return 0;
	}
	if (str_fmt(text, sizeof text, e, "%s\n", s->listener.url))
		return -1;
	return plat_write_file(path, text, strlen(text), 0644, e);
}

/* In every thread that will be: SIGTERM and the like are read by the main one. */
static void
signals_block(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int
parts_open(struct serve *s, const struct serve_values *v, const char *const *probe,
	struct err *e)
{
	struct queue_spec spec = {
		.conf = &s->conf, .store = s->store, .program = probe[0],
		.config = v->config, .ended = on_ended, .arg = s,
	};
	char events[4096];

	if (str_fmt(events, sizeof events, e, "%s/events", store_dir(s->store)) ||
	    socket_open(s, v->listen, e))
		return -1;
	files_raise(&s->conf);
	signals_block();
	if (streams_new(events, (unsigned)s->conf.v[CONF_MAX_STREAMS],
		    (unsigned)s->conf.v[CONF_HEARTBEAT], &s->streams, e) ||
	    host_new(probe, &s->host, e) || queue_new(&spec, &s->queue, e) ||
	    http_start(s, &s->http, e) || listen_file(s, true, e))
		return -1;
	fprintf(stderr, "listening on %s, key %s\n", s->listener.url, s->key.fingerprint);
	return 0;
}

static void
parts_close(struct serve *s)
{
	if (s->store != NULL && s->http != NULL && listen_file(s, false, NULL))
		fprintf(stderr, PROGRAM ": the file `listen` stays behind\n");
	http_stop(s->http);
	queue_free(s->queue);
	host_free(s->host);
	streams_free(s->streams);
	listen_close(&s->listener);
	store_close(s->store);
}

static int
serve(struct serve *s, const struct serve_values *v, struct err *e)
{
	char state[4096], self[4096];
	const char *const probe[] = {self, "serve", "--probe", NULL};
	int rc = -1;

	s->listener.fd = -1;
	s->started_ms = plat_mono_ms();
	plat_boot_id(s->boot_id);
	if (plat_self(self, sizeof self, e) || conf_load(v->config, &s->conf, e) ||
	    serve_state_dir(&s->conf, v->state, state, sizeof state, e) ||
	    store_open(state, (size_t)s->conf.v[CONF_MAX_KNOWN], &s->store, e) ||
	    key_open(store_dir(s->store), &s->key, e) || parts_open(s, v, probe, e))
		goto out;
	malloc_trim(0);
	rc = queue_loop(s->queue, e);
out:
	parts_close(s);
	return rc;
}

static int
probe_print(struct err *e)
{
	cJSON *o = NULL;
	char *text;
	sigset_t none;
	int rc;

	/* A server that probes has signals blocked. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (work_host(&o, e))
		return -1;
	text = json_text(o, true);
	cJSON_Delete(o);
	if (text == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the probe");
	rc = fputs(text, stdout) < 0 || fflush(stdout) ? -1 : 0;
	free(text);
	return rc ? err_errno(e, errno, "write") : 0;
}

static int
config_print(struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, HELP_BYTES);
	rc = conf_sample(&b, e);
	if (rc == 0 && (fputs(b.data, stdout) < 0 || fflush(stdout)))
		rc = err_errno(e, errno, "write");
	buf_fini(&b);
	return rc;
}

int
serve_run(const struct opt_call *call)
{
	const struct serve_values *v = call->values;
	struct serve *s;
	struct err e = {0};
	int rc;

	/* One arena and quick returns to the system: an agent idles for days. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 128 * 1024);
	if (v->print_config) {
		rc = config_print(&e);
	} else if (v->probe) {
		rc = probe_print(&e);
	} else if ((s = calloc(1, sizeof *s)) == NULL) {
		rc = err_set(&e, ERR_NOMEM, "no memory");
	} else {
		rc = serve(s, v, &e);
		free(s);
	}
	if (rc)
		err_print(PROGRAM, &e);
	return rc ? err_exit(e.code) : EXIT_PASS;
}
