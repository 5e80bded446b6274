/* The command line that cpu-verify, cuda-verify and the others share. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/opt.h"
#include "common/plat.h"
#include "common/str.h"
#include "kernels/bench.h"
#include "kernels/encode_check.h"
#include "kernels/exhaustive.h"
#include "kernels/property.h"
#include "kernels/verify.h"

#define MAX_ONLY 64
#define MAX_FILES 256
#define MAX_INDEX 1000000

struct values {
	bool json, list, kernels, controls, bench, encoders, software;
	const char *device, *fixtures, *only, *tolerance, *properties;
	struct opt_list fixture;
	uint64_t exhaustive, seed, threads, gqa, keys;
};

static const char *const depths[] = {"none", "quick", "full", NULL};

#define AT(field) offsetof(struct values, field)
static const struct opt options[] = {
	{"device", 'd', OPT_TEXT, AT(device), .word = "UUID|INDEX|all", .max = 64,
	 .help = "the device: its UUID, 8 digits of it or more, or its index; all: one after "
		 "the other"},
	{"list", 'l', OPT_FLAG, AT(list), .help = "list the devices and do nothing"},
	{"kernels", 0, OPT_FLAG, AT(kernels),
	 .help = "print the table of kernels and do nothing"},
	{"software", 0, OPT_FLAG, AT(software),
	 .help = "allow devices that are software, such as lavapipe"},
	{"fixture", 'f', OPT_LIST, AT(fixture), .word = "FILE",
	 .help = "check with this file instead; may be repeated, more files may follow"},
	{"fixtures", 0, OPT_TEXT, AT(fixtures), .word = "DIR",
	 .help = "read the fixtures from here instead of the built-in ones"},
	{"only", 'o', OPT_TEXT, AT(only), .word = "NAME,...", .max = 2048,
	 .help = "these kernels only; turbo3[rows-4] is a variant, turbo3[*] is all of them"},
	{"tolerance", 't', OPT_TEXT, AT(tolerance), .word = "T", .max = 32,
	 .help = "largest difference that is not reached, for all checks"},
	{"negative-control", 0, OPT_FLAG, AT(controls),
	 .help = "plant an error and a NaN for each kernel, show that they are caught, and "
		 "check nothing else"},
	{"properties", 'p', OPT_CHOICE, AT(properties), .choices = depths, .word = "DEPTH",
	 .help = "random problems against the reference: none, quick or full; quick is the "
		 "default of a run without --only, --fixture, --exhaustive, --bench and "
		 "--encoders"},
	{"exhaustive", 'x', OPT_NUMBER, AT(exhaustive), .min = 1,
	 .max = UINT64_C(1000000000000), .word = "[N]",
	 .help = "compare N random scores of each score kernel, 300000000 when no N follows"},
	{"bench", 'b', OPT_FLAG, AT(bench),
	 .help = "measure the kernels against a copy on the same device"},
	{"encoders", 'e', OPT_FLAG, AT(encoders),
	 .help = "hold the encoders against the reference; with --only those of its names "
		 "that are formats"},
	{"gqa", 0, OPT_NUMBER, AT(gqa), .min = 1, .max = 64, .word = "N",
	 .help = "benchmark: this many query heads for a kv head only"},
	{"keys", 0, OPT_NUMBER, AT(keys), .min = 1, .max = UINT64_C(1) << 28, .word = "N",
	 .help = "benchmark: this many keys of a kv head only"},
	{"seed", 's', OPT_NUMBER, AT(seed), .max = UINT64_MAX, .fallback = "1", .word = "N",
	 .help = "of all that is random; 0 draws one and prints it"},
	{"threads", 0, OPT_NUMBER, AT(threads), .max = 256, .fallback = "0", .word = "N",
	 .help = "of the reference in --exhaustive; 0 is one for each processor"},
	{"json", 'j', OPT_FLAG, AT(json), .help = "JSON on standard output, for programs"},
};

static const struct command command = {
	.summary = "check kernels of KV-cache formats against numbers that are known",
	.arguments = "[FILE...]",
	.help = "Checks every kernel and variant of a device against its fixture, random\n"
		"problems against the reference, and two planted errors, which must be caught.\n"
		"Guards around all operands must stay intact; a NaN never passes; what the\n"
		"device does not have is blocked.\n\n"
		"  PROGRAM                                   all of it, on the best device\n"
		"  PROGRAM --list                            which devices there are\n"
		"  PROGRAM --only 'turbo3[*]' -p full        one kernel, in depth\n"
		"  PROGRAM --fixture mine.json               a fixture of your own\n"
		"  PROGRAM --exhaustive --only qjl           300 million scores\n"
		"  PROGRAM --bench --only turbo3 --gqa 8     how fast, against a copy\n\n"
		"Exit status: 0 all pass, 1 a wrong number or a planted error that was missed,\n"
		"2 bad usage or a fixture that can not be used, 3 no device or no such kernel on\n"
		"it, 6 the device failed or the run was stopped.",
	.opts = options,
	.opt_count = str_count(options),
	.size = sizeof(struct values),
};

/* A run of the program. */
struct session {
	const struct kernel_backend *backend;
	char name[32];           /* "cpu-verify" */
	struct values v;
	struct verify_options o;
	char only_text[2049];
	char *only[MAX_ONLY];
	const char *files[MAX_FILES];
	uint64_t seed;
	bool colour, progress, several;
	cJSON *reports;          /* several, as JSON */
	struct verify_report sum; /* outcome and why of all devices */
	struct backend_device list[BACKEND_DEVICES];
	size_t count;
	char quiet_reason[320];  /* why the list is empty */
};

