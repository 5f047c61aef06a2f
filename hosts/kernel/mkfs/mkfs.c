/* SPDX-License-Identifier: MIT */
/*
 * mkfs.c - makes an image of the kernel's disk from files of this machine.
 *
 *	mkfs [--blocks N] [--inodes N] [--log N] IMAGE FILE...
 *	mkfs --check IMAGE	every invariant, each violation with its place
 *	mkfs --dump IMAGE	what is in it, for people
 *
 * A file gets its own name in the root folder, without a leading "_" (xv6's
 * programs are built with one). Equal files give an equal image. Exit status: 0,
 * 1 when a check found something, 2 when it could not be done.
 *
 * Read next: check.c, dump.c; kernel/fs.h for the layout.
 */
#include "mkfs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/log.h"
#include "kernel/stat.h"

/* Room for all programs and for a student's own; one bitmap block has 8,192. */
#define NR_BLOCKS	4096
#define NR_INODES	512
#define NR_LOG		(1 + LOG_BLOCKS_MAX)

_Noreturn void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("mkfs: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

void *block_of(const struct image *image, u32 block)
{
	return image->data + (size_t)block * BSIZE;
}

struct dinode *inode_of(const struct image *image, u32 inum)
{
	return (struct dinode *)block_of(image, IBLOCK(inum, image->sb)) + inum % IPB;
}

u32 file_block(const struct image *image, const struct dinode *d, u32 idx)
{
	if (idx < NDIRECT)
		return d->addrs[idx];
	return ((u32 *)block_of(image, d->addrs[NDIRECT]))[idx - NDIRECT];
}

/* ---- whole files --------------------------------------------------------- */

static u8 *read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	long end;
	u8 *data;

	if (!file || fseek(file, 0, SEEK_END) || (end = ftell(file)) < 0)
		die("%s: %s", path, strerror(errno));
	rewind(file);
	*bytes = end;
	data = malloc(*bytes + 1);
	if (!data || fread(data, 1, *bytes, file) != *bytes)
		die("%s: it cannot be read: %s", path, strerror(errno));
	fclose(file);
	return data;
}

struct image load_image(const char *path)
{
	struct image image = { .path = path };
	size_t bytes;

	image.data = read_file(path, &bytes);
	image.nr_blocks = bytes / BSIZE > 0xffffffff ? 0xffffffff : bytes / BSIZE;
	return image;
}

static void store_image(const struct image *image)
{
	size_t bytes = (size_t)image->nr_blocks * BSIZE;
	char *scratch = malloc(strlen(image->path) + 5);
	FILE *file;

	if (!scratch)
		die("no memory");
	sprintf(scratch, "%s.new", image->path);
	file = fopen(scratch, "wb");
	if (!file || fwrite(image->data, 1, bytes, file) != bytes || fclose(file) ||
	    rename(scratch, image->path))
		die("%s: it cannot be written: %s", scratch, strerror(errno));
	free(scratch);
}

/* ---- making one ---------------------------------------------------------- */

static u32 next_inum = ROOTINO, next_block; /* first ones that are free */

static u32 take_block(struct image *image, const char *why)
{
	u8 *bits;

	if (next_block == image->sb.size)
		die("%s: the image of %u blocks is full; give it more: --blocks N", why,
		    image->sb.size);
	bits = block_of(image, BBLOCK(next_block, image->sb));
	bits[next_block % BPB / 8] |= 1 << next_block % 8;
	return next_block++;
}

static u32 take_inode(struct image *image, short type, const char *why)
{
	struct dinode *d;

	if (next_inum == image->sb.ninodes)
		die("%s: all %u inodes are used; make more: --inodes N", why, image->sb.ninodes);
	d = inode_of(image, next_inum);
	d->type = type;
	d->nlink = 1;
	return next_inum++;
}

static void append(struct image *image, u32 inum, const void *from, size_t bytes, const char *why)
{
	struct dinode *d = inode_of(image, inum);
	const u8 *at = from;

	if (d->size + bytes > MAXFILE * BSIZE)
		die("%s: it would be %zu bytes long; a file has at most %zu", why, d->size + bytes,
		    (size_t)(MAXFILE * BSIZE));
	while (bytes) {
		u32 idx = d->size / BSIZE, in_block = d->size % BSIZE;
		size_t step = BSIZE - in_block < bytes ? BSIZE - in_block : bytes;

		if (idx >= NDIRECT && !d->addrs[NDIRECT])
			d->addrs[NDIRECT] = take_block(image, why);
		if (!in_block && idx < NDIRECT)
			d->addrs[idx] = take_block(image, why);
		else if (!in_block)
			((u32 *)block_of(image,
					 d->addrs[NDIRECT]))[idx - NDIRECT] = take_block(image, why);
		memcpy((u8 *)block_of(image, file_block(image, d, idx)) + in_block, at, step);
		d->size += step;
		at += step;
		bytes -= step;
	}
}

