#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "controller/ledger_db.h"

/* f_type of statfs(2): where locks or shared memory do not hold between machines. */
static const struct {
	unsigned long magic;
	const char *name;
} network_types[] = {
	{0x6969, "NFS"},
	{0x517B, "SMB"},
	{0xFF534D42, "CIFS"},
	{0xFE534D42, "SMB2"},
	{0x01021997, "9p"},
	{0x5346414F, "AFS"},
	{0x6B414653, "AFS"},
	{0x73757245, "Coda"},
	{0x564C, "NCP"},
	{0x0BD00BD0, "Lustre"},
	{0x47504653, "GPFS"},
	{0x00C36400, "Ceph"},
	{0x7461636F, "OCFS2"},
	{0x01161970, "GFS2"},
	{0x19830326, "BeeGFS"},
	{0xAAD7AAEA, "PanFS"},
	{0x20030528, "OrangeFS"},
	{0x786F4256, "VirtualBox shared folder"},
	{0xBACBACBC, "VMware shared folder"},
};

#define FUSE_MAGIC 0x65735546ul

/* FUSE carries local file systems too: the sub-type of mountinfo tells. */
static const char *const network_fuse[] = {
	"fuse.sshfs",	  "fuse.rclone",     "fuse.glusterfs", "fuse.s3fs",
	"fuse.gcsfuse",	  "fuse.davfs",	     "fuse.curlftpfs", "fuse.ceph",
	"fuse.ceph-fuse", "fuse.moosefs",    "fuse.mfs",       "fuse.juicefs",
	"fuse.nfs",	  "fuse.smbnetfs",   "fuse.blobfuse",  "fuse.blobfuse2",
	"fuse.mount-s3",  "fuse.gvfsd-fuse", "fuse.lizardfs",  "fuse.vmhgfs-fuse",
	"fuse.beegfs",
};

/* A line: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS...] - TYPE SOURCE SUPER". */
static const char *
fuse_type_of_line(const char *line, dev_t dev)
{
	unsigned major_no, minor_no;
	const char *type;
	size_t i, n;

	if (sscanf(line, "%*u %*u %u:%u", &major_no, &minor_no) != 2 ||
	    makedev(major_no, minor_no) != dev || (type = strstr(line, " - ")) == NULL)
		return NULL;
	type += 3;
	for (i = 0; i < str_count(network_fuse); i++) {
		n = strlen(network_fuse[i]);
		if (strncmp(type, network_fuse[i], n) == 0 && type[n] == ' ')
			return network_fuse[i];
	}
	return NULL;
}

static const char *
fuse_type(dev_t dev)
{
	const char *found = NULL;
	char *line = NULL;
	size_t size = 0;
	FILE *f;

	if ((f = fopen("/proc/self/mountinfo", "re")) == NULL)
		return "fuse";
	while (found == NULL && getline(&line, &size, f) > 0)
		found = fuse_type_of_line(line, dev);
	free(line);
	fclose(f);
	return found;
}

const char *
ledger_network_fs(const char *path)
{
	struct statfs fs;
	struct stat st;
	size_t i;

	if (statfs(path, &fs) != 0 || stat(path, &st) != 0)
		return NULL;
	for (i = 0; i < str_count(network_types); i++)
		if (network_types[i].magic == ((unsigned long)fs.f_type & 0xFFFFFFFFul))
			return network_types[i].name;
	return ((unsigned long)fs.f_type & 0xFFFFFFFFul) == FUSE_MAGIC
		       ? fuse_type(st.st_dev)
		       : NULL;
}
