/* elog_place - the nodes of computed graphs, counted by what they are and where. */
#include "common/elog_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/elog.h"
#include "common/elog_impl.h"
#include "common/str.h"

static void
place_add(struct elog *l, const char *op, const char *backend)
{
	struct elog_place *at;
	int i;

	for (i = 0; i < l->place_count; i++) {
		at = &l->places[i];
		if (strcmp(at->op, op) == 0 && strcmp(at->backend, backend) == 0) {
			at->nodes++;
			return;
		}
	}
	if (l->place_count == ELOG_MAX_PLACES)
		return;
	at = &l->places[l->place_count++];
	memcpy(at->op, op, sizeof at->op);
	memcpy(at->backend, backend, sizeof at->backend);
	at->nodes = 1;
}

/* Which nodes are the attention of a cache family: op and tensor begin so (the engine
 * cuts ops to 10 letters and tensors to 20). */
static const struct attn_rule {
	const char *op, *tensor;
	bool reads;
} attn_rules[] = {
	{ "FLASH_ATTN", "", true },
	{ "ATTN_SCORE", "", true },
	{ "LIGHTNING_", "", true }, /* LIGHTNING_INDEXER, of models with a cache of its own */
	{ "MUL_MAT", "indexer_kq", true },
	{ "FUSED_ATTN", "", true },
	{ "MUL_MAT", "kqv", false }, /* reads V: nothing about K */
	{ "MUL_MAT", "kq", true },
	{ "SOFT_MAX", "kq", false },
	{ "SET_ROWS", "cache_k", false },
	{ "SET_ROWS", "cache_v", false },
	{ "CPY", "cache_k", false },
	{ "CPY", "cache_v", false },
	{ "CPY", "k_cache_view", false },
	{ "CPY", "v_cache_view", false },
};

static void
attn_add(struct elog *l, const char *op, const char *tensor, const char *backend, size_t line)
{
	struct elog_attn *at;
	int i;

	for (i = 0; i < l->attn_count; i++)
		if (strcmp(l->attn[i].backend, backend) == 0) {
			l->attn[i].nodes++;
			return;
		}
	if (l->attn_count == ELOG_MAX_BACKENDS) {
		l->overflow = true;
		return;
	}
	at = &l->attn[l->attn_count++];
	memcpy(at->backend, backend, sizeof at->backend);
	memcpy(at->op, op, sizeof at->op);
	memcpy(at->tensor, tensor, sizeof at->tensor);
	at->nodes = 1;
	at->line = line;
}

/* The names of the keys or the values in the cache, and of an older engine's writes. */
static const struct cache_names {
	const char *cache, *view;
} keys = { "cache_k", "k_cache_view" }, values = { "cache_v", "v_cache_view" };

/* A copy of the cache that is read is named "cache_k_l0 (view) (permuted) (copy)"; cut
 * to twenty letters, "cache_k_l17 (view) (" may be that or a write. */
static bool
is_write(const char *op, const char *tensor, const struct cache_names *of)
{
	if (strcmp(op, "SET_ROWS") == 0)
		return str_starts(tensor, of->cache);
	return strcmp(op, "CPY") == 0 && (str_starts(tensor, of->view) ||
		(str_starts(tensor, of->cache) && strstr(tensor, "(p") == NULL && !str_ends(tensor, "(")));
}

/* "kq-17" is kq of layer 17, "cache_k_l3 (view)" cache_k of layer 3. */
static int
layer_split(const char *tensor, char base[24])
{
	size_t n = strcspn(tensor, " "), i;
	int layer = -1;

	for (i = 0; i + 1 < n; i++) {
		size_t from = tensor[i] == '-' ? i + 1 : tensor[i] == '_' && tensor[i + 1] == 'l' ? i + 2 : 0;
		size_t k = from > 0 ? strspn(tensor + from, "0123456789") : 0;

		if (k > 0 && k < 6 && from + k == n) {
			layer = (int)strtol(tensor + from, NULL, 10);
			n = i;
		}
	}
	/* nodes without a name are numbered through the graph */
	if (str_starts(tensor, "node_"))
		n = strlen("node_");
	n = n < 23 ? n : 23;
	memset(base, 0, 24); /* all of it is compared and copied */
	memcpy(base, tensor, n);
	return layer;
}

