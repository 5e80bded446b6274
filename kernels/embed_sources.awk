# The kernels and every header that they name, each once, in the order met: what a host
# needs to compile them itself.  usage: awk -f kernels/embed_sources.awk FILE.cu...
BEGIN {
	for (n = 1; n < ARGC; n++)
		queue[n] = ARGV[n]
	for (i = 1; i < n; i++) {
		if (seen[queue[i]]++)
			continue
		print queue[i]
		while ((got = (getline line < queue[i])) > 0)
			if (line ~ /^#[ \t]*include[ \t]*"/) {
				sub(/^[^"]*"/, "", line)
				sub(/".*/, "", line)
				queue[n++] = line
			}
		if (got < 0)
			exit 1
		close(queue[i])
	}
}
