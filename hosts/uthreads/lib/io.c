/* SPDX-License-Identifier: MIT */
/*
 * io.c - calls that block the thread and not its kernel thread.
 *
 * A request is done outside the machine; then its thread is handed to the CPU it came
 * from, which wakes it. Files are read and written, connections accepted, by the
 * kernel itself (uring.c). Where it has no io_uring, or forbids it, and for whatever
 * else may block, there are helpers: kernel threads, made as they are needed, up to a
 * limit.
 *
 *	thread: queue the request, block     outside: do it, put the thread on the
 *	                                     CPU's `remote` list, ring its bell
 *
 * Helpers must not wait for what only another request can bring about: all of them
 * might. So what waits for a peer (of a pipe, a terminal) waits in the kernel's ring, or
 * with the watcher, one kernel thread for all of them. Sockets are read and written by the
 * thread itself, and which of them are ready is looked at by CPUs (see armed[]).
 *
 * Read next: calls.c, which calls this; uring.c; cpu.c, ut_ring().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

#define HELPERS_MAX 16
#define HELPER_STACK_BYTES (256U << 10)
#define WATCHED_AT_ONCE 64
#define CANCELLED_TRIES 8
#define ARMED_MAX 65536		/* descriptors beyond are watched one by one */
#define LOOK_NS 100000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
/* lock protects: */
static struct request *first, **last = &first;
static pthread_t helpers[HELPERS_MAX];
static u32 nr_helpers, nr_waiting, nr_queued;
static bool must_end;
static pthread_t watcher;
static int epoll_fd = -1, end_fd = -1;	/* -1: there is no watcher */
static struct request *given_up;	/* the watcher is to hand them back */
/* Does the kernel do requests itself? Written under the lock; atomic. */
static enum { RING_UNKNOWN, RING_USED, RING_MISSING } ring_state;
static struct request ring_rings, sockets;	/* what the watcher is told of these */

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
void ut_io_hand_back(struct request *r)
{
	struct ut_cpu *cpu = ut_this_cpu() ? ut_this_cpu() : idle_cpu_or(r->cpu);
	struct request *head = __atomic_load_n(&cpu->remote, __ATOMIC_RELAXED);

	do {
		r->next = head;
	} while (!__atomic_compare_exchange_n(&cpu->remote, &head, r, false,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	ut_ring(cpu, UT_PENDING_REMOTE);
}

/* Wake those whose requests are done. Context: preemption disabled, on @cpu. */
void ut_io_finish(struct ut_cpu *cpu)
{
	struct request *r = __atomic_exchange_n(&cpu->remote, NULL,
						__ATOMIC_SEQ_CST);

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
		ut_io_hand_back(r);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

/* A kernel thread outside must not take our signals, nor the program's. */
static int start_outside(pthread_t *id, void *(*fn)(void *))
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, HELPER_STACK_BYTES);
	err = pthread_create(id, &attr, fn, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

/* Context: lock held. */
static void add_helper(void)
{
	if (nr_queued > nr_waiting && nr_helpers < HELPERS_MAX &&
	    !start_outside(&helpers[nr_helpers], help))
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

/* ---- sockets ---------------------------------------------------------------------- */

/*
 * One list of ready sockets, which CPUs look at: when they become idle, or have not for
 * LOOK_NS, and the watcher where they do neither. What is ready costs no CPU a signal
 * then. A socket stays in the kernel's list until it is closed, and is armed for one
 * event by each wait. An event of a wait that is over finds no request, or that of the next
 * wait, which looks, and waits again.
 */
static struct request *armed[ARMED_MAX];	/* by descriptor; atomic */
static int sockets_fd = -1;			/* atomic */
static u64 looked_ns;				/* atomic */

/* Context: the watcher, or preemption disabled. Return: whether there may be more. */
static bool look_at_sockets(void)
{
	struct epoll_event events[WATCHED_AT_ONCE];
	int nr = epoll_wait(__atomic_load_n(&sockets_fd, __ATOMIC_ACQUIRE), events,
			    WATCHED_AT_ONCE, 0);

	for (int i = 0; i < nr; i++) {
		struct request *r = __atomic_exchange_n(&armed[events[i].data.fd], NULL,
							__ATOMIC_ACQ_REL);

		if (!r)
			continue;
		r->answer = (int)events[i].events;
		ut_io_hand_back(r);
	}
	return nr == WATCHED_AT_ONCE;
}

/* A CPU is about to sleep. Context: preemption disabled. */
void ut_io_look(void)
{
	if (__atomic_load_n(&sockets_fd, __ATOMIC_ACQUIRE) >= 0 && READ_ONCE(ut.nr_outside))
		look_at_sockets();
}

/* Return: whether @r is the caller's, and no event's. */
static bool take_armed(struct request *r)
{
	struct request *was = r;

	return __atomic_compare_exchange_n(&armed[r->watched_fd], &was, NULL, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void disarm(struct request *r)
{
	if (!take_armed(r))
		return;
	r->answer = -ECANCELED;
	ut_io_hand_back(r);
}

/* Return: 0; -EBUSY: another thread waits for it; -errno. */
static int arm(struct request *r)
{
	struct epoll_event event = { .events = (u32)r->answer | EPOLLONESHOT,
				     .data.fd = r->watched_fd };
	u64 now_ns = ut_this_cpu()->hot.now_ns;
	struct request *was = NULL;
	int err = 0;

	if (!__atomic_compare_exchange_n(&armed[r->watched_fd], &was, r, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return -EBUSY;
	if (epoll_ctl(sockets_fd, EPOLL_CTL_MOD, r->watched_fd, &event))
		err = ut_io_error();
	if (err == -ENOENT)
		err = epoll_ctl(sockets_fd, EPOLL_CTL_ADD, r->watched_fd, &event) ? ut_io_error() : 0;
	/* An event of an earlier wait may have it already. */
	if (err)
		return take_armed(r) ? err : 0;
	if (now_ns - READ_ONCE(looked_ns) > LOOK_NS) {
		WRITE_ONCE(looked_ns, now_ns);
		look_at_sockets();
	}
	return 0;
}

/*
 * The thread is asked to end, and what it waits for may never come: the kernel or the
 * watcher is to hand @r back. That remains the only way, since it is on our stack.
 */
static void take_back(struct request *r)
{
	struct stat about;

	if (r->is_armed) {
		disarm(r);
		return;
	}
	if (r->sqe) {
		/* A disk answers by itself. */
		if (!fstat(r->sqe->fd, &about) && !S_ISREG(about.st_mode) &&
		    !S_ISBLK(about.st_mode))
			ut_uring_cancel(r);
		return;
	}
	pthread_mutex_lock(&lock);
	if (r->is_watched) {
		r->next = given_up;
		given_up = r;
		eventfd_write(end_fd, 1);
	}
	pthread_mutex_unlock(&lock);
}

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
				take_back(r);
		}
		ut_block(self);
		ut_prepare_block(self, UT_WAIT_IO, NULL);
	}
	ut_end_timed_wait(self, until_ns);
	if (r->given_up && (r->answer == -EINTR || r->answer == -ECANCELED))
		r->answer = r->given_up;
	return 0;
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
	if (epoll_fd >= 0 && !eventfd_write(end_fd, 1))
		pthread_join(watcher, NULL);
	must_end = false;
	if (epoll_fd < 0)
		return;
	if (sockets_fd >= 0)
		close(sockets_fd);
	__atomic_store_n(&sockets_fd, -1, __ATOMIC_RELEASE);
	close(epoll_fd);
	close(end_fd);
	epoll_fd = -1;
	end_fd = -1;
	ut_uring_exit();
	ring_state = RING_UNKNOWN;
}

/* ---- the watcher: it waits for descriptors to be ready -------------------------- */

/* The watcher lets go of @r, which is on no list any more. @answer: events; -errno. */
static void end_watch(struct request *r, int answer)
{
	/* The program has the same file open: its own close() is no end of the watch. */
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, r->watched_fd, NULL);
	close(r->watched_fd);
	r->answer = answer;
	/* From here on @r is gone. */
	ut_io_hand_back(r);
}

/* It is ready, and perhaps given up as well: either way it is handed back once. */
static void end_ready_watch(struct request *r, u32 events)
{
	struct request **link;

	pthread_mutex_lock(&lock);
	r->is_watched = false;
	for (link = &given_up; *link && *link != r; link = &(*link)->next)
		;
	if (*link)
		*link = r->next;
	pthread_mutex_unlock(&lock);
	end_watch(r, (int)events);
}

/* After a look at what is ready, so that no event is left of those. */
static void end_given_up(void)
{
	struct request *r, *next;

	pthread_mutex_lock(&lock);
	r = given_up;
	given_up = NULL;
	for (next = r; next; next = next->next)
		next->is_watched = false;
	pthread_mutex_unlock(&lock);
	for (; r; r = next) {
		next = r->next;
		end_watch(r, -ECANCELED);
	}
}

/*
 * CPUs that are all busy most often look by themselves in a moment: then it is left to
 * them. To interrupt one for each event would cost more than what the thread does with it.
 */
static void hear_sockets(void)
{
	if (!(u32)__atomic_load_n(&ut.idle, __ATOMIC_SEQ_CST))
		usleep(LOOK_NS / 1000);
	look_at_sockets();
}

static void *watch(void *arg)
{
	struct epoll_event events[WATCHED_AT_ONCE];
	eventfd_t nr_rings;
	bool must_look = false;

	while (!must_look || !smp_load_acquire(&must_end)) {
		int nr = epoll_wait(epoll_fd, events, WATCHED_AT_ONCE, -1);

		must_look = false;
		for (int i = 0; i < nr; i++) {
			struct request *r = events[i].data.ptr;

			if (!r)
				must_look = !eventfd_read(end_fd, &nr_rings);
			else if (r == &ring_rings)
				ut_uring_reap();
			else if (r == &sockets)
				hear_sockets();
			else
				end_ready_watch(r, events[i].events);
		}
		if (must_look)
			end_given_up();
	}
	return arg;
}

/* Context: lock held. Return: 0; -errno: there is no watcher. */
static int start_watcher(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	if (epoll_fd >= 0)
		return 0;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	end_fd = eventfd(0, EFD_CLOEXEC);
	err = epoll_fd < 0 || end_fd < 0 ||
	      epoll_ctl(epoll_fd, EPOLL_CTL_ADD, end_fd, &event) ? ut_io_error() : 0;
	if (!err)
		err = start_outside(&watcher, watch);
	if (err) {
		close(epoll_fd);
		close(end_fd);
		epoll_fd = -1;
		end_fd = -1;
	}
	return err;
}

static bool can_arm(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &sockets };
	int epoll;

	if ((u32)fd >= ARMED_MAX)
		return false;
	if (likely(__atomic_load_n(&sockets_fd, __ATOMIC_ACQUIRE) >= 0))
		return true;
	pthread_mutex_lock(&lock);
	if (sockets_fd < 0 && !start_watcher()) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		if (epoll >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, epoll, &event)) {
			close(epoll);
			epoll = -1;
		}
		__atomic_store_n(&sockets_fd, epoll, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return sockets_fd >= 0;
}

/*
 * Wait until the socket @fd may be ready for @events. Return: as ut_io_wait_ready().
 * Context: preemption disabled.
 */
int ut_io_wait_socket(int fd, u32 events)
{
	struct request r = { .watched_fd = fd, .answer = (int)events, .may_last = true,
			     .is_armed = true };

	if (!ut_may_block() && can_arm(fd) && !wait_for(&r, arm))
		return r.answer;
	return ut_io_wait_ready(fd, events);
}

/* Context: lock held. */
static void start_ring(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &ring_rings };
	int fd = start_watcher() ? -1 : ut_uring_start();
	int state = RING_MISSING;

	if (fd >= 0 && !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
		state = RING_USED;
	else if (fd >= 0)
		ut_uring_exit();
	__atomic_store_n(&ring_state, state, __ATOMIC_RELEASE);
}

static bool has_ring(void)
{
	if (__atomic_load_n(&ring_state, __ATOMIC_ACQUIRE) == RING_UNKNOWN) {
		pthread_mutex_lock(&lock);
		if (ring_state == RING_UNKNOWN)
			start_ring();
		pthread_mutex_unlock(&lock);
	}
	return ring_state == RING_USED;
}

static int submit_to_kernel(struct request *r)
{
	int err = ut_uring_submit(r);

	if (err <= 0)
		return err;
	/* Done at once. */
	smp_store_release(&r->is_done, true);
	__atomic_sub_fetch(&ut.nr_outside, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/*
 * Have the kernel do what @sqe says, and wait for it. @may_last: until a peer does
 * something, so that the caller can be cancelled meanwhile. Context: preemption
 * disabled. Return: whether it did; then @result is that of the call, or -errno.
 */
bool ut_io_ask_kernel(const struct io_uring_sqe *sqe, bool may_last, ssize_t *result)
{
	/*
	 * What it cannot do at once the kernel gives to a thread of its own, which it
	 * cannot make while signals come in: it tries thrice, and cancels by itself.
	 */
	for (int i = 0; i < CANCELLED_TRIES; i++) {
		struct request r = { .sqe = sqe, .may_last = may_last };

		if (ut_may_block() || !has_ring() || wait_for(&r, submit_to_kernel))
			return false;
		*result = r.answer;
		if (r.answer != -ECANCELED || r.given_up)
			return true;
	}
	return false;
}

/*
 * A number of its own for each watch: two threads may wait for one descriptor, and
 * the program may close it meanwhile. `answer` holds the events.
 */
static int submit_watch(struct request *r)
{
	struct epoll_event event = { .events = (u32)r->answer | EPOLLONESHOT,
				     .data.ptr = r };
	int fd = r->watched_fd;
	int err;

	r->watched_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (r->watched_fd < 0)
		return ut_io_error();
	pthread_mutex_lock(&lock);
	err = start_watcher();
	r->is_watched = !err;
	if (!err && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, r->watched_fd, &event))
		err = ut_io_error();
	pthread_mutex_unlock(&lock);
	if (err)
		close(r->watched_fd);
	return err;
}

/*
 * Wait until @fd is ready for @events, or has an error. Return: for which, not 0; -EPERM:
 * it may be a file, which always is; -ECANCELED; -ETIMEDOUT; -errno. Context: preemption disabled.
 */
int ut_io_wait_ready(int fd, u32 events)
{
	struct request r = { .watched_fd = fd, .answer = (int)events,
			     .may_last = true };
	struct io_uring_sqe sqe = { .opcode = IORING_OP_POLL_ADD, .fd = fd,
				    .poll32_events = events };
	ssize_t found;
	int err;

	if (ut_io_ask_kernel(&sqe, true, &found))
		return (int)found;
	err = ut_may_block() ? -EPERM : wait_for(&r, submit_watch);
	return err ? err : r.answer;
}