static volatile sig_atomic_t stopped;

static void
stop(int signal)
{
	(void)signal;
	stopped = 1;
}

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
read_only(struct session *s, struct err *e)
{
	int n;

	if (str_copy(s->only_text, sizeof s->only_text, s->v.only, e))
		return -1;
	if ((n = str_split(s->only_text, true, s->only, MAX_ONLY)) <= 0)
		return err_set(e, ERR_USAGE, "--only: found %s, wanted 1 to %d names",
			       n == 0 ? "none" : "more", MAX_ONLY);
	s->o.only = (const char *const *)s->only;
	s->o.only_count = (size_t)n;
	return 0;
}

static int
read_files(struct session *s, char **args, int n, struct err *e)
{
	int i;

	if (n > 0 && s->v.fixture.count == 0) {
		err_set(e, ERR_USAGE, "an argument too many: \"%.60s\"", args[0]);
		return err_hint(e, "a fixture is given with --fixture");
	}
	if (s->v.fixture.count > 0 && (s->v.fixtures != NULL || s->v.controls))
		return err_set(e, ERR_USAGE, "--fixture and --%s exclude each other",
			       s->v.controls ? "negative-control" : "fixtures");
	for (i = 0; i < s->v.fixture.count; i++)
		s->files[s->o.file_count++] = s->v.fixture.item[i];
	for (i = 0; i < n; i++) {
		if (s->o.file_count == MAX_FILES)
			return err_set(e, ERR_USAGE, "more than %d files", MAX_FILES);
		s->files[s->o.file_count++] = args[i];
	}
	s->o.files = s->files;
	return 0;
}

static int
read_values(struct session *s, char **args, int n, struct err *e)
{
	struct values *v = &s->v;

	if ((v->only && read_only(s, e)) || read_files(s, args, n, e) ||
	    (v->tolerance && read_tolerance(v->tolerance, &s->o.tolerance, e)))
		return -1;
	if (!v->bench && (v->gqa || v->keys))
		return err_set(e, ERR_USAGE, "--%s is about --bench", v->gqa ? "gqa" : "keys");
	s->o.dir = v->fixtures;
	s->o.controls_only = v->controls;
	if ((s->seed = v->seed) == 0 && plat_random(&s->seed, sizeof s->seed, e))
		return -1;
	if (v->properties == NULL)
		v->properties = v->only || s->o.file_count || v->controls ||
						v->exhaustive || v->bench ||
						v->encoders
					? "none"
					: "quick";
	s->colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
	s->progress = isatty(STDERR_FILENO);
	return 0;
}

/* ---- tables ---- */

