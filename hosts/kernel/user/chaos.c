/* SPDX-License-Identifier: MIT */
/*
 * chaos.c - random system calls with random arguments, by several processes.
 *
 *	chaos [-v] [-s] SEED [SEQUENCES] [PROCESSES]
 *
 * A sequence is up to 40 calls by one process in a folder of its own; whatever
 * they return is right. The kernel must stay alive, end each process that goes
 * wrong, and have all of its memory, blocks, inodes and files afterwards. The
 * same seed makes the same calls; with one process and one hart, at the same
 * places. -v prints each call before it is made; -s switches the policy every few
 * ms. Status 1 if something is missing at the end.
 *
 * Numbers are small, or near a limit; pointers point into a buffer, to wild
 * places, or across the end of memory. What is left out: `poweroff`, `play_at`, `dump` and
 * `print_metrics`, whose output could not be read, and kill of others.
 *
 * Must stay true: main() opens and allocates nothing between the two counts.
 * Read next: python/checkout/soak.py, which runs this for an hour.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "kernel/fs.h"
#include "lab/procinfo.h"
#include "kernel/riscv.h"
#include "kernel/stat.h"
#include "lab/syncspec.h"
#include "kernel/syscall.h"
#include "user/checks.h"
#include "user/user.h"

#define CALLS_MAX	40
#define CHILDREN_MAX	16
#define BUFFER_BYTES	8192
#define NAMES_MAX	100	/* files in / beforehand */
#define SETTLE_TICKS	500	/* how long the last processes may take to end */
#define GUARD_TICKS	100	/* a sequence that hangs is ended after these */
#define SPOKEN_FD	15	/* with -v, a descriptor that the calls may close */

static int is_verbose;

static unsigned long state; /* of the random numbers */
static char buffer[BUFFER_BYTES];

static uint below(uint n)
{
	return check_random(&state) % n;
}

static long any_number(void)
{
	switch (below(6)) {
	case 0:
		return (long)below(300) - 20;
	case 1:
		return (long)check_random(&state) << 32 | check_random(&state);
	case 2:
		return (1L << below(64)) - below(2);
	default:
		return below(20);
	}
}

static long any_name(void)
{
	/* clang-format off */
	static const char *const names[] = {
		"a", "b", "c", "d", "d/e", "d/f", ".", "..", "./a", "d/../b", "",
		"/", "averyveryverylongname", "d/e/f/g", "rr", "mlfq", "cfs",
		"lottery", "fifo", "priority boost_ms=1",
	};
	/* clang-format on */

	return (long)names[below(sizeof(names) / sizeof(names[0]))];
}

static long any_pointer(void)
{
	static const struct sync_spec specs[] = {
		{ SYNC_LOCK, 0, { 0 } },    { SYNC_PIPE, 0, { 64 } },
		{ SYNC_BARRIER, 0, { 2 } }, { SYNC_CONDITION, 0, { 0 } },
		{ SYNC_COUNTER, 0, { 0 } }, { SYNC_DEVICE, 0, { 100000, 1000, 1 } },
	};
	int k = 0;

	switch (below(8)) {
	case 0:
		for (k = below(14); !check_wild[k]; k--)
			;
		return check_wild[k];
	case 1:
		return (long)sbrk(0) - below(32); /* across the end */
	case 2:
		return (long)specs;
	case 3:
		return 0;
	default:
		return (long)buffer + below(BUFFER_BYTES - 4096);
	}
}

static long any_argument(void)
{
	switch (below(3)) {
	case 0:
		return any_name();
	case 1:
		return any_pointer();
	default:
		return any_number();
	}
}

/* Calls that would end the fun, block for good, or hurt others. */
static int is_left_out(int number)
{
	switch (number) {
		/* clang-format off */
	case SYS_poweroff: case SYS_play_at: case SYS_dump: case SYS_print_metrics:
	case SYS_exit: case SYS_kill: case SYS_exec: case SYS_sleep_until_ns:
	case SYS_setattr: case SYS_setpriority: case SYS_setaffinity:
		/* clang-format on */
		return 1;
	}
	return 0;
}

static int children[CHILDREN_MAX];
static int nr_children;

/* Both sides go on with the sequence, with other numbers from here. */
static void split(int is_held)
{
	int pid;

	if (nr_children == CHILDREN_MAX)
		return;
	pid = is_held ? forkheld(0) : fork();
	if (pid > 0)
		children[nr_children++] = pid;
	if (pid == 0) {
		nr_children = 0;
		state += 12345;
	}
}

