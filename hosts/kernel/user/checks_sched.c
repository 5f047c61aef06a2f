/* SPDX-License-Identifier: MIT */
/*
 * checks_sched.c - policies, attributes, affinity, time, and sets of locks.
 *
 * Read next: checks_calls.c.
 */
#include <scx/types.h>
#include <scx/attrs.h>

#include "kernel/types.h"
#include "kernel/param.h"
#include "lab/procinfo.h"
#include "lab/syncspec.h"
#include "user/checks.h"
#include "user/user.h"

#define TEXT_BYTES 1024

static void use_cpu(unsigned long ns)
{
	unsigned long end_ns = cputime_ns() + ns;

	while (cputime_ns() < end_ns)
		;
}

static void attributes(void)
{
	long value = 77;

	CHECK_EQUAL(setpriority(0, 3), 0);
	CHECK_EQUAL(getattr(0, TASK_ATTR_PRIORITY, &value), 0);
	CHECK_EQUAL(value, 3);
	CHECK_EQUAL(settickets(20), 0);
	CHECK_EQUAL(getattr(getpid(), TASK_ATTR_TICKETS, &value), 0);
	CHECK_EQUAL(value, 20);
	CHECK_EQUAL(settickets(0), -1);
	CHECK_EQUAL(settickets(-1), -1);
	CHECK_EQUAL(getattr(0, TASK_ATTR_CREDITS, &value), -1); /* never set */
	CHECK_EQUAL(setattr(0, TASK_ATTR_CREDITS, -5), 0);
	CHECK_EQUAL(getattr(0, TASK_ATTR_CREDITS, &value), 0);
	CHECK_EQUAL(value, -5);
	CHECK_EQUAL(setattr(0, TASK_ATTR_WEIGHT, 0), -1);
	CHECK_EQUAL(setattr(0, TASK_ATTR_WEIGHT, 10001), -1);
	CHECK_EQUAL(setattr(0, TASK_ATTR_WEIGHT, 200), 0);
	CHECK_EQUAL(getattr(0, TASK_ATTR_WEIGHT, &value), 0);
	CHECK_EQUAL(value, 200);
	CHECK_EQUAL(setattr(0, -1, 1), -1);
	CHECK_EQUAL(setattr(0, NR_TASK_ATTRS, 1), -1);
	CHECK_EQUAL(setattr(-3, TASK_ATTR_PRIORITY, 1), -1);
	CHECK_EQUAL(setattr(0x7fffffff, TASK_ATTR_PRIORITY, 1), -1);
	CHECK_EQUAL(setattr(0, TASK_ATTR_PRIORITY, 1L << 40), -1);
	CHECK_EQUAL(setpriority(0x7fffffff, 1), -1);
	CHECK_EQUAL(getattr(0, 1000, &value), -1);
	CHECK_EQUAL(getattr(0, -1, &value), -1);
	for (int i = 0; check_wild[i]; i++)
		CHECK_EQUAL(getattr(0, TASK_ATTR_PRIORITY, (long *)check_wild[i]), -1);
	/* A child has them, too. */
	if (check_fork() == 0) {
		CHECK_EQUAL(getattr(0, TASK_ATTR_PRIORITY, &value), 0);
		CHECK_EQUAL(value, 3);
		exit(0);
	}
	CHECK_EQUAL(check_wait(), 0);
}

static void nice_values(void)
{
	CHECK_EQUAL(nice(0), 0);
	CHECK_EQUAL(nice(5), 5);
	CHECK_EQUAL(nice(-10), -5);
	CHECK_EQUAL(nice(100), 19);
	CHECK_EQUAL(nice(-1000), -20);
	CHECK_EQUAL(nice(0x7fffffff), 19);
	CHECK_EQUAL(nice((int)0x80000000), -20);
	for (int i = 0; i < 100; i++)
		CHECK_EQUAL(yield(), 0);
}

