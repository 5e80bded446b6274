#include "tests/unit/ledger_help.h"

#include <math.h>

#include "common/digest.h"

/* One of everything, with what is hard to store. */
static const struct ledger_gate gates_of_run[] = {
	{"host", NULL, "pass", "none", "Debian 12 on x86_64", NULL, JUNE, JUNE + 10,
	 D1},
	{"graph-smoke/turbo3", "turbo3", "blocked", "family_not_in_build",
	 "the build accepts f16, q8_0", "build an engine that has the cache type", -1,
	 -1, NULL},
};
static const struct ledger_fixture fixtures_of_run[] = {
	{"turbo3", D2, 4096, 0.000125, 1e-300, -0.0, 0, 0.001, "pass"},
	{"polar", D1, 128, NAN, INFINITY, -INFINITY, 3, 0.001, "fail"},
};
static const struct ledger_smoke smokes_of_run[] = {
	{"q8_0", "q8_0", "q8_0", "llama-completion", "CUDA0", 4, 5, D1, 0.5, "pass",
	 "none"},
	{"turbo3", NULL, NULL, NULL, NULL, 4, -1, NULL, NAN, "blocked",
	 "family_not_in_build"},
};
static const struct ledger_code code_of_run[] = {
	{"cuda", "NVIDIA H200", "sm_90", "score.fatbin", D1, "sm_90a"},
	{"cuda", NULL, NULL, "qjl.fatbin", D2, NULL},
};
static const struct ledger_artifact artifacts_of_run[] = {
	{"host.log", 123, D1, false},
	{"linux-x64-cuda-q8_0-q8_0.log", 4294967296, D2, true},
};

/* ---- storing and reading ---- */

static void
same_text(const char *got, const char *want)
{
	assert_string_equal(got, want != NULL ? want : "");
}

static void
rows_are_those_stored(const struct ledger_run *r)
{
	assert_int_equal(r->gate_count, 2);
	assert_string_equal(r->gates[1].name, "graph-smoke/turbo3");
	assert_string_equal(r->gates[1].hint, gates_of_run[1].hint);
	assert_int_equal(r->gates[1].started_ms, -1);
	assert_int_equal(r->gates[0].finished_ms, JUNE + 10);
	assert_string_equal(r->gates[0].log_digest, D1);
	assert_string_equal(r->gates[1].log_digest, "");
	assert_int_equal(r->fixture_count, 2);
	assert_true(r->fixtures[0].max_abs == 0.000125);
	assert_true(r->fixtures[0].max_rel == 1e-300);
	assert_true(r->fixtures[0].nmse == 0);
	assert_true(isnan(r->fixtures[1].max_abs));
	assert_true(isnan(r->fixtures[1].max_rel));
	assert_true(isnan(r->fixtures[1].nmse));
	assert_int_equal(r->fixtures[1].non_finite, 3);
	assert_string_equal(r->fixtures[1].outcome, "fail");
	assert_int_equal(r->smoke_count, 2);
	assert_string_equal(r->smokes[0].kv_device, "CUDA0");
	assert_int_equal(r->smokes[0].tokens_generated, 5);
	assert_int_equal(r->smokes[1].tokens_generated, -1);
	assert_string_equal(r->smokes[1].cache_applied, "");
	assert_string_equal(r->smokes[1].reason, "family_not_in_build");
	assert_int_equal(r->artifact_count, 2);
	assert_true(r->artifacts[1].bytes == 4294967296);
	assert_true(r->artifacts[1].truncated);
	assert_false(r->artifacts[0].truncated);
	assert_int_equal(r->code_count, 2);
	assert_string_equal(r->code[0].backend, "cuda");
	assert_string_equal(r->code[0].device, "NVIDIA H200");
	assert_string_equal(r->code[0].arch, "sm_90");
	assert_string_equal(r->code[0].how, "sm_90a");
	assert_string_equal(r->code[1].device, "");
	assert_string_equal(r->code[1].name, "qjl.fatbin");
	assert_string_equal(r->code[1].digest, D2);
}

