/*
 * lane - the tables of the field: outcomes, reason codes, claims, gates, targets, lanes.
 *
 * A lane, a target, a gate or a reason is a row; code reads columns and never compares a
 * lane's name.  All data is static: no ownership, any thread.
 */
#ifndef COMMON_LANE_H
#define COMMON_LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum outcome {
	OUTCOME_PASS,
	OUTCOME_FAIL,       /* ran, and is wrong */
	OUTCOME_BLOCKED,    /* could not be tested here */
	OUTCOME_SKIPPED,    /* asked for; never recordable */
	OUTCOME_INCOMPLETE, /* cut off */
	OUTCOME_COUNT
};
const char *outcome_name(enum outcome o);
int outcome_find(const char *name); /* -1 when unknown */

/*
 * Reason codes: why a gate did not pass.  The hint is the default one; a gate may say
 * more.  REASON_NONE goes with a pass.
 */
#define REASON_TABLE(X)                                                                  \
	X(NONE, "none", PASS, "")                                                        \
	/* host, device */                                                               \
	X(WRONG_HOST, "wrong_host", BLOCKED, "run this lane on the kind of host it is for") \
	X(NO_DEVICE, "no_device", BLOCKED, "attach the device, or choose another lane")  \
	X(LANE_NOT_HERE, "lane_not_here", BLOCKED, "this build of the agent has no gates for the lane") \
	X(PROBE_UNREADABLE, "probe_unreadable", BLOCKED, "send the raw probe log to the maintainers") \
	X(DEVICE_VANISHED, "device_vanished", INCOMPLETE, "look at the kernel log, then run again") \
	X(DEVICE_CHANGED, "device_changed", INCOMPLETE, "look at the kernel log; the device was another one, or in another state, after the gate") \
	X(PROBES_DISAGREE, "probes_disagree", BLOCKED, "compare the table above; drivers, containers and visibility variables hide devices") \
	X(PROBE_CRASHED, "probe_crashed", BLOCKED, "the driver's library crashed; run the probe of the log by hand") \
	X(PROBE_TIMEOUT, "probe_timeout", BLOCKED, "the driver does not answer; look at the kernel log") \
	X(WRONG_DEVICE, "wrong_device_class", BLOCKED, "this lane is for another class of device") \
	X(DRIVER_MISSING_ON_HOST, "driver_not_loaded", BLOCKED, "install or load the device's driver") \
	X(DRIVER_MISMATCH, "driver_mismatch", BLOCKED, "reboot or reload the kernel module, so that library and module agree") \
	X(NO_PERMISSION, "no_permission", BLOCKED, "let the agent's user open the device files (groups render and video)") \
	X(DEVICE_BUSY, "device_busy", BLOCKED, "wait for the other process, or ask who holds the device") \
	X(DEVICE_FAULT, "device_fault", BLOCKED, "the device needs a reset or an exchange; look at the kernel log") \
	X(FABRIC_NOT_READY, "fabric_not_ready", BLOCKED, "start nvidia-fabricmanager of the driver's own version") \
	X(MIG_NO_INSTANCE, "mig_no_instance", BLOCKED, "MIG is on without an instance: make one, or switch MIG off") \
	X(TOOL_SAW_NO_GPU, "tool_saw_no_gpu", BLOCKED, "the tool ended well and saw no device; ask the driver") \
	X(EMULATOR, "emulator", BLOCKED, "run on a real phone; an emulator proves nothing") \
	X(METAL_HOST_NOT_BUILT, "metal_host_not_built", BLOCKED, "no program for Metal is built; the shaders are translated only") \
	X(DEVICE_UNAUTHORIZED, "device_unauthorized", BLOCKED, "accept the debugging key on the phone's screen") \
	X(DEVICE_OFFLINE, "device_offline", BLOCKED, "plug the phone in again, then adb reconnect") \
	X(DEVICE_NOT_CHOSEN, "device_not_chosen", BLOCKED, "name one device") \
	/* toolchain */                                                                  \
	X(TOOL_MISSING, "tool_missing", BLOCKED, "install the tool named above and run again") \
	X(TOOL_BROKEN, "tool_broken", BLOCKED, "run the command of the log by hand")     \
	X(TOOLCHAIN_TOO_OLD, "toolchain_too_old", BLOCKED, "install the version named above") \
	X(VULKAN_HEADERS_TOO_OLD, "vulkan_headers_too_old", BLOCKED, "install newer Vulkan headers, or give a prebuilt engine") \
	X(UNKNOWN_TOOL_FORMAT, "unknown_tool_format", BLOCKED, "send the raw log to the maintainers") \
	/* model */                                                                      \
	X(MODEL_NOT_GIVEN, "model_not_given", BLOCKED, "name one with --model or ELIZA_MTP_SMOKE_MODEL") \
	X(MODEL_MISSING, "model_missing", BLOCKED, "check the path on the host that runs the agent") \
	X(MODEL_NOT_A_FILE, "model_not_a_file", BLOCKED, "give the path of a GGUF file") \
	X(MODEL_NOT_GGUF, "model_not_gguf", BLOCKED, "give a GGUF file")                 \
	X(MODEL_TRUNCATED, "model_truncated", BLOCKED, "copy the file again and compare its digest") \
	X(MODEL_MALFORMED, "model_malformed", BLOCKED, "check the file with the tool that wrote it") \
	X(MODEL_UNREADABLE, "model_unreadable", BLOCKED, "let the agent's user read the file") \
	X(MODEL_NOT_SUITABLE, "model_not_suitable", BLOCKED, "use a model whose head size is a multiple of the cache type's block") \
	X(MODEL_CHANGED, "model_changed", FAIL, "nothing may write the model while a job runs") \
	/* source, build */                                                              \
	X(SOURCE_NOT_GIVEN, "source_not_given", BLOCKED, "name one with --source or ELIZA_MTP_LLAMA_DIR") \
	X(SOURCE_MISSING, "source_missing", BLOCKED, "check the path or URL on the host that runs the agent") \
	X(SOURCE_NOT_ENGINE, "source_not_engine", BLOCKED, "give the root of a llama.cpp tree") \
	X(SOURCE_DIGEST, "source_digest_mismatch", BLOCKED, "fetch the source again; its digest is not the pinned one") \
	X(SOURCE_CHANGED, "source_changed", FAIL, "nothing may write the source while a job runs") \
	X(SOURCE_FETCH, "source_fetch_failed", BLOCKED, "run the git command of the log by hand") \
	X(BAD_FLAGS, "bad_cmake_flags", BLOCKED, "give plain -DNAME=VALUE words in ASCII, without quotes") \
	X(CONFIGURE_FAILED, "configure_failed", FAIL, "read the first error line, then the build log") \
	X(BUILD_FAILED, "build_failed", FAIL, "read the first error line, then the build log") \
	X(TOOLCHAIN_CRASH, "toolchain_crash", BLOCKED, "the compiler died; check memory and its version") \
	X(NO_GPU_AT_BUILD, "no_gpu_at_build_time", BLOCKED, "name the architecture: -DCMAKE_CUDA_ARCHITECTURES=90a") \
	X(NO_CODE_FOR_DEVICE, "no_code_for_device", FAIL, "build for the device's architecture") \
	X(ARTIFACT_MISSING, "artifact_missing", FAIL, "the build said it was done but a program is not there") \
	X(ARTIFACT_WRONG_MACHINE, "artifact_wrong_machine", FAIL, "the build made code for another machine") \
	X(STALE_BINARY, "stale_binary", BLOCKED, "build again without *_BUILD_FORK=0 or ELIZA_MTP_BIN_DIR") \
	X(PREBUILT_REFUSED, "prebuilt_refused", BLOCKED, "in the agent's environment set ELIZA_MTP_SKIP_BUILD=1 and ELIZA_MTP_ALLOW_PREBUILT_VULKAN_SMOKE=1, beside a CAPABILITIES.json") \
	X(PREBUILT, "prebuilt_engine", SKIPPED, "build from source for a result that can be recorded") \
	/* fixtures */                                                                   \
	X(FIXTURE_MISMATCH, "fixture_mismatch", FAIL, "compare the kernel with kernels/ref.c") \
	X(FIXTURE_INVALID, "fixture_invalid", BLOCKED, "regenerate the fixture with `make fixtures`") \
	X(CONTROL_MISSED, "control_missed", FAIL, "the harness let a planted error pass; its verdicts are void") \
	X(HARNESS_CRASHED, "harness_crashed", FAIL, "run cpu-verify by hand")            \
	X(NO_CASE_EXECUTED, "no_case_executed", BLOCKED, "zero executed cases are never a pass") \
	X(BACKEND_NOT_PRESENT, "backend_not_present", BLOCKED, "the engine was built without that backend") \
	/* op parity */                                                                  \
	X(OP_NOT_IN_ENGINE, "op_not_in_engine", BLOCKED, "build an engine that has the op, or choose another suite") \
	X(OP_MISMATCH, "op_mismatch", FAIL, "compare the engine's kernel with kernels/ref.c") \
	X(SUMMARY_MISSING, "summary_missing", INCOMPLETE, "the tool did not print its end; run it again") \
	/* control */                                                                    \
	X(KL_ABOVE_CEILING, "kl_above_ceiling", FAIL, "the cache gives other numbers than f16; compare the engine's kernels") \
	X(CONTROL_NOT_SENSITIVE, "control_not_sensitive", BLOCKED, "a scrambled cache was not noticed; use a larger model or text") \
	X(CONTROL_NOT_OFFERED, "control_not_offered", BLOCKED, "build the engine's llama-perplexity beside the driver") \
	/* speculative decoding */                                                       \
	X(DRAFTER_NOT_GIVEN, "drafter_not_given", BLOCKED, "name the drafter with --draft-model") \
	X(SPEC_NOT_IN_BUILD, "spec_type_not_in_build", BLOCKED, "build an engine whose --spec-type knows draft-mtp") \
	X(SPEC_NOT_USED, "speculation_not_used", FAIL, "the log shows no speculation of the asked type") \
	X(NO_DRAFT_ACCEPTED, "no_draft_accepted", FAIL, "drafts must be made and accepted") \
	X(ACCEPTANCE_LOW, "acceptance_below_floor", FAIL, "compare drafter and target; a broken drafter is accepted by chance") \
	X(FLASH_ATTN_OFF, "flash_attn_off", FAIL, "flash attention must be on for this claim") \
	X(KV_NOT_STOCK, "kv_not_stock", FAIL, "this claim is about stock K and V types") \
	/* evidence of phones */                                                         \
	X(EVIDENCE_MISSING, "evidence_missing", BLOCKED, "name the file with ELIZA_ANDROID_VULKAN_GRAPH_EVIDENCE") \
	X(EVIDENCE_UNBOUND, "evidence_unbound", BLOCKED, "make the evidence on this very device, with its serial, commit and time") \
	X(EVIDENCE_INVALID, "evidence_invalid", FAIL, "each route once, with 0 <= maxDiff < tolerance") \
	X(PUSH_MISMATCH, "push_mismatch", BLOCKED, "the file on the device is not the one that was pushed; free some space there") \
	X(MARKER_MISSING, "exit_marker_missing", INCOMPLETE, "the device's shell was cut off; run it again") \
	/* graph smoke */                                                                \
	X(FAMILY_NOT_IN_BUILD, "family_not_in_build", BLOCKED, "build an engine that has the cache type, or choose another suite") \
	X(DRIVER_MISSING, "driver_missing", BLOCKED, "build the driver program that the suite names") \
	X(DRIVER_REFUSES, "driver_refuses", BLOCKED, "use llama-completion as the driver") \
	X(HELP_UNREADABLE, "help_unreadable", BLOCKED, "run the engine with --help by hand") \
	X(LOG_TOO_QUIET, "log_too_quiet", BLOCKED, "the engine did not print the lines that prove where it ran") \
	X(KV_TYPE_DIFFERS, "kv_type_differs", FAIL, "the engine allocated another K cache type than asked") \
	X(KV_NOT_ON_DEVICE, "kv_not_on_device", FAIL, "the KV buffer is not on a device of the lane") \
	X(NOT_OFFLOADED, "not_offloaded", FAIL, "not every layer went to the device") \
	X(OP_ON_CPU, "op_on_cpu", FAIL, "an attention op of this family ran on the CPU") \
	X(OP_NOT_SUPPORTED, "op_not_supported", FAIL, "the backend can not run an op for this cache type") \
	X(SOFTWARE_DEVICE, "software_device", BLOCKED, "a software device proves nothing about hardware") \
	X(BACKEND_INIT_FAILED, "backend_init_failed", BLOCKED, "check the driver; the engine could not open the device") \
	X(V_CACHE_NEEDS_FA, "v_cache_needs_flash_attn", BLOCKED, "add -fa on, or leave the V cache type alone") \
	X(TOO_FEW_TOKENS, "too_few_tokens", FAIL, "the engine stopped before the tokens asked for") \
	X(ENGINE_ERROR, "engine_error", FAIL, "read the last error line of the log")     \
	X(ENGINE_ABORT, "engine_abort", FAIL, "read the last lines of the log")          \
	X(ENGINE_CRASH, "engine_crash", FAIL, "read the last lines of the log")          \
	X(ENGINE_EXIT, "engine_exit", FAIL, "read the last lines of the log")            \
	X(DEVICE_LOST, "device_lost", FAIL, "the device was there and the code lost it") \
	/* any gate */                                                                   \
	X(DEPENDS, "depends_on", BLOCKED, "see the gate it depends on")                  \
	X(NOT_ASKED, "not_asked", SKIPPED, "run without --only to do every gate")        \
	X(SKIP_SWITCH, "skip_switch", SKIPPED, "unset the skip switch")                  \
	X(TIMEOUT, "timeout", INCOMPLETE, "raise the time limit or find what hangs")     \
	X(CANCELLED, "cancelled", INCOMPLETE, "run it again when you want the answer")   \
	X(AGENT_DIED, "agent_died", INCOMPLETE, "run it again; the agent's log may say why") \
	X(DISK_FULL, "disk_full", INCOMPLETE, "free some space for the agent's state folder") \
	X(INTERNAL, "internal_error", INCOMPLETE, "send the report to the maintainers")  \
	X(LOG_MISSING, "log_missing", INCOMPLETE, "pull the job again")                  \
	X(LOG_DIGEST, "log_digest_mismatch", INCOMPLETE, "pull the job again; the bytes are not those the report names") \
	X(LOG_FOREIGN, "log_of_another_job", INCOMPLETE, "the log does not carry this job's nonce; run it again") \
	X(NOT_SIGNED, "not_signed", BLOCKED, "the agent's key could not be read")

