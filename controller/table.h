/*
 * table - rows of text under headings, columns as wide as they must be, for people.
 *
 * Life: table_init, table_row, table_print, table_fini.  Cells are copied and cleaned of
 * what a terminal would obey.  The first failure is kept and comes back from table_print.
 */
#ifndef CONTROLLER_TABLE_H
#define CONTROLLER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/err.h"

#define TABLE_MAX_COLUMNS 12
#define TABLE_MAX_CELL 1024 /* bytes */

struct table {
	size_t columns, rows;
	char **cells;            /* owned; the headings first */
	bool failed;
};

/* heads: NULL-terminated. */
void table_init(struct table *t, const char *const *heads);
/* As many cells as columns; NULL is shown as "-". */
void table_row(struct table *t, const char *const *cells);
/* Two blanks between columns, none behind the last; outcomes coloured when colour. */
CHECKED int table_print(const struct table *t, FILE *out, bool colour, struct err *e);
void table_fini(struct table *t);

#endif
