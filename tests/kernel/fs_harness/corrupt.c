/* SPDX-License-Identifier: MIT */
/*
 * corrupt.c - broken images: a mount refuses and says why, or, where the damage
 * does not show, what is mounted works. It never crashes, and never hangs.
 */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../hosts/kernel/kernel/inode.h"
#include "../../../hosts/kernel/kernel/log.h"
#include "model.h"

/* A few bytes somewhere in what is not data; sometimes the image is cut short. */
static void damage(u8 *image, u32 *nr_blocks, u32 nr_meta)
{
	static const u32 values[] = { 0, 1, 0xffffffff, 0x7fffffff, 0x8000, 255, 65535 };
	u32 nr = 1 + random_below(3);

	if (random_below(50) == 0)
		*nr_blocks = 1 + random_below(*nr_blocks);
	while (nr--) {
		u32 *word = (u32 *)image + random_below(nr_meta * BSIZE / 4);

		/* The log is long, and mostly not in use: less often than its share. */
		if (random_below(2))
			word = (u32 *)image + (nr_meta - 16) * BSIZE / 4 +
			       random_below(16 * BSIZE / 4);
		else if (random_below(4) == 0)
			word = (u32 *)(image + BSIZE) + random_below(8);
		switch (random_below(4)) {
		case 0:
			*word = values[random_below(7)];
			break;
		case 1:
			*word ^= 1u << random_below(32);
			break;
		case 2:
			*word += (int)random_below(5) - 2;
			break;
		case 3:
			*word = random_below(2000);
			break;
		}
	}
}

#define REFUSED 3	/* an exit status that no crash has */

/* Return: exit status, 0: mounted. */
static int try_to_mount(u8 *image, u32 nr_blocks)
{
	is_quiet = true;
	alarm(20); /* it does not hang */
	current = proc_new();
	disk_use(image, nr_blocks);
	if (fs_init() < 0) {
		CHECK(!strncmp(last_printk, "fs: refused: ", 13), "refused with \"%s\"",
		      last_printk);
		return REFUSED;
	}
	kernel_tree_hash();
	random_begin(2);
	fs_sync();
	check_disk("after a mount that was not refused");
	return 0;
}

/* A file system with something in it, made by a process of its own. */
static void fill(u8 *image, u32 nr_blocks)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork fails");
	if (!pid) {
		disk_use(image, nr_blocks);
		CHECK(fs_init() == 0, "an empty file system is refused");
		random_begin(2);
		random_ops(600, NULL);
		fs_sync();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

void run_corrupt(u32 nr_images)
{
	u32 nr_blocks = 400, nr_refused = 0, nr_meta;
	size_t bytes = (size_t)nr_blocks * BSIZE;
	u8 *good = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	u8 *bad = good + bytes;

	CHECK(good != MAP_FAILED, "no memory");
	format(good, nr_blocks, 64, 1 + OP_BLOCKS);
	nr_meta = ((struct superblock *)(good + BSIZE))->bmapstart + 8;
	fill(good, nr_blocks);
	fflush(NULL);
	for (u32 i = 0; i < nr_images; i++) {
		u32 size = nr_blocks;
		int status;
		pid_t pid;

		memcpy(bad, good, bytes);
		damage(bad, &size, nr_meta);
		pid = fork();
		CHECK(pid >= 0, "fork fails");
		if (!pid)
			_exit(try_to_mount(bad, size));
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == REFUSED),
		      "image %u: status 0x%x", i, status);
		nr_refused += WEXITSTATUS(status) == REFUSED;
	}
	printf("corrupt: %u images, %u refused\n", nr_images, nr_refused);
}
