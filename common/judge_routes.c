/*
 * The verdict on the engine-verify gate: six graph routes of the engine on the lane's
 * device, score by score.  The program prints each number that came out, that of the
 * engine's CPU backend and that of the reference; they are compared here again, and what it
 * says about them only has to agree.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bound.h"
#include "common/json.h"
#include "common/judge_impl.h"
#include "common/str.h"
#include "common/tool_impl.h"

#define TOLERANCE 1e-3 /* absolute, strict */
#define PLAIN_SCORES 32
/* The sets of scores of a route, in their order; the last has an error planted in a key. */
static const struct {
	const char *name;
	size_t scores;
} sets[] = {{"plain", PLAIN_SCORES}, {"odd", 222}, {"planted", PLAIN_SCORES}};
#define SETS str_count(sets)
#define PLANTED (SETS - 1)

static const char *const labels[ROUTE_FACTS_MAX] = {
	"GGML_OP_ATTN_SCORE_QJL", "GGML_OP_ATTN_SCORE_TBQ/turbo3", "GGML_OP_ATTN_SCORE_TBQ/turbo4",
	"GGML_OP_ATTN_SCORE_TBQ/turbo3_tcq", "GGML_OP_ATTN_SCORE_POLAR/use_qjl=0",
	"GGML_OP_ATTN_SCORE_POLAR/use_qjl=1",
};

enum word { WORD_NONE, WORD_PASS, WORD_FAIL, WORD_UNSUPPORTED, WORD_MISSING };

struct route {
	bool begun;
	enum word word;        /* how its own line ends it */
	size_t count[SETS];
	float plain[PLAIN_SCORES]; /* what the reference says without the planted error */
	double worst, largest; /* difference; score of the reference */
	uint32_t wrong, total;
	bool noticed;          /* the planted error changed a score */
	char first[120];       /* the first score that is wrong */
	char said[160];        /* the ending line after its label */
};

/* One run of the program. */
struct parse {
	char prefix[40];       /* "[engine-verify] " */
	char device[128], backend[32], id[32], asked[32];
	struct route route[ROUTE_FACTS_MAX];
	int at;                /* the route whose scores come; -1: none */
	bool no_device, software, ended_pass, ended;
	char broken[160];      /* what is not as the program prints it; "" nothing */
	char note[160];        /* the first of its notes */
};

static void broken(struct parse *p, const char *fmt, ...) PRINTF(2, 3);

static void
broken(struct parse *p, const char *fmt, ...)
{
	va_list ap;

	if (p->broken[0] != '\0')
		return;
	va_start(ap, fmt);
	str_showv(p->broken, sizeof p->broken, fmt, ap);
	va_end(ap);
}

/* The route whose label the text begins with, up to the end character; -1: none. */
static int
label_find(const char *text, char end)
{
	size_t n;
	int i;

	for (i = 0; i < ROUTE_FACTS_MAX; i++) {
		n = strlen(labels[i]);
		if (strncmp(text, labels[i], n) == 0 && text[n] == end)
			return i;
	}
	return -1;
}

static void
route_begin(struct parse *p, const char *text)
{
	int i = label_find(text, ' ');

	if (i < 0)
		broken(p, "unknown route \"%.60s\"", text);
	else if (p->route[i].begun)
		broken(p, "%s stands there twice", labels[i]);
	else
		p->route[i].begun = true;
	p->at = i < 0 || p->broken[0] != '\0' ? -1 : i;
}

/* "-26.9249115 " and what follows; a float as it was printed, so that nothing is lost. */
static bool
number_read(const char **text, char end, float *out)
{
	char *stop;

	*out = strtof(*text, &stop);
	if (stop == *text || *stop != end)
		return false;
	*text = stop + (end != '\0');
	return true;
}

