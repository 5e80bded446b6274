#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/elog.h"
#include "common/str.h"
#include "common/tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct lane lanes_tried[] = {
	{ .name = "cpu", .api = API_CPU, .kv_device = "CPU" },
	{ .name = "cuda", .api = API_CUDA, .kv_device = "CUDA[0-9]*", .offloads = true },
	{ .name = "vulkan", .api = API_VULKAN, .kv_device = "*lkan?", .offloads = true },
};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
text_holds(const char *s, size_t size)
{
	must(memchr(s, '\0', size) != NULL);
	must(str_is_utf8(s, strlen(s)));
}

static void
facts_hold(const struct elog *l)
{
	int i;

	text_holds(l->k_type, sizeof l->k_type);
	text_holds(l->v_type, sizeof l->v_type);
	text_holds(l->device, sizeof l->device);
	text_holds(l->architecture, sizeof l->architecture);
	text_holds(l->error, sizeof l->error);
	text_holds(l->cause, sizeof l->cause);
	text_holds(l->op_unsupported, sizeof l->op_unsupported);
	text_holds(l->accepted, sizeof l->accepted);
	must(l->kv_count >= 0 && l->kv_count <= ELOG_MAX_BUFFERS);
	must(l->place_count >= 0 && l->place_count <= ELOG_MAX_PLACES);
	must(l->attn_count >= 0 && l->attn_count <= ELOG_MAX_BACKENDS);
	must(l->tokens >= -1 && l->offloaded >= -1 && l->layers >= -1);
	for (i = 0; i < l->kv_count; i++) {
		text_holds(l->kv[i].device, sizeof l->kv[i].device);
		must(l->kv[i].mib > 0);
	}
	for (i = 0; i < l->attn_count; i++)
		must(l->attn[i].nodes > 0);
}

/* Nothing passes without its type, its buffer, its tokens and a good end. */
static void
verdicts_hold(const struct elog *l)
{
	struct smoke_ask ask = { .cache_type = "q8_0", .tokens = 4 };
	struct smoke_verdict v;
	size_t i;
	int exit;

	for (i = 0; i < str_count(lanes_tried); i++)
		for (exit = -1; exit < 2; exit++) {
			ask.lane = &lanes_tried[i];
			ask.exit = exit;
			elog_judge(l, &ask, &v);
			text_holds(v.hint, sizeof v.hint);
			text_holds(v.detail, sizeof v.detail);
			must(v.outcome == reason_outcome(v.reason));
			if (v.outcome != OUTCOME_PASS)
				continue;
			must(exit == 0 && l->kv_count > 0 && l->tokens >= 4);
			must(strcasecmp(l->k_type, "q8_0") == 0);
			must(!l->aborted && !l->error_prefix && !l->overflow);
			must(lanes_tried[i].api == API_CPU ||
			     (l->attn_seen && l->kv_write_seen));
		}
}

/* A log that is read in pieces says the same; UTF-16 is for those who have it whole. */
static void
pieces_hold(const char *text, size_t size, const struct elog *whole)
{
	static struct elog parts;
	struct elog_stream *s = NULL;
	size_t at, n, piece = size > 0 ? 1 + (unsigned char)text[size / 2] % 97 : 1;

	if (tool_is_utf16(text, size) || elog_open(&parts, &s, NULL))
		return;
	for (at = 0; at < size; at += n) {
		n = size - at < piece ? size - at : piece;
		elog_add(s, text + at, n);
	}
	elog_close(s);
	must(memcmp(whole, &parts, sizeof parts) == 0);
}

static void
run_holds(void *arg, const struct elog *run)
{
	*(int *)arg += 1;
	verdicts_hold(run);
}

/* Each run of a file is one; where only the first is wanted, a second is said to be there. */
static void
runs_hold(const char *text, size_t size, const struct elog *whole)
{
	static struct elog last;
	struct elog_stream *s = NULL;
	int runs = 0;

	if (tool_is_utf16(text, size) || elog_open(&last, &s, NULL))
		return;
	elog_each_run(s, run_holds, &runs);
	elog_add(s, text, size);
	elog_close(s);
	run_holds(&runs, &last);
	must((runs > 1) == (whole->next_run > 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct suite_family family = {.name = "turbo3", .aliases = {"tbq3_0", "turbo3"}, .alias_count = 2};
	const char *text = (const char *)data;
	char names[32][ELOG_TYPE];
	struct elog l;
	int i, n;

	elog_parse(text, size, &l);
	facts_hold(&l);
	verdicts_hold(&l);
	pieces_hold(text, size, &l);
	runs_hold(text, size, &l);
	n = elog_help_types(text, size, names, (int)str_count(names));
	must(n >= 0 && n <= (int)str_count(names));
	for (i = 0; i < n; i++)
		must(names[i][0] != '\0' && memchr(names[i], '\0', ELOG_TYPE) != NULL);
	(void)elog_resolve(&family, names, n);
	(void)elog_help_has(text, size, "--fit");
	return 0;
}
