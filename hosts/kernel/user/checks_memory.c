/* SPDX-License-Identifier: MIT */
/*
 * checks_memory.c - sbrk(), copy-on-write, floating point, memory used up.
 *
 * Read next: checks_faults.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "kernel/memlayout.h"
#include "kernel/riscv.h"
#include "kernel/syscall.h"
#include "lab/procinfo.h"
#include "user/checks.h"
#include "user/user.h"

/* Pages are zero when they come, keep what is written, and go. */
static void sbrk_grows_and_shrinks(void)
{
	char *start = sbrk(0), *end;

	CHECK(sbrk(5 * PGSIZE) == start);
	for (int i = 0; i < 5 * PGSIZE; i++)
		CHECK(start[i] == 0);
	memset(start, 0x5a, 5 * PGSIZE);
	end = sbrk(0);
	CHECK(end == start + 5 * PGSIZE);
	CHECK(sbrk(-3 * PGSIZE) == end);
	CHECK(sbrk(0) == start + 2 * PGSIZE);
	CHECK(start[2 * PGSIZE - 1] == 0x5a);
	CHECK(sbrk(3 * PGSIZE) == start + 2 * PGSIZE);
	/* The pages that come back must not show what was in them. */
	for (char *at = (char *)PGROUNDUP((uint64)start + 2 * PGSIZE); at < sbrk(0); at++)
		CHECK(*at == 0);
}

static void sbrk_by_single_bytes(void)
{
	char *start = sbrk(0);

	for (int i = 0; i < 2 * PGSIZE; i++) {
		char *at = sbrk(1);

		CHECK(at == start + i);
		*at = i;
	}
	for (int i = 0; i < 2 * PGSIZE; i++)
		CHECK(start[i] == (char)i);
	for (int i = 0; i < 2 * PGSIZE; i++)
		CHECK(sbrk(-1) == start + 2 * PGSIZE - i);
}

static void sbrk_refuses_nonsense(void)
{
	char *end = sbrk(0);

	CHECK(sbrk(0x7fffffff) == SBRK_ERROR);	    /* more than there is */
	CHECK(sbrk((int)0x80000000) == SBRK_ERROR); /* below 0 */
	CHECK(sbrk(-(int)(uint64)end - 1) == SBRK_ERROR);
	CHECK(sbrk(0) == end);
}

/* A process that asks for more than there is takes none from others meanwhile. */
static void too_much_takes_nothing(void)
{
	struct memstat before, now;
	/* Not by uptime(), which stands still while both compute under late_ack=1. */
	unsigned long end_ns = clock_ns() + 60000000;

	CHECK_EQUAL(memstat(&before), 0);
	if (check_fork() == 0) {
		while (clock_ns() < end_ns) {
			CHECK_EQUAL(memstat(&now), 0);
			/* A policy that starts meanwhile takes some, too. */
			CHECK(now.pages_free > before.pages_free / 2);
		}
		exit(0);
	}
	while (clock_ns() < end_ns)
		CHECK(sbrk(0x7fffffff) == SBRK_ERROR);
	CHECK_EQUAL(check_wait(), 0);
}

static void give_back_all(void)
{
	sbrk(-(int)(uint64)sbrk(0));
	/* Its own text may be gone now. */
}

static void give_back_stack(void)
{
	sbrk(3500 - (int)(uint64)sbrk(0));
}

/* A program may give back what it stands on; it ends, and nothing else. */
static void sbrk_below_the_stack(void)
{
	int status = check_status(give_back_all);

	CHECK(status == 0 || status == -1);
	status = check_status(give_back_stack);
	CHECK(status == 0 || status == -1);
	/* An end in the middle of a page, moved within it. */
	CHECK(sbrk(10 * PGSIZE + 2048 - (uint64)sbrk(0) % PGSIZE) != SBRK_ERROR);
	CHECK(sbrk(-10) != SBRK_ERROR);
	*(sbrk(0) - 1) = 1;
}

