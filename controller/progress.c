#include "controller/progress.h"

#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

#define NAME_CELLS 22
#define BAR_CELLS 20
#define WIDE_CELLS 90 /* a narrower terminal gets half a bar, so that the ETA is seen */
#define QUEUE "queue" /* the row of a job that waits for others */
#define LINE_MAX_BYTES 4096
#define FRAME_MAX_BYTES (1u << 20)

struct row {
	char name[80], text[120], unit[16], outcome[16], reason[48], detail[240];
	bool running;
	int64_t start_t, ms;     /* by the agent's clock; ms -1: unknown */
	uint64_t done, total;    /* total 0: unknown */
	double rate;             /* units a second, 0: unknown yet */
	int64_t rate_t;
	uint64_t rate_done;
};

struct progress {
	FILE *out;
	struct progress_look look;
	const char *host, *job;
	bool ended;
	struct row rows[PROGRESS_MAX_ROWS];
	int count;
	int64_t last_t, last_mono; /* of the newest event: the agent's clock and ours */
	int64_t drawn_mono, plain_mono;
	bool drawn_any, plain_any, dirty;
	int drawn[PROGRESS_MAX_ROWS]; /* cells of each line on the screen */
	int drawn_count, drawn_width;
};

/* ---- words and numbers ---- */

