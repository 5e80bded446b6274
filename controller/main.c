/* The table of subcommands and their options; everything they do is in cmd_*.c. */
#include <locale.h>
#include <stddef.h>

#include "common/str.h"
#include "controller/cmd.h"

#define JSON_ROW(type) \
	{"json", 0, OPT_FLAG, offsetof(struct type, json), .help = "JSON for scripts"}

static const char *const only_names[] = {"probe", "build", "fixtures", "smoke", NULL};
static const char *const outcome_names[] = {"pass", "fail", "blocked", "skipped",
	"incomplete", NULL};

static const struct opt run_opts[] = {
	{"lane", 'l', OPT_TEXT, offsetof(struct run_values, lane), .max = 64, .word = "LANE",
	 .help = "kind of run; else that of the inventory, else cpu"},
	{"suite", 's', OPT_TEXT, offsetof(struct run_values, suite), .max = 4096,
	 .word = "SUITE", .help = "a built-in suite (llama.cpp, eliza-1) or a FILE.json; else "
	 "that of the inventory, else eliza-1"},
	{"model", 'm', OPT_TEXT, offsetof(struct run_values, model), .max = 4096,
	 .word = "PATH", .help = "the GGUF file, on the agent's host"},
	{"device", 0, OPT_TEXT, offsetof(struct run_values, device), .max = 128, .word = "ID",
	 .help = "the device: UUID, PCI address, serial or index; else the first that counts"},
	{"draft-model", 0, OPT_TEXT, offsetof(struct run_values, draft_model), .max = 4096,
	 .word = "PATH", .help = "the drafter of speculative decoding, on the agent's host"},
	{"source", 0, OPT_TEXT, offsetof(struct run_values, source), .max = 4096,
	 .word = "SPEC", .help = "the engine's source: a folder, a git bundle or a git URL, as "
	 "the agent's host sees it"},
	{"source-ref", 0, OPT_TEXT, offsetof(struct run_values, source_ref), .max = 256,
	 .word = "REF", .help = "branch, tag or commit of the source"},
	{"only", 0, OPT_CHOICE, offsetof(struct run_values, only), .word = "PART",
	 .choices = only_names, .help = "do these gates and what they need; never recordable"},
	{"prebuilt", 0, OPT_TEXT, offsetof(struct run_values, prebuilt), .max = 4096,
	 .word = "DIR", .help = "run an engine that was built before; never recordable"},
	{"set", 0, OPT_LIST, offsetof(struct run_values, set), .word = "KEY=VALUE",
	 .help = "override cacheTypes, tokens, ngl, prompt, extraArgs, cmakeFlags or driver of "
	 "the suite; never recordable"},
	{"detach", 'd', OPT_FLAG, offsetof(struct run_values, detach),
	 .help = "submit and leave; \"attach\" brings the result in"},
	{"json", 0, OPT_FLAG, offsetof(struct run_values, json),
	 .help = "one JSON object a line: events, then the result"},
};
static const struct opt attach_opts[] = {JSON_ROW(json_values)};
static const struct opt runs_opts[] = {
	{"host", 'H', OPT_TEXT, offsetof(struct runs_values, host), .word = "HOST",
	 .help = "only runs on this host"},
	{"class", 'c', OPT_TEXT, offsetof(struct runs_values, device_class), .word = "CLASS",
	 .help = "only runs of this device class"},
	{"outcome", 'o', OPT_CHOICE, offsetof(struct runs_values, outcome), .word = "OUTCOME",
	 .choices = outcome_names, .help = "only runs that ended so"},
	{"lane", 'l', OPT_TEXT, offsetof(struct runs_values, lane), .word = "LANE",
	 .help = "only runs of this lane"},
	{"recordable", 'r', OPT_FLAG, offsetof(struct runs_values, recordable),
	 .help = "only recordable passes"},
	{"limit", 'n', OPT_NUMBER, offsetof(struct runs_values, limit), .min = 1,
	 .max = LEDGER_MAX_LIST, .fallback = "20", .word = "N", .help = "the newest N"},
	JSON_ROW(runs_values),
};
static const struct opt appraise_opts[] = {
	{"lane", 'l', OPT_TEXT, offsetof(struct appraise_values, lane), .max = 64, .word = "LANE",
	 .help = "the lane that the log is of"},
	{"family", 'f', OPT_TEXT, offsetof(struct appraise_values, family), .max = 64,
	 .word = "FAMILY", .help = "the cache family of the suite"},
	{"cache-type", 't', OPT_TEXT, offsetof(struct appraise_values, cache_type), .max = 64,
	 .word = "TYPE", .help = "the K cache type that was asked for; else the family's first"},
	{"tokens", 'n', OPT_NUMBER, offsetof(struct appraise_values, tokens), .min = 1, .max = 1048576,
	 .word = "N", .help = "the tokens that were asked for; else those of the suite"},
	{"exit", 'e', OPT_TEXT, offsetof(struct appraise_values, exit), .max = 16, .fallback = "0",
	 .word = "N", .help = "the exit code that the engine ended with; of Windows in any form"},
	{"suite", 's', OPT_TEXT, offsetof(struct appraise_values, suite), .max = 4096,
	 .fallback = "eliza-1", .word = "SUITE", .help = "whose rules hold: a name or a FILE.json"},
	JSON_ROW(appraise_values),
};
static const struct opt show_opts[] = {JSON_ROW(json_values)};
static const struct opt logs_opts[] = {
	{"follow", 'f', OPT_FLAG, offsetof(struct logs_values, follow),
	 .help = "of a job that runs: print what comes until it ends"},
	{"raw", 0, OPT_FLAG, offsetof(struct logs_values, raw),
	 .help = "on a terminal too, print the bytes as they are"},
};
static const struct opt classes_opts[] = {JSON_ROW(json_values)};
static const struct opt why_opts[] = {
	{"limit", 'n', OPT_NUMBER, offsetof(struct why_values, limit), .min = 1, .max = 1000,
	 .fallback = "3", .word = "N", .help = "the newest N runs"},
};
static const struct opt hosts_opts[] = {
	{"names", 0, OPT_FLAG, offsetof(struct hosts_values, names),
	 .help = "the names alone, without asking anybody"},
	JSON_ROW(hosts_values),
};
static const struct opt pin_opts[] = {
	{"replace", 0, OPT_FLAG, offsetof(struct pin_values, replace),
	 .help = "pin the key that the agent shows now"},
};

