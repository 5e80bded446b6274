#include "agent/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/proc.h"
#include "common/str.h"

#define WAITERS_MAX 64
#define FAILED_MS 2000

struct host {
	const char *const *argv;
	pthread_mutex_t mutex;
	pthread_t thread;
	bool joinable, probing, stop;
	char *text;              /* the last probe */
	struct err failed;       /* code ERR_NONE: the last probe went well */
	int64_t at_ms;           /* monotonic, of the last probe; 0 none yet */
	struct MHD_Connection *waiters[WAITERS_MAX];
	size_t waiting;
};

struct gather {
	struct host *host;
	struct buf out;
};

static int
probe_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct gather *g = arg;

	return stream == 1 ? buf_add(&g->out, p, n, NULL) : 0;
}

static int
probe_tick(void *arg)
{
	struct gather *g = arg;
	bool stop;

	pthread_mutex_lock(&g->host->mutex);
	stop = g->host->stop;
	pthread_mutex_unlock(&g->host->mutex);
	return stop;
}

static int
probe(struct host *h, char **text, struct err *e)
{
	struct gather g = {.host = h};
	struct proc_spec spec = {
		.argv = h->argv, .timeout_ms = HOST_TIMEOUT_MS, .chunk = probe_chunk,
		.tick = probe_tick, .arg = &g,
	};
	struct proc_result r;
	char said[120];
	int rc = -1;

	buf_init(&g.out, HOST_MAX_BYTES);
	if (proc_run(&spec, &r, e))
		goto out;
	if (r.exit != 0) {
		proc_describe(&r, said, sizeof said);
		err_set(e, ERR_IO, "the probe of this host ended with %s", said);
		err_hint(e, "run `verify-agent serve --probe` by hand");
		goto out;
	}
	if (g.out.len == 0 || json_check(g.out.data, g.out.len, HOST_MAX_BYTES, e)) {
		err_set(e, ERR_IO, "the probe of this host printed no JSON");
		goto out;
	}
	*text = buf_take(&g.out);
	rc = 0;
out:
	buf_fini(&g.out);
	return rc;
}

/* With the mutex held. */
static void
waiters_resume(struct host *h)
{
	while (h->waiting > 0)
		MHD_resume_connection(h->waiters[--h->waiting]);
}

static void *
probe_main(void *arg)
{
	struct host *h = arg;
	struct err e = {0};
	char *text = NULL;

	if (probe(h, &text, &e))
		text = NULL;
	pthread_mutex_lock(&h->mutex);
	if (text != NULL) {
		free(h->text);
		h->text = text;
	}
	h->failed = e;
	if (text != NULL)
		h->failed.code = ERR_NONE;
	h->at_ms = plat_mono_ms();
	h->probing = false;
	waiters_resume(h);
	pthread_mutex_unlock(&h->mutex);
	return NULL;
}

/* With the mutex held. */
static int
probe_start(struct host *h, struct err *e)
{
	int bad;

	if (h->probing)
		return 0;
	if (h->joinable)
		pthread_join(h->thread, NULL); /* it has let go of the mutex for good */
	h->joinable = false;
	if ((bad = pthread_create(&h->thread, NULL, probe_main, h)) != 0)
		return err_errno(e, bad, "start the probe");
	h->joinable = h->probing = true;
	return 0;
}

static int
get(struct host *h, struct MHD_Connection *c, bool *parked, char **text, struct err *e)
{
	int64_t age = plat_mono_ms() - h->at_ms;

	*parked = false;
	*text = NULL;
	if (h->stop)
		return err_set(e, ERR_BUSY, "the agent is stopping");
	if (h->at_ms != 0 && h->failed.code != ERR_NONE && age < FAILED_MS) {
		*e = h->failed;
		return -1;
	}
	if (h->at_ms != 0 && h->failed.code == ERR_NONE && age < HOST_FRESH_MS) {
		if ((*text = strdup(h->text)) == NULL)
			return err_set(e, ERR_NOMEM, "no memory for the probe");
		return 0;
	}
	if (h->waiting == WAITERS_MAX)
		return err_set(e, ERR_BUSY, "%d requests wait for the probe", WAITERS_MAX);
	if (probe_start(h, e))
		return -1;
	h->waiters[h->waiting++] = c;
	MHD_suspend_connection(c);
	*parked = true;
	return 0;
}

int
host_get(struct host *h, struct MHD_Connection *c, bool *parked, char **text,
	struct err *e)
{
	int rc;

	pthread_mutex_lock(&h->mutex);
	rc = get(h, c, parked, text, e);
	pthread_mutex_unlock(&h->mutex);
	return rc;
}

int
host_new(const char *const *argv, struct host **out, struct err *e)
{
	struct host *h;

	if ((h = calloc(1, sizeof *h)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the probe");
	h->argv = argv;
	if (pthread_mutex_init(&h->mutex, NULL)) {
		free(h);
		return err_set(e, ERR_NOMEM, "no mutex");
	}
	*out = h;
	return 0;
}

void
host_stop(struct host *h)
{
	bool join;

	pthread_mutex_lock(&h->mutex);
	h->stop = true;
	waiters_resume(h);
	join = h->joinable;
	h->joinable = false;
	pthread_mutex_unlock(&h->mutex);
	if (join)
		pthread_join(h->thread, NULL);
}

void
host_free(struct host *h)
{
	if (h == NULL)
		return;
	host_stop(h);
	pthread_mutex_destroy(&h->mutex);
	free(h->text);
	free(h);
}
