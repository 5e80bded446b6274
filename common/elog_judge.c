#include "common/elog.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/ntstatus.h"
#include "common/span.h"
#include "common/str.h"

/* The scheduler prints five letters of a backend's name. */
#define BACKEND_CUT 5

struct judge {
	const struct elog *l;
	const struct smoke_ask *ask;
	struct smoke_verdict *out;
};

/* ---- names of devices ---- */

/* One "[a-z]" of a glob at *g; moves *g behind it. */
static bool
set_matches(const char **g, char c)
{
	const char *p = *g + 1;
	bool hit = false;

	for (; *p != '\0' && *p != ']'; p++) {
		if (p[1] == '-' && p[2] != '\0' && p[2] != ']') {
			hit = hit || (c >= p[0] && c <= p[2]);
			p += 2;
		} else {
			hit = hit || c == *p;
		}
	}
	*g = *p == ']' ? p + 1 : p;
	return hit;
}

/* Glob of *, ? and [a-z].  With cut, s may go on behind its end. */
static bool
glob_matches(const char *glob, const char *s, bool cut)
{
	const char *star = NULL, *again = NULL, *g = glob;
	bool hit;

	while (*s != '\0') {
		hit = false;
		if (*g == '*') {
			star = ++g;
			again = s;
			continue;
		}
		if (*g == '[') {
			hit = set_matches(&g, *s);
		} else if (*g == *s || (*g == '?')) {
			hit = true;
			g++;
		}
		if (hit) {
			s++;
		} else if (star != NULL) {
			g = star;
			s = ++again;
		} else {
			return false;
		}
	}
	while (*g == '*')
		g++;
	return *g == '\0' || cut;
}

/* "CUDA_Host" is memory of the host, whatever the glob. */
static bool
device_matches(const struct lane *lane, const char *device)
{
	return !str_ends(device, "_Host") &&
	       glob_matches(lane->kv_device, device, false);
}

static bool
backend_matches(const struct lane *lane, const char *backend)
{
	return glob_matches(lane->kv_device, backend, strlen(backend) == BACKEND_CUT);
}

/* The BLAS backend computes on the CPU. */
static bool
attn_is_right(const struct lane *lane, const char *backend)
{
	return backend_matches(lane, backend) ||
		(lane->api == API_CPU && strcmp(backend, "BLAS") == 0);
}

/* ---- words ---- */

static void verdict(struct judge *j, enum reason r, const char *fmt, ...) PRINTF(3, 4);

/* Text of the engine may be long; a detail that is cut still says what happened. */
static void
verdict(struct judge *j, enum reason r, const char *fmt, ...)
{
	char text[2 * sizeof j->out->detail];
	va_list ap;

	j->out->reason = r;
	j->out->outcome = reason_outcome(r);
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	str_show(j->out->detail, sizeof j->out->detail, text, strlen(text));
	str_show(j->out->hint, sizeof j->out->hint, reason_hint(r),
		 strlen(reason_hint(r)));
}

static void
hint(struct judge *j, const char *text)
{
	str_show(j->out->hint, sizeof j->out->hint, text, strlen(text));
}

static void
append(char *dst, size_t size, const char *separator, const char *text)
{
	size_t used = strlen(dst);

	if (used + 1 < size)
		snprintf(dst + used, size - used, "%s%s", used > 0 ? separator : "",
			 text);
}

/* The line that says why, else the last error line, else a word that there is none. */
static const char *
headline(const struct elog *l)
{
	if (l->cause[0] != '\0')
		return l->cause;
	return l->error[0] != '\0' ? l->error : "no error line in its log";
}

static void
kv_devices(const struct elog *l, char *dst, size_t size)
{
	int i;

	dst[0] = '\0';
	for (i = 0; i < l->kv_count; i++)
		append(dst, size, " and ", l->kv[i].device);
}

