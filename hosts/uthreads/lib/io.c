/* SPDX-License-Identifier: MIT */
/*
 * io.c - calls that block the thread and not its kernel thread.
 *
 * There are two ways. A thread waits until a descriptor is ready, and then does the call
 * itself: which are ready epoll tells the CPUs, and the watcher, a kernel thread that
 * looks where no CPU does. What may block without a descriptor that is ever ready or not
 * (files, ut_outside()) is called by helpers: kernel threads, made as they are needed, up
 * to a limit.
 *
 *	thread: arm or queue the request, block   outside: it is ready or done; put it on
 *	                                          a CPU's `remote` list, ring its bell
 *
 * Helpers must not wait for what only another request can bring about: all of them
 * might. So nothing that waits for a peer is given to them.
 *
 * Read next: calls.c, which calls this; cpu.c, ut_ring().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io.h"

#define HELPERS_MAX 16
#define HELPER_STACK_BYTES (256U << 10)
#define READY_AT_ONCE 64
#define ARMED_MAX (1U << 20)	/* Linux's own default limit of descriptors */
#define LOOK_NS 100000
#define NAP_NS_MAX 1000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
/* lock protects: */
static struct request *first, **last = &first;
static pthread_t helpers[HELPERS_MAX];
static u32 nr_helpers, nr_waiting, nr_queued;
static bool must_end;
static pthread_t watcher;
static int end_fd;
static int ready_fd = -1; /* epoll's; -1: there is no watcher. Read without lock */

/* After a wait errno is another kernel thread's: its address is asked for anew. */
__attribute__((noinline)) int ut_io_error(void)
{
	__asm__ volatile("");
	return -errno;
}

/* An idle CPU; where there is none, @busy. */
static struct ut_cpu *idle_cpu_or(struct ut_cpu *busy)
{
	for (u32 i = 0; (u32)__atomic_load_n(&ut.idle, __ATOMIC_RELAXED) && i < ut.nr_cpus; i++) {
		struct ut_kthread *k = __atomic_load_n(&ut.cpus[i].k, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&k->doorbell, __ATOMIC_RELAXED) != UT_BELL_OFF)
			return &ut.cpus[i];
	}
	return busy;
}

/*
 * Any CPU may wake the thread: this one, or else an idle one, which needs no signal. The
 * request is the thread's, and gone once it is woken. Context: outside, or preemption
 * disabled.
 */
