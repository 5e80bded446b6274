#include "agent/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/ntstatus.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/tool.h"

struct parse_values {
	const char *exit;
};

static const struct opt parse_opts[] = {
	{"exit", 'e', OPT_TEXT, offsetof(struct parse_values, exit), .word = "N",
		.help = "the exit code that the tool ended with, when it is known; of Windows in any form"},
};

static int
kind_read(const char *word, enum tool_kind *out, struct err *e)
{
	char list[256] = "";
	size_t used = 0;
	int k = tool_kind_find(word), i;

	if (k >= 0) {
		*out = (enum tool_kind)k;
		return 0;
	}
	for (i = 0; i < TOOL_KIND_COUNT; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
			tool_kind_name((enum tool_kind)i));
	err_set(e, ERR_USAGE, "unknown kind of output \"%.40s\"", word);
	return err_hint(e, "%s", list);
}

static int
parse_do(const struct opt_call *call, struct tool_answer *a, struct err *e)
{
	const struct parse_values *v = call->values;
	enum tool_kind kind = TOOL_NVCC;
	char *text = NULL;
	int exit = -1;
	size_t len;

	if (kind_read(call->argv[0], &kind, e))
		return -1;
	if (v->exit != NULL && ntstatus_parse(v->exit, &exit, e))
		return err_wrap(e, "--exit");
	if (plat_read_input(call->argv[1], TOOL_MAX_BYTES, &text, &len, e))
		return -1;
	tool_parse(kind, text, len, exit, a);
	free(text);
	return 0;
}

static int
parse_run(const struct opt_call *call)
{
	struct tool_answer *a = calloc(1, sizeof *a);
	struct err e = {0};
	char *text = NULL;
	cJSON *o = NULL;
	int status;

	if (a == NULL)
		err_set(&e, ERR_NOMEM, "no memory for an answer");
	else if (parse_do(call, a, &e) == 0 &&
		 ((o = tool_json(a)) == NULL || (text = json_text(o, true)) == NULL))
		err_set(&e, ERR_NOMEM, "no memory for an answer");
	if (e.code != ERR_NONE) {
		err_print("verify-agent parse", &e);
		status = err_exit(e.code);
	} else {
		fputs(text, stdout);
		status = a->reason == REASON_NONE ? EXIT_PASS : EXIT_BLOCKED;
		if (status != EXIT_PASS)
			fprintf(stderr, "%s: %s\n  hint: %s\n", reason_name(a->reason), a->detail, a->hint);
	}
	cJSON_Delete(o);
	free(text);
	free(a);
	return status;
}

const struct command parse_command = {
	.name = "parse",
	.arguments = "KIND FILE|-",
	.summary = "say what the output of a probe tool means",
	.help = "Prints the facts of a tool's output as JSON, or the reason why it has none.\n"
		"KIND is nvidia-smi-L, nvidia-smi-query, nvcc-version, rocminfo,\n"
		"vulkaninfo-summary, test-backend-ops, adb-devices or probe.\n"
		"\n"
		"  nvidia-smi -L | verify-agent parse nvidia-smi-L -\n"
		"  verify-agent parse rocminfo saved.txt --exit 1\n"
		"\n"
		"What was not printed is null, never 0.\n"
		"\n"
		"Exit status: 0 facts, 3 no facts (the reason stands on standard error), 2 usage.",
	.opts = parse_opts,
	.opt_count = str_count(parse_opts),
	.size = sizeof(struct parse_values),
	.min_args = 2,
	.max_args = 2,
	.run = parse_run,
};