static void
attn_backends(const struct elog *l, char *dst, size_t size)
{
	int i;

	dst[0] = '\0';
	for (i = 0; i < l->attn_count; i++)
		append(dst, size, " and ", l->attn[i].backend);
}

/* ---- checks, each true when it gave the verdict ---- */

static bool
check_cancelled(struct judge *j)
{
	if (!j->ask->cancelled)
		return false;
	verdict(j, REASON_CANCELLED, "cancelled while the engine ran");
	return true;
}

/* The driver would converse for ever; a time limit that ended it is no time-out. */
static bool
check_driver(struct judge *j)
{
	if (!j->l->conversation_refused)
		return false;
	verdict(j, REASON_DRIVER_REFUSES, "the driver only converses: %s",
		headline(j->l));
	return true;
}

static bool
check_cache_type(struct judge *j)
{
	const struct elog *l = j->l;

	if (!l->unknown_cache_type)
		return false;
	if (l->accepted[0] != '\0')
		verdict(j, REASON_FAMILY_NOT_IN_BUILD,
			"this build has no cache type %s; it has %s",
			j->ask->cache_type, l->accepted);
	else
		verdict(j, REASON_FAMILY_NOT_IN_BUILD,
			"this build has no cache type %s: %s", j->ask->cache_type,
			headline(l));
	return true;
}

static bool
check_op(struct judge *j)
{
	if (j->l->op_unsupported[0] == '\0')
		return false;
	verdict(j, REASON_OP_NOT_SUPPORTED, "%s", j->l->op_unsupported);
	return true;
}

static bool
check_refusals(struct judge *j)
{
	const struct elog *l = j->l;

	if (l->head_not_divisible)
		verdict(j, REASON_MODEL_NOT_SUITABLE, "%s", headline(l));
	else if (l->v_needs_fa)
		verdict(j, REASON_V_CACHE_NEEDS_FA, "%s", headline(l));
	else
		return false;
	return true;
}

static bool
check_model(struct judge *j)
{
	const struct elog *l = j->l;

	if (!l->model_load_failed)
		return false;
	verdict(j,
		l->model_reason != REASON_NONE ? l->model_reason
					       : REASON_MODEL_MALFORMED,
		"the engine did not load the model: %s", headline(l));
	if (l->model_reason == REASON_MODEL_NOT_SUITABLE)
		hint(j, "the engine does not know this architecture; use another model");
	return true;
}

static bool
check_device(struct judge *j)
{
	const struct elog *l = j->l;
	bool on_lane = false;
	int i;

	if (l->device_lost) {
		verdict(j, REASON_DEVICE_LOST, "%s", headline(l));
		return true;
	}
	if (j->ask->lane->api == API_CPU)
		return false;
	if (l->software_device) {
		verdict(j, REASON_SOFTWARE_DEVICE,
			"the engine used a software device: %s",
			l->device[0] != '\0' ? l->device
					     : "a Vulkan device of type CPU");
		return true;
	}
	if (l->layered) {
		verdict(j, REASON_WRONG_DEVICE, "the device is reached through another interface: %s",
			l->device[0] != '\0' ? l->device : "see the list of devices");
		j->out->line = l->device_line;
		return true;
	}
	for (i = 0; i < l->kv_count; i++)
		on_lane = on_lane || device_matches(j->ask->lane, l->kv[i].device);
	if (!l->backend_init_failed || on_lane)
		return false;
	verdict(j, REASON_BACKEND_INIT_FAILED, "%s", headline(l));
	return true;
}

/* Whether the run came to a bad end: words that it got over decide nothing. */
static bool
ended_badly(const struct judge *j)
{
	return !j->ask->timed_out && (j->ask->exit != 0 || j->l->aborted);
}

static bool
check_code(struct judge *j)
{
	if (!j->l->no_code || !ended_badly(j))
		return false;
	verdict(j, REASON_NO_CODE_FOR_DEVICE, "no code for the device's chip: %s", headline(j->l));
	return true;
}

