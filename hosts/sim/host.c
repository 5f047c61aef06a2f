/* SPDX-License-Identifier: MIT */
/*
 * host.c - the host contract (include/schedlab/host.h) in virtual time.
 *
 * A kick becomes an event of the kicked CPU; memory is the C library's; the
 * clock is in host_inline.h. The functions stand in the contract's order.
 *
 * Read next: hosts/uthreads/host.c, the same with kernel threads as CPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

u64 sim_now_ns;
s32 sim_cpu_idx;
struct sl_cpu *sim_core_cpu;

void sl_host_kick(s32 cpu)
{
	/* A CPU needs no interrupt to reach itself. */
	u64 latency_ns = cpu == sim_cpu_idx ? 0 :
					      sim.options->costs.ipi_ns + sim_kick_delay_ns(cpu);

	sim_cpu_set_resched((u32)cpu, sim_now_ns + latency_ns);
}

/* It schedules when the kick has reached it. */
void sim_wait_for_kick(s32 cpu)
{
	struct sim_cpu *c = &sim.cpus[sim_cpu_idx];

	(void)cpu;
	if (c->wait_until_ns < sim_now_ns + sim.options->costs.ipi_ns)
		c->wait_until_ns = sim_now_ns + sim.options->costs.ipi_ns;
}

/* Large blocks are mapped: pages that are never touched cost nothing. */
#define MAP_FROM_BYTES 65536

void *sl_host_alloc(u64 bytes)
{
	void *mem;

	if (bytes >= MAP_FROM_BYTES)
		return sim_map_block(bytes);
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
		sim_unmap_block(mem, bytes);
	else
		free(mem);
}

/* splitmix64 (Steele, Lea and Flood 2014), its upper half. */
static u32 mixed(u64 z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (u32)((z ^ (z >> 31)) >> 32);
}

u32 sl_host_random(void)
{
	return mixed(sim.random += 0x9e3779b97f4a7c15ULL);
}

/* Of what @nr says, from 0 to --cost jitter_ns: by the seed, and without a number that the policy would get. */
u64 sim_jitter_ns(u64 nr)
{
	u64 most_ns = sim.options->costs.jitter_ns;

	return mixed((nr + 1) * 0x9e3779b97f4a7c15ULL ^ mixed(~sim.options->seed)) % (most_ns + 1);
}

struct sl_task *sl_host_task(s32 pid)
{
	struct sl_task *t;

	if (pid < 1 || (u32)pid > sim.nr_tasks + sim.nr_user_tasks)
		return NULL;
	t = &sim.tasks[pid - 1].core;
	/* Linux may have given up the pid of a task that exits and is still scheduled (SCX_OPS_ENQ_EXITING). */
	if (SIM_INTERLEAVES && (t->p.flags & PF_EXITING))
		return NULL;
	return t->is_attached ? t : NULL;
}

void sl_host_set_timer(u64 at_ns, bool is_pinned)
{
	struct sim_cpu *cpu = &sim.cpus[sim_cpu_idx];
	u64 *timer_at_ns = is_pinned ? &cpu->timer_at_ns : &sim.timer_at_ns;

	/* By the policy's clock, to that of the simulation. */
	at_ns = at_ns > sim_clock_start_ns() ? at_ns - sim_clock_start_ns() : 0;
	if (at_ns < sim_now_ns)
		at_ns = sim_now_ns;
	if (unlikely(sim.options->costs.timer_ns))
		at_ns = sim_instant(at_ns) + sim.options->costs.timer_ns;
	if (at_ns == *timer_at_ns)
		return;
	*timer_at_ns = at_ns;
	sim_heap_push(at_ns, SIM_EVENT_TIMER, is_pinned ? (u32)cpu->idx + 1 : 0);
}

void sl_host_print(const char *line)
{
	sim_log("%llu.%09llu %s\n", (unsigned long long)(sim_now_ns / 1000000000),
		(unsigned long long)(sim_now_ns % 1000000000), line);
}

void sl_host_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	struct sim_result *r = sim.result;

	/* From now on every tick may matter: built-in FIFO ends slices. */
	sim.has_ticks = true;
	if (r->error_kind || info->kind == SCX_EXIT_UNREG_BPF || sim_restarts(info))
		return;
	r->status = "failed";
	r->error_kind = info->kind == SCX_EXIT_ERROR_STALL ? "stall" : "policy";
	r->task = pid;
	r->failed_at_ns = sim_now_ns;
	snprintf(r->error, sizeof(r->error), "%s: %s", info->reason, info->msg);
}

char sim_assertion[160];

void sl_host_panic(const char *file, int line, const char *what)
{
	sim_log("schedlab bug: %s:%d: assertion failed: %s\n", file, line, what);
	snprintf(sim_assertion, sizeof(sim_assertion), "%s:%d: %s", file, line, what);
	abort();
}

void sim_hang(void)
{
	sl_host_panic(__FILE__, __LINE__, "a wait that nobody can end");
}
