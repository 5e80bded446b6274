/* hosts, pin: who is there, and which key it has. */
#include "controller/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "controller/client.h"
#include "controller/pins.h"
#include "controller/result.h"
#include "controller/table.h"

#define LOOK_S 5 /* without an answer: the list has other hosts to show */

/* What one look at a host finds. */
struct look {
	const struct host *host;
	struct reach reach;
	struct agent_health health;
	struct pin pin;
	bool contact, pinned, same_key;
	struct err e;             /* why there is no contact */
};

static void
look_at(const struct host *h, struct look *out)
{
	struct client *c = NULL;
	struct err none = {0};

	memset(out, 0, sizeof *out);
	out->host = h;
	out->pinned = pins_find(NULL, h->name, &out->pin, &none) == 0;
	if (host_reach(h, &out->reach, &out->e) ||
	    client_open(&out->reach, NULL, NULL, &c, &out->e))
		return;
	client_attempts(c, 1);
	client_patience(c, LOOK_S);
	out->contact = client_health(c, &out->health, &out->e) == 0;
	out->same_key = out->contact && out->pinned &&
		str_eq(out->pin.key, out->health.public_key);
	client_close(c);
}

static void
state_cell(const struct look *l, char *out, size_t size)
{
	if (!l->contact)
		snprintf(out, size, "%s", l->e.code == ERR_TIMEOUT ? "no answer yet" :
			l->e.code == ERR_UNREACHABLE ? "no contact" : l->e.msg);
	else
		snprintf(out, size, "%s, %lld running, %lld queued", l->health.version,
			(long long)l->health.running, (long long)l->health.queued);
}

static void
key_cell(const struct look *l, char *out, size_t size)
{
	char print[64] = "";

	if (l->pinned)
		sign_fingerprint(l->pin.key, print);
	snprintf(out, size, "%s%s", l->pinned ? print : "not pinned yet",
		l->contact && l->pinned && !l->same_key ? " (ANOTHER KEY IS SHOWN)" : "");
}

/* The newest run there; list is the ledger's answer. */
static void
last_cell(const struct ledger_hosts *list, const char *name, char *out, size_t size)
{
	char when[32];
	size_t i;

	snprintf(out, size, "-");
	for (i = 0; i < list->count; i++)
		if (str_eq(list->hosts[i].name, name)) {
			result_time(list->hosts[i].at_ms, when, sizeof when);
			snprintf(out, size, "%s %s", when, list->hosts[i].outcome);
		}
}

static void
add_host(struct table *t, const struct host *h, const struct ledger_hosts *known)
{
	char state[400], key[128], last[64];
	const char *cells[] = {h->name, h->url, h->lane, state, key, last, h->tags};
	struct look l;

	look_at(h, &l);
	if (l.reach.shown[0] != '\0')
		cells[1] = l.reach.shown;
	state_cell(&l, state, sizeof state);
	key_cell(&l, key, sizeof key);
	last_cell(known, h->name, last, sizeof last);
	table_row(t, cells);
}

static int
print_hosts(const struct inventory *inv, const struct ledger_hosts *known)
{
	static const char *const heads[] = {"HOST", "URL", "LANE", "AGENT", "KEY", "LAST RUN",
		"TAGS", NULL};
	struct progress_look paint;
	struct err e = {0};
	struct table t;
	size_t i;
	int rc;

	table_init(&t, heads);
	for (i = 0; i < inv->count; i++)
		add_host(&t, &inv->hosts[i], known);
	cmd_look(&paint);
	rc = table_print(&t, stdout, paint.colour, &e);
	table_fini(&t);
	return rc ? cmd_fail(&e) : EXIT_PASS;
}

