/*
 * linger - preloaded into the engine under test: keeps the process for the moments that its
 * log thread needs to write what is queued.
 *
 * llama.cpp prints through a thread with a queue of 512 entries and, since its issue 22142,
 * deliberately never joins it: whatever is queued when main returns is lost, with exit 0.
 * On a fast machine that is the proof of a short run more often than not.  This library
 * overrides no symbol; it only waits, when the process ends by itself, until nothing was
 * written for 30 ms, at most 2 s.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STEP_MS 10
#define QUIET_STEPS 3
#define MAX_STEPS 200

/* Bytes that this process has written so far; -1 when the kernel does not say. */
static long long
written(void)
{
	char text[512];
	const char *p;
	ssize_t n;
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return (p = strstr(text, "wchar:")) != NULL ? strtoll(p + 6, NULL, 10) : -1;
}

__attribute__((destructor)) static void
linger(void)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
	long long before = written(), now;
	int i, quiet = 0;

	for (i = 0; i < MAX_STEPS && quiet < QUIET_STEPS; i++) {
		nanosleep(&step, NULL);
		now = written();
		quiet = now == before && now >= 0 ? quiet + 1 : 0;
		before = now;
		/* without a count: a tenth of a second, and be done */
		if (now < 0 && i == 9)
			return;
	}
}
