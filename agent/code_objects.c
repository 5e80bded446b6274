#include "agent/code_objects.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/str.h"

/* nvcc's container: a head, then entries of PTX and of cubins. */
#define FATBIN_MAGIC 0xba55ed50u
#define FATBIN_HEAD 16
#define ENTRY_HEAD 64
#define KIND_PTX 1
#define KIND_ELF 2
#define FLAG_CHIP_ONLY 0x100000u /* sm_90a */
#define FLAG_FAMILY 0x200000u    /* sm_100f */
/* clang's container of code for several chips. */
static const char bundle_magic[] = "__CLANG_OFFLOAD_BUNDLE__";
#define BUNDLE_MAGIC 24
#define MAX_SECTIONS 65536

static uint16_t
u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t
u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t
u64(const uint8_t *p)
{
	return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

static int
add(struct code_objects *out, const char *name, uint64_t bytes, struct err *e)
{
	int i;

	for (i = 0; i < out->count && strcmp(out->v[i].name, name) != 0; i++)
		;
	if (i == CODE_MAX)
		return err_set(e, ERR_LIMIT, "code for more than %d kinds of chips", CODE_MAX);
	if (i == out->count) {
		memset(&out->v[i], 0, sizeof out->v[i]);
		snprintf(out->v[i].name, sizeof out->v[i].name, "%s", name);
		out->count++;
	}
	out->v[i].count++;
	out->v[i].bytes += bytes;
	return 0;
}

/* ---- fat binaries ---- */

static int
entry_read(const uint8_t *p, size_t left, size_t *used, struct code_objects *out, struct err *e)
{
	uint32_t head, chip, flags;
	uint64_t bytes;
	uint16_t kind;
	char name[48];

	if (left < ENTRY_HEAD)
		return err_set(e, ERR_PARSE, "an entry of a fat binary is cut off");
	kind = u16(p);
	head = u32(p + 4);
	bytes = u64(p + 8);
	chip = u32(p + 28);
	flags = u32(p + 40);
	if (head < ENTRY_HEAD || head > left || bytes > left - head || chip > 9999)
		return err_set(e, ERR_PARSE, "an entry of a fat binary does not fit into it");
	*used = head + (size_t)bytes;
	if (kind != KIND_PTX && kind != KIND_ELF)
		return 0;
	snprintf(name, sizeof name, "%s%u%s", kind == KIND_PTX ? "compute_" : "sm_", (unsigned)chip,
		flags & FLAG_CHIP_ONLY ? "a" : flags & FLAG_FAMILY ? "f" : "");
	return add(out, name, bytes, e);
}

int
code_objects_fatbin(const uint8_t *p, size_t n, struct code_objects *out, struct err *e)
{
	size_t at = 0, end, used = 0;
	uint64_t bytes;

	/* one container after the other, with padding between them */
	while (at + FATBIN_HEAD <= n) {
		if (u32(p + at) != FATBIN_MAGIC) {
			at += 4;
			continue;
		}
		bytes = u64(p + at + 8);
		if (u16(p + at + 6) < FATBIN_HEAD || u16(p + at + 6) > n - at ||
		    bytes > n - at - u16(p + at + 6))
			return err_set(e, ERR_PARSE, "a fat binary does not fit into its section");
		end = at + u16(p + at + 6) + (size_t)bytes;
		for (at += u16(p + at + 6); at < end; at += used)
			if (entry_read(p + at, end - at, &used, out, e))
				return -1;
	}
	return 0;
}

/* ---- offload bundles ---- */

/* "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-" -> "gfx90a:xnack-" */
static int
bundle_entry(const char *id, size_t n, uint64_t bytes, struct code_objects *out, struct err *e)
{
	char name[48];
	const char *at = memmem(id, n, "gfx", 3);
	size_t k;

	if (at == NULL)
		return 0; /* the host's part */
	k = n - (size_t)(at - id);
	if (k >= sizeof name)
		return err_set(e, ERR_PARSE, "a chip's name of %zu bytes", k);
	memcpy(name, at, k);
	name[k] = '\0';
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789:+-") != k)
		return err_set(e, ERR_PARSE, "a chip's name with odd letters");
	return add(out, name, bytes, e);
}

int
code_objects_bundle(const uint8_t *p, size_t n, struct code_objects *out, struct err *e)
{
	const uint8_t *at = p, *end = p + n, *q;
	uint64_t entries, i, id;

	for (q = p; (q = memmem(q, (size_t)(end - q), "CCOB", 4)) != NULL; q += 4)
		if ((q - p) % 4096 == 0)
			out->compressed++;
	while ((at = memmem(at, (size_t)(end - at), bundle_magic, BUNDLE_MAGIC)) != NULL) {
		q = at + BUNDLE_MAGIC;
		if (end - q < 8)
			return err_set(e, ERR_PARSE, "an offload bundle is cut off");
		entries = u64(q);
		q += 8;
		for (i = 0; i < entries; i++) {
			if (end - q < 24 || (id = u64(q + 16)) > (uint64_t)(end - q - 24) || id > 256 ||
			    entries > 256)
				return err_set(e, ERR_PARSE, "an entry of an offload bundle does not fit");
			if (bundle_entry((const char *)q + 24, (size_t)id, u64(q + 8), out, e))
				return -1;
			q += 24 + id;
		}
		at += BUNDLE_MAGIC;
	}
	return 0;
}

/* ---- ELF ---- */

static int
section_read(const uint8_t *p, size_t n, const Elf64_Shdr *s, const char *name,
	struct code_objects *out, struct err *e)
{
	static const struct {
		const char *name;
		int (*read)(const uint8_t *p, size_t n, struct code_objects *out, struct err *e);
	} rows[] = {
		{".nv_fatbin", code_objects_fatbin}, {"__nv_relfatbin", code_objects_fatbin},
		{".hip_fatbin", code_objects_bundle},
	};
	size_t i;

	for (i = 0; i < str_count(rows); i++)
		if (strcmp(name, rows[i].name) == 0 && s->sh_type != SHT_NOBITS) {
			if (s->sh_offset > n || s->sh_size > n - s->sh_offset)
				return err_set(e, ERR_PARSE, "section %s reaches behind the end", name);
			return rows[i].read(p + s->sh_offset, s->sh_size, out, e);
		}
	return 0;
}

static int
elf_walk(const uint8_t *p, size_t n, struct code_objects *out, struct err *e)
{
	Elf64_Ehdr h;
	Elf64_Shdr names, s;
	const char *text;
	char name[32];
	size_t i, k;

	if (n < sizeof h || memcmp(p, ELFMAG, SELFMAG) != 0 || p[EI_CLASS] != ELFCLASS64 ||
	    p[EI_DATA] != ELFDATA2LSB)
		return err_set(e, ERR_PARSE, "no 64-bit ELF file");
	memcpy(&h, p, sizeof h);
	if (h.e_shoff == 0 || h.e_shnum == 0)
		return 0;
	if (h.e_shentsize != sizeof s || h.e_shoff > n ||
	    (size_t)h.e_shnum * sizeof s > n - h.e_shoff || h.e_shstrndx >= h.e_shnum)
		return err_set(e, ERR_PARSE, "the table of sections does not fit into the file");
	memcpy(&names, p + h.e_shoff + h.e_shstrndx * sizeof s, sizeof names);
	if (names.sh_offset > n || names.sh_size > n - names.sh_offset)
		return err_set(e, ERR_PARSE, "the names of sections do not fit into the file");
	for (i = 0; i < h.e_shnum; i++) {
		memcpy(&s, p + h.e_shoff + i * sizeof s, sizeof s);
		if (s.sh_name >= names.sh_size)
			continue;
		text = (const char *)p + names.sh_offset + s.sh_name;
		k = strnlen(text, names.sh_size - s.sh_name);
		snprintf(name, sizeof name, "%.*s", (int)(k < 31 ? k : 31), text);
		if (section_read(p, n, &s, name, out, e))
			return -1;
	}
	return 0;
}

int
code_objects_read(const char *path, struct code_objects *out, struct err *e)
{
	struct stat st;
	void *p;
	int fd, rc;

	memset(out, 0, sizeof *out);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return err_errno(e, errno, "%s", path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size == 0) {
		close(fd);
		return err_set(e, ERR_PARSE, "%s is no file that holds code", path);
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return err_set(e, ERR_NOMEM, "%s can not be mapped", path);
	rc = elf_walk(p, (size_t)st.st_size, out, e);
	munmap(p, (size_t)st.st_size);
	return rc ? err_wrap(e, "%s", path) : 0;
}
