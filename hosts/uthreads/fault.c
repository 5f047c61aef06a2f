/* SPDX-License-Identifier: MIT */
/*
 * fault.c - a stack that overflows is named; SIGQUIT shows who waits for what.
 *
 * A fault in a guard page, or in the page above it when not even a signal's frame
 * fits, is an overflow; every other fault goes to whoever handled it before. The
 * handler has a stack of its own, one per kernel thread: the thread's is used up.
 *
 * Read next: stack.c; dump.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ut.h"

#define HANDLER_STACK_BYTES 65536
#define NEAR_BYTES 16384	/* a frame that large may jump over the guard */

static const int faults[] = { SIGSEGV, SIGBUS };
#define NR_FAULTS (sizeof(faults) / sizeof(faults[0]))

static struct sigaction old_faults[NR_FAULTS];
static struct sigaction old_quit;
static bool has_quit;

/* Does @at lie below the stack of @t, as a push beyond its end would? */
static bool is_overflow(const struct ut_thread *t, const char *at)
{
	return t && t != ut.main && t->stack.bytes && at < t->stack.low &&
	       at >= t->stack.low - NEAR_BYTES;
}

static struct sigaction *old_action_of(int signal)
{
	for (u32 i = 0; i < NR_FAULTS; i++) {
		if (faults[i] == signal)
			return &old_faults[i];
	}
	return &old_quit;
}

/* As if we had not been there: the instruction faults again, or the signal is
 * handled by whoever handled it before. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *old = old_action_of(signal);

	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(signal, info, context);
	else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
		old->sa_handler(signal);
	else
		sigaction(signal, old, NULL);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *t = cpu ? cpu->curr : NULL;
	char line[200];

	if (!is_overflow(t, info->si_addr)) {
		pass_on(signal, info, context);
		return;
	}
	sl_print_to(line, sizeof(line),
		    "stack overflow: thread %s[%d] has used up its %llu bytes (address %p, stack %p to %p); give it more with ut_attr.stack_bytes",
		    t->core.p.comm, t->core.p.pid,
		    (unsigned long long)t->stack.bytes, info->si_addr,
		    (void *)t->stack.low, (void *)(t->stack.low + t->stack.bytes));
	sl_host_print(line);
	abort();
}

/* The core's dump, then who waits. Not from our own handlers' code. */
static void on_quit(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	if (ut.is_running) {
		sl_dump();
		ut_dump_threads();
	}
	if (old_quit.sa_handler != SIG_DFL && old_quit.sa_handler != SIG_IGN)
		pass_on(signal, info, context);
	errno = saved_errno;
}

void ut_dump(void)
{
	if (!ut_this_cpu())
		return;
	ut_disable();
	sl_dump();
	ut_dump_threads();
	ut_enable();
}

/* Return: 0 or -errno. Context: on @cpu's own kernel thread. */
int ut_fault_init_cpu(struct ut_cpu *cpu)
{
	stack_t stack = { .ss_size = HANDLER_STACK_BYTES };

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED)
		return -ENOMEM;
	cpu->fault_stack = stack.ss_sp;
	return sigaltstack(&stack, &cpu->old_fault_stack) ? -errno : 0;
}

void ut_fault_exit_cpu(struct ut_cpu *cpu)
{
	if (!cpu->fault_stack)
		return;
	sigaltstack(&cpu->old_fault_stack, NULL);
	munmap(cpu->fault_stack, HANDLER_STACK_BYTES);
	cpu->fault_stack = NULL;
}

void ut_fault_init(void)
{
	struct sigaction act = { .sa_sigaction = on_fault,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	for (u32 i = 0; i < NR_FAULTS; i++)
		sigaction(faults[i], &act, &old_faults[i]);
	/* Who ignores or handles it keeps it; by default it would end us. */
	act.sa_sigaction = on_quit;
	act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	has_quit = !(ut.flags & UT_NO_SIGQUIT) &&
		   !sigaction(SIGQUIT, &act, &old_quit);
}

void ut_fault_exit(void)
{
	for (u32 i = 0; i < NR_FAULTS; i++)
		sigaction(faults[i], &old_faults[i], NULL);
	if (has_quit)
		sigaction(SIGQUIT, &old_quit, NULL);
	has_quit = false;
}
