/* verify-agent: the table of its commands. */
#include <string.h>

#include "agent/dispatch.h"
#include "agent/doctor.h"
#include "agent/make_model.h"
#include "agent/parse.h"
#include "agent/probe.h"
#include "agent/record.h"
#include "agent/run.h"
#include "agent/serve.h"
#include "common/str.h"
#include "kernels/verify.h"

/* The backend of "cpu-verify", "cuda-verify" and so on; NULL when it is none of them. */
static const struct kernel_backend *
verified(const char *command)
{
	struct err ignored = {0};
	char name[32];

	if (!str_ends(command, "-verify") || str_copy(name, sizeof name, command, &ignored))
		return NULL;
	name[strlen(name) - strlen("-verify")] = '\0';
	return backend_find(name);
}

int
main(int argc, char **argv)
{
	const struct command commands[] = {
		{.name = "serve", .summary = "run as the daemon of this host",
			.help = serve_help, .opts = serve_opts, .opt_count = SERVE_OPT_COUNT,
			.size = sizeof(struct serve_values), .run = serve_run},
		run_command,
		doctor_command,
		parse_command,
		record_command,
		probe_command,
		dispatch_command,
		make_model_command,
		work_command,
	};
	const struct program program = {
		.name = "verify-agent",
		.summary = "the attester of a GPU host: builds, runs and signs what it saw",
		.version = VERSION,
		.help = "examples:\n"
			"  verify-agent serve                       the daemon that verify-controller talks to\n"
			"  verify-agent doctor                      is this host ready, and if not, why\n"
			"  verify-agent run cpu --report r.json     one run without a daemon\n"
			"  verify-agent cpu-verify                  the kernels alone (cpu-verify --help); also\n"
			"                                           cuda-verify, hip-verify, vulkan-verify",
		.commands = commands,
		.count = str_count(commands),
	};
	const struct kernel_backend *backend;

	/* programs of their own that also live in this file, so that one file is enough */
	if (argc > 1 && (backend = verified(argv[1])) != NULL)
		return verify_main(backend, argc - 1, argv + 1);
	return opt_main(&program, argc, argv);
}
