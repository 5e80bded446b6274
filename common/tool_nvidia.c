/* What nvidia-smi and nvcc print. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/tool_impl.h"

/* Words of nvidia-smi and NVML instead of facts; the more special ones first. */
static const struct tool_refusal refusals[] = {
	{"Driver/library version mismatch", REASON_DRIVER_MISMATCH, ""},
	{"Insufficient Permissions", REASON_NO_PERMISSION, "let the agent's user open /dev/nvidia*"},
	{"couldn't communicate with the NVIDIA driver", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"could not communicate with the NVIDIA driver", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"Driver Not Loaded", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"couldn't find libnvidia-ml", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"libnvidia-ml.so", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"NVML Shared Library Not Found", REASON_DRIVER_MISSING_ON_HOST, ""},
	{"GPU is lost", REASON_DEVICE_FAULT, "reboot the host; if it comes back, the card or its slot is bad"},
	{"has fallen off the bus", REASON_DEVICE_FAULT, ""},
	{"GPU requires reset", REASON_DEVICE_FAULT, "nvidia-smi --gpu-reset, or reboot"},
	{"requires a reset", REASON_DEVICE_FAULT, "nvidia-smi --gpu-reset, or reboot"},
	{"Failed to initialize NVML: Unknown Error", REASON_NO_PERMISSION,
		"device access was lost, as after a daemon-reload inside a container: start the container anew"},
	{"Unable to determine the device handle", REASON_DEVICE_FAULT, ""},
	{"Unable to detect the device handle", REASON_DEVICE_FAULT, ""},
	{"GPU access blocked by the operating system", REASON_NO_PERMISSION,
		"under WSL: update the driver and the kernel of WSL"},
	{"Failed to initialize NVML", REASON_PROBE_UNREADABLE, ""},
	{"No devices were found", REASON_NO_DEVICE, ""},
	{"No devices found", REASON_NO_DEVICE, ""},
	{"command not found", REASON_TOOL_MISSING, "install the driver's tools"},
	{"is not recognized as an internal or external command", REASON_TOOL_MISSING, ""},
	{"No such file or directory", REASON_TOOL_MISSING, ""},
};

/* Text up to the last " (UUID: " in parentheses: the name may hold parentheses of its own. */
static bool
uuid_split(char *line, char **name, char *uuid, size_t size)
{
	static const char mark[] = "(UUID:";
	char *at = NULL, *p, *end;

	for (p = strstr(line, mark); p != NULL; p = strstr(p + 1, mark))
		at = p;
	if (at == NULL || (end = strchr(at, ')')) == NULL)
		return false;
	*end = '\0';
	str_show(uuid, size, tool_trim(at + sizeof mark - 1), strlen(tool_trim(at + sizeof mark - 1)));
	*at = '\0';
	*name = tool_trim(line);
	return true;
}

/* 36 of "0000d200-1111-2222-3333-44444444d200": what is cut is no id. */
static bool
is_digits_of_uuid(const char *s)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	for (i = 0; form[i] != '\0'; i++)
		if (form[i] == '-' ? s[i] != '-' : !isxdigit((unsigned char)s[i]))
			return false;
	return true;
}

/* "GPU-" and digits; on Jetson the digits alone; of slices "MIG-" and digits, or, before
 * R470, "MIG-GPU-", the digits of the card, and the numbers of both instances. */
static bool
is_uuid(const char *s, const char *prefix)
{
	unsigned a, b;
	int used = 0;
	bool slice = strcmp(prefix, "MIG-") == 0;

	if (str_starts(s, prefix))
		s += strlen(prefix);
	else if (slice)
		return false;
	if (slice && str_starts(s, "GPU-") && is_digits_of_uuid(s + 4))
		return sscanf(s + 40, "/%2u/%2u%n", &a, &b, &used) == 2 && s[40 + used] == '\0';
	return is_digits_of_uuid(s) && s[36] == '\0';
}