static bool
check_memory(struct judge *j)
{
	if (!j->l->out_of_memory || !ended_badly(j))
		return false;
	verdict(j, REASON_MODEL_NOT_SUITABLE, "not enough memory on the device: %s",
		headline(j->l));
	hint(j, "free memory of the device, or use a smaller model");
	return true;
}

static bool
check_timeout(struct judge *j)
{
	if (!j->ask->timed_out)
		return false;
	if (j->l->speaks_cli_only) {
		verdict(j, REASON_TIMEOUT, "the engine conversed until the time limit");
		hint(j, "use llama-completion as the driver, or -st with llama-cli");
	} else {
		verdict(j, REASON_TIMEOUT,
			"the engine did not end within the time limit");
	}
	return true;
}

static bool
check_end(struct judge *j)
{
	const struct elog *l = j->l;
	const struct smoke_ask *a = j->ask;
	char status[96] = "";

	if (ntstatus_is(a->exit))
		ntstatus_show(a->exit, status, sizeof status);
	if (l->aborted)
		verdict(j, REASON_ENGINE_ABORT, "the engine aborted: %s", headline(l));
	else if (a->signal != 0)
		verdict(j, REASON_ENGINE_CRASH, "the engine died by signal %d: %s",
			a->signal, headline(l));
	else if (a->exit > 128 && a->exit <= 128 + 64)
		verdict(j, REASON_ENGINE_CRASH,
			"the engine ended with %d (signal %d): %s", a->exit,
			a->exit - 128, headline(l));
	else if (status[0] != '\0' && ntstatus_not_loaded(a->exit)) {
		verdict(j, REASON_TOOL_BROKEN, "the engine could not be started: %s", status);
		hint(j, "put the libraries that it was built with beside it");
	} else if (status[0] != '\0')
		verdict(j, REASON_ENGINE_CRASH, "the engine ended with %s: %s", status, headline(l));
	else if (l->error_prefix)
		verdict(j, REASON_ENGINE_ERROR, "%s", headline(l));
	else if (a->exit > 0)
		verdict(j, REASON_ENGINE_EXIT, "the engine ended with exit code %d: %s",
			a->exit, headline(l));
	else if (a->exit < 0)
		verdict(j, REASON_INTERNAL, "the engine's end was not seen");
	else
		return false;
	return true;
}

static bool
check_type(struct judge *j)
{
	struct span got = { j->l->k_type, strlen(j->l->k_type) };

	if (got.n == 0 || span_eq_nocase(got, j->ask->cache_type))
		return false;
	verdict(j, REASON_KV_TYPE_DIFFERS, "K cache is %s, asked was %s", j->l->k_type,
		j->ask->cache_type);
	return true;
}

static bool
check_offload(struct judge *j)
{
	const struct elog *l = j->l;

	if (!j->ask->lane->offloads || l->offloaded < 0 ||
	    (l->offloaded > 0 && l->offloaded == l->layers))
		return false;
	verdict(j, REASON_NOT_OFFLOADED, "%d of %d layers went to the device",
		l->offloaded, l->layers);
	return true;
}

/* The engine's own word for what it uses: "CUDA0 (NVIDIA H200)". */
static bool
check_used(struct judge *j)
{
	char id[sizeof j->l->device];
	size_t n = strcspn(j->l->device, " ");

	memcpy(id, j->l->device, sizeof id);
	id[n] = '\0';
	if (j->ask->lane->api == API_CPU || n == 0 || device_matches(j->ask->lane, id))
		return false;
	verdict(j, REASON_KV_NOT_ON_DEVICE, "the engine used %s, which is not the %s lane's device",
		j->l->device, j->ask->lane->name);
	j->out->line = j->l->device_line;
	return true;
}

static bool
is_used(const struct elog *l, const char *device)
{
	int i;

	for (i = 0; i < l->used_count && strcmp(l->used[i].name, device) != 0; i++)
		;
	return i < l->used_count;
}

