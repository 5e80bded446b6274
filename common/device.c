/*
 * Reads the host and device logs of the cpu lane: /proc/cpuinfo as the kernel wrote it.
 * Levels are those of the x86-64 psABI; Arm part numbers those of the MIDR registers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/judge_impl.h"
#include "common/phone.h"
#include "common/str.h"
#include "common/transcript.h"

bool
log_fact(const char *log, size_t len, const char *key, char *out, size_t size)
{
	struct section s;
	size_t pos = 0;
	bool found = false;

	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (strcmp(s.kind, "facts") == 0 && section_fact(&s, key, out, size))
			found = true;
		section_fini(&s);
	}
	return found;
}

bool
host_facts_read(const char *log, size_t len, struct host_facts *out)
{
	memset(out, 0, sizeof *out);
	if (!log_fact(log, len, "os", out->os, sizeof out->os) ||
	    !log_fact(log, len, "arch", out->arch, sizeof out->arch))
		return false;
	log_fact(log, len, "kernel", out->kernel, sizeof out->kernel);
	log_fact(log, len, "hostname", out->hostname, sizeof out->hostname);
	if (!log_fact(log, len, "virtualisation", out->virtualisation,
		    sizeof out->virtualisation))
		snprintf(out->virtualisation, sizeof out->virtualisation, "unknown");
	log_fact(log, len, "emulated", out->emulated, sizeof out->emulated);
	return true;
}

/* Value of the first "key : value" line of a cpuinfo text. */
static bool
cpuinfo(const struct section *s, const char *key, char *out, size_t size)
{
	const char *p = s->body, *end = s->body + s->len, *nl, *q;
	size_t k = strlen(key), n;

	for (; p < end; p = nl + 1) {
		if ((nl = memchr(p, '\n', (size_t)(end - p))) == NULL)
			nl = end;
		if ((size_t)(nl - p) > k && memcmp(p, key, k) == 0) {
			for (q = p + k; q < nl && (*q == ' ' || *q == '\t'); q++)
				;
			if (q < nl && *q == ':') {
				for (q++; q < nl && *q == ' '; q++)
					;
				n = (size_t)(nl - q) < size - 1 ? (size_t)(nl - q) : size - 1;
				str_show(out, size, q, n);
				return true;
			}
		}
		if (nl == end)
			break;
	}
	return false;
}

static bool
has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	const char *p = list;

	while ((p = strstr(p, word)) != NULL) {
		if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
			return true;
		p += n;
	}
	return false;
}

static bool
has_words(const char *list, const char *const *words)
{
	for (; *words != NULL; words++)
		if (!has_word(list, *words))
			return false;
	return true;
}

static const char *
x86_level(const char *flags)
{
	static const char *const v2[] = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2",
		"ssse3", NULL};
	static const char *const v3[] = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm",
		"movbe", "xsave", NULL};
	static const char *const v4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq",
		"avx512vl", NULL};

	if (!has_words(flags, v2))
		return "x86-64-v1";
	if (!has_words(flags, v3))
		return "x86-64-v2";
	return has_words(flags, v4) ? "x86-64-v4" : "x86-64-v3";
}

/* What of a flag list is about vectors. */
static bool
is_vector_flag(const char *flag)
{
	static const char *const prefixes[] = {"sse", "ssse", "avx", "fma", "f16c", "amx",
		"asimd", "sve", "sme", "neon", "fphp", "bf16", "i8mm", "gfni"};
	size_t i;

	for (i = 0; i < str_count(prefixes); i++)
		if (str_starts(flag, prefixes[i]))
			return true;
	return false;
}

static void
vector_features(char *flags, char *out, size_t size)
{
	char *words[512];
	int i, n = str_split(flags, false, words, 512);
	size_t used = 0, k;

	out[0] = '\0';
	for (i = 0; i < n; i++) {
		k = strlen(words[i]);
		if (!is_vector_flag(words[i]) || used + k + 2 > size)
			continue;
		if (used > 0)
			out[used++] = ' ';
		memcpy(out + used, words[i], k + 1);
		used += k;
	}
}

/* Adds a word of a name to a slug: lower case, what is odd as single hyphens. */
static size_t
slug_add(char *out, size_t used, size_t size, const char *word)
{
	bool hyphen = used > 0;
	char c;

	for (; *word != '\0'; word++) {
		c = *word >= 'A' && *word <= 'Z' ? (char)(*word - 'A' + 'a') : *word;
		if (strchr("abcdefghijklmnopqrstuvwxyz0123456789.+", c) == NULL) {
			hyphen = used > 0;
			continue;
		}
		if (used + hyphen + 1 >= size)
			break;
		if (hyphen)
			out[used++] = '-';
		hyphen = false;
		out[used++] = c;
	}
	out[used] = '\0';
	return used;
}

static bool
is_one_of(const char *word, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcasecmp(word, *list) == 0)
			return true;
	return false;
}

/* "AMD EPYC 9654 96-Core Processor" -> "epyc-9654": no vendor, no marks, no clock, and
 * nothing of the graphics that sits beside the CPU ("with Radeon Graphics"). */
static void
slug_make(const char *name, char *out, size_t size)
{
	static const char *const drop[] = {"amd", "intel", "arm", "nvidia", "cpu", "processor",
		"@", "the", "genuine", NULL};
	static const char *const stop[] = {"with", "w/", NULL};
	static const char *const marks[] = {"(R)", "(TM)", "(C)"};
	char copy[128], *words[64], *p;
	size_t used = 0, k;
	int i, n;

	str_show(copy, sizeof copy, name, strlen(name));
	for (k = 0; k < str_count(marks); k++)
		while ((p = strcasestr(copy, marks[k])) != NULL)
			memset(p, ' ', strlen(marks[k]));
	n = str_split(copy, true, words, 64);
	out[0] = '\0';
	for (i = 0; i < n && !is_one_of(words[i], stop); i++)
		if (strcasestr(words[i], "ghz") == NULL && strcasestr(words[i], "-core") == NULL &&
		    !is_one_of(words[i], drop))
			used = slug_add(out, used, size, words[i]);
	if (used == 0)
		snprintf(out, size, "unknown");
}

