/* SPDX-License-Identifier: MIT */
/*
 * playverbs.c - what each verb of a workload does on this kernel.
 *
 * Locks, pipes, barriers and conditions are the kernel's (sync.c), with the
 * simulator's meaning. A read or write costs what the run's device model says:
 * on the emulated disk it would cost what the host machine does meanwhile.
 *
 * Must stay true: every function returns when its verb is done, and a task's CPU
 * time stays within 1 % of what its program asks for.
 * Read next: player/player.c, which calls these.
 */
#include "kernel/types.h"
#include "lab/syncspec.h"
#include "user/user.h"
#include "user/play.h"

/*
 * A run stops this long before its time is over: the task then needs about as
 * long to say so. A burst that is as long as a tick is so over before the tick,
 * as it is in the simulator, and not just after it.
 */
#define TAIL_NS 2000
/* A run gives back what the calls before it took, up to this part of itself. */
#define GIVE_BACK_PART 128
#define CALIBRATION_ROUNDS 200000
/* So that picoseconds fit; a longer run spins again. */
#define SPIN_NS_MAX (1ULL << 50)
#define PS 1000

static struct play *play_of(struct sl_player *p)
{
	return p->host;
}

/* Two instructions a round. */
static void spin_rounds(u64 rounds)
{
	if (rounds)
		asm volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(rounds));
}

/*
 * The same for long times, as one block without a branch: an emulator pays by the
 * block, so this plays a workload a hundred times faster than short rounds, and
 * takes as many instructions.
 */
static void spin_stretches(u64 stretches)
{
	if (stretches)
		asm volatile(".balign 2048\n"
			     "1:\t.rept 500\n\tnop\n\t.endr\n"
			     "\taddi %0, %0, -1\n\tbnez %0, 1b"
			     : "+r"(stretches));
}

static u64 measure_ps(void (*spin)(u64 rounds), u64 rounds)
{
	u64 from_ns = clock_ns();
	u64 ps;

	spin(rounds);
	ps = (clock_ns() - from_ns) * PS / rounds;
	return ps ? ps : 1;
}

void play_calibrate(struct play *play)
{
	play->ps_per_round = measure_ps(spin_rounds, CALIBRATION_ROUNDS);
	play->ps_per_stretch = measure_ps(spin_stretches, CALIBRATION_ROUNDS / 100);
}

/* Use the CPU for about @ns, and not for longer. */
static void spin_ns(const struct play *play, u64 ns)
{
	u64 ps = (ns < SPIN_NS_MAX ? ns : SPIN_NS_MAX) * PS;

	spin_stretches(ps / play->ps_per_stretch);
	spin_rounds(ps % play->ps_per_stretch / play->ps_per_round);
}

static u64 verb_now_ns(struct sl_player *p)
{
	(void)p;
	return clock_ns();
}

/*
 * CPU time counts, not the clock: a task that is preempted goes on later. The
 * calls between two runs cost the task some; a run is shorter by that, so that
 * the sum is right.
 */
static int verb_run(struct sl_player *p, u64 ns)
{
	struct play *play = play_of(p);
	u64 used_ns = cputime_ns();
	u64 give_back_ns = ns / GIVE_BACK_PART;

	if (play->run_until_ns + give_back_ns < used_ns)
		play->run_until_ns = used_ns - give_back_ns;
	play->run_until_ns += ns;
	while (used_ns + TAIL_NS < play->run_until_ns) {
		u64 left_ns = play->run_until_ns - used_ns - TAIL_NS;

		spin_ns(play, left_ns < play->spin_ns_max ? left_ns : play->spin_ns_max);
		used_ns = cputime_ns();
	}
	return 0;
}

static int verb_work(struct sl_player *p, u32 work, u64 units)
{
	struct play *play = play_of(p);

	/* The result goes somewhere, so that the compiler cannot leave it out. */
	*(volatile u64 *)&play->run_until_ns = sl_work(work, units);
	play->run_until_ns = cputime_ns();
	return 0;
}

static int verb_sleep_until(struct sl_player *p, u64 at_ns)
{
	(void)p;
	return sleep_until_ns(at_ns);
}

static int verb_transfer(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	struct play *play = play_of(p);

	while (bytes) {
		u64 now = chunk_bytes && chunk_bytes < bytes ? chunk_bytes : bytes;

		if (play->call_ns)
			verb_run(p, play->call_ns);
		if (flags & (SL_OP_SYNC | SL_OP_DIRECT) &&
		    syncop(play->syncs, play->device, SYNC_REQUEST, now) < 0)
			return -1;
		bytes -= now;
	}
	return 0;
}

static int verb_yield(struct sl_player *p)
{
	(void)p;
	return yield();
}

static int use(struct sl_player *p, u32 object, int op, u64 arg)
{
	return syncop(play_of(p)->syncs, object, op, arg);
}

static int verb_lock(struct sl_player *p, u32 object)
{
	return use(p, object, SYNC_TAKE_LOCK, 0);
}

static int verb_unlock(struct sl_player *p, u32 object)
{
	return use(p, object, SYNC_DROP_LOCK, 0);
}

static int verb_send(struct sl_player *p, u32 object, u64 bytes)
{
	return use(p, object, SYNC_SEND, bytes);
}

static int verb_recv(struct sl_player *p, u32 object, u64 bytes)
{
	return use(p, object, SYNC_RECV, bytes);
}

static int verb_barrier(struct sl_player *p, u32 object)
{
	return use(p, object, SYNC_ARRIVE, 0);
}

static int verb_await(struct sl_player *p, u32 object, u32 lock)
{
	return use(p, object, SYNC_AWAIT, lock == SL_PROGRAM_NONE ? 0 : lock + 1);
}

static int verb_signal(struct sl_player *p, u32 object, bool all)
{
	return use(p, object, SYNC_SIGNAL, all);
}

static int verb_spawn(struct sl_player *p, u32 task)
{
	return release(play_of(p)->first_pid + (int)task, 0);
}

static int verb_wait(struct sl_player *p, u64 children)
{
	return use(p, play_of(p)->children_ended + p->task, SYNC_TAKE, children);
}

static int verb_set(struct sl_player *p, u32 key, u64 value)
{
	(void)p;
	return setattr(0, key, value);
}

const struct sl_player_ops play_verbs = {
	.now_ns = verb_now_ns,
	.run = verb_run,
	.work = verb_work,
	.sleep_until = verb_sleep_until,
	.read = verb_transfer,
	.write = verb_transfer,
	.yield = verb_yield,
	.lock = verb_lock,
	.unlock = verb_unlock,
	.send = verb_send,
	.recv = verb_recv,
	.barrier = verb_barrier,
	.await = verb_await,
	.signal = verb_signal,
	.spawn = verb_spawn,
	.wait = verb_wait,
	.set = verb_set,
};
