/* SPDX-License-Identifier: MIT */
/*
 * init.c - ut_init() and ut_exit(): the machine is put together and taken apart.
 *
 * Read next: cpu.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ut.h"

#define FLAGS_ALL (UT_NO_PREEMPTION | UT_PIN_CPUS | UT_MIGRATE_PREEMPTED | \
		   UT_RECORD_DETAIL | UT_NO_SIGQUIT)
#define THREADS_MAX 65536	/* when the program does not say */
#define STACK_BYTES 65536
#define TICK_NS 100000		/* a slice of 1 ms is held within 10 % */
#define TICK_LATE_NS_MAX 50000	/* a signal that takes longer costs a turn a tick */
#define TICK_NS_OF_OPS 1000000	/* for a policy that does something then */

/* The runner sets it; otherwise every kernel thread is a core of its own. */
struct ut_topology ut_topology;

/* Says what went wrong. Return: @err. */
int ut_fail(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(ut.error, sizeof(ut.error), fmt, args);
	va_end(args);
	return err;
}

const char *ut_error_text(void)
{
	return ut.error;
}

static u32 nr_online(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (u32)CPU_COUNT(&set);
}

static int read_config(const struct ut_config *c)
{
	if (c->config_bytes != sizeof(*c))
		return ut_fail(-EINVAL, "config_bytes is %u, not %zu: begin with UT_CONFIG_INIT",
			       c->config_bytes, sizeof(*c));
	ut.nr_cpus = c->nr_cpus ? c->nr_cpus : nr_online();
	if (ut.nr_cpus > SCX_CPUS_MAX)
		return ut_fail(-EINVAL, "nr_cpus is %u; at most %u", ut.nr_cpus, SCX_CPUS_MAX);
	ut.threads_max = c->threads_max ? c->threads_max : THREADS_MAX;
	if (ut.threads_max > 1U << 26)
		return ut_fail(-EINVAL, "threads_max is %u; at most %u", ut.threads_max, 1U << 26);
	ut.stack_bytes = c->stack_bytes ? c->stack_bytes : STACK_BYTES;
	if (ut.stack_bytes < ut_stack_bytes_min())
		return ut_fail(-EINVAL, "stack_bytes is %zu; here at least %zu", ut.stack_bytes,
			       ut_stack_bytes_min());
	ut.stack_bytes = ut_stack_round(ut.stack_bytes);
	ut.tick_ns = c->tick_ns;
	if (ut.tick_ns && (ut.tick_ns < 10000 || ut.tick_ns > 10000000000ULL))
		return ut_fail(-EINVAL, "tick_ns is %llu; from 10,000 to 10,000,000,000",
			       (unsigned long long)ut.tick_ns);
	ut.signal = c->preempt_signal ? c->preempt_signal : SIGURG;
	if (ut.signal == SIGSEGV || ut.signal == SIGBUS || ut.signal == SIGQUIT)
		return ut_fail(-EINVAL,
			       "preempt_signal is %d, which has another meaning here; SIGURG is usual",
			       ut.signal);
	ut.flags = c->flags;
	if (ut.flags & ~FLAGS_ALL)
		return ut_fail(-EINVAL, "flags are 0x%x; of these, 0x%x are unknown", ut.flags,
			       ut.flags & ~FLAGS_ALL);
	if (UT_HAS_FORCED_POINTS && getenv("UT_FORCED_POINTS"))
		ut.forced_points = (u32)atoi(getenv("UT_FORCED_POINTS"));
	ut.random = c->seed;
	return 0;
}

static int make_machine(void)
{
	struct sl_config config = {
		.nr_cpus = ut.nr_cpus,
		.tasks_max = ut.threads_max,
		.smt_of_cpu = ut_topology.smt,
		.llc_of_cpu = ut_topology.llc,
		.node_of_cpu = ut_topology.node,
		.tick_ns = ut.tick_ns,
		.has_detail = ut.flags & UT_RECORD_DETAIL,
	};
	int err;

	ut_is_smp = ut.nr_cpus > 1;
	ut_clock_init();
	ut.cpus = sl_host_alloc(ut.nr_cpus * sizeof(struct ut_cpu));
	ut.kthreads = sl_host_alloc(ut.nr_cpus * sizeof(struct ut_kthread));
	if (!ut.cpus || !ut.kthreads)
		return -ENOMEM;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		ut.cpus[i].id = (s32)i;
		ut.cpus[i].timer_ns = UT_NEVER;
		ut.cpus[i].k = &ut.kthreads[i];
		ut.kthreads[i].cpu = &ut.cpus[i];
		ut.kthreads[i].doorbell = UT_BELL_AWAKE;
		sl_lock_init(&ut.cpus[i].sleep_lock);
	}
	err = sl_core_init(&config);
	for (u32 i = 0; i < ut.nr_cpus && !err; i++)
		ut.cpus[i].core = sl_core_cpu((s32)i);
	if (!err)
		err = ut_threads_init();
	ut.has_ticks = true;
	return err;
}