static void
group_add(struct elog *l, const char *op, const char *tensor, const char *backend, size_t line)
{
	bool copied = strcmp(op, "CPY") == 0 && strstr(tensor, "(p") != NULL;
	struct elog_group *g;
	char base[24];
	int layer = layer_split(tensor, base), i;

	for (i = 0; i < l->group_count; i++) {
		g = &l->groups[i];
		if (g->copied == copied && strcmp(g->op, op) == 0 && strcmp(g->tensor, base) == 0 &&
		    strcmp(g->backend, backend) == 0)
			break;
	}
	if (i == ELOG_MAX_GROUPS) {
		l->overflow = true;
		return;
	}
	g = &l->groups[i];
	if (i == l->group_count) {
		memset(g, 0, sizeof *g);
		snprintf(g->op, sizeof g->op, "%.15s", op);
		memcpy(g->tensor, base, sizeof g->tensor);
		snprintf(g->backend, sizeof g->backend, "%.15s", backend);
		g->copied = copied;
		g->line = line;
		l->group_count++;
	}
	g->nodes++;
	if (layer >= 0 && layer < ELOG_MAX_LAYERS && (g->seen[layer / 64] >> (layer % 64) & 1) == 0) {
		g->seen[layer / 64] |= (uint64_t)1 << (layer % 64);
		g->layers++;
	}
	l->custom_op |= str_starts(op, "ATTN_SCORE") || str_starts(op, "FUSED_ATTN");
	l->cache_cast |= copied && strcmp(base, "cache_k") == 0;
}

void
elog_node(struct elog *l, const char *op, const char *tensor, const char *backend, size_t line,
	bool proves)
{
	size_t i;

	place_add(l, op, backend);
	group_add(l, op, tensor, backend, line);
	for (i = 0; i < str_count(attn_rules); i++)
		if (str_starts(op, attn_rules[i].op) &&
		    str_starts(tensor, attn_rules[i].tensor))
			break;
	if (i == str_count(attn_rules))
		return;
	attn_add(l, op, tensor, backend, line);
	l->open_reads += attn_rules[i].reads;
	l->open_writes += is_write(op, tensor, &keys);
	l->open_values += is_write(op, tensor, &values);
	l->attn_seen = l->attn_seen || (proves && attn_rules[i].reads);
	l->kv_write_seen = l->kv_write_seen || (proves && is_write(op, tensor, &keys));
}

void
elog_graph_begin(struct elog *l)
{
	elog_graph_end(l);
	l->open = true;
	l->graphs++;
}

/* Every computed graph of a model that generates writes its cache and reads it, each layer
 * that it writes at least once: layers that share a cache only read.  No layer has values
 * and no keys. */
void
elog_graph_end(struct elog *l)
{
	if (l->open && (l->open_writes == 0 || l->open_reads < l->open_writes ||
			l->open_values > l->open_writes))
		l->bare_graphs++;
	l->open = false;
	l->open_reads = l->open_writes = l->open_values = 0;
}

static bool
is_plain(const char *word)
{
	const char *c = word;

	while (span_is_word(*c))
		c++;
	return c > word && *c == '\0';
}

/* caps: op, tensor with its size "(   1K)", backend with the cause of its choice */
void
elog_on_node(struct parse *p, const struct span *caps, int arg)
{
	struct span tensor = span_trim(caps[2]), backend = span_trim(caps[3]);
	char op[16], name[24], where[16];
	size_t i;

	(void)arg;
	p->took = true;
	if (!p->real || p->trial)
		return;
	for (i = tensor.n; i > 0 && tensor.p[i - 1] != '('; i--)
		;
	tensor.n = i > 0 ? i - 1 : tensor.n;
	for (i = 0; i < backend.n && !span_is_blank(backend.p[i]); i++)
		;
	backend.n = i;
	span_copy(op, sizeof op, span_trim(caps[1]));
	span_copy(name, sizeof name, span_trim(tensor));
	span_copy(where, sizeof where, backend);
	/* lines of two threads in one: what is no word names nothing */
	if (!is_plain(op) || !is_plain(where)) {
		p->l->torn++;
		return;
	}
	elog_node(p->l, op, name, where, p->number,
		!p->talking && (!p->levels || (p->debug_seen && p->level == 'D')));
}
