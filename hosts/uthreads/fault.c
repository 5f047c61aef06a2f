/* SPDX-License-Identifier: MIT */
/*
 * fault.c - what a program or policy does wrong is named: an overflow of a stack, a
 * crash or an endless loop of the policy, fork(), an uncaught exception; SIGQUIT shows
 * what each thread waits for.
 *
 * A fault in a guard, or with a stack pointer below the stack, is an overflow; every
 * other fault goes to the previous handler. The handler has a stack of its own, one
 * per kernel thread: the thread's is used up.
 *
 * Read next: stack.c; dump.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "ut.h"

#define HANDLER_STACK_BYTES 65536
#define NR_BEATS_MAX 3		/* seconds in one callback: it will not return */
#define FRAME_BYTES_MAX (64U << 20)	/* of a frame that is recognised as one */

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL };
#define NR_FAULTS (sizeof(faults) / sizeof(faults[0]))

static struct sigaction old_faults[NR_FAULTS];
static struct sigaction old_quit;
static bool has_quit;

static const char *stack_pointer_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (const char *)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (const char *)context->uc_mcontext.sp;
#else
	return (const char *)context->uc_mcontext.__gregs[REG_SP];
#endif
}

/* Is @at below the stack of @t, by at most so much? */
static bool is_below(const struct ut_thread *t, const char *at, size_t bytes)
{
	return (size_t)(t->stack.low - 1 - at) < bytes;
}

/* Whether @t pushed beyond the end of its stack: by its guard, or by a frame larger than that. */
static bool is_overflow(const struct ut_thread *t, const char *at, const ucontext_t *context)
{
	return t && t != ut.main && t->stack.bytes &&
	       (is_below(t, at, UT_GUARD_BYTES) ||
		is_below(t, stack_pointer_of(context), FRAME_BYTES_MAX));
}

/* The policy's own fault, or that of a helper which it gave something wrong. */
static void name_policy(const struct sl_cpu_report *report, const char *did, const char *why)
{
	const struct sl_task *about = report->callback_task;
	char line[200];

	sl_print_to(line, sizeof(line), "policy '%s' %s in ops.%s() for thread %s[%d]: %s",
		    sl_report().policy, did, report->callback, about ? about->p.comm : "-",
		    about ? about->p.pid : 0, why);
	sl_host_print(line);
}

/*
 * Called on @cpu after each second of its CPU time. The core reads the clock whenever
 * it is entered: if it has not meanwhile, the callback that runs is the one that did then.
 */
void ut_fault_beat(struct ut_cpu *cpu)
{
	struct sl_cpu_report report = sl_cpu_report(cpu->id);

	if (!report.callback || cpu->hot.now_ns != cpu->k->beat_now_ns) {
		cpu->k->beat_now_ns = cpu->hot.now_ns;
		cpu->k->nr_beats = 0;
	} else if (++cpu->k->nr_beats == NR_BEATS_MAX) {
		name_policy(&report, "loops", "it has not returned for 3 s of CPU time");
		abort();
	}
}

static struct sigaction *old_action_of(int signal)
{
	for (u32 i = 0; i < NR_FAULTS; i++) {
		if (faults[i] == signal)
			return &old_faults[i];
	}
	return &old_quit;
}

/* As without this library: the instruction faults again, or the signal is
 * handled by the previous handler. */
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
	struct sl_cpu_report report = { 0 };
	char line[200];

	if (cpu && ut.is_running)
		report = sl_cpu_report(cpu->id);
	if (report.callback && info->si_code > 0)
		name_policy(&report, "crashed",
			    signal == SIGILL ? "an index outside of its array, or another trap" :
					       strsignal(signal));
	if (signal == SIGFPE || signal == SIGILL || !is_overflow(t, info->si_addr, context)) {
		pass_on(signal, info, context);
		return;
	}
	sl_print_to(line, sizeof(line),
		    "stack overflow: thread %s[%d] has used up its %llu bytes (address %p, stack %p to %p); give it more with ut_attr.stack_bytes",
		    t->core.p.comm, t->core.p.pid, (unsigned long long)t->stack.bytes,
		    info->si_addr, (void *)t->stack.low, (void *)(t->stack.low + t->stack.bytes));
	sl_host_print(line);
	abort();
}