/* What was given back can neither be read, nor written, nor passed to a call. */
static void given_back_is_gone(void)
{
	char *old = sbrk(4 * PGSIZE) + 2 * PGSIZE;
	int fd = open("file", O_CREATE | O_RDWR);

	CHECK(fd >= 0);
	CHECK(sbrk(-4 * PGSIZE) != SBRK_ERROR);
	CHECK_EQUAL(write(fd, old, 10), -1);
	CHECK_EQUAL(write(fd, "0123456789", 10), 10);
	close(fd);
	fd = open("file", O_RDONLY);
	CHECK_EQUAL(read(fd, old, 10), -1);
	CHECK_EQUAL(unlink("file"), 0);
	for (int is_write = 0; is_write < 2; is_write++) {
		int pid = check_fork();

		if (pid == 0) {
			if (is_write)
				*(volatile char *)old = 1;
			else
				(void)*(volatile char *)old;
			exit(0);
		}
		CHECK_EQUAL(check_wait(), -1);
	}
}

/* Parent and child share pages until one writes: in its own code, or by a call. */
static void copy_on_write_is_private(void)
{
	enum { PAGES = 20 };
	char *mem = sbrk(PAGES * PGSIZE);
	int fds[2], pid;

	memset(mem, 1, PAGES * PGSIZE);
	CHECK_EQUAL(pipe(fds), 0);
	pid = check_fork();
	if (pid == 0) {
		for (int i = 0; i < PAGES; i += 2)
			mem[i * PGSIZE] = 2;
		/* The kernel writes into a shared page. */
		CHECK_EQUAL(write(fds[1], "xy", 2), 2);
		CHECK_EQUAL(read(fds[0], mem + PGSIZE, 2), 2);
		for (int i = 0; i < PAGES; i++)
			CHECK(mem[i * PGSIZE] == (i == 1 ? 'x' : i % 2 ? 1 : 2));
		exit(0);
	}
	CHECK_EQUAL(check_wait(), 0);
	for (int i = 0; i < PAGES * PGSIZE; i++)
		CHECK(mem[i] == 1);
	close(fds[0]);
	close(fds[1]);
}

/* A tree of processes over the same pages; each writes its own number. */
static void copy_on_write_in_a_tree(void)
{
	volatile int *mem = (int *)sbrk(8 * PGSIZE);

	for (int depth = 0; depth < 5; depth++) {
		int pid = check_fork();

		for (int i = 0; i < 8; i++)
			mem[i * PGSIZE / sizeof(int)] = getpid();
		if (pid) {
			CHECK_EQUAL(check_wait(), 0);
			for (int i = 0; i < 8; i++)
				CHECK_EQUAL(mem[i * PGSIZE / sizeof(int)], getpid());
			exit(0);
		}
	}
}

/* A copy that ends in memory that is not there fails, and breaks nothing. */
static void buffers_across_the_end(void)
{
	char *end;
	int fds[2], pid;

	sbrk(PGSIZE - (uint64)sbrk(0) % PGSIZE);
	end = sbrk(0);
	memset(end - 8, 'a', 8);
	CHECK_EQUAL(pipe(fds), 0);
	CHECK_EQUAL(write(fds[1], end - 8, 8), 8);
	CHECK_EQUAL(read(fds[0], end - 8, 8), 8);
	CHECK(write(fds[1], end - 4, 8) <= 4);
	CHECK_EQUAL(open(end - 4, O_RDONLY), -1); /* a string without an end */
	CHECK_EQUAL(wait((int *)(end - 2)), -1);
	CHECK_EQUAL(pipe((int *)(end - 4)), -1);
	/* The second of the two descriptors did not fit: neither may stay open. */
	pid = check_fork();
	if (pid == 0)
		exit(0);
	CHECK_EQUAL(wait((int *)(end - 2)), -1);
	while (wait(0) >= 0)
		;
}

/* Take all memory that is left, by large pieces and then by pages. */
static void fill_memory(void)
{
	while (sbrk(1 << 20) != SBRK_ERROR)
		;
	while (sbrk(PGSIZE) != SBRK_ERROR)
		;
}

/* Calls that need memory: they fail or work, but do no harm. */
static void ask_for_memory(void)
{
	int fds[2], pid;

	if (pipe(fds) == 0) {
		close(fds[0]);
		close(fds[1]);
	}
	pid = fork();
	if (pid == 0)
		exit(0);
	if (pid > 0)
		wait(0);
}

