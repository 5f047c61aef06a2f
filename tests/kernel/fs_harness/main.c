/* SPDX-License-Identifier: MIT */
/*
 * main.c - fs_harness SEED MODE ARGUMENTS
 *
 *	random OPS BLOCKS	against the model, on a disk of BLOCKS
 *	threads THREADS OPS	several at once
 *	reuse BYTES		an inode is used again while it is let go
 *	crash OPS CUTS		power cuts after one history
 *	corrupt IMAGES		broken images
 *	mount IMAGE		mount a file, free its orphans, write it back
 *
 * Read next: random.c.
 */
#include "harness.h"

#include <string.h>

#include "../../../hosts/kernel/kernel/file.h"
#include "../../../hosts/kernel/mkfs/fscheck.h"
#include "../../../hosts/kernel/kernel/inode.h"
#include "../../../hosts/kernel/kernel/stat.h"

/* The kernel's tables live as long as it does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

static bool read_disk(u32 block, void *to)
{
	if (block >= disk_blocks)
		return false;
	memcpy(to, disk + (u64)block * BSIZE, BSIZE);
	return true;
}

static void say(const char *fmt, va_list args)
{
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

void check_disk(const char *when)
{
	static struct fs_check c;
	void *memory;

	c = (struct fs_check){
		.nr_device_blocks = disk_blocks, .read = read_disk, .say = say, .is_thorough = true
	};
	while (disk_step())
		; /* what is committed gets installed */
	CHECK(fs_check_super(&c), "%s", when);
	memory = malloc(fs_check_bytes(&c));
	CHECK(memory && fs_check_all(&c, memory), "%s", when);
	free(memory);
	CHECK(c.nr_blocks_free == nr_blocks_free(), "%s: %u blocks are free, the kernel says %u",
	      when, c.nr_blocks_free, nr_blocks_free());
	CHECK(c.nr_inodes_free == nr_inodes_free(), "%s: %u inodes are free, the kernel says %u",
	      when, c.nr_inodes_free, nr_inodes_free());
}

/* The root and nothing else, as mkfs makes it. */
void format(u8 *image, u32 nr_blocks, u32 nr_inodes, u32 nr_log)
{
	struct superblock *sb = (struct superblock *)(image + BSIZE);
	struct dirent *e;
	struct dinode *root;
	u32 data;

	memset(image, 0, (size_t)nr_blocks * BSIZE);
	*sb = (struct superblock){
		.magic = FSMAGIC,
		.size = nr_blocks,
		.ninodes = nr_inodes,
		.nlog = nr_log,
		.logstart = 2,
		.inodestart = 2 + nr_log,
		.bmapstart = 2 + nr_log + (nr_inodes + IPB - 1) / IPB,
	};
	data = sb->bmapstart + (nr_blocks + BPB - 1) / BPB;
	sb->nblocks = nr_blocks - data;
	for (u32 block = 0; block <= data; block++)
		image[BBLOCK(block, *sb) * BSIZE + block % BPB / 8] |= 1 << block % 8;
	root = (struct dinode *)(image + sb->inodestart * BSIZE) + ROOTINO;
	root->type = T_DIR;
	root->nlink = 1;
	root->size = 2 * sizeof(*e);
	root->addrs[0] = data;
	e = (struct dirent *)(image + data * BSIZE);
	e[0] = (struct dirent){ ROOTINO, "." };
	e[1] = (struct dirent){ ROOTINO, ".." };
}

void run_mount(const char *path)
{
	FILE *file = fopen(path, "r+b");
	size_t blocks;
	u8 *image;

	CHECK(file, "%s cannot be opened", path);
	fseek(file, 0, SEEK_END);
	blocks = ftell(file) / BSIZE;
	rewind(file);
	image = malloc(blocks * BSIZE);
	CHECK(image && fread(image, BSIZE, blocks, file) == blocks, "%s", path);
	disk_use(image, blocks);
	current = proc_new();
	if (fs_init() < 0)
		exit(1);
	fs_sync();
	check_disk("after the mount");
	rewind(file);
	CHECK(fwrite(image, BSIZE, blocks, file) == blocks && !fclose(file), "%s", path);
	printf("mounted: %u blocks and %u inodes free\n", nr_blocks_free(), nr_inodes_free());
}

int main(int argc, char **argv)
{
	u32 a = argc > 3 ? atoi(argv[3]) : 0, b = argc > 4 ? atoi(argv[4]) : 0;

	CHECK(argc > 3, "usage: fs_harness SEED MODE ARGUMENTS, see main.c");
	random_state += strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15ULL;
	user_memory = malloc(USER_BYTES);
	current = proc_new();
	file_init();
	if (!strcmp(argv[2], "random"))
		run_random(a, b);
	else if (!strcmp(argv[2], "threads"))
		run_threads(a, b);
	else if (!strcmp(argv[2], "reuse"))
		run_reuse(a);
	else if (!strcmp(argv[2], "crash"))
		run_crash(a, b);
	else if (!strcmp(argv[2], "corrupt"))
		run_corrupt(a);
	else if (!strcmp(argv[2], "mount"))
		run_mount(argv[3]);
	else
		CHECK(false, "no mode is called %s", argv[2]);
	return 0;
}
