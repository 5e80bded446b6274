/* What record asks: tools, our probes, the KFD topology, and how this host is called. */
#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netpacket/packet.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/machine.h"
#include "agent/record_impl.h"
#include "common/agree.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/proc.h"

#define FLOOD_KEPT 4096

/* ---- one child ---- */

/* Output in the order in which it came, whole lines of either stream. */
struct heard {
	struct buf all, part[2];
	uint64_t by[2];
	int failed;
};

static int
heard_chunk(void *arg, int stream, const char *p, size_t n)
{
	struct heard *h = arg;
	struct buf *b = &h->part[stream == 2];
	size_t k;

	h->by[stream == 2] += n;
	/* a flood: what would come is of no use */
	if (h->by[0] + h->by[1] > TOOL_MAX_BYTES)
		return 1;
	h->failed |= buf_add(b, p, n, NULL);
	for (k = b->len; k > 0 && b->data[k - 1] != '\n'; k--)
		;
	if (k > 0 && !h->failed) {
		h->failed |= buf_add(&h->all, b->data, k, NULL);
		memmove(b->data, b->data + k, b->len - k + 1);
		b->len -= k;
	}
	return h->failed;
}

static void
heard_init(struct heard *h)
{
	memset(h, 0, sizeof *h);
	buf_init(&h->all, TOOL_MAX_BYTES + 1);
	buf_init(&h->part[0], TOOL_MAX_BYTES + 1);
	buf_init(&h->part[1], TOOL_MAX_BYTES + 1);
}

static void
heard_fini(struct heard *h)
{
	buf_fini(&h->all);
	buf_fini(&h->part[0]);
	buf_fini(&h->part[1]);
}

static bool
is_flood(const struct heard *h)
{
	return h->by[0] + h->by[1] > TOOL_MAX_BYTES;
}

static int
child_run(const struct record *r, const char *const *argv, uint32_t timeout_ms, struct heard *h,
	struct proc_result *result, struct err *e)
{
	const struct proc_spec spec = {.argv = argv, .timeout_ms = r->timeout_ms ? r->timeout_ms : timeout_ms,
		.chunk = heard_chunk, .tick = r->tick, .arg = h};
	int i;

	heard_init(h);
	if (proc_run(&spec, result, e))
		return -1;
	if (result->cancelled)
		return err_set(e, ERR_CANCELLED, "stopped by a signal; nothing was written");
	for (i = 0; i < 2; i++)
		if (h->part[i].len > 0)
			h->failed |= buf_add(&h->all, h->part[i].data, h->part[i].len, e);
	if (h->failed)
		return err_set(e, ERR_NOMEM, "no memory for the output of %s", argv[0]);
	return buf_add(&h->all, "", 0, e);
}

/* "exit 0", or how it failed to end: as people read it, and as tools.tsv has it. */
static void
ending(const struct heard *h, const struct proc_result *p, char *say, size_t size, char code[16])
{
	if (is_flood(h)) {
		snprintf(say, size, "floods: more than %u MiB", TOOL_MAX_BYTES >> 20);
		snprintf(code, 16, "flood");
	} else {
		proc_describe(p, say, size);
		if (p->timed_out)
			snprintf(code, 16, "hang");
		else if (p->signal != 0)
			snprintf(code, 16, "sig%d", p->signal);
		else
			snprintf(code, 16, "%d", p->exit);
	}
}

/* Without the padding of UTF-16, in which no id would be seen. */
static int
text_take(struct heard *h, char **text, size_t *len, struct err *e)
{
	if (is_flood(h) && h->all.len > FLOOD_KEPT) {
		h->all.len = FLOOD_KEPT;
		while (h->all.len > 1 && h->all.data[h->all.len - 1] != '\n')
			h->all.len--;
		h->all.data[h->all.len] = '\0';
	}
	*len = h->all.len;
	*text = tool_is_utf16(h->all.data, *len) ? tool_utf8(h->all.data, *len, len) : buf_take(&h->all);
	return *text != NULL ? 0 : err_set(e, ERR_NOMEM, "no memory");
}

/* ---- tools ---- */

