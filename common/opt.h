/*
 * opt - option rows and subcommand rows: parsing, --help, suggestions, shell completion.
 *
 * A program is a table of commands; a command has a table of options.  opt_main picks the
 * command, fills a zeroed block of `size` bytes (each option at its offset), and calls
 * run, whose return value is the exit status.  Options and arguments may be mixed; "--"
 * ends the options; "-x" alone letters join ("-jv"); the last of a repeated option wins.
 * --help works after every command, before it reads anything else.
 *
 *	struct list_values { const char *lane; uint64_t limit; bool json; };
 *	static const struct opt list_opts[] = {
 *		{"lane", 'l', OPT_TEXT, offsetof(struct list_values, lane),
 *		 .word = "LANE", .help = "only runs of this lane"},
 *		{"limit", 0, OPT_NUMBER, offsetof(struct list_values, limit), .min = 1,
 *		 .max = 1000, .fallback = "20", .word = "N", .help = "at most so many"},
 *		{"json", 0, OPT_FLAG, offsetof(struct list_values, json),
 *		 .help = "JSON for scripts"},
 *	};
 *
 * Strings are borrowed from argv (or from the row's fallback): they live as long as the
 * program.  Threads: one at a time; everything is printed by the caller's thread.
 */
#ifndef COMMON_OPT_H
#define COMMON_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define OPT_MAX_LIST 32    /* occurrences of an OPT_LIST option */
#define OPT_MAX_TEXT 65536 /* bytes of one value when the row says no max */
#define OPT_MAX_ARGS 4096  /* arguments that are not options */

enum opt_kind {
	OPT_FLAG,   /* bool */
	OPT_TEXT,   /* const char *, NULL when neither given nor a fallback */
	OPT_NUMBER, /* uint64_t within [min, max] */
	OPT_CHOICE, /* const char *, one of choices */
	OPT_LIST    /* struct opt_list: may be repeated */
};

struct opt_list {
	const char *item[OPT_MAX_LIST];
	int count;
};

struct opt {
	const char *name;        /* "lane", given as --lane */
	char letter;             /* 'l', or 0 for none */
	enum opt_kind kind;
	size_t offset;           /* of the value in the command's block */
	uint64_t min, max;       /* number: its range; text: longest value, 0 for
	                          * OPT_MAX_TEXT */
	const char *fallback;    /* optional default, in text; parsed like a given one */
	const char *word;        /* what stands for the value in the help: "PATH" ("PATH",
	                          * "DIR", "FILE" complete to file names) */
	const char *unit;        /* optional: "ms", "bytes" */
	const char *help;        /* one sentence, small letter, no full stop */
	const char *const *choices; /* of OPT_CHOICE, NULL-terminated */
};

struct opt_call {
	const char *program;
	void *values;            /* the command's block */
	int argc;                /* what is not an option, the command left out */
	char **argv;             /* NULL-terminated */
};

struct command {
	const char *name;
	const char *arguments;   /* for the usage line: "HOST..." */
	const char *summary;     /* one line of the list of commands */
	const char *help;        /* paragraphs under the usage line: what, then examples */
	const struct opt *opts;  /* optional */
	size_t opt_count;
	size_t size;             /* of the block of values, may be 0 */
	int min_args, max_args;
	int (*run)(const struct opt_call *call); /* gives the exit status */
	bool hidden;             /* not in help and completion */
	const char *complete;    /* optional command line that prints words for the
	                          * arguments: "verify-controller hosts --names" */
};

struct program {
	const char *name, *summary, *version;
	const char *help;        /* printed under the list of commands: examples */
	const struct command *commands;
	size_t count;
};

/* The whole of a main(): returns the exit status.  "help", "help COMMAND", "--help",
 * "--version" and "completion bash" are answered here.  Failing to write stdout is
 * EXIT_INCOMPLETE. */
int opt_main(const struct program *p, int argc, char **argv);

/* The parts, for tests and for programs with a shape of their own. */

/* Reads argv[0..argc) by the rows into values (borrows everything), arguments into
 * args[] (at most max, *n of them).  Puts fallbacks first.  *help is set when --help
 * or -h was met. */
CHECKED int opt_parse(const struct opt *opts, size_t count, int argc, char **argv,
	void *values, char **args, int max, int *n, bool *help, struct err *e);
const struct command *opt_find(const struct program *p, const char *name); /* or NULL */
/* One option's value from text, as opt_parse does. */
CHECKED int opt_set(const struct opt *o, const char *text, void *values, struct err *e);

/* The nearest of words[0..n) to a misspelt one, NULL when none is near. */
const char *opt_nearest(const char *word, const char *const *words, size_t n);

/* Give text freed with free(); NULL when out of memory. */
char *opt_help_program(const struct program *p);
char *opt_help_command(const struct program *p, const struct command *c);
char *opt_completion_bash(const struct program *p);

#endif
