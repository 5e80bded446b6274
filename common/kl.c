#include "common/kl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/elog_line.h"
#include "common/str.h"

static const char *const rows[] = {
	"Mean", "Maximum", "99.9%", "99.0%", "95.0%", "90.0%", "Median", "10.0%", "5.0%", "1.0%",
	"0.1%", "Minimum",
};
#define ROWS (int)str_count(rows)

enum { AT_MEAN, AT_MAX, AT_P99 = 3, AT_MEDIAN = 6 };

struct reader {
	struct kl *out;
	double value[str_count(rows)];
	int next;                /* row that is wanted */
	bool broken;             /* a row twice, or out of order, or no number in it */
	bool closed;
};

/* "12.5", "-0.000001", "nan", "-inf"; nothing else that strtod would take. */
static bool
number(struct span s, double *out)
{
	char text[64];
	char *end;

	s = span_trim(s);
	if (s.n == 0 || s.n >= sizeof text)
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (strspn(text, "-0123456789.") != s.n && strcmp(text, "nan") != 0 && strcmp(text, "-nan") != 0 &&
	    strcmp(text, "inf") != 0 && strcmp(text, "-inf") != 0)
		return false;
	*out = strtod(text, &end);
	return end != text && *end == '\0';
}

/* "Mean    KLD:   0.001234 ±   0.000056" and the quantiles after it. */
static bool
row_take(struct reader *r, struct span text)
{
	struct span f[SPAN_MAX_FIELDS], g[SPAN_MAX_FIELDS];
	double *value;

	if (!span_match(text, "%s KLD: %*", f))
		return false;
	if (r->next == ROWS || strlen(rows[r->next]) != f[0].n ||
	    memcmp(rows[r->next], f[0].p, f[0].n) != 0) {
		r->broken = true;
		return true;
	}
	value = &r->value[r->next];
	if (r->next == AT_MEAN)
		r->broken |= !span_match(f[1], "%s ± %s", g) || !number(g[0], value) ||
			!number(g[1], &r->out->error);
	else
		r->broken |= !number(f[1], value);
	r->next++;
	return true;
}

static void
message(void *arg, struct span text, char level, size_t line)
{
	struct reader *r = arg;
	struct kl *k = r->out;
	struct span f[SPAN_MAX_FIELDS];
	double ignored;

	(void)level;
	(void)line;
	if (row_take(r, text))
		return;
	if (span_match(text, "Same top p: %s ± %s %s", f)) {
		r->broken |= r->closed || r->next != ROWS || !number(f[0], &k->same_top) ||
			!number(f[1], &ignored) || f[2].n != 1 || f[2].p[0] != '%';
		r->closed = true;
	} else if (span_match(text, "perplexity: calculating perplexity over %d chunks, n_ctx=%d, %*", f) ||
		span_match(text, "kl_divergence: computing over %d chunks, n_ctx=%d, %*", f)) {
		k->chunks = span_int(f[0]);
		k->context = span_int(f[1]);
	} else if (span_match(text, "Final estimate: PPL = %s +/- %s", f)) {
		k->final = number(f[0], &k->ppl);
	} else if (span_match(text, "perplexity: saving all logits to %*", f)) {
		k->saved = true;
	}
}

void
kl_parse(const char *log, size_t len, struct kl *out)
{
	struct reader r = {.out = out};
	int i;

	memset(out, 0, sizeof *out);
	out->chunks = out->context = -1;
	(void)elog_messages(log, len, 1, message, &r);
	out->whole = r.closed && !r.broken;
	out->mean = r.value[AT_MEAN];
	out->max = r.value[AT_MAX];
	out->p99 = r.value[AT_P99];
	out->median = r.value[AT_MEDIAN];
	out->finite = isfinite(out->error) && isfinite(out->same_top);
	out->ordered = true;
	for (i = 0; i < ROWS; i++)
		out->finite &= isfinite(r.value[i]) != 0;
	for (i = AT_MAX + 1; i < ROWS; i++)
		out->ordered &= r.value[i] <= r.value[i - 1];
	/* both ends are rounded */
	out->ordered &= out->mean <= out->max + 2e-6 && out->mean >= r.value[ROWS - 1] - 2e-6 &&
		out->same_top >= 0 && out->same_top <= 100;
}
