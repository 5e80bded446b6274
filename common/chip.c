#include "common/chip.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"

/* ---- NVIDIA ---- */

struct nvidia {
	int major, minor;
	char suffix;    /* 'a', 'f' or 0 */
};

/* "90a" of "sm_90a": the last digit is the minor number. */
static bool
nvidia_parse(const char *s, struct nvidia *out)
{
	size_t n = strspn(s, "0123456789");
	int v;

	if (n < 2 || n > 3)
		return false;
	v = (int)strtol(s, NULL, 10);
	out->major = v / 10;
	out->minor = v % 10;
	out->suffix = s[n];
	return s[n] == '\0' || ((s[n] == 'a' || s[n] == 'f') && s[n + 1] == '\0');
}

static enum chip_fit
nvidia_fits(const char *code, const char *chip)
{
	bool ptx = str_starts(code, "compute_");
	struct nvidia c, d;

	if (!nvidia_parse(code + (ptx ? 8 : 3), &c) || !nvidia_parse(chip + 3, &d))
		return CHIP_NO;
	if (c.suffix == 'a')
		return c.major == d.major && c.minor == d.minor ? (ptx ? CHIP_JIT : CHIP_NATIVE) : CHIP_NO;
	if (ptx && c.suffix == 'f')
		return c.major == d.major && c.minor <= d.minor ? CHIP_JIT : CHIP_NO;
	if (ptx)
		return c.major < d.major || (c.major == d.major && c.minor <= d.minor) ? CHIP_JIT : CHIP_NO;
	return c.major == d.major && c.minor <= d.minor ? CHIP_NATIVE : CHIP_NO;
}

/* ---- AMD ---- */

/* '+', '-' or 0 for a feature in "gfx90a:sramecc+:xnack-". */
static char
feature(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at != NULL ? at[strlen(name)] : '\0';
}

/* Code for a family of chips, by the generic processors of LLVM's AMDGPU backend. */
static const struct {
	const char *code, *chips;
} generics[] = {
	{"gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c "},
	{"gfx9-4-generic", " gfx942 gfx950 "},
	{"gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 "},
	{"gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 "},
	{"gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 "},
	{"gfx12-generic", " gfx1200 gfx1201 "},
};

/* Whether code of that name (of n bytes) is for that chip. */
static bool
amd_covers(const char *code, size_t n, const char *chip)
{
	size_t m = strcspn(chip, ":"), i;
	char word[48];

	if (n == m && strncmp(code, chip, n) == 0)
		return true;
	snprintf(word, sizeof word, " %.*s ", (int)(m < 40 ? m : 40), chip);
	for (i = 0; i < str_count(generics); i++)
		if (strlen(generics[i].code) == n && strncmp(code, generics[i].code, n) == 0)
			return strstr(generics[i].chips, word) != NULL;
	return false;
}

static enum chip_fit
amd_fits(const char *code, const char *chip, const char *features)
{
	static const char *const names[] = {"xnack", "sramecc"};
	size_t n = strcspn(code, ":"), i;
	char want, have;

	if (!amd_covers(code, n, chip))
		return CHIP_NO;
	for (i = 0; i < str_count(names); i++) {
		want = feature(code + n, names[i]);
		have = feature(features, names[i]);
		if ((want == '+' || want == '-') && (have == '+' || have == '-') && want != have)
			return CHIP_NO;
	}
	return CHIP_NATIVE;
}

enum chip_fit
chip_fits(const char *code, const char *chip, const char *features)
{
	if (str_starts(chip, "sm_") && (str_starts(code, "sm_") || str_starts(code, "compute_")))
		return nvidia_fits(code, chip);
	if (str_starts(chip, "gfx") && str_starts(code, "gfx"))
		return amd_fits(code, chip, features);
	return CHIP_NO;
}

/* ---- compilers ---- */