static void
score_check(struct route *r, const char *set, size_t at, const float v[3], bool planted)
{
	double a = fabs((double)v[0] - (double)v[2]), b = fabs((double)v[0] - (double)v[1]);
	double d = a > b ? a : b;

	r->total++;
	if (!(a < TOLERANCE) || !(b < TOLERANCE) || !isfinite(v[0]) || !isfinite(v[1]) || !isfinite(v[2])) {
		if (r->wrong++ == 0)
			snprintf(r->first, sizeof r->first, "%s %zu: %.9g, the CPU has %.9g, the reference %.9g", set, at,
				(double)v[0], (double)v[1], (double)v[2]);
	}
	r->worst = d > r->worst ? d : r->worst;
	r->largest = fabs((double)v[2]) > r->largest ? fabs((double)v[2]) : r->largest;
	if (planted && at < PLAIN_SCORES && fabs((double)v[0] - (double)r->plain[at]) >= TOLERANCE)
		r->noticed = true;
}

/* "plain 0 1.5 1.5 1.5": sets in their order, numbers from 0 on. */
static void
score_take(struct parse *p, const char *text)
{
	struct route *r = p->at >= 0 ? &p->route[p->at] : NULL;
	char set[16], want[40];
	const char *rest = text;
	float v[3];
	size_t s = 0, n;

	while (r != NULL && s < SETS && r->count[s] == sets[s].scores)
		s++;
	if (r == NULL || r->word != WORD_NONE || s == SETS) {
		broken(p, "a score of no route: \"%.60s\"", text);
		return;
	}
	snprintf(set, sizeof set, "%s", sets[s].name);
	n = (size_t)snprintf(want, sizeof want, "%s %zu ", set, r->count[s]);
	if (strncmp(text, want, n) != 0) {
		broken(p, "%s: score \"%.40s\" where %swas due", labels[p->at], text, want);
		return;
	}
	rest += n;
	if (!number_read(&rest, ' ', &v[0]) || !number_read(&rest, ' ', &v[1]) ||
	    !number_read(&rest, '\0', &v[2])) {
		broken(p, "%s: no three numbers: \"%.60s\"", labels[p->at], text);
		return;
	}
	if (s == 0)
		r->plain[r->count[s]] = v[2];
	score_check(r, set, r->count[s]++, v, s == PLANTED);
}

/* "PASS LABEL: ...", "FAIL engine suite: ..." */
static void
end_take(struct parse *p, enum word word, const char *text)
{
	int i = label_find(text, ':');

	if (i >= 0) {
		if (p->route[i].word != WORD_NONE || (word == WORD_MISSING) == p->route[i].begun)
			broken(p, "%s ends where it did not begin", labels[i]);
		p->route[i].begun = true;
		p->route[i].word = word;
		snprintf(p->route[i].said, sizeof p->route[i].said, "%s", text + strlen(labels[i]) + 2);
		p->at = -1;
	} else if (str_starts(text, "engine suite: ") && !p->ended) {
		p->ended = true;
		p->ended_pass = word == WORD_PASS && strcmp(text, "engine suite: 6 graph routes") == 0;
	} else {
		broken(p, "an end of nothing: \"%.80s\"", text);
	}
}

/* "backend=CUDA0 registry=CUDA id=0000:00:06.0" */
static void
backend_take(struct parse *p, const char *text)
{
	if (p->backend[0] != '\0' ||
	    sscanf(text, "%31s registry=%*s id=%31s", p->backend, p->id) != 2)
		broken(p, "no second backend and no other form: \"%.60s\"", text);
}

static void
device_take(struct parse *p, const char *text)
{
	if (p->device[0] != '\0' || text[0] == '\0')
		broken(p, "no second device: \"%.60s\"", text);
	else
		str_show(p->device, sizeof p->device, text, strlen(text));
}

static void
nodevice_take(struct parse *p, const char *text)
{
	(void)text;
	p->no_device = true;
}

static void
software_take(struct parse *p, const char *text)
{
	(void)text;
	p->software = true;
}

static void
note_take(struct parse *p, const char *text)
{
	if (p->note[0] == '\0')
		str_show(p->note, sizeof p->note, text, strlen(text));
}

