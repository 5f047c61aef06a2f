// SPDX-License-Identifier: MIT
// Lists a tree of folders, reading them as files of entries, as xv6's programs do.

#include "kernel/types.h"
#include "kernel/stat.h"
#include "user/user.h"
#include "kernel/fs.h"
#include "kernel/fcntl.h"

void walk(char *path, char *end)
{
	struct dirent de;
	struct stat st;
	int fd = open(path, 0), i;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(2, "walk: %s?\n", path);
		exit(1);
	}
	printf("%s %d %l\n", path, st.type, st.size);
	if (st.type == T_DIR) {
		*end++ = '/';
		while (read(fd, &de, sizeof(de)) == sizeof(de)) {
			if (de.inum == 0 || strcmp(de.name, ".") == 0 || strcmp(de.name, "..") == 0)
				continue;
			memmove(end, de.name, DIRSIZ);
			end[DIRSIZ] = 0;
			walk(path, end + strlen(end));
		}
	}
	close(fd);
}

int main(int argc, char **argv)
{
	char path[512], *names[] = { "t", "t/a", "t/a/b", "t/c", 0 };
	int i, fd;

	for (i = 0; names[i]; i++)
		mkdir(names[i]);
	fd = open("t/a/b/file", O_CREATE | O_WRONLY);
	for (i = 0; i < 100; i++)
		if (write(fd, "0123456789", 10) != 10)
			printf("walk: write failed\n");
	close(fd);
	link("t/a/b/file", "t/c/same");
	strcpy(path, "t");
	walk(path, path + strlen(path));
	unlink("t/c/same");
	unlink("t/a/b/file");
	for (i = 3; i >= 0; i--)
		if (unlink(names[i]) < 0)
			printf("walk: %s stays\n", names[i]);
	exit(0);
}