static void
members_are_those_stored(const struct ledger_run *got, const struct ledger_run *want)
{
	same_text(got->run_id, want->run_id), same_text(got->host, want->host);
	same_text(got->device_class, want->device_class);
	same_text(got->lane, want->lane), same_text(got->target, want->target);
	same_text(got->suite, want->suite);
	same_text(got->suite_digest, want->suite_digest);
	same_text(got->outcome, want->outcome), same_text(got->reason, want->reason);
	same_text(got->detail, want->detail);
	same_text(got->not_recordable, want->not_recordable);
	same_text(got->disagreement, want->disagreement);
	same_text(got->claims[1].outcome, want->claims[1].outcome);
	same_text(got->claims[1].reason, want->claims[1].reason);
	same_text(got->claims[2].outcome, "");
	same_text(got->source_origin, want->source_origin);
	same_text(got->source_commit, want->source_commit);
	same_text(got->source_tree, want->source_tree);
	same_text(got->source_dirty, want->source_dirty);
	same_text(got->model_name, want->model_name);
	same_text(got->model_sha256, want->model_sha256);
	same_text(got->device_name, want->device_name);
	same_text(got->device_driver, want->device_driver);
	same_text(got->device_uuid, want->device_uuid);
	same_text(got->agent_version, want->agent_version);
	same_text(got->agent_key, want->agent_key);
	same_text(got->controller_version, want->controller_version);
	same_text(got->envelope_digest, want->envelope_digest);
	same_text(got->report_digest, want->report_digest);
	assert_int_equal(got->recordable, want->recordable);
	assert_int_equal(got->agent_recordable, want->agent_recordable);
	assert_int_equal(got->model_synthetic, want->model_synthetic);
	assert_int_equal(got->model_bytes, want->model_bytes);
	assert_int_equal(got->started_ms, want->started_ms);
	assert_int_equal(got->finished_ms, want->finished_ms);
	assert_int_equal(got->appended_ms, want->appended_ms);
	assert_int_equal(got->exit_code, want->exit_code);
}

static void
a_run_comes_back_as_it_was_stored(void **state)
{
	struct ledger_run r = run_of(ID("a"), "blocked", false);
	struct ledger *l = opened();
	struct ledger_list list;

	(void)state;
	r.gates = gates_of_run, r.gate_count = 2;
	r.fixtures = fixtures_of_run, r.fixture_count = 2;
	r.smokes = smokes_of_run, r.smoke_count = 2;
	r.artifacts = artifacts_of_run, r.artifact_count = 2;
	r.code = code_of_run, r.code_count = 2;
	r.agent_recordable = true,
	r.disagreement = "the agent says it is; the log does not";
	r.source_dirty = D2, r.exit_code = 3;
	add(l, &r);
	assert_int_equal(ledger_get(l, ID("a"), &list, NULL), 0);
	assert_int_equal(list.count, 1);
	assert_int_equal(list.runs[0].seq, 1);
	members_are_those_stored(&list.runs[0], &r);
	rows_are_those_stored(&list.runs[0]);
	ledger_list_fini(&list);
	check_is_clean(l);
	ledger_close(l);
	view_says(
		"SELECT count(*) FROM fixtures WHERE max_abs IS NULL AND nmse IS NULL",
		"1");
	view_says("SELECT started_at || finished_at FROM gates WHERE n = 1",
		  "2026-06-01T10:00:00Z2026-06-01T10:00:00Z");
}

static void
unknown_numbers_and_absent_texts_stay_so(void **state)
{
	struct ledger_run r = {.run_id = ID("b"),
			       .host = "h",
			       .lane = "cuda",
			       .target = "linux-x64-cuda",
			       .suite = "s",
			       .outcome = "incomplete",
			       .reason = "agent_died",
			       .controller_version = "0.1.0",
			       .model_bytes = -1,
			       .started_ms = -1,
			       .finished_ms = -1,
			       .exit_code = -1};
	struct ledger *l = opened();
	struct ledger_list list;

	(void)state;
	add(l, &r);
	assert_int_equal(ledger_get(l, "b", &list, NULL), 0);
	assert_string_equal(list.runs[0].device_class, "");
	assert_string_equal(list.runs[0].agent_key, "");
	assert_int_equal(list.runs[0].exit_code, -1);
	assert_int_equal(list.runs[0].finished_ms, -1);
	ledger_list_fini(&list);
	check_is_clean(l);
	ledger_close(l);
	view_says("SELECT exit_code IS NULL AND class_id IS NULL AND agent_key IS NULL "
		  "AND finished_at IS NULL FROM runs",
		  "1");
}