enum reason {
#define X(id, name, outcome, hint) REASON_##id,
	REASON_TABLE(X)
#undef X
	REASON_COUNT
};
const char *reason_name(enum reason r); /* "none" for REASON_NONE */
const char *reason_hint(enum reason r);
enum outcome reason_outcome(enum reason r);
int reason_find(const char *name); /* -1 when unknown */

/* What a pass claims; never merged, and a column each in `classes`. */
enum claim { CLAIM_FIXTURE_PARITY, CLAIM_LEGACY_KV_GRAPH, CLAIM_GEMMA_RUNTIME, CLAIM_COUNT };
const char *claim_name(enum claim c); /* "fixture-parity" */

/* Gates in the order they run. */
enum gate_id {
	GATE_HOST,
	GATE_DEVICE,
	GATE_TOOLCHAIN,
	GATE_MODEL,
	GATE_SOURCE,
	GATE_BUILD,
	GATE_FIXTURES,
	GATE_OP_PARITY,
	GATE_ROUTES,
	GATE_GRAPH_SMOKE,
	GATE_CONTROL,
	GATE_MTP,
	GATE_REPORT,
	GATE_COUNT
};
#define GATE_BIT(g) (1u << (g))

/* What `run --only` may name. */
enum only { ONLY_ALL, ONLY_PROBE, ONLY_BUILD, ONLY_FIXTURES, ONLY_SMOKE, ONLY_COUNT };