static int
print_json(cJSON *o)
{
	char *text = o ? json_text(o, true) : NULL;
	int rc = text == NULL || fputs(text, stdout) == EOF ? -1 : 0;

	free(text);
	cJSON_Delete(o);
	return rc;
}

static int
print_help(const struct session *s)
{
	struct command c = command;
	struct program program = {.name = s->name};
	char *text, *rest, *at;
	int rc = EXIT_INCOMPLETE;

	c.name = s->name;
	text = opt_help_command(&program, &c);
	/* Its usage line is that of a command inside a program. */
	if (text != NULL && (rest = strchr(text, '\n')) != NULL) {
		printf("usage: %s [options] [FILE...]", s->name);
		for (; (at = strstr(rest, "PROGRAM")) != NULL; rest = at + strlen("PROGRAM"))
			printf("%.*s%s", (int)(at - rest), rest, s->name);
		if (printf("%s", rest) > 0 && fflush(stdout) == 0)
			rc = EXIT_PASS;
	}
	free(text);
	return rc;
}

/* The backends that have the kernel. */
static bool
add_places(cJSON *o, const struct kernel *k)
{
	cJSON *a = json_add_array(o, "backends"), *name;
	size_t i;

	for (i = 0; a != NULL && i < KERNEL_PLACES; i++)
		if (kernel_is_on(k, kernel_places[i].name) &&
		    ((name = cJSON_CreateString(kernel_places[i].name)) == NULL ||
		     !cJSON_AddItemToArray(a, name)))
			return false;
	return a != NULL;
}

static cJSON *
kernels_json(void)
{
	cJSON *o = cJSON_CreateObject(), *a = json_add_array(o, "kernels"), *c;
	const struct kernel *k;
	size_t i;

	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		c = cJSON_CreateObject();
		if (c == NULL || a == NULL || !cJSON_AddItemToArray(a, c) ||
		    !json_add_str(c, "name", k->name) ||
		    !json_add_str(c, "kernel", k->kernel) ||
		    !json_add_str(c, "fixture", k->file) ||
		    !json_add_int(c, "keyBytes", (int64_t)k->k_bytes * k->k_blocks) ||
		    !json_add_int(c, "valueBytes", (int64_t)k->v_bytes * k->v_blocks) ||
		    !json_add_int(c, "queryFloats", k->q_dim) ||
		    !json_add_bool(c, "useQjl", k->use_qjl) ||
		    !json_add_bool(c, "causal", k->causal) ||
		    !json_add_num(c, "tolerance", k->tolerance) || !add_places(c, k)) {
			cJSON_Delete(o);
			return NULL;
		}
	}
	return o;
}

static int
print_kernels(const struct session *s)
{
	const struct kernel *k;
	size_t i, j, n;

	if (s->v.json)
		return print_json(kernels_json());
	printf("%-28s %5s %5s %5s %7s %6s %9s  %s\n", "kernel", "query", "key", "value",
		"use_qjl", "causal", "tolerance", "fixture");
	for (i = 0; i < KERNEL_COUNT; i++) {
		k = &kernels[i];
		printf("%-28s %5u %5u %5u %7s %6s %9.3g  %s\n", k->name, k->q_dim,
			k->k_bytes * k->k_blocks, k->v_bytes * k->v_blocks,
			k->use_qjl ? "yes" : "no", k->causal ? "yes" : "no", k->tolerance,
			k->file);
	}
	printf("query: floats of a head; key, value: bytes of one\n");
	for (i = 0; i < KERNEL_PLACES; i++) {
		for (n = j = 0; j < KERNEL_COUNT; j++)
			n += kernel_is_on(&kernels[j], kernel_places[i].name);
		printf("%-9s %2zu of %d kernels: %s\n", kernel_places[i].name, n, KERNEL_COUNT,
			kernel_places[i].how);
	}
	return 0;
}