static void
the_leaf_hash_is_that_of_the_documented_bytes(void **state)
{
	/* The bytes are written out by hand; the hash is OpenSSL's over 00 and them. */
	static const char want[] =
		"verify-ledger-entry=1\nkind=3:run\nhost=1:h\nclass=0:\n"
		"run_id=32:" ID(
			"c") "\nlane=3:cpu\ntarget=13:linux-x64-cpu\nsuite=1:s\n"
			     "suite_digest=0:\noutcome=4:fail\nreason=16:fixture_"
			     "mismatch\ndetail=3:a\nb\n"
			     "recordable=0\nnot_recordable=0:\nagent_recordable="
			     "1\ndisagreement=0:\n"
			     "fixture_parity=4:fail\nfixture_parity_reason=0:\nlegacy_"
			     "kv_graph=0:\n"
			     "legacy_kv_graph_reason=0:\ngemma_runtime=0:\ngemma_"
			     "runtime_reason=0:\n"
			     "source_origin=0:\nsource_commit=0:\nsource_tree=0:"
			     "\nsource_dirty=0:\n"
			     "model_name=0:\nmodel_sha256=0:\nmodel_bytes=-\nmodel_"
			     "synthetic=0\n"
			     "device_name=0:\ndevice_driver=0:\ndevice_uuid=0:\nagent_"
			     "version=0:\n"
			     "agent_key=0:\ncontroller_version=5:0.1.0\nstarted_ms="
			     "1\nfinished_ms=2\n"
			     "appended_ms=3\nexit_code=1\nenvelope_digest=0:\nreport_"
			     "digest=0:\n"
			     "gates=0\nfixtures=1\nname=5:polar\ndigest=0:\nelements="
			     "7\n"
			     "max_abs=3ff0000000000000\nmax_rel=-\nnmse="
			     "0000000000000000\nnon_finite=-\n"
			     "tolerance=3fe0000000000000\noutcome=4:fail\nsmokes="
			     "0\nartifacts=0\n";
	struct ledger_fixture f = {"polar", NULL, 7, 1.0, NAN, -0.0, -1, 0.5, "fail"};
	struct ledger_run r = {.run_id = ID("c"),
			       .host = "h",
			       .lane = "cpu",
			       .target = "linux-x64-cpu",
			       .suite = "s",
			       .outcome = "fail",
			       .reason = "fixture_mismatch",
			       .detail = "a\nb",
			       .agent_recordable = true,
			       .claims = {{"fail", NULL}},
			       .controller_version = "0.1.0",
			       .model_bytes = -1,
			       .started_ms = 1,
			       .finished_ms = 2,
			       .appended_ms = 3,
			       .exit_code = 1,
			       .fixtures = &f,
			       .fixture_count = 1};
	char leaf[65], stored[80], *prefixed = malloc(sizeof want);
	struct ledger *l = opened();
	struct buf b;

	(void)state;
	assert_non_null(prefixed);
	buf_init(&b, LEDGER_MAX_ENTRY);
	assert_int_equal(ledger_entry(&r, &b, leaf, NULL), 0);
	assert_string_equal(b.data, want);
	buf_fini(&b);
	prefixed[0] = '\0';
	memcpy(prefixed + 1, want, sizeof want - 1);
	digest_bytes(prefixed, sizeof want, stored);
	assert_string_equal(leaf, stored);
	free(prefixed);
	add(l, &r);
	ledger_close(l);
	foreign_get("SELECT leaf_hash FROM entries WHERE seq = 1 AND kind = 'run'",
		    stored, sizeof stored);
	assert_string_equal(stored, leaf);
	view_says("SELECT created_ms FROM entries", "3");
}

static void
code_stands_last_in_an_entry(void **state)
{
	static const char want[] = "smokes=0\nartifacts=0\ncodes=1\nbackend=4:cuda\ndevice=0:\n"
				   "arch=0:\nname=10:qjl.fatbin\ndigest=64:" D2 "\nhow=0:\n";
	struct ledger_run r = run_of(ID("d"), "pass", true);
	char leaf[65];
	struct buf b;

	(void)state;
	r.code = &code_of_run[1], r.code_count = 1;
	buf_init(&b, LEDGER_MAX_ENTRY);
	assert_int_equal(ledger_entry(&r, &b, leaf, NULL), 0);
	assert_true(b.len > sizeof want);
	assert_string_equal(b.data + b.len - (sizeof want - 1), want);
	buf_fini(&b);
}