static void affinity(void)
{
	unsigned long mask = 1;
	unsigned long many[64];

	CHECK_EQUAL(setaffinity(0, &mask, 1), 0);
	use_cpu(2000000);
	mask = 0;
	CHECK_EQUAL(setaffinity(0, &mask, 1), -1);
	mask = 1UL << 63;
	CHECK_EQUAL(setaffinity(0, &mask, 1), -1); /* no such hart */
	mask = ~0UL;
	CHECK_EQUAL(setaffinity(0, &mask, 1), 0);
	CHECK_EQUAL(setaffinity(0, &mask, 0), -1);
	CHECK_EQUAL(setaffinity(0, &mask, -1), -1);
	CHECK_EQUAL(setaffinity(0, many, 0x7fffffff), -1);
	CHECK_EQUAL(setaffinity(0x7fffffff, &mask, 1), -1);
	for (int i = 0; check_wild[i]; i++)
		CHECK_EQUAL(setaffinity(0, (unsigned long *)check_wild[i], 1), -1);
	/* Processes are sent from hart to hart while they compute. */
	for (int child = 0; child < 4; child++) {
		if (check_fork())
			continue;
		for (int i = 0; i < 20; i++) {
			mask = 1UL << (child + i) % NCPU;
			setaffinity(0, &mask, 1); /* -1: fewer harts */
			use_cpu(500000);
		}
		exit(0);
	}
	for (int child = 0; child < 4; child++)
		CHECK_EQUAL(check_wait(), 0);
}

static void times(void)
{
	unsigned long before_ns = clock_ns(), cpu_ns = cputime_ns(), now_cycles = cycles();
	int ticks = uptime(), switches = getcontextswitches();

	use_cpu(20000000);
	CHECK(clock_ns() - before_ns >= 20000000);
	CHECK(cputime_ns() - cpu_ns >= 20000000);
	CHECK(cycles() > now_cycles);
	CHECK(uptime() >= ticks + 1);
	sleep(1);
	CHECK(getcontextswitches() > switches);
	before_ns = clock_ns();
	for (int i = 0; i < 1000; i++) {
		unsigned long now_ns = clock_ns();

		CHECK(now_ns >= before_ns);
		before_ns = now_ns;
	}
}

/* The name that a description begins with. */
static void cut_name(char *text)
{
	for (; *text && *text != ' '; text++)
		;
	*text = 0;
}

/* Put back the policy that was in force, with its knobs. */
static void restore(const char *policy)
{
	CHECK_EQUAL(setpolicy(policy), 0);
}

static void policies_refuse_nonsense(void)
{
	char text[TEXT_BYTES], small[8], active[TEXT_BYTES], now[TEXT_BYTES];

	CHECK(getpolicy(-1, active, sizeof(active)) > 0);
	CHECK_EQUAL(setpolicy("no-such-policy"), -1);
	CHECK_EQUAL(setpolicy(""), -1);
	CHECK_EQUAL(setpolicy("rr no_such_knob=1"), -1);
	CHECK_EQUAL(setpolicy("rr ="), -1);
	CHECK_EQUAL(setpolicy("rr slice_ns=0"), -1);
	CHECK_EQUAL(setpolicy("rr slice_ns=-1"), -1);
	CHECK_EQUAL(setpolicy("rr slice_ns=18446744073709551615"), -1);
	CHECK_EQUAL(setpolicy("rr slice_ns=99999999999999999999"), -1);
	CHECK_EQUAL(setpolicy("builtin slice_ns=1"), -1);
	CHECK_EQUAL(setpolicy("credit balance=4"), -1); /* a value without a name */
	memset(text, 'x', sizeof(text));
	CHECK_EQUAL(setpolicy(text), -1); /* without an end */
	CHECK_EQUAL(getpolicy(1000, text, sizeof(text)), -1);
	CHECK_EQUAL(getpolicy(-2, text, sizeof(text)), -1);
	CHECK_EQUAL(getpolicy(-1, text, 0), -1);
	CHECK_EQUAL(getpolicy(-1, text, -1), -1);
	CHECK(getpolicy(-1, small, 4) <= 4 && strlen(small) <= 3);
	for (int i = 0; check_wild[i]; i++) {
		CHECK_EQUAL(setpolicy((char *)check_wild[i]), -1);
		CHECK_EQUAL(getpolicy(-1, (char *)check_wild[i], 100), -1);
	}
	CHECK(getpolicy(-1, now, sizeof(now)) > 0);
	CHECK_EQUAL(strcmp(now, active), 0);
}