static void add_name(struct image *image, const char *name, u32 inum, const char *why)
{
	struct dinode *root = inode_of(image, ROOTINO);
	struct dirent e = { .inum = inum };

	if (!*name || strlen(name) > DIRSIZ)
		die("%s: \"%s\" has %zu characters, but a name has 1 to %d; rename it", why, name,
		    strlen(name), DIRSIZ);
	for (u32 i = 0; i < root->size / sizeof(e); i++) {
		const struct dirent *o = block_of(image,
						  file_block(image, root, i * sizeof(e) / BSIZE));

		o += i % (BSIZE / sizeof(e));
		if (!strncmp(o->name, name, DIRSIZ))
			die("%s: there is another file called \"%s\"; rename one", why, name);
	}
	memcpy(e.name, name, strlen(name));
	append(image, ROOTINO, &e, sizeof(e), "/");
}

static void add_file(struct image *image, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t bytes;
	u8 *data = read_file(path, &bytes);
	u32 inum = take_inode(image, T_FILE, path);

	add_name(image, name[0] == '_' ? name + 1 : name, inum, path);
	append(image, inum, data, bytes, path);
	free(data);
}

static struct image make_image(const char *path, u32 size, u32 ninodes, u32 nlog)
{
	struct image image = { .path = path, .nr_blocks = size };
	struct superblock *sb = &image.sb;
	u32 data_start;

	*sb = (struct superblock){
		.magic = FSMAGIC,
		.size = size,
		.ninodes = ninodes,
		.nlog = nlog,
		.logstart = 2,
		.inodestart = 2 + nlog,
		.bmapstart = 2 + nlog + (ninodes + IPB - 1) / IPB,
	};
	data_start = sb->bmapstart + (size + BPB - 1) / BPB;
	if (data_start + 1 >= size)
		die("%u blocks are too few: %u are needed before the first file; --blocks N", size,
		    data_start + 1);
	sb->nblocks = size - data_start;
	image.data = calloc(size, BSIZE);
	if (!image.data)
		die("no memory for an image of %u KiB", size);
	memcpy(block_of(&image, 1), sb, sizeof(*sb));
	while (next_block < data_start)
		take_block(&image, "the file system itself");
	take_inode(&image, T_DIR, "/");
	add_name(&image, ".", ROOTINO, "/");
	add_name(&image, "..", ROOTINO, "/");
	return image;
}

/* ---- the command --------------------------------------------------------- */

static _Noreturn void usage(void)
{
	die("usage: mkfs [--blocks N] [--inodes N] [--log N] IMAGE FILE...\n"
	    "       mkfs --check IMAGE\n       mkfs --dump IMAGE");
}

static u32 number(const char *option, const char *text, u32 min, u32 max)
{
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;

	if (!text || !*text || *end || value < min || value > max)
		die("%s %s: it takes a number from %u to %u", option, text ? text : "", min, max);
	return value;
}

static int inspect(const char *option, const char *path)
{
	struct image image = load_image(path);
	u32 nr_problems = check_image(&image);

	if (!strcmp(option, "--check")) {
		printf("%s: %u problem%s\n", path, nr_problems, nr_problems == 1 ? "" : "s");
		free(image.data);
		return nr_problems ? 1 : 0;
	}
	if (nr_problems)
		die("%s: only an image without problems can be shown", path);
	dump_image(&image);
	free(image.data);
	return 0;
}

int main(int argc, char **argv)
{
	u32 nr_blocks = NR_BLOCKS, nr_inodes = NR_INODES, nr_log = NR_LOG;
	struct image image;
	int i = 1;

	if (argc == 3 && (!strcmp(argv[1], "--check") || !strcmp(argv[1], "--dump")))
		return inspect(argv[1], argv[2]);
	for (; i < argc && !strncmp(argv[i], "--", 2); i += 2) {
		if (!strcmp(argv[i], "--blocks"))
			nr_blocks = number(argv[i], argv[i + 1], 40, BITMAPS_MAX * BPB);
		else if (!strcmp(argv[i], "--inodes"))
			nr_inodes = number(argv[i], argv[i + 1], 2, 65535);
		else if (!strcmp(argv[i], "--log"))
			nr_log = number(argv[i], argv[i + 1], 1 + OP_BLOCKS, 1 + LOG_BLOCKS_MAX);
		else
			usage();
	}
	if (i >= argc)
		usage();
	image = make_image(argv[i], nr_blocks, nr_inodes, nr_log);
	while (++i < argc)
		add_file(&image, argv[i]);
	if (check_image(&image))
		die("%s: what was made is wrong; this is a fault of mkfs", image.path);
	store_image(&image);
	free(image.data);
	return 0;
}
