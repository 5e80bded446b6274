/*
 * make-fixtures - writes the kernel fixtures into a folder.
 */
#include <stdio.h>

#include "common/plat.h"
#include "common/str.h"
#include "kernels/generate.h"

static int
write_file(void *arg, const char *name, const char *text, size_t len, struct err *e)
{
	const char *dir = arg;
	char path[4096];

	if (str_fmt(path, sizeof path, e, "%s/%s", dir, name) ||
	    plat_write_file(path, text, len, 0644, e))
		return -1;
	printf("%8zu  %s\n", len, path);
	return 0;
}

int
main(int argc, char **argv)
{
	struct err e = {0};

	if (argc != 2 || argv[1][0] == '-') {
		fputs("usage: make-fixtures DIR\n", stderr);
		return EXIT_USAGE;
	}
	if (plat_mkdirs(argv[1], 0755, &e) || generate_all(write_file, argv[1], &e)) {
		err_print("make-fixtures", &e);
		return err_exit(e.code);
	}
	return fflush(stdout) ? EXIT_INCOMPLETE : EXIT_PASS;
}