/* "GPU 0: NAME (UUID: GPU-...)" or "  MIG 1g.18gb     Device  0: (UUID: MIG-...)" */
static bool
list_line(char *line, struct tool_answer *out, int *card)
{
	struct tool_device *d;
	char uuid[64], profile[32];
	char *p = tool_trim(line), *name;
	unsigned index;
	int used = 0;

	if (sscanf(p, "GPU %u:%n", &index, &used) == 1 && used > 0) {
		if (!uuid_split(p + used, &name, uuid, sizeof uuid) || !is_uuid(uuid, "GPU-") ||
		    name[0] == '\0')
			return false;
		if ((d = tool_device_add(out)) == NULL)
			return true;
		*card = out->count - 1;
		d->index = (int)(index < 100000 ? index : 100000);
		str_show(d->name, sizeof d->name, name, strlen(name));
		snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
		d->type = TYPE_DISCRETE;
		d->vgpu = tool_is_vgpu_name(d->name);
		return true;
	}
	if (sscanf(p, "MIG %31s Device %u:%n", profile, &index, &used) != 2 || used == 0)
		return false;
	if (!uuid_split(p + used, &name, uuid, sizeof uuid) || !is_uuid(uuid, "MIG-") || *card < 0)
		return false;
	if ((d = tool_device_add(out)) == NULL)
		return true;
	d->index = (int)(index < 100000 ? index : 100000);
	d->parent = *card;
	snprintf(d->mig, sizeof d->mig, "%s", profile);
	snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
	memcpy(d->name, out->device[*card].name, sizeof d->name);
	d->type = TYPE_DISCRETE;
	snprintf(out->device[*card].mig_mode, sizeof out->device[0].mig_mode, "enabled");
	return true;
}

/* A doubled line makes two cards of one; no two have the same id. */
static bool
has_twins(struct tool_answer *out)
{
	int i, k;

	for (i = 0; i < out->count; i++)
		for (k = 0; k < i; k++)
			if (out->device[i].uuid[0] != '\0' &&
			    strcmp(out->device[i].uuid, out->device[k].uuid) == 0) {
				tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "two devices have the id %s: a line stands there twice",
					out->device[i].uuid);
				return true;
			}
	return false;
}

void
tool_read_smi_list(const char *text, size_t len, int exit, struct tool_answer *out)
{
	char line[1024], shown[200];
	size_t pos = 0;
	int card = -1, strange = 0;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		memcpy(shown, line, sizeof shown - 1);
		shown[sizeof shown - 1] = '\0';
		if (list_line(line, out, &card))
			continue;
		if (str_starts(tool_trim(shown), "GPU ") || str_starts(tool_trim(shown), "MIG "))
			strange++;
		if (tool_trim(shown)[0] != '\0')
			tool_note(out, "%s", tool_trim(shown));
	}
	if (out->count == 0) {
		if (!tool_refused(refusals, str_count(refusals), text, out))
			tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, exit > 0
				? "nvidia-smi -L ended with exit %d and no line that is known"
				: "nvidia-smi -L printed no line that is known", exit);
	} else if (strange > 0) {
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "%d lines of nvidia-smi -L are cut or strange: %s",
			strange, out->note[0]);
	} else {
		(void)has_twins(out);
	}
}

/* ---- --query-gpu ---- */

#define MAX_COLUMNS 64

/* Splits a CSV line; quoted fields may hold commas.  The line is changed. */
static int
csv_split(char *line, char *cells[MAX_COLUMNS])
{
	char *p = line, *to;
	int n = 0;

	while (n < MAX_COLUMNS) {
		while (*p == ' ' || *p == '\t')
			p++;
		if (*p == '"') {
			cells[n++] = to = ++p;
			while (*p != '\0' && !(*p == '"' && p[1] != '"')) {
				p += *p == '"';
				*to++ = *p++;
			}
			p += *p == '"';
			p += strcspn(p, ",");
			if (*p == '\0') {
				*to = '\0';
				return n;
			}
			*to = '\0';
			p++;
			continue;
		}
		cells[n++] = p;
		p += strcspn(p, ",");
		if (*p == '\0')
			break;
		*p++ = '\0';
	}
	for (int i = 0; i < n; i++)
		cells[i] = tool_trim(cells[i]);
	return n;
}

