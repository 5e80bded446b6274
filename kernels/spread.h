/*
 * spread - a loop over several threads.
 *
 * fn gets a part [from, to) of [0, count) and its number below threads; parts do not
 * depend on how threads are scheduled.  Returns when all are done.  A thread that can not
 * be made is no error: its part is done by the caller.
 */
#ifndef KERNELS_SPREAD_H
#define KERNELS_SPREAD_H

#include <stddef.h>

#define SPREAD_MAX 256

typedef void (*spread_fn)(void *arg, size_t from, size_t to, unsigned number);
void spread_run(unsigned threads, size_t count, spread_fn fn, void *arg);
/* One for each processor that may be used, at most SPREAD_MAX. */
unsigned spread_threads(void);

#endif
