/* SPDX-License-Identifier: MIT */
/*
 * ls.c - list files: type (d folder, - file, c device), inode, links, bytes, name.
 *
 * Read next: kernel/fs.h, what a folder is on disk.
 */
#include "kernel/types.h"
#include "kernel/param.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "kernel/fs.h"
#include "user/user.h"

static void print_one(const char *name, const struct stat *st)
{
	char type = st->type == T_DIR ? 'd' : st->type == T_DEVICE ? 'c' : '-';

	printf("%c %5d %3d %8lu %s\n", type, st->ino, st->nlink, st->size, name);
}

static void list_folder(const char *path, int fd)
{
	struct dirent entry;
	struct stat st;
	char name[DIRSIZ + 1], full[MAXPATH];

	while (read(fd, &entry, sizeof(entry)) == sizeof(entry)) {
		if (!entry.inum)
			continue;
		memmove(name, entry.name, DIRSIZ);
		name[DIRSIZ] = 0;
		/* A name may have been removed since it was read. */
		if (snprintf(full, sizeof(full), "%s/%s", path, name) < MAXPATH &&
		    stat(full, &st) == 0)
			print_one(name, &st);
	}
}

static void list(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st) < 0)
		fail("ls: cannot open %s", path);
	if (st.type == T_DIR)
		list_folder(path, fd);
	else
		print_one(path, &st);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		list(".");
	for (int i = 1; i < argc; i++)
		list(argv[i]);
	return 0;
}
