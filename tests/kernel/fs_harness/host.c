/* SPDX-License-Identifier: MIT */
/*
 * host.c - what the file system asks of the kernel under it: locks, wait queues,
 * pages, a user's memory, time.
 *
 * Locks check their owners. With one thread nobody else can open a lock or wake a
 * sleeper but the disk and a timer; when neither has anything to do, that is a
 * deadlock, and said so.
 */
#include "harness.h"

#include <sched.h>
#include <stdarg.h>
#include <string.h>

#include "../../../hosts/kernel/kernel/print.h"

__thread struct proc *current;
__thread u64 random_state = 88172645463325252ULL;
bool is_threaded, is_quiet;
char last_printk[256];
u8 *user_memory;
void (*after_release)(const struct spinlock *lock);

u32 random_below(u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % n;
}

struct proc *proc_new(void)
{
	struct proc *p = calloc(1, sizeof(*p));

	CHECK(p && sem_init(&p->wake, 0, 0) == 0, "no memory");
	p->frame = &p->registers;
	return p;
}

uint64 syscall3(uint64 (*fn)(void), uint64 a, uint64 b, uint64 c)
{
	struct frame *f = myproc()->frame;
	uint64 result;

	f->a0 = a;
	f->a1 = b;
	f->a2 = c;
	result = fn();
	CHECK(myproc()->nr_locks == 0, "a system call returns with a lock held");
	return result;
}

/* ---- print.h ------------------------------------------------------------- */

void printk(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(last_printk, sizeof(last_printk), fmt, args);
	va_end(args);
	if (!is_quiet)
		printf("%s\n", last_printk);
}

