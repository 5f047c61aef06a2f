/* SPDX-License-Identifier: MIT */
/*
 * threads.c - several processes at once, on threads of this machine, beside one
 * thread that is the disk and the timer.
 *
 * Each has a folder of its own, where it knows what must be there, and all meet in
 * one where they create, link and remove the same few names; pairs talk by pipes.
 * In the end nothing is lost, and the disk is in order.
 */
#include "harness.h"

#include <pthread.h>
#include <string.h>

#include "../../../hosts/kernel/kernel/fcntl.h"
#include "../../../hosts/kernel/kernel/file.h"
#include "../../../hosts/kernel/kernel/inode.h"
#include "../../../hosts/kernel/kernel/log.h"

#define THREADS_MAX 16
#define SLICE (USER_BYTES / THREADS_MAX)

uint64 sys_read(void), sys_write(void), sys_close(void), sys_fsync(void);
uint64 sys_link(void), sys_unlink(void), sys_open(void), sys_mkdir(void);

static struct job {
	u32 idx, nr_ops;
	struct proc *proc;
	struct file *in, *out; /* a pipe from the neighbour, one to the other */
	u8 *memory;	       /* its part of user_memory */
} jobs[THREADS_MAX];

static bool is_over;
static u64 seed;

static void *be_the_disk(void *arg)
{
	current = arg;
	random_state = seed ^ 0x9e3779b97f4a7c15ULL;
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		if (!disk_step())
			timers_run(1000000);
	}
	return NULL;
}

static char *path(struct job *j, const char *format, u32 a, u32 b)
{
	snprintf((char *)j->memory, 64, format, a, b);
	return (char *)j->memory;
}

/* Write a file of its own, read it again, and sometimes remove it. */
static void own_file(struct job *j, u32 op)
{
	u32 n = 1 + random_below(SLICE - 200), which = random_below(4);
	u8 *data = j->memory + 100;
	int fd;

	fd = syscall3(sys_open, (uint64)path(j, "/own%u/file%u", j->idx, which),
		      O_CREATE | O_RDWR | O_TRUNC, 0);
	CHECK(fd >= 0, "a file of its own cannot be made");
	memset(data, op, n);
	CHECK((u32)syscall3(sys_write, fd, (uint64)data, n) == n, "write");
	if (random_below(8) == 0)
		CHECK((int)syscall3(sys_fsync, fd, 0, 0) == 0, "fsync");
	syscall3(sys_close, fd, 0, 0);
	memset(data, 0, n);
	fd = syscall3(sys_open, (uint64)path(j, "/own%u/file%u", j->idx, which), O_RDONLY, 0);
	CHECK((u32)syscall3(sys_read, fd, (uint64)data, SLICE - 100) == n, "read");
	for (u32 i = 0; i < n; i++)
		CHECK(data[i] == (u8)op, "byte %u is %u", i, data[i]);
	syscall3(sys_close, fd, 0, 0);
	if (random_below(3) == 0)
		CHECK((int)syscall3(sys_unlink, (uint64)path(j, "/own%u/file%u", j->idx, which), 0,
				    0) == 0,
		      "unlink");
}

/* Anything may happen to these names; only the kernel must stay in order. */
static void shared_names(struct job *j)
{
	u32 a = random_below(4), b = random_below(4);
	char *first = path(j, "/all/%u/%u", a, b), *second = first + 64;
	int fd;

	snprintf(second, 64, "/all/%u/%u", b, a);
	switch (random_below(5)) {
	case 0:
		fd = syscall3(sys_open, (uint64)first, O_CREATE | O_RDWR, 0);
		if (fd >= 0) {
			syscall3(sys_write, fd, (uint64)j->memory, random_below(3000));
			syscall3(sys_close, fd, 0, 0);
		}
		break;
	case 1:
		syscall3(sys_link, (uint64)first, (uint64)second, 0);
		break;
	case 2:
		syscall3(sys_unlink, (uint64)first, 0, 0);
		break;
	case 3:
		syscall3(sys_mkdir, (uint64)first, 0, 0);
		break;
	case 4:
		first[6] = 0; /* the folder itself */
		if (random_below(2))
			syscall3(sys_unlink, (uint64)first, 0, 0);
		else
			syscall3(sys_mkdir, (uint64)first, 0, 0);
		break;
	}
}

/* Bytes go round the ring of threads; all write before they read, and no more
 * than the pipe holds, so nobody waits for ever. */
static void talk(struct job *j, u32 round)
{
	u32 n = 1 + round % 500, done = 0;
	int got;

	memset(j->memory, round, n);
	CHECK(j->out->ops->write(j->out, (uint64)j->memory, n) == (int)n, "pipe");
	while (done < n) {
		got = j->in->ops->read(j->in, (uint64)j->memory, n - done);
		CHECK(got > 0, "the pipe is closed");
		for (int i = 0; i < got; i++)
			CHECK(j->memory[i] == (u8)round, "the pipe has a wrong byte");
		done += got;
	}
}