/* One call that needs more thought than random numbers. */
static void call_with_sense(void)
{
	char *argv[] = { "echo", "x", 0 };
	int fds[2], kind = below(10);
	unsigned long mask;

	if (is_verbose)
		fprintf(SPOKEN_FD, "[%d] of kind %d\n", getpid(), kind);
	switch (kind) {
	case 0:
		split(below(4) == 0);
		break;
	case 1:
		if (nr_children)
			kill(children[below(nr_children)]);
		break;
	case 2:
		if (nr_children)
			release(children[below(nr_children)], below(2) ? 0 : clock_ns() + 1000000);
		break;
	case 3:
		if (pipe(fds) == 0 && below(2))
			close(fds[below(2)]);
		break;
	case 4:
		sleep_until_ns(clock_ns() + below(3000000));
		break;
	case 5:
		close(1);
		exec(below(2) ? "/echo" : (char *)any_name(), argv);
		break;
	case 6:
		sbrk((int)below(200000) - 100000);
		break;
	case 7:
		setattr(0, below(8), any_number());
		break;
	case 8: /* its own or a child's: the shell, too, would stay bound */
		mask = any_number();
		setaffinity(nr_children ? children[below(nr_children)] : 0, &mask, 1);
		break;
	default:
		*(volatile char *)any_pointer() = 1; /* may be the last thing it does */
	}
}

/* Names in / before the first call; what comes later was made by a sequence. */
static char known[NAMES_MAX][DIRSIZ];
static int nr_known;

static int is_known(const char *name)
{
	for (int i = 0; i < nr_known; i++)
		if (memcmp(known[i], name, DIRSIZ) == 0)
			return 1;
	return 0;
}

/* Programs are to be there afterwards; their names are in a buffer where / was read. */
static int is_spared(int number, const char *path)
{
	return (number == SYS_unlink || number == SYS_open) && path >= buffer &&
	       path < buffer + BUFFER_BYTES - DIRSIZ && is_known(path);
}

static void random_call(int number)
{
	long a[4];

	for (int i = 0; i < 4; i++)
		a[i] = any_argument();
	if (is_spared(number, (const char *)a[0]))
		return;
	if (is_verbose)
		fprintf(SPOKEN_FD, "[%d] call %d (0x%lx, 0x%lx, 0x%lx, 0x%lx)\n", getpid(), number,
			a[0], a[1], a[2], a[3]);
	check_call(number, a[0], a[1], a[2], a[3], 0, 0);
}

static void one_call(void)
{
	int number = below(NR_SYSCALLS + 2);

	if (below(4) == 0)
		call_with_sense();
	else if (number == SYS_sleep)
		sleep(below(2));
	else if (number == SYS_wait || number == SYS_waitx)
		wait(0); /* blocks only if there are children */
	else if (number == SYS_fork || number == SYS_forkheld)
		split(number == SYS_forkheld);
	else if (!is_left_out(number))
		random_call(number);
}

/* In a process of its own. Descriptors 0 to 2 are not the console's. */
static void run_sequence(unsigned long seed)
{
	int nr;

	state = seed * 0x9e3779b97f4a7c15UL + 1;
	while (is_verbose && dup(1) < SPOKEN_FD)
		;
	for (int fd = 0; fd < SPOKEN_FD; fd++)
		close(fd);
	nr = 1 + below(CALLS_MAX);
	for (int i = 0; i < nr; i++)
		one_call();
	for (int i = 0; i < nr_children; i++)
		kill(children[i]);
	exit(0);
}

/* ---- putting things in order ---------------------------------------------- */

static void remember_names(void)
{
	struct dirent entry;
	int fd = open("/", O_RDONLY);

	while (read(fd, &entry, sizeof(entry)) == sizeof(entry)) {
		if (!entry.inum)
			continue;
		if (nr_known == NAMES_MAX)
			fail("chaos: more than %d files in /", NAMES_MAX);
		memmove(known[nr_known++], entry.name, DIRSIZ);
	}
	close(fd);
}

/*
 * Remove all that is in the current folder; in / what was not known. A name may
 * be of any bytes, so folders are entered by it and never put into a path.
 */
static void remove_all(int is_root)
{
	struct dirent entry;
	struct stat st;
	char name[DIRSIZ + 1];
	int fd = open(".", O_RDONLY);

	while (read(fd, &entry, sizeof(entry)) == sizeof(entry)) {
		memmove(name, entry.name, DIRSIZ);
		name[DIRSIZ] = 0;
		if (!entry.inum || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    (is_root && is_known(entry.name)))
			continue;
		if (stat(name, &st) == 0 && st.type == T_DIR && chdir(name) == 0) {
			remove_all(0);
			chdir("..");
		}
		if (unlink(name) < 0)
			printf("chaos: cannot remove %s\n", name);
	}
	close(fd);
}