struct gate_row {
	const char *name;    /* in reports and commands */
	const char *title;   /* for people */
	unsigned     needs;  /* GATE_BIT of gates that must have passed */
	unsigned     only;   /* 1 << enum only of the groups that ask for it */
	bool         family; /* one per cache family: "graph-smoke/q8_0" */
};
extern const struct gate_row gates[GATE_COUNT];
int gate_find(const char *name); /* "graph-smoke/q8_0" finds GATE_GRAPH_SMOKE; -1 */
const char *only_name(enum only o);
int only_find(const char *name); /* -1 when unknown */

/* The programming interface that a lane's device is driven through. */
enum api { API_CPU, API_CUDA, API_HIP, API_VULKAN, API_METAL };

/* What is built. */
struct target {
	const char *name;     /* "linux-x64-cpu" */
	const char *os;       /* of its programs; uname -s: "Linux", "Android", "Windows" */
	const char *arch;     /* uname -m: "x86_64", "aarch64" */
	enum api    api;
	int         elf_machine; /* e_machine of its programs; 62 x86-64, 183 aarch64; 0 no ELF */
};
extern const struct target targets[];
extern const size_t target_count;
const struct target *target_find(const char *name);

/* How the target of a lane belongs to the host that runs the agent. */
enum lane_place {
	PLACE_HERE,   /* os and arch are the host's own */
	PLACE_ADB,    /* built here, runs on a phone behind adb */
	PLACE_NEVER   /* a row without gates: says why */
};
/* Which devices of its interface a lane speaks of. */
enum lane_kin {
	KIN_ANY,
	KIN_NOT_GRACE, /* any but Hopper on aarch64 */
	KIN_GRACE      /* Hopper (9.x) on aarch64 */
};
#define LANE_MAX_TARGETS 3