/* The scheduler cuts names: "Vulka" is any of them. */
static bool
begins_used(const struct elog *l, const char *backend)
{
	int i;

	for (i = 0; i < l->used_count && !str_starts(l->used[i].name, backend); i++)
		;
	return i < l->used_count;
}

/* Words about the same thing that contradict each other: the layers of the cache, and the
 * devices that the engine says it uses. */
static bool
check_witnesses(struct judge *j)
{
	const struct elog *l = j->l;
	const struct elog_device *d = l->layer_on;
	int i;

	for (; d < l->layer_on + l->layer_count; d++) {
		if (device_matches(j->ask->lane, d->name))
			continue;
		verdict(j, REASON_KV_NOT_ON_DEVICE, "a layer of the cache is on %s, which is not the %s lane's device",
			d->name, j->ask->lane->name);
		j->out->line = d->line;
		return true;
	}
	if (j->ask->lane->api == API_CPU || l->used_count == 0 || l->used_count == ELOG_MAX_BUFFERS)
		return false;
	for (i = 0; i < l->kv_count && !is_used(l, l->kv[i].device); i++)
		;
	if (i == l->kv_count && l->kv_count > 0) {
		verdict(j, REASON_KV_NOT_ON_DEVICE, "the cache is on %s, and the engine says that it uses %s",
			l->kv[0].device, l->device);
		return true;
	}
	for (i = 0; i < l->attn_count && !begins_used(l, l->attn[i].backend); i++)
		;
	if (i < l->attn_count || l->attn_count == 0 || !attn_is_right(j->ask->lane, l->attn[0].backend))
		return false;
	verdict(j, REASON_KV_NOT_ON_DEVICE, "attention on %s, and the engine says that it uses %s", l->attn[0].backend,
		l->device);
	j->out->line = l->attn[0].line;
	return true;
}

static bool
check_kv_place(struct judge *j)
{
	const struct elog *l = j->l;
	char where[128];
	int i;

	for (i = 0; i < l->kv_count; i++)
		if (!device_matches(j->ask->lane, l->kv[i].device))
			break;
	if (i == l->kv_count)
		return false;
	kv_devices(l, where, sizeof where);
	verdict(j, REASON_KV_NOT_ON_DEVICE,
		"%s cache on %s, which is not the %s lane's device", j->ask->cache_type,
		where, j->ask->lane->name);
	return true;
}

/* "MUL_MAT kq*" against an op and a tensor, both of which the engine may have cut. */
static bool
node_matches(const char *rule, const struct elog_group *g)
{
	const char *blank = strchr(rule, ' ');
	size_t n = (size_t)(blank - rule);

	n = n > 10 ? 10 : n;
	return strncmp(g->op, rule, n) == 0 && (g->op[n] == '\0' || n == 10) &&
		glob_matches(blank + 1, g->tensor, false);
}

static bool
any_matches(const char *const *rules, int count, const struct elog_group *g)
{
	int i;

	for (i = 0; i < count; i++)
		if (node_matches(rules[i], g))
			return true;
	return false;
}

/* The first group that the suite's rule wants on the device and that is not there. */
static bool
check_placement(struct judge *j)
{
	const struct suite_placement *p = j->ask->placement;
	const struct elog_group *g;
	int i;

	for (i = 0; p != NULL && i < j->l->group_count; i++) {
		g = &j->l->groups[i];
		if (attn_is_right(j->ask->lane, g->backend) || !any_matches(p->device, p->device_count, g) ||
		    any_matches(p->cpu, p->cpu_count, g))
			continue;
		verdict(j, j->ask->lane->api == API_CPU ? REASON_KV_NOT_ON_DEVICE : REASON_OP_ON_CPU,
			"%s %s on %s in %u layer%s, %u nodes of %u graphs, the first in line %zu of the log", g->op,
			g->tensor, g->backend, (unsigned)g->layers, g->layers == 1 ? "" : "s",
			(unsigned)g->nodes, (unsigned)j->l->graphs, g->line + j->ask->lines_before);
		j->out->line = g->line;
		if (j->ask->lane->api == API_CPU)
			hint(j, "use an engine built without a GPU backend for this lane");
		return true;
	}
	return false;
}

