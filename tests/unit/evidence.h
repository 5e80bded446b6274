/*
 * evidence - for tests: logs of gates and a report over them, whole and good, as an agent
 * writes them; tests then damage one thing.  Everything fails the test on its own error.
 */
#ifndef TESTS_UNIT_EVIDENCE_H
#define TESTS_UNIT_EVIDENCE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/digest.h"
#include "common/json.h"
#include "common/judge.h"
#include "common/lane.h"
#include "common/plat.h"
#include "common/str.h"
#include "common/suite.h"

#define NONCE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BOUNDARY "0123456789abcdef"
#define MARK "#verify " BOUNDARY " "
#define FACTS MARK "facts {}\n"
#define END MARK "end {}\n"
#define RUN(argv) MARK "run {\"argv\":[" argv "]}\n"
#define ENDED(exit, signal) MARK "end {\"exit\":" exit ",\"signal\":" signal ",\"ms\":5," \
	"\"timedOut\":false,\"cancelled\":false,\"maxRssKiB\":1,\"dropped\":0}\n"
#define DONE FACTS "detail=all well\ndone=true\n" END
#define SAYS(reason) FACTS "reason=" reason "\ndetail=why it is so\n" END

#define GOOD_HOST FACTS "os=Linux\narch=x86_64\nkernel=6.1.0\nhostname=lab-3\n" \
	"virtualisation=none\nemulated=\n" END
#define GOOD_DEVICE FACTS "cpus=192\nmemoryKiB=1048576\n" END \
	MARK "file {\"file\":\"/proc/cpuinfo\"}\n" \
	"model name\t: AMD EPYC 9654 96-Core Processor\nflags\t\t: fpu pni ssse3 sse4_1\n" END
#define GOOD_CLASS "linux-x64-cpu/epyc-9654/x86-64-v1"
#define GOOD_TOOLCHAIN RUN("\"/usr/bin/cmake\",\"--version\"") "cmake version 3.25.1\n" \
	ENDED("0", "0") RUN("\"/usr/bin/ninja\",\"--version\"") "1.11.1\n" ENDED("0", "0")
#define MODEL_SHA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define GOOD_MODEL FACTS "path=/m/tiny.gguf\nsha256=" MODEL_SHA "\narchitecture=llama\n" \
	"headSizeK=128\nsynthetic=true\ndetail=a model\ndone=true\n" END
#define STOCK_TREE "0424752fbbc3bb01469ec830a30f2bc035497cd4"
#define GOOD_SOURCE FACTS "origin=npm:node-llama-cpp@3.21.1\ntree=" STOCK_TREE \
	"\ndirty=false\ndetail=a tree\ndone=true\n" END
#define GOOD_BUILD RUN("\"/usr/bin/ninja\",\"-C\",\"b\"") "[1/1] x\n" ENDED("0", "0") \
	FACTS "reused=false\ndetail=built\ndone=true\n" END

/* Formatted text that the caller frees. */
static inline char *
evidence_text(const char *fmt, ...) PRINTF(1, 2);

static inline char *
evidence_text(const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert_true(n >= 0);
	text = malloc((size_t)n + 1);
	assert_non_null(text);
	va_start(ap, fmt);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return text;
}

/* A copy with every `from` replaced; takes text. */
static inline char *
evidence_replace(char *text, const char *from, const char *to)
{
	struct buf b;
	const char *p = text, *at;

	assert_non_null(strstr(text, from));
	buf_init(&b, 64u << 20);
	for (; (at = strstr(p, from)) != NULL; p = at + strlen(from))
		assert_true(buf_add(&b, p, (size_t)(at - p), NULL) == 0 &&
			buf_add(&b, to, strlen(to), NULL) == 0);
	assert_int_equal(buf_add(&b, p, strlen(p), NULL), 0);
	free(text);
	return buf_take(&b);
}