/* Chips, what cmake calls them, and since when nvcc knows that name. */
static const struct {
	const char *chip, *flag, *nvcc;
} chips[] = {
	{"sm_60", "60", "8.0"}, {"sm_61", "61", "8.0"}, {"sm_70", "70", "9.0"}, {"sm_72", "72", "9.2"},
	{"sm_75", "75", "10.0"}, {"sm_80", "80", "11.0"}, {"sm_86", "86", "11.1"},
	{"sm_87", "87", "11.4"}, {"sm_88", "88", "13.0"}, {"sm_89", "89", "11.8"},
	{"sm_90", "90a", "12.0"}, {"sm_100", "100a", "12.8"}, {"sm_101", "101a", "12.8"},
	{"sm_103", "103a", "12.9"}, {"sm_110", "110a", "13.0"}, {"sm_120", "120a", "12.8"},
	{"sm_121", "121a", "12.9"},
};
static const char *const gfx[] = {
	"gfx803", "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c", "gfx940",
	"gfx941", "gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012", "gfx1013", "gfx1030", "gfx1031",
	"gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102",
	"gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201",
	"gfx9-generic", "gfx9-4-generic", "gfx10-1-generic", "gfx10-3-generic", "gfx11-generic",
	"gfx12-generic",
};

static bool
is_gfx(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < str_count(gfx); i++)
		if (strlen(gfx[i]) == n && strncmp(gfx[i], name, n) == 0)
			return true;
	return false;
}

bool
chip_flag(const char *chip, char *out, size_t size)
{
	size_t i;

	if (is_gfx(chip, strcspn(chip, ":"))) {
		snprintf(out, size, "%.*s", (int)strcspn(chip, ":"), chip);
		return true;
	}
	for (i = 0; i < str_count(chips); i++)
		if (strcmp(chips[i].chip, chip) == 0) {
			snprintf(out, size, "%s", chips[i].flag);
			return true;
		}
	return false;
}

const char *
chip_nvcc(const char *chip)
{
	size_t i;

	for (i = 0; i < str_count(chips); i++)
		if (strcmp(chips[i].chip, chip) == 0)
			return chips[i].nvcc;
	return "";
}

/* "90a", "90-real", "gfx90a:xnack-", "native", "all" */
static bool
is_known(char *word)
{
	static const char *const words[] = {"native", "all", "all-major", "OFF"};
	char sm[24], *dash;
	size_t i;

	for (i = 0; i < str_count(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	if (is_gfx(word, strcspn(word, ":")))
		return true;
	dash = strchr(word, '-');
	if (dash != NULL && strcmp(dash, "-real") != 0 && strcmp(dash, "-virtual") != 0)
		return false;
	if (dash != NULL)
		*dash = '\0';
	for (i = 0; i < str_count(chips); i++) {
		size_t n = strspn(chips[i].flag, "0123456789");

		snprintf(sm, sizeof sm, "%.*s", (int)n, chips[i].flag);
		if (strncmp(word, sm, n) == 0 && (word[n] == '\0' ||
				((word[n] == 'a' || word[n] == 'f') && word[n + 1] == '\0')))
			return true;
	}
	return false;
}

bool
chip_list_known(const char *list, char *bad, size_t size)
{
	char copy[512], *p, *next;

	if (str_copy(copy, sizeof copy, list, NULL)) {
		snprintf(bad, size, "a list of more than %zu bytes", sizeof copy - 1);
		return false;
	}
	for (p = copy; p != NULL; p = next) {
		if ((next = strpbrk(p, ";,")) != NULL)
			*next++ = '\0';
		snprintf(bad, size, "%s", p);
		if (!is_known(p))
			return false;
	}
	return true;
}

int
chip_version_compare(const char *a, const char *b)
{
	long x, y;
	char *end;

	while (*a != '\0' || *b != '\0') {
		x = strtol(a, &end, 10);
		a = *end == '.' ? end + 1 : "";
		y = strtol(b, &end, 10);
		b = *end == '.' ? end + 1 : "";
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}