/* Processes of every kind, for policies to be switched under. */
static void be_busy(int kind, unsigned long end_ns)
{
	int fds[2];
	char c = 0;

	CHECK_EQUAL(pipe(fds), 0);
	while (clock_ns() < end_ns) {
		switch (kind % 4) {
		case 0:
			use_cpu(3000000);
			break;
		case 1:
			sleep_until_ns(clock_ns() + 700000);
			break;
		case 2:
			CHECK_EQUAL(write(fds[1], &c, 1), 1);
			CHECK_EQUAL(read(fds[0], &c, 1), 1);
			yield();
			break;
		default:
			if (check_fork() == 0)
				exit(0);
			CHECK_EQUAL(check_wait(), 0);
		}
	}
	close(fds[0]);
	close(fds[1]);
}

/* Every policy takes over while others compute, sleep, wait, fork; none is lost. */
static void every_policy_takes_over(void)
{
	enum { WORKERS = 8 };
	char active[TEXT_BYTES], text[TEXT_BYTES];
	unsigned long end_ns;
	int nr;

	CHECK(getpolicy(-1, active, sizeof(active)) > 0);
	for (nr = 0; getpolicy(nr, text, sizeof(text)) > 0; nr++)
		;
	CHECK(nr >= 7);
	end_ns = clock_ns() + nr * 30000000UL;
	for (int i = 0; i < WORKERS; i++) {
		if (check_fork() == 0) {
			setpriority(0, i % 11);
			settickets(1 + i * 10);
			be_busy(i, end_ns);
			exit(0);
		}
	}
	for (int i = 0; i < nr; i++) {
		CHECK(getpolicy(i, text, sizeof(text)) > 0);
		cut_name(text);
		CHECK_EQUAL(setpolicy(text), 0);
		use_cpu(1000000);
		sleep_until_ns(clock_ns() + 20000000);
	}
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQUAL(check_wait(), 0);
	restore(active);
}

/* As above, but by several at the same time, as fast as they can. */
static void switches_at_once(void)
{
	char active[TEXT_BYTES], text[TEXT_BYTES];
	int nr;

	CHECK(getpolicy(-1, active, sizeof(active)) > 0);
	for (nr = 0; getpolicy(nr, text, sizeof(text)) > 0; nr++)
		;
	for (int child = 0; child < 4; child++) {
		unsigned long seed = child + 1;

		if (check_fork())
			continue;
		for (int i = 0; i < 15; i++) {
			CHECK(getpolicy(check_random(&seed) % nr, text, sizeof(text)) > 0);
			cut_name(text);
			CHECK_EQUAL(setpolicy(text), 0);
			be_busy(check_random(&seed), clock_ns() + 500000);
		}
		exit(0);
	}
	for (int child = 0; child < 4; child++)
		CHECK_EQUAL(check_wait(), 0);
	restore(active);
}

/* Tasks on queues are bound elsewhere all the time; no policy may fall over it. */
static void affinity_of_others(void)
{
	enum { CHILDREN = 6, EACH_NS = 10000000 };
	char active[TEXT_BYTES], text[TEXT_BYTES], now[TEXT_BYTES];
	unsigned long seed = 1, mask, end_ns;
	int pids[CHILDREN], nr;

	CHECK(getpolicy(-1, active, sizeof(active)) > 0);
	for (nr = 0; getpolicy(nr, text, sizeof(text)) > 0; nr++)
		;
	end_ns = clock_ns() + nr * EACH_NS;
	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = check_fork();
		if (pids[i] == 0) {
			while (clock_ns() < end_ns)
				if (check_fork() == 0)
					exit(0);
				else
					check_wait();
			exit(0);
		}
	}
	for (int i = 0; i < nr; i++) {
		CHECK(getpolicy(i, text, sizeof(text)) > 0);
		cut_name(text);
		CHECK_EQUAL(setpolicy(text), 0);
		for (end_ns = clock_ns() + EACH_NS; clock_ns() < end_ns;) {
			mask = 1 + check_random(&seed) % 15;
			setaffinity(pids[check_random(&seed) % CHILDREN], &mask, 1);
		}
		CHECK(getpolicy(-1, now, sizeof(now)) > 0);
		cut_name(now);
		CHECK_EQUAL(strcmp(now, text), 0);
	}
	for (int i = 0; i < CHILDREN; i++)
		CHECK_EQUAL(check_wait(), 0);
	restore(active);
}

