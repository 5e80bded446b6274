/*
 * inventory - the hosts that have agents: $XDG_CONFIG_HOME/verify/hosts.conf, and the
 * grammar in which every verb names hosts.
 *
 *	[gh200-lab-3]
 *	url = http://127.0.0.1:8420        or  unix:/run/verify/agent.sock
 *	lane = cpu                         optional defaults of `run`
 *	suite = llama.cpp
 *	model = /srv/models/smoke.gguf     paths of the agent's host
 *	source = /srv/llama.cpp
 *	source-ref = v0.4.0
 *	tags = lab arm                     words for people, shown by `hosts`
 *
 * The host "local" is there without the file: the socket of the user's own agent
 * ($XDG_STATE_HOME/verify-agent/agent.sock).  A section [local] changes it.
 *
 * Host grammar: NAME, NAME,NAME, [user@]PREFIX[01-04,06]SUFFIX; brackets hold numbers
 * and ranges, whose leading zeros are kept.  "rack[1-2]-node[01-03]" gives six names.
 *
 * Life: inventory_load or inventory_parse, inventory_free.  Immutable once made.
 */
#ifndef CONTROLLER_INVENTORY_H
#define CONTROLLER_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define INVENTORY_MAX_BYTES (1u << 20)
#define INVENTORY_MAX_HOSTS 4096
#define INVENTORY_MAX_LINE 198 /* bytes; what libinih reads in one piece */
#define HOST_MAX_NAME 48       /* bytes of a host's name */
#define HOST_MAX_USER 32
#define HOSTS_MAX 1024         /* names that one command line may mean */

struct host {
	char name[HOST_MAX_NAME + 1];
	/* Owned; NULL when not given. */
	char *url, *lane, *suite, *model, *source, *source_ref, *tags;
};

struct inventory {
	struct host *hosts; /* "local" first, then as in the file */
	size_t count;
};

/* path NULL: the user's file; that one may be missing. */
CHECKED int inventory_load(const char *path, struct inventory **out, struct err *e);
/* Borrows text (untrusted); gives *out. */
CHECKED int inventory_parse(const char *text, size_t len, struct inventory **out,
	struct err *e);
void inventory_free(struct inventory *inv); /* NULL is fine */
const struct host *inventory_find(const struct inventory *inv, const char *name);
/* Like inventory_find, but a missing host is ERR_USAGE with the nearest name. */
CHECKED int inventory_need(const struct inventory *inv, const char *name,
	const struct host **out, struct err *e);

/* One name of a host expression. */
struct host_name {
	char user[HOST_MAX_USER + 1]; /* "" when none was given */
	char name[HOST_MAX_NAME + 1];
};
struct host_names {
	struct host_name *item; /* owned */
	size_t count;
};
/* Expands the expressions in order and drops repeated names.  Fill with {0}; free with
 * host_names_fini.  ERR_USAGE shows the expression and where it stops making sense. */
CHECKED int host_names_add(struct host_names *h, const char *expression, struct err *e);
void host_names_fini(struct host_names *h);
/* Expands all of words[0..n) and finds each in the inventory: gives a list of borrowed
 * hosts, freed with free(). */
CHECKED int inventory_resolve(const struct inventory *inv, char *const *words, int n,
	const struct host ***out, size_t *count, struct err *e);

/* How a host is reached. */
struct reach {
	char socket[108]; /* path of a Unix socket, or "" */
	char base[256];   /* URL without a slash at the end: "http://127.0.0.1:8420" */
	char shown[384];  /* for people */
};
/* ERR_USAGE names what works when the scheme or the address does not yet. */
CHECKED int host_reach(const struct host *h, struct reach *out, struct err *e);

#endif
