/* SPDX-License-Identifier: MIT */
/*
 * checks_limits.c - what happens when descriptors, blocks, inodes, arguments or
 * processes are used up: -1, and all of it comes back.
 *
 * Read next: checks_procs.c.
 */
#include "kernel/types.h"
#include "kernel/param.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "kernel/fs.h"
#include "lab/procinfo.h"
#include "kernel/riscv.h"
#include "user/checks.h"
#include "user/user.h"

static void out_of_descriptors(void)
{
	int nr = 0, fds[2] = { -7, -7 };

	while (dup(0) >= 0)
		nr++;
	CHECK_EQUAL(nr, NOFILE - 3);
	CHECK_EQUAL(open("/", O_RDONLY), -1);
	CHECK_EQUAL(open("new", O_CREATE | O_RDWR), -1);
	CHECK_EQUAL(pipe(fds), -1);
	CHECK_EQUAL(close(NOFILE - 1), 0);
	CHECK_EQUAL(pipe(fds), -1); /* it takes two */
	CHECK_EQUAL(open("/", O_RDONLY), NOFILE - 1);
	unlink("new"); /* it may have been made */
}

/* Many files at once, by many processes; one that gets none is told so. */
static void many_open_files(void)
{
	enum { CHILDREN = 40 };
	int fds[2], status;

	CHECK_EQUAL(pipe(fds), 0);
	for (int child = 0; child < CHILDREN; child++) {
		int nr = 0;

		if (check_fork())
			continue;
		close(fds[1]);
		while (open("/echo", O_RDONLY) >= 0)
			nr++;
		read(fds[0], &status, 1); /* until the parent closes it */
		exit(nr > 0 ? 0 : 1);
	}
	sleep(2);
	close(fds[1]);
	close(fds[0]);
	for (int child = 0; child < CHILDREN; child++)
		check_wait();
	CHECK((status = open("/echo", O_RDONLY)) >= 0);
}

static void largest_file(void)
{
	static char block[BSIZE];
	int fd = open("big", O_CREATE | O_RDWR), nr = 0;

	CHECK(fd >= 0);
	while (write(fd, block, BSIZE) == BSIZE)
		nr++;
	CHECK_EQUAL(nr, MAXFILE);
	CHECK_EQUAL(write(fd, block, 1), -1);
	close(fd);
	CHECK_EQUAL(unlink("big"), 0);
}

static void out_of_blocks(void)
{
	static char block[BSIZE];
	char name[16];
	int nr_files = 0, fd, bytes;

	do {
		snprintf(name, sizeof(name), "big%d", nr_files++);
		fd = open(name, O_CREATE | O_RDWR);
		if (fd < 0)
			break; /* no block for the folder either */
		for (int i = 0; i < (int)MAXFILE; i++) {
			bytes = write(fd, block, BSIZE);
			if (bytes != BSIZE)
				break;
		}
		close(fd);
	} while (bytes == BSIZE && nr_files < 10000);
	CHECK(nr_files < 10000);
	mkdir("d"); /* no room: -1, and nothing half made */
	unlink("d");
	for (int i = 0; i < nr_files; i++) {
		snprintf(name, sizeof(name), "big%d", i);
		CHECK(unlink(name) == 0 || i == nr_files - 1);
	}
	check_make_file("f", 20000);
	check_content("f", 20000);
	CHECK_EQUAL(unlink("f"), 0);
}

static void out_of_inodes(void)
{
	char name[16];
	int nr = 0, fd;

	for (;;) {
		if (nr % 50 == 0) {
			snprintf(name, sizeof(name), "d%d", nr / 50);
			if (mkdir(name) < 0)
				break;
		}
		snprintf(name, sizeof(name), "d%d/%d", nr / 50, nr);
		fd = open(name, O_CREATE | O_RDWR);
		if (fd < 0)
			break;
		close(fd);
		nr++;
	}
	CHECK(nr > 0 && nr < 100000);
	CHECK_EQUAL(open("another", O_CREATE | O_RDWR), -1);
	CHECK_EQUAL(mkdir("another"), -1);
	for (int i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "d%d/%d", i / 50, i);
		CHECK_EQUAL(unlink(name), 0);
	}
	for (int i = 0; i <= nr / 50; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		unlink(name);
	}
	check_make_file("f", 10);
	CHECK_EQUAL(unlink("f"), 0);
}

/* More processes than there can be; each one that exists can still be ended. */
static void fork_until_it_fails(void)
{
	int nr = 0, pid, fds[2];
	char c;

	CHECK_EQUAL(pipe(fds), 0);
	for (;;) {
		pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			close(fds[1]);
			read(fds[0], &c, 1);
			exit(3);
		}
		nr++;
	}
	CHECK(nr > 10);
	CHECK_EQUAL(fork(), -1);
	CHECK_EQUAL(forkheld(0), -1);
	close(fds[1]);
	for (int i = 0; i < nr; i++)
		CHECK_EQUAL(check_wait(), 3);
	CHECK_EQUAL(wait(0), -1);
	CHECK((pid = fork()) >= 0);
	if (pid == 0)
		exit(0);
	CHECK_EQUAL(check_wait(), 0);
}