void
progress_duration(int64_t ms, char *out, size_t size)
{
	int64_t s = ms / 1000;

	if (ms < 0)
		snprintf(out, size, "-");
	else if (ms < 60000)
		snprintf(out, size, "%lld.%lld s", (long long)s, (long long)(ms % 1000 / 100));
	else if (s < 3600)
		snprintf(out, size, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
	else
		snprintf(out, size, "%lldh%02lldm", (long long)(s / 3600),
			(long long)(s % 3600 / 60));
}

void
progress_amount(double n, const char *unit, char *out, size_t size)
{
	static const char *const scale[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	if (!str_eq(unit, "bytes")) {
		snprintf(out, size, n < 10 && n != (double)(int)n ? "%.1f" : "%.0f", n);
		return;
	}
	for (; n >= 1024 && i + 1 < str_count(scale); i++)
		n /= 1024;
	snprintf(out, size, i == 0 ? "%.0f %s" : "%.1f %s", n, scale[i]);
}

void
progress_bar(uint64_t done, uint64_t total, int cells, bool utf8, char *out, size_t size)
{
	static const char *const eighth[] = {" ", "\u258f", "\u258e", "\u258d", "\u258c",
		"\u258b", "\u258a", "\u2589", "\u2588"};
	double full = total == 0 ? 0 : (double)done / (double)total * cells;
	size_t n = 0;
	int i, part;

	for (i = 0; i < cells && n + 4 < size; i++) {
		part = full >= i + 1 ? 8 : full <= i ? 0 : (int)((full - i) * 8);
		if (utf8)
			n += (size_t)snprintf(out + n, size - n, "%s", eighth[part]);
		else
			out[n++] = part >= 4 ? '#' : '.';
	}
	out[n] = '\0';
}

static const struct look_row {
	const char *outcome, *sign, *ascii, *colour;
} looks[] = {
	{"pass", "\u2713", "+", "32"},
	{"fail", "\u2717", "x", "31;1"},
	{"blocked", "\u2298", "!", "33"},
	{"skipped", "\u2013", "-", "2"},
	{"incomplete", "\u2026", "~", "35"},
	{NULL, "\u25b8", ">", "36"}, /* running, or a word of a later version */
};

static const struct look_row *
look_find(const char *outcome)
{
	const struct look_row *r = looks;

	while (r->outcome != NULL && !str_eq(r->outcome, outcome))
		r++;
	return r;
}

const char *
progress_sign(const char *outcome, bool utf8)
{
	return utf8 ? look_find(outcome)->sign : look_find(outcome)->ascii;
}

const char *
progress_colour(const char *outcome)
{
	return look_find(outcome)->colour;
}

void
progress_look_of(FILE *out, bool json, struct progress_look *look)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	bool terminal = isatty(fileno(out)) && term != NULL && term[0] != '\0' &&
		!str_eq(term, "dumb");

	memset(look, 0, sizeof *look);
	look->mode = json ? PROGRESS_JSON : terminal ? PROGRESS_LIVE : PROGRESS_PLAIN;
	look->colour = terminal && !json && (no_colour == NULL || no_colour[0] == '\0');
	look->utf8 = str_eq(nl_langinfo(CODESET), "UTF-8");
}

/* ---- life ---- */

static int64_t
now(const struct progress *p)
{
	return p->look.now ? p->look.now() : plat_mono_ms();
}

int
progress_new(FILE *out, const struct progress_look *look, const char *host,
	const char *job, struct progress **p, struct err *e)
{
	if ((*p = calloc(1, sizeof **p)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for the progress");
	(*p)->out = out;
	(*p)->look = *look;
	(*p)->host = host;
	(*p)->job = job;
	(*p)->last_mono = now(*p);
	return 0;
}

void
progress_free(struct progress *p)
{
	free(p);
}

/* ---- one line of cells ---- */

struct line {
	struct buf b;
	int cells, width;
	bool colour, utf8;
};

/* Length of the character at s and its cells; bytes are valid UTF-8 by then. */
static size_t
character(const char *s, int *cells)
{
	wchar_t w = 0;
	mbstate_t st;
	size_t n;

	if ((unsigned char)*s < 0x80) {
		*cells = 1;
		return 1;
	}
	memset(&st, 0, sizeof st);
	n = mbrtowc(&w, s, strlen(s), &st);
	if (n == 0 || n > 4) {
		*cells = 1;
		return 1;
	}
	*cells = wcwidth(w) < 0 ? 1 : wcwidth(w);
	return n;
}

/* Adds what fits.  A text that memory has no room for is left out: it is a display. */
static void
put(struct line *l, const char *colour, const char *s)
{
	size_t n;
	int cells;

	if (l->colour && colour[0] != '\0' && buf_addf(&l->b, NULL, "\033[%sm", colour))
		return;
	for (; *s != '\0'; s += n) {
		n = character(s, &cells);
		if (l->cells + cells > l->width)
			break;
		if (buf_add(&l->b, n > 1 && !l->utf8 ? "?" : s, n > 1 && !l->utf8 ? 1 : n, NULL))
			break;
		l->cells += cells;
	}
	if (l->colour && colour[0] != '\0' && buf_add(&l->b, "\033[0m", 4, NULL))
		return;
}

static void
pad(struct line *l, int to)
{
	while (l->cells < to && l->cells < l->width)
		put(l, "", " ");
}

static int64_t
elapsed(const struct progress *p, const struct row *r)
{
	if (!r->running)
		return r->ms;
	return p->last_t - r->start_t + (now(p) - p->last_mono);
}

/* "34/412 steps  5.1/s  ETA 1m12s" */
static void
counts(const struct row *r, char *out, size_t size)
{
	char done[32], total[32], rate[32], eta[32];
	bool bytes = str_eq(r->unit, "bytes");
	size_t n;

	progress_amount((double)r->done, r->unit, done, sizeof done);
	progress_amount((double)r->total, r->unit, total, sizeof total);
	n = (size_t)snprintf(out, size, "%s%s%s%s%s", done, r->total ? "/" : "",
		r->total ? total : "", bytes || !r->unit[0] ? "" : " ", bytes ? "" : r->unit);
	if (r->rate <= 0 || n >= size)
		return;
	progress_amount(r->rate, r->unit, rate, sizeof rate);
	n += (size_t)snprintf(out + n, size - n, "  %s/s", rate);
	if (r->total > r->done && n < size) {
		progress_duration((int64_t)((double)(r->total - r->done) / r->rate * 1000),
			eta, sizeof eta);
		snprintf(out + n, size - n, "  ETA %s", eta);
	}
}

static void
draw_running(struct line *l, const struct row *r)
{
	char bar[BAR_CELLS * 4 + 8], text[160];
	int cells = l->width < WIDE_CELLS ? BAR_CELLS / 2 : BAR_CELLS;

	if (r->done == 0 && r->total == 0) {
		put(l, "2", r->text);
		return;
	}
	if (r->total > 0 && l->width >= NAME_CELLS + BAR_CELLS + 30) {
		progress_bar(r->done, r->total, cells, l->utf8, bar, sizeof bar);
		put(l, "36", bar);
		put(l, "", "  ");
	}
	counts(r, text, sizeof text);
	put(l, "", text);
	if (r->text[0] != '\0') {
		put(l, "", "  ");
		put(l, "2", r->text);
	}
}

static void
draw_row(const struct progress *p, const struct row *r, struct line *l)
{
	char time[32];
	const char *colour = progress_colour(r->running ? NULL : r->outcome);

	progress_duration(elapsed(p, r), time, sizeof time);
	put(l, "", " ");
	put(l, colour, progress_sign(r->running ? NULL : r->outcome, l->utf8));
	put(l, "", " ");
	put(l, r->running ? "1" : "", r->name);
	pad(l, NAME_CELLS + 3);
	put(l, "", " ");
	pad(l, NAME_CELLS + 11 - (int)strlen(time));
	put(l, "2", time);
	put(l, "", "  ");
	if (r->running) {
		draw_running(l, r);
		return;
	}
	if (str_eq(r->outcome, "pass")) {
		put(l, "2", r->detail);
		return;
	}
	put(l, colour, r->outcome);
	put(l, "", " ");
	put(l, colour, r->reason);
	put(l, "", r->detail[0] ? ": " : "");
	put(l, "", r->detail);
}

/* ---- the live list ---- */

static void
window(const struct progress *p, int *width, int *height)
{
	struct winsize w;

	*width = p->look.width, *height = p->look.height;
	if (*width > 0 && *height > 0)
		return;
	*width = 80, *height = 24;
	if (ioctl(fileno(p->out), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0)
		*width = w.ws_col, *height = w.ws_row;
}

/* To the first line of the last drawing.  A window made narrower has wrapped its lines. */
static void
go_back(struct progress *p, struct buf *frame, int width)
{
	int up = 0, i;

	for (i = 0; i < p->drawn_count; i++)
		up += p->drawn[i] <= width ? 1 : (p->drawn[i] + width - 1) / width;
	if (up > 0 && buf_addf(frame, NULL, "\033[%dA\r", up))
		return;
	p->drawn_count = 0;
}

static void
add_line(struct progress *p, struct buf *frame, struct line *l)
{
	if (buf_add(frame, l->b.data ? l->b.data : "", l->b.len, NULL) == 0 &&
	    buf_add(frame, "\033[K\n", 4, NULL) == 0 &&
	    p->drawn_count < PROGRESS_MAX_ROWS)
		p->drawn[p->drawn_count++] = l->cells;
	buf_fini(&l->b);
}

static void
line_init(const struct progress *p, struct line *l, int width)
{
	memset(l, 0, sizeof *l);
	buf_init(&l->b, LINE_MAX_BYTES);
	/* The last cell stays free: some terminals wrap when it is written. */
	l->width = width > 1 ? width - 1 : 1;
	l->colour = p->look.colour;
	l->utf8 = p->look.utf8;
}

/* Which rows a low window shows: those that passed go first, from the top. */
static int
choose(const struct progress *p, int room, bool *hidden)
{
	int over = p->count - room, dropped = 0, pass, i;

	memset(hidden, 0, PROGRESS_MAX_ROWS * sizeof *hidden);
	if (over <= 0)
		return 0;
	over++; /* the line that counts the hidden ones */
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < p->count && dropped < over; i++)
			if (!hidden[i] && !p->rows[i].running &&
			    (pass == 1 || str_eq(p->rows[i].outcome, "pass"))) {
				hidden[i] = true;
				dropped++;
			}
	return dropped;
}

static void
draw(struct progress *p)
{
	bool hidden[PROGRESS_MAX_ROWS];
	struct buf frame;
	struct line l;
	char text[48];
	int width, height, dropped, i;

	window(p, &width, &height);
	buf_init(&frame, FRAME_MAX_BYTES);
	go_back(p, &frame, width);
	dropped = choose(p, height > 3 ? height - 2 : 1, hidden);
	if (dropped > 0) {
		line_init(p, &l, width);
		snprintf(text, sizeof text, " %s %d more are done", l.utf8 ? "\u2026" : "~",
			dropped);
		put(&l, "2", text);
		add_line(p, &frame, &l);
	}
	for (i = 0; i < p->count; i++) {
		if (hidden[i])
			continue;
		line_init(p, &l, width);
		draw_row(p, &p->rows[i], &l);
		add_line(p, &frame, &l);
	}
	if (buf_add(&frame, "\033[J", 3, NULL) == 0)
		fwrite(frame.data, 1, frame.len, p->out);
	fflush(p->out);
	buf_fini(&frame);
	p->drawn_mono = now(p);
	p->drawn_any = true;
	p->dirty = false;
}

static bool
is_live(const struct progress *p)
{
	return p->look.mode == PROGRESS_LIVE && !p->ended;
}

void
progress_tick(struct progress *p)
{
	int64_t since = now(p) - p->drawn_mono;

	/* Clocks of running rows move on without events. */
	if (is_live(p) && p->count > 0 &&
	    (since >= 1000 || (p->dirty && since >= PROGRESS_REDRAW_MS)))
		draw(p);
}

void
progress_end(struct progress *p)
{
	if (is_live(p) && p->count > 0)
		draw(p);
	p->ended = true;
}

/* ---- plain lines ---- */

static void
plain_time(int64_t t, char out[16])
{
	time_t s = (time_t)(t / 1000);
	struct tm tm;

	if (localtime_r(&s, &tm) == NULL || strftime(out, 16, "%H:%M:%S", &tm) == 0)
		snprintf(out, 16, "--:--:--");
}

static void PRINTF(3, 4)
plain(struct progress *p, int64_t t, const char *fmt, ...)
{
	char clock[16], text[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	plain_time(t, clock);
	fprintf(p->out, "[%s] %s\n", clock, text);
	fflush(p->out);
}

void
progress_say(struct progress *p, const char *fmt, ...)
{
	struct buf frame;
	char text[640];
	va_list ap;
	int width, height;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (p->look.mode == PROGRESS_JSON)
		return;
	if (!is_live(p)) {
		plain(p, plat_now_ms(), "%s", text);
		return;
	}
	window(p, &width, &height);
	buf_init(&frame, FRAME_MAX_BYTES);
	go_back(p, &frame, width);
	if (buf_addf(&frame, NULL, "\033[J%s\n", text) == 0)
		fwrite(frame.data, 1, frame.len, p->out);
	buf_fini(&frame);
	draw(p);
}

/* ---- events ---- */

static void
clean(const cJSON *o, const char *key, char *out, size_t size)
{
	const char *s = json_str(o, key);

	str_show(out, size, s ? s : "", s ? strlen(s) : 0);
}

static struct row *
row_of(struct progress *p, const char *name)
{
	struct row *r;
	int i;

	for (i = p->count - 1; i >= 0; i--)
		if (str_eq(p->rows[i].name, name))
			return &p->rows[i];
	/* More rows than any job has: the last one takes the rest. */
	if (p->count == PROGRESS_MAX_ROWS)
		return &p->rows[PROGRESS_MAX_ROWS - 1];
	r = &p->rows[p->count++];
	memset(r, 0, sizeof *r);
	str_show(r->name, sizeof r->name, name, strlen(name));
	r->running = true;
	r->start_t = p->last_t;
	r->ms = -1;
	return r;
}

static void
on_gate(struct progress *p, const cJSON *o, const char *name)
{
	struct row *r = row_of(p, name);
	char took[32];

	if (str_eq(json_str(o, "state"), "start")) {
		r->running = true;
		r->start_t = p->last_t;
		if (p->look.mode == PROGRESS_PLAIN)
			plain(p, p->last_t, "%s: started", r->name);
		return;
	}
	r->running = false;
	r->ms = json_int(o, "ms", p->last_t - r->start_t);
	clean(o, "outcome", r->outcome, sizeof r->outcome);
	clean(o, "reasonCode", r->reason, sizeof r->reason);
	clean(o, "detail", r->detail, sizeof r->detail);
	if (p->look.mode != PROGRESS_PLAIN)
		return;
	progress_duration(r->ms, took, sizeof took);
	if (str_eq(r->outcome, "pass"))
		plain(p, p->last_t, "%s: pass (%s)%s%s", r->name, took,
			r->detail[0] ? " " : "", r->detail);
	else
		plain(p, p->last_t, "%s: %s %s (%s): %s", r->name, r->outcome, r->reason, took,
			r->detail);
}

/* A rate that follows the last seconds without jumping. */
static void
update_rate(struct row *r, int64_t t, uint64_t done)
{
	double fresh;

	if (r->rate_t == 0 || done < r->rate_done) {
		r->rate_t = t, r->rate_done = done, r->rate = 0;
		return;
	}
	if (t - r->rate_t < 1000)
		return;
	fresh = (double)(done - r->rate_done) * 1000 / (double)(t - r->rate_t);
	r->rate = r->rate > 0 ? r->rate * 0.7 + fresh * 0.3 : fresh;
	r->rate_t = t, r->rate_done = done;
}

static uint64_t
count_of(const cJSON *o, const char *key)
{
	int64_t v = json_int(o, key, 0);

	return v > 0 ? (uint64_t)v : 0;
}

static void
on_progress(struct progress *p, const cJSON *o, const char *name)
{
	struct row *r = row_of(p, name);
	char text[200];

	r->done = count_of(o, "done");
	r->total = count_of(o, "total");
	clean(o, "unit", r->unit, sizeof r->unit);
	clean(o, "text", r->text, sizeof r->text);
	update_rate(r, p->last_t, r->done);
	if (p->look.mode != PROGRESS_PLAIN ||
	    (p->plain_any && now(p) - p->plain_mono < PROGRESS_PLAIN_MS))
		return;
	p->plain_mono = now(p);
	p->plain_any = true;
	text[0] = '\0';
	if (r->done > 0 || r->total > 0 || r->text[0] == '\0')
		counts(r, text, sizeof text);
	plain(p, p->last_t, "%s: %s%s%s", r->name, text, text[0] && r->text[0] ? "  " : "", r->text);
}

static void
on_note(struct progress *p, const cJSON *o, const char *name)
{
	char text[400];

	clean(o, "text", text, sizeof text);
	if (p->look.mode == PROGRESS_PLAIN)
		plain(p, p->last_t, "%s%s%s", name, name[0] ? ": " : "", text);
	else
		progress_say(p, "   %s%s%s", name, name[0] ? ": " : "", text);
}

static void
on_job(struct progress *p, const cJSON *o)
{
	char state[24];

	clean(o, "state", state, sizeof state);
	if (str_eq(state, "done"))
		return; /* the verdict is ours, and comes */
	if (p->look.mode == PROGRESS_PLAIN)
		plain(p, p->last_t, "job %.8s: %s", p->job, state);
	else if (str_eq(state, "queued"))
		(void)row_of(p, QUEUE);
	else if (p->count == 1 && str_eq(p->rows[0].name, QUEUE))
		p->count = 0; /* the wait is over, and of no more interest */
}

static void
print_json(struct progress *p, const cJSON *event)
{
	cJSON *copy = cJSON_Duplicate(event, true);
	char *text = NULL;

	if (copy == NULL)
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(copy, "host");
	cJSON_DeleteItemFromObjectCaseSensitive(copy, "job");
	if (json_add_str(copy, "host", p->host) && json_add_str(copy, "job", p->job) &&
	    (text = json_text(copy, false)) != NULL) {
		fprintf(p->out, "%s\n", text);
		fflush(p->out);
	}
	free(text);
	cJSON_Delete(copy);
}

void
progress_event(struct progress *p, const cJSON *o)
{
	const char *type = json_str(o, "type");
	char name[80];

	p->last_t = json_int(o, "t", p->last_t);
	p->last_mono = now(p);
	clean(o, "gate", name, sizeof name);
	if (p->look.mode == PROGRESS_JSON) {
		print_json(p, o);
		return;
	}
	if (str_eq(type, "gate") && name[0] != '\0')
		on_gate(p, o, name);
	else if (str_eq(type, "progress") && name[0] != '\0')
		on_progress(p, o, name);
	else if (str_eq(type, "note"))
		on_note(p, o, name);
	else if (str_eq(type, "job"))
		on_job(p, o);
	p->dirty = true;
	progress_tick(p);
}

void
progress_stage(struct progress *p, const char *stage, uint64_t done, uint64_t total,
	const char *unit, const char *text, const char *outcome)
{
	cJSON *o = cJSON_CreateObject();

	if (o == NULL)
		return;
	/* Our clock, but on the scale of the events that came before. */
	if (json_add_str(o, "type", outcome ? "gate" : "progress") &&
	    json_add_str(o, "gate", stage) && json_add_int(o, "t", plat_now_ms()) &&
	    json_add_int(o, "done", (int64_t)done) &&
	    json_add_int(o, "total", (int64_t)total) && json_add_str(o, "unit", unit) &&
	    json_add_text(o, "text", text ? text : "", text ? strlen(text) : 0) &&
	    (outcome == NULL || (json_add_str(o, "state", "end") &&
		json_add_str(o, "outcome", outcome) && json_add_str(o, "reasonCode", "none") &&
		json_add_str(o, "detail", text ? text : ""))))
		progress_event(p, o);
	cJSON_Delete(o);
}