void panic(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("panic: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

u32 sl_format(char *to, u32 bytes, const char *fmt, va_list args)
{
	return vsnprintf(to, bytes, fmt, args);
}

/* ---- spinlock.h ---------------------------------------------------------- */

void initlock(struct spinlock *lock, const char *name)
{
	memset(lock, 0, sizeof(*lock));
	lock->name = name;
}

bool holding(const struct spinlock *lock)
{
	return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == current;
}

void acquire(struct spinlock *lock)
{
	CHECK(!holding(lock), "%s is taken twice", lock->name);
	while (__atomic_exchange_n(&lock->locked, 1, __ATOMIC_ACQUIRE)) {
		CHECK(is_threaded, "%s is held, and by nobody else", lock->name);
		sched_yield();
	}
	__atomic_store_n(&lock->owner, current, __ATOMIC_RELAXED);
	current->nr_locks++;
}

void release(struct spinlock *lock)
{
	CHECK(holding(lock), "%s is not ours", lock->name);
	__atomic_store_n(&lock->owner, NULL, __ATOMIC_RELAXED);
	current->nr_locks--;
	__atomic_store_n(&lock->locked, 0, __ATOMIC_RELEASE);
	if (after_release)
		after_release(lock);
}

void push_off(void) { }

void pop_off(void) { }

/* ---- wait.h -------------------------------------------------------------- */

void waitq_init(struct waitq *q, const char *name)
{
	list_init(&q->procs);
	q->name = name;
}

void sleep_on(struct waitq *q, struct spinlock *lock)
{
	struct proc *p = current;

	CHECK(holding(lock) && p->nr_locks == 1, "waiting for %s with %d locks", q->name,
	      p->nr_locks);
	p->is_woken = false;
	list_add(&q->procs, &p->queue);
	release(lock);
	if (is_threaded)
		sem_wait(&p->wake);
	else
		while (!p->is_woken)
			CHECK(disk_step() || timers_run_next(), "deadlock: waiting for %s", q->name);
	acquire(lock);
}

void wake_one(struct waitq *q)
{
	struct proc *p = thing_of(q->procs.next, struct proc, queue);

	if (waitq_is_empty(q))
		return;
	list_remove(&p->queue);
	p->is_woken = true;
	if (is_threaded)
		sem_post(&p->wake);
}

void wake_all(struct waitq *q)
{
	while (!waitq_is_empty(q))
		wake_one(q);
}

void initsleeplock(struct sleeplock *lock, const char *name)
{
	initlock(&lock->lock, name);
	waitq_init(&lock->waiters, name);
	lock->owner = NULL;
}

void acquiresleep(struct sleeplock *lock)
{
	CHECK(current->nr_locks == 0, "a sleep lock is taken with a spin lock held");
	acquire(&lock->lock);
	CHECK(lock->owner != current, "%s is taken twice", lock->lock.name);
	while (lock->owner)
		sleep_on(&lock->waiters, &lock->lock);
	lock->owner = current;
	release(&lock->lock);
}

void releasesleep(struct sleeplock *lock)
{
	acquire(&lock->lock);
	CHECK(lock->owner == current, "%s is not ours", lock->lock.name);
	lock->owner = NULL;
	wake_one(&lock->waiters);
	release(&lock->lock);
}

/* ---- mem.h --------------------------------------------------------------- */

static s64 nr_pages_used;

void *kalloc(void)
{
	__atomic_fetch_add(&nr_pages_used, 1, __ATOMIC_RELAXED);
	return malloc(PGSIZE);
}

void kfree(void *page)
{
	if (page)
		__atomic_fetch_sub(&nr_pages_used, 1, __ATOMIC_RELAXED);
	free(page);
}

u64 nr_free_pages(void)
{
	return 100000 - nr_pages_used;
}

void *kalloc_pages(u64 nr)
{
	void *memory = calloc(nr, PGSIZE);

	/* What was there before is not zero in the kernel. */
	return memory ? memset(memory, 0xa5, nr * PGSIZE) : NULL;
}

void kfree_pages(void *first, u64 nr)
{
	(void)nr;
	free(first);
}

/* How much of [at, at + n) is the user's. */
static u64 user_part(uint64 at, uint64 n)
{
	uint64 start = (uint64)user_memory, end = start + USER_BYTES;

	if (at < start || at >= end)
		return 0;
	return n < end - at ? n : end - at;
}

int copyin(void *to, uint64 from, uint64 n)
{
	u64 part = user_part(from, n);

	if (part)
		memcpy(to, (void *)from, part);
	return part == n ? 0 : -1;
}

int copyout(uint64 to, const void *from, uint64 n)
{
	u64 part = user_part(to, n);

	if (part)
		memcpy((void *)to, from, part);
	return part == n ? 0 : -1;
}

int copyinstr(char *to, uint64 from, uint64 max)
{
	for (uint64 i = 0; i < max; i++) {
		if (copyin(to + i, from + i, 1))
			return -1;
		if (!to[i])
			return (int)i;
	}
	return -1;
}

/* ---- timer.h ------------------------------------------------------------- */

static u64 time_ns;
static struct timer *timers[8];
static struct spinlock timers_lock;

u64 now_ns(void)
{
	return __atomic_load_n(&time_ns, __ATOMIC_RELAXED);
}

void timer_start(struct timer *timer, u64 at_ns, timer_fn fn, void *arg)
{
	u32 i = 0;

	acquire(&timers_lock);
	while (timers[i] && timers[i] != timer)
		i++;
	timer->at_ns = at_ns;
	timer->fn = fn;
	timer->arg = arg;
	timers[i] = timer;
	release(&timers_lock);
}

static struct timer *take_due(void)
{
	struct timer *found = NULL;

	acquire(&timers_lock);
	for (u32 i = 0; i < 8 && !found; i++) {
		if (timers[i] && timers[i]->at_ns <= time_ns) {
			found = timers[i];
			timers[i] = NULL;
		}
	}
	release(&timers_lock);
	return found;
}

void timers_run(u64 ns)
{
	struct timer *timer;

	__atomic_fetch_add(&time_ns, ns, __ATOMIC_RELAXED);
	while ((timer = take_due()))
		timer->fn(timer, timer->arg);
}

bool timers_run_next(void)
{
	for (u32 i = 0; i < 8; i++) {
		if (timers[i]) {
			u64 at_ns = timers[i]->at_ns;

			timers_run(at_ns > time_ns ? at_ns - time_ns : 0);
			return true;
		}
	}
	return false;
}
