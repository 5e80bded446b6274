/* verify-agent: the table of its commands. */
#include <string.h>

#include "agent/make_model.h"
#include "agent/run.h"
#include "agent/serve.h"
#include "common/str.h"
#include "kernels/verify.h"

int
main(int argc, char **argv)
{
	const struct command commands[] = {
		{.name = "serve", .summary = "run as the daemon of this host",
			.help = serve_help, .opts = serve_opts, .opt_count = SERVE_OPT_COUNT,
			.size = sizeof(struct serve_values), .run = serve_run},
		run_command,
		make_model_command,
		work_command,
	};
	const struct program program = {
		.name = "verify-agent",
		.summary = "the attester of a GPU host: builds, runs and signs what it saw",
		.version = VERSION,
		.help = "examples:\n"
			"  verify-agent serve                       the daemon that verify-controller talks to\n"
			"  verify-agent run cpu --report r.json     one run without a daemon\n"
			"  verify-agent cpu-verify                  the kernel fixtures alone (cpu-verify --help)",
		.commands = commands,
		.count = str_count(commands),
	};

	/* a program of its own that also lives in this file, so that one file is enough */
	if (argc > 1 && strcmp(argv[1], "cpu-verify") == 0)
		return cpu_verify_main(argc - 1, argv + 1);
	return opt_main(&program, argc, argv);
}