#define OPTS(name) .opts = name##_opts, .opt_count = str_count(name##_opts)
#define HOSTS_COMPLETE .complete = CMD_NAME " hosts --names"

static const struct command commands[] = {
	{"run", "HOST...", "verify one or more hosts",
	 "Asks the agent of each HOST to build the engine, check the kernels and run the\n"
	 "model with every cache family of the suite; shows the progress; brings in the\n"
	 "signed report with all logs; judges them again here; stores them in the ledger.\n"
	 "HOST is a name of hosts.conf, or \"local\"; node[01-04,06],other names several.\n"
	 "Ctrl-C leaves the job running (attach goes on); twice cancels it.\n\n"
	 "examples:\n"
	 "  verify-controller run local --suite llama.cpp --model ~/smoke.gguf --source ~/llama.cpp\n"
	 "  verify-controller run gh200-lab-3 --suite eliza-1 --lane cpu\n"
	 "  verify-controller run 'node[01-04]' --only probe --json\n"
	 "  verify-controller run local --set cacheTypes=q8_0 --set tokens=8",
	 OPTS(run), sizeof(struct run_values), 1, HOSTS_MAX, cmd_run,
	 HOSTS_COMPLETE},
	{"attach", "[JOB]", "go on with a job that was left, and bring in its result",
	 "JOB is the id of a job, or the beginning of one. Without it: the only pending job,\n"
	 "or the list of them. A job of which nothing is missing is shown again.\n\n"
	 "example:\n  verify-controller attach 3fa9c1d2",
	 OPTS(attach), sizeof(struct json_values), 0, 1, cmd_attach},
	{"cancel", "JOB", "stop a job on its host",
	 "The job ends incomplete, with the report of what was done; attach brings it in.\n\n"
	 "example:\n  verify-controller cancel 3fa9c1d2",
	 .min_args = 1, .max_args = 1, .run = cmd_cancel},
	{"runs", NULL, "list the stored runs, newest first",
	 "examples:\n"
	 "  verify-controller runs --outcome fail --limit 5\n"
	 "  verify-controller runs --host gh200-lab-3 --json",
	 OPTS(runs), sizeof(struct runs_values), 0, 0, cmd_runs},
	{"show", "RUN", "show one run: verdict, gates, why, where the evidence is",
	 "RUN is the id of a run, or the beginning of one.\n\n"
	 "example:\n  verify-controller show 3fa9c1d2",
	 OPTS(show), sizeof(struct json_values), 1, 1, cmd_show},
	{"logs", "RUN [NAME]", "list or print the raw logs of a run",
	 "Without NAME: the list. NAME is a file, a gate (\"build\"), or a part of a name\n"
	 "that only one file has; report.json and envelope.json are there too. On a\n"
	 "terminal control characters are replaced; into a pipe the bytes go as they are.\n\n"
	 "examples:\n"
	 "  verify-controller logs 3fa9c1d2 build | less\n"
	 "  verify-controller logs 3fa9c1d2 --follow\n"
	 "  verify-controller logs 3fa9c1d2 envelope.json >report.dsse.json",
	 OPTS(logs), sizeof(struct logs_values), 1, 2, cmd_logs},
	{"appraise", "LOG", "judge an engine's log that you were handed",
	 "LOG is what llama-completion printed, or a whole log of a run's gate; - reads standard\n"
	 "input. Says the outcome, the line that decides, three facts (accepted, allocated,\n"
	 "dispatched) and where each node of the graph was computed, by the very code that\n"
	 "judges a run. An exit code of 0 is assumed.\n\n"
	 "examples:\n"
	 "  verify-controller appraise --lane cuda --family turbo3 --cache-type tbq3_0 run.log\n"
	 "  verify-controller appraise -l vulkan -t q8_0 --tokens 8 --json run.log\n\n"
	 "Exit status: 0 the log shows a pass, 1 fail, 2 usage, 3 blocked, 6 incomplete.",
	 OPTS(appraise), sizeof(struct appraise_values), 1, 1, cmd_appraise},
	{"classes", NULL, "which device classes have passed which claim, and which not",
	 "A pass is a recordable one, with date, commit and driver. \"why CLASS\" explains.",
	 OPTS(classes), sizeof(struct json_values), 0, 0, cmd_classes},
	{"why", "CLASS", "why a device class stands where it does",
	 "CLASS is a device class, or the beginning of one.\n\n"
	 "example:\n  verify-controller why linux-x64-cpu/epyc",
	 OPTS(why), sizeof(struct why_values), 1, 1, cmd_why},
	{"hosts", NULL, "list the hosts, ask each agent how it is",
	 "Hosts stand in $XDG_CONFIG_HOME/verify/hosts.conf (~/.config):\n\n"
	 "  [gh200-lab-3]\n"
	 "  url = http://127.0.0.1:8420     or unix:/run/verify/agent.sock\n"
	 "  lane = cpu                      and suite, model, source, source-ref, tags",
	 OPTS(hosts), sizeof(struct hosts_values), 0, 0, cmd_hosts},
	{"pin", "HOST", "show or replace the key that is pinned for a host",
	 "The key of a host's agent is pinned at first contact; another one is refused from\n"
	 "then on. Compare the fingerprint with the one that the host itself tells, there:\n\n"
	 "  curl --unix-socket ~/.local/state/verify-agent/agent.sock http://agent/v1/health\n\n"
	 "examples:\n"
	 "  verify-controller pin gh200-lab-3\n"
	 "  verify-controller pin gh200-lab-3 --replace",
	 OPTS(pin), sizeof(struct pin_values), 1, 1, cmd_pin,
	 HOSTS_COMPLETE},
	{"ledger", "stats|check|verify", "look after the ledger",
	 "stats: counts and sizes. check: the ledger agrees with itself. verify: that, and\n"
	 "every stored report and log is read again and compared with its digest.",
	 .min_args = 1, .max_args = 1, .run = cmd_ledger},
};