enum column {
	COLUMN_OTHER, COLUMN_INDEX, COLUMN_NAME, COLUMN_UUID, COLUMN_PCI, COLUMN_DRIVER, COLUMN_CAP,
	COLUMN_MEMORY, COLUMN_USED, COLUMN_UTIL, COLUMN_MIG, COLUMN_ECC, COLUMN_ECC_EVER, COLUMN_COMPUTE_MODE
};
static const struct {
	const char *name;
	enum column column;
} columns[] = {
	{"index", COLUMN_INDEX}, {"name", COLUMN_NAME}, {"gpu_name", COLUMN_NAME},
	{"uuid", COLUMN_UUID}, {"gpu_uuid", COLUMN_UUID}, {"pci.bus_id", COLUMN_PCI},
	{"gpu_bus_id", COLUMN_PCI}, {"driver_version", COLUMN_DRIVER}, {"compute_cap", COLUMN_CAP},
	{"memory.total", COLUMN_MEMORY}, {"memory.used", COLUMN_USED},
	{"utilization.gpu", COLUMN_UTIL}, {"mig.mode.current", COLUMN_MIG},
	{"compute_mode", COLUMN_COMPUTE_MODE}, {"ecc.errors.uncorrected.volatile.total", COLUMN_ECC},
	{"ecc.errors.uncorrected.aggregate.total", COLUMN_ECC_EVER},
	/* known, and of no use here; they tell a header from a row */
	{"vbios_version", COLUMN_OTHER}, {"ecc.mode.current", COLUMN_OTHER},
	{"temperature.gpu", COLUMN_OTHER}, {"power.draw", COLUMN_OTHER}, {"pstate", COLUMN_OTHER},
	{"timestamp", COLUMN_OTHER}, {"count", COLUMN_OTHER}, {"memory.free", COLUMN_OTHER},
	{"utilization.memory", COLUMN_OTHER}, {"serial", COLUMN_OTHER},
	{"persistence_mode", COLUMN_OTHER},
};

/* "memory.total [MiB]" */
static bool
column_find(const char *cell, enum column *out)
{
	size_t n = strcspn(cell, " ["), i;

	*out = COLUMN_OTHER;
	/* behind the word only a unit */
	if (cell[n] != '\0' && (strncmp(cell + n, " [", 2) != 0 || cell[strlen(cell) - 1] != ']'))
		return false;
	for (i = 0; i < str_count(columns); i++)
		if (strlen(columns[i].name) == n && strncasecmp(cell, columns[i].name, n) == 0) {
			*out = columns[i].column;
			return true;
		}
	/* words with dots and underscores and without digits in front are a header's */
	return isalpha((unsigned char)cell[0]) && strchr(cell, '.') != NULL &&
		strspn(cell, "abcdefghijklmnopqrstuvwxyz._") == n;
}