/* @prepare: called before the policy is asked anything; or NULL. CPU 0 is the caller from now on. */
static int build(const struct ut_config *c, int (*prepare)(void))
{
	int err = read_config(c);

	if (!err)
		err = make_machine();
	if (err)
		return err;
	ut_cpu_enter(&ut.cpus[0]);
	if (c->policy)
		err = ut_policy_open(c->policy, c->sets);
	if (!ut.tick_ns)
		ut.tick_ns = ut.has_ticks ? TICK_NS_OF_OPS : TICK_NS;
	ut_tick_late_ns = ut.tick_ns / 4 < TICK_LATE_NS_MAX ? ut.tick_ns / 4 : TICK_LATE_NS_MAX;
	if (!err && c->records)
		err = ut_records_open(c->records);
	if (!err)
		err = ut_preempt_init();
	if (!err)
		err = ut_cpus_start();
	/* What took long is done: the run's time begins. */
	ut_clock_restart();
	if (!err && prepare)
		err = prepare();
	if (!err && c->policy)
		err = ut_policy_start();
	return err;
}

/* Also of a machine that was built in part. */
static int tear_down(void)
{
	int err = 0;

	if (ut.cpus && ut.kthreads) {
		ut_io_exit();
		ut_cpus_stop();
		ut_io_close();
		ut_policy_close();
		err = ut_records_close();
		ut_preempt_exit();
		ut_timers_exit();
	}
	ut_threads_exit();
	ut_stacks_exit();
	sl_core_exit();
	ut_cpu_leave();
	sl_host_free(ut.cpus, ut.nr_cpus * sizeof(struct ut_cpu));
	sl_host_free(ut.kthreads, ut.nr_cpus * sizeof(struct ut_kthread));
	ut.cpus = NULL;
	ut.kthreads = NULL;
	ut.is_running = false;
	return err;
}

static int say_why(int err)
{
	if (!ut.error[0])
		ut_fail(err, "%s", strerror(-err));
	return err;
}

int ut_init(const struct ut_config *config)
{
	static const struct ut_config defaults = UT_CONFIG_INIT;
	static const struct ut_attr attr = { .attr_bytes = sizeof(attr), .name = "main" };
	int err;

	if (ut.is_running)
		return -EBUSY;
	if (ut_fault_is_forked())
		return ut_fail(
			-EPERM,
			"this is the child of a process that was forked while its threads ran; exec() first");
	memset(&ut, 0, sizeof(ut));
	err = build(config ? config : &defaults, NULL);
	if (!err)
		ut.main = ut_thread_new(&attr, NULL, NULL, false, &err);
	if (!err)
		err = ut_stack_of_caller(&ut.main->stack);
	if (!err)
		err = ut_main_begin(ut.main);
	if (err) {
		tear_down();
		return say_why(err);
	}
	ut.is_running = true;
	ut_enable();
	return 0;
}

/**
 * ut_run - start a machine without a first thread, and stop it
 * @config: as for ut_init()
 * @prepare: makes what is there before the policy. Return: 0, or -errno, after ut_fail()
 * @begin: makes the first threads, or sets the hook that will
 * @end: looks at the machine when it has stopped, before it is taken apart
 *
 * For the runner of workloads, all of whose threads are the program's. Stops when
 * `is_stopping` is set.
 *
 * Return: 0 or -errno, as ut_init(); ut_error_text() says more.
 */
int ut_run(const struct ut_config *config, int (*prepare)(void), void (*begin)(void),
	   void (*end)(void))
{
	int err;

	memset(&ut, 0, sizeof(ut));
	err = build(config, prepare);
	if (!err) {
		ut.is_running = true;
		begin();
		ut_cpus_begin();
		ut_cpu_run(&ut.cpus[0]);
		ut_cpus_stop();
		end();
	}
	err = err ? say_why(err) : 0;
	tear_down();
	return err;
}

int ut_exit(void)
{
	bool may_exit;
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	may_exit = ut_this_cpu()->curr == ut.main && !ut_may_block();
	ut_enable();
	if (!may_exit)
		return -EPERM;
	ut_slots_end();
	ut_disable();
	ut_wait_for_others();
	ut_main_end(ut.main);
	err = tear_down();
	return err ? -EIO : 0;
}
