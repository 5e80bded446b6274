/*
 * tool_impl - what the files of tool share; nobody else includes it.
 */
#ifndef COMMON_TOOL_IMPL_H
#define COMMON_TOOL_IMPL_H

#include "common/str.h"
#include "common/tool.h"

/* Readers of a cleaned text (NUL-terminated, LF only). */
typedef void (*tool_read)(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_smi_list(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_smi_query(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_nvcc(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_rocminfo(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_vulkaninfo(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_ops(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_adb(const char *text, size_t len, int exit, struct tool_answer *out);
void tool_read_probe(const char *text, size_t len, int exit, struct tool_answer *out);

/* Next line at *pos into out, cut to size, without blanks at its end; false at the end. */
bool tool_line(const char *text, size_t len, size_t *pos, char *out, size_t size);
/* Left blanks away; the text itself is changed at its end. */
char *tool_trim(char *s);
/* A new device with everything unknown; NULL, and overflow, when the table is full. */
struct tool_device *tool_device_add(struct tool_answer *a);
void tool_say(struct tool_answer *a, enum reason r, const char *fmt, ...) PRINTF(3, 4);
void tool_hint(struct tool_answer *a, const char *fmt, ...) PRINTF(2, 3);
void tool_note(struct tool_answer *a, const char *fmt, ...) PRINTF(2, 3);
/* Words of a tool that mean a reason: the first row whose word is in the text. */
struct tool_refusal {
	const char *word;
	enum reason reason;
	const char *hint; /* "" the reason's own */
};
bool tool_refused(const struct tool_refusal *rows, size_t count, const char *text,
	struct tool_answer *a);
/* By type, by driver and by name: what it says of itself may be one of them alone. */
bool tool_is_software(const struct tool_device *d);
bool tool_is_software_name(const char *name);
/* A device of Vulkan that is another system's, behind a virtual machine. */
bool tool_is_virtual(const struct tool_device *d);
/* The interface below, when Vulkan is played over one: "Direct3D 12"; NULL: it is native. */
const char *tool_layer(const struct tool_device *d);
/* Why a phone in that state, one of adb's words, can not be used. */
enum reason tool_adb_reason(const char *state);
/* "GRID A100D-40C", "NVIDIA L40S-24Q": a virtual profile. */
bool tool_is_vgpu_name(const char *name);

#endif