static void *work(void *arg)
{
	struct job *j = arg;

	current = j->proc;
	random_state = seed + j->idx * 7919 + 1;
	CHECK((int)syscall3(sys_mkdir, (uint64)path(j, "/own%u", j->idx, 0), 0, 0) == 0, "mkdir");
	for (u32 op = 0; op < j->nr_ops; op++) {
		if (op % 8 == 0)
			talk(j, op / 8);
		else if (random_below(2))
			own_file(j, op);
		else
			shared_names(j);
	}
	return NULL;
}

void run_threads(u32 nr_threads, u32 nr_ops)
{
	u8 *image = calloc(DISK_BLOCKS_MAX, BSIZE);
	pthread_t threads[THREADS_MAX], disk_thread;
	struct file *ends[THREADS_MAX][2];

	seed = random_state;
	format(image, DISK_BLOCKS_MAX, 256, 1 + LOG_BLOCKS_MAX);
	disk_use(image, DISK_BLOCKS_MAX);
	is_threaded = true;
	pthread_create(&disk_thread, NULL, be_the_disk, proc_new());
	current = proc_new();
	CHECK(fs_init() == 0, "an empty file system is refused");
	strcpy((char *)user_memory, "/all");
	CHECK((int)syscall3(sys_mkdir, (uint64)user_memory, 0, 0) == 0, "mkdir");
	for (u32 i = 0; i < nr_threads; i++)
		CHECK(pipealloc(&ends[i][0], &ends[i][1]) == 0, "pipe");
	for (u32 i = 0; i < nr_threads; i++) {
		jobs[i] = (struct job){ i,
					nr_ops,
					proc_new(),
					ends[i][0],
					ends[(i + 1) % nr_threads][1],
					user_memory + i * SLICE };
		pthread_create(&threads[i], NULL, work, &jobs[i]);
	}
	for (u32 i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	for (u32 i = 0; i < nr_threads; i++) {
		fileclose(ends[i][0]);
		fileclose(ends[i][1]);
	}
	fs_sync();
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	pthread_join(disk_thread, NULL);
	is_threaded = false;
	CHECK(nr_files_open() == 0 && nr_inodes_in_use() == 0, "%u files, %u inodes left",
	      nr_files_open(), nr_inodes_in_use());
	kernel_tree_hash();
	fs_sync();
	check_disk("after all threads");
	printf("threads: %u of them, %u operations each\n", nr_threads, nr_ops);
}

/* ---- one switch, where it hurts most -------------------------------------- */

static struct proc *other;
static u32 other_bytes;

/* Called when a file was freed, before who did it lets go of the inode. */
static void use_it_again(const struct spinlock *lock)
{
	struct proc *before = current;
	int fd;

	if (strcmp(lock->name, "free inodes") != 0)
		return;
	after_release = NULL;
	current = other;
	strcpy((char *)user_memory, "/b");
	fd = syscall3(sys_open, (uint64)user_memory, O_CREATE | O_RDWR, 0);
	CHECK((u32)syscall3(sys_write, fd, (uint64)user_memory, other_bytes) == other_bytes,
	      "write");
	CHECK((int)syscall3(sys_close, fd, 0, 0) == 0, "close");
	CHECK((int)syscall3(sys_unlink, (uint64)user_memory, 0, 0) == 0, "unlink");
	current = before;
}

/*
 * While one process closes a file that has no name any more, another one makes,
 * fills and removes a file of the same number. In the end both are gone.
 */
void run_reuse(u32 nr_bytes)
{
	u8 *image = calloc(DISK_BLOCKS_MAX, BSIZE);
	u32 blocks, inodes;
	int fd;

	format(image, DISK_BLOCKS_MAX, 256, 1 + LOG_BLOCKS_MAX);
	disk_use(image, DISK_BLOCKS_MAX);
	CHECK(fs_init() == 0, "an empty file system is refused");
	other = proc_new();
	other_bytes = nr_bytes;
	blocks = nr_blocks_free();
	inodes = nr_inodes_free();
	strcpy((char *)user_memory, "/a");
	fd = syscall3(sys_open, (uint64)user_memory, O_CREATE | O_RDWR, 0);
	CHECK((int)syscall3(sys_unlink, (uint64)user_memory, 0, 0) == 0, "unlink");
	after_release = use_it_again;
	CHECK((int)syscall3(sys_close, fd, 0, 0) == 0, "close");
	CHECK(!after_release, "closing the last descriptor frees no inode");
	CHECK(nr_blocks_free() == blocks && nr_inodes_free() == inodes,
	      "%u blocks and %u inodes are lost", blocks - nr_blocks_free(),
	      inodes - nr_inodes_free());
	fs_sync();
	check_disk("at the end");
	printf("reuse: %u bytes, nothing lost\n", nr_bytes);
}
