/*
 * fake_http - an HTTP server for faults alone: cut, slow, wrong and hostile answers that
 * no real agent gives.  A process of its own on a Unix socket; one connection at a time,
 * one request each.  Whether a right answer is understood, the scenarios prove with the
 * real agent.
 */
#ifndef TESTS_FAKE_HTTP_H
#define TESTS_FAKE_HTTP_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct fake_request {
	char method[8], path[512];
	long long from; /* of the Range header, -1 without */
	int number;     /* of this request, from 0 */
};
typedef void (*fake_handler)(int fd, const struct fake_request *r);

static pid_t fake_pid;
static int *fake_count; /* requests so far, shared with the test */

static inline void
fake_raw(int fd, const void *p, size_t n)
{
	if (send(fd, p, n, MSG_NOSIGNAL) < 0)
		return;
}

static inline void
fake_text(int fd, const char *text)
{
	fake_raw(fd, text, strlen(text));
}

static inline void
fake_answer(int fd, const char *status, const char *type, const void *body, size_t n)
{
	char head[512];

	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n", status, type, n);
	fake_raw(fd, head, strlen(head));
	fake_raw(fd, body, n);
}

static inline void
fake_json(int fd, const char *status, const char *body)
{
	fake_answer(fd, status, "application/json", body, strlen(body));
}

/* Bytes from `from` on, as an agent sends them. */
static inline void
fake_range(int fd, const struct fake_request *r, const char *body, size_t n)
{
	char head[256];
	size_t from = r->from > 0 ? (size_t)r->from : 0;

	if (from >= n && from > 0) {
		fake_json(fd, "416 Range Not Satisfiable",
			"{\"error\":{\"code\":\"range_not_satisfiable\",\"message\":\"no\"}}");
		return;
	}
	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
		"Content-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n", r->from > 0 ? "206 Partial Content" : "200 OK",
		from, n - 1, n, n - from);
	fake_raw(fd, head, strlen(head));
	fake_raw(fd, body + from, n - from);
}

static inline void
fake_serve_one(int fd, fake_handler handler)
{
	struct fake_request r = {.from = -1};
	char text[16384];
	size_t n = 0;
	ssize_t got;
	char *range;

	while (n < sizeof text - 1 &&
	       (got = recv(fd, text + n, sizeof text - 1 - n, 0)) > 0) {
		n += (size_t)got;
		text[n] = '\0';
		if (strstr(text, "\r\n\r\n") != NULL)
			break;
	}
	text[n] = '\0';
	if (sscanf(text, "%7s %511s", r.method, r.path) != 2)
		return;
	if ((range = strstr(text, "Range: bytes=")) != NULL)
		r.from = strtoll(range + 13, NULL, 10);
	r.number = (*fake_count)++;
	handler(fd, &r);
}

/* Answers on the socket until fake_stop. */
static inline int
fake_start(const char *path, fake_handler handler)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM, 0), fd;

	fake_count = mmap(NULL, sizeof *fake_count, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
	unlink(path);
	if (s < 0 || fake_count == MAP_FAILED ||
	    bind(s, (struct sockaddr *)&sa, sizeof sa) != 0 || listen(s, 16) != 0)
		return -1;
	if ((fake_pid = fork()) < 0)
		return -1;
	if (fake_pid == 0) {
		while ((fd = accept(s, NULL, NULL)) >= 0) {
			fake_serve_one(fd, handler);
			close(fd);
		}
		_exit(0);
	}
	close(s);
	return 0;
}

static inline void
fake_stop(void)
{
	if (fake_pid > 0) {
		kill(fake_pid, SIGKILL);
		waitpid(fake_pid, NULL, 0);
		munmap(fake_count, sizeof *fake_count);
	}
	fake_pid = 0;
}

#endif
