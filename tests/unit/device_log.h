/*
 * device_log - logs of device gates as an agent writes them, and what is judged of them.
 * Included behind cmocka's header by the tests of devices.
 */
#ifndef TESTS_UNIT_DEVICE_LOG_H
#define TESTS_UNIT_DEVICE_LOG_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/agree.h"
#include "common/str.h"

#define MARK "#verify 0123456789abcdef "
#define LOG_BYTES 65536

#define SELF(words) "\"/opt/bin/verify-agent\",\"probe\"," words
#define NVML SELF("\"nvml\"")
#define CUDA SELF("\"cuda\"")
#define HIP SELF("\"hip\"")
#define KFD SELF("\"kfd\"")
#define VULKAN SELF("\"vulkan\"")
#define SMI_L "\"/usr/bin/nvidia-smi\",\"-L\""
#define ROCMINFO "\"/opt/rocm/bin/rocminfo\""
#define VULKANINFO "\"/usr/bin/vulkaninfo\",\"--summary\""

#define ONE "GPU-11111111-2222-3333-4444-555555555555"
#define TWO "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
#define DEVICE(index, name, uuid, pci, arch, more) "{\"index\":" #index ",\"name\":\"" name \
	"\",\"uuid\":\"" uuid "\",\"pci\":\"" pci "\",\"arch\":\"" arch "\",\"type\":\"discrete\"" more "}"
#define DRIVER ",\"driver\":\"580.65.06\""
#define H200(index, uuid, pci, more) DEVICE(index, "NVIDIA H200", uuid, pci, "9.0", more)

/* ---- logs ---- */

static char log_text[LOG_BYTES];
static size_t log_len;

static void PRINTF(1, 2)
add(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(log_text + log_len, sizeof log_text - log_len, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof log_text - log_len);
	log_len += (size_t)n;
}

/* Begins a log: what the agent notes before it asks anybody. */
static __attribute__((unused)) void
facts(const char *more)
{
	log_len = 0;
	add(MARK "facts {}\nwantedDevice=\nhostArch=x86_64\nwsl=no\n" MARK "end {}\n");
	if (more[0] != '\0')
		add(MARK "facts {}\n%s" MARK "end {}\n", more);
}

static __attribute__((unused)) void
ran(const char *argv, const char *body, int exit, int signal, bool timed_out)
{
	size_t n = strlen(body);

	add(MARK "run {\"argv\":[%s]}\n%s%s", argv, body, n > 0 && body[n - 1] == '\n' ? "" : "\n");
	add(MARK "end {\"exit\":%d,\"signal\":%d,\"ms\":7,\"timedOut\":%s,\"bytes\":%zu,\"dropped\":0}\n",
		exit, signal, timed_out ? "true" : "false", n);
}

static __attribute__((unused)) void
probe(const char *argv, const char *name, const char *devices)
{
	static char text[LOG_BYTES / 2];

	snprintf(text, sizeof text, "{\"probe\":\"%s\",\"schema\":1,\"simulated\":false,\"error\":null,"
		"\"devices\":[%s],\"notes\":[]}\n", name, devices);
	ran(argv, text, 0, 0, false);
}

static __attribute__((unused)) void
probe_failed(const char *argv, const char *name, int code, const char *reason)
{
	char text[512];

	snprintf(text, sizeof text, "{\"probe\":\"%s\",\"schema\":1,\"error\":{\"code\":%d,\"name\":\"E\","
		"\"call\":\"init\",\"reason\":\"%s\"},\"devices\":[],\"notes\":[]}\n", name, code, reason);
	ran(argv, text, 3, 0, false);
}

static struct judgement j;

static __attribute__((unused)) enum reason
judged(const char *lane)
{
	struct judge_ask ask = {.lane = lane_find(lane)};
	char *copy = malloc(log_len + 1);

	assert_non_null(ask.lane);
	assert_non_null(copy);
	memcpy(copy, log_text, log_len);
	judge_gate(GATE_DEVICE, copy, log_len, &ask, &j);
	free(copy);
	return j.reason;
}

static __attribute__((unused)) void
expect_(enum reason wanted, const char *lane, int line)
{
	enum reason got = judged(lane);

	if (got != wanted)
		fail_msg("line %d: %s, not %s: %s", line, reason_name(got), reason_name(wanted), j.detail);
}
#define expect(wanted, lane) expect_(REASON_##wanted, lane, __LINE__)

static struct device_facts d;

static __attribute__((unused)) void
read_as(const char *lane, const char *target)
{
	assert_true(device_facts_read(log_text, log_len, lane_find(lane), target_find(target), &d));
}

#endif
