#include "agent/route.h"

#include <string.h>

#include "common/str.h"

const struct route routes[ROUTE_COUNT] = {
	{"GET", "/v1/health", false, true, route_health},
	{"GET", "/v1/host", false, false, route_host},
	{"GET", "/v1/suites", false, false, route_suites},
	{"GET", "/v1/suites/{name}", false, false, route_suite},
	{"POST", "/v1/jobs", true, false, route_submit},
	{"GET", "/v1/jobs", false, false, route_jobs},
	{"GET", "/v1/jobs/{id}", false, false, route_job},
	{"GET", "/v1/jobs/{id}/events", false, false, route_events},
	{"GET", "/v1/jobs/{id}/report", false, false, route_report},
	{"GET", "/v1/jobs/{id}/artifacts", false, false, route_artifacts},
	{"GET", "/v1/jobs/{id}/artifacts/{name}", false, false, route_artifact},
	{"POST", "/v1/jobs/{id}/cancel", true, false, route_cancel},
	{"POST", "/v1/jobs/{id}/ack", true, false, route_ack},
	{"GET", "/metrics", false, true, route_metrics},
};

bool
route_is_name(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._+-";
	size_t n = strlen(name);

	return n > 0 && n <= ROUTE_MAX_NAME && name[0] != '.' && strspn(name, good) == n;
}

static int
id_take(const char *p, size_t n, struct route_args *args, struct err *e)
{
	if (n == JOB_ID_HEX) {
		memcpy(args->id, p, n);
		args->id[n] = '\0';
		if (str_is_hex(args->id, JOB_ID_HEX))
			return 0;
	}
	args->id[0] = '\0';
	return err_set(e, ERR_PARSE, "a job id is %d lower-case hex digits", JOB_ID_HEX);
}

static int
name_take(const char *p, struct route_args *args, struct err *e)
{
	if (!route_is_name(p)) {
		err_set(e, ERR_PARSE, "no name of a file here");
		return err_hint(e, "letters, digits and . _ + -, not beginning with a dot");
	}
	return str_copy(args->name, sizeof args->name, p, e);
}

/* 1: the path has the pattern's form; then *e says if a word of it is bad. */
static int
path_match(const char *pattern, const char *path, struct route_args *args, struct err *e)
{
	const char *id = NULL, *name = NULL;
	size_t id_len = 0;

	while (*pattern != '\0') {
		if (str_starts(pattern, "{id}")) {
			id = path;
			id_len = strcspn(path, "/");
			path += id_len;
			pattern += 4;
		} else if (str_starts(pattern, "{name}")) {
			name = path;
			path += strlen(path);
			pattern += 6;
		} else if (*pattern++ != *path++) {
			return 0;
		}
	}
	if (*path != '\0' || (id != NULL && id_len == 0) ||
	    (name != NULL && name[0] == '\0'))
		return 0;
	if (id != NULL && id_take(id, id_len, args, e))
		return 1;
	if (name != NULL && name_take(name, args, e))
		return 1;
	return 1;
}

static int
method_wrong(const char *path, const char *found, char allow[32], struct err *e)
{
	struct route_args args;
	size_t i;
	bool get = false, post = false;

	for (i = 0; i < ROUTE_COUNT; i++)
		if (path_match(routes[i].pattern, path, &args, NULL)) {
			get |= strcmp(routes[i].method, "GET") == 0;
			post |= strcmp(routes[i].method, "POST") == 0;
		}
	if (str_fmt(allow, 32, e, "%s%s%s", get ? "GET, HEAD" : "", get && post ? ", " : "",
		    post ? "POST" : ""))
		return -1;
	err_set(e, ERR_METHOD, "%.20s is not a method of this path", found);
	return err_hint(e, "it has %s", allow);
}

int
route_find(const char *method, const char *path, const struct route **out,
	struct route_args *args, char allow[32], struct err *e)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
	bool known = false;
	size_t i;

	*out = NULL;
	allow[0] = '\0';
	memset(args, 0, sizeof *args);
	for (i = 0; i < ROUTE_COUNT; i++) {
		struct err bad = {0};

		if (!path_match(routes[i].pattern, path, args, &bad))
			continue;
		known = true;
		if (strcmp(routes[i].method, wanted) != 0)
			continue;
		*out = &routes[i];
		if (bad.code == ERR_NONE)
			return 0;
		if (e != NULL)
			*e = bad;
		return -1;
	}
	if (known)
		return method_wrong(path, method, allow, e);
	err_set(e, ERR_NOTFOUND, "there is nothing under this path");
	return err_hint(e, "GET /v1/health; every path begins with /v1/ but /metrics");
}
