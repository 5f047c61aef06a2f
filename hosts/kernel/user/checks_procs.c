/* SPDX-License-Identifier: MIT */
/*
 * checks_procs.c - fork, exit, wait, kill, exec, sleep.
 *
 * Read next: checks_sched.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "lab/procinfo.h"
#include "user/checks.h"
#include "user/proclist.h"
#include "user/user.h"

static void fork_and_wait(void)
{
	int status, pid, seen = 0;

	CHECK_EQUAL(wait(&status), -1);
	CHECK_EQUAL(wait(0), -1);
	for (int i = 0; i < 10; i++) {
		pid = check_fork();
		if (pid == 0)
			exit(i * 1000 - 3);
		CHECK(pid != getpid());
	}
	for (int i = 0; i < 10; i++) {
		CHECK(wait(&status) > 0);
		CHECK_EQUAL((status + 3) % 1000, 0);
		seen |= 1 << (status + 3) / 1000;
	}
	CHECK_EQUAL(seen, 0x3ff);
	CHECK_EQUAL(wait(&status), -1);
}

/* The child has the parent's memory, descriptors and folder; nothing more. */
static void what_a_child_inherits(void)
{
	int value = 5, pid = getpid(), fd;

	CHECK_EQUAL(mkdir("d"), 0);
	CHECK_EQUAL(chdir("d"), 0);
	fd = open("f", O_CREATE | O_RDWR);
	CHECK(fd >= 0);
	if (check_fork() == 0) {
		CHECK_EQUAL(value, 5);
		CHECK(getpid() != pid);
		CHECK_EQUAL(write(fd, "abc", 3), 3);
		CHECK_EQUAL(wait(0), -1);
		CHECK_EQUAL(chdir(".."), 0);
		value = 6;
		exit(0);
	}
	CHECK_EQUAL(check_wait(), 0);
	CHECK_EQUAL(value, 5);
	CHECK_EQUAL(unlink("f"), 0);
	close(fd);
	CHECK_EQUAL(chdir(".."), 0);
	CHECK_EQUAL(unlink("d"), 0);
}

#define COMPUTES_NS	200000000UL

/*
 * Computes, or calls, until it is killed. Under a policy that never preempts, its
 * killer may get a CPU only when this process sleeps; so it does after a while.
 */
static void forever(void)
{
	while (cputime_ns() < COMPUTES_NS)
		for (volatile int i = 0; i < 10000; i++)
			;
	for (;;)
		sleep(1000);
}

static void block_on_sleep(void)
{
	sleep(1000000);
}

static void block_on_pipe(void)
{
	int fds[2];
	char c;

	pipe(fds);
	read(fds[0], &c, 1);
}

static void block_on_full_pipe(void)
{
	int fds[2];
	char c = 0;

	pipe(fds);
	for (;;)
		write(fds[1], &c, 1);
}

static void block_on_child(void)
{
	if (fork() == 0) {
		sleep(20);
		exit(0);
	}
	wait(0);
	sleep(1000000);
}

static void block_on_held_child(void)
{
	int pid = forkheld(0);

	if (pid > 0)
		wait(0);
}

static void call_again_and_again(void)
{
	while (cputime_ns() < COMPUTES_NS)
		getpid();
	forever();
}

/* Whatever it is doing, a killed process ends with status -1. */
static void kill_ends_it(void)
{
	void (*const children[])(void) = {
		forever,	block_on_sleep,	     block_on_pipe,	   block_on_full_pipe,
		block_on_child, block_on_held_child, call_again_and_again,
	};

	for (int i = 0; i < 7; i++) {
		for (int ticks = 0; ticks < 3; ticks += 2) {
			int pid = check_fork();

			if (pid == 0) {
				children[i]();
				exit(0);
			}
			sleep(ticks); /* 0: it may not have run yet */
			CHECK_EQUAL(kill(pid), 0);
			CHECK_EQUAL(check_wait(), -1);
			CHECK_EQUAL(kill(pid), -1);
		}
	}
}

static void kill_refuses_nonsense(void)
{
	CHECK_EQUAL(kill(-1), -1);
	CHECK_EQUAL(kill(0), -1);
	CHECK_EQUAL(kill(0x7fffffff), -1);
	CHECK_EQUAL(kill((int)0x80000000), -1);
}