static void hand_back(struct request *r)
{
	struct ut_cpu *cpu = ut_this_cpu() ? ut_this_cpu() : idle_cpu_or(r->cpu);
	struct request *head = __atomic_load_n(&cpu->remote, __ATOMIC_RELAXED);

	do {
		r->next = head;
	} while (!__atomic_compare_exchange_n(&cpu->remote, &head, r, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	ut_ring(cpu, UT_PENDING_REMOTE);
}

/* Wake those whose requests are done. Context: preemption disabled, on @cpu. */
void ut_io_finish(struct ut_cpu *cpu)
{
	struct request *r = __atomic_exchange_n(&cpu->remote, NULL, __ATOMIC_SEQ_CST);

	while (r) {
		struct request *next = r->next;
		struct ut_thread *t = r->thread;

		smp_store_release(&r->is_done, true);
		ut_wake_by_interrupt(t);
		__atomic_sub_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
		r = next;
	}
}

static void *help(void *arg)
{
	struct request *r;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (!first && !must_end) {
			nr_waiting++;
			pthread_cond_wait(&has_work, &lock);
			nr_waiting--;
		}
		r = first;
		if (!r)
			break;
		first = r->next;
		if (!first)
			last = &first;
		nr_queued--;
		pthread_mutex_unlock(&lock);
		r->answer = r->fn(r->arg);
		hand_back(r);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

/* A kernel thread outside must not take the library's signals, nor the program's. */
static int start_outside(pthread_t *id, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, HELPER_STACK_BYTES);
	err = pthread_create(id, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

/* Context: lock held. */
static void add_helper(void)
{
	if (nr_queued > nr_waiting && nr_helpers < HELPERS_MAX &&
	    !start_outside(&helpers[nr_helpers], help, NULL))
		nr_helpers++;
}

/* Return: 0; -EAGAIN when there is no helper to do it. */
static int submit(struct request *r)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	r->next = NULL;
	*last = r;
	last = &r->next;
	nr_queued++;
	add_helper();
	if (nr_helpers)
		pthread_cond_signal(&has_work);
	else
		err = -EAGAIN;
	if (err) {
		first = NULL;
		last = &first;
		nr_queued = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- descriptors that are ready ---------------------------------------------------- */

/*
 * One list of ready descriptors, which CPUs look at: when they become idle, or have not for
 * LOOK_NS, and the watcher where they do neither. What is ready costs no CPU a signal
 * then. A descriptor stays in the kernel's list until it is closed, and is armed for one
 * event by each wait. An event of a wait that is over finds no request, or that of the next
 * wait, which looks, and waits again.
 */
static struct request *armed[ARMED_MAX]; /* by descriptor: its waiters; or &busy; atomic */
static struct request busy;		 /* a CPU, or the watcher, changes this one's */
static u64 looked_ns;			 /* atomic */

/* Of @fd. Context: outside, or preemption disabled; put_waiters() follows at once. */
static struct request *take_waiters(int fd)
{
	struct request *all;

	while ((all = __atomic_exchange_n(&armed[fd], &busy, __ATOMIC_ACQUIRE)) == &busy)
		ut_wait_turn();
	return all;
}

static void put_waiters(int fd, struct request *all)
{
	__atomic_store_n(&armed[fd], all, __ATOMIC_RELEASE);
}

/* Return: 0; -ENOENT: @epoll does not have the file yet; -EPERM: it is one on a disk; -errno. */
static int control(int epoll, int operation, int fd, u32 events)
{
	struct epoll_event event = { .events = events | EPOLLONESHOT, .data.fd = fd };

	return epoll_ctl(epoll, operation, fd, &event) ? ut_io_error() : 0;
}

/* @fd is ready for @events: its waiters for any of them. The others wait for the next event. */
static struct request *take_ready(int epoll, int fd, u32 events)
{
	struct request *r, *all = take_waiters(fd), *ready = NULL, **link = &all;
	u32 wanted = 0;

	while ((r = *link)) {
		if (!(events & (r->events | EPOLLERR | EPOLLHUP))) {
			wanted |= r->events;
			link = &r->next;
			continue;
		}
		*link = r->next;
		r->is_armed = false;
		r->answer = (int)events;
		r->next = ready;
		ready = r;
	}
	if (wanted)
		control(epoll, EPOLL_CTL_MOD, fd, wanted);
	put_waiters(fd, all);
	return ready;
}

/* Context: the watcher, or preemption disabled. */
static void look(int epoll)
{
	struct epoll_event events[READY_AT_ONCE];
	int nr = epoll_wait(epoll, events, READY_AT_ONCE, 0);

	for (int i = 0; i < nr; i++) {
		struct request *r, *next = take_ready(epoll, events[i].data.fd, events[i].events);

		while ((r = next)) {
			next = r->next;
			hand_back(r);
		}
	}
}

/* A CPU is about to sleep. Context: preemption disabled. */
void ut_io_look(void)
{
	int epoll = __atomic_load_n(&ready_fd, __ATOMIC_ACQUIRE);

	if (epoll < 0 || !READ_ONCE(ut.nr_outside))
		return;
	WRITE_ONCE(looked_ns, ut_this_cpu()->hot.now_ns);
	look(epoll);
}

/*
 * CPUs that are all busy most often look by themselves in a moment: then it is left to
 * them. To interrupt one for each event would cost more than what the thread does with it,
 * and so would a watcher that is awake each time: the longer they have looked by
 * themselves, the longer it sleeps.
 */
static void leave_to_cpus(void)
{
	u64 seen_ns, nap_ns = LOOK_NS;

	do {
		if ((u32)__atomic_load_n(&ut.idle, __ATOMIC_SEQ_CST))
			break;
		seen_ns = READ_ONCE(looked_ns);
		usleep((useconds_t)(nap_ns / 1000));
		nap_ns = nap_ns < NAP_NS_MAX ? 2 * nap_ns : NAP_NS_MAX;
	} while (READ_ONCE(looked_ns) != seen_ns && !smp_load_acquire(&must_end));
}

static void *watch(void *arg)
{
	int epoll = (int)(intptr_t)arg;
	struct pollfd either[] = { { .fd = epoll, .events = POLLIN },
				   { .fd = end_fd, .events = POLLIN } };

	for (;;) {
		poll(either, 2, -1);
		if (smp_load_acquire(&must_end))
			return NULL;
		leave_to_cpus();
		look(epoll);
	}
}

/* Context: lock held. Return: 0; -errno: there is no watcher. */
static int start_watcher(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int err;

	end_fd = eventfd(0, EFD_CLOEXEC);
	err = epoll < 0 || end_fd < 0 ? ut_io_error() : 0;
	if (!err)
		err = start_outside(&watcher, watch, (void *)(intptr_t)epoll);
	if (err) {
		close(epoll);
		close(end_fd);
		return err;
	}
	/* Not before: without a watcher no thread may wait there. */
	__atomic_store_n(&ready_fd, epoll, __ATOMIC_RELEASE);
	return 0;
}

static int need_watcher(void)
{
	int err = 0;

	if (likely(__atomic_load_n(&ready_fd, __ATOMIC_ACQUIRE) >= 0))
		return 0;
	pthread_mutex_lock(&lock);
	if (ready_fd < 0)
		err = start_watcher();
	pthread_mutex_unlock(&lock);
	return err;
}

/*
 * The thread is asked to end, and what it waits for may never come. To be handed back
 * remains the only way out, since @r is on its stack. Its descriptor may have been closed.
 */
static void disarm(struct request *r)
{
	struct request *all = take_waiters(r->fd), **link = &all;
	bool was_armed = r->is_armed;

	while (*link && *link != r)
		link = &(*link)->next;
	if (*link)
		*link = r->next;
	r->is_armed = false;
	put_waiters(r->fd, all);
	if (!was_armed)
		return;
	r->answer = -ECANCELED;
	hand_back(r);
}

/* Return: 0; -EPERM: it is a file; -errno. */
static int arm(struct request *r)
{
	u64 now_ns = ut_this_cpu()->hot.now_ns;
	u32 events = r->events;
	struct request *all;
	int err;

	if (r->fd < 0)
		return -EBADF;
	if ((u32)r->fd >= ARMED_MAX)
		return -EMFILE;
	all = take_waiters(r->fd);
	for (struct request *other = all; other; other = other->next)
		events |= other->events;
	err = control(ready_fd, EPOLL_CTL_MOD, r->fd, events);
	if (err == -ENOENT) {
		err = control(ready_fd, EPOLL_CTL_ADD, r->fd, r->events);
		/* Those that are there wait for a file that was closed, for which nothing comes. */
		all = err ? all : NULL;
	}
	r->is_armed = !err;
	r->next = all;
	put_waiters(r->fd, err ? all : r);
	if (!err && now_ns - READ_ONCE(looked_ns) > LOOK_NS) {
		WRITE_ONCE(looked_ns, now_ns);
		look(ready_fd);
	}
	return err;
}

/* ---- a thread waits ---------------------------------------------------------------- */

/* Submit @r with @give, and wait until it comes back. Return: as @give. */
static int wait_for(struct request *r, int (*give)(struct request *))
{
	struct ut_thread *self = ut_this_cpu()->curr;
	u64 until_ns = r->may_last ? self->deadline_ns : UT_NEVER;
	int err = ut_begin_wait(self, until_ns);

	if (err)
		return err;
	r->cpu = ut_this_cpu();
	r->thread = self;
	__atomic_add_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
	ut_prepare_block(self, UT_WAIT_IO, NULL);
	err = give(r);
	if (err) {
		__atomic_sub_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
		ut_end_timed_wait(self, until_ns);
		return err;
	}
	while (!smp_load_acquire(&r->is_done)) {
		if (r->may_last && !r->given_up) {
			r->given_up = ut_why_leave(self, UT_WAIT_IO, until_ns);
			if (r->given_up)
				disarm(r);
		}
		ut_block(self);
		ut_prepare_block(self, UT_WAIT_IO, NULL);
	}
	ut_end_timed_wait(self, until_ns);
	if (r->given_up && r->answer == -ECANCELED)
		r->answer = r->given_up;
	return 0;
}

/*
 * Wait until @fd may be ready for @events, or has an error. Return: for which, not 0;
 * -EPERM: it is a file, which always is; -ECANCELED; -ETIMEDOUT; -errno. Context:
 * preemption disabled; the caller may block.
 */
int ut_io_wait_ready(int fd, u32 events)
{
	struct request r = { .fd = fd, .events = events, .may_last = true };
	int err = need_watcher();

	if (!err)
		err = wait_for(&r, arm);
	return err ? err : r.answer;
}

/* Have a helper call @fn. Return: what it returned; -errno. */
int ut_io_call_outside(int (*fn)(void *), void *arg)
{
	struct request r = { .fn = fn, .arg = arg };
	int err = wait_for(&r, submit);

	return err ? err : r.answer;
}

int ut_outside(int (*fn)(void *arg), void *arg)
{
	return ut_inside(ut_io_call_outside(fn, arg));
}

void ut_io_exit(void)
{
	pthread_mutex_lock(&lock);
	smp_store_release(&must_end, true);
	pthread_cond_broadcast(&has_work);
	pthread_mutex_unlock(&lock);
	for (u32 i = 0; i < nr_helpers; i++)
		pthread_join(helpers[i], NULL);
	nr_helpers = 0;
	if (ready_fd >= 0) {
		eventfd_write(end_fd, 1);
		pthread_join(watcher, NULL);
	}
	must_end = false;
}

void ut_io_close(void)
{
	if (ready_fd < 0)
		return;
	close(ready_fd);
	close(end_fd);
	__atomic_store_n(&ready_fd, -1, __ATOMIC_RELEASE);
}
