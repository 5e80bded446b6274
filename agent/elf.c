#include "agent/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/str.h"

/* Offsets and numbers of the ELF-64 specification; <elf.h> is not on every system. */
#define EI_CLASS 4
#define EI_DATA 5
#define HEAD_32 52
#define HEAD_64 64
#define PH_SIZE 56
#define MAX_PH 256
#define MAX_NOTE 65536
#define MAX_DYN 4096
#define PT_LOAD 1
#define PT_DYNAMIC 2
#define PT_INTERP 3
#define PT_NOTE 4
#define DT_NULL 0
#define DT_NEEDED 1
#define DT_STRTAB 5
#define DT_STRSZ 10
#define DT_SONAME 14
#define DT_RPATH 15
#define DT_RUNPATH 29
#define NT_GNU_BUILD_ID 3

/* Bytes in memory, or a file. */
struct src {
	const uint8_t *p; /* NULL: fd */
	int fd;
	uint64_t size;
};

struct segment {
	uint32_t type;
	uint64_t offset, vaddr, size; /* size in the file */
};

struct image {
	struct src *s;
	struct segment seg[MAX_PH];
	unsigned n;
};

struct strings {
	uint64_t offset, size; /* of the dynamic string table, in the file */
};

static int
src_at(struct src *s, uint64_t off, void *dst, size_t n, struct err *e)
{
	ssize_t got;
	size_t done = 0;

	if (n > s->size || off > s->size - n)
		return err_set(e, ERR_PARSE, "ELF: a part lies outside the file");
	if (s->p != NULL) {
		memcpy(dst, s->p + off, n);
		return 0;
	}
	while (done < n) {
		got = pread(s->fd, (char *)dst + done, n - done, (off_t)(off + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(e, errno, "ELF");
		if (got == 0)
			return err_set(e, ERR_PARSE, "ELF: the file became shorter");
		done += (size_t)got;
	}
	return 0;
}

static uint16_t
le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t
le32(const uint8_t *p)
{
	return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16;
}

static uint64_t
le64(const uint8_t *p)
{
	return le32(p) | (uint64_t)le32(p + 4) << 32;
}

static int
segments_read(struct image *im, const uint8_t *head, struct err *e)
{
	uint64_t off = le64(head + 32);
	unsigned i, size = le16(head + 54), n = le16(head + 56);
	uint8_t ph[PH_SIZE];

	if (n == 0)
		return 0;
	if (size != PH_SIZE || n > MAX_PH)
		return err_set(e, ERR_PARSE, "ELF: %u program headers of %u bytes", n,
			size);
	if (off > im->s->size)
		return err_set(e, ERR_PARSE, "ELF: the program headers lie outside");
	for (i = 0; i < n; i++) {
		if (src_at(im->s, off + (uint64_t)i * PH_SIZE, ph, sizeof ph, e))
			return -1;
		im->seg[i].type = le32(ph);
		im->seg[i].offset = le64(ph + 8);
		im->seg[i].vaddr = le64(ph + 16);
		im->seg[i].size = le64(ph + 32);
	}
	im->n = n;
	return 0;
}

/* Copies a string that must end before `end`; unprintable bytes become '?'. */
static int
string_at(struct src *s, uint64_t off, uint64_t end, char *dst, size_t size,
	struct err *e)
{
	char buf[256];
	size_t n;
	const char *nul;

	if (off >= end)
		return err_set(e, ERR_PARSE, "ELF: a string lies outside its table");
	n = end - off < sizeof buf ? (size_t)(end - off) : sizeof buf;
	if (n > size)
		n = size;
	if (src_at(s, off, buf, n, e))
		return -1;
	if ((nul = memchr(buf, 0, n)) == NULL)
		return err_set(e, ERR_PARSE, "ELF: a string does not end");
	str_show(dst, size, buf, (size_t)(nul - buf));
	return 0;
}

static int
note_read(struct src *s, const struct segment *g, struct elf *out, struct err *e)
{
	uint64_t pos = 0, names, descs;
	uint8_t h[16], id[64];

	if (g->size > MAX_NOTE)
		return 0;
	while (g->size - pos >= 16) {
		if (src_at(s, g->offset + pos, h, sizeof h, e))
			return -1;
		names = ((uint64_t)le32(h) + 3) & ~(uint64_t)3;
		descs = ((uint64_t)le32(h + 4) + 3) & ~(uint64_t)3;
		if (names > g->size - pos - 12 || descs > g->size - pos - 12 - names)
			return 0; /* padded otherwise: no id, and nothing hangs on it */
		if (le32(h + 8) == NT_GNU_BUILD_ID && le32(h) == 4 &&
		    !memcmp(h + 12, "GNU", 4) && le32(h + 4) <= sizeof id) {
			if (src_at(s, g->offset + pos + 16, id, le32(h + 4), e))
				return -1;
			str_hex(out->build_id, id, le32(h + 4));
			return 0;
		}
		pos += 12 + names + descs;
	}
	return 0;
}

/* Where an address of the running program lies in the file. */
static bool
address_find(const struct image *im, uint64_t vaddr, uint64_t *off)
{
	unsigned i;

	for (i = 0; i < im->n; i++)
		if (im->seg[i].type == PT_LOAD && vaddr >= im->seg[i].vaddr &&
		    vaddr - im->seg[i].vaddr < im->seg[i].size &&
		    im->seg[i].offset <= im->s->size) {
			*off = im->seg[i].offset + (vaddr - im->seg[i].vaddr);
			return true;
		}
	return false;
}

static int
dynamic_strings(const struct image *im, const struct segment *g, struct strings *t,
	struct err *e)
{
	uint64_t i, tab = 0, size = 0;
	uint8_t d[16];

	for (i = 0; i < MAX_DYN && (i + 1) * 16 <= g->size; i++) {
		if (src_at(im->s, g->offset + i * 16, d, sizeof d, e))
			return -1;
		if (le64(d) == DT_NULL)
			break;
		if (le64(d) == DT_STRTAB)
			tab = le64(d + 8);
		if (le64(d) == DT_STRSZ)
			size = le64(d + 8);
	}
	t->size = 0;
	if (tab == 0 || size == 0)
		return 0;
	if (!address_find(im, tab, &t->offset) || t->offset > im->s->size ||
	    size > im->s->size - t->offset)
		return err_set(e, ERR_PARSE, "ELF: the string table lies outside");
	t->size = size;
	return 0;
}

static int
dynamic_entry(struct src *s, const struct strings *t, uint64_t tag, uint64_t value,
	struct elf *out, struct err *e)
{
	uint64_t end = t->offset + t->size;
	char *dst;
	size_t size = ELF_NAME;

	switch (tag) {
	case DT_NEEDED:
		if (out->needed_count == ELF_MAX_NEEDED)
			return err_set(e, ERR_LIMIT, "ELF: needs more than %d libraries",
				ELF_MAX_NEEDED);
		dst = out->needed[out->needed_count++];
		break;
	case DT_SONAME:
		dst = out->soname;
		break;
	case DT_RPATH:
	case DT_RUNPATH:
		dst = out->runpath;
		size = sizeof out->runpath;
		break;
	default:
		return 0;
	}
	if (value >= t->size)
		return err_set(e, ERR_PARSE, "ELF: a string lies outside its table");
	return string_at(s, t->offset + value, end, dst, size, e);
}

static int
dynamic_read(const struct image *im, const struct segment *g, struct elf *out,
	struct err *e)
{
	struct strings t;
	uint64_t i;
	uint8_t d[16];

	if (dynamic_strings(im, g, &t, e))
		return -1;
	for (i = 0; t.size && i < MAX_DYN && (i + 1) * 16 <= g->size; i++) {
		if (src_at(im->s, g->offset + i * 16, d, sizeof d, e))
			return -1;
		if (le64(d) == DT_NULL)
			break;
		if (dynamic_entry(im->s, &t, le64(d), le64(d + 8), out, e))
			return -1;
	}
	return 0;
}

static int
segment_read(const struct image *im, const struct segment *g, struct elf *out,
	struct err *e)
{
	if (g->offset > im->s->size || g->size > im->s->size - g->offset)
		return g->type == PT_LOAD || g->type == PT_NOTE ||
				g->type == PT_DYNAMIC || g->type == PT_INTERP
			? err_set(e, ERR_PARSE, "ELF: the file is cut off")
			: 0;
	if (g->type == PT_NOTE && out->build_id[0] == '\0')
		return note_read(im->s, g, out, e);
	if (g->type == PT_DYNAMIC)
		return dynamic_read(im, g, out, e);
	if (g->type == PT_INTERP)
		return string_at(im->s, g->offset, g->offset + g->size, out->interp,
			sizeof out->interp, e);
	return 0;
}

static int
src_parse(struct src *s, struct elf *out, struct err *e)
{
	uint8_t head[HEAD_64];
	struct image im;
	unsigned i;

	memset(out, 0, sizeof *out);
	memset(head, 0, sizeof head);
	if (s->size < HEAD_32)
		return err_set(e, ERR_PARSE, "not an ELF file");
	if (src_at(s, 0, head, s->size < HEAD_64 ? HEAD_32 : HEAD_64, e))
		return -1;
	if (memcmp(head, "\177ELF", 4) || head[EI_CLASS] < 1 || head[EI_CLASS] > 2)
		return err_set(e, ERR_PARSE, "not an ELF file");
	if (head[EI_DATA] != 1)
		return err_set(e, ERR_PARSE, "ELF: not little-endian");
	out->bits = head[EI_CLASS] == 2 ? 64 : 32;
	out->type = le16(head + 16);
	out->machine = le16(head + 18);
	if (out->bits == 32)
		return 0;
	if (s->size < HEAD_64)
		return err_set(e, ERR_PARSE, "ELF: the file is cut off");
	im.s = s;
	im.n = 0;
	if (segments_read(&im, head, e))
		return -1;
	for (i = 0; i < im.n; i++)
		if (segment_read(&im, &im.seg[i], out, e))
			return -1;
	return 0;
}

int
elf_parse(const void *p, size_t n, struct elf *out, struct err *e)
{
	struct src s = {p, -1, n};

	return src_parse(&s, out, e);
}

int
elf_read(const char *path, struct elf *out, struct err *e)
{
	struct src s = {NULL, -1, 0};
	struct stat st;
	int rc = -1;

	if ((s.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
		return err_errno(e, errno, "%s", path);
	if (fstat(s.fd, &st) != 0) {
		err_errno(e, errno, "%s", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_PARSE, "%s is not a regular file", path);
		goto out;
	}
	s.size = (uint64_t)st.st_size;
	if (src_parse(&s, out, e)) {
		err_wrap(e, "%s", path);
		goto out;
	}
	rc = 0;
out:
	close(s.fd);
	return rc;
}

void
elf_machine_name(int machine, char *out, size_t size)
{
	static const struct {
		int machine;
		const char *name;
	} names[] = {
		{3, "x86"}, {21, "ppc64"}, {22, "s390x"}, {40, "arm"}, {62, "x86-64"},
		{183, "aarch64"}, {243, "riscv"}, {258, "loongarch"},
	};
	size_t i;

	for (i = 0; i < str_count(names); i++)
		if (names[i].machine == machine) {
			snprintf(out, size, "%s", names[i].name);
			return;
		}
	snprintf(out, size, "machine %d", machine);
}