#define CODE_SHA "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* What cpu-verify prints when all is well. */
static inline char *
evidence_checks(const struct suite *s)
{
	struct buf b;
	int i;

	buf_init(&b, 1u << 20);
	assert_int_equal(buf_addf(&b, NULL, "{\"schemaVersion\":1,\n \"backend\":\"cpu\","
		"\"device\":{\"name\":\"AMD EPYC 9654\",\"arch\":\"x86-64 avx512\","
		"\"software\":false,\"emulated\":false},\n \"code\":[{\"name\":\"verify-agent\","
		"\"sha256\":\"" CODE_SHA "\",\"how\":\"avx512 by gcc\"}],\n \"checks\":["), 0);
	for (i = 0; i < s->fixture_count; i++)
		assert_int_equal(buf_addf(&b, NULL, "%s\n  {\"name\":\"%s\",\"elements\":8,"
			"\"maxAbsDiff\":0.00099,\"nonFinite\":0,\"guardIntact\":true,"
			"\"outcome\":\"pass\",\"detail\":\"\"}", i ? "," : "", s->fixtures[i]), 0);
	assert_int_equal(buf_addf(&b, NULL, "],\n \"controls\":["
		"{\"name\":\"flipped-code-bit\",\"caught\":true},\n"
		"{\"name\":\"nan-output\",\"caught\":true}],\n \"outcome\":\"pass\"}\n"), 0);
	return buf_take(&b);
}

static inline char *
evidence_fixtures(const struct suite *s)
{
	char *checks = evidence_checks(s);
	char *log = evidence_text(RUN("\"/usr/sbin/verify-agent\",\"cpu-verify\"") "%s" ENDED("0", "0"),
		checks);

	free(checks);
	return log;
}

/* A real engine's log as if it had run with the cache type. */
static inline char *
evidence_smoke(const struct suite *s, const char *cache)
{
	struct err e = {0};
	char *text = NULL, *log, type[64];

	if (plat_read_file("fixtures/logs/cpu-stock-v0.4.0-full-q8_0.log", 1u << 20, &text, NULL, &e))
		fail_msg("%s", e.msg);
	snprintf(type, sizeof type, "K (%s)", cache);
	text = evidence_replace(text, "K (q8_0)", type);
	log = evidence_text(RUN("\"/e/%s\",\"-m\",\"/m/tiny.gguf\",\"-p\",\"%s\",\"-n\",\"4\","
		"\"-ngl\",\"99\",\"--cache-type-k\",\"%s\",\"--seed\",\"42\"") "%s%s" ENDED("0", "0"),
		s->driver, s->prompt, cache, text,
		text[strlen(text) - 1] == '\n' ? "" : "\n");
	free(text);
	return log;
}

/* ---- a whole run ---- */

#define EVIDENCE_MAX 24

struct evidence {
	struct suite *suite;
	cJSON *report;
	char *name[EVIDENCE_MAX], *log[EVIDENCE_MAX]; /* NULL log: the file is lost */
	int count;
};

/* Takes log. */
static inline void
evidence_gate(struct evidence *v, const char *gate, char *log)
{
	cJSON *o = cJSON_CreateObject(), *l;
	char hex[DIGEST_HEX];
	char *p;

	assert_true(v->count < EVIDENCE_MAX);
	v->name[v->count] = evidence_text("linux-x64-cpu-%s.log", gate);
	for (p = v->name[v->count]; *p != '\0'; p++)
		*p = *p == '/' ? '-' : *p;
	v->log[v->count] = log;
	digest_bytes(log, strlen(log), hex);
	assert_true(json_add_str(o, "name", gate) && json_add_str(o, "outcome", "pass") &&
		json_add_str(o, "reasonCode", NULL) && (l = json_add_object(o, "log")) != NULL &&
		json_add_str(l, "name", v->name[v->count]) && json_add_str(l, "sha256", hex) &&
		cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(v->report, "gates"), o));
	v->count++;
}

static inline char *
evidence_copy(const char *text)
{
	return evidence_text("%s", text);
}

