/*
 * tool - what probe tools print, as facts: nvidia-smi, nvcc, rocminfo, vulkaninfo, adb, and
 * our own probes.
 *
 * The text of a tool is untrusted and comes in any shape: CRLF, UTF-8 with BOM, UTF-16,
 * ANSI colour, cut off, mixed with lines of stderr.  A fact that was not printed is
 * unknown ("", -1), never 0.  What a tool says instead of facts (no driver, no permission,
 * lost device) is a reason.  An exit code of 0 alone proves nothing.
 * Pure functions over bytes: no state, any thread, any input.
 */
#ifndef COMMON_TOOL_H
#define COMMON_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/err.h"
#include "common/lane.h"

#define TOOL_MAX_BYTES (4u << 20) /* of one output; longer is unknown_tool_format */
#define TOOL_MAX_DEVICES 160 /* 16 cards in 7 slices, and room */
#define TOOL_MAX_BACKENDS 64
#define TOOL_MAX_NOTES 8

enum tool_kind {
	TOOL_NVIDIA_SMI_L,      /* nvidia-smi -L */
	TOOL_NVIDIA_SMI_QUERY,  /* nvidia-smi --query-gpu=... --format=csv[,noheader][,nounits] */
	TOOL_NVCC,              /* nvcc --version */
	TOOL_ROCMINFO,          /* rocminfo */
	TOOL_VULKANINFO,        /* vulkaninfo --summary */
	TOOL_TEST_BACKEND_OPS,  /* test-backend-ops test ... */
	TOOL_ADB_DEVICES,       /* adb devices -l */
	TOOL_PROBE,             /* the JSON of verify-agent probe NAME */
	TOOL_KIND_COUNT
};
/* "nvidia-smi-L", "nvidia-smi-query", "nvcc-version", "rocminfo", "vulkaninfo-summary",
 * "test-backend-ops", "adb-devices", "probe"; -1 unknown. */
int tool_kind_find(const char *name);
const char *tool_kind_name(enum tool_kind k);

enum tool_type { TYPE_UNKNOWN, TYPE_CPU, TYPE_INTEGRATED, TYPE_DISCRETE, TYPE_VIRTUAL };

/* One device, or one MIG slice (parent >= 0), or one phone. */
struct tool_device {
	char name[128];         /* as printed */
	char uuid[64];          /* "GPU-...", "MIG-...", Vulkan's 32 hex digits, adb serial */
	char pci[32];           /* "0000:00:06.0": lower case, domain without needless zeros
	                         * beyond four digits, function kept; "" unknown */
	char arch[32];          /* "9.0", "gfx942" (without features), "" unknown */
	char features[64];      /* "sramecc+:xnack-" */
	char driver[96];        /* driver version as printed */
	bool driver_due;        /* this Vulkan has driver ids: without one the text was cut */
	char driver_id[64];     /* Vulkan: "NVIDIA_PROPRIETARY" (no prefix), lower in classes */
	char mig[32];           /* profile of a slice: "1g.18gb" */
	char mig_mode[16];      /* of a whole device: "enabled", "disabled", "" unknown */
	char compute_mode[24];  /* "Default", "Exclusive_Process" */
	char state[32];         /* "" fine; "lost", "requires_reset", adb "unauthorized" ... */
	enum tool_type type;
	int index;              /* as the tool numbers; -1 unknown */
	int parent;             /* index in device[] of a slice's card; -1 none */
	int64_t memory_mib;     /* -1 unknown */
	int64_t used_mib;       /* -1 unknown */
	int64_t utilization;    /* percent; -1 unknown */
	int64_t chip_id;        /* rocminfo's Chip ID; -1 unknown */
	int64_t ecc;            /* uncorrected errors since the driver was loaded; -1 unknown */
	int64_t ecc_ever;       /* the same since the card was made; -1 unknown */
	int64_t xid;            /* Xid lines of the kernel log about it; -1 unknown */
	int64_t processes;      /* that compute on it now; -1 unknown */
	char throttle[24];      /* reasons for slower clocks, as bits in hex; "" unknown */
	bool mps;               /* one of them shares the device among its clients */
	bool rows_failed;       /* a bad row of memory could not be exchanged: a broken card */
	bool software;          /* by type, driver id, driver name, vendor id or name */
	bool mesa_vendor;       /* Vulkan: Mesa's own vendor id, of software and of Apple's chips */
	bool chip_differs;      /* the chip id is that of another architecture */
	bool vgpu;              /* a virtual GPU profile */
	bool conformant;        /* Vulkan: conformance version is not 0.0.0.0 */
};

