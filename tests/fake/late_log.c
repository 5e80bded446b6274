/* A fake engine for one fault: like llama.cpp it prints through a thread that it never
 * joins, so that its last line is lost when main returns first. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static void *
late(void *arg)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int i;

	(void)arg;
	for (i = 0; i < 5; i++) {
		nanosleep(&pause, NULL);
		fprintf(stderr, "line %d\n", i);
	}
	return NULL;
}

int
main(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, late, NULL) != 0;
}