struct lane {
	const char *name;       /* in commands, URLs, the ledger */
	const char *title;      /* for people */
	enum api    api;
	enum lane_place place;
	enum lane_kin kin;
	const char *targets[LANE_MAX_TARGETS + 1]; /* names, NULL-terminated */
	const char *harness;    /* the agent's command that checks the kernels */
	const char *backend;    /* of kernels, in its output: "cpu", also as "cpu-ref" */
	const char *kv_device;  /* glob over the buffer name of the engine log: "CPU" */
	const char *op_backend; /* glob over the backend name of test-backend-ops: "CUDA0" */
	const char *library;    /* the engine's library with the device code, "" none */
	const char *pin;        /* variable that shows one device only, "" none */
	unsigned    gates;      /* GATE_BIT of the gates the lane has */
	enum reason never;      /* of PLACE_NEVER; else REASON_NONE */
	const char *runner;     /* the v1 report's `runner` field */
	const char *whole_log;  /* NULL, or the log that the old runner kept: "NAME-STAMP.log" */
	const char *build_switch; /* "" or the old variable CUDA_BUILD_FORK */
	const char *skip_switch;  /* "" or CUDA_SKIP_GRAPH_SMOKE */
	const char *target_variable; /* "" or CUDA_TARGET: must name the lane's target */
	const char *cmake_flags;  /* backend flags of the engine build */
	const char *arch_flag;  /* "" or CMAKE_CUDA_ARCHITECTURES: cmake's name for the chips */
	const char *archs;      /* its default value */
	bool        pinned;     /* a contradicting arch_flag or target is bad usage */
	bool        offloads;   /* layers must be offloaded N of N */
};
extern const struct lane lanes[];
extern const size_t lane_count;
const struct lane *lane_find(const char *name);
/* The same of a name that somebody typed: ERR_PARSE with the names that there are. */
CHECKED int lane_get(const char *name, const struct lane **out, struct err *e);
/* The engine's name of the lane's device, "CUDA0": pinned, it is the only one of its kind. */
void lane_device(const struct lane *l, char *out, size_t size);
/* The target of a lane on a host (uname words); NULL when the lane has none there. */
const struct target *lane_target(const struct lane *l, const char *os, const char *arch);

#endif
