/* The things that are checked on a device, and their names. */
#include <string.h>

#include "common/opt.h"
#include "common/str.h"
#include "kernels/verify.h"

struct list {
	struct verify_item *items;
	size_t count;
};

static int
add_item(struct list *l, const struct kernel *k, const struct kernel *source,
	size_t variant, const char *variant_name, struct err *e)
{
	struct verify_item *i = &l->items[l->count];
	bool own = source == k, first = variant == 0;

	if (l->count == VERIFY_ITEMS)
		return err_set(e, ERR_LIMIT, "more than %d things to check", VERIFY_ITEMS);
	*i = (struct verify_item){
		.kernel = k, .source = source, .variant = variant};
	if (str_copy(i->variant_name, sizeof i->variant_name, variant_name, e) ||
	    str_fmt(i->name, sizeof i->name, e, "%s%s%s%s%s%s%s", k->name,
		    own ? "" : "[", own ? "" : source->name, own ? "" : "]",
		    first ? "" : "[", first ? "" : variant_name, first ? "" : "]"))
		return -1;
	l->count++;
	return 0;
}

static int
add_variants(struct list *l, const struct rig *r, const struct kernel *k,
	const struct kernel *source, struct err *e)
{
	const char *names[BACKEND_VARIANTS];
	size_t i, n = rig_variants(r, k, names);

	if (n == 0)
		return add_item(l, k, source, 0, "", e);
	for (i = 0; i < n; i++)
		if (add_item(l, k, source, i, names[i], e))
			return -1;
	return 0;
}

/* Each row over its own fixture, then the pre-transformed kernels over polar's. */
static int
all_items(struct list *l, const struct rig *r, struct err *e)
{
	const struct kernel *k, *s;
	size_t i, j;

	for (i = 0; i < KERNEL_COUNT; i++)
		if (add_variants(l, r, &kernels[i], &kernels[i], e))
			return -1;
	for (i = 0; i < KERNEL_COUNT; i++)
		for (j = 0; j < KERNEL_COUNT; j++) {
			k = &kernels[i];
			s = &kernels[j];
			if (k->schema == KERNEL_PREHT && s->schema == KERNEL_POLAR &&
			    s->use_qjl == k->use_qjl && add_variants(l, r, k, s, e))
				return -1;
		}
	return 0;
}

/* "turbo3[*]" stands for all that is called turbo3. */
static bool
is_meant(const char *name, const struct verify_item *i)
{
	size_t len = strlen(i->kernel->name);

	return str_eq(name, i->name) ||
	       (strncmp(name, i->kernel->name, len) == 0 && str_eq(name + len, "[*]"));
}

static int
unknown_name(const char *name, const struct list *l, struct err *e)
{
	const char *names[VERIFY_ITEMS], *near;
	size_t i;

	for (i = 0; i < l->count; i++)
		names[i] = l->items[i].name;
	err_set(e, ERR_USAGE, "--only: unknown kernel \"%.64s\"", name);
	if ((near = opt_nearest(name, names, l->count)) != NULL)
		return err_hint(e, "did you mean %s?", near);
	return err_hint(e, "--kernels lists them; turbo3[*] is all variants of turbo3");
}

static int
check_names(const struct list *l, const char *const *only, size_t only_count,
	struct err *e)
{
	size_t i, j;

	for (i = 0; i < only_count; i++) {
		for (j = 0; j < l->count && !is_meant(only[i], &l->items[j]); j++)
			;
		if (j == l->count)
			return unknown_name(only[i], l, e);
		for (j = 0; j < i; j++)
			if (str_eq(only[i], only[j]))
				return err_set(e, ERR_USAGE, "--only: %s is named twice",
					only[i]);
	}
	return 0;
}

int
verify_items(const struct rig *r, const char *const *only, size_t only_count,
	struct verify_item out[VERIFY_ITEMS], size_t *count, struct err *e)
{
	struct list l = {.items = out};
	size_t i, j, n = 0;

	*count = 0;
	if (all_items(&l, r, e) || check_names(&l, only, only_count, e))
		return -1;
	for (i = 0; i < l.count; i++) {
		for (j = 0; j < only_count && !is_meant(only[j], &out[i]); j++)
			;
		if (only_count == 0 || j < only_count)
			out[n++] = out[i];
	}
	*count = n;
	return 0;
}

bool
verify_is_stopped(const struct verify_task *t)
{
	return t->stop != NULL && *t->stop != 0;
}

void
verify_progress(const struct verify_task *t, const char *what, uint64_t done,
	uint64_t all)
{
	if (t->progress != NULL)
		t->progress(t->progress_arg, what, done, all);
}