/* Rows of test-backend-ops: of one op (name without its parameters) on one backend. */
#define TOOL_MAX_OPS 256
struct tool_op {
	char backend[32], op[48];
	uint32_t ok, failed, not_supported;
	double worst_nmse;      /* of what was printed; -1 none */
};
struct tool_backend {
	char name[32], device[128];
	bool skipped, ended_ok, ended_fail;
	int64_t passed, executed; /* of "N/M tests passed"; -1: no summary line */
};

struct tool_answer {
	enum tool_kind kind;
	enum reason reason;     /* REASON_NONE: facts were read */
	char detail[320], hint[160];
	char version[48];       /* nvcc, driver, instance, adb; "" unknown */
	char probe[16];         /* TOOL_PROBE: "nvml", "cuda", "kfd", "hip", "vulkan" */
	bool simulated;         /* TOOL_PROBE: a stand-in library answered */
	char boot_id[40];       /* TOOL_PROBE: of the host when it answered */
	struct tool_device device[TOOL_MAX_DEVICES];
	int count;
	bool overflow;          /* more devices or ops than fit: proves nothing */
	/* test-backend-ops */
	struct tool_backend backend[TOOL_MAX_BACKENDS];
	int backend_count;
	struct tool_op op[TOOL_MAX_OPS];
	int op_count;
	int64_t backends_passed, backends; /* of the last line; -1 none */
	bool ok_line;           /* the final OK (or FAIL: failed_line) */
	bool failed_line;
	char note[TOOL_MAX_NOTES][160]; /* things to keep in mind, e.g. a skip line quoted */
	int note_count;
};

/* Reads the text of a tool that ended with that exit code (-1 unknown or not asked). */
void tool_parse(enum tool_kind k, const char *text, size_t len, int exit,
	struct tool_answer *out);
/* The facts as JSON; gives, cJSON_Delete; NULL: no memory. */
cJSON *tool_json(const struct tool_answer *a);
/* One row of test-backend-ops as it stands in its text. */
struct tool_case {
	char backend[32];       /* under whose head it stands */
	char op[48];            /* "SET_ROWS" */
	char params[512];       /* "type=q8_0,ne=[256,5,1,3]"; cut when longer */
	enum { CASE_OK, CASE_FAILED, CASE_NOT_SUPPORTED } result;
	double nmse;            /* -1 not printed */
	char line[200];
};
/* Calls each() with every whole row of the raw text. */
CHECKED int tool_ops_each(const char *text, size_t len,
	void (*each)(void *arg, const struct tool_case *c), void *arg, struct err *e);
/* A name such as "CUDA0" against "CUDA[0-9]*": the letters, then digits. */
bool tool_backend_matches(const char *glob, const char *name);
/* Text without what terminals and Windows add: BOM, UTF-16 to UTF-8, CR, ANSI.  Gives
 * *out (free()).  ERR_LIMIT over TOOL_MAX_BYTES. */
CHECKED int tool_clean(const char *text, size_t len, char **out, size_t *out_len,
	struct err *e);
/* Whether the bytes are UTF-16, by their mark or by every other one being 0. */
bool tool_is_utf16(const char *text, size_t len);
/* Such bytes as UTF-8; gives, free(); NULL: no memory. */
char *tool_utf8(const char *text, size_t len, size_t *out_len);
/* "gfx1103": an architecture that only graphics inside of processors have. */
bool tool_is_apu(const char *arch);
/* "00000000:00:06.0", "0000:00:06.0", "00:06.0" -> "0000:00:06.0"; false: none of these. */
bool tool_pci(const char *text, char out[32]);

#endif
