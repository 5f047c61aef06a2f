/* SPDX-License-Identifier: MIT */
/*
 * held.c - does a thread that was stopped by a signal hold the address of
 * anything thread-local?
 *
 * If it does, it must go on on the same kernel thread: the address means that
 * one's variable. Compilers keep such addresses in registers and on the stack,
 * and all of that is in the signal's frame and above it. So it is enough to look
 * for a number that lies in the kernel thread's thread-local memory. One that
 * only looks like it binds the thread needlessly, for one turn.
 *
 * A return address in the dynamic linker binds as well: it calls constructors with its
 * lock held, which it unlocks on the kernel thread where it was locked.
 *
 * What is not found is an address that the program stored elsewhere itself; it
 * knows that threads move (docs/uthreads.md).
 *
 * Read next: preempt.c.
 */
#define _GNU_SOURCE
#include <link.h>

#include "ut.h"
#include "valgrind.h"

/* Beyond this much stack it is not worth looking. */
#define STACK_BYTES_MAX 65536
/*
 * glibc's own data of a thread (struct pthread): behind the thread pointer on
 * x86-64, before it elsewhere. What is behind both may be any other memory.
 */
#define THREAD_BYTES 2304
/* A loop may hold a pointer that is less by what it adds to it. */
#define SLACK_BYTES 1024
/* Between two modules' variables there is no more than what aligns them. */
#define GAP_BYTES 4096

static void widen(struct ut_cpu *cpu, uintptr_t start, uintptr_t end)
{
	if (start < cpu->k->tls_start)
		cpu->k->tls_start = start;
	if (end > cpu->k->tls_end)
		cpu->k->tls_end = end;
}

/*
 * Static blocks lie side by side next to the thread pointer; one far away belongs
 * to a module that was opened at run time.
 */
static int add_module(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct ut_cpu *cpu = arg;
	uintptr_t at = (uintptr_t)info->dlpi_tls_data;

	(void)bytes;
	for (u32 i = 0; at && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_TLS && at + p->p_memsz + GAP_BYTES >= cpu->k->tls_start &&
		    at <= cpu->k->tls_end + GAP_BYTES)
			widen(cpu, at, at + p->p_memsz);
	}
	return 0;
}

/* Context: on @cpu's own kernel thread. */
void ut_held_init_cpu(struct ut_cpu *cpu)
{
	uintptr_t bytes;

	cpu->k->tls_start = ut_thread_pointer();
	cpu->k->tls_end = cpu->k->tls_start;
#if defined(__x86_64__)
	cpu->k->tls_end += THREAD_BYTES;
#else
	cpu->k->tls_start -= THREAD_BYTES;
#endif
	/* Modules come in any order: each may be next to what another one added. */
	do {
		bytes = cpu->k->tls_end - cpu->k->tls_start;
		dl_iterate_phdr(add_module, cpu);
	} while (cpu->k->tls_end - cpu->k->tls_start != bytes);
	cpu->k->tls_start -= SLACK_BYTES;
}

/**
 * ut_holds_tls - may the stopped thread hold an address that binds it here
 * @frame: of the signal: registers, and above it the stack
 *
 * Context: in the handler, on the thread's stack.
 */
__attribute__((no_sanitize("address", "thread"))) bool
ut_holds_tls(const struct ut_cpu *cpu, const struct ut_thread *t, const void *frame)
{
	uintptr_t bytes = cpu->k->tls_end - cpu->k->tls_start;
	uintptr_t linker_bytes = ut_linker_end - ut_linker_start;
	const uintptr_t *at = frame;
	const uintptr_t *top = (const uintptr_t *)(t->stack.low + t->stack.bytes);

	if ((uintptr_t)top - (uintptr_t)at > STACK_BYTES_MAX)
		return true;
	ut_valgrind_be_quiet(&at, sizeof(at));
	while (at < top && *at - cpu->k->tls_start >= bytes && *at - ut_linker_start >= linker_bytes)
		at++;
	ut_valgrind_listen();
	return at < top;
}
