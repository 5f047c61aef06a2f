/* SPDX-License-Identifier: MIT */
/*
 * posix.c - the simulator's platform: files, mapped memory, and signals.
 *
 * A policy that crashes, or stays in one callback for too long, is caught by a
 * signal: the process reports which callback and task it was, and ends.
 *
 * Read next: wasm.c, the other platform.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "program_file.h"
#include "bpf_faults.h"
#include "sim.h"

#define MAP_HUGE_FROM_BYTES (4U << 20)
#define CHECK_EVERY_MS 100	/* of CPU time */
#define WALL_TIMES 10		/* the limit on the wall clock, times that of CPU time */
#define WAIT_CPU_NS_MAX 1000000	/* of a second in which a callback only waited */

static u32 callback_limit_ms;

void *sim_map(u64 bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	/* Of a hundred thousand tasks each would need a page of its own. */
	if (bytes >= MAP_HUGE_FROM_BYTES)
		madvise(mem, bytes, MADV_HUGEPAGE);
	return mem;
}

void sim_unmap(void *mem, u64 bytes)
{
	munmap(mem, bytes);
}

int sim_file_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 ? -errno : fd;
}

int sim_file_write(int fd, const void *data, u64 bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		bytes -= (u64)n;
	}
	return 0;
}

int sim_file_close(int fd)
{
	return close(fd) ? -errno : 0;
}

const void *sim_program_open(const char *path, char *why, u32 why_bytes)
{
	return sl_program_file_map(path, why, why_bytes);
}

void sim_log(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

const char *sim_error_text(int err)
{
	return strerror(err);
}

/* The instruction that a signal interrupted; NULL where that is not known. */
static const void *interrupted_at(const void *context)
{
	const ucontext_t *at = context;

#if defined(__x86_64__)
	return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (const void *)at->uc_mcontext.pc;
#elif defined(__riscv)
	return (const void *)at->uc_mcontext.__gregs[REG_PC];
#else
	return at ? NULL : at;
#endif
}

/* Where that is in the policy's file, for its source line; 0: outside. */
static u64 policy_offset(const void *at)
{
	Dl_info place, own;

	if (!at || !sim_policy_file.policy || !dladdr(at, &place) ||
	    !dladdr(sim_policy_file.policy, &own) || place.dli_fbase != own.dli_fbase)
		return 0;
	return (u64)at - (u64)place.dli_fbase;
}

_Noreturn static void report_and_end(const char *kind, const char *what, const void *context)
{
	sim_worker_report(kind, what, policy_offset(interrupted_at(context)));
	_exit(SIM_EXIT_REPORTED);
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
	(void)info;
	if (sim_policy_file.is_published &&
	    (sig == SIGFPE ? sl_divide_as_bpf(context) :
			     sig == SIGSEGV && sl_null_as_bpf(context, sl_arena_first_page())))
		return;
	signal(sig, SIG_DFL);
	report_and_end("crash",
		       sig == SIGABRT ? "aborted" :
		       sig == SIGFPE  ? "divided by zero" :
		       sig == SIGILL  ? SIM_TRAPPED :
					"accessed invalid memory",
		       context);
}

#define NOTHING_SEEN (~0ULL)

/* What a check saw last, and how often in a row it saw the same callback. */
struct stuck_check {
	u64 seen; /* 0 is ops.init() of a run that begins */
	u32 nr_times;
};

/* Return: for how many checks the policy has been in one callback. */
static u32 count_checks(struct stuck_check *check)
{
	bool is_in_callback = sim_core_cpu && sl_cpu_report(sim_cpu_idx).callback;
	u64 seen = sim_now_ns + sim.nr_zero_ops;

	if (!is_in_callback || seen != check->seen) {
		check->seen = seen;
		check->nr_times = 0;
		return 0;
	}
	return ++check->nr_times;
}

/* This process has used another CHECK_EVERY_MS of CPU time. */
static void on_cpu_check(int sig, siginfo_t *info, void *context)
{
	static struct stuck_check check = { .seen = NOTHING_SEEN };

	(void)sig;
	(void)info;
	if (count_checks(&check) * CHECK_EVERY_MS >= callback_limit_ms)
		report_and_end("spin", "did not return", context);
}

/*
 * Another second has passed. A callback that sleeps or waits uses no CPU time;
 * one that computes does, however busy the machine is, and is on_cpu_check()'s.
 */
static void on_wall_check(int sig, siginfo_t *info, void *context)
{
	static struct stuck_check check = { .seen = NOTHING_SEEN };
	static u64 cpu_ns_before;
	struct timespec cpu;
	u64 cpu_ns;

	(void)sig;
	(void)info;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	cpu_ns = (u64)cpu.tv_sec * 1000000000 + (u64)cpu.tv_nsec;
	if (cpu_ns - cpu_ns_before > WAIT_CPU_NS_MAX)
		check.nr_times = 0;
	cpu_ns_before = cpu_ns;
	if (count_checks(&check) * 1000ULL >= WALL_TIMES * (u64)callback_limit_ms)
		report_and_end("spin", "waits and did not return", context);
}

void sim_catch_policy(const struct sim_options *options)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	struct sigaction act = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
	struct itimerval every = {
		.it_interval = { .tv_usec = CHECK_EVERY_MS * 1000 },
		.it_value = { .tv_usec = CHECK_EVERY_MS * 1000 },
	};
	struct itimerval every_second = {
		.it_interval = { .tv_sec = 1 },
		.it_value = { .tv_sec = 1 },
	};
	stack_t stack = { .ss_size = 1 << 18 };

	callback_limit_ms = options->callback_limit_ms;
	/* A policy that recurses without end has no stack left for a handler. */
	stack.ss_sp = malloc(stack.ss_size);
	if (stack.ss_sp && !sigaltstack(&stack, NULL))
		act.sa_flags |= SA_ONSTACK;
	for (u32 i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		sigaction(crashes[i], &act, NULL);
	act.sa_sigaction = on_cpu_check;
	act.sa_flags |= SA_RESTART;
	sigaction(SIGPROF, &act, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	act.sa_sigaction = on_wall_check;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &every_second, NULL);
}
