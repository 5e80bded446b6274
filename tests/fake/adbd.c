/*
 * adbd - a phone that is none, for the real adb client: the device's end of the protocol on
 * a loopback port, as far as the android lane uses it (CNXN, shell with and without exit
 * codes, sync push).  Commands run with sh below ROOT, which stands for the phone's storage:
 * /data/local/tmp in a command means ROOT/data/local/tmp, ROOT/bin comes first in PATH (a
 * getprop, a cmd), and what is started as ./NAME is ROOT/bin/NAME: code that was pushed is
 * for a phone's processor.
 *
 *   adbd PORT ROOT [old] [cut] [corrupt]
 *
 *   old      no shell_v2: adb shell always exits 0, stderr comes with stdout
 *   cut      the output of a command stops before its last line
 *   corrupt  the last byte of what is pushed is another one
 *
 * Numbers of the protocol are those of its public description; 24-byte little-endian head:
 * command, arg0, arg1, length, sum of bytes, command ^ 0xffffffff.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DATA (256 * 1024)
#define CHUNK 16384
#define STREAMS 16

enum { CNXN = 0x4e584e43, OPEN = 0x4e45504f, OKAY = 0x59414b4f, WRTE = 0x45545257, CLSE = 0x45534c43 };

struct stream {
	uint32_t local, remote;
	bool used, v2, sync, waiting, ended, last;
	int out, err;           /* of the child; -1 closed */
	pid_t pid;
	char *kept;             /* with "cut": output so far */
	size_t kept_len;
	uint8_t *in;            /* of a sync stream */
	size_t in_len;
	int file;
	char path[512];
};

static struct stream streams[STREAMS];
static uint32_t next_id = 1;
static int sock;
static const char *root;
static bool old, cut, corrupt;

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "adbd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
write_all(int fd, const void *p, size_t n)
{
	const char *c = p;
	ssize_t k;

	for (; n > 0; c += k, n -= (size_t)k)
		if ((k = write(fd, c, n)) <= 0)
			exit(0);
}

static bool
read_all(int fd, void *p, size_t n)
{
	char *c = p;
	ssize_t k;

	for (; n > 0; c += k, n -= (size_t)k)
		if ((k = read(fd, c, n)) <= 0)
			return false;
	return true;
}

static void
packet(uint32_t command, uint32_t a, uint32_t b, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint32_t head[6] = {command, a, b, (uint32_t)n, 0, command ^ 0xffffffffu};
	size_t i;

	for (i = 0; i < n; i++)
		head[4] += p[i];
	write_all(sock, head, sizeof head);
	if (n > 0)
		write_all(sock, data, n);
}

static void
stream_write(struct stream *s, const void *data, size_t n)
{
	packet(WRTE, s->local, s->remote, data, n);
	s->waiting = true;
}

/* Shell v2 puts a byte for the kind and a length in front. */
static void
shell_write(struct stream *s, uint8_t kind, const void *data, size_t n)
{
	static uint8_t buffer[CHUNK + 5];
	uint32_t len = (uint32_t)n;

	if (!s->v2) {
		stream_write(s, data, n);
		return;
	}
	buffer[0] = kind;
	memcpy(buffer + 1, &len, 4);
	memcpy(buffer + 5, data, n);
	stream_write(s, buffer, n + 5);
}

static void
stream_close(struct stream *s)
{
	packet(CLSE, s->local, s->remote, NULL, 0);
	free(s->in);
	free(s->kept);
	memset(s, 0, sizeof *s);
}

/* What the phone has at the left is below root at the right. */
static void
translate(const char *from, char *to, size_t size)
{
	static const struct {
		const char *there, *here;
	} rows[] = {{"/data/local/tmp", "/data/local/tmp"}, {" ./", "/bin/"}};
	size_t used = 0, i, n;

	while (*from != '\0' && used + strlen(root) + 32 < size) {
		for (i = 0; i < 2 && strncmp(from, rows[i].there, strlen(rows[i].there)) != 0; i++)
			;
		if (i == 2) {
			to[used++] = *from++;
			continue;
		}
		n = strlen(rows[i].there);
		used += (size_t)snprintf(to + used, size - used, "%s%s%s", i == 1 ? " " : "", root,
			rows[i].here);
		from += n;
	}
	to[used] = '\0';
}