static void
line_take(struct parse *p, const char *text)
{
	static const struct {
		const char *begin;
		void (*take)(struct parse *, const char *);
	} rows[] = {{"score ", score_take}, {"route ", route_begin}, {"device=", device_take},
		{"backend=", backend_take}, {"note ", note_take}, {"NODEVICE ", nodevice_take},
		{"SOFTWARE ", software_take}, {"cpu=", NULL}};
	static const struct {
		const char *begin;
		enum word word;
	} ends[] = {{"PASS ", WORD_PASS}, {"FAIL ", WORD_FAIL}, {"UNSUPPORTED ", WORD_UNSUPPORTED},
		{"MISSING ", WORD_MISSING}};
	size_t i;

	if (p->ended)
		broken(p, "a line after the end: \"%.80s\"", text);
	for (i = 0; i < str_count(rows); i++)
		if (str_starts(text, rows[i].begin)) {
			if (rows[i].take != NULL)
				rows[i].take(p, text + strlen(rows[i].begin));
			return;
		}
	for (i = 0; i < str_count(ends); i++)
		if (str_starts(text, ends[i].begin)) {
			end_take(p, ends[i].word, text + strlen(ends[i].begin));
			return;
		}
	broken(p, "unknown line \"%.80s\"", text);
}

/* Whether the section is a run of the program; its prefix and the device asked for. */
static bool
run_of(const struct section *s, struct parse *p)
{
	char name[32];
	const char *asked;
	cJSON *o = NULL;

	if (strcmp(s->kind, "run") != 0)
		return false;
	judge_tool_name(s, name, sizeof name);
	if (strcmp(name, "engine-verify") != 0 && strcmp(name, "vulkan_dispatch_smoke") != 0)
		return false;
	memset(p, 0, sizeof *p);
	p->at = -1;
	snprintf(p->prefix, sizeof p->prefix, "[%s] ", name);
	if (json_parse(s->head, strlen(s->head), 1u << 20, &o, NULL) == 0) {
		asked = judge_argv_value(json_get(o, "argv"), "--device", "--device");
		snprintf(p->asked, sizeof p->asked, "%s", asked ? asked : "");
	}
	cJSON_Delete(o);
	return true;
}

static void
run_read(const struct section *s, struct parse *p)
{
	char line[512];
	const char *text;
	size_t pos = 0, n, k = strlen(p->prefix);

	while (section_line(s, &pos, &text, &n)) {
		n -= n > 0 && text[n - 1] == '\r';
		if (n < k || memcmp(text, p->prefix, k) != 0)
			continue; /* the engine's own words */
		if (n - k >= sizeof line || memchr(text, '\0', n) != NULL) {
			broken(p, "a line of %zu bytes", n);
			continue;
		}
		snprintf(line, sizeof line, "%.*s", (int)(n - k), text + k);
		line_take(p, line);
	}
}

/* How many routes ended with the word; *first is the first of them. */
static int
word_count(const struct parse *p, enum word word, int *first)
{
	int i, n = 0;

	for (i = ROUTE_FACTS_MAX - 1; i >= 0; i--)
		if (p->route[i].word == word) {
			*first = i;
			n++;
		}
	return n;
}

/* Numbers first: what was computed and is wrong. */
static bool
scores_wrong(const struct parse *p, struct judgement *out)
{
	const struct route *r;
	int i;

	for (i = 0; i < ROUTE_FACTS_MAX; i++) {
		r = &p->route[i];
		if (r->wrong > 0) {
			judgement_set(out, REASON_OP_MISMATCH, "%s on %s: %u of %u scores are wrong: %s", labels[i],
				p->backend, (unsigned)r->wrong, (unsigned)r->total, r->first);
			return true;
		}
		if (r->count[PLANTED] == sets[PLANTED].scores && !r->noticed) {
			judgement_set(out, REASON_CONTROL_MISSED, "%s on %s: a turned bit of a key changed no score",
				labels[i], p->backend);
			return true;
		}
		if (r->word == WORD_FAIL) {
			judgement_set(out, REASON_OP_MISMATCH, "%s on %s fails: %.80s%s%.100s", labels[i], p->backend,
				r->said, p->note[0] ? "; " : "", p->note);
			return true;
		}
	}
	return false;
}

