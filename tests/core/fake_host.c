/* SPDX-License-Identifier: MIT */
/*
 * fake_host.c - the host contract (include/schedlab/host.h) for the core's tests.
 *
 * Functions stand in the contract's order; what tests need beyond it comes
 * last. Nothing here knows what a task does: the tests play the tasks.
 *
 * Read next: random_ops.c, four threads at once; unit_*.c, one at a time.
 */
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fake_host.h"

/* Longer than any machine makes a lock's holder wait for its turn. */
#define SPIN_NS_MAX 60000000000ULL

struct fake_host fake;
__thread s32 fake_cpu;
__thread u64 fake_spins;
void (*fake_before_lock)(sl_lock_t *lock);
void (*fake_in_wait)(void);
static __thread u64 spin_start_ns;
static __thread u64 random_state;

static u64 real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

/* ---- host_inline.h ------------------------------------------------------- */

u64 fake_now_ns(void)
{
	if (fake.has_real_clock)
		return real_ns() - fake.start_ns;
	return __atomic_load_n(&fake.now_ns, __ATOMIC_RELAXED);
}

/* With more threads than processors the thread that is waited for needs this one. */
void fake_wait_a_turn(void)
{
	if (fake_in_wait)
		fake_in_wait();
	if (fake_spins++ == 0)
		spin_start_ns = real_ns();
	if (fake_spins % 64 == 0)
		sched_yield();
	if (fake_spins % 65536 == 0 && real_ns() - spin_start_ns > SPIN_NS_MAX)
		fake_lock_error("waits for ever");
}

void fake_lock_error(const char *what)
{
	fake_fail(__FILE__, __LINE__, what, " (cpu %d)", fake_cpu);
}

void fake_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	if (fake.on_record)
		fake.on_record(kind, task, cpu, flags, arg);
}

void fake_slice_changed(struct sl_task *t)
{
	(void)t;
	__atomic_fetch_add(&fake.nr_slice_changes, 1, __ATOMIC_RELAXED);
}

/* ---- host.h -------------------------------------------------------------- */

void sl_host_kick(s32 cpu)
{
	struct fake_cpu *c = &fake.cpus[cpu];

	__atomic_fetch_add(&c->nr_kicks, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->is_kicked, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&c->is_asleep, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &c->is_kicked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void *sl_host_alloc(u64 bytes)
{
	u64 rounded = (bytes + 63) & ~63ULL;
	void *mem;

	if (fake.alloc_fail_after != ~0ULL && !fake.alloc_fail_after--) {
		fake.alloc_fail_after = 0;
		return NULL;
	}
	mem = aligned_alloc(64, rounded ? rounded : 64);
	if (!mem)
		return NULL;
	memset(mem, 0, rounded ? rounded : 64);
	__atomic_fetch_add(&fake.alloc_bytes, bytes, __ATOMIC_RELAXED);
	return mem;
}

void sl_host_free(void *mem, u64 bytes)
{
	if (!mem)
		return;
	__atomic_fetch_sub(&fake.alloc_bytes, bytes, __ATOMIC_RELAXED);
	free(mem);
}

/* splitmix64 (Steele, Lea and Flood 2014), its upper half; one per thread. */
u32 sl_host_random(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (u32)((z ^ (z >> 31)) >> 32);
}

struct sl_task *sl_host_task(s32 pid)
{
	struct sl_task *t;

	if (pid < 0 || pid >= FAKE_PIDS_MAX)
		return NULL;
	t = __atomic_load_n(&fake.by_pid[pid], __ATOMIC_ACQUIRE);
	return t && READ_ONCE(t->is_attached) ? t : NULL;
}

void sl_host_set_timer(u64 at_ns, bool is_pinned)
{
	__atomic_store_n(is_pinned ? &fake.cpus[sl_host_cpu()].timer_at_ns : &fake.timer_at_ns,
			 at_ns, __ATOMIC_RELAXED);
}

void sl_host_print(const char *line)
{
	if (!__atomic_fetch_add(&fake.nr_lines, 1, __ATOMIC_RELAXED) || !fake.has_real_clock)
		snprintf(fake.last_line, sizeof(fake.last_line), "%s", line);
	if (fake.is_verbose)
		fprintf(stderr, "%s\n", line);
}

void sl_host_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	fake.failure_kind = info->kind;
	fake.failure_pid = pid;
	snprintf(fake.failure_msg, sizeof(fake.failure_msg), "%s", info->msg);
	__atomic_fetch_add(&fake.nr_failures, 1, __ATOMIC_RELEASE);
}

void sl_host_panic(const char *file, int line, const char *what)
{
	fake_fail(file, line, what, " (an assertion of the core)");
}

/* ---- for tests ----------------------------------------------------------- */

void fake_init(u64 seed, bool has_real_clock)
{
	fake = (struct fake_host){ .has_real_clock = has_real_clock,
				   .timer_at_ns = ~0ULL,
				   .alloc_fail_after = ~0ULL };
	fake.start_ns = real_ns();
	fake_cpu = 0;
	fake_seed_thread(seed);
}

void fake_seed_thread(u64 seed)
{
	random_state = seed * 0xd1342543de82ef95ULL + 1;
}

u32 fake_below(u32 limit)
{
	return (u32)(((u64)sl_host_random() * limit) >> 32);
}

bool fake_take_kick(s32 cpu)
{
	return __atomic_exchange_n(&fake.cpus[cpu].is_kicked, 0, __ATOMIC_SEQ_CST);
}

void fake_sleep(s32 cpu, u64 ns_max)
{
	struct fake_cpu *c = &fake.cpus[cpu];
	struct timespec ts = { .tv_nsec = (long)ns_max };

	__atomic_store_n(&c->is_asleep, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&c->is_kicked, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &c->is_kicked, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
	__atomic_store_n(&c->is_asleep, 0, __ATOMIC_SEQ_CST);
}

void fake_fail(const char *file, int line, const char *what, const char *fmt, ...)
{
	static u32 has_failed;
	va_list args;

	/* The first failure is the one to read; the others follow from it. */
	if (__atomic_exchange_n(&has_failed, 1, __ATOMIC_ACQ_REL))
		pause();
	fprintf(stderr, "FAILED %s:%d: %s", file, line, what);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\nreplay: %s\n", fake.replay);
	if (fake.on_panic)
		fake.on_panic();
	fflush(stderr);
	_exit(1);
}