static void
the_same_run_twice_is_one_run(void **state)
{
	struct ledger_run r = run_of(ID("a"), "pass", true);
	struct ledger *l = opened();
	struct err e = {0};
	bool already = false;

	(void)state;
	add(l, &r);
	assert_int_equal(ledger_add(l, &r, &already, &e), 0);
	assert_true(already);
	assert_int_equal(run_count(l), 1);
	r.envelope_digest = D2;
	assert_int_equal(ledger_add(l, &r, &already, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_true(e.hint[0] != '\0');
	r.envelope_digest = D1, r.report_digest = D1;
	assert_int_equal(ledger_add(l, &r, &already, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(run_count(l), 1);
	check_is_clean(l);
	ledger_close(l);
}

static void
bad_members_are_named_and_leave_nothing(void **state)
{
	static const struct {
		const char *word;
		enum err_code code;
	} want[] = {{"run_id", ERR_PARSE},     {"host", ERR_PARSE},
		    {"outcome", ERR_CONFLICT}, {"recordable", ERR_PARSE},
		    {"class", ERR_PARSE},      {"detail", ERR_PARSE},
		    {"detail", ERR_LIMIT},     {"model_sha256", ERR_PARSE},
		    {"gate: name", ERR_PARSE}, {"more than", ERR_LIMIT},
		    {"lane", ERR_PARSE}};
	static char big[LEDGER_MAX_TEXT + 2];
	struct ledger_gate nameless = {.outcome = "pass", .reason = "none"};
	struct ledger_run bad[str_count(want)];
	struct ledger *l = opened();
	struct err e;
	size_t i;

	(void)state;
	memset(big, 'x', sizeof big - 1);
	for (i = 0; i < str_count(want); i++)
		bad[i] = run_of(ID("a"), "blocked", false);
	bad[0].run_id = "../../0123456789abcdef0123456789";
	bad[1].host = "";
	bad[2].outcome = "passed";
	bad[3].recordable = true;
	bad[4].device_class = "linux-x64-cpu/epyc/x86-64-v4";
	bad[5].detail = "\xff\xfe";
	bad[6].detail = big;
	bad[7].model_sha256 = "1111";
	bad[8].gates = &nameless, bad[8].gate_count = 1;
	bad[9].gates = &nameless, bad[9].gate_count = LEDGER_MAX_ROWS + 1;
	bad[10].lane = NULL;
	for (i = 0; i < str_count(want); i++) {
		memset(&e, 0, sizeof e);
		assert_int_equal(ledger_add(l, &bad[i], NULL, &e), -1);
		assert_int_equal(e.code, want[i].code);
		if (strstr(e.msg, want[i].word) == NULL)
			fail_msg("wanted \"%s\" in: %s", want[i].word, e.msg);
	}
	assert_int_equal(run_count(l), 0);
	check_is_clean(l);
	ledger_close(l);
}

static void
many_runs_go_in_together_or_not_at_all(void **state)
{
	struct ledger_run a = run_of(ID("a"), "pass", true),
			  b = run_of(ID("b"), "fail", false);
	struct ledger_run bad = run_of(ID("c"), "fail", true);
	const struct ledger_run *runs[] = {&a, &b, &bad}, *good[] = {&a, &b, &a};
	struct ledger *l = opened();
	size_t added = 9;

	(void)state;
	assert_int_equal(ledger_add_all(l, runs, 3, &added, NULL), -1);
	assert_int_equal(run_count(l), 0);
	assert_int_equal(ledger_add_all(l, good, 3, &added, NULL), 0);
	assert_int_equal(added, 2);
	assert_int_equal(run_count(l), 2);
	ledger_close(l);
}

/* ---- questions ---- */

/* Six runs: pass, blocked, pass of one class on two hosts, then other classes. */
static struct ledger *
filled(void)
{
	struct ledger_run r[6] = {
		run_of(ID("a"), "pass", true),
		run_of(ID("b"), "blocked", false),
		run_of(ID("c"), "pass", true),
		run_of("ab000000000000000000000000000000", "fail", false),
		run_of(ID("d"), "pass", false),
		run_of(ID("e"), "blocked", false)};
	struct ledger *l = opened();
	int i;

	for (i = 0; i < 6; i++)
		r[i].finished_ms = JUNE + i * 3600000;
	r[1].host = "h200-lab-1";
	r[1].gates = gates_of_run, r[1].gate_count = 2;
	r[3].device_class = "linux-x64-cuda/h200/sm_90+mig-1g.18gb";
	r[4].lane = "cpu", r[4].target = "linux-x64-cpu";
	r[4].device_class = "linux-x64-cpu/epyc-9654/x86-64-v4";
	r[5].device_class = NULL, r[5].reason = "no_device";
	for (i = 0; i < 6; i++)
		add(l, &r[i]);
	return l;
}

static void
list_is(struct ledger *l, const struct ledger_filter *f, const char *first_digits)
{
	struct ledger_list list;
	char got[16] = "";
	size_t i;

	assert_int_equal(ledger_runs(l, f, &list, NULL), 0);
	assert_true(list.count < sizeof got);
	for (i = 0; i < list.count; i++)
		got[i] = (char)(list.runs[i].seq + '0'), got[i + 1] = '\0';
	assert_string_equal(got, first_digits);
	ledger_list_fini(&list);
}

static void
runs_are_listed_newest_first_by_every_filter(void **state)
{
	static const struct {
		struct ledger_filter f;
		const char *want; /* sequence numbers */
	} asks[] = {
		{{0}, "654321"},
		{{.limit = 2}, "65"},
		{{.before = 4}, "321"},
		{{.outcome = "pass"}, "531"},
		{{.outcome = "pass", .recordable = true}, "31"},
		{{.lane = "cpu"}, "5"},
		{{.target = "linux-x64-cuda", .limit = 3}, "643"},
		{{.host = "h200-lab-1"}, "2"},
		{{.host = "gh200-lab-3", .outcome = "pass", .limit = 2}, "53"},
		{{.device_class = CLASS}, "321"},
		{{.device_class = CLASS, .host = "h200-lab-1"}, "2"},
		{{.device_class = CLASS, .before = 3, .outcome = "pass"}, "1"},
		{{.device_class = "linux-x64-cuda/h200"}, ""},
		{{.host = "nobody"}, ""},
		{{.outcome = "' OR 1 --"}, ""},
	};
	struct ledger_filter many = {.limit = LEDGER_MAX_LIST + 1};
	struct ledger *l = filled();
	struct ledger_list list;
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < str_count(asks); i++)
		list_is(l, &asks[i].f, asks[i].want);
	assert_int_equal(ledger_runs(l, &many, &list, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	ledger_close(l);
}

static void
a_run_is_found_by_a_unique_beginning(void **state)
{
	struct ledger *l = filled();
	struct err e = {0};
	char id[33];

	(void)state;
	assert_int_equal(ledger_find(l, "c", id, &e), 0);
	assert_string_equal(id, ID("c"));
	assert_int_equal(ledger_find(l, "aa", id, &e), 0);
	assert_string_equal(id, ID("a"));
	assert_int_equal(ledger_find(l, ID("e"), id, &e), 0);
	assert_int_equal(ledger_find(l, "a", id, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_non_null(strstr(e.msg, ID("a")));
	assert_non_null(strstr(e.msg, "ab0000"));
	assert_int_equal(ledger_find(l, "f", id, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	assert_true(e.hint[0] != '\0');
	assert_int_equal(ledger_find(l, "", id, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_int_equal(ledger_find(l, "%", id, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	ledger_close(l);
}

static void
why_gives_the_gates_that_did_not_pass(void **state)
{
	struct ledger *l = filled();
	struct ledger_list list;
	struct err e = {0};
	char name[256];

	(void)state;
	/* a full name that begins another is the one meant */
	assert_int_equal(ledger_why(l, CLASS, 2, name, sizeof name, &list, &e), 0);
	assert_string_equal(name, CLASS);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.runs[0].gate_count, 0);
	assert_string_equal(list.runs[1].run_id, ID("b"));
	assert_int_equal(list.runs[1].gate_count, 1);
	assert_string_equal(list.runs[1].gates[0].name, "graph-smoke/turbo3");
	ledger_list_fini(&list);
	assert_int_equal(
		ledger_why(l, "linux-x64-cpu", 0, name, sizeof name, &list, &e), 0);
	assert_string_equal(name, "linux-x64-cpu/epyc-9654/x86-64-v4");
	ledger_list_fini(&list);
	assert_int_equal(ledger_why(l, "linux-x64-cuda", 0, NULL, 0, &list, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_non_null(strstr(e.msg, CLASS "+mig-1g.18gb"));
	assert_int_equal(ledger_why(l, "windows", 0, NULL, 0, &list, &e), -1);
	assert_int_equal(e.code, ERR_NOTFOUND);
	ledger_close(l);
}

static const struct ledger_class *
class_named(const struct ledger_classes *list, const char *name)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (strcmp(list->classes[i].name, name) == 0)
			return &list->classes[i];
	fail_msg("no class %s", name);
	return NULL;
}

static void
claims_of_a_class_are_kept_apart(void **state)
{
	/* fixtures pass; then the graph passes while the fixtures are blocked; then a
	 * run that tries nothing */
	struct ledger_run r[3] = {run_of(ID("1"), "pass", true),
				  run_of(ID("2"), "pass", true),
				  run_of(ID("3"), "skipped", false)};
	struct ledger *l = opened();
	struct ledger_classes list;
	const struct ledger_class *c;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		r[i].finished_ms = JUNE + i * 3600000;
	r[0].claims[CLAIM_LEGACY_KV_GRAPH].outcome = NULL;
	r[1].claims[CLAIM_FIXTURE_PARITY].outcome = "blocked";
	r[1].claims[CLAIM_FIXTURE_PARITY].reason = "tool_missing";
	r[1].source_commit = "beef";
	r[2].reason = "not_asked", r[2].device_driver = "999";
	for (i = 0; i < 3; i++)
		add(l, &r[i]);
	assert_int_equal(ledger_class_list(l, &list, NULL), 0);
	assert_int_equal(list.count, 1);
	c = class_named(&list, CLASS);
	assert_string_equal(c->run, ID("3"));
	assert_string_equal(c->outcome, "skipped");
	assert_string_equal(c->driver, "999");
	assert_string_equal(c->target, "linux-x64-cuda");
	assert_true(c->claims[CLAIM_FIXTURE_PARITY].passed);
	assert_false(c->claims[CLAIM_FIXTURE_PARITY].holds);
	assert_string_equal(c->claims[CLAIM_FIXTURE_PARITY].pass_run, ID("1"));
	assert_int_equal(c->claims[CLAIM_FIXTURE_PARITY].pass_ms, JUNE);
	assert_string_equal(c->claims[CLAIM_FIXTURE_PARITY].pass_commit, "0123abcd");
	assert_string_equal(c->claims[CLAIM_FIXTURE_PARITY].outcome, "blocked");
	assert_string_equal(c->claims[CLAIM_FIXTURE_PARITY].reason, "tool_missing");
	assert_string_equal(c->claims[CLAIM_FIXTURE_PARITY].run, ID("2"));
	assert_true(c->claims[CLAIM_LEGACY_KV_GRAPH].holds);
	assert_string_equal(c->claims[CLAIM_LEGACY_KV_GRAPH].pass_commit, "beef");
	assert_string_equal(c->claims[CLAIM_LEGACY_KV_GRAPH].pass_driver, "580.65.06");
	assert_false(c->claims[CLAIM_GEMMA_RUNTIME].passed);
	assert_string_equal(c->claims[CLAIM_GEMMA_RUNTIME].outcome, "");
	ledger_classes_fini(&list);
	check_is_clean(l);
	ledger_close(l);
	view_says("SELECT fixture_parity FROM class_status",
		  "pass 2026-06-01T10:00:00Z, then "
		  "blocked tool_missing 2026-06-01T11:00:00Z");
	view_says("SELECT legacy_kv_graph FROM class_status",
		  "pass 2026-06-01T11:00:00Z");
	view_says("SELECT gemma_runtime FROM class_status", "never tried");
	view_says("SELECT latest_outcome || latest_reason FROM class_status",
		  "skippednot_asked");
}

static void
no_result_moves_from_one_class_to_another(void **state)
{
	struct ledger *l = filled();
	struct ledger_classes list;
	const struct ledger_class *c;

	(void)state;
	assert_int_equal(ledger_class_list(l, &list, NULL), 0);
	assert_int_equal(list.count, 3);
	c = class_named(&list, CLASS);
	assert_true(c->claims[0].holds);
	assert_string_equal(c->claims[0].pass_run, ID("c"));
	c = class_named(&list, CLASS "+mig-1g.18gb");
	assert_false(c->claims[0].passed);
	assert_string_equal(c->claims[0].outcome, "fail");
	c = class_named(&list, "linux-x64-cpu/epyc-9654/x86-64-v4");
	assert_false(c->claims[0].passed); /* passed, but not recordable */
	assert_string_equal(c->claims[0].outcome, "pass");
	assert_string_equal(c->claims[0].not_recordable, "the source is dirty");
	ledger_classes_fini(&list);
	ledger_close(l);
	view_says("SELECT fixture_parity FROM class_status WHERE class LIKE '%epyc%'",
		  "pass, not recordable");
	view_says("SELECT fixture_parity FROM class_status WHERE class LIKE '%mig%'",
		  "fail family_not_in_build");
	view_says("SELECT group_concat(class || ' ' || claim || ' ' || run_id) FROM "
		  "latest_pass",
		  CLASS " fixture-parity " ID("c") "," CLASS
						   " legacy-kv-graph " ID("c"));
	view_says("SELECT count(*) FROM contradictions", "0");
}

static void
contradictions_are_shown(void **state)
{
	struct ledger_run r[4] = {
		run_of(ID("1"), "pass", true), run_of(ID("2"), "fail", false),
		run_of(ID("3"), "fail", false), run_of(ID("4"), "pass", false)};
	struct ledger *l = opened();
	int i;

	(void)state;
	/* another tree, and another class: no contradiction */
	r[2].source_tree = "other";
	r[2].device_class = "linux-x64-cuda/l4/sm_89";
	r[3].agent_recordable = true, r[3].disagreement = "the KV buffer is on the CPU";
	for (i = 0; i < 4; i++)
		add(l, &r[i]);
	ledger_close(l);
	view_says("SELECT group_concat(kind || ' ' || class || ' ' || passes || ' ' || "
		  "failures)"
		  " FROM contradictions WHERE kind LIKE 'passed%'",
		  "passed and failed " CLASS " 1 1");
	view_says("SELECT group_concat(detail) FROM contradictions WHERE kind LIKE "
		  "'agent%'",
		  "run " ID("4") ": the KV buffer is on the CPU");
}

static void
hosts_and_numbers_are_told(void **state)
{
	struct ledger *l = filled();
	struct ledger_hosts hosts;
	struct ledger_stats stats;

	(void)state;
	assert_int_equal(ledger_host_list(l, &hosts, NULL), 0);
	assert_int_equal(hosts.count, 2);
	assert_string_equal(hosts.hosts[0].name, "gh200-lab-3");
	assert_int_equal(hosts.hosts[0].runs, 5);
	assert_string_equal(hosts.hosts[0].run, ID("e"));
	assert_string_equal(hosts.hosts[0].device_class, "");
	assert_string_equal(hosts.hosts[0].reason, "no_device");
	assert_int_equal(hosts.hosts[0].at_ms, JUNE + 5 * 3600000);
	assert_string_equal(hosts.hosts[1].device_class, CLASS);
	ledger_hosts_fini(&hosts);
	assert_int_equal(ledger_stats(l, &stats, NULL), 0);
	assert_int_equal(stats.runs, 6);
	assert_int_equal(stats.entries, 6);
	assert_int_equal(stats.schema, 2);
	assert_true(stats.bytes > 0 && stats.wal_frames == stats.wal_checkpointed);
	ledger_close(l);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_run_comes_back_as_it_was_stored),
		CASE(unknown_numbers_and_absent_texts_stay_so),
		CASE(the_leaf_hash_is_that_of_the_documented_bytes),
		CASE(code_stands_last_in_an_entry),
		CASE(the_same_run_twice_is_one_run),
		CASE(bad_members_are_named_and_leave_nothing),
		CASE(many_runs_go_in_together_or_not_at_all),
		CASE(runs_are_listed_newest_first_by_every_filter),
		CASE(a_run_is_found_by_a_unique_beginning),
		CASE(why_gives_the_gates_that_did_not_pass),
		CASE(claims_of_a_class_are_kept_apart),
		CASE(no_result_moves_from_one_class_to_another),
		CASE(contradictions_are_shown),
		CASE(hosts_and_numbers_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