static void kill_of_oneself(void)
{
	if (check_fork() == 0) {
		kill(getpid());
		for (;;)
			getpid();
	}
	CHECK_EQUAL(check_wait(), -1);
}

/* Two kill each other, again and again; both end. */
static void mutual_kill(void)
{
	for (int i = 0; i < 20; i++) {
		int one = check_fork(), two;

		if (one == 0)
			forever();
		two = check_fork();
		if (two == 0) {
			kill(one);
			exit(0);
		}
		kill(two);
		kill(one);
		check_wait();
		check_wait();
	}
}

/* A parent that ends first leaves its children to init, which waits for them. */
static void orphans(void)
{
	for (int i = 0; i < 20; i++) {
		if (check_fork() == 0) {
			for (int k = 0; k < 3; k++)
				if (fork() == 0)
					exit(fork() < 0);
			exit(0);
		}
	}
	for (int i = 0; i < 20; i++)
		CHECK_EQUAL(check_wait(), 0);
	CHECK_EQUAL(wait(0), -1);
}

/* Parents and children that end at the same moment. */
static void exit_and_wait_race(void)
{
	for (int i = 0; i < 200; i++) {
		int pid = check_fork(), status;

		if (pid == 0)
			exit(i);
		CHECK_EQUAL(wait(&status), pid);
		CHECK_EQUAL(status, i);
	}
}

static void two_generations_at_once(void)
{
	for (int i = 0; i < 8; i++) {
		if (check_fork())
			continue;
		for (int k = 0; k < 15; k++) {
			int pid = fork();

			if (pid == 0)
				exit(fork() == 0 ? 0 : 0);
			if (pid > 0)
				wait(0);
		}
		exit(0);
	}
	for (int i = 0; i < 8; i++)
		CHECK_EQUAL(check_wait(), 0);
}

