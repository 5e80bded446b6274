/*
 * err - one error: a code for programs, a sentence for people, a hint.
 *
 * Life: on the caller's stack, zeroed; no heap.  Who returns an error does not log it;
 * who handles it prints it once.  Test `code`, never `msg`.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#if defined(__GNUC__)
#define CHECKED __attribute__((warn_unused_result))
#define PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define CHECKED
#define PRINTF(a, b)
#endif

/* The exit statuses of every program of the project, one table for all. */
enum exit_status {
	EXIT_PASS = 0,        /* recordable pass */
	EXIT_FAIL = 1,        /* ran, and is wrong */
	EXIT_USAGE = 2,       /* usage or bad input */
	EXIT_BLOCKED = 3,     /* could not be tested here, no device included */
	EXIT_REFUSED = 4,     /* keys, signatures, digests */
	EXIT_UNREACHABLE = 5, /* no contact with the host */
	EXIT_INCOMPLETE = 6,  /* cut off or timed out */
	EXIT_UNRECORDED = 7,  /* all that ran passed, but it is not recordable */
};

#define ERR_TABLE(X)                                     /* exit  http */      \
	X(ERR_NONE, "ok", EXIT_PASS, 200)                                      \
	X(ERR_USAGE, "usage", EXIT_USAGE, 400)                                 \
	X(ERR_PARSE, "bad_input", EXIT_USAGE, 400)                             \
	X(ERR_LIMIT, "too_large", EXIT_USAGE, 413)                             \
	X(ERR_NOTFOUND, "not_found", EXIT_USAGE, 404)                          \
	X(ERR_METHOD, "method_not_allowed", EXIT_USAGE, 405)                   \
	X(ERR_CONFLICT, "conflict", EXIT_USAGE, 409)                           \
	X(ERR_RANGE, "range_not_satisfiable", EXIT_USAGE, 416)                 \
	X(ERR_BLOCKED, "blocked", EXIT_BLOCKED, 409)                           \
	X(ERR_UNSUPPORTED, "unsupported", EXIT_BLOCKED, 501)                   \
	X(ERR_NO_DEVICE, "no_device", EXIT_BLOCKED, 503)                       \
	X(ERR_REFUSED, "refused", EXIT_REFUSED, 403)                           \
	X(ERR_INTEGRITY, "integrity", EXIT_REFUSED, 422)                       \
	X(ERR_UNREACHABLE, "unreachable", EXIT_UNREACHABLE, 502)               \
	X(ERR_TIMEOUT, "timeout", EXIT_INCOMPLETE, 504)                        \
	X(ERR_CANCELLED, "cancelled", EXIT_INCOMPLETE, 499)                    \
	X(ERR_BUSY, "busy", EXIT_INCOMPLETE, 503)                              \
	X(ERR_DEVICE, "device_failed", EXIT_INCOMPLETE, 502)                   \
	X(ERR_NOSPACE, "disk_full", EXIT_INCOMPLETE, 507)                      \
	X(ERR_NOMEM, "no_memory", EXIT_INCOMPLETE, 503)                        \
	X(ERR_IO, "io", EXIT_INCOMPLETE, 500)

enum err_code {
#define X(id, name, exit, http) id,
	ERR_TABLE(X)
#undef X
};

struct err {
	enum err_code code;
	char msg[320];  /* outermost first: "job: suite: no such suite" */
	char hint[160]; /* one thing to try, or "" */
};

/* Each returns -1, so that `return err_set(...)` reads well.  e may be NULL. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...) PRINTF(3, 4);
/* From errno: ENOENT becomes ERR_NOTFOUND, ENOSPC and EDQUOT ERR_NOSPACE, else ERR_IO. */
int err_errno(struct err *e, int errnum, const char *fmt, ...) PRINTF(3, 4);
/* Puts "fmt: " in front of the message. */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);
int err_hint(struct err *e, const char *fmt, ...) PRINTF(2, 3);

const char *err_name(enum err_code code); /* "not_found" */
int err_exit(enum err_code code);         /* enum exit_status */
int err_http(enum err_code code);

/* "prog: msg\n" and, when there is one, "  hint: ...\n" on stderr. */
void err_print(const char *prog, const struct err *e);

#endif
