#include "kernels/spread.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

struct part {
	spread_fn fn;
	void *arg;
	size_t from, to;
	unsigned number;
	pthread_t thread;
	bool started;
};

static void *
do_part(void *arg)
{
	struct part *p = arg;

	p->fn(p->arg, p->from, p->to, p->number);
	return NULL;
}

void
spread_run(unsigned threads, size_t count, spread_fn fn, void *arg)
{
	struct part parts[SPREAD_MAX];
	unsigned i;

	if (threads < 1)
		threads = 1;
	if (threads > SPREAD_MAX)
		threads = SPREAD_MAX;
	for (i = 0; i < threads; i++)
		parts[i] = (struct part){fn, arg, count * i / threads,
			count * (i + 1) / threads, i, 0, false};
	for (i = 1; i < threads; i++)
		parts[i].started =
			pthread_create(&parts[i].thread, NULL, do_part, &parts[i]) == 0;
	for (i = 0; i < threads; i++)
		if (!parts[i].started)
			do_part(&parts[i]);
	for (i = 1; i < threads; i++)
		if (parts[i].started)
			pthread_join(parts[i].thread, NULL);
}

unsigned
spread_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > SPREAD_MAX ? SPREAD_MAX : (unsigned)n;
}