static void out_of_memory(void)
{
	unsigned long nr_bytes = 0;
	int step = 1 << 24;

	/* All of it, ever smaller pieces, and touched. */
	while (step >= PGSIZE) {
		char *mem = sbrk(step);

		if (mem == SBRK_ERROR) {
			step /= 2;
			continue;
		}
		for (int i = 0; i < step; i += PGSIZE)
			mem[i] = 1;
		nr_bytes += step;
	}
	CHECK(nr_bytes > 100UL << 20);
	ask_for_memory();
	CHECK_EQUAL(mkdir("folder"), 0);
	CHECK_EQUAL(unlink("folder"), 0);
}

static void take_all_and_give_back(void)
{
	int bytes = 0;

	while (bytes < 256 << 20 && sbrk(1 << 20) != SBRK_ERROR)
		bytes += 1 << 20;
	if (fork() == 0)
		exit(0);
	sbrk(-bytes);
	wait(0);
}

/* Some go on after memory is out, beside others that need a page now and then. */
static void memory_stays_out(void)
{
	enum { HOGS = 3, OTHERS = 3, TURNS = 200 };
	unsigned long end_ns = clock_ns() + 200000000;

	for (int i = 0; i < HOGS + OTHERS; i++) {
		if (check_fork())
			continue;
		while (i < HOGS && clock_ns() < end_ns)
			take_all_and_give_back();
		for (int nr = 0; i >= HOGS && nr < TURNS;)
			if (sbrk(PGSIZE) != SBRK_ERROR && sbrk(-PGSIZE) != SBRK_ERROR)
				nr++;
		exit(0);
	}
	for (int i = 0; i < HOGS + OTHERS; i++)
		CHECK_EQUAL(check_wait(), 0);
}

/*
 * Copy-on-write promises more than there is: a process that cannot be served is
 * ended.
 */
static void copies_run_out_of_memory(void)
{
	int bytes = 150 << 20, pid;
	char *mem = sbrk(bytes);

	CHECK(mem != SBRK_ERROR);
	for (int i = 0; i < bytes; i += PGSIZE)
		mem[i] = 1;
	pid = check_fork();
	if (pid == 0) {
		for (int i = 0; i < bytes; i += PGSIZE)
			mem[i] = 2;
		exit(0); /* there was room for two copies after all */
	}
	check_wait();
	for (int i = 0; i < bytes; i += PGSIZE)
		CHECK(mem[i] == 1);
}

/* exec() when there is no memory: the caller goes on, or ends with -1. */
static void exec_without_memory(void)
{
	static char *argv[] = { "/echo", 0 };
	int pid, status;

	for (int spare = 0; spare < 40; spare += 4) {
		pid = check_fork();
		if (pid == 0) {
			fill_memory();
			sbrk(-spare * PGSIZE);
			close(1);
			exec(argv[0], argv);
			exit(7);
		}
		CHECK_EQUAL(wait(&status), pid);
		CHECK(status == 7 || status == 0 || status == -1);
	}
}

/* Ask for memory when there is none, again and again, and give back what does come. */
static void go_on_without_memory(void)
{
	fill_memory();
	for (int i = 0; i < 300; i++) {
		if (sbrk(PGSIZE) != SBRK_ERROR)
			sbrk(-PGSIZE);
		ask_for_memory();
	}
}

/*
 * Processes that go on when memory is out keep no other process from going on, and
 * no policy.
 */
static void others_go_on_without_memory(void)
{
	enum { HOGS = 6, OTHERS = 4, NAME_BYTES = 256 };
	char before[NAME_BYTES], after[NAME_BYTES], c = 0;
	int fds[2];

	CHECK(getpolicy(-1, before, sizeof(before)) > 0);
	CHECK_EQUAL(pipe(fds), 0);
	for (int i = 0; i < HOGS + OTHERS; i++) {
		volatile int turns = 0;

		if (check_fork())
			continue;
		/* Each has its stack to itself before any memory is taken. */
		CHECK_EQUAL(read(fds[0], &c, 1), 1);
		if (i < HOGS)
			go_on_without_memory();
		else
			while (turns < 20000000)
				turns++;
		exit(0);
	}
	memset(after, 0, sizeof(after));
	for (int i = 0; i < HOGS + OTHERS; i++)
		CHECK_EQUAL(write(fds[1], &c, 1), 1);
	for (int i = 0; i < HOGS + OTHERS; i++)
		CHECK_EQUAL(check_wait(), 0);
	CHECK(getpolicy(-1, after, sizeof(after)) > 0);
	CHECK(strcmp(before, after) == 0);
}

