#include "agent/make_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/synth.h"
#include "common/digest.h"
#include "common/str.h"

struct values {
	const char *head_size; /* one of head_sizes */
	uint64_t layers;
	bool force;
	const char *drafter;
	const char *expect;
	uint64_t tokens;
};

static const char *const head_sizes[] = { "64", "128", "256", NULL };

static const struct opt opts[] = {
	{ "head-size", 0, OPT_CHOICE, offsetof(struct values, head_size), .fallback = "128",
	  .word = "N", .choices = head_sizes, .help = "elements of one attention head" },
	{ "layers", 0, OPT_NUMBER, offsetof(struct values, layers), SYNTH_LAYERS_MIN,
	  SYNTH_LAYERS_MAX, "2", .word = "N", .help = "layers; all but two are noise" },
	{ "force", 'f', OPT_FLAG, offsetof(struct values, force),
	  .help = "replace a file that is there" },
	{ "mtp", 0, OPT_TEXT, offsetof(struct values, drafter), .max = 4096, .word = "DRAFTER",
	  .help = "a gemma4, and in DRAFTER the model that drafts for it" },
	{ "expect", 0, OPT_TEXT, offsetof(struct values, expect), .max = SYNTH_TEXT_MAX,
	  .word = "PROMPT", .help = "print what a working engine says after PROMPT" },
	{ "tokens", 'n', OPT_NUMBER, offsetof(struct values, tokens), 1, SYNTH_TEXT_MAX, "16",
	  .word = "N", .help = "how much of that" },
};

static int
complain(const char *program, const struct err *e)
{
	err_print(program, e);
	return err_exit(e->code) == EXIT_USAGE ? EXIT_USAGE : EXIT_INCOMPLETE;
}

static int
expect(const struct values *v, struct err *e)
{
	char text[SYNTH_TEXT_MAX + 1];

	if (synth_expect(v->expect, (unsigned)v->tokens, text, sizeof text, e)) {
		e->code = ERR_USAGE; /* the prompt is the user's */
		return -1;
	}
	printf("%s\n", text);
	return 0;
}

static int
tell(const char *path, const char *what, struct err *e)
{
	char hex[DIGEST_HEX];
	uint64_t bytes;

	if (digest_file(path, hex, &bytes, e))
		return -1;
	printf("%s: synthetic, %s, %" PRIu64 " bytes, sha256 %s\n", path, what, bytes, hex);
	return 0;
}

static int
make_pair(const struct values *v, const char *path, struct err *e)
{
	if (strcmp(path, v->drafter) == 0) {
		err_set(e, ERR_USAGE, "model and drafter are both %s", path);
		return err_hint(e, "give the drafter a name of its own");
	}
	return synth_write_mtp(path, v->drafter, v->force, e) || tell(path, "gemma4", e) ||
		tell(v->drafter, "gemma4-assistant", e) ? -1 : 0;
}

static int
make(const struct values *v, const char *path, struct err *e)
{
	struct synth_params p = { 0, (unsigned)v->layers, v->force };
	char what[64];

	if (v->drafter != NULL)
		return make_pair(v, path, e);
	if (str_u32(v->head_size, 1, 1024, &p.head_size, e) || synth_write(path, &p, e) ||
	    str_fmt(what, sizeof what, e, "head size %u, %u layers", p.head_size, p.layers))
		return -1;
	return tell(path, what, e);
}

static int
make_model_run(const struct opt_call *call)
{
	const struct values *v = call->values;
	struct err e = { 0 };

	if (call->argc == 0 && v->expect == NULL) {
		err_set(&e, ERR_USAGE, "the name of the file to write is missing");
		err_hint(&e, "for example: make-model model.gguf");
		return complain(call->program, &e);
	}
	if (call->argc > 0 && make(v, call->argv[0], &e))
		return complain(call->program, &e);
	if (v->expect != NULL && expect(v, &e))
		return complain(call->program, &e);
	return EXIT_PASS;
}

const struct command make_model_command = {
	.name = "make-model",
	.arguments = "[OUT.gguf]",
	.summary = "write a small synthetic model that real engines run",
	.help =
		"The file is the same on every machine: llama architecture, f16, 259 byte-level\n"
		"tokens, about 5 MB.  Its text after a prompt is known in advance and passes\n"
		"through the K cache token by token, so a damaged cache shows in the text.  It\n"
		"proves nothing about a real model, and says so (general.synthetic).\n"
		"\n"
		"  make-model model.gguf\n"
		"  llama-completion -m model.gguf -p 'Is the cache right?' -n 16 --temp 0\n"
		"  make-model --expect 'Is the cache right?'\n"
		"\n"
		"With --mtp a pair for multi-token prediction: a gemma4 that knows a row of letters,\n"
		"and a gemma4-assistant that drafts the next two and is right about half of them.\n"
		"\n"
		"  make-model gemma.gguf --mtp drafter.gguf\n"
		"  llama-cli -m gemma.gguf -md drafter.gguf --spec-type draft-mtp -fa on -st -p Hello\n"
		"\n"
		"Exit status: 0, 2 (usage, or OUT.gguf exists), 6 (could not be written).",
	.opts = opts,
	.opt_count = str_count(opts),
	.size = sizeof(struct values),
	.max_args = 1,
	.run = make_model_run,
};

/* The help of a table's command names its program first; ours is the program. */
static int
print_help(void)
{
	const struct program p = { .name = "" };
	const char *usage = "usage:  ";
	char *text = opt_help_command(&p, &make_model_command);

	if (text == NULL)
		return EXIT_INCOMPLETE;
	if (str_starts(text, usage))
		printf("usage: %s", text + strlen(usage));
	else
		printf("%s", text);
	free(text);
	return EXIT_PASS;
}

int
make_model_main(int argc, char **argv)
{
	struct values v;
	struct err e = { 0 };
	char *args[2] = { NULL, NULL };
	struct opt_call call = { "make-model", &v, 0, args };
	bool help = false;
	int status;

	memset(&v, 0, sizeof v);
	if (opt_parse(opts, str_count(opts), argc - 1, argv + 1, &v, args, 1, &call.argc,
	    &help, &e) && !help) {
		err_hint(&e, "see \"make-model --help\"");
		return complain("make-model", &e);
	}
	status = help ? print_help() : make_model_run(&call);
	if ((fflush(stdout) || ferror(stdout)) && status == EXIT_PASS) {
		err_set(&e, ERR_IO, "cannot write to the standard output");
		status = complain("make-model", &e);
	}
	return status;
}