static int
print_list(const struct session *s)
{
	cJSON *o, *a;
	const struct backend_device *d;
	char name[256], driver[256], note[320];
	size_t i;

	if (s->v.json) {
		o = cJSON_CreateObject();
		a = json_add_str(o, "tool", s->name) ? json_add_array(o, "devices") : NULL;
		for (i = 0; a != NULL && i < s->count; i++)
			cJSON_AddItemToArray(a, verify_device_json(&s->list[i]));
		return print_json(o);
	}
	for (i = 0; i < s->count; i++) {
		d = &s->list[i];
		str_show(name, sizeof name, d->name, strlen(d->name));
		str_show(driver, sizeof driver, d->driver, strlen(d->driver));
		str_show(note, sizeof note, d->note, strlen(d->note));
		printf("%u  %s (%s)%s%s\n", d->index, name, d->arch,
			d->software ? ", software" : "", d->emulated ? ", emulated" : "");
		printf("   uuid %s, driver %s%s%s%s%s\n", d->uuid[0] ? d->uuid : "none",
			driver[0] ? driver : "unknown", d->api[0] ? ", api " : "", d->api,
			d->pci[0] ? ", pci " : "", d->pci);
		if (note[0] != '\0')
			printf("   can not be used: %s\n", note);
	}
	return 0;
}

/* ---- runs ---- */

static void
show_progress(void *arg, const char *what, uint64_t done, uint64_t all)
{
	const struct session *s = arg;

	if (!s->progress)
		return;
	if (done >= all)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr, "\r%s: %.1f %%\033[K", what, 100.0 * (double)done / (double)all);
	fflush(stderr);
}

/* What takes long is done with the default variants unless others are named. */
static void
leave_defaults(const struct session *s, struct verify_item *items, size_t *count)
{
	size_t i, n = 0;

	for (i = 0; i < *count; i++)
		if (s->o.only_count > 0 ||
		    (items[i].variant == 0 && !items[i].kernel->causal))
			items[n++] = items[i];
	*count = n;
}

/* What was measured on one device. */
struct parts {
	struct verify_report report;
	struct property_report property;
	struct exhaustive_report exhaustive;
	struct bench_report bench;
	struct encode_report encoders;
	bool has_property, has_exhaustive, has_bench, has_encoders;
};

/* Those names of --only that are formats. */
static int
run_encoders(const struct session *s, struct rig *r, struct encode_report *out,
	struct err *e)
{
	const char *names[KERNEL_FORMATS];
	struct encode_options o = {.only = names, .seed = s->seed};
	size_t i, f;

	for (f = 0; f < KERNEL_FORMATS; f++)
		for (i = 0; i < s->o.only_count; i++)
			if (str_eq(s->o.only[i], kernel_formats[f].name)) {
				names[o.only_count++] = kernel_formats[f].name;
				break;
			}
	if (s->o.only_count > 0 && o.only_count == 0)
		return err_set(e, ERR_USAGE, "--encoders: no name of --only is a format");
	return encode_check_run(r, &o, out, e);
}

static int
run_parts(struct session *s, struct rig *r, struct parts *p, struct err *e)
{
	struct verify_item *items = calloc(VERIFY_ITEMS, sizeof *items);
	struct verify_task t = {.items = items, .seed = s->seed,
		.tolerance = s->o.tolerance, .stop = &stopped, .progress = show_progress,
		.progress_arg = s};
	struct bench_options bench = {
		.gqa = (uint32_t)s->v.gqa, .keys = (uint32_t)s->v.keys};
	int rc = -1;

	if (items == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the list of checks");
		goto out;
	}
	if (verify_items(r, s->o.only, s->o.only_count, items, &t.item_count, e) ||
	    verify_run(r, &s->o, &p->report, e))
		goto out;
	if ((p->has_property = !str_eq(s->v.properties, "none"))) {
		if (property_run(r, &t, str_eq(s->v.properties, "full"), &p->property, e))
			goto out;
		verify_report_join(&p->report, p->property.outcome, p->property.why);
	}
	leave_defaults(s, items, &t.item_count);
	if ((p->has_exhaustive = s->v.exhaustive > 0)) {
		if (exhaustive_run(r, &t, s->v.exhaustive, (unsigned)s->v.threads,
			    &p->exhaustive, e))
			goto out;
		verify_report_join(&p->report, p->exhaustive.outcome, p->exhaustive.why);
	}
	if ((p->has_encoders = s->v.encoders)) {
		if (run_encoders(s, r, &p->encoders, e))
			goto out;
		verify_report_join(&p->report, p->encoders.outcome, p->encoders.why);
	}
	if ((p->has_bench = s->v.bench)) {
		if (bench_run(r, &t, &bench, &p->bench, e))
			goto out;
		verify_report_join(&p->report, p->bench.outcome, p->bench.why);
	}
	rc = 0;
out:
	free(items);
	return rc;
}