static void
shell_start(struct stream *s, const char *command)
{
	static char text[16384], path[1024];
	int out[2], err[2];

	translate(command, text, sizeof text);
	if (pipe(out) || pipe(err))
		die("pipe");
	if ((s->pid = fork()) < 0)
		die("fork");
	if (s->pid == 0) {
		snprintf(path, sizeof path, "%s/bin:%s", root, getenv("PATH"));
		setenv("PATH", path, 1);
		setenv("PHONE_ROOT", root, 1);
		dup2(open("/dev/null", O_RDONLY), 0);
		dup2(out[1], 1);
		dup2(s->v2 ? err[1] : out[1], 2);
		if (chdir(root))
			_exit(126);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	close(err[1]);
	s->out = out[0];
	s->err = err[0];
}

static void
stream_open(uint32_t remote, const char *service)
{
	struct stream *s = streams;
	const char *colon = strchr(service, ':');

	while (s < streams + STREAMS && s->used)
		s++;
	if (s == streams + STREAMS || colon == NULL) {
		packet(CLSE, 0, remote, NULL, 0);
		return;
	}
	memset(s, 0, sizeof *s);
	s->used = true;
	s->local = next_id++;
	s->remote = remote;
	s->out = s->err = s->file = -1;
	packet(OKAY, s->local, s->remote, NULL, 0);
	if (strncmp(service, "sync:", 5) == 0) {
		s->sync = true;
		return;
	}
	s->v2 = strncmp(service, "shell,v2", 8) == 0;
	shell_start(s, colon + 1);
}

/* ---- sync: STAT, SEND with DATA and DONE, QUIT ---- */

static void
sync_stat(struct stream *s, const char *path)
{
	char local[1024];
	struct stat st = {0};
	uint32_t answer[4];

	translate(path, local, sizeof local);
	if (stat(local, &st))
		memset(&st, 0, sizeof st);
	memcpy(answer, "STAT", 4);
	answer[1] = (uint32_t)st.st_mode;
	answer[2] = (uint32_t)st.st_size;
	answer[3] = (uint32_t)st.st_mtime;
	stream_write(s, answer, sizeof answer);
}

static void
sync_send(struct stream *s, char *path)
{
	char *comma = strrchr(path, ',');

	if (comma != NULL)
		*comma = '\0';
	translate(path, s->path, sizeof s->path);
	s->file = open(s->path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
}

static void
sync_done(struct stream *s)
{
	static const uint32_t okay[2] = {OKAY, 0};
	uint8_t byte;

	if (corrupt && s->file >= 0) {
		int fd = open(s->path, O_RDWR);
		off_t end = lseek(fd, 0, SEEK_END);

		if (end > 0 && pread(fd, &byte, 1, end - 1) == 1) {
			byte ^= 1;
			if (pwrite(fd, &byte, 1, end - 1) != 1)
				die("corrupt");
		}
		close(fd);
	}
	if (s->file >= 0)
		close(s->file);
	s->file = -1;
	stream_write(s, okay, sizeof okay);
}

/* One whole request at the start of the buffer; its size, 0 when more is needed. */
static size_t
sync_request(struct stream *s)
{
	static char text[1024];
	uint32_t n;

	if (s->in_len < 8)
		return 0;
	memcpy(&n, s->in + 4, 4);
	if (memcmp(s->in, "DONE", 4) == 0) {
		sync_done(s);
		return 8;
	}
	if (memcmp(s->in, "QUIT", 4) == 0) {
		s->last = true;
		return 8;
	}
	if (s->in_len < 8 + (size_t)n)
		return 0;
	if (memcmp(s->in, "DATA", 4) == 0) {
		if (s->file >= 0)
			write_all(s->file, s->in + 8, n);
		return 8 + (size_t)n;
	}
	snprintf(text, sizeof text, "%.*s", (int)n, (const char *)s->in + 8);
	if (memcmp(s->in, "STAT", 4) == 0)
		sync_stat(s, text);
	else if (memcmp(s->in, "SEND", 4) == 0)
		sync_send(s, text);
	return 8 + (size_t)n;
}

static void
sync_feed(struct stream *s, const uint8_t *data, size_t n)
{
	size_t used;

	if ((s->in = realloc(s->in, s->in_len + n)) == NULL)
		die("realloc");
	memcpy(s->in + s->in_len, data, n);
	s->in_len += n;
	while ((used = sync_request(s)) > 0) {
		memmove(s->in, s->in + used, s->in_len - used);
		s->in_len -= used;
	}
	if (s->last)
		stream_close(s);
}

/* ---- packets and children ---- */

static struct stream *
stream_find(uint32_t local)
{
	struct stream *s;

	for (s = streams; s < streams + STREAMS; s++)
		if (s->used && s->local == local)
			return s;
	return NULL;
}

static void
packet_read(void)
{
	static uint8_t data[MAX_DATA + 1];
	uint32_t head[6];
	struct stream *s;
	char banner[200];

	if (!read_all(sock, head, sizeof head) || head[3] > MAX_DATA || !read_all(sock, data, head[3]))
		exit(0);
	data[head[3]] = '\0';
	s = stream_find(head[2]);
	switch (head[0]) {
	case CNXN:
		snprintf(banner, sizeof banner, "device::ro.product.name=stand-in;ro.product.model="
			"StandIn;ro.product.device=standin;features=%s", old ? "cmd" : "shell_v2,cmd");
		packet(CNXN, 0x01000001, MAX_DATA, banner, strlen(banner));
		break;
	case OPEN:
		stream_open(head[1], (const char *)data);
		break;
	case WRTE:
		if (s == NULL) {
			packet(CLSE, 0, head[1], NULL, 0);
			break;
		}
		packet(OKAY, s->local, s->remote, NULL, 0);
		if (s->sync)
			sync_feed(s, data, head[3]);
		break;
	case OKAY:
		if (s != NULL) {
			s->waiting = false;
			if (s->ended)
				stream_close(s);
		}
		break;
	case CLSE:
		if (s != NULL) {
			if (s->pid > 0)
				kill(s->pid, SIGKILL);
			stream_close(s);
		}
		break;
	default:
		exit(0);
	}
}

/* With "cut" the last line stays here. */
static void
child_said(struct stream *s, int fd, uint8_t kind)
{
	static char buffer[CHUNK];
	ssize_t n = read(fd, buffer, sizeof buffer);

	if (n <= 0) {
		close(fd);
		if (fd == s->out)
			s->out = -1;
		else
			s->err = -1;
		return;
	}
	if (!cut) {
		shell_write(s, kind, buffer, (size_t)n);
		return;
	}
	if ((s->kept = realloc(s->kept, s->kept_len + (size_t)n)) == NULL)
		die("realloc");
	memcpy(s->kept + s->kept_len, buffer, (size_t)n);
	s->kept_len += (size_t)n;
}

static void
child_end(struct stream *s)
{
	int status;
	uint8_t code;

	if (s->kept != NULL) {
		while (s->kept_len > 0 && s->kept[s->kept_len - 1] == '\n')
			s->kept_len--;
		while (s->kept_len > 0 && s->kept[s->kept_len - 1] != '\n')
			s->kept_len--;
		s->kept_len = s->kept_len < CHUNK ? s->kept_len : CHUNK;
		if (s->kept_len > 0)
			shell_write(s, 1, s->kept, s->kept_len);
		free(s->kept);
		s->kept = NULL;
		if (s->waiting)
			return;
	}
	waitpid(s->pid, &status, 0);
	code = (uint8_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	s->pid = 0;
	s->ended = true;
	if (s->v2)
		shell_write(s, 3, &code, 1);
	else
		stream_close(s);
}

static void
serve(void)
{
	struct pollfd fds[1 + 2 * STREAMS];
	struct stream *s;
	nfds_t n;
	size_t i;

	for (;;) {
		fds[0] = (struct pollfd){.fd = sock, .events = POLLIN};
		for (n = 1, s = streams; s < streams + STREAMS; s++) {
			if (!s->used || s->sync || s->waiting || s->pid == 0)
				continue;
			if (s->out < 0 && s->err < 0) {
				child_end(s);
				continue;
			}
			if (s->out >= 0)
				fds[n++] = (struct pollfd){.fd = s->out, .events = POLLIN};
			if (s->err >= 0)
				fds[n++] = (struct pollfd){.fd = s->err, .events = POLLIN};
		}
		if (poll(fds, n, 1000) < 0)
			die("poll");
		if (fds[0].revents != 0)
			packet_read();
		for (i = 1; i < n; i++)
			for (s = streams; fds[i].revents != 0 && s < streams + STREAMS; s++)
				if (s->used && !s->waiting && (s->out == fds[i].fd || s->err == fds[i].fd)) {
					child_said(s, fds[i].fd, s->out == fds[i].fd ? 1 : 2);
					break;
				}
	}
}

int
main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int server, on = 1, i;

	if (argc < 3) {
		fprintf(stderr, "usage: adbd PORT ROOT [old] [cut] [corrupt]\n");
		return 2;
	}
	root = argv[2];
	for (i = 3; i < argc; i++) {
		old = old || strcmp(argv[i], "old") == 0;
		cut = cut || strcmp(argv[i], "cut") == 0;
		corrupt = corrupt || strcmp(argv[i], "corrupt") == 0;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
	server = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (server < 0 || bind(server, (struct sockaddr *)&at, sizeof at) || listen(server, 8))
		die("listen");
	for (;;) {
		if ((sock = accept(server, NULL, NULL)) < 0)
			die("accept");
		if (fork() == 0) {
			close(server);
			serve();
		}
		close(sock);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