/* Tools that no probe of a lane is, but its toolchain or its phone. */
static const struct agree_row others[] = {
	{"nvcc --version", API_CUDA, {"nvcc", "--version"}, TOOL_NVCC, false, 20000},
	{"hipcc --version", API_HIP, {"hipcc", "--version"}, TOOL_KIND_COUNT, false, 20000},
	{"adb devices -l", API_VULKAN, {"adb", "devices", "-l"}, TOOL_ADB_DEVICES, false, 20000},
};

/* "nvidia-smi-query-gpu": the tool and its first argument; and the arguments as tools.tsv
 * has them, of a list of fields its beginning. */
static void
row_names(const struct agree_row *row, char file[64], char args[96])
{
	const char *word = row->argv[1] != NULL ? row->argv[1] : "";
	size_t used = 0;
	int i;

	word += strspn(word, "-");
	snprintf(file, 64, "%s%s%.*s.txt", row->argv[0], word[0] ? "-" : "", (int)strcspn(word, "="), word);
	snprintf(args, 96, "-");
	for (i = 1; i < 6 && row->argv[i] != NULL; i++) {
		used += (size_t)snprintf(args + used, 96 - used, "%s%.40s", i > 1 ? " " : "", row->argv[i]);
		if (strchr(row->argv[i], '=') != NULL) {
			snprintf(args, 96, "%.*s=*", (int)strcspn(row->argv[i], "="), row->argv[i]);
			break;
		}
	}
}

static int
absent_add(struct record *r, const char *name, const char *why)
{
	cJSON *word = cJSON_CreateString(name);

	record_say(name, "absent%s%s", why[0] ? ": " : "", why);
	if (word != NULL && cJSON_AddItemToArray(r->absent, word))
		return 0;
	cJSON_Delete(word);
	return -1;
}

static int
tool_keep(struct record *r, const struct agree_row *row, struct heard *h, const struct proc_result *p,
	struct err *e)
{
	char file[64], args[96], say[64], code[16], *text;
	const char *stream = h->by[0] == 0 && h->by[1] > 0 ? "stderr" : "stdout";
	size_t len;
	bool whole = !is_flood(h) && !p->timed_out && p->signal == 0;

	ending(h, p, say, sizeof say, code);
	row_names(row, file, args);
	record_say(row->name, "%s, %s, %llu bytes", file, say, (unsigned long long)(h->by[0] + h->by[1]));
	return text_take(h, &text, &len, e) ||
		record_add(r, text, len, whole && row->kind < TOOL_KIND_COUNT ? (int)row->kind : -1, p->exit, e,
			"%s", file) ||
		buf_addf(&r->tools, e, "%s\t%s\t%s\t%s\t%s\n", row->argv[0], args, file, code, stream) ? -1 : 0;
}

static int
tool_ask(struct record *r, const struct agree_row *row, struct err *e)
{
	char path[4096];
	const char *argv[8] = {path};
	struct proc_result p;
	struct heard h;
	struct err missing = {0};
	int i, rc;

	for (i = 1; i < 6 && row->argv[i] != NULL; i++)
		argv[i] = row->argv[i];
	if (plat_find_tool(row->argv[0], path, sizeof path, &missing))
		return absent_add(r, row->name, "") ? err_set(e, ERR_NOMEM, "no memory") : 0;
	rc = child_run(r, argv, row->timeout_ms, &h, &p, e);
	if (rc == 0 && p.exit == 127) /* a name in front of nothing */
		rc = absent_add(r, row->name, "exit 127") ? err_set(e, ERR_NOMEM, "no memory") : 0;
	else if (rc == 0)
		rc = tool_keep(r, row, &h, &p, e);
	heard_fini(&h);
	return rc;
}

int
record_tools(struct record *r, struct err *e)
{
	size_t i;

	for (i = 0; i < agree_row_count; i++)
		if (strcmp(agree_rows[i].argv[0], AGREE_SELF) != 0 && tool_ask(r, &agree_rows[i], e))
			return -1;
	for (i = 0; i < str_count(others); i++)
		if (tool_ask(r, &others[i], e))
			return -1;
	return 0;
}

/* ---- probes ---- */

static void
member_set(cJSON *o, const char *key, cJSON *v)
{
	if (v == NULL)
		return;
	cJSON_DeleteItemFromObjectCaseSensitive(o, key);
	if (!cJSON_AddItemToObject(o, key, v))
		cJSON_Delete(v);
}