/* The core's dump, then the threads that wait. Not from the library's own handlers. */
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

/* ---- fork() ------------------------------------------------------------------ */

#define EXIT_CHILD 70

static bool is_forked; /* this process is the child of one whose machine ran */

/*
 * The child has one kernel thread, whatever ran on the others stands still, and
 * their locks are never released. From now on there is no machine: every call
 * says -EPERM, until exec() makes a new program.
 */
static void after_fork(void)
{
	if (!ut.is_running)
		return;
	is_forked = true;
	ut.is_running = false;
	ut_cpu_leave();
}

bool ut_fault_is_forked(void)
{
	return is_forked;
}

/* The calling thread ends where there is no machine to go on with another. */
_Noreturn void ut_fault_no_machine(void)
{
	if (!is_forked) {
		sl_host_print("ut_thread_exit() was called outside the threads of ut_init()");
		abort();
	}
	sl_host_print(
		"a thread ended in a child of fork(), which has no other: a child has to call exec or _exit");
	_exit(EXIT_CHILD);
}

/* ---- exceptions --------------------------------------------------------------- */

/*
 * An unwinder asks the last frame of a thread, ut_context_entry(), what to do with
 * an uncaught C++ exception. Nothing: the C++ runtime then calls std::terminate(),
 * as for a std::thread. But now it is known which thread's it was. pthread_exit() and
 * pthread_cancel() unwind as well, by force: they would end the kernel thread with
 * all its threads.
 */
_Unwind_Reason_Code ut_personality(int version, _Unwind_Action actions,
				   _Unwind_Exception_Class class,
				   struct _Unwind_Exception *exception,
				   struct _Unwind_Context *context)
{
	struct ut_cpu *cpu = ut_this_cpu();
	struct ut_thread *t = cpu ? cpu->curr : NULL;
	char line[200];

	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	if (!t)
		return _URC_CONTINUE_UNWIND;
	sl_print_to(line, sizeof(line), "%s thread %s[%d]",
		    actions & _UA_FORCE_UNWIND ?
			    "pthread_exit() or pthread_cancel(), which end a kernel thread, met" :
			    "an exception left the function of",
		    t->core.p.comm, t->core.p.pid);
	sl_host_print(line);
	if (actions & _UA_FORCE_UNWIND)
		abort();
	return _URC_CONTINUE_UNWIND;
}

/* ---- start and end -------------------------------------------------------------- */

/* Return: 0 or -errno. Context: on @cpu's own kernel thread. */
int ut_fault_init_cpu(struct ut_cpu *cpu)
{
	stack_t stack = { .ss_size = HANDLER_STACK_BYTES };

	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (stack.ss_sp == MAP_FAILED)
		return -ENOMEM;
	cpu->k->fault_stack = stack.ss_sp;
	return sigaltstack(&stack, &cpu->k->old_fault_stack) ? -errno : 0;
}

void ut_fault_exit_cpu(struct ut_cpu *cpu)
{
	if (!cpu->k->fault_stack)
		return;
	sigaltstack(&cpu->k->old_fault_stack, NULL);
	munmap(cpu->k->fault_stack, HANDLER_STACK_BYTES);
	cpu->k->fault_stack = NULL;
}

void ut_fault_init(void)
{
	static bool knows_forks;
	struct sigaction act = { .sa_sigaction = on_fault,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

	if (!knows_forks)
		knows_forks = !pthread_atfork(NULL, NULL, after_fork);
	for (u32 i = 0; i < NR_FAULTS; i++)
		sigaction(faults[i], &act, &old_faults[i]);
	/*
	 * A program that ignores or handles SIGQUIT keeps that; by default it
	 * would end the process.
	 */
	act.sa_sigaction = on_quit;
	act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	has_quit = !(ut.flags & UT_NO_SIGQUIT) && !sigaction(SIGQUIT, &act, &old_quit);
}

void ut_fault_exit(void)
{
	for (u32 i = 0; i < NR_FAULTS; i++)
		sigaction(faults[i], &old_faults[i], NULL);
	if (has_quit)
		sigaction(SIGQUIT, &old_quit, NULL);
	has_quit = false;
}