/* What a route says of itself is what its numbers say. */
static bool
is_route_whole(const struct parse *p, int i, struct judgement *out)
{
	const struct route *r = &p->route[i];
	char said[160];
	size_t s;

	if (r->word != WORD_PASS) {
		judgement_set(out, r->begun ? REASON_SUMMARY_MISSING : REASON_NO_CASE_EXECUTED, "%s %s", labels[i],
			r->begun ? "did not end" : "was not tested");
		return false;
	}
	for (s = 0; s < SETS; s++)
		if (r->count[s] != sets[s].scores) {
			judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "%s: %zu of %zu %s scores", labels[i], r->count[s],
				sets[s].scores, sets[s].name);
			return false;
		}
	snprintf(said, sizeof said, "%u scores, max diff %.3e", (unsigned)r->total, r->worst);
	if (strcmp(said, r->said) != 0)
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "%s says \"%.60s\", its scores say \"%.60s\"",
			labels[i], r->said, said);
	else if (!(r->largest > 0.1)) /* all zeros agree with all zeros */
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "%s: its scores are all about 0", labels[i]);
	else
		return true;
	return false;
}

static bool
is_software(const struct parse *p, const struct judge_ask *ask)
{
	return ask->lane->api != API_CPU && (p->software || tool_is_software_name(p->device));
}

/* The words of the program about what it could not do; true when they decide. */
static bool
words_decide(const struct parse *p, const struct section *s, const struct judge_ask *ask,
	struct judgement *out)
{
	int i = 0, n;

	if (s->cancelled)
		judgement_set(out, REASON_CANCELLED, "cancelled while the routes were tested");
	else if (s->timed_out)
		judgement_set(out, REASON_TIMEOUT, "the test of the routes did not end in time");
	/* what is not in the engine is so on any device */
	else if (word_count(p, WORD_MISSING, &i) == 0 && is_software(p, ask))
		judgement_set(out, REASON_SOFTWARE_DEVICE, "%s is %.120s", p->backend, p->device);
	else if (scores_wrong(p, out))
		return true;
	else if (s->signal != 0)
		judgement_set(out, s->signal == 6 ? REASON_ENGINE_ABORT : REASON_ENGINE_CRASH,
			"the engine died of signal %d in %s", s->signal, p->at >= 0 ? labels[p->at] : "the test");
	else if (p->broken[0] != '\0')
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "%s", p->broken);
	else if (p->no_device)
		judgement_set(out, REASON_BACKEND_NOT_PRESENT, "the engine has no device %s; %.120s", p->asked,
			p->note[0] ? p->note : "it has none");
	else if ((n = word_count(p, WORD_UNSUPPORTED, &i)) > 0)
		judgement_set(out, REASON_OP_NOT_SUPPORTED, "%d of %d routes, such as %s: %.120s", n,
			ROUTE_FACTS_MAX, labels[i], p->route[i].said);
	else if ((n = word_count(p, WORD_MISSING, &i)) > 0)
		judgement_set(out, REASON_OP_NOT_IN_ENGINE, "%d of %d routes, such as %s: %.120s", n, ROUTE_FACTS_MAX,
			labels[i], p->route[i].said);
	else
		return false;
	return true;
}

/* The device that the program names is the one that the log's own looks at it name. */
static bool
is_lane_device(const char *log, size_t len, const struct parse *p, const struct judge_ask *ask,
	struct judgement *out)
{
	struct bound b;
	struct judgement changed;
	char pci[32];

	if (p->device[0] == '\0' || p->backend[0] == '\0') {
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "the test of the routes names no device");
		return false;
	}
	if (!tool_backend_matches(ask->lane->op_backend, p->backend) || strcmp(p->backend, p->asked) != 0) {
		judgement_set(out, REASON_BACKEND_NOT_PRESENT, "%s was tested, the lane is for %s", p->backend,
			ask->lane->op_backend);
		return false;
	}
	/* judge_gate tells what is wrong with the looks */
	if (!bound_gate(ask->lane, GATE_ROUTES) ||
	    bound_judge(log, len, ask->lane, &b, &changed) != REASON_NONE)
		return true;
	if (tool_pci(p->id, pci) && b.pci[0] != '\0') {
		if (strcmp(pci, b.pci) == 0)
			return true;
		judgement_set(out, REASON_DEVICE_CHANGED, "it says that it ran at %.30s, the device is at %.30s", pci,
			b.pci);
	} else {
		if (strcmp(p->device, b.name) == 0)
			return true;
		judgement_set(out, REASON_DEVICE_CHANGED, "it says that it ran on %.80s, the device is %.80s",
			p->device, b.name[0] ? b.name : "unknown");
	}
	return false;
}

