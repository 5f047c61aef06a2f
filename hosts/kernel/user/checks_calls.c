/* SPDX-License-Identifier: MIT */
/*
 * checks_calls.c - every system call with every kind of bad pointer, and numbers
 * that are no system call.
 *
 * Read next: chaos.c, which no longer knows what should come out.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "kernel/file.h"
#include "kernel/riscv.h"
#include "kernel/syscall.h"
#include "user/checks.h"
#include "user/user.h"

static void unknown_numbers(void)
{
	static const long numbers[] = {
		0,    -1,	  NR_SYSCALLS, NR_SYSCALLS + 1,
		1000, 0x7fffffff, 0x100000001, (long)0x8000000000000000,
	};

	for (int i = 0; i < 8; i++)
		CHECK_EQUAL(check_call(numbers[i], 1, 2, 3, 4, 5, 6), -1);
}

/* Calls that take one pointer, where; -1 is all that may come back. */
static void pointers_are_checked(void)
{
	static const struct {
		int number, place;
		long others;
	} calls[] = {
		{ SYS_pipe, 0, 0 },	  { SYS_exec, 0, 0 },	     { SYS_fstat, 1, 0 },
		{ SYS_chdir, 0, 0 },	  { SYS_open, 0, O_CREATE }, { SYS_mknod, 0, 1 },
		{ SYS_unlink, 0, 0 },	  { SYS_link, 0, 0 },	     { SYS_link, 1, 0 },
		{ SYS_mkdir, 0, 0 },	  { SYS_setpolicy, 0, 0 },   { SYS_getpinfo, 0, 0 },
		{ SYS_syncs, 0, 1 },	  { SYS_procs, 0, 2 },	     { SYS_memstat, 0, 0 },
		{ SYS_getpolicy, 1, 64 },
	};

	for (int i = 0; i < (int)(sizeof(calls) / sizeof(calls[0])); i++) {
		for (int k = 0; check_wild[k]; k++) {
			long a[3] = { calls[i].others, calls[i].others, calls[i].others };

			if (calls[i].number == SYS_link)
				a[!calls[i].place] = (long)"/echo";
			if (calls[i].number == SYS_fstat || calls[i].number == SYS_getpolicy)
				a[0] = 0;
			a[calls[i].place] = check_wild[k];
			if (check_call(calls[i].number, a[0], a[1], a[2], 0, 0, 0) != -1) {
				printf("\n  call %d with address 0x%lx\n", calls[i].number,
				       check_wild[k]);
				exit(1);
			}
		}
	}
}

/* Buffers of read() and write(), for each kind of file. */
static void buffers_are_checked(void)
{
	int fds[2], file = open("f", O_CREATE | O_RDWR), null;

	CHECK(file >= 0);
	CHECK_EQUAL(write(file, "abcdefgh", 8), 8);
	close(file);
	file = open("f", O_RDWR);
	CHECK_EQUAL(pipe(fds), 0);
	CHECK_EQUAL(write(fds[1], "abcdefgh", 8), 8);
	null = open("/console", O_RDWR);
	CHECK(null >= 0);
	for (int k = 0; check_wild[k]; k++) {
		void *wild = (void *)check_wild[k];

		CHECK_EQUAL(read(file, wild, 8), -1);
		CHECK_EQUAL(write(file, wild, 8), -1);
		CHECK_EQUAL(read(fds[0], wild, 4) > 0, 0);
		CHECK_EQUAL(write(fds[1], wild, 4) > 0, 0);
		CHECK_EQUAL(write(null, wild, 8), -1);
		CHECK_EQUAL(write(1, wild, 0x7fffffff) > 0, 0);
	}
	/* Text can be written from, and not read into. */
	CHECK_EQUAL(read(file, (void *)0, 4), -1);
	CHECK_EQUAL(read(file, (void *)buffers_are_checked, 4), -1);
	CHECK_EQUAL(write(fds[1], (void *)0, 16) > 0, 1);
	CHECK_EQUAL(unlink("f"), 0);
}

/* Lengths that lie: more than the buffer, more than the memory. */
static void lengths_are_checked(void)
{
	char *end;
	int fd = open("f", O_CREATE | O_RDWR), fds[2];

	sbrk(PGSIZE - (uint64)sbrk(0) % PGSIZE);
	end = sbrk(0);
	CHECK(write(fd, end - 100, 200) < 200);
	CHECK(write(fd, end - 100, 0x7fffffff) < 200);
	CHECK_EQUAL(write(fd, end - 100, -1), -1);
	CHECK_EQUAL(write(fd, end - 100, (int)0x80000000), -1);
	CHECK_EQUAL(read(fd, end - 100, -1), -1);
	close(fd);
	CHECK_EQUAL(unlink("f"), 0);
	CHECK_EQUAL(pipe(fds), 0);
	CHECK(write(fds[1], end - 100, 200) < 200);
}

static void wait_with_bad_address(void)
{
	for (int k = 0; check_wild[k]; k++) {
		if (check_fork() == 0)
			exit(0);
		/* An error; whether the child is gone then is not promised. */
		CHECK_EQUAL(check_call(SYS_wait, check_wild[k], 0, 0, 0, 0, 0), -1);
		while (wait(0) >= 0)
			;
	}
}

static void exec_with_bad_arguments(void)
{
	char *argv[3] = { "x", 0, 0 };

	for (int k = 0; check_wild[k]; k++) {
		argv[1] = (char *)check_wild[k];
		CHECK_EQUAL(exec("/echo", argv), -1);
		CHECK_EQUAL(exec("/echo", (char **)check_wild[k]), -1);
	}
}

/* 8-byte arguments where 4 are looked at, and the other way round. */
static void wide_arguments(void)
{
	CHECK_EQUAL(check_call(SYS_close, 0x1234567800000063, 0, 0, 0, 0, 0), -1);
	CHECK_EQUAL(check_call(SYS_kill, (long)0x8000000000000000, 0, 0, 0, 0, 0), -1);
	CHECK_EQUAL(check_call(SYS_kill, 0x7fffffff00000000, 0, 0, 0, 0, 0), -1);
	CHECK(check_call(SYS_sbrk, 0, 0, 0, 0, 0, 0) > 0);
	/* A time long past, and one that never comes: killed first. */
	CHECK_EQUAL(check_call(SYS_sleep_until_ns, 0, 0, 0, 0, 0, 0), 0);
	for (int i = 0; i < 2; i++) {
		int pid = check_fork();

		if (pid == 0) {
			check_call(SYS_sleep_until_ns, i ? -1 : 0x7fffffffffffffff, 0, 0, 0, 0, 0);
			for (;;)
				sleep(1000);
		}
		sleep(1);
		CHECK_EQUAL(kill(pid), 0);
		CHECK_EQUAL(check_wait(), -1);
	}
}

const struct check checks_calls[] = {
	{ "unknown-numbers", unknown_numbers, 0 },
	{ "pointers-are-checked", pointers_are_checked, 0 },
	{ "buffers-are-checked", buffers_are_checked, 0 },
	{ "lengths-are-checked", lengths_are_checked, 0 },
	{ "wait-with-bad-address", wait_with_bad_address, 0 },
	{ "exec-with-bad-arguments", exec_with_bad_arguments, 0 },
	{ "wide-arguments", wide_arguments, 0 },
	{ 0, 0, 0 },
};
