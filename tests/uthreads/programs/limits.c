/* SPDX-License-Identifier: MIT */
/*
 * limits.c - the machine runs out of something: a call says so, and nothing is lost.
 *
 *	limits POLICY CPUS threads|memory|maps|fork
 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NR_MAX 60000
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static ut_sem gate = UT_SEM_INIT(0);
static ut_id ids[NR_MAX];
static int nr_through, nr_kept;

static void *pass_gate(void *arg)
{
	CHECK_IS(ut_sem_wait(&gate), 0);
	__atomic_add_fetch(&nr_through, 1, __ATOMIC_SEQ_CST);
	return arg;
}

/* Create until it fails. Return: how many there are. */
static int fill(int wanted)
{
	int err = 0;
	int nr = 0;

	while (!err && nr < NR_MAX) {
		err = ut_create(&ids[nr], NULL, pass_gate, NULL);
		nr += !err;
	}
	CHECK_IS(err, wanted);
	return nr;
}

static void drain(int nr)
{
	nr_through = 0;
	for (int i = 0; i < nr; i++)
		CHECK_IS(ut_sem_post(&gate), 0);
	for (int i = 0; i < nr; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(nr_through, nr);
}

/* Twice: what failed gave back what it had. A CPU keeps some for itself. */
static void fill_and_drain(int wanted, int nr_min, int nr_max)
{
	int nr = fill(wanted), again;

	printf("%d threads\n", nr);
	CHECK(nr >= nr_min && nr <= nr_max);
	drain(nr);
	again = fill(wanted);
	CHECK(again >= nr - nr_kept);
	drain(again);
}

static void limit_memory(void)
{
	struct rlimit limit;
	char line[64] = "";
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file && fgets(line, sizeof(line), file));
	fclose(file);
	limit.rlim_cur = (rlim_t)atol(line) * 4096 + (64UL << 20);
	limit.rlim_max = limit.rlim_cur;
	CHECK_IS(setrlimit(RLIMIT_AS, &limit), 0);
}

/* As a kernel before 6.13: every guard splits its mapping. */
static void forbid_guards(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_GUARD_INSTALL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	CHECK_IS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_IS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

/* In a child there is no machine; each call says so. */
static void *fork_here(void *arg)
{
	ut_mutex mutex = UT_MUTEX_INIT;
	ut_id id;
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		CHECK_IS(ut_yield(), -EPERM);
		CHECK_IS(ut_sleep_ns(1), -EPERM);
		CHECK_IS(ut_mutex_lock(&mutex), -EPERM);
		CHECK_IS(ut_create(&id, NULL, pass_gate, NULL), -EPERM);
		CHECK_IS(ut_read(0, &id, 1), -EPERM);
		CHECK_IS(ut_self(), 0);
		CHECK_IS(ut_now_ns(), 0);
		ut_dump();
		CHECK_IS(ut_exit(), -EPERM);
		CHECK_IS(ut_init(NULL), -EPERM);
		CHECK(strstr(ut_error_text(), "forked"));
		/* The function's end: as it is not the child's to end a thread. */
		return arg;
	}
	/* Nothing of it has changed the parent. */
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status));
	CHECK_IS(WEXITSTATUS(status), 70);
	CHECK_IS(ut_yield(), 0);
	return arg;
}

/* A child that calls exec() has nothing to do with the machine. */
static void *run_true(void *arg)
{
	CHECK_IS(system("true"), 0);
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	const char *what = argc > 3 ? argv[3] : "";

	config.stack_bytes = 32768;
	nr_kept = 256 * ((int)config.nr_cpus - 1);
	if (!strcmp(what, "threads"))
		config.threads_max = 100;
	if (!strcmp(what, "maps"))
		forbid_guards();
	check_init(&config);
	if (!strcmp(what, "threads")) {
		fill_and_drain(-EAGAIN, 99, 99);
	} else if (!strcmp(what, "memory")) {
		limit_memory();
		fill_and_drain(-ENOMEM, 100, 2000);
	} else if (!strcmp(what, "maps")) {
		fill_and_drain(-ENOMEM, 10000, NR_MAX - 1);
	} else if (!strcmp(what, "fork")) {
		CHECK_IS(ut_create(&ids[0], NULL, fork_here, NULL), 0);
		CHECK_IS(ut_create(&ids[1], NULL, run_true, NULL), 0);
		CHECK_IS(ut_join(ids[0], NULL), 0);
		CHECK_IS(ut_join(ids[1], NULL), 0);
	}
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
