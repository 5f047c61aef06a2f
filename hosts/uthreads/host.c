/* SPDX-License-Identifier: MIT */
/*
 * host.c - the host contract (include/schedlab/host.h) with kernel threads.
 *
 * A kick becomes a flag, and a signal or a wake-up for a CPU that would not look
 * at the flag by itself; memory comes from mmap(); locks and the clock are in
 * host_inline.h. The functions stand in the contract's order.
 *
 * Read next: hosts/kernel/kernel/host.c, the same with harts as CPUs.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ut.h"

struct ut_machine ut;
bool ut_is_smp;

/* How often to spin before the kernel may run another thread on this CPU. */
#define SPINS_MAX 200

/* One turn of a wait, also of a kernel thread that plays no CPU, or will soon play another. */
void ut_wait_turn(void)
{
	static __thread u32 nr;

	ut_pause();
	if (++nr % SPINS_MAX == 0)
		sched_yield();
}

/* The lock holder may have lost its CPU to another process. */
void ut_lock_wait(sl_lock_t *lock)
{
	if (ut_this_cpu())
		ut_this_cpu()->hot.has_waited = true;
	do {
		while (READ_ONCE(lock->is_held))
			ut_wait_turn();
	} while (__atomic_exchange_n(&lock->is_held, 1, __ATOMIC_SEQ_CST));
}

void ut_relax(void)
{
	ut_this_cpu()->hot.has_waited = true;
	ut_wait_turn();
}

/* All its lines at once: one by one, each would be waited for. */
void ut_prefetch_task(const struct sl_task *t)
{
	if (t)
		ut_prefetch_thread((const struct ut_thread *)t);
}

void sl_host_kick(s32 cpu)
{
	ut_ring(&ut.cpus[cpu], UT_PENDING_KICK);
}

/* Large blocks are mapped: pages that are never touched cost nothing. */
#define MAP_FROM_BYTES 65536

void *sl_host_alloc(u64 bytes)
{
	void *mem;

	if (bytes >= MAP_FROM_BYTES) {
		mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		return mem == MAP_FAILED ? NULL : mem;
	}
	bytes = (bytes + 63) & ~63ULL;
	mem = aligned_alloc(64, bytes ? bytes : 64);
	if (mem)
		memset(mem, 0, bytes);
	return mem;
}

void sl_host_free(void *mem, u64 bytes)
{
	if (!mem)
		return;
	if (bytes >= MAP_FROM_BYTES)
		munmap(mem, bytes);
	else
		free(mem);
}

/* splitmix64 (Steele, Lea and Flood 2014), its upper half. */
u32 sl_host_random(void)
{
	u64 z = __atomic_add_fetch(&ut.random, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (u32)((z ^ (z >> 31)) >> 32);
}

struct sl_task *sl_host_task(s32 pid)
{
	struct ut_thread *t;
	u32 slot;

	if (pid < 1)
		return NULL;
	slot = READ_ONCE(*(ut_slot_of_pid(pid)));
	if (!slot)
		return NULL;
	t = &ut.threads[slot - 1];
	if (READ_ONCE(t->core.p.pid) != pid || !READ_ONCE(t->core.is_attached))
		return NULL;
	return &t->core;
}

void sl_host_set_timer(u64 at_ns, bool is_pinned)
{
	ut_policy_timer_set(at_ns, is_pinned);
}

/* In one piece and without stdio, whose lock another thread may hold. */
void sl_host_print(const char *line)
{
	char text[256];
	u64 now_ns = ut_clock_ns();
	u32 used;

	used = sl_print_to(text, sizeof(text) - 1, "%llu.%09llu %s", now_ns / 1000000000,
			   now_ns % 1000000000, line);
	text[used] = '\n';
	if (write(STDERR_FILENO, text, used + 1) < 0)
		return;
}

void sl_host_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	/* From now on every tick ends a turn. */
	smp_store_release(&ut.has_ticks, true);
	ut_policy_failed(info, pid);
}

void sl_host_panic(const char *file, int line, const char *what)
{
	char text[256];

	sl_print_to(text, sizeof(text), "schedlab bug: %s:%d: assertion failed: %s", file, line,
		    what);
	sl_host_print(text);
	abort();
}