/* Two processes with other floating-point registers, which get preempted. */
static void floating_point_is_kept(void)
{
	for (int child = 1; child <= 4; child++) {
		if (check_fork() == 0) {
			volatile double kept = child;
			double sum = 0;

			for (int i = 0; i < 3000000; i++)
				sum += kept;
			CHECK(sum == 3000000.0 * child);
			exit(0);
		}
	}
	for (int child = 1; child <= 4; child++)
		CHECK_EQUAL(check_wait(), 0);
}

/* Calls in the middle, and a fork, do not touch them either. */
static void floating_point_and_calls(void)
{
	double kept = 42.5, now;
	long pid;

	asm volatile("fmv.d	fs3, %1\n"
		     "li	t1, 100\n"
		     "1: li	a7, %2\n"
		     "ecall\n"
		     "addi	t1, t1, -1\n"
		     "bnez	t1, 1b\n"
		     "fmv.d	%0, fs3\n"
		     : "=f"(now)
		     : "f"(kept), "i"(SYS_yield)
		     : "fs3", "t1", "a0", "a7", "memory");
	CHECK(now == 42.5);
	asm volatile("fmv.d	fs3, %2\n"
		     "li	a7, %3\n"
		     "ecall\n"
		     "mv	%1, a0\n"
		     "fmv.d	%0, fs3\n"
		     : "=f"(now), "=r"(pid)
		     : "f"(kept), "i"(SYS_fork)
		     : "fs3", "a0", "a7", "memory");
	if (pid == 0)
		exit(now == 42.5 ? 0 : 1);
	CHECK(pid > 0 && now == 42.5);
	CHECK_EQUAL(check_wait(), 0);
}

static void malloc_and_free(void)
{
	enum { BLOCKS = 200 };
	static char *blocks[BLOCKS];
	static uint bytes[BLOCKS];
	unsigned long seed = 5;
	char *end;

	for (int i = 0; i < 5000; i++) {
		int k = check_random(&seed) % BLOCKS;

		for (uint j = 0; blocks[k] && j < bytes[k]; j++)
			CHECK(blocks[k][j] == (char)k);
		free(blocks[k]);
		bytes[k] = check_random(&seed) % 2000;
		blocks[k] = malloc(bytes[k]);
		CHECK(blocks[k]);
		memset(blocks[k], k, bytes[k]);
	}
	for (int k = 0; k < BLOCKS; k++)
		free(blocks[k]);
	/* All of it has become one block again, so this needs no new memory. */
	end = sbrk(0);
	for (int k = 0; k < BLOCKS; k++)
		CHECK((blocks[k] = malloc(1000)));
	CHECK(sbrk(0) == end);
	CHECK(malloc(0xffffffff) == 0 || sbrk(0) > end);
}

const struct check checks_memory[] = {
	{ "sbrk-grows-and-shrinks", sbrk_grows_and_shrinks, 0 },
	{ "sbrk-by-single-bytes", sbrk_by_single_bytes, 0 },
	{ "sbrk-refuses-nonsense", sbrk_refuses_nonsense, 0 },
	{ "too-much-takes-nothing", too_much_takes_nothing, CHECK_ALONE },
	{ "sbrk-below-the-stack", sbrk_below_the_stack, 0 },
	{ "given-back-is-gone", given_back_is_gone, 0 },
	{ "copy-on-write-is-private", copy_on_write_is_private, 0 },
	{ "copy-on-write-in-a-tree", copy_on_write_in_a_tree, 0 },
	{ "buffers-across-the-end", buffers_across_the_end, 0 },
	{ "out-of-memory", out_of_memory, CHECK_ALONE | CHECK_LONG },
	{ "memory-stays-out", memory_stays_out, CHECK_ALONE | CHECK_LONG },
	{ "copies-run-out-of-memory", copies_run_out_of_memory, CHECK_ALONE | CHECK_LONG },
	{ "exec-without-memory", exec_without_memory, CHECK_ALONE | CHECK_LONG },
	{ "others-go-on-without-memory", others_go_on_without_memory,
	  CHECK_ALONE | CHECK_LONG | CHECK_STILL },
	{ "floating-point-is-kept", floating_point_is_kept, 0 },
	{ "floating-point-and-calls", floating_point_and_calls, 0 },
	{ "malloc-and-free", malloc_and_free, 0 },
	{ 0, 0, 0 },
};