/* Wait until all others have ended; those that lost their parent are ended here. */
static void settle(unsigned long nr_procs, struct memstat *to)
{
	static struct procinfo list[512];

	for (int i = 0; i < SETTLE_TICKS; i++) {
		int nr = procs(list, 512);

		if (memstat(to) < 0)
			fail("chaos: memstat() failed");
		if (to->procs <= nr_procs)
			return;
		for (int k = 0; k < nr && k < 512; k++)
			if (list[k].pid != getpid() && list[k].ppid == 1 &&
			    strcmp(list[k].name, "chaos") == 0)
				kill(list[k].pid);
		sleep(1);
	}
}

/* ---- sequences ------------------------------------------------------------ */

/*
 * Sequence @seed in this process's folder, ended when it does not end. Return: 1, or
 * 0 if it could not begin, since others use up all blocks or processes just now.
 */
static int run_guarded(unsigned long seed)
{
	char folder[32];
	int pid, guard, child;

	snprintf(folder, sizeof(folder), "/x%d", getpid());
	mkdir(folder); /* -1: an earlier sequence has used it, too */
	if (chdir(folder) < 0)
		return 0;
	pid = fork();
	if (pid == 0)
		run_sequence(seed);
	guard = pid < 0 ? -1 : fork();
	if (guard == 0) {
		sleep(GUARD_TICKS);
		kill(pid);
		exit(0);
	}
	while (pid > 0 && (child = wait(0)) != pid && child >= 0)
		if (child == guard)
			guard = -1;
	if (guard > 0)
		kill(guard);
	while (wait(0) >= 0)
		;
	chdir("/");
	return pid > 0;
}

/* Every @step-th sequence from the @first one on. Return: how many have begun. */
static int run_share(unsigned long seed, long first, long step, long sequences)
{
	int nr = 0;

	for (long i = first; i < sequences; i += step)
		nr += run_guarded(seed * 1000003 + i);
	return nr;
}

int main(int argc, char **argv)
{
	long seed, sequences = 100, processes = 4;
	int is_switching = 0, switcher = 0, ended, nr, nr_begun = 0;
	char policy[1024];
	struct memstat before, after;

	/* It lies at the end of memory, where pointers point: no call may find "/chaos". */
	memset(argv[0], 0, strlen(argv[0]));
	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		is_verbose |= strcmp(argv[1], "-v") == 0;
		is_switching |= strcmp(argv[1], "-s") == 0;
	}
	if (argc < 2 || argc > 4 || !parse_number(argv[1], &seed) ||
	    (argc > 2 && !parse_number(argv[2], &sequences)) ||
	    (argc > 3 && !parse_number(argv[3], &processes)) || sequences < 1 || processes < 1 ||
	    processes > 32)
		fail("usage: chaos [-v] [-s] SEED [SEQUENCES] [PROCESSES]");
	chdir("/");
	remember_names();
	if (getpolicy(-1, policy, sizeof(policy)) < 0 || memstat(&before) < 0)
		fail("chaos: getpolicy() or memstat() failed");
	if (is_switching)
		switcher = check_start_switching(seed + 1);
	for (int p = 0; p < processes; p++) {
		if (fork() == 0)
			exit(run_share(seed, p, processes, sequences));
	}
	for (int p = 0; p < processes; p++) {
		ended = wait(&nr);
		if (ended < 0 || ended == switcher || nr < 0)
			fail("chaos: a process was lost, or policies cannot be switched");
		nr_begun += nr;
	}
	if (switcher > 0)
		check_stop_switching(switcher);
	/*
	 * In this order: a process that lost its parent may still choose another
	 * policy.
	 */
	settle(before.procs, &after);
	if (setpolicy(policy) < 0)
		fail("chaos: the policy does not come back");
	remove_all(1);
	memstat(&after);
	if (after.procs != before.procs || after.pages_free != before.pages_free ||
	    after.blocks_free != before.blocks_free || after.inodes_free != before.inodes_free ||
	    after.files_open != before.files_open || after.inodes_in_use != before.inodes_in_use) {
		printf("chaos: seed %ld: processes %lu -> %lu, free pages %lu -> %lu, "
		       "free blocks %lu -> %lu, free inodes %lu -> %lu, files %lu -> %lu, "
		       "inodes in use %lu -> %lu\n",
		       seed, before.procs, after.procs, before.pages_free, after.pages_free,
		       before.blocks_free, after.blocks_free, before.inodes_free, after.inodes_free,
		       before.files_open, after.files_open, before.inodes_in_use,
		       after.inodes_in_use);
		return 1;
	}
	printf("chaos: seed %ld: %d of %ld sequences, nothing missing\n", seed, nr_begun, sequences);
	return 0;
}
