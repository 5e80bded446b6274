/* The gates that ask the machine what it is: host, device, toolchain. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "agent/gate.h"
#include "agent/machine.h"
#include "agent/toolchain.h"
#include "common/json.h"
#include "common/plat.h"
#include "common/str.h"

/* First line of a small file, "" when there is none. */
static void
first_line(const char *path, char *out, size_t size)
{
	char *text = NULL;
	size_t len;

	out[0] = '\0';
	if (plat_read_file(path, 65536, &text, &len, NULL))
		return;
	str_show(out, size, text, strcspn(text, "\n"));
	free(text);
}

/* The hypervisor's own signature, from CPUID leaf 0x40000000. */
static const char *
hypervisor(void)
{
#if defined(__x86_64__)
	static const struct {
		const char *signature, *name;
	} rows[] = {
		{"KVMKVMKVM", "kvm"}, {"TCGTCGTCGTCG", "qemu-tcg"}, {"Microsoft Hv", "hyper-v"},
		{"VMwareVMware", "vmware"}, {"XenVMMXenVMM", "xen"}, {"bhyve bhyve ", "bhyve"},
		{"VBoxVBoxVBox", "virtualbox"}, {"ACRNACRNACRN", "acrn"}, {"prl hyperv  ", "parallels"},
	};
	unsigned a, b, c, d;
	char text[13];
	size_t i;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 31)) == 0)
		return "none";
	__cpuid(0x40000000, a, b, c, d);
	memcpy(text, &b, 4);
	memcpy(text + 4, &c, 4);
	memcpy(text + 8, &d, 4);
	text[12] = '\0';
	for (i = 0; i < str_count(rows); i++)
		if (strncmp(rows[i].signature, text, strlen(rows[i].signature)) == 0)
			return rows[i].name;
	return "vm";
#else
	char product[128];

	first_line("/sys/class/dmi/id/product_name", product, sizeof product);
	return strstr(product, "KVM") || strstr(product, "QEMU") || strstr(product, "Virtual")
		? "vm" : "none";
#endif
}

/*
 * What executes our instructions, when it is not the processor: "" or a name.
 * qemu-user passes system calls on, so the kernel's own word for the machine and the
 * cpuinfo of the real one differ from what we were built for.
 */
static const char *
emulator(const char *arch, const char *vm)
{
	char kernel_arch[32];
	char *cpuinfo = NULL;
	bool x86 = strcmp(arch, "x86_64") == 0, other = false;

	if (strcmp(vm, "qemu-tcg") == 0)
		return "qemu-tcg";
	first_line("/proc/sys/kernel/arch", kernel_arch, sizeof kernel_arch);
	if (kernel_arch[0] != '\0' && strcmp(kernel_arch, arch) != 0)
		return "qemu-user";
	/* not readable (no /proc): no sign of anything */
	if (plat_read_file("/proc/cpuinfo", 16u << 20, &cpuinfo, NULL, NULL) == 0)
		other = x86 != (strstr(cpuinfo, "vendor_id") != NULL);
	free(cpuinfo);
	return other ? "qemu-user" : "";
}

void
gate_host(struct work *w, struct gate *g)
{
	struct transcript *t = gate_open(w, g, "host");
	struct utsname u;
	char line[256];
	const char *vm;

	if (t == NULL)
		return;
	if (machine_uname(&u)) {
		gate_say(t, REASON_PROBE_UNREADABLE, NULL, "uname failed");
		gate_close(w, g, t);
		return;
	}
	vm = hypervisor();
	gate_factf(t, "os", "%s", u.sysname);
	gate_factf(t, "arch", "%s", u.machine);
	gate_factf(t, "kernel", "%s", u.release);
	gate_factf(t, "kernelBuild", "%s", u.version);
	gate_factf(t, "hostname", "%s", u.nodename);
	gate_factf(t, "virtualisation", "%s", vm);
	gate_factf(t, "emulated", "%s", emulator(u.machine, vm));
	gate_factf(t, "simulated", "%s", machine_name());
	gate_factf(t, "container", "%s", plat_exists("/.dockerenv") ? "docker"
		: plat_exists("/run/.containerenv") ? "podman" : "no");
	gate_factf(t, "bootId", "%s", w->boot_id);
	first_line("/sys/class/dmi/id/product_name", line, sizeof line);
	gate_factf(t, "product", "%s", line);
	if (plat_exists("/etc/os-release")) {
		struct err e = {0};

		if (transcript_file(t, "/etc/os-release", &e))
			gate_factf(t, "osRelease", "unreadable: %s", e.msg);
	}
	gate_close(w, g, t);
	if (g->log_name[0] != '\0') {
		snprintf(w->host.os, sizeof w->host.os, "%.31s", u.sysname);
		snprintf(w->host.arch, sizeof w->host.arch, "%.31s", u.machine);
		snprintf(w->host.kernel, sizeof w->host.kernel, "%s", u.release);
		snprintf(w->host.hostname, sizeof w->host.hostname, "%s", u.nodename);
		snprintf(w->host.virtualisation, sizeof w->host.virtualisation, "%s", vm);
		snprintf(w->host.emulated, sizeof w->host.emulated, "%s", emulator(u.machine, vm));
	}
}