static const struct program program = {
	.name = CMD_NAME,
	.summary = "Tells, with evidence, on which device classes inference code really works.",
	.version = VERSION,
	.help = "a first verdict:\n"
		"  verify-agent serve &\n"
		"  verify-controller run local --suite llama.cpp --model MODEL.gguf --source LLAMA.CPP\n"
		"  verify-controller classes\n\n"
		"exit status: 0 recordable pass, 1 fail, 2 usage or bad input, 3 blocked,\n"
		"4 refused (keys, signatures), 5 unreachable, 6 incomplete or timed out,\n"
		"7 all that ran passed but is not recordable; of several hosts the first in\n"
		"the order 2, 1, 6, 5, 4, 3, 7, 0",
	.commands = commands,
	.count = str_count(commands),
};

/* A host where a command belongs is a slip that deserves a better answer. */
static bool
is_host(const char *word)
{
	struct inventory *inv = NULL;
	struct err e = {0};
	bool found;

	if (inventory_load(NULL, &inv, &e))
		return false;
	found = inventory_find(inv, word) != NULL;
	inventory_free(inv);
	return found;
}

int
main(int argc, char **argv)
{
	struct err e = {0};

	/* Only what characters are, never how numbers are written. */
	setlocale(LC_CTYPE, "");
	if (argc > 1 && opt_find(&program, argv[1]) == NULL && is_host(argv[1])) {
		err_set(&e, ERR_USAGE, "\"%.60s\" is a host, not a command", argv[1]);
		err_hint(&e, "%s run %.60s", CMD_NAME, argv[1]);
		return cmd_fail(&e);
	}
	return opt_main(&program, argc, argv);
}