static bool
check_attention(struct judge *j)
{
	const struct elog *l = j->l;
	const struct elog_attn *at;
	int i;

	for (i = 0; i < l->attn_count; i++) {
		at = &l->attn[i];
		if (attn_is_right(j->ask->lane, at->backend))
			continue;
		verdict(j, j->ask->lane->api == API_CPU ? REASON_KV_NOT_ON_DEVICE :
			REASON_OP_ON_CPU, "%u attention nodes on %s, the first %s %s in line %zu of the log",
			(unsigned)at->nodes, at->backend, at->op, at->tensor, at->line + j->ask->lines_before);
		j->out->line = at->line;
		if (j->ask->lane->api == API_CPU)
			hint(j,
			     "use an engine built without a GPU backend for this lane");
		return true;
	}
	return false;
}

static bool
check_tokens(struct judge *j)
{
	if (j->l->tokens < 0 || j->l->tokens >= j->ask->tokens)
		return false;
	verdict(j, REASON_TOO_FEW_TOKENS, "%d of %d tokens came out", j->l->tokens,
		j->ask->tokens);
	return true;
}

/* What a pass needs and the log does not show. */
static bool
check_missing(struct judge *j)
{
	const struct elog *l = j->l;
	char missing[200] = "";
	bool gpu = j->ask->lane->api != API_CPU;
	/* An engine that has no device but the processor need not show where it computed; one
	 * that counts layers to offload has another, even where none went. */
	bool nodes = gpu || l->device[0] != '\0' || l->device_listed || l->offloaded >= 0;

	if (l->overflow)
		append(missing, sizeof missing, ", ", "a list of devices that fits");
	if (l->k_type[0] == '\0')
		append(missing, sizeof missing, ", ", "the K cache type");
	if (l->kv_count == 0)
		append(missing, sizeof missing, ", ", "a KV buffer larger than 0");
	if (l->tokens < 0)
		append(missing, sizeof missing, ", ", "the eval time line");
	if (j->ask->lane->offloads && l->offloaded < 0)
		append(missing, sizeof missing, ", ", "the offloaded layers");
	if (nodes && (l->graphs == 0 || !l->attn_seen))
		append(missing, sizeof missing, ", ",
		       "attention nodes of a computed graph");
	else if (nodes && !l->kv_write_seen)
		append(missing, sizeof missing, ", ",
		       "the node that writes the K cache");
	if (gpu && l->device[0] == '\0' && !l->device_listed)
		append(missing, sizeof missing, ", ", "the device that was used");
	if (l->bare_graphs > 0)
		append(missing, sizeof missing, ", ", "the attention of every computed graph");
	if (l->torn > 0)
		append(missing, sizeof missing, ", ", "a line that is torn");
	if (l->next_run > 0)
		append(missing, sizeof missing, ", ", "a file of its own for each run (another begins further down)");
	if (gpu && j->ask->dropped > 0 && !l->cut_late)
		append(missing, sizeof missing, ", ", "what was cut out before the first token");
	if (j->ask->raw && (!l->whole || l->compute_buffers == 0 || l->freed_buffers < l->compute_buffers))
		append(missing, sizeof missing, ", ", "the end (the context's last lines, with -lv 5)");
	if (missing[0] == '\0')
		return false;
	verdict(j, REASON_LOG_TOO_QUIET, "missing in the log: %s", missing);
	j->out->again = l->kv_count > 0 && (l->tokens < 0 || l->torn > 0);
	if (j->out->again)
		hint(j,
		     "the engine ended before its log was written out; run it again");
	else if (l->speaks_cli_only)
		hint(j, "use llama-completion as the driver; llama-cli hides its log");
	else if (j->ask->raw && l->whole && l->compute_buffers > 0 && l->freed_buffers == 0)
		hint(j, "cut off, or of an older engine, which prints no end: let verify-agent make the run, its log says how it ended");
	return true;
}