static cJSON *
host_json(const struct look *l)
{
	cJSON *o = cJSON_CreateObject();
	char print[64] = "";

	if (l->pinned)
		sign_fingerprint(l->pin.key, print);
	if (o != NULL && json_add_str(o, "host", l->host->name) &&
	    json_add_str(o, "url", l->reach.shown[0] ? l->reach.shown : l->host->url) &&
	    json_add_str(o, "lane", l->host->lane) && json_add_str(o, "tags", l->host->tags) &&
	    json_add_bool(o, "contact", l->contact) &&
	    json_add_str(o, "error", l->contact ? NULL : l->e.msg) &&
	    json_add_str(o, "agentVersion", l->contact ? l->health.version : NULL) &&
	    json_add_str(o, "pinnedFingerprint", l->pinned ? print : NULL) &&
	    json_add_str(o, "shownFingerprint", l->contact ? l->health.fingerprint : NULL))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static int
hosts_json(const struct inventory *inv)
{
	cJSON *a = cJSON_CreateArray(), *o;
	struct look l;
	size_t i;

	for (i = 0; a != NULL && i < inv->count; i++) {
		look_at(&inv->hosts[i], &l);
		if ((o = host_json(&l)) != NULL && cJSON_AddItemToArray(a, o))
			continue;
		cJSON_Delete(o);
		cJSON_Delete(a);
		a = NULL;
	}
	return cmd_json(a, true);
}

int
cmd_hosts(const struct opt_call *call)
{
	const struct hosts_values *v = call->values;
	struct ledger_hosts known = {0};
	struct inventory *inv = NULL;
	struct ledger *l = NULL;
	struct err e = {0};
	int status = EXIT_PASS;
	size_t i;

	if (inventory_load(NULL, &inv, &e))
		return cmd_fail(&e);
	if (v->names)
		for (i = 0; i < inv->count; i++)
			printf("%s\n", inv->hosts[i].name);
	else if (v->json)
		status = hosts_json(inv);
	else if (cmd_ledger_read(&l, &e) == 0 &&
		 (l == NULL || ledger_host_list(l, &known, &e) == 0))
		status = print_hosts(inv, &known);
	ledger_hosts_fini(&known);
	ledger_close(l);
	inventory_free(inv);
	return e.code != ERR_NONE ? cmd_fail(&e) : status;
}

/* ---- pin ---- */

static int
show_pin(const struct look *l)
{
	char print[64];

	printf("host    %s (%s)\n", l->host->name, l->reach.shown);
	if (l->pinned) {
		sign_fingerprint(l->pin.key, print);
		printf("pinned  %s since %s\n", print, l->pin.since);
	} else
		printf("pinned  nothing yet\n");
	if (l->contact)
		printf("shown   %s%s\n", l->health.fingerprint,
			!l->pinned ? "" : l->same_key ? " (the same)" : " (ANOTHER KEY)");
	else
		printf("shown   nothing: %s\n", l->e.msg);
	return !l->contact ? err_exit(l->e.code) :
		l->pinned && !l->same_key ? EXIT_REFUSED : EXIT_PASS;
}

static int
replace_pin(const struct look *l)
{
	char print[64] = "nothing";
	struct err e = {0};

	if (!l->contact)
		return cmd_fail(&l->e);
	if (l->pinned)
		sign_fingerprint(l->pin.key, print);
	if (pins_replace(NULL, l->host->name, l->health.public_key, &e))
		return cmd_fail(&e);
	printf("host    %s\nbefore  %s\nnow     %s\n", l->host->name, print,
		l->health.fingerprint);
	return EXIT_PASS;
}

int
cmd_pin(const struct opt_call *call)
{
	const struct pin_values *v = call->values;
	const struct host **hosts = NULL;
	struct inventory *inv = NULL;
	struct err e = {0};
	struct look l;
	size_t n = 0;
	int status = -1;

	if (inventory_load(NULL, &inv, &e) == 0 &&
	    inventory_resolve(inv, call->argv, 1, &hosts, &n, &e) == 0) {
		if (n != 1) {
			err_set(&e, ERR_USAGE, "pin: %zu hosts are named", n);
			err_hint(&e, "one at a time: each key is to be looked at");
		} else {
			look_at(hosts[0], &l);
			status = v->replace ? replace_pin(&l) : show_pin(&l);
		}
	}
	free(hosts);
	inventory_free(inv);
	return status < 0 ? cmd_fail(&e) : status;
}