/* S17: of two that wait for one hart, the one that is raised meanwhile runs first. */
static void raised_while_it_waits(void)
{
	char active[TEXT_BYTES], order[2];
	int pids[2], go[2], began[2];
	unsigned long mask = 1;

	CHECK(getpolicy(-1, active, sizeof(active)) > 0);
	CHECK_EQUAL(setpolicy("priority"), 0);
	CHECK_EQUAL(setaffinity(0, &mask, 1), 0);
	CHECK_EQUAL(setpriority(0, 0), 0);
	CHECK_EQUAL(pipe(go), 0);
	CHECK_EQUAL(pipe(began), 0);
	for (int i = 0; i < 2; i++) {
		pids[i] = check_fork();
		if (pids[i] == 0) {
			CHECK_EQUAL(read(go[0], order, 1), 1);
			CHECK_EQUAL(write(began[1], &"01"[i], 1), 1);
			exit(0);
		}
		CHECK_EQUAL(setpriority(pids[i], 5), 0);
	}
	CHECK_EQUAL(write(go[1], "..", 2), 2);
	CHECK_EQUAL(setpriority(pids[1], 1), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(read(began[0], &order[i], 1), 1);
	CHECK_EQUAL(order[0], '1');
	CHECK_EQUAL(order[1], '0');
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(check_wait(), 0);
	restore(active);
}

static void records_and_metrics(void)
{
	static uchar records[64 * 24];

	CHECK(schedlog((struct sl_record *)records, 64) >= 0);
	CHECK(schedlog((struct sl_record *)records, 64) <= 64);
	CHECK_EQUAL(schedlog((struct sl_record *)records, 0), 0);
	CHECK_EQUAL(schedlog((struct sl_record *)records, -1), -1);
	for (int i = 0; check_wild[i]; i++)
		CHECK(schedlog((struct sl_record *)check_wild[i], 10) <= 0);
}

static void pinfo_and_memstat(void)
{
	static struct pstat info;
	struct memstat memory;
	int is_there = 0;

	CHECK_EQUAL(getpinfo(&info), 0);
	for (int i = 0; i < NPROC; i++)
		is_there += info.inuse[i] && info.pid[i] == getpid();
	CHECK(is_there <= 1);
	CHECK_EQUAL(memstat(&memory), 0);
	CHECK(memory.pages_free > 0 && memory.pages_free < memory.pages_total);
	CHECK(memory.procs >= 2 && memory.inodes_in_use > 0);
	for (int i = 0; check_wild[i]; i++) {
		CHECK_EQUAL(getpinfo((struct pstat *)check_wild[i]), -1);
		CHECK_EQUAL(memstat((struct memstat *)check_wild[i]), -1);
	}
}

/* A set of one lock, a pipe, a barrier and a condition, used as it should be. */
static void syncs_good(void)
{
	enum { CHILDREN = 4, ROUNDS = 50 };
	struct sync_spec specs[] = {
		{ SYNC_LOCK, 0, { 0 } },
		{ SYNC_PIPE, 0, { 100 } },
		{ SYNC_BARRIER, 0, { CHILDREN } },
		{ SYNC_COUNTER, 0, { 0 } },
	};
	int fd = syncs(specs, 4);

	CHECK(fd >= 3);
	for (int child = 0; child < CHILDREN; child++) {
		if (check_fork())
			continue;
		for (int i = 0; i < ROUNDS; i++) {
			CHECK_EQUAL(syncop(fd, 0, SYNC_TAKE_LOCK, 0), 0);
			if (i % 8 == child)
				yield();
			CHECK_EQUAL(syncop(fd, 0, SYNC_DROP_LOCK, 0), 0);
			CHECK_EQUAL(syncop(fd, 1, child % 2 ? SYNC_SEND : SYNC_RECV, 30), 0);
			CHECK_EQUAL(syncop(fd, 2, SYNC_ARRIVE, 0), 0);
		}
		CHECK_EQUAL(syncop(fd, 3, SYNC_ADD, 1), 0);
		exit(0);
	}
	CHECK_EQUAL(syncop(fd, 3, SYNC_TAKE, CHILDREN), 0);
	for (int child = 0; child < CHILDREN; child++)
		CHECK_EQUAL(check_wait(), 0);
	CHECK_EQUAL(close(fd), 0);
}

static void syncs_bad(void)
{
	struct sync_spec spec = { SYNC_LOCK, 0, { 0 } };
	int fd;

	CHECK_EQUAL(syncs(&spec, -1), -1);
	CHECK_EQUAL(syncs(&spec, SYNC_OBJECTS_MAX + 1), -1);
	CHECK_EQUAL(syncs(&spec, 0x7fffffff), -1);
	for (int i = 0; check_wild[i]; i++)
		CHECK_EQUAL(syncs((struct sync_spec *)check_wild[i], 1), -1);
	spec.kind = 99;
	CHECK_EQUAL(syncs(&spec, 1), -1);
	spec.kind = SYNC_LOCK;
	fd = syncs(&spec, 1);
	CHECK(fd >= 3);
	CHECK_EQUAL(syncop(fd, 0, SYNC_DROP_LOCK, 0), -1); /* not held */
	CHECK_EQUAL(syncop(fd, 0, SYNC_TAKE_LOCK, 0), 0);
	CHECK_EQUAL(syncop(fd, 0, SYNC_TAKE_LOCK, 0), -1); /* held already */
	if (check_fork() == 0) {
		CHECK_EQUAL(syncop(fd, 0, SYNC_DROP_LOCK, 0), -1);
		exit(0);
	}
	CHECK_EQUAL(check_wait(), 0);
	for (int op = -1; op < SYNC_NR_OPS + 2; op++)
		if (op != SYNC_DROP_LOCK)
			CHECK_EQUAL(syncop(fd, 0, op, 1), -1);
	CHECK_EQUAL(syncop(fd, 1, SYNC_TAKE_LOCK, 0), -1);
	CHECK_EQUAL(syncop(fd, -1, SYNC_TAKE_LOCK, 0), -1);
	CHECK_EQUAL(syncop(0, 0, SYNC_TAKE_LOCK, 0), -1);
	CHECK_EQUAL(syncop(-1, 0, SYNC_TAKE_LOCK, 0), -1);
	CHECK_EQUAL(syncop(99, 0, SYNC_TAKE_LOCK, 0), -1);
	CHECK_EQUAL(read(fd, &spec, 4), -1);
	CHECK_EQUAL(write(fd, &spec, 4), -1);
}

static const struct sync_spec blocking[] = {
	{ SYNC_LOCK, 0, { 0 } },      { SYNC_PIPE, 0, { 10 } },	  { SYNC_BARRIER, 0, { 2 } },
	{ SYNC_CONDITION, 0, { 0 } }, { SYNC_COUNTER, 0, { 0 } },
};

/* A process that waits in a set can be killed, and the others go on. */
static void kill_in_syncs(void)
{
	static const int ops[] = { SYNC_TAKE_LOCK, SYNC_RECV, SYNC_ARRIVE, SYNC_AWAIT, SYNC_TAKE };
	int fd = syncs(blocking, 5);

	CHECK(fd >= 3);
	CHECK_EQUAL(syncop(fd, 0, SYNC_TAKE_LOCK, 0), 0);
	for (int i = 0; i < 5; i++) {
		int pid = check_fork();

		if (pid == 0) {
			syncop(fd, i, ops[i], i == 3 ? 0 : 5);
			exit(0);
		}
		sleep(1);
		CHECK_EQUAL(kill(pid), 0);
		CHECK_EQUAL(check_wait(), -1);
	}
	CHECK_EQUAL(syncop(fd, 0, SYNC_DROP_LOCK, 0), 0);
	CHECK_EQUAL(syncop(fd, 0, SYNC_TAKE_LOCK, 0), 0);
}

const struct check checks_sched[] = {
	{ "attributes", attributes, 0 },
	{ "nice-values", nice_values, 0 },
	{ "affinity", affinity, 0 },
	{ "times", times, 0 },
	{ "policies-refuse-nonsense", policies_refuse_nonsense, CHECK_ALONE | CHECK_STILL },
	{ "every-policy-takes-over", every_policy_takes_over, CHECK_ALONE },
	{ "switches-at-once", switches_at_once, CHECK_ALONE },
	{ "affinity-of-others", affinity_of_others, CHECK_ALONE | CHECK_STILL },
	{ "raised-while-it-waits", raised_while_it_waits, CHECK_ALONE | CHECK_STILL },
	{ "records-and-metrics", records_and_metrics, 0 },
	{ "pinfo-and-memstat", pinfo_and_memstat, 0 },
	{ "syncs-good", syncs_good, 0 },
	{ "syncs-bad", syncs_bad, 0 },
	{ "kill-in-syncs", kill_in_syncs, 0 },
	{ 0, 0, 0 },
};
