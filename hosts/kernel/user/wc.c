/* SPDX-License-Identifier: MIT */
/*
 * wc.c - count lines, words and bytes of files, or of the standard input.
 *
 * Read next: grep.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "user/user.h"

static void count(int fd, const char *name)
{
	static char buffer[4096];
	int nr_lines = 0, nr_words = 0, nr_bytes = 0, in_word = 0, bytes;

	while ((bytes = read(fd, buffer, sizeof(buffer))) > 0) {
		nr_bytes += bytes;
		for (int i = 0; i < bytes; i++) {
			nr_lines += buffer[i] == '\n';
			if (strchr(" \t\r\n\v", buffer[i])) {
				in_word = 0;
			} else {
				nr_words += !in_word;
				in_word = 1;
			}
		}
	}
	if (bytes < 0)
		fail("wc: cannot read %s", name);
	printf("%d %d %d %s\n", nr_lines, nr_words, nr_bytes, name);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		count(0, "");
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);

		if (fd < 0)
			fail("wc: cannot open %s", argv[i]);
		count(fd, argv[i]);
		close(fd);
	}
	return 0;
}
