/* SPDX-License-Identifier: MIT */
/*
 * bench.c - what the kernel's operations cost, in instructions.
 *
 *	bench [POLICY]
 *
 * As the first program (boot argument init=/bench) it starts the usual one instead,
 * and says when the shell waits for its first key.
 *
 * Prints "NAME VALUE" lines; bench/kernel_bench.py boots a machine that counts
 * instructions, reads them, and puts xv6's figures beside them. Each value is the
 * difference between many and few repetitions, so that neither the loop's start nor
 * the first page faults count.
 *
 * Read next: time.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "lab/procinfo.h"
#include "user/user.h"

#define TICK_NS 10000000UL
#define PRESENT 4000
#define LOOK_EVERY_NS 100000UL

static unsigned long instret(void)
{
	unsigned long n;

	asm volatile("rdinstret %0" : "=r"(n));
	return n;
}

static void say(const char *name, unsigned long value)
{
	printf("%s %lu\n", name, value);
}

/* What one of @do_it's repetitions costs. */
static unsigned long each(unsigned long (*do_it)(int times), int times)
{
	unsigned long few, many;

	do_it(times / 10);
	few = do_it(times / 10);
	many = do_it(times);
	return (many - few) / (times - times / 10);
}

static unsigned long do_getpid(int times)
{
	unsigned long from = instret();

	for (int i = 0; i < times; i++)
		getpid();
	return instret() - from;
}

static unsigned long do_pipe(int times)
{
	unsigned long from;
	char byte = 0;
	int fds[2];

	if (pipe(fds) < 0)
		fail("bench: no pipe");
	from = instret();
	for (int i = 0; i < times; i++)
		if (write(fds[1], &byte, 1) != 1 || read(fds[0], &byte, 1) != 1)
			fail("bench: a pipe lost a byte");
	from = instret() - from;
	close(fds[0]);
	close(fds[1]);
	return from;
}

static unsigned long do_ping_pong(int times)
{
	unsigned long from;
	char byte = 0;
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		fail("bench: no pipe");
	if (fork() == 0) {
		for (int i = 0; i < times; i++)
			if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
				exit(1);
		exit(0);
	}
	from = instret();
	for (int i = 0; i < times; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			fail("bench: the other side is gone");
	from = instret() - from;
	wait(0);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	return from;
}

static int nr_yielders;

/* All yield equally often, and begin together when the gate opens. */
static unsigned long do_yield(int times)
{
	unsigned long from;
	char byte;
	int gate[2];

	if (pipe(gate) < 0)
		fail("bench: no pipe");
	for (int i = 1; i < nr_yielders; i++) {
		if (fork() == 0) {
			close(gate[1]);
			read(gate[0], &byte, 1);
			for (int j = 0; j < times; j++)
				yield();
			exit(0);
		}
	}
	close(gate[0]);
	close(gate[1]);
	from = instret();
	for (int j = 0; j < times; j++)
		yield();
	from = instret() - from;
	for (int i = 1; i < nr_yielders; i++)
		wait(0);
	return from;
}

static void say_yield(const char *name, int yielders)
{
	nr_yielders = yielders;
	say(name, each(do_yield, yielders > 10 ? 200 : 2000) / yielders);
}

static unsigned long do_fork(int times)
{
	unsigned long from = instret();

	for (int i = 0; i < times; i++) {
		if (fork() == 0)
			exit(0);
		wait(0);
	}
	return instret() - from;
}

static unsigned long do_exec(int times)
{
	static char *argv[] = { "/bench", "nothing", 0 };
	unsigned long from = instret();

	for (int i = 0; i < times; i++) {
		if (fork() == 0) {
			exec(argv[0], argv);
			exit(1);
		}
		wait(0);
	}
	return instret() - from;
}

/* Two instructions a round. */
static void spin(unsigned long rounds)
{
	asm volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(rounds));
}

/* Two that only compute: what is not their rounds, the ticks took. */
static unsigned long do_ticks(int ticks)
{
	unsigned long rounds = ticks * (TICK_NS / 4), from;

	from = instret();
	if (fork() == 0) {
		spin(rounds);
		exit(0);
	}
	spin(rounds);
	wait(0);
	return instret() - from - 4 * rounds;
}

/* Processes that are there, and wait. Return: how many. */
static int make_present(int *gate)
{
	char byte;
	int nr;

	if (pipe(gate) < 0)
		fail("bench: no pipe");
	for (nr = 0; nr < PRESENT; nr++) {
		int pid = fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			close(gate[1]);
			read(gate[0], &byte, 1);
			exit(0);
		}
	}
	return nr;
}

/* Return: whether a shell has printed its prompt. */
static int has_prompt(void)
{
	struct procinfo all[8];
	int nr = procs(all, 8);

	for (int i = 0; i < nr && i < 8; i++)
		if (strcmp(all[i].name, "sh") == 0 && strcmp(all[i].waits_for, "console") == 0)
			return 1;
	return 0;
}

static void time_boot(void)
{
	static char *argv[] = { "/init", 0 };
	unsigned long ns;

	if (fork() == 0) {
		exec(argv[0], argv);
		poweroff(1);
	}
	do {
		sleep_until_ns(clock_ns() + LOOK_EVERY_NS);
		ns = clock_ns();
	} while (!has_prompt());
	open("/console", O_RDWR);
	dup(0);
	printf("\n");
	say("boot_to_prompt", ns);
	poweroff(0);
}

int main(int argc, char **argv)
{
	unsigned long start = instret();
	int gate[2], nr_present;

	if (getpid() == 1)
		time_boot();
	if (argc > 1 && strcmp(argv[1], "nothing") == 0)
		return 0;
	say("boot_to_program", start);
	if (setpolicy(argc > 1 ? argv[1] : "rr slice_ns=10000000") < 0)
		fail("bench: no such policy");
	say("getpid", each(do_getpid, 2000));
	say("pipe_write_read", each(do_pipe, 2000));
	say("ping_pong", each(do_ping_pong, 1000));
	say_yield("yield_alone", 1);
	say_yield("yield_2", 2);
	say_yield("yield_8", 8);
	say_yield("yield_56", 56);
	say("fork_exit_wait", each(do_fork, 100));
	say("fork_exec_exit_wait", each(do_exec, 50));
	say("tick_that_switches", each(do_ticks, 50));
	nr_present = make_present(gate);
	say("present", nr_present);
	say_yield("yield_2_present", 2);
	close(gate[1]);
	close(gate[0]);
	for (int i = 0; i < nr_present; i++)
		wait(0);
	return 0;
}