static inline void
evidence_members(struct evidence *v)
{
	static const char text[] = "{\"schemaVersion\":2,\"runner\":\"cpu_runner\",\"status\":\"pass\","
		"\"passRecordable\":true,\"exitCode\":0,\"failureReason\":null,"
		"\"startedAt\":\"2026-06-01T10:00:00Z\",\"finishedAt\":\"2026-06-01T10:01:00Z\","
		"\"host\":{\"os\":\"Linux\",\"arch\":\"x86_64\",\"virtualisation\":\"none\",\"emulated\":\"\"},"
		"\"target\":\"linux-x64-cpu\",\"remoteDelegated\":false,\"requirements\":{},\"evidence\":{},"
		"\"outcome\":\"pass\",\"reasonCode\":null,\"jobId\":\"00112233445566778899aabbccddeeff\","
		"\"nonce\":\"" NONCE "\",\"lane\":\"cpu\",\"agent\":{\"version\":\"0.1.0\"},"
		"\"device\":{\"class\":\"" GOOD_CLASS "\"},\"probes\":[],"
		"\"source\":{\"origin\":\"npm:node-llama-cpp@3.21.1\",\"tree\":\"" STOCK_TREE
		"\",\"dirty\":false},\"build\":{\"prebuilt\":false,\"reused\":false},"
		"\"model\":{\"path\":\"/m/tiny.gguf\",\"sha256\":\"" MODEL_SHA
		"\",\"architecture\":\"llama\",\"headSize\":128,\"synthetic\":true},\"gates\":[],"
		"\"fixtures\":[],\"claims\":{},\"overrides\":[],\"smokes\":[],\"controls\":[],"
		"\"artifacts\":[]}";
	struct err e = {0};
	cJSON *suite;

	if (json_parse(text, sizeof text - 1, 1u << 20, &v->report, &e))
		fail_msg("%s", e.msg);
	assert_true((suite = json_add_object(v->report, "suite")) != NULL &&
		json_add_str(suite, "name", v->suite->name) &&
		json_add_str(suite, "digest", v->suite->digest));
}

/* The report's copies of what the log of the fixtures says, made anew. */
static inline void
evidence_echo(struct evidence *v, const char *log)
{
	static const struct {
		const char *part, *key;
		bool inner;
	} rows[] = {{"backend", "backend", true}, {"device", "device", true}, {"code", "code", true},
		{"checks", "fixtures", false}, {"controls", "controls", false}};
	cJSON *o = fixtures_read(log, strlen(log)), *kernels, *part;
	size_t i;

	assert_non_null(o);
	cJSON_DeleteItemFromObjectCaseSensitive(v->report, "kernels");
	kernels = json_add_object(v->report, "kernels");
	for (i = 0; i < str_count(rows); i++) {
		part = cJSON_DetachItemFromObjectCaseSensitive(o, rows[i].part);
		if (!rows[i].inner)
			cJSON_DeleteItemFromObjectCaseSensitive(v->report, rows[i].key);
		assert_true(part == NULL || json_add(rows[i].inner ? kernels : v->report, rows[i].key,
			part));
	}
	cJSON_Delete(o);
}

static inline void
evidence_make(struct evidence *v, const char *suite)
{
	struct err e = {0};
	char gate[80];
	int i;

	memset(v, 0, sizeof *v);
	if (suite_builtin(suite, &v->suite, &e))
		fail_msg("%s", e.msg);
	evidence_members(v);
	evidence_gate(v, "host", evidence_copy(GOOD_HOST));
	evidence_gate(v, "device", evidence_copy(GOOD_DEVICE));
	evidence_gate(v, "toolchain", evidence_copy(GOOD_TOOLCHAIN));
	evidence_gate(v, "model", evidence_copy(GOOD_MODEL));
	evidence_gate(v, "source", evidence_copy(GOOD_SOURCE));
	evidence_gate(v, "build", evidence_copy(GOOD_BUILD));
	evidence_gate(v, "fixtures", evidence_fixtures(v->suite));
	evidence_echo(v, v->log[v->count - 1]);
	for (i = 0; i < v->suite->family_count; i++) {
		snprintf(gate, sizeof gate, "graph-smoke/%s", v->suite->families[i].name);
		evidence_gate(v, gate, evidence_smoke(v->suite, v->suite->families[i].aliases[0]));
	}
	evidence_gate(v, "report", evidence_copy(DONE));
}

