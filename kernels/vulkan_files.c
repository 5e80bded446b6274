#include "kernels/vulkan_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/plat.h"
#include "common/str.h"

#define DRIVERS "VK_DRIVER_FILES"
#define ICDS "VK_ICD_FILENAMES"
#define LIST_MAX 16384

static int
file_add(struct vulkan_files *f, const char *path, struct err *e)
{
	if (f->count == VULKAN_FILES_MAX)
		return 0;
	if ((f->paths[f->count] = strdup(path)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a driver file's name");
	f->count++;
	return 0;
}

static int
name_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A missing folder has none. */
static int
folder_add(struct vulkan_files *f, const char *folder, struct err *e)
{
	char path[4096];
	size_t first = f->count;
	struct dirent *entry;
	int rc = 0;
	DIR *d = opendir(folder);

	if (d == NULL)
		return 0;
	while (rc == 0 && (entry = readdir(d)) != NULL)
		if (str_ends(entry->d_name, ".json"))
			rc = str_fmt(path, sizeof path, e, "%s/%s", folder, entry->d_name) ||
			     file_add(f, path, e) ? -1 : 0;
	closedir(d);
	qsort(f->paths + first, f->count - first, sizeof *f->paths, name_order);
	return rc;
}

/* The value of such a variable: files and folders, with a colon between. */
static int
list_add(struct vulkan_files *f, const char *list, struct err *e)
{
	char copy[LIST_MAX], *at = copy, *end;

	if (str_copy(copy, sizeof copy, list, e))
		return -1;
	for (; at != NULL; at = end) {
		if ((end = strchr(at, ':')) != NULL)
			*end++ = '\0';
		if (*at == '\0')
			continue;
		if (plat_is_dir(at) ? folder_add(f, at, e) : file_add(f, at, e))
			return -1;
	}
	return 0;
}

static int
below_add(struct vulkan_files *f, const char *base, const char *below, struct err *e)
{
	char path[4096];

	if (base == NULL || *base == '\0')
		return 0;
	return str_fmt(path, sizeof path, e, "%s%s/vulkan/icd.d", base, below) ||
	       folder_add(f, path, e) ? -1 : 0;
}

static int
kept(char **out, const char *name, struct err *e)
{
	const char *value = getenv(name);

	if (value != NULL && (*out = strdup(value)) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for %s", name);
	return 0;
}

int
vulkan_files_find(struct vulkan_files *f, struct err *e)
{
	static const char *const folders[] = {"/usr/local/etc", "/etc", "/usr/local/share",
					      "/usr/share"};
	const char *list;
	size_t i;

	memset(f, 0, sizeof *f);
	if (kept(&f->driver_files, DRIVERS, e) || kept(&f->icd_filenames, ICDS, e))
		return -1;
	list = f->driver_files ? f->driver_files : f->icd_filenames;
	if (list != NULL && *list != '\0')
		return list_add(f, list, e);
	if (below_add(f, getenv("HOME"), "/.config", e) ||
	    below_add(f, getenv("HOME"), "/.local/share", e) ||
	    below_add(f, "/etc", "/xdg", e))
		return -1;
	for (i = 0; i < str_count(folders); i++)
		if (below_add(f, folders[i], "", e))
			return -1;
	return 0;
}

int
vulkan_files_choose(const char *path, struct err *e)
{
	if (setenv(DRIVERS, path, 1) || setenv(ICDS, path, 1))
		return err_errno(e, errno, "%s", path);
	return 0;
}

static void
value_restore(const char *name, const char *value)
{
	if (value != NULL)
		(void)setenv(name, value, 1);
	else
		(void)unsetenv(name);
}

void
vulkan_files_restore(const struct vulkan_files *f)
{
	value_restore(DRIVERS, f->driver_files);
	value_restore(ICDS, f->icd_filenames);
}

void
vulkan_files_free(struct vulkan_files *f)
{
	size_t i;

	if (f == NULL)
		return;
	for (i = 0; i < f->count; i++)
		free(f->paths[i]);
	free(f->driver_files);
	free(f->icd_filenames);
	free(f);
}
