/*
 * repo - for tests: temporary folders, small files, git and other programs by argv.
 * Everything fails the test when it can not do its work.
 */
#ifndef TESTS_UNIT_REPO_H
#define TESTS_UNIT_REPO_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/err.h"
#include "common/plat.h"

#define REPO_PATH 4200

static inline const char *
repo_folder(char *path, size_t size)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, size, "%s/verify-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(path));
	return path;
}

static inline void
repo_remove(const char *path)
{
	struct err e;

	assert_int_equal(plat_remove_tree(path, &e), 0);
}

/* Folders on the way are made. */
static inline void
repo_write(const char *folder, const char *name, const char *text, unsigned mode)
{
	char path[REPO_PATH], dir[REPO_PATH];
	struct err e;
	int fd;
	size_t n = strlen(text);

	snprintf(path, sizeof path, "%s/%s", folder, name);
	snprintf(dir, sizeof dir, "%s", path);
	*strrchr(dir, '/') = '\0';
	assert_int_equal(plat_mkdirs(dir, 0755, &e), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* Runs a program; its standard output comes back in out (cut to size), without the last
 * newline.  Returns the exit status. */
static inline int
repo_exec(const char *cwd, char *out, size_t size, const char *const *argv)
{
	int p[2], status;
	size_t len = 0;
	ssize_t n;
	char rest[4096];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	if ((pid = fork()) == 0) {
		int null = open("/dev/null", O_RDWR);

		if (chdir(cwd) != 0 || dup2(p[1], 1) < 0 || dup2(null, 0) < 0 ||
		    dup2(null, 2) < 0)
			_exit(126);
		close(p[0]);
		setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
		setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
		setenv("GIT_AUTHOR_NAME", "a", 1);
		setenv("GIT_AUTHOR_EMAIL", "a@example.org", 1);
		setenv("GIT_COMMITTER_NAME", "a", 1);
		setenv("GIT_COMMITTER_EMAIL", "a@example.org", 1);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	assert_true(pid > 0);
	close(p[1]);
	while ((n = read(p[0], len + 1 < size ? out + len : rest,
			len + 1 < size ? size - len - 1 : sizeof rest)) > 0)
		if (len + 1 < size)
			len += (size_t)n;
	close(p[0]);
	if (size > 0) {
		out[len] = '\0';
		if (len > 0 && out[len - 1] == '\n')
			out[len - 1] = '\0';
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* git with up to nine words; must succeed. */
#define repo_git(cwd, out, size, ...)                                        \
	assert_int_equal(repo_exec(cwd, out, size,                           \
		(const char *const[]){"git", __VA_ARGS__, NULL}), 0)

/* A tree that looks like an engine, committed on branch main. */
static inline void
repo_engine(const char *folder)
{
	char none[8];

	repo_write(folder, "CMakeLists.txt", "project(x)\n", 0644);
	repo_write(folder, "ggml/a.c", "int a;\n", 0644);
	repo_write(folder, "include/llama.h", "\n", 0644);
	repo_write(folder, ".gitignore", "/build*\n", 0644);
	repo_git(folder, none, sizeof none, "init", "-q", "-b", "main", ".");
	repo_git(folder, none, sizeof none, "add", "-A");
	repo_git(folder, none, sizeof none, "commit", "-q", "-m", "first");
}

#endif
