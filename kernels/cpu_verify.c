#include "kernels/verify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/opt.h"
#include "common/str.h"

struct values {
	bool json;
	const char *fixtures, *only, *tolerance;
};

static const struct opt options[] = {
	{"json", 0, OPT_FLAG, offsetof(struct values, json),
	 .help = "JSON on standard output, for programs"},
	{"fixtures", 0, OPT_TEXT, offsetof(struct values, fixtures), .word = "DIR",
	 .help = "read the fixtures from here instead of the built-in ones"},
	{"only", 0, OPT_TEXT, offsetof(struct values, only), .word = "NAME,...",
	 .max = 1024, .help = "check these kernels only"},
	{"tolerance", 0, OPT_TEXT, offsetof(struct values, tolerance), .word = "T",
	 .max = 32, .help = "largest difference that is not reached, for all checks"},
};

static const struct command command = {
	.name = "cpu-verify",
	.summary = "check the reference kernels against their fixtures",
	.help = "Checks every kernel's numbers, then two planted errors, which must be\n"
		"caught.  Exit status: 0 all pass, 1 a mismatch or a planted error that\n"
		"was missed, 2 bad usage, an unknown kernel or a fixture that does not\n"
		"fit.",
	.opts = options,
	.opt_count = str_count(options),
	.size = sizeof(struct values),
};

static int
read_tolerance(const char *text, double *out, struct err *e)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (errno != 0 || end == text || *end != '\0' || !isfinite(*out) || *out <= 0)
		return err_set(
			e, ERR_USAGE,
			"--tolerance: found \"%s\", wanted a finite number above 0",
			text);
	return 0;
}

static int
unknown_name(const char *name, struct err *e)
{
	const char *names[KERNEL_COUNT], *near;
	size_t i;

	for (i = 0; i < KERNEL_COUNT; i++)
		names[i] = kernels[i].name;
	err_set(e, ERR_USAGE, "--only: unknown kernel \"%.64s\"", name);
	if ((near = opt_nearest(name, names, KERNEL_COUNT)) != NULL)
		return err_hint(e, "did you mean %s?", near);
	return err_hint(e, "the table that is printed without --only has the names");
}

static int
read_only(const char *text, struct verify_options *o, struct err *e)
{
	char copy[1025], *names[KERNEL_COUNT];
	const struct kernel *k;
	int i, j, n;

	if (str_copy(copy, sizeof copy, text, e))
		return -1;
	if ((n = str_split(copy, true, names, KERNEL_COUNT)) <= 0)
		return err_set(e, ERR_USAGE, "--only: found %s, wanted 1 to %d names",
			       n == 0 ? "none" : "more", KERNEL_COUNT);
	for (i = 0; i < n; i++) {
		if ((k = kernel_find(names[i])) == NULL)
			return unknown_name(names[i], e);
		for (j = 0; j < i; j++)
			if (o->only[j] == k)
				return err_set(e, ERR_USAGE,
					       "--only: %s is named twice", k->name);
		o->only[o->only_count++] = k;
	}
	return 0;
}

static int
print_json(const struct verify_report *r)
{
	cJSON *o = verify_json(r);
	char *text = o ? json_text(o, true) : NULL;
	int rc = text == NULL || fputs(text, stdout) == EOF ? -1 : 0;

	free(text);
	cJSON_Delete(o);
	return rc;
}

static int
print_help(void)
{
	static const struct program program = {.name = "cpu-verify"};
	char *text = opt_help_command(&program, &command), *rest;
	int rc = EXIT_INCOMPLETE;

	/* Its usage line is that of a command inside a program. */
	if (text != NULL && (rest = strchr(text, '\n')) != NULL &&
	    printf("usage: cpu-verify [options]%s", rest) > 0 && fflush(stdout) == 0)
		rc = EXIT_PASS;
	free(text);
	return rc;
}

int
cpu_verify_main(int argc, char **argv)
{
	struct verify_options o = {0};
	struct verify_report *r = NULL;
	struct values v = {0};
	struct err e = {0};
	char *args[1];
	bool help = false;
	int n = 0, rc = EXIT_INCOMPLETE;

	if (opt_parse(options, str_count(options), argc - 1, argv + 1, &v, args, 0, &n,
		      &help, &e))
		goto bad;
	if (help)
		return print_help();
	if ((v.only && read_only(v.only, &o, &e)) ||
	    (v.tolerance && read_tolerance(v.tolerance, &o.tolerance, &e)))
		goto bad;
	o.dir = v.fixtures;
	if ((r = malloc(sizeof *r)) == NULL) {
		err_set(&e, ERR_NOMEM, "no memory for the report");
		goto bad;
	}
	verify_run(&o, r);
	if (!v.json)
		verify_print(stdout, r);
	/* A verdict that nobody could read is none. */
	if ((v.json && print_json(r)) || fflush(stdout) || ferror(stdout))
		fputs("cpu-verify: no memory, or standard output can not be written\n",
		      stderr);
	else
		rc = verify_exit(r);
	free(r);
	return rc;
bad:
	err_print("cpu-verify", &e);
	return err_exit(e.code);
}
