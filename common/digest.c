#include "common/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/str.h"

/* Large enough that the cost of read() vanishes, small enough for the L2 cache. */
#define CHUNK (256 * 1024)

struct digest {
	EVP_MD_CTX *ctx;
};

struct digest *
digest_new(void)
{
	struct digest *d = calloc(1, sizeof *d);

	if (d == NULL)
		return NULL;
	if ((d->ctx = EVP_MD_CTX_new()) == NULL ||
	    EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1) {
		digest_free(d);
		return NULL;
	}
	return d;
}

void
digest_add(struct digest *d, const void *p, size_t n)
{
	EVP_DigestUpdate(d->ctx, p, n);
}

void
digest_end(struct digest *d, char hex[DIGEST_HEX])
{
	unsigned char md[EVP_MAX_MD_SIZE];

	memset(md, 0, sizeof md);
	EVP_DigestFinal_ex(d->ctx, md, NULL);
	str_hex(hex, md, 32);
	digest_free(d);
}

void
digest_free(struct digest *d)
{
	if (d == NULL)
		return;
	EVP_MD_CTX_free(d->ctx);
	free(d);
}

void
digest_bytes(const void *p, size_t n, char hex[DIGEST_HEX])
{
	unsigned char md[EVP_MAX_MD_SIZE];

	memset(md, 0, sizeof md);
	EVP_Digest(p, n, md, NULL, EVP_sha256(), NULL);
	str_hex(hex, md, 32);
}

/* Reads the file through d; the caller owns d. */
static int
digest_stream(struct digest *d, int fd, uint64_t total, digest_progress fn, void *arg,
	uint64_t *bytes, struct err *e)
{
	unsigned char *chunk = malloc(CHUNK);
	ssize_t n;
	int rc = -1;

	if (chunk == NULL)
		return err_set(e, ERR_NOMEM, "no memory to read a file");
	*bytes = 0;
	while ((n = pread(fd, chunk, CHUNK, (off_t)*bytes)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_errno(e, errno, "read");
			goto out;
		}
		digest_add(d, chunk, (size_t)n);
		*bytes += (uint64_t)n;
		if (fn != NULL && fn(arg, *bytes, total)) {
			err_set(e, ERR_CANCELLED, "cancelled while reading");
			goto out;
		}
	}
	rc = 0;
out:
	free(chunk);
	return rc;
}

int
digest_fd(int fd, digest_progress fn, void *arg, char hex[DIGEST_HEX], uint64_t *bytes,
	struct err *e)
{
	struct digest *d;
	struct stat st;
	uint64_t n = 0;

	if (fstat(fd, &st))
		return err_errno(e, errno, "stat");
	if ((d = digest_new()) == NULL)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
#ifdef POSIX_FADV_SEQUENTIAL
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
	if (digest_stream(d, fd, (uint64_t)st.st_size, fn, arg, &n, e)) {
		digest_free(d);
		return -1;
	}
	digest_end(d, hex);
	if (bytes != NULL)
		*bytes = n;
	return 0;
}

int
digest_file(const char *path, char hex[DIGEST_HEX], uint64_t *bytes, struct err *e)
{
	struct stat st;
	int fd, rc;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return err_errno(e, errno, "%s", path);
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		rc = err_set(e, ERR_PARSE, "%s: not a regular file", path);
	else if ((rc = digest_fd(fd, NULL, NULL, hex, bytes, e)))
		err_wrap(e, "%s", path);
	close(fd);
	return rc;
}
