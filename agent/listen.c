#include "agent/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/str.h"

#define BACKLOG 128
#define SYSTEMD_FD 3

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
	struct sockaddr_storage room;
};

static int
needs_keys(const char *address, struct err *e)
{
	err_set(e, ERR_REFUSED, "listen_needs_keys: %.100s is not a loopback address, and "
		"no controller has a key yet", address);
	return err_hint(e, "controller keys come first; until then listen on "
		"unix:/PATH or 127.0.0.1:PORT and come in with ssh -L");
}

static bool
is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return a->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

/* HOST:PORT or [HOST]:PORT in two. */
static int
split(const char *address, char *host, size_t size, uint32_t *port, struct err *e)
{
	const char *colon = strrchr(address, ':'), *from = address;
	size_t n;

	if (colon == NULL || str_u32(colon + 1, 0, 65535, port, e)) {
		err_set(e, ERR_USAGE, "\"%.100s\" is no address to listen on", address);
		return err_hint(e, "unix:/PATH, 127.0.0.1:PORT or [::1]:PORT");
	}
	n = (size_t)(colon - address);
	if (n >= 2 && from[0] == '[' && from[n - 1] == ']')
		from++, n -= 2;
	if (n >= size)
		return err_set(e, ERR_USAGE, "\"%.100s\" is too long", address);
	memcpy(host, from, n);
	host[n] = '\0';
	return 0;
}

static int
tcp_address(const char *address, union address *a, socklen_t *len, struct err *e)
{
	char host[64];
	uint32_t port;

	if (split(address, host, sizeof host, &port, e))
		return -1;
	memset(a, 0, sizeof *a);
	if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons((uint16_t)port);
		*len = sizeof a->v4;
	} else if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons((uint16_t)port);
		*len = sizeof a->v6;
	}
	/* A name may resolve to anything tomorrow: only addresses count. */
	return is_loopback(a) ? 0 : needs_keys(address, e);
}

static int
url_fill(struct listener *l, const union address *a, struct err *e)
{
	char host[INET6_ADDRSTRLEN];

	l->tcp = a->any.sa_family != AF_UNIX;
	if (!l->tcp)
		return str_fmt(l->url, sizeof l->url, e, "unix:%s", a->un.sun_path);
	if (a->any.sa_family == AF_INET)
		return inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host) == NULL ||
			str_fmt(l->url, sizeof l->url, e, "http://%s:%u", host,
				ntohs(a->v4.sin_port)) ? -1 : 0;
	return inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host) == NULL ||
		str_fmt(l->url, sizeof l->url, e, "http://[%s]:%u", host,
			ntohs(a->v6.sin6_port)) ? -1 : 0;
}

static int
tcp_open(const char *address, struct listener *l, struct err *e)
{
	union address a;
	socklen_t len = 0;
	int one = 1;

	if (tcp_address(address, &a, &len, e))
		return -1;
	l->fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return err_errno(e, errno, "socket for %s", address);
	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
	    bind(l->fd, &a.any, len) || listen(l->fd, BACKLOG)) {
		err_errno(e, errno, "listen on %s", address);
		return err_hint(e, "port 0 takes any free port");
	}
	len = sizeof a;
	if (getsockname(l->fd, &a.any, &len))
		return err_errno(e, errno, "the address of %s", address);
	return url_fill(l, &a, e);
}

/* A socket that nobody answers on is what a killed agent leaves; all else stays. */
static int
stale_remove(const struct sockaddr_un *un, struct err *e)
{
	const char *path = un->sun_path;
	struct stat st;
	int fd, bad;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_errno(e, errno, "%s", path);
	if (!S_ISSOCK(st.st_mode)) {
		err_set(e, ERR_CONFLICT, "%s is there and no socket", path);
		return err_hint(e, "choose another path with --listen unix:/PATH");
	}
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
		return err_errno(e, errno, "socket");
	bad = connect(fd, (const struct sockaddr *)un, sizeof *un) ? errno : 0;
	close(fd);
	if (bad != ECONNREFUSED) {
		err_set(e, ERR_CONFLICT, "a program answers on %s already", path);
		return err_hint(e, "stop it, or choose another path with --listen");
	}
	return unlink(path) ? err_errno(e, errno, "remove the stale %s", path) : 0;
}

static int
unix_open(const char *path, struct listener *l, struct err *e)
{
	union address a = {.un = {.sun_family = AF_UNIX}};
	mode_t old;
	int bad;

	if (path[0] != '/' || str_copy(a.un.sun_path, sizeof a.un.sun_path, path, NULL)) {
		err_set(e, ERR_USAGE, "a Unix socket needs an absolute path of at most %zu "
			"bytes, not \"%.60s\"", sizeof a.un.sun_path - 1, path);
		return err_hint(e, "choose a shorter one with --listen unix:/PATH");
	}
	if (stale_remove(&a.un, e))
		return -1;
	if ((l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return err_errno(e, errno, "socket for %s", path);
	old = umask(0177); /* nobody gets in between bind and chmod */
	bad = bind(l->fd, &a.any, sizeof a.un) ? errno : 0;
	umask(old);
	if (bad != 0)
		return err_errno(e, bad, "listen on unix:%s", path);
	if (str_copy(l->path, sizeof l->path, path, e))
		return -1;
	if (chmod(path, 0660) || listen(l->fd, BACKLOG))
		return err_errno(e, errno, "listen on unix:%s", path);
	return url_fill(l, &a, e);
}

static int
systemd_open(struct listener *l, struct err *e)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	union address a;
	socklen_t len = sizeof a;
	uint32_t n;

	if (pid == NULL || count == NULL || str_u32(pid, 1, INT32_MAX, &n, NULL) ||
	    n != (uint32_t)getpid())
		return err_set(e, ERR_NOTFOUND, "systemd passed no socket");
	if (str_u32(count, 1, 1, &n, NULL))
		return err_set(e, ERR_USAGE, "systemd passed %.20s sockets, not one", count);
	memset(&a, 0, sizeof a);
	if (fcntl(SYSTEMD_FD, F_SETFD, FD_CLOEXEC) ||
	    getsockname(SYSTEMD_FD, &a.any, &len))
		return err_errno(e, errno, "the socket that systemd passed");
	l->fd = SYSTEMD_FD;
	if (url_fill(l, &a, e))
		return -1;
	if (l->tcp && !is_loopback(&a))
		return needs_keys(l->url, e);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return 0;
}

int
listen_open(const char *address, struct listener *out, struct err *e)
{
	int rc;

	memset(out, 0, sizeof *out);
	out->fd = -1;
	if (address == NULL)
		rc = systemd_open(out, e);
	else if (str_starts(address, "unix:"))
		rc = unix_open(address + 5, out, e);
	else
		rc = tcp_open(address, out, e);
	if (rc)
		listen_close(out);
	return rc;
}

void
listen_close(struct listener *l)
{
	if (l->path[0] != '\0')
		unlink(l->path);
	l->path[0] = '\0';
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

bool
listen_is_loopback(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	size_t i, n;

	for (i = 0; i < str_count(names); i++) {
		n = strlen(names[i]);
		if (strncasecmp(host, names[i], n) == 0 &&
		    (host[n] == '\0' || host[n] == ':'))
			return true;
	}
	return false;
}