static cJSON *
parts_json(const struct session *s, const struct parts *p)
{
	cJSON *o = verify_json(&p->report, s->name);

	if (o == NULL || (p->has_property &&
				 !json_add(o, "properties", property_json(&p->property))) ||
	    (p->has_exhaustive &&
		    !json_add(o, "exhaustive", exhaustive_json(&p->exhaustive))) ||
	    (p->has_encoders &&
		    !json_add(o, "encoders", encode_check_json(&p->encoders))) ||
	    (p->has_bench && !json_add(o, "bench", bench_json(&p->bench)))) {
		cJSON_Delete(o);
		return NULL;
	}
	return o;
}

static void
print_parts(const struct session *s, const struct parts *p)
{
	const struct verify_report *r = &p->report;
	size_t i, caught = 0;

	verify_print(stdout, r, s->colour);
	if (p->has_property)
		property_print(stdout, &p->property, s->colour);
	if (p->has_exhaustive)
		exhaustive_print(stdout, &p->exhaustive, s->colour);
	if (p->has_encoders)
		encode_check_print(stdout, &p->encoders, s->colour);
	if (p->has_bench)
		bench_print(stdout, &p->bench, s->colour);
	for (i = 0; i < r->control_count; i++)
		caught += r->controls[i].caught;
	if (s->o.controls_only)
		printf("%zu of %zu planted errors were caught: %s\n", caught,
			r->control_count, verify_mark(r->outcome, s->colour));
	else
		printf("%zu passed, %zu failed, %zu blocked: %s\n", r->passed, r->failed,
			r->blocked, verify_mark(r->outcome, s->colour));
}

static void
parts_fini(struct parts *p)
{
	verify_report_fini(&p->report);
	property_fini(&p->property);
	exhaustive_fini(&p->exhaustive);
	bench_fini(&p->bench);
}

/* 0 when the report was made and written, whatever it says. */
static int
run_device(struct session *s, const struct backend_device *d, struct err *e)
{
	struct parts *p = calloc(1, sizeof *p);
	struct rig r = {0};
	cJSON *o;
	int rc = -1;

	if (p == NULL) {
		err_set(e, ERR_NOMEM, "no memory for a report");
		goto out;
	}
	if (rig_open(s->backend, d, &r, e) || run_parts(s, &r, p, e))
		goto out;
	verify_report_join(&s->sum, p->report.outcome, p->report.why);
	if (!s->v.json)
		print_parts(s, p);
	else if ((o = parts_json(s, p)) == NULL ||
		 (s->several ? !cJSON_AddItemToArray(s->reports, o) : print_json(o) != 0)) {
		err_set(e, ERR_NOMEM, "no memory, or standard output can not be written");
		goto out;
	}
	rc = 0;
out:
	rig_close(&r);
	if (p != NULL)
		parts_fini(p);
	free(p);
	return rc;
}

/* Every device that can be used; one that can not be opened is a failure of the run. */
static int
run_all(struct session *s, struct err *e)
{
	cJSON *o = cJSON_CreateObject();
	size_t i, n = 0;

	s->several = true;
	s->reports = json_add_array(o, "reports");
	for (i = 0; i < s->count && s->reports != NULL; i++) {
		if (s->list[i].note[0] != '\0' ||
		    (s->list[i].software && !s->list[i].emulated && !s->v.software))
			continue;
		if (n++ > 0 && !s->v.json)
			printf("\n");
		if (run_device(s, &s->list[i], e)) {
			cJSON_Delete(o);
			return -1;
		}
	}
	if (n == 0 || s->reports == NULL) {
		cJSON_Delete(o);
		/* Says why there is none. */
		return backend_choose(s->backend, s->list, s->count, NULL, s->v.software, &i,
			       e)
			       ? -1
			       : err_set(e, ERR_NOMEM, "no memory for the reports");
	}
	if (!s->v.json) {
		cJSON_Delete(o);
		return 0;
	}
	if (!json_add_int(o, "schemaVersion", 1) || !json_add_str(o, "tool", s->name) ||
	    !json_add_str(o, "outcome", outcome_name(s->sum.outcome))) {
		cJSON_Delete(o);
		o = NULL;
	}
	return print_json(o) ? err_set(e, ERR_NOMEM,
				       "no memory, or standard output can not be written")
			     : 0;
}

