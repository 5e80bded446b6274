/* Replays fuzz seeds through a target without a fuzzing engine. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long size;
	int rc = 1;

	if (f == NULL || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		perror(path);
		goto out;
	}
	rewind(f);
	/* exactly the size, so that reading past the end is seen */
	if ((data = malloc(size > 0 ? (size_t)size : 1)) == NULL ||
	    fread(data, 1, (size_t)size, f) != (size_t)size) {
		perror(path);
		goto out;
	}
	LLVMFuzzerTestOneInput(data, (size_t)size);
	rc = 0;
out:
	free(data);
	if (f != NULL)
		fclose(f);
	return rc;
}

int
main(int argc, char **argv)
{
	int i, failed = 0;

	if (argc < 2) {
		fprintf(stderr, "%s: no seed given\n", argv[0]);
		return 1;
	}
	for (i = 1; i < argc; i++)
		failed += replay(argv[i]);
	printf("%s: %d seeds replayed, %d failed\n", argv[0], argc - 1, failed);
	return failed != 0;
}
