/*
 * phone - what an Android phone behind adb says of itself, and the evidence that others
 * made on it.
 *
 * adb's own exit code is worth nothing on old phones, so every command on the phone ends
 * with `; echo __VERIFY_EXIT_<random>__ $?`; a log without that line was cut off.
 * An emulator is refused by any one of several signs: virtual devices with a passed-through
 * CPU set none of the two usual properties.
 * Pure functions over the bytes of a gate's log: no state, any thread, any input.
 */
#ifndef COMMON_PHONE_H
#define COMMON_PHONE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/judge.h"
#include "common/transcript.h"

#define PHONE_MARK "__VERIFY_EXIT_"
#define PHONE_MARK_DIGITS 16
#define PHONE_MAX 16           /* phones that are looked at */
#define PHONE_EVIDENCE_DAYS 7  /* older evidence speaks of another day's phone */

struct phone_facts {
	char serial[64], manufacturer[64], model[96], platform[64], hardware[64], abi[48];
	char android[24], fingerprint[192], boot_id[40];
	char gpu[128], driver_id[64], driver[96]; /* of vkjson; "" it could not be asked */
	char vulkan[48];        /* ro.hardware.vulkan or egl: "adreno" */
	char emulator[160];     /* the sign that it is one, "" none */
	char software[160];     /* the sign that its Vulkan is software, "" none */
	bool gpu_known;
	bool simulated;         /* a stand-in says that it is none (ro.verify.simulated) */
};

/* The last command of an argv on the phone: its text without the marker's echo.  False
 * when the section is no such run. */
bool phone_command(const struct section *s, char *serial, size_t serial_size, char *command,
	size_t size);
/* Output of a run on the phone and its exit code; false: the marker's line is not there. */
bool phone_output(const struct section *s, const char **out, size_t *len, int *exit);

/* The answer of a stand-in for a phone, which says so of itself. */
bool phone_simulated(const struct section *s);

/* The i-th command that every phone is asked; NULL past the end. */
const char *phone_question(size_t i);
/* Fills *out from the runs of a device gate's log that were made with that serial. */
bool phone_facts_read(const char *log, size_t len, const char *serial,
	struct phone_facts *out);
/* Which phone to use: the wanted one, the only one, or the only one that is no emulator.
 * REASON_NONE with serial, else why not, in words. */
enum reason phone_choose(const char *log, size_t len, const char *wanted, char *serial,
	size_t size, struct err *e);
bool phone_device_facts(const char *log, size_t len, const struct target *t,
	struct device_facts *out);

/* What graph evidence must say, strictly. */
struct phone_evidence {
	const char *serial, *commit; /* it must be bound to these; NULL: unknown */
	int64_t now_ms;
	double tolerance;
};
void phone_evidence_judge(const char *text, size_t len, const struct phone_evidence *ask,
	struct judgement *out);

/* Judges of the lane's gates; as judge_fn. */
void judge_phone_device(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_phone_toolchain(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_phone_fixtures(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);
void judge_phone_evidence(const char *log, size_t len, const struct judge_ask *ask,
	struct judgement *out);

#endif
