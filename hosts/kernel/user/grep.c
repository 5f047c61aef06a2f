/* SPDX-License-Identifier: MIT */
/*
 * grep.c - print the lines in which a pattern occurs.
 *
 *	grep [-v] PATTERN [FILE]...
 *
 * In a pattern . is any character, c* any number of c, ^ and $ the ends of the
 * line. -v prints the other lines. Status 0 if a line was printed, else 1; a
 * line beyond LINE_MAX characters is looked at in pieces.
 *
 * Read next: sh.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "user/user.h"

#define LINE_MAX 1023

static int is_inverted;
static int nr_printed;

/* Does @text begin with what @pattern says? */
static int matches_here(const char *pattern, const char *text)
{
	for (; *pattern; pattern++, text++) {
		if (pattern[0] == '$' && !pattern[1])
			return !*text;
		if (pattern[1] == '*') {
			/* As few of them as will do; every number is tried. */
			while (!matches_here(pattern + 2, text)) {
				if (!*text || (*pattern != '.' && *pattern != *text))
					return 0;
				text++;
			}
			return 1;
		}
		if (!*text || (*pattern != '.' && *pattern != *text))
			return 0;
	}
	return 1;
}

static int matches(const char *pattern, const char *text)
{
	if (*pattern == '^')
		return matches_here(pattern + 1, text);
	do {
		if (matches_here(pattern, text))
			return 1;
	} while (*text++);
	return 0;
}

static void search(const char *pattern, int fd, const char *name)
{
	static char buffer[4096], line[LINE_MAX + 1];
	int bytes, length = 0;

	do {
		bytes = read(fd, buffer, sizeof(buffer));
		if (bytes < 0)
			fail("grep: cannot read %s", name);
		for (int i = 0; i < bytes || (bytes == 0 && length && i == 0); i++) {
			if (bytes && buffer[i] != '\n' && length < LINE_MAX) {
				line[length++] = buffer[i];
				continue;
			}
			line[length] = 0;
			length = 0;
			if (matches(pattern, line) != is_inverted) {
				printf("%s\n", line);
				nr_printed++;
			}
		}
	} while (bytes > 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-v") == 0) {
		is_inverted = 1;
		argc--;
		argv++;
	}
	if (argc < 2)
		fail("usage: grep [-v] PATTERN [FILE]...");
	if (argc == 2)
		search(argv[1], 0, "the standard input");
	for (int i = 2; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);

		if (fd < 0)
			fail("grep: cannot open %s", argv[i]);
		search(argv[1], fd, argv[i]);
		close(fd);
	}
	return nr_printed == 0;
}
