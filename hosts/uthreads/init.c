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
#include <string.h>

#include "ut.h"

#define THREADS_MAX 65536
#define STACK_BYTES 65536
#define TICK_NS 100000		/* a slice of 1 ms is held within 10 % */
#define TICK_NS_OF_OPS 1000000	/* for a policy that does something then */

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
		return ut_fail(-EINVAL, "nr_cpus is %u; at most %u", ut.nr_cpus,
			       SCX_CPUS_MAX);
	ut.threads_max = c->threads_max ? c->threads_max : THREADS_MAX;
	if (ut.threads_max > 1U << 26)
		return ut_fail(-EINVAL, "threads_max is %u; at most %u",
			       ut.threads_max, 1U << 26);
	ut.stack_bytes = c->stack_bytes ? c->stack_bytes : STACK_BYTES;
	if (ut.stack_bytes < ut_stack_bytes_min())
		return ut_fail(-EINVAL, "stack_bytes is %zu; here at least %zu",
			       ut.stack_bytes, ut_stack_bytes_min());
	ut.stack_bytes = (ut.stack_bytes + 4095) & ~4095ULL;
	ut.tick_ns = c->tick_ns;
	if (ut.tick_ns && (ut.tick_ns < 10000 || ut.tick_ns > 10000000000ULL))
		return ut_fail(-EINVAL, "tick_ns is %llu; from 10,000 to 10,000,000,000",
			       (unsigned long long)ut.tick_ns);
	ut.signal = c->preempt_signal ? c->preempt_signal : SIGURG;
	ut.flags = c->flags;
	ut.random = c->seed;
	return 0;
}

static int make_machine(void)
{
	struct sl_config config = {
		.nr_cpus = ut.nr_cpus,
		.tasks_max = ut.threads_max,
	};
	int err;

	ut_is_smp = ut.nr_cpus > 1;
	ut_clock_init();
	ut.cpus = sl_host_alloc(ut.nr_cpus * sizeof(struct ut_cpu));
	if (!ut.cpus)
		return -ENOMEM;
	for (u32 i = 0; i < ut.nr_cpus; i++) {
		ut.cpus[i].id = (s32)i;
		ut.cpus[i].doorbell = UT_BELL_AWAKE;
		sl_lock_init(&ut.cpus[i].sleep_lock);
	}
	err = sl_core_init(&config);
	if (!err)
		err = ut_threads_init();
	sl_core.has_detail = ut.flags & UT_RECORD_DETAIL;
	ut.has_ticks = true;
	return err;
}

/* The caller's own stack, which is not ours to give back. */
static int find_stack(struct ut_thread *t)
{
	pthread_attr_t attr;
	void *low;
	int err = -pthread_getattr_np(pthread_self(), &attr);

	if (err)
		return err;
	err = -pthread_attr_getstack(&attr, &low, &t->stack.bytes);
	t->stack.low = low;
	pthread_attr_destroy(&attr);
	return err;
}

static int start_machine(const struct ut_config *c)
{
	static const struct ut_attr attr = { .attr_bytes = sizeof(attr),
					     .name = "main" };
	int err;

	ut_cpu_enter(&ut.cpus[0]);
	err = c->records ? ut_records_open(c->records) : 0;
	if (!err && c->policy)
		err = ut_policy_load(c->policy, c->sets);
	if (!ut.tick_ns)
		ut.tick_ns = ut.has_ticks ? TICK_NS_OF_OPS : TICK_NS;
	if (!err)
		err = ut_preempt_init();
	if (!err)
		ut.main = ut_thread_new(&attr, NULL, NULL, false, &err);
	if (!err)
		err = find_stack(ut.main);
	if (!err)
		err = ut_cpus_start();
	if (!err)
		err = ut_main_begin(ut.main);
	return err;
}

int ut_init(const struct ut_config *config)
{
	static const struct ut_config defaults = UT_CONFIG_INIT;
	int err;

	if (ut.is_running)
		return -EBUSY;
	memset(&ut, 0, sizeof(ut));
	config = config ? config : &defaults;
	err = read_config(config);
	if (!err)
		err = make_machine();
	if (!err)
		err = start_machine(config);
	if (err) {
		if (!ut.error[0])
			ut_fail(err, "%s", strerror(-err));
		return err;
	}
	ut.is_running = true;
	ut_watchdog_start();
	ut_enable();
	return 0;
}

int ut_exit(void)
{
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	if (ut_this_cpu()->curr != ut.main) {
		ut_enable();
		return -EPERM;
	}
	ut_wait_for_others();
	ut_main_end(ut.main);
	ut_cpus_stop();
	ut_tls.cpu = &ut.cpus[0].hot;
	ut_policy_unload();
	err = ut_records_close();
	ut_preempt_exit();
	ut_timers_exit();
	ut_threads_exit();
	ut_stacks_exit();
	sl_core_exit();
	ut_tls.cpu = NULL;
	ut_tls.preempt_count = 0;
	sl_host_free(ut.cpus, ut.nr_cpus * sizeof(struct ut_cpu));
	ut.is_running = false;
	return err ? -EIO : 0;
}
