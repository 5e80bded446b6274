/*
 * judge_impl - what the files of judge share; nobody else includes it.
 */
#ifndef COMMON_JUDGE_IMPL_H
#define COMMON_JUDGE_IMPL_H

#include "common/judge.h"
#include "common/transcript.h"

/* What every judge asks first: true when the log gave its own reason for not being a
 * pass, or is not whole; *out says it. */
bool judge_decided(const char *log, size_t len, struct judgement *out);
/* Base name of a run section's program; "?" unknown. */
void judge_tool_name(const struct section *s, char *out, size_t size);
/* First "N.N" of a version text. */
bool judge_version(const char *p, size_t n, char *out, size_t size);
/* The word after the last of one of the options in an argv; NULL when none. */
const char *judge_argv_value(const cJSON *argv, const char *option, const char *other);

/* The engine run of one section, which may not have ended. */
void smoke_facts_section(const struct section *s, struct smoke_facts *out);
/* Whether the cache type is one that the family asked about stands for. */
bool judge_cache_fits(const struct judge_ask *ask, const char *cache);

/* The harness's JSON in its output, with how it ended. */
void judge_harness(const char *text, size_t len, int exit, int signal,
	const struct judge_ask *ask, struct judgement *out);

/* device_gpu.c: the words of a device's name but those in drop (NULL-terminated), in lower
 * case with hyphens between them; "unknown" when nothing is left. */
void device_slug(char *const *words, int n, const char *const *drop, char *out, size_t size);
/* device_gpu.c: of lanes with a GPU. */
void judge_gpu_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
bool gpu_device_facts(const char *log, size_t len, const struct lane *lane,
	const struct target *t, struct device_facts *out);

void judge_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_fixtures(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_control(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_mtp(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_ops(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_routes(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_smoke(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);

#endif