static void
pass(struct judge *j)
{
	const struct elog *l = j->l;
	char kv[96], attn[96], cut[48] = "";

	kv_devices(l, kv, sizeof kv);
	attn_backends(l, attn, sizeof attn);
	if (j->ask->dropped > 0)
		snprintf(cut, sizeof cut, ", %llu bytes of log cut out",
			(unsigned long long)j->ask->dropped);
	verdict(j, REASON_NONE, "K cache %s on %s, %d of %d tokens, attention %s%s%s%s",
		l->k_type, kv, l->tokens, j->ask->tokens,
		attn[0] != '\0' ? "on " : "not shown", attn, l->custom_op ? " by the family's own op"
			: l->cache_cast ? ", the cache cast to be read" : "", cut);
}

/* Lines that speak of a reason, where the check itself did not say which. */
static size_t
line_of(const struct elog *l, enum reason r)
{
	switch (r) {
	case REASON_NONE:
	case REASON_KV_NOT_ON_DEVICE:
		return l->kv_line;
	case REASON_KV_TYPE_DIFFERS:
		return l->type_line;
	case REASON_NOT_OFFLOADED:
		return l->offload_line;
	case REASON_TOO_FEW_TOKENS:
		return l->tokens_line;
	case REASON_LOG_TOO_QUIET:
	case REASON_TIMEOUT:
	case REASON_CANCELLED:
		return 0;
	default:
		return l->cause_line != 0 ? l->cause_line : l->error_line;
	}
}

/* Three facts beside the verdict: each is what the log shows, not what follows from it. */
static void
facts(struct judge *j)
{
	const struct elog *l = j->l;
	struct span got = {l->k_type, strlen(l->k_type)};
	int i;

	if (j->out->line == 0)
		j->out->line = line_of(l, j->out->reason);
	j->out->accepted = !l->unknown_cache_type && (l->k_type[0] != '\0' || l->op_unsupported[0] != '\0' ||
		l->head_not_divisible);
	j->out->allocated = got.n > 0 && span_eq_nocase(got, j->ask->cache_type) && l->kv_count > 0;
	for (i = 0; i < l->kv_count; i++)
		j->out->allocated &= device_matches(j->ask->lane, l->kv[i].device);
	j->out->dispatched = j->out->allocated && l->graphs > 0 && l->attn_seen && l->kv_write_seen &&
		l->attn_count > 0 && !l->overflow;
	for (i = 0; i < l->attn_count; i++)
		j->out->dispatched &= attn_is_right(j->ask->lane, l->attn[i].backend);
	if (l->op_unsupported[0] != '\0')
		j->out->dispatched = false;
}

void
elog_judge(const struct elog *l, const struct smoke_ask *ask, struct smoke_verdict *out)
{
	/* First what names a cause, then how the process ended, then what is wrong,
	 * then what is missing. */
	static bool (*const checks[])(struct judge *) = {
		check_cancelled, check_driver, check_cache_type, check_op,
		check_refusals, check_model, check_device, check_code, check_memory,
		check_timeout, check_end, check_type, check_offload,
		check_kv_place, check_used, check_witnesses, check_placement, check_attention, check_tokens, check_missing,
	};
	struct judge j = { l, ask, out };
	size_t i;

	memset(out, 0, sizeof *out);
	for (i = 0; i < str_count(checks); i++)
		if (checks[i](&j))
			break;
	if (i == str_count(checks))
		pass(&j);
	facts(&j);
	if (out->line > 0)
		out->line += ask->lines_before;
}
