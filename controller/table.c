#include "controller/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/lane.h"
#include "common/str.h"
#include "controller/progress.h"

void
table_init(struct table *t, const char *const *heads)
{
	memset(t, 0, sizeof *t);
	while (t->columns < TABLE_MAX_COLUMNS && heads[t->columns] != NULL)
		t->columns++;
	table_row(t, heads);
}

void
table_row(struct table *t, const char *const *cells)
{
	char shown[TABLE_MAX_CELL + 1], **grown;
	size_t i, at = t->rows * t->columns;

	if (t->failed)
		return;
	grown = realloc(t->cells, (at + t->columns) * sizeof *grown);
	if (grown == NULL) {
		t->failed = true;
		return;
	}
	t->cells = grown;
	for (i = 0; i < t->columns; i++) {
		const char *s = cells[i] != NULL && cells[i][0] != '\0' ? cells[i] : "-";

		str_show(shown, sizeof shown, s, strlen(s));
		if ((grown[at + i] = strdup(shown)) == NULL)
			t->failed = true;
	}
	t->rows++;
}

/* Cells, as near as a count of characters comes to them. */
static size_t
cells_of(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* The colour of a cell that begins with an outcome. */
static const char *
colour_of(const char *s)
{
	char word[16];
	size_t n = strcspn(s, " ");

	if (n >= sizeof word)
		return "";
	memcpy(word, s, n);
	word[n] = '\0';
	return outcome_find(word) >= 0 ? progress_colour(word) : "";
}

int
table_print(const struct table *t, FILE *out, bool colour, struct err *e)
{
	size_t width[TABLE_MAX_COLUMNS] = {0}, i, k, n;
	const char *s, *sgr;

	if (t->failed)
		return err_set(e, ERR_NOMEM, "no memory for a table");
	for (i = 0; i < t->rows * t->columns; i++)
		if ((n = cells_of(t->cells[i])) > width[i % t->columns])
			width[i % t->columns] = n;
	for (i = 0; i < t->rows; i++)
		for (k = 0; k < t->columns; k++) {
			s = t->cells[i * t->columns + k];
			sgr = !colour ? "" : i == 0 ? "1" : colour_of(s);
			if (sgr[0] != '\0')
				fprintf(out, "\033[%sm%s\033[0m", sgr, s);
			else
				fputs(s, out);
			if (k + 1 < t->columns)
				fprintf(out, "%*s", (int)(width[k] - cells_of(s)) + 2, "");
			else
				putc('\n', out);
		}
	return 0;
}

void
table_fini(struct table *t)
{
	size_t i;

	for (i = 0; t->cells != NULL && i < t->rows * t->columns; i++)
		free(t->cells[i]);
	free(t->cells);
	memset(t, 0, sizeof *t);
}