static inline void
evidence_free(struct evidence *v)
{
	int i;

	for (i = 0; i < v->count; i++) {
		free(v->name[i]);
		free(v->log[i]);
	}
	cJSON_Delete(v->report);
	suite_free(v->suite);
}

static inline cJSON *
evidence_row(struct evidence *v, const char *gate)
{
	cJSON *g;

	cJSON_ArrayForEach(g, cJSON_GetObjectItemCaseSensitive(v->report, "gates"))
		if (str_eq(json_str(g, "name"), gate))
			return g;
	fail_msg("no gate %s", gate);
	return NULL;
}

/* Puts other bytes in the place of a gate's log, and the report names their digest.
 * Takes log. */
static inline void
evidence_log(struct evidence *v, const char *gate, char *log)
{
	cJSON *l = cJSON_GetObjectItemCaseSensitive(evidence_row(v, gate), "log");
	char hex[DIGEST_HEX];
	int i;

	for (i = 0; i < v->count && !str_eq(v->name[i], json_str(l, "name")); i++)
		;
	assert_true(i < v->count);
	free(v->log[i]);
	v->log[i] = log;
	digest_bytes(log, strlen(log), hex);
	assert_non_null(cJSON_SetValuestring(cJSON_GetObjectItemCaseSensitive(l, "sha256"), hex));
}

static inline const char *
evidence_log_of(struct evidence *v, const char *gate)
{
	const char *name = json_path_str(evidence_row(v, gate), "log.name");
	int i;

	for (i = 0; i < v->count; i++)
		if (str_eq(v->name[i], name))
			return v->log[i];
	return NULL;
}

/* A member by its dotted path, replaced by JSON text; NULL takes it away. */
static inline void
evidence_set(struct evidence *v, const char *path, const char *json)
{
	char parent[128], *dot;
	const char *key = path;
	cJSON *o = v->report, *item = NULL;
	struct err e = {0};

	snprintf(parent, sizeof parent, "%s", path);
	if ((dot = strrchr(parent, '.')) != NULL) {
		*dot = '\0';
		o = (cJSON *)(uintptr_t)json_path(v->report, parent);
		key = dot + 1;
	}
	assert_non_null(o);
	cJSON_DeleteItemFromObjectCaseSensitive(o, key);
	if (json == NULL)
		return;
	if (json_parse(json, strlen(json), 1u << 20, &item, &e))
		fail_msg("%s", e.msg);
	assert_true(json_add(o, key, item));
}

static inline void
evidence_claim(struct evidence *v, const char *gate, const char *outcome, const char *reason)
{
	cJSON *g = evidence_row(v, gate);

	cJSON_DeleteItemFromObjectCaseSensitive(g, "outcome");
	cJSON_DeleteItemFromObjectCaseSensitive(g, "reasonCode");
	assert_true(json_add_str(g, "outcome", outcome) && json_add_str(g, "reasonCode", reason));
}

static inline void
evidence_drop(struct evidence *v, const char *gate)
{
	cJSON_Delete(cJSON_DetachItemViaPointer(cJSON_GetObjectItemCaseSensitive(v->report, "gates"),
		evidence_row(v, gate)));
}

/* struct verdict_logs.read over the logs kept here. */
static inline int
evidence_read(void *arg, const char *name, char **out, size_t *len, struct err *e)
{
	struct evidence *v = arg;
	int i;

	for (i = 0; i < v->count; i++)
		if (v->log[i] != NULL && strcmp(v->name[i], name) == 0) {
			*len = strlen(v->log[i]);
			*out = evidence_copy(v->log[i]);
			return 0;
		}
	return err_set(e, ERR_NOTFOUND, "%.200s: not pulled", name);
}

#endif