void
gate_toolchain(struct work *w, struct gate *g)
{
	static const struct {
		const char *tool, *option;
	} tools[] = {{"cmake", "--version"}, {"ninja", "--version"}, {"cc", "--version"},
		{"c++", "--version"}, {"git", "--version"}};
	struct transcript *t = gate_open(w, g, "toolchain");
	char missing[128] = "";
	struct err e = {0};
	size_t i, used = 0;

	if (t == NULL)
		return;
	for (i = 0; i < str_count(tools); i++)
		if (gate_probe_tool(w, t, tools[i].tool, tools[i].option, &e) &&
		    e.code == ERR_NOTFOUND)
			used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s",
				used ? ", " : "", tools[i].tool);
	toolchain_log(w, t, missing, sizeof missing, &e);
	if (missing[0] != '\0')
		gate_say(t, REASON_TOOL_MISSING, e.hint, "not found in PATH nor in the CUDA and ROCm folders: %s",
			missing);
	gate_close(w, g, t);
}

/* Why a lane says no more: one sentence for people, NULL where it says all. */
static const char *
lane_words(const struct target *target, bool asked, bool known)
{
	if (target == NULL)
		return "this host is not of the kind that the lane is for";
	if (!asked)
		return "a device's driver is asked by a run's own gates only, as a look from beside would "
		       "disturb the run that holds the device; `verify-agent doctor` asks it now";
	return known ? NULL : "the processor could not be asked";
}

int
work_host(cJSON **out, struct err *e)
{
	struct utsname u;
	struct device_facts d;
	cJSON *o = cJSON_CreateObject(), *list, *l;
	const struct target *target;
	const char *vm = hypervisor();
	bool ok, known = false, asked;
	size_t i;

	if (o == NULL || machine_uname(&u)) {
		cJSON_Delete(o);
		return err_set(e, ERR_IO, "cannot ask the host");
	}
	ok = json_add_str(o, "os", u.sysname) && json_add_str(o, "arch", u.machine) &&
		json_add_str(o, "kernel", u.release) && json_add_str(o, "hostname", u.nodename) &&
		json_add_str(o, "virtualisation", vm) &&
		json_add_str(o, "emulated", emulator(u.machine, vm)) &&
		json_add_int(o, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	ok = ok && (list = json_add_array(o, "lanes")) != NULL;
	for (i = 0; ok && i < lane_count; i++) {
		target = lane_target(&lanes[i], u.sysname, u.machine);
		/* a driver is asked by a job's own gate, or by doctor */
		asked = lanes[i].api == API_CPU;
		known = target != NULL && asked && device_now(target, &d);
		l = cJSON_CreateObject();
		ok = l != NULL && cJSON_AddItemToArray(list, l) &&
			json_add_str(l, "name", lanes[i].name) &&
			json_add_str(l, "target", target ? target->name : NULL) &&
			json_add_str(l, "deviceClass", known ? d.device_class : NULL) &&
			json_add_str(l, "device", known ? d.name : NULL) &&
			json_add_str(l, "outcome", outcome_name(known ? OUTCOME_PASS
				: target != NULL && !asked ? OUTCOME_SKIPPED : OUTCOME_BLOCKED)) &&
			json_add_str(l, "reasonCode", known ? NULL
				: reason_name(target == NULL ? REASON_WRONG_HOST
					: asked ? REASON_PROBE_UNREADABLE : REASON_NOT_ASKED)) &&
			json_add_str(l, "detail", lane_words(target, asked, known)) &&
			json_add_str(l, "features", known ? d.features : NULL);
	}
	if (!ok) {
		cJSON_Delete(o);
		return err_set(e, ERR_NOMEM, "no memory for the host's answer");
	}
	*out = o;
	return 0;
}