static bool
header_read(char *const *cells, int n, enum column *out)
{
	int i, known = 0, words = 0;
	size_t length;

	for (i = 0; i < n; i++) {
		known += column_find(cells[i], &out[i]);
		length = strspn(cells[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._");
		words += isalpha((unsigned char)cells[i][0]) && (cells[i][length] == '\0' ||
				strncmp(cells[i] + length, " [", 2) == 0);
	}
	/* a driver may know columns that are new to us */
	return n > 0 && (known == n || (n > 1 && known > 0 && words == n));
}

/* "9.0" */
static bool
is_capability(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n >= 1 && n <= 2 && s[n] == '.' && isdigit((unsigned char)s[n + 1]) &&
		s[n + 2] == '\0';
}

/* "550.54.15": three figures or more in front. */
static bool
is_driver(const char *s)
{
	return isdigit((unsigned char)s[0]) && isdigit((unsigned char)s[1]) &&
		isdigit((unsigned char)s[2]) && s[3] == '.' && strspn(s, "0123456789.") == strlen(s);
}

static bool
is_compute_mode(const char *s)
{
	return strcmp(s, "Default") == 0 || strcmp(s, "Exclusive_Process") == 0 ||
		strcmp(s, "Exclusive_Thread") == 0 || strcmp(s, "Prohibited") == 0;
}

/* Without a header the shape of a cell tells what it is, as far as one can. */
static void
shapes_read(char *const *cells, int n, enum column *out)
{
	char pci[32];
	bool seen[COLUMN_COMPUTE_MODE + 1] = {false};
	int i;

	for (i = 0; i < n; i++) {
		out[i] = COLUMN_OTHER;
		if (is_uuid(cells[i], "GPU-"))
			out[i] = COLUMN_UUID;
		else if (tool_pci(cells[i], pci))
			out[i] = COLUMN_PCI;
		else if (is_capability(cells[i]))
			out[i] = COLUMN_CAP;
		else if (is_driver(cells[i]))
			out[i] = COLUMN_DRIVER;
		else if (i == 0 && strspn(cells[i], "0123456789") == strlen(cells[i]) && strlen(cells[i]) < 4)
			out[i] = COLUMN_INDEX;
		else if (strcasecmp(cells[i], "Enabled") == 0 || strcasecmp(cells[i], "Disabled") == 0)
			out[i] = COLUMN_OTHER; /* of MIG, ECC, persistence or the display: nobody knows */
		else if (isdigit((unsigned char)cells[i][0]) && (strstr(cells[i], "MiB") != NULL ||
				(strlen(cells[i]) >= 4 && strspn(cells[i], "0123456789") == strlen(cells[i]))))
			out[i] = COLUMN_MEMORY;
		else if (is_compute_mode(cells[i]))
			out[i] = COLUMN_COMPUTE_MODE;
		else if (isalpha((unsigned char)cells[i][0]) && strlen(cells[i]) > 3 &&
			 strcmp(cells[i], "Active") != 0 && strcmp(cells[i], "Not Active") != 0)
			out[i] = COLUMN_NAME; /* and no "P0" */
		/* only the first of a kind is what it seems: total memory stands before used */
		if (out[i] != COLUMN_OTHER && seen[out[i]])
			out[i] = COLUMN_OTHER;
		seen[out[i]] = true;
	}
}

/* "143771 MiB", "98 %", "[N/A]": -1 when it is no number. */
static int64_t
amount(const char *cell)
{
	uint64_t v;

	return str_leading_u64(cell, (uint64_t)1 << 50, &v) ? (int64_t)v : -1;
}

static void
cell_read(enum column c, const char *cell, struct tool_device *d)
{
	const struct {
		enum column column;
		char *to;
		size_t size;
	} texts[] = {
		{COLUMN_NAME, d->name, sizeof d->name}, {COLUMN_UUID, d->uuid, sizeof d->uuid},
		{COLUMN_DRIVER, d->driver, sizeof d->driver}, {COLUMN_CAP, d->arch, sizeof d->arch},
		{COLUMN_COMPUTE_MODE, d->compute_mode, sizeof d->compute_mode},
	};
	size_t i;

	/* what is not known stands in brackets: "[N/A]", "[Not Supported]" */
	if (strcasestr(cell, "requires") != NULL || strcasestr(cell, "reset") != NULL)
		snprintf(d->state, sizeof d->state, "requires_reset");
	else if (strcasestr(cell, "is lost") != NULL)
		snprintf(d->state, sizeof d->state, "lost");
	if (cell[0] == '[')
		return;
	for (i = 0; i < str_count(texts); i++)
		if (texts[i].column == c)
			str_show(texts[i].to, texts[i].size, cell, strlen(cell));
	if (c == COLUMN_COMPUTE_MODE && !is_compute_mode(cell))
		d->compute_mode[0] = '\0';
	if (c == COLUMN_CAP && !is_capability(cell))
		d->arch[0] = '\0';
	if (c == COLUMN_UUID && !is_uuid(cell, "GPU-") && !is_uuid(cell, "MIG-"))
		d->uuid[0] = '\0';
	if (c == COLUMN_PCI && !tool_pci(cell, d->pci))
		d->pci[0] = '\0';
	if (c == COLUMN_INDEX)
		d->index = (int)amount(cell);
	if (c == COLUMN_MEMORY)
		d->memory_mib = amount(cell);
	if (c == COLUMN_USED)
		d->used_mib = amount(cell);
	if (c == COLUMN_UTIL)
		d->utilization = amount(cell);
	if (c == COLUMN_ECC)
		d->ecc = amount(cell);
	if (c == COLUMN_ECC_EVER)
		d->ecc_ever = amount(cell);
	if (c == COLUMN_MIG && (strcasecmp(cell, "Enabled") == 0 || strcasecmp(cell, "Disabled") == 0))
		snprintf(d->mig_mode, sizeof d->mig_mode, "%s", tolower((unsigned char)cell[0]) == 'e'
			? "enabled" : "disabled");
}

/* A card's name, and no sentence. */
static bool
is_card_name(const char *cell)
{
	static const char *const makes[] = {"NVIDIA ", "GeForce ", "Tesla ", "Quadro ", "GRID ", "TITAN ",
		"RTX ", "Orin ", "Graphics Device"};
	size_t i;

	if (strstr(cell, ": ") != NULL || strcasestr(cell, "driver") != NULL)
		return false;
	for (i = 0; i < str_count(makes); i++)
		if (str_starts(cell, makes[i]))
			return true;
	/* "A100-SXM4-40GB": drivers before R510 left the maker out */
	return isupper((unsigned char)cell[0]) && isdigit((unsigned char)cell[1]) && strchr(cell, ' ') == NULL;
}

/* The only cell of a row might as well be a sentence: it must look like what it is. */
static bool
single_fits(enum column c, const char *cell)
{
	char pci[32];

	if (cell[0] == '[')
		return cell[strlen(cell) - 1] == ']';
	if (c == COLUMN_NAME)
		return is_card_name(cell);
	return c == COLUMN_UUID ? is_uuid(cell, "GPU-") : c == COLUMN_PCI ? tool_pci(cell, pci)
		: c == COLUMN_CAP ? is_capability(cell) : c == COLUMN_DRIVER ? is_driver(cell)
		: c == COLUMN_MIG || c == COLUMN_COMPUTE_MODE ? strpbrk(cell, " :") == NULL
		: isdigit((unsigned char)cell[0]) != 0;
}

/* A warning between the rows, which says nothing against them: "WARNING: infoROM is corrupted". */
static bool
is_chat(const char *line)
{
	size_t i;

	for (i = 0; i < str_count(refusals); i++)
		if (strcasestr(line, refusals[i].word) != NULL)
			return false;
	return strchr(line, ',') == NULL && isalpha((unsigned char)line[0]) && strstr(line, ": ") != NULL;
}

static bool
row_read(char *const *cells, int n, const enum column *what, int width, struct tool_answer *out)
{
	struct tool_device *d;
	int i;

	if (n == 1 && width == 1 && !single_fits(what[0], cells[0]))
		return false;
	if (n != width || (d = tool_device_add(out)) == NULL)
		return n == width;
	d->type = TYPE_DISCRETE;
	for (i = 0; i < n; i++)
		cell_read(what[i], cells[i], d);
	d->vgpu = tool_is_vgpu_name(d->name);
	return true;
}

static bool
nothing_known(const struct tool_answer *out)
{
	const struct tool_device *d = out->device, *end = out->device + out->count;

	for (; d < end; d++)
		if (d->state[0] || d->name[0] || d->uuid[0] || d->pci[0] || d->arch[0] || d->driver[0] ||
		    d->mig_mode[0] || d->compute_mode[0] || d->index >= 0 || d->memory_mib >= 0 ||
		    d->used_mib >= 0 || d->utilization >= 0)
			return false;
	return true;
}

/* What the rows say that is more than facts. */
static void
rows_judge(struct tool_answer *out)
{
	const struct tool_device *d;
	int i, bad = 0, busy = 0;

	for (i = 0; i < out->count; i++) {
		d = &out->device[i];
		bad += d->state[0] != '\0';
		busy += strcasecmp(d->compute_mode, "Exclusive_Process") == 0 &&
			(d->used_mib > 1024 || d->utilization > 50);
		if (strcasecmp(d->compute_mode, "Prohibited") == 0)
			tool_note(out, "device %d is in compute mode Prohibited", d->index);
	}
	d = &out->device[0];
	if (nothing_known(out))
		tool_say(out, REASON_PROBE_UNREADABLE, "nvidia-smi knows nothing about the device");
	else if (bad == out->count)
		tool_say(out, REASON_DEVICE_FAULT, "%s%s%s is %s", d->name[0] ? d->name : "the device",
			d->pci[0] ? " at " : "", d->pci, strcmp(d->state, "lost") == 0 ? "lost"
			: "waiting for a reset");
	else if (busy == out->count)
		tool_say(out, REASON_DEVICE_BUSY, "%lld MiB are in use, %lld %% busy, compute mode %s",
			(long long)d->used_mib, (long long)d->utilization, d->compute_mode);
}

/* A row without any of these is a sentence with commas.  A name alone, or beside a number,
 * is a row as well. */
static bool
is_row(char *const *cells, const enum column *what, int n)
{
	bool name = false, number = n == 1;
	int i;

	for (i = 0; i < n; i++)
		if (what[i] == COLUMN_UUID || what[i] == COLUMN_PCI || what[i] == COLUMN_DRIVER ||
		    what[i] == COLUMN_CAP)
			return true;
	for (i = 0; i < n; i++) {
		name |= what[i] == COLUMN_NAME && is_card_name(cells[i]);
		number |= what[i] == COLUMN_MEMORY || what[i] == COLUMN_INDEX;
	}
	return name && number;
}

void
tool_read_smi_query(const char *text, size_t len, int exit, struct tool_answer *out)
{
	static const struct tool_refusal field[] = {
		{"is not a valid field to query", REASON_UNKNOWN_TOOL_FORMAT,
			"the driver is older than the field; ask CUDA itself"},
	};
	enum column what[MAX_COLUMNS];
	char line[2048], copy[2048], *cells[MAX_COLUMNS];
	size_t pos = 0;
	int n, width = 0, strange = 0;

	while (tool_line(text, len, &pos, line, sizeof line)) {
		memcpy(copy, line, sizeof copy);
		if (tool_trim(copy)[0] == '\0')
			continue;
		n = csv_split(line, cells);
		if (width == 0 && n >= 1) {
			if (header_read(cells, n, what)) {
				width = n;
				continue;
			}
			shapes_read(cells, n, what);
			if (!is_row(cells, what, n)) {
				tool_note(out, "%s", tool_trim(copy));
				continue;
			}
			width = n;
		}
		if (width == 0 || !row_read(cells, n, what, width, out)) {
			strange += width > 0 && !is_chat(tool_trim(copy));
			tool_note(out, "%s", tool_trim(copy));
		}
	}
	if (out->count > 0 && exit > 0 && tool_refused(refusals, str_count(refusals), text, out))
		tool_note(out, "exit %d", exit);
	if (out->count == 0) {
		if (!tool_refused(field, 1, text, out) &&
		    !tool_refused(refusals, str_count(refusals), text, out))
			tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "nvidia-smi printed no row that is known");
	} else if (strange > 0 && out->reason == REASON_NONE &&
		   !tool_refused(refusals, str_count(refusals), text, out)) {
		tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "a row has another number of columns: %s",
			out->note[0]);
	} else if (!has_twins(out)) {
		rows_judge(out);
	}
}