/* Arm: implementer and part of the MIDR; a model that is no row keeps its numbers. */
static void
arm_name(const struct section *s, char *out, size_t size)
{
	static const struct {
		const char *implementer, *part, *name;
	} rows[] = {
		{"0x41", "0xd03", "Cortex-A53"}, {"0x41", "0xd07", "Cortex-A57"},
		{"0x41", "0xd08", "Cortex-A72"}, {"0x41", "0xd0b", "Cortex-A76"},
		{"0x41", "0xd0c", "Neoverse-N1"}, {"0x41", "0xd40", "Neoverse-V1"},
		{"0x41", "0xd49", "Neoverse-N2"}, {"0x41", "0xd4f", "Neoverse-V2"},
		{"0x41", "0xd84", "Neoverse-V3"}, {"0x41", "0xd8e", "Neoverse-N3"},
		{"0x41", "0xd85", "Cortex-X925"}, {"0x41", "0xd87", "Cortex-A725"},
		{"0xc0", "0xac3", "Ampere-1"}, {"0xc0", "0xac4", "Ampere-1A"},
		{"0x46", "0x001", "A64FX"}, {"0x61", "0x022", "Apple-M1"},
	};
	char implementer[16] = "?", part[16] = "?";
	size_t i;

	cpuinfo(s, "CPU implementer", implementer, sizeof implementer);
	cpuinfo(s, "CPU part", part, sizeof part);
	for (i = 0; i < str_count(rows); i++)
		if (strcmp(rows[i].implementer, implementer) == 0 &&
		    strcmp(rows[i].part, part) == 0) {
			snprintf(out, size, "%s", rows[i].name);
			return;
		}
	snprintf(out, size, "Arm %s %s", implementer, part);
}

static const char *
arm_level(const char *features)
{
	return has_word(features, "sve2") ? "armv9-a+sve2"
		: has_word(features, "sve") ? "armv8.2-a+sve"
		: has_word(features, "asimddp") ? "armv8.2-a+dotprod"
						: "armv8-a";
}

static bool
cpu_section(const struct section *s, struct device_facts *out)
{
	char flags[8192];

	if (cpuinfo(s, "flags", flags, sizeof flags)) {
		if (!cpuinfo(s, "model name", out->name, sizeof out->name))
			return false;
		snprintf(out->level, sizeof out->level, "%s", x86_level(flags));
	} else if (cpuinfo(s, "Features", flags, sizeof flags)) {
		arm_name(s, out->name, sizeof out->name);
		snprintf(out->level, sizeof out->level, "%s", arm_level(flags));
	} else {
		return false;
	}
	vector_features(flags, out->features, sizeof out->features);
	slug_make(out->name, out->slug, sizeof out->slug);
	return true;
}

bool
device_facts_cpuinfo(const char *text, size_t len, const struct target *t,
	struct device_facts *out)
{
	struct section s = {.body = text, .len = len};

	memset(out, 0, sizeof *out);
	out->memory_bytes = out->cpus = -1;
	if (!cpu_section(&s, out))
		return false;
	if (t != NULL)
		snprintf(out->device_class, sizeof out->device_class, "%s/%s/%s", t->name,
			out->slug, out->level);
	return true;
}

static bool
cpu_device_facts(const char *log, size_t len, const struct target *t,
	struct device_facts *out)
{
	struct section s;
	size_t pos = 0;
	uint64_t v;
	char text[32];
	bool found = false;

	memset(out, 0, sizeof *out);
	out->memory_bytes = out->cpus = -1;
	while (transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (!found && strcmp(s.kind, "file") == 0 && s.ended)
			found = device_facts_cpuinfo(s.body, s.len, t, out);
		section_fini(&s);
	}
	if (log_fact(log, len, "memoryKiB", text, sizeof text) &&
	    str_u64(text, 0, 1ull << 40, &v, NULL) == 0)
		out->memory_bytes = (int64_t)(v * 1024);
	if (log_fact(log, len, "cpus", text, sizeof text) &&
	    str_u64(text, 1, 1u << 20, &v, NULL) == 0)
		out->cpus = (int64_t)v;
	return found;
}

bool
device_facts_read(const char *log, size_t len, const struct lane *lane,
	const struct target *t, struct device_facts *out)
{
	if (lane->place == PLACE_ADB)
		return phone_device_facts(log, len, t, out);
	return lane->api == API_CPU ? cpu_device_facts(log, len, t, out)
				    : gpu_device_facts(log, len, lane, t, out);
}

void
judge_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out)
{
	struct device_facts d;

	if (judge_decided(log, len, out))
		return;
	if (ask->lane->api != API_CPU) {
		judge_gpu_device(log, len, ask, out);
		return;
	}
	if (!cpu_device_facts(log, len, NULL, &d)) {
		judgement_set(out, REASON_PROBE_UNREADABLE,
			"/proc/cpuinfo names no model or no features");
		return;
	}
	if (d.cpus > 0)
		judgement_set(out, REASON_NONE, "%s, %s, %lld CPUs", d.name, d.level,
			(long long)d.cpus);
	else
		judgement_set(out, REASON_NONE, "%s, %s", d.name, d.level);
}
