/* SPDX-License-Identifier: MIT */
/*
 * checks_common.c - what the checks share: failing, children, files, wild
 * addresses.
 *
 * Read next: checks_memory.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "kernel/memlayout.h"
#include "kernel/riscv.h"
#include "user/checks.h"
#include "user/user.h"

/* clang-format off */
const unsigned long check_wild[] = {
	KERNBASE,			/* RAM, by its physical address */
	UART0, FINISHER, PLIC,		/* devices, the same way */
	TRAPFRAME, TRAMPOLINE,		/* what xv6 keeps at the top */
	MAXVA, MAXVA + PGSIZE,		/* just behind, the hole of Sv39 */
	0xffffffc080200000,		/* the kernel: text, and the direct map */
	0xffffffc010000000, 0xffffffff00000000, 0xffffffff00003ff8,
	0x8000000000000000, 0xfffffffffffff000, 0xffffffffffffffff,
	0,
};
/* clang-format on */

void check_failed(const char *file, int line, const char *what)
{
	printf("\n  %s:%d: %s does not hold\n", file, line, what);
	exit(1);
}

void check_equal(const char *file, int line, const char *what, long is, long shall_be)
{
	if (is == shall_be)
		return;
	printf("\n  %s:%d: %s is %ld, not %ld\n", file, line, what, is, shall_be);
	exit(1);
}

int check_fork(void)
{
	int pid = fork();

	CHECK(pid >= 0);
	return pid;
}

int check_wait(void)
{
	int status = 12345;

	CHECK(wait(&status) > 0);
	return status;
}

int check_status(void (*child)(void))
{
	int pid = check_fork(), status = 12345;

	if (pid == 0) {
		child();
		exit(0);
	}
	CHECK_EQUAL(wait(&status), pid);
	return status;
}

static char pattern_at(int i)
{
	return (char)(i * 7 + i / 251);
}

void check_make_file(const char *path, int bytes)
{
	char piece[512];
	int fd = open(path, O_CREATE | O_TRUNC | O_WRONLY);

	CHECK(fd >= 0);
	for (int done = 0; done < bytes;) {
		int now = bytes - done < (int)sizeof(piece) ? bytes - done : (int)sizeof(piece);

		for (int i = 0; i < now; i++)
			piece[i] = pattern_at(done + i);
		CHECK_EQUAL(write(fd, piece, now), now);
		done += now;
	}
	CHECK_EQUAL(close(fd), 0);
}

void check_content(const char *path, int bytes)
{
	char piece[512];
	int fd = open(path, O_RDONLY), done = 0, now;

	CHECK(fd >= 0);
	while ((now = read(fd, piece, sizeof(piece))) > 0) {
		for (int i = 0; i < now; i++)
			CHECK(piece[i] == pattern_at(done + i));
		done += now;
	}
	CHECK_EQUAL(now, 0);
	CHECK_EQUAL(done, bytes);
	CHECK_EQUAL(close(fd), 0);
}

long check_call(long number, long a0, long a1, long a2, long a3, long a4, long a5)
{
	register long r0 asm("a0") = a0;
	register long r1 asm("a1") = a1;
	register long r2 asm("a2") = a2;
	register long r3 asm("a3") = a3;
	register long r4 asm("a4") = a4;
	register long r5 asm("a5") = a5;
	register long r7 asm("a7") = number;

	asm volatile("ecall"
		     : "+r"(r0)
		     : "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5), "r"(r7)
		     : "memory");
	return r0;
}

/* Marsaglia's xorshift64; @state must not be 0. */
unsigned int check_random(unsigned long *state)
{
	unsigned long x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return (x * 0x2545f4914f6cdd1dUL) >> 33;
}

/* ---- another policy, again and again --------------------------------------- */

#define POLICY_BYTES 1024

static char policy_before[POLICY_BYTES];

int check_start_switching(unsigned long seed)
{
	static char text[POLICY_BYTES];
	int nr = 0, pid;

	if (getpolicy(-1, policy_before, sizeof(policy_before)) < 0)
		fail("getpolicy() failed");
	while (getpolicy(nr, text, sizeof(text)) >= 0)
		nr++;
	pid = fork();
	if (pid)
		return pid;
	for (;;) {
		sleep_until_ns(clock_ns() + 200000 + check_random(&seed) % 50000000);
		/* -1: the memory that the next one needs is used up just now. */
		if (getpolicy(check_random(&seed) % nr, text, sizeof(text)) >= 0)
			setpolicy(text);
	}
}

int check_stop_switching(int pid)
{
	kill(pid);
	while (wait(0) != pid)
		;
	return setpolicy(policy_before);
}