static void
run_judge(const char *log, size_t len, const struct section *s, const struct parse *p,
	const struct judge_ask *ask, struct judgement *out)
{
	double worst = 0;
	int i;

	if (words_decide(p, s, ask, out))
		return;
	if (!p->ended) {
		judgement_set(out, REASON_SUMMARY_MISSING, "the test of the routes did not print its end%s%.160s",
			p->note[0] ? ": " : "", p->note);
		return;
	}
	for (i = 0; i < ROUTE_FACTS_MAX; i++) {
		if (!is_route_whole(p, i, out))
			return;
		worst = p->route[i].worst > worst ? p->route[i].worst : worst;
	}
	if (!p->ended_pass || s->exit != 0 || s->dropped != 0)
		judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT,
			"the test of the routes ended with exit %d, and its routes are right", s->exit);
	else if (is_lane_device(log, len, p, ask, out))
		judgement_set(out, REASON_NONE, "%d routes on %s, %.60s, largest difference %.3e", ROUTE_FACTS_MAX,
			p->backend, p->device, worst);
}

/* The first line of a compiler's output that is an error. */
static void
error_line(const struct section *s, char *out, size_t size)
{
	const char *line;
	size_t pos = 0, n;

	out[0] = '\0';
	while (section_line(s, &pos, &line, &n))
		if (memmem(line, n, "error", 5) != NULL) {
			str_show(out, size, line, n);
			return;
		}
}

/* The program could not be made: the compiler's own run says why. */
static bool
compile_failed(const struct section *s, struct judgement *out)
{
	char line[160];

	if (strcmp(s->kind, "run") != 0 || strstr(s->head, "engine_verify.c") == NULL)
		return false;
	if (s->cancelled)
		judgement_set(out, REASON_CANCELLED, "cancelled while engine-verify was compiled");
	else if (s->timed_out)
		judgement_set(out, REASON_TIMEOUT, "engine-verify was not compiled in time");
	else if (s->exit != 0 || s->signal != 0) {
		error_line(s, line, sizeof line);
		judgement_set(out, REASON_TOOL_BROKEN, "engine-verify can not be compiled against this engine: %s",
			line[0] ? line : "the compiler does not say why");
	} else
		return false;
	return true;
}

void
judge_routes(const char *log, size_t len, const struct judge_ask *ask, struct judgement *out)
{
	struct parse *p;
	struct section s;
	size_t pos = 0;
	int runs = 0;
	bool failed = false;

	if (judge_decided(log, len, out))
		return;
	if ((p = malloc(sizeof *p)) == NULL) {
		judgement_set(out, REASON_INTERNAL, "no memory to read the log");
		return;
	}
	while (!failed && transcript_next(log, len, &pos, &s, NULL) == 1) {
		failed = compile_failed(&s, out);
		if (!failed && run_of(&s, p)) {
			if (runs++ > 0) {
				judgement_set(out, REASON_UNKNOWN_TOOL_FORMAT, "the routes were tested twice");
				failed = true;
			} else {
				run_read(&s, p);
				run_judge(log, len, &s, p, ask, out);
			}
		}
		section_fini(&s);
	}
	if (!failed && runs == 0)
		judgement_set(out, REASON_NO_CASE_EXECUTED, "no route was tested");
	free(p);
}

int
route_facts_read(const char *log, size_t len, struct route_facts out[ROUTE_FACTS_MAX])
{
	struct parse *p = malloc(sizeof *p);
	struct section s;
	size_t pos = 0;
	int i, n = 0;

	while (p != NULL && n == 0 && transcript_next(log, len, &pos, &s, NULL) == 1) {
		if (run_of(&s, p)) {
			run_read(&s, p);
			for (i = 0; i < ROUTE_FACTS_MAX; i++) {
				if (p->route[i].word == WORD_NONE)
					continue;
				out[n].label = labels[i];
				out[n].right = p->route[i].total - p->route[i].wrong;
				out[n].wrong = p->route[i].wrong;
				out[n].supported = p->route[i].word == WORD_PASS || p->route[i].word == WORD_FAIL;
				out[n++].max_diff = p->route[i].total > 0 ? p->route[i].worst : -1;
			}
		}
		section_fini(&s);
	}
	free(p);
	return n;
}