static void bomb(int depth)
{
	while (fork() >= 0)
		if (--depth < 0)
			return;
}

/* Each process forks until that fails, and ends; init takes the orphans. */
static void fork_bomb(void)
{
	int pid = check_fork();

	if (pid == 0) {
		bomb(1000);
		exit(0);
	}
	CHECK(check_wait() == 0);
}

static void arguments_of_exec(void)
{
	static char big[PGSIZE];
	static char *argv[MAXARG + 2];
	int status;

	for (int i = 0; i < MAXARG + 1; i++)
		argv[i] = "x";
	CHECK_EQUAL(exec("/echo", argv), -1); /* one too many */
	memset(big, 'y', sizeof(big) - 1);
	argv[1] = big;
	argv[2] = big;
	argv[3] = 0;
	CHECK_EQUAL(exec("/echo", argv), -1); /* more than the stack holds */
	argv[1] = 0;
	CHECK_EQUAL(exec("/nothing", argv), -1);
	CHECK_EQUAL(exec("/", argv), -1);
	CHECK_EQUAL(exec("", argv), -1);
	CHECK_EQUAL(exec("/echo", (char **)0xffffffff00000000), -1);
	CHECK_EQUAL(exec((char *)0x3fffffe000, argv), -1);
	argv[0] = (char *)check_wild[0];
	CHECK_EQUAL(exec("/echo", argv), -1);
	/* As many as are allowed. */
	if (check_fork() == 0) {
		for (int i = 0; i < MAXARG - 1; i++)
			argv[i] = "x";
		argv[MAXARG - 1] = 0;
		close(1);
		exec("/echo", argv);
		exit(9);
	}
	CHECK(wait(&status) > 0);
	CHECK_EQUAL(status, 0);
}

/* Run a program that may do anything; end it if it does not end by itself. */
static void run_guarded(const char *path)
{
	static char *argv[] = { "x", 0 };
	int pid = check_fork(), guard;

	if (pid == 0) {
		close(1);
		exec(path, argv);
		exit(5);
	}
	guard = check_fork();
	if (guard == 0) {
		sleep(50);
		kill(pid);
		exit(0);
	}
	while (wait(0) != pid)
		guard = 0;
	if (guard) {
		kill(guard);
		check_wait();
	}
}

/* Files that are no programs, or broken ones. */
static void exec_of_broken_files(void)
{
	static char program[40000];
	static char *argv[] = { "x", 0 };
	unsigned long seed = 3;
	int fd, bytes;

	check_make_file("text", 3000);
	CHECK_EQUAL(exec("text", argv), -1);
	check_make_file("empty", 0);
	CHECK_EQUAL(exec("empty", argv), -1);
	fd = open("/echo", O_RDONLY);
	bytes = read(fd, program, sizeof(program));
	close(fd);
	CHECK(bytes > 200);
	for (int i = 0; i < 60; i++) {
		int cut = i % 2 ? bytes : (int)(check_random(&seed) % bytes);
		char saved = program[i * 3 % 180];

		/* Cut short, or one byte of its headers changed. */
		if (i % 2)
			program[i * 3 % 180] ^= 1 << check_random(&seed) % 8;
		fd = open("broken", O_CREATE | O_TRUNC | O_WRONLY);
		CHECK_EQUAL(write(fd, program, cut), cut);
		close(fd);
		program[i * 3 % 180] = saved;
		run_guarded("broken");
	}
	CHECK_EQUAL(unlink("broken"), 0);
	CHECK_EQUAL(unlink("text"), 0);
	CHECK_EQUAL(unlink("empty"), 0);
}

const struct check checks_limits[] = {
	{ "out-of-descriptors", out_of_descriptors, 0 },
	{ "many-open-files", many_open_files, CHECK_ALONE },
	{ "largest-file", largest_file, 0 },
	{ "out-of-blocks", out_of_blocks, CHECK_ALONE | CHECK_LONG },
	{ "out-of-inodes", out_of_inodes, CHECK_ALONE | CHECK_LONG },
	{ "fork-until-it-fails", fork_until_it_fails, CHECK_ALONE | CHECK_LONG },
	{ "fork-bomb", fork_bomb, CHECK_ALONE | CHECK_LONG },
	{ "arguments-of-exec", arguments_of_exec, 0 },
	{ "exec-of-broken-files", exec_of_broken_files, 0 },
	{ 0, 0, 0 },
};