/* What is true of this run of the probe and not of the machine. */
static void
run_forget(cJSON *o)
{
	cJSON *note, *next, *notes = cJSON_GetObjectItemCaseSensitive(o, "notes");

	member_set(o, "simulated", cJSON_CreateFalse());
	member_set(o, "library", cJSON_CreateNull());
	member_set(o, "bootId", cJSON_CreateString(""));
	for (note = notes != NULL ? notes->child : NULL; note != NULL; note = next) {
		next = note->next;
		if (cJSON_GetStringValue(note) != NULL && str_starts(note->valuestring, "played from the recording "))
			cJSON_Delete(cJSON_DetachItemViaPointer(notes, note));
	}
}

/* The answer of a driver that gave none. */
static cJSON *
faulty(const char *name, const char *fault, const char *say)
{
	cJSON *o = cJSON_CreateObject(), *notes = NULL;

	if (o != NULL && json_add_str(o, "probe", name) && json_add_int(o, "schema", 1) &&
	    json_add_bool(o, "simulated", false) && json_add_null(o, "error") && json_add_str(o, "fault", fault) &&
	    json_add_array(o, "devices") != NULL && (notes = json_add_array(o, "notes")) != NULL &&
	    cJSON_AddItemToArray(notes, cJSON_CreateString(say)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static void
probe_say(const char *name, const cJSON *o)
{
	const cJSON *error = json_get(o, "error");
	char file[32];

	snprintf(file, sizeof file, "%.20s.json", name);
	if (json_str(o, "fault") != NULL)
		record_say(name, "%s, %s: %s", file, json_str(o, "fault"),
			cJSON_GetStringValue(cJSON_GetArrayItem(json_get(o, "notes"), 0)));
	else if (cJSON_IsObject(error))
		record_say(name, "%s, %s: %s", file, json_str(error, "reason"), json_str(error, "name"));
	else
		record_say(name, "%s, %d devices", file, cJSON_GetArraySize(json_get(o, "devices")));
}

static int
probe_ask(struct record *r, const struct agree_row *row, struct err *e)
{
	char self[4096], say[64], code[16], *text = NULL;
	const char *argv[] = {self, row->argv[1], row->argv[2], NULL}, *from;
	struct proc_result p;
	struct heard h;
	cJSON *o = NULL;
	size_t n;
	int rc = -1;

	if (plat_self(self, sizeof self, e))
		return -1;
	if (child_run(r, argv, row->timeout_ms, &h, &p, e))
		goto out;
	ending(&h, &p, say, sizeof say, code);
	from = json_object_in(h.all.data, h.all.len, &n);
	if (is_flood(&h) || p.timed_out || p.signal != 0 || from == NULL ||
	    json_parse(from, n, TOOL_MAX_BYTES, &o, e)) {
		cJSON_Delete(o);
		o = faulty(row->argv[2], is_flood(&h) ? "flood" : p.timed_out ? "hang" : "crash", say);
	} else {
		run_forget(o);
	}
	if (o != NULL)
		probe_say(row->argv[2], o);
	text = o != NULL ? json_text(o, true) : NULL;
	n = text != NULL ? strlen(text) : 0;
	rc = text == NULL ? err_set(e, ERR_NOMEM, "no memory")
			  : record_add(r, text, n, json_str(o, "fault") == NULL ? TOOL_PROBE : -1, p.exit, e,
				"%s.json", row->argv[2]);
out:
	cJSON_Delete(o);
	heard_fini(&h);
	return rc;
}

int
record_probes(struct record *r, struct err *e)
{
	size_t i;

	for (i = 0; i < agree_row_count; i++)
		if (strcmp(agree_rows[i].argv[0], AGREE_SELF) == 0 && probe_ask(r, &agree_rows[i], e))
			return -1;
	return 0;
}

/* ---- the topology of AMD's driver ---- */

static int
kfd_copy(struct record *r, const char *root, const char *name, int *copied, struct err *e)
{
	char path[4096], *text;
	size_t len;

	if (str_fmt(path, sizeof path, NULL, "%s/%s", root, name) ||
	    plat_read_file(path, 65536, &text, &len, NULL))
		return 0; /* what may not be read is not there for the probe either */
	++*copied;
	return record_add(r, text, len, -1, -1, e, "kfd/%s", name);
}

int
record_kfd(struct record *r, struct err *e)
{
	static const char *const names[] = {"gpu_id", "name", "properties"};
	char root[4096], name[64];
	int node, bank, copied = 0;
	size_t i;

	if (machine_dir() == NULL)
		snprintf(root, sizeof root, "/sys/class/kfd/kfd/topology");
	else if (str_fmt(root, sizeof root, e, "%s/kfd", machine_dir()))
		return -1;
	for (node = 0; node < 128; node++) {
		for (i = 0; i < str_count(names); i++) {
			snprintf(name, sizeof name, "nodes/%d/%s", node, names[i]);
			if (kfd_copy(r, root, name, &copied, e))
				return -1;
		}
		for (bank = 0; bank < 16; bank++) {
			snprintf(name, sizeof name, "nodes/%d/mem_banks/%d/properties", node, bank);
			if (kfd_copy(r, root, name, &copied, e))
				return -1;
		}
	}
	if (copied > 0)
		record_say("KFD topology", "kfd, %d files", copied);
	else
		record_say("KFD topology", "absent");
	return 0;
}

/* ---- who this host is ---- */

static bool
word_stands(const char *from, const char *end, const char *word)
{
	size_t n = strlen(word);
	const char *hit;

	for (hit = from; (hit = strstr(hit, word)) != NULL && hit + n <= end; hit++)
		if (!isalnum((unsigned char)hit[-1]) && !isalnum((unsigned char)hit[n]))
			return true;
	return false;
}

/* A word of a device's name is no secret, and the name must stay. */
static bool
is_device_word(const struct record *r, const char *word)
{
	const char *key, *end;
	size_t i;

	for (i = 0; i < r->count; i++)
		for (key = r->files[i].kind == TOOL_PROBE ? r->files[i].text : NULL;
			key != NULL && (key = strstr(key, "\"name\":")) != NULL; key++)
			if ((end = strchr(key, '\n')) != NULL && word_stands(key + 7, end, word))
				return true;
	return false;
}

static int
name_learn(struct record *r, const char *name, struct err *e)
{
	if (name == NULL || name[0] == '\0')
		return 0;
	if (is_device_word(r, name)) {
		record_say("names", "\"%.40s\" is a word of a device's name, and stays", name);
		return 0;
	}
	return mask_name(r->mask, name, e);
}

static int
addresses_learn(struct record *r, struct err *e)
{
	struct ifaddrs *list = NULL, *a;
	char text[NI_MAXHOST];
	int rc = 0;

	if (getifaddrs(&list))
		return 0;
	for (a = list; rc == 0 && a != NULL; a = a->ifa_next) {
		if (a->ifa_addr == NULL || (a->ifa_flags & IFF_LOOPBACK))
			continue;
		if (a->ifa_addr->sa_family == AF_PACKET) {
			const struct sockaddr_ll *ll = (const void *)a->ifa_addr;
			const unsigned char *b = ll->sll_addr;

			snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
			rc = ll->sll_halen == 6 ? mask_address(r->mask, text, e) : 0;
		} else if (getnameinfo(a->ifa_addr, a->ifa_addr->sa_family == AF_INET6
				? (socklen_t)sizeof(struct sockaddr_in6) : (socklen_t)sizeof(struct sockaddr_in),
				text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0)
			rc = mask_address(r->mask, text, e);
	}
	freeifaddrs(list);
	return rc;
}

int
record_names(struct record *r, struct err *e)
{
	static const char *const users[] = {"USER", "LOGNAME", "SUDO_USER"};
	const struct passwd *me = getpwuid(geteuid());
	struct utsname u;
	size_t i;

	if (uname(&u) == 0 && name_learn(r, u.nodename, e))
		return -1;
	if (me != NULL && name_learn(r, me->pw_name, e))
		return -1;
	for (i = 0; i < str_count(users); i++)
		if (name_learn(r, getenv(users[i]), e))
			return -1;
	return addresses_learn(r, e);
}