/* ---- nvcc --version ---- */

void
tool_read_nvcc(const char *text, size_t len, int exit, struct tool_answer *out)
{
	static const struct tool_refusal missing[] = {
		{"command not found", REASON_TOOL_MISSING, "add the toolkit's bin folder to PATH"},
		{"not found", REASON_TOOL_MISSING, "add the toolkit's bin folder to PATH"},
		{"is not recognized", REASON_TOOL_MISSING, "add the toolkit's bin folder to PATH"},
		{"No such file or directory", REASON_TOOL_MISSING, ""},
	};
	const char *at = strstr(text, "Cuda compilation tools, release "), *p;
	size_t n;

	(void)len;
	if (at != NULL && strstr(text, "nvcc: NVIDIA") != NULL) {
		at += strlen("Cuda compilation tools, release ");
		n = strspn(at, "0123456789.");
		/* the full version follows the comma: "release 12.4, V12.4.131" */
		if (n > 0 && n < 16 && at[n] == ',' && (p = strstr(at, ", V")) != NULL && p == at + n) {
			p += 3;
			n = strspn(p, "0123456789.");
			if (n > 0 && n < sizeof out->version && strchr(at, '\n') != NULL) {
				memcpy(out->version, p, n);
				out->version[n] = '\0';
				if (exit > 0)
					tool_say(out, REASON_TOOL_BROKEN, "nvcc --version ended with exit %d", exit);
				return;
			}
			/* before 11 this line is the last; without its end the release alone is sure */
			n = strspn(at, "0123456789.");
			if (strchr(at, '\n') == NULL && strtoul(at, NULL, 10) <= 10 && strspn(p, "0123456789.") == strlen(p)) {
				snprintf(out->version, sizeof out->version, "%.*s", (int)n, at);
				return;
			}
		}
	}
	if (!tool_refused(missing, str_count(missing), text, out)) {
		if (exit == 127 || exit == 9009)
			tool_say(out, REASON_TOOL_MISSING, "nvcc is not there (exit %d)", exit);
		else
			tool_say(out, REASON_UNKNOWN_TOOL_FORMAT, "nvcc --version names no release");
	}
}