/* A byte goes round: each of the two waits for the other. */
static void ping_pong(void)
{
	enum { ROUNDS = 300 };
	int there[2], back[2];
	uchar c = 0;

	CHECK_EQUAL(pipe(there), 0);
	CHECK_EQUAL(pipe(back), 0);
	if (check_fork() == 0) {
		for (int i = 0; i < ROUNDS; i++) {
			CHECK_EQUAL(read(there[0], &c, 1), 1);
			c++;
			CHECK_EQUAL(write(back[1], &c, 1), 1);
		}
		exit(0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQUAL(write(there[1], &c, 1), 1);
		CHECK_EQUAL(read(back[0], &c, 1), 1);
		CHECK_EQUAL(c, (uchar)(i + 1));
	}
	CHECK_EQUAL(check_wait(), 0);
}

/* No process has to give up the CPU for the others to get it. */
static void preemption(void)
{
	int pids[6], fds[2];
	char c;

	CHECK_EQUAL(pipe(fds), 0);
	for (int i = 0; i < 6; i++) {
		pids[i] = check_fork();
		if (pids[i] == 0) {
			write(fds[1], "x", 1);
			forever();
		}
	}
	for (int i = 0; i < 6; i++)
		CHECK_EQUAL(read(fds[0], &c, 1), 1);
	for (int i = 0; i < 6; i++)
		CHECK_EQUAL(kill(pids[i]), 0);
	for (int i = 0; i < 6; i++)
		CHECK_EQUAL(check_wait(), -1);
}

static void sleeping(void)
{
	int start = uptime();
	unsigned long start_ns = clock_ns(), at_ns;

	CHECK_EQUAL(sleep(3), 0);
	CHECK(uptime() - start >= 3);
	CHECK_EQUAL(sleep(0), 0);
	at_ns = start_ns + 50000000;
	CHECK_EQUAL(sleep_until_ns(at_ns), 0);
	CHECK(clock_ns() >= at_ns);
	CHECK_EQUAL(sleep_until_ns(1), 0); /* has passed: at once */
	CHECK(sleep(-1) <= 0);
}

/* Many sleepers, each until its own time, wake in that order. */
static void sleepers_in_order(void)
{
	enum { SLEEPERS = 20 };
	unsigned long start_ns = clock_ns() + 20000000;
	int fds[2];
	uchar c;

	CHECK_EQUAL(pipe(fds), 0);
	for (int i = 0; i < SLEEPERS; i++) {
		if (check_fork())
			continue;
		c = i * 7 % SLEEPERS;
		sleep_until_ns(start_ns + c * 20000000UL);
		CHECK(clock_ns() >= start_ns + c * 20000000UL);
		write(fds[1], &c, 1);
		exit(0);
	}
	for (int i = 0; i < SLEEPERS; i++)
		CHECK_EQUAL(read(fds[0], &c, 1), 1);
	for (int i = 0; i < SLEEPERS; i++)
		CHECK_EQUAL(check_wait(), 0);
}

static void exec_keeps_what_it_should(void)
{
	static char *argv[] = { "/echo", "one", "two words", "", 0 };
	char text[32];
	int fds[2], pid, bytes = 0, now;

	CHECK_EQUAL(pipe(fds), 0);
	pid = check_fork();
	if (pid == 0) {
		close(1);
		dup(fds[1]);
		close(fds[0]);
		close(fds[1]);
		exec(argv[0], argv);
		exit(9);
	}
	close(fds[1]);
	while ((now = read(fds[0], text + bytes, sizeof(text) - 1 - bytes)) > 0)
		bytes += now;
	text[bytes] = 0;
	CHECK_EQUAL(strcmp(text, "one two words \n"), 0);
	CHECK_EQUAL(check_wait(), 0);
}

static void held_children(void)
{
	int pid, status, fds[2];
	char c = 0;

	CHECK_EQUAL(pipe(fds), 0);
	pid = forkheld(0);
	CHECK(pid >= 0);
	if (pid == 0) {
		write(fds[1], "x", 1);
		exit(4);
	}
	write(fds[1], "p", 1);
	sleep(2);
	CHECK_EQUAL(read(fds[0], &c, 1), 1);
	CHECK_EQUAL(c, 'p'); /* the child has not run */
	CHECK_EQUAL(release(pid, 0), 0);
	CHECK_EQUAL(wait(&status), pid);
	CHECK_EQUAL(status, 4);
	CHECK_EQUAL(read(fds[0], &c, 1), 1);
	CHECK_EQUAL(c, 'x');
	CHECK_EQUAL(release(pid, 0), -1); /* gone */
	CHECK_EQUAL(release(getpid(), 0), -1);
	CHECK_EQUAL(release(-1, 0), -1);
	/* By the clock, and never before. */
	pid = forkheld(0);
	CHECK(pid >= 0);
	if (pid == 0)
		exit(0);
	CHECK_EQUAL(release(pid, clock_ns() + 30000000), 0);
	CHECK_EQUAL(check_wait(), 0);
	/* One that is never released can be killed. */
	pid = forkheld(0);
	CHECK(pid >= 0);
	if (pid == 0)
		exit(0);
	CHECK_EQUAL(kill(pid), 0);
	CHECK_EQUAL(check_wait(), -1);
}

static void times_of_children(void)
{
	int wait_ticks = -1, run_ticks = -1, pid = check_fork();

	/* However long it takes to get so much of a CPU: five ticks. */
	if (pid == 0) {
		while (cputime_ns() < 50000000)
			;
		exit(0);
	}
	CHECK_EQUAL(waitx(&wait_ticks, &run_ticks), pid);
	CHECK(run_ticks >= 3 && run_ticks < 1000);
	CHECK(wait_ticks >= 0);
	CHECK_EQUAL(waitx(&wait_ticks, &run_ticks), -1);
	if (check_fork() == 0)
		exit(0);
	CHECK(waitx((int *)check_wild[0], &run_ticks) <= 0 || 1);
	while (wait(0) >= 0)
		;
}

/* Which entry of the list is process @pid; it must be there once. */
static struct procinfo *in_list(struct procinfo *list, int nr, int pid)
{
	struct procinfo *found = 0;

	for (int i = 0; i < nr; i++) {
		CHECK(list[i].pid > 0 && list[i].name[0]);
		CHECK(i == 0 || list[i].start_ns >= list[i - 1].start_ns);
		if (list[i].pid == pid) {
			CHECK(!found);
			found = &list[i];
		}
	}
	CHECK(found);
	return found;
}

/* Return: the pid of a child that has ended: the next ones have higher ones. */
static int newest_pid(void)
{
	int pid = fork();

	if (pid == 0)
		exit(0);
	if (pid > 0)
		wait(0);
	return pid;
}

/* Kills the children of the others as they come and go, until @end_ns. */
static void kill_the_newest(unsigned long end_ns)
{
	enum { AHEAD = 6, MISSES_MAX = 4 };
	int newest = newest_pid(), nr_misses = 0;

	while (clock_ns() < end_ns) {
		int is_found = 0;

		for (int i = 0; i < AHEAD; i++) {
			if (newest > 0 && kill(newest + i) == 0) {
				newest += i;
				is_found = 1;
				break;
			}
		}
		nr_misses = is_found ? 0 : nr_misses + 1;
		if (nr_misses > MISSES_MAX)
			newest = newest_pid();
	}
}

/*
 * A process ends, is waited for and its memory is the next one's while others kill
 * both by pid: no process may get what was meant for the one before.
 */
static void kill_of_pids_in_reuse(void)
{
	enum { KILLERS = 3, PARENTS = 2, FOR_NS = 500000000 };
	unsigned long end_ns = clock_ns() + FOR_NS;
	int go[2];
	char c;

	CHECK_EQUAL(pipe(go), 0);
	for (int i = 0; i < KILLERS + PARENTS; i++) {
		int pid = check_fork();

		/* They are all there before the first kills what is younger. */
		if (pid == 0)
			CHECK_EQUAL(read(go[0], &c, 1), 1);
		if (pid == 0 && i < KILLERS)
			kill_the_newest(end_ns);
		while (pid == 0 && clock_ns() < end_ns)
			newest_pid();
		if (pid == 0)
			exit(0);
	}
	CHECK_EQUAL(write(go[1], ".....", KILLERS + PARENTS), KILLERS + PARENTS);
	for (int i = 0; i < KILLERS + PARENTS; i++)
		CHECK_EQUAL(check_wait(), 0);
}

static void lists_of_processes(void)
{
	struct procinfo *list, *child;
	int nr, pid = check_fork();

	if (pid == 0)
		block_on_sleep();
	do { /* until the child has come to its sleep() */
		sleep(1);
		nr = proc_list(&list);
		CHECK(nr >= 3);
		CHECK_EQUAL(in_list(list, nr, getpid())->state, PROC_RUNNING);
		child = in_list(list, nr, pid);
		CHECK_EQUAL(child->ppid, getpid());
	} while (child->state != PROC_BLOCKED);
	CHECK_EQUAL(strcmp(child->waits_for, "sleep"), 0);
	CHECK(procs(list, 1) >= 3);
	CHECK(procs(list, 0) >= 3);
	CHECK_EQUAL(procs(list, -1), -1);
	CHECK_EQUAL(procs((struct procinfo *)check_wild[0], 5), -1);
	CHECK_EQUAL(kill(pid), 0);
	CHECK_EQUAL(check_wait(), -1);
}

const struct check checks_procs[] = {
	{ "fork-and-wait", fork_and_wait, 0 },
	{ "what-a-child-inherits", what_a_child_inherits, 0 },
	{ "kill-ends-it", kill_ends_it, 0 },
	{ "kill-refuses-nonsense", kill_refuses_nonsense, 0 },
	{ "kill-of-oneself", kill_of_oneself, 0 },
	{ "mutual-kill", mutual_kill, 0 },
	{ "kill-of-pids-in-reuse", kill_of_pids_in_reuse, CHECK_ALONE | CHECK_STILL },
	{ "orphans", orphans, 0 },
	{ "exit-and-wait-race", exit_and_wait_race, 0 },
	{ "two-generations-at-once", two_generations_at_once, 0 },
	{ "ping-pong", ping_pong, 0 },
	{ "preemption", preemption, 0 },
	{ "sleeping", sleeping, 0 },
	{ "sleepers-in-order", sleepers_in_order, 0 },
	{ "exec-keeps-what-it-should", exec_keeps_what_it_should, 0 },
	{ "held-children", held_children, 0 },
	{ "times-of-children", times_of_children, 0 },
	{ "lists-of-processes", lists_of_processes, 0 },
	{ 0, 0, 0 },
};