static int
run_chosen(struct session *s, struct err *e)
{
	size_t i;

	if (str_eq(s->v.device, "all"))
		return run_all(s, e);
	if (backend_choose(s->backend, s->list, s->count, s->v.device, s->v.software, &i, e)) {
		if (s->count == 0 && s->quiet_reason[0] != '\0')
			err_wrap(e, "%s", s->quiet_reason);
		return -1;
	}
	return run_device(s, &s->list[i], e);
}

/* Between the words: a number may follow --exhaustive, but need not. */
static int
spell_out(int argc, char **argv, char **out)
{
	static char all[] = "--exhaustive=300000000";
	int i, n = 0;

	for (i = 1; i < argc; i++)
		if ((str_eq(argv[i], "--exhaustive") || str_eq(argv[i], "-x")) &&
		    (i + 1 == argc || strspn(argv[i + 1], "0123456789") == 0 ||
			    strspn(argv[i + 1], "0123456789") != strlen(argv[i + 1])))
			out[n++] = all;
		else
			out[n++] = argv[i];
	return n;
}

static void
catch_signals(void)
{
	struct sigaction a = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

	stopped = 0;
	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

static int
run(struct session *s, int argc, char **argv, struct err *e)
{
	char **words = calloc((size_t)argc + 1, sizeof *words);
	char *args[MAX_FILES];
	bool help = false;
	int n = 0, status = -1;

	if (words == NULL) {
		err_set(e, ERR_NOMEM, "no memory for the arguments");
		goto out;
	}
	if (opt_parse(options, str_count(options), spell_out(argc, argv, words), words,
		    &s->v, args, MAX_FILES, &n, &help, e))
		goto out;
	if (help) {
		status = print_help(s);
		goto out;
	}
	if (read_values(s, args, n, e))
		goto out;
	if (s->v.kernels) {
		status = print_kernels(s) ? EXIT_INCOMPLETE : EXIT_PASS;
		goto out;
	}
	if (s->backend->list(s->list, BACKEND_DEVICES, &s->count, e))
		goto out;
	if (s->count == 0)
		str_show(s->quiet_reason, sizeof s->quiet_reason, e->msg, strlen(e->msg));
	memset(e, 0, sizeof *e);
	if (s->v.list && print_list(s)) {
		err_set(e, ERR_NOMEM, "no memory, or standard output can not be written");
		goto out;
	}
	if (s->v.list && s->count > 0) {
		status = EXIT_PASS;
		goto out;
	}
	catch_signals();
	if (run_chosen(s, e) == 0)
		status = verify_exit(&s->sum);
out:
	free(words);
	return status;
}

int
verify_main(const struct kernel_backend *b, int argc, char **argv)
{
	struct session *s = calloc(1, sizeof *s);
	struct err e = {0};
	int status = -1;

	if (s == NULL)
		err_set(&e, ERR_NOMEM, "no memory for a session");
	else {
		s->backend = b;
		snprintf(s->name, sizeof s->name, "%.20s-verify", b->name);
		status = run(s, argc, argv, &e);
	}
	/* A verdict that nobody could read is none. */
	if (status >= 0 && (fflush(stdout) || ferror(stdout))) {
		err_set(&e, ERR_IO, "standard output can not be written");
		status = -1;
	}
	if (status < 0) {
		err_print(s ? s->name : b->name, &e);
		status = err_exit(e.code);
	}
	free(s);
	return status;
}
