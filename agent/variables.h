/*
 * variables - what the environment of the old runners asks for and this program does not do
 * as asked: said once, so that nobody believes that a switch works.
 *
 * Reads the environment; no state.
 */
#ifndef AGENT_VARIABLES_H
#define AGENT_VARIABLES_H

/* Calls say() with a sentence for each such variable that is set. */
void variables_each(void (*say)(void *arg, const char *text), void *arg);

#endif
