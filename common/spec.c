#include "common/spec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/elog_line.h"
#include "common/span.h"
#include "common/str.h"
#include "common/tool.h"

bool
spec_is_mtp(const char *name)
{
	static const char *const names[] = {"draft-mtp", "mtp", "draft_mtp", "drafter-mtp"};
	size_t i;

	for (i = 0; i < str_count(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	return false;
}

bool
spec_is_stock(const char *type)
{
	static const char *const types[] = {"f16", "f32", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0",
		"q4_k", "q5_k", "q6_k", "q8_k", "iq4_nl"};
	size_t i;

	for (i = 0; i < str_count(types); i++)
		if (strcasecmp(type, types[i]) == 0)
			return true;
	return false;
}

/* How much a line of counters is worth: those that name the speculator before others. */
enum worth { WORTH_NONE, WORTH_RATE, WORTH_PAIR, WORTH_MTP, WORTH_STATISTICS };

struct parse {
	struct spec_facts *f;
	const struct lane *lane;
	enum worth worth;
	int64_t n_drafted, n_accept;
	bool foreign;      /* statistics of another speculator stand there */
	bool torn;         /* the line has no end: what it counts may go on */
	char kv_device[32];
};

struct row {
	const char *pat;
	void (*fill)(struct parse *p, const struct span *caps, struct span line);
};

static void
counters(struct parse *p, enum worth worth, int64_t drafted, int64_t accepted, struct span line)
{
	if (worth < p->worth || p->torn)
		return;
	p->worth = worth;
	p->f->drafted = drafted;
	p->f->accepted = accepted;
	span_copy(p->f->counters, sizeof p->f->counters, line);
}

static void
on_architecture(struct parse *p, const struct span *caps, struct span line)
{
	char name[40];

	(void)line;
	span_copy(name, sizeof name, span_trim(caps[1]));
	if (p->f->architecture[0] == '\0')
		memcpy(p->f->architecture, name, sizeof name);
	else if (strcmp(name, p->f->architecture) != 0 && p->f->draft_architecture[0] == '\0')
		memcpy(p->f->draft_architecture, name, sizeof name);
}

static void
on_nextn(struct parse *p, const struct span *caps, struct span line)
{
	(void)line;
	p->f->nextn |= span_has(caps[1], "nextn_predict_layers") && span_int(caps[2]) > 0;
}

static void
on_flash_on(struct parse *p, const struct span *caps, struct span line)
{
	(void)caps, (void)line;
	p->f->flash_on = true;
}

static void
on_flash_off(struct parse *p, const struct span *caps, struct span line)
{
	(void)caps, (void)line;
	p->f->flash_off = true;
}

static void
on_kv_buffer(struct parse *p, const struct span *caps, struct span line)
{
	char device[32];

	(void)line;
	if (span_number(caps[1]) <= 0)
		return;
	span_copy(device, sizeof device, caps[0]);
	p->f->kv_buffers++;
	if (!tool_backend_matches(p->lane->kv_device, device)) {
		p->f->kv_elsewhere++;
		memcpy(p->f->kv_device, device, sizeof device);
	} else if (p->f->kv_device[0] == '\0') {
		memcpy(p->f->kv_device, device, sizeof device);
	}
}

static void
on_kv_types(struct parse *p, const struct span *caps, struct span line)
{
	struct spec_facts *f = p->f;
	char k[sizeof f->kv[0].k], v[sizeof f->kv[0].v];
	int i = f->kv_count;

	(void)line;
	if (span_number(caps[0]) <= 0)
		return;
	span_copy(k, sizeof k, caps[2]);
	span_copy(v, sizeof v, caps[4]);
	if (i == SPEC_MAX_KV && spec_is_stock(k) && spec_is_stock(v))
		return;
	/* one that must not be is kept where others have no room */
	i -= i == SPEC_MAX_KV;
	memcpy(f->kv[i].k, k, sizeof k);
	memcpy(f->kv[i].v, v, sizeof v);
	f->kv_count = i + 1;
}

static void
on_implementation(struct parse *p, const struct span *caps, struct span line)
{
	char name[40];

	(void)line;
	span_copy(name, sizeof name, caps[0]);
	if (spec_is_mtp(name))
		memcpy(p->f->implementation, name, sizeof name);
	else
		p->f->other = true;
}

static void
on_disabled(struct parse *p, const struct span *caps, struct span line)
{
	char name[40];

	(void)line;
	span_copy(name, sizeof name, caps[1]);
	if (spec_is_mtp(name))
		p->f->implementation[0] = '\0';
}

static void
on_none(struct parse *p, const struct span *caps, struct span line)
{
	(void)caps, (void)line;
	p->f->none = true;
}

static void
on_no_layers(struct parse *p, const struct span *caps, struct span line)
{
	(void)caps, (void)line;
	p->f->no_layers = true;
}

static void
on_refused(struct parse *p, const struct span *caps, struct span line)
{
	(void)caps;
	p->f->refused = true;
	span_copy(p->f->error, sizeof p->f->error, line);
}

/* "#calls(b,g,a) = 1 84 84, ..., #gen tokens = 159, #acc tokens = 111, ..." */
static int64_t
number_after(struct span s, const char *key)
{
	size_t n = strlen(key), i;
	struct span rest;

	for (i = 0; i + n <= s.n; i++)
		if (memcmp(s.p + i, key, n) == 0) {
			rest.p = s.p + i + n;
			rest.n = s.n - i - n;
			rest = span_trim(rest);
			return rest.n > 0 && span_is_digit(*rest.p) ? span_int(rest) : -1;
		}
	return -1;
}

static void
on_statistics(struct parse *p, const struct span *caps, struct span line)
{
	char name[40];
	size_t n;
	int64_t made, taken;

	span_copy(name, sizeof name, caps[0]);
	for (n = strlen(name); n > 0 && name[n - 1] == ':'; n--)
		name[n - 1] = '\0';
	made = number_after(caps[1], "#gen tokens = ");
	taken = number_after(caps[1], "#acc tokens = ");
	if (!spec_is_mtp(name))
		p->foreign = true;
	else if (made >= 0 && taken >= 0)
		counters(p, WORTH_STATISTICS, made, taken, line);
}

static void
on_rate(struct parse *p, const struct span *caps, struct span line)
{
	bool known = span_eq_nocase(caps[3], "generated") || span_eq_nocase(caps[3], "drafted");

	/* "), mean len = 2.32" */
	if (known && (caps[4].n == 0 || caps[4].p[0] == ','))
		counters(p, WORTH_RATE, span_int(caps[2]), span_int(caps[1]), line);
}

/* "n_drafted = 100", "n_accept: 44": the name, one of := with blanks or none, the number. */
static void
pair_message(struct parse *p, struct span line)
{
	static const char *const accepts[] = {"n_accept", "n_accepted", "n_drafted_accepted"};
	struct span name = line, rest = line;
	bool taken = false;
	size_t i;

	for (name.n = 0; name.n < line.n && span_is_word(line.p[name.n]); name.n++)
		;
	rest.p += name.n, rest.n -= name.n;
	rest = span_trim(rest);
	if (rest.n == 0 || (*rest.p != '=' && *rest.p != ':'))
		return;
	rest.p++, rest.n--;
	rest = span_trim(rest);
	for (i = 0; i < rest.n && span_is_digit(rest.p[i]); i++)
		;
	if (i == 0 || i < rest.n)
		return;
	for (i = 0; i < str_count(accepts); i++)
		taken |= span_eq_nocase(name, accepts[i]);
	if (taken)
		p->n_accept = span_int(rest);
	else if (span_eq_nocase(name, "n_drafted"))
		p->n_drafted = span_int(rest);
	else
		return;
	if (p->n_drafted >= 0 && p->n_accept >= 0)
		counters(p, WORTH_PAIR, p->n_drafted, p->n_accept, line);
}

static void
on_mtp(struct parse *p, const struct span *caps, struct span line)
{
	counters(p, WORTH_MTP, span_int(caps[0]), span_int(caps[1]), line);
}

/* Patterns over a whole message; what stands in front of a function's colon may vary. */
static const struct row rows[] = {
	{"common_speculative_init: adding speculative implementation '%*'", on_implementation},
	{"adding speculative implementation '%*'", on_implementation},
	{"%*disabling speculative implementation '%*'%*", on_disabled},
	{"%*no implementations specified for speculative decoding%*", on_none},
	{"%*context type MTP requested but model doesn't contain MTP layers%*", on_no_layers},
	{"%*invalid argument: --spec-type%*", on_refused},
	{"%*error while handling argument \"--spec-type\"%*", on_refused},
	{"%*unknown speculative type%*", on_refused},
	{"%*unknown speculative decoding type%*", on_refused},
	{"llama_context: flash_attn = enabled", on_flash_on},
	{"llama_context: flash_attn = 1", on_flash_on},
	{"%s: Flash Attention was auto, set to enabled", on_flash_on},
	{"llama_context: flash_attn = disabled", on_flash_off},
	{"%*Flash Attention was auto, set to disabled", on_flash_off},
	{"%*Flash Attention not supported, set to disabled", on_flash_off},
	{"%*V embeddings have different sizes across layers and FA is not enabled%*", on_flash_off},
	{"statistics %s %*", on_statistics},
	{"draft acceptance rate = %f ( %d accepted / %d %s)%*", on_rate},
	{"draft acceptance rate = %f (%d accepted / %d %s)%*", on_rate},
	{"draft acceptance = %f ( %d accepted / %d %s)%*", on_rate},
	{"draft acceptance = %f (%d accepted / %d %s)%*", on_rate},
	{"MTP: drafted %d accepted %d", on_mtp},
};

static void
kv_message(struct parse *p, struct span line)
{
	struct span caps[SPAN_MAX_FIELDS] = {{"", 0}}, body = line;
	size_t i;

	/* behind the function's name, which changed often */
	for (i = 0; i + 1 < line.n; i++)
		if (line.p[i] == ':' && line.p[i + 1] == ' ') {
			body.p = line.p + i + 1;
			body.n = line.n - i - 1;
			break;
		}
	body = span_trim(body);
	if (span_match(body, "%s KV buffer size = %f MiB", caps))
		on_kv_buffer(p, caps, line);
	else if (span_match(body, "size = %f MiB (%*), K (%s): %f MiB, V (%s): %f MiB", caps))
		on_kv_types(p, caps, line);
	else if (span_match(body, "- kv %d: general.architecture str = %s", caps))
		on_architecture(p, caps, line);
	else if (span_match(body, "- kv %d: %s u32 = %d", caps))
		on_nextn(p, caps, line);
}

/* "spec common_specu: text", "slot print_timing: id  0 | task 0 | text": heads of their own. */
static struct span
head_strip(struct span line)
{
	struct span caps[SPAN_MAX_FIELDS] = {{"", 0}};

	if (span_match(line, "spec %s: %*", caps))
		return caps[1];
	return span_match(line, "slot %s: id %d | task %s | %*", caps) ? caps[3] : line;
}

static void
message(void *arg, struct span line, char level, size_t number)
{
	struct parse *p = arg;
	struct span caps[SPAN_MAX_FIELDS] = {{"", 0}};
	size_t i;

	(void)level, (void)number;
	line = head_strip(span_trim(line));
	kv_message(p, line);
	pair_message(p, line);
	for (i = 0; i < str_count(rows); i++)
		if (span_match(line, rows[i].pat, caps))
			rows[i].fill(p, caps, line);
}

void
spec_parse(const char *log, size_t len, const struct lane *lane, struct spec_facts *out)
{
	struct parse p = {.f = out, .lane = lane, .n_drafted = -1, .n_accept = -1};
	size_t whole, line;

	memset(out, 0, sizeof *out);
	out->drafted = out->accepted = -1;
	for (whole = len; whole > 0 && log[whole - 1] != '\n'; whole--)
		;
	line = elog_messages(log, whole, 1, message, &p);
	p.torn = true;
	(void)elog_messages(log + whole, len - whole, line, message, &p);
	/* counters without a name belong to whoever was there: to mtp only when it was alone */
	if (p.worth < WORTH_MTP && (p.foreign || out->other))
		out->drafted = out->accepted = -1;
}
