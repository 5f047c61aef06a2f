/* SPDX-License-Identifier: MIT */
/*
 * job.c - the job's bytes, and the end of a job.
 *
 * Each run of a workload boots a machine for it: the program comes as initrd,
 * which the device file `job` shows, and goes out as records. At the end all that
 * was counted is said, the last records are sent, and the machine goes off.
 *
 * Called through lab.h, and by sysplay.c. Read next: user/play.c.
 */
#include "job.h"

#include <schedlab/linked.h>
#include <schedlab/sched.h>

#include "bootargs.h"
#include "channel.h"
#include "clock.h"
#include "file.h"
#include "overhead.h"
#include "policy.h"
#include "print.h"
#include "proc.h"
#include "record.h"

#define LINE_MAX 512
#define START_TAKES_NS 500000000	/* of a policy, at most: maps may be large */

static struct spinlock lock;
static u64 next_byte; /* of the job to be read; lock guards it */
static struct timer end_timer;

/*
 * Read on where the last read ended. At the end: 0, and the next read begins
 * anew. Positions are not kept per descriptor: a job has one reader.
 */
static int job_read(uint64 addr, int n)
{
	u64 bytes = (u64)n;
	int err;

	acquire(&lock);
	if (bytes > job_bytes - next_byte)
		bytes = job_bytes - next_byte;
	err = copyout(addr, job_start + next_byte, bytes);
	if (!err)
		next_byte = bytes ? next_byte + bytes : 0;
	release(&lock);
	return err ? -1 : (int)bytes;
}

static u64 pages_total; /* free when the kernel had booted */

u64 job_pages_total(void)
{
	return pages_total;
}

void lab_init(void)
{
	channel_init();
	record_init(nr_cpus);
	overhead_init();
	late_ack_init();
	initlock(&lock, "job");
	devsw[JOB].read = job_read;
	pages_total = nr_free_pages();
}

void job_say(const char *fmt, ...)
{
	char line[LINE_MAX];
	__builtin_va_list args;
	u32 n;

	__builtin_va_start(args, fmt);
	n = sl_format(line, sizeof(line), fmt, args);
	__builtin_va_end(args);
	channel_text(line, n);
}

void job_print_line(const char *line)
{
	printk("%s\n", line);
}

static void say_line(const char *line)
{
	channel_text(line, strlen(line));
}

void job_each_overhead(void (*say)(const char *line))
{
	char line[LINE_MAX];

	overhead_charge(policy_now());
	for (u32 i = 0; i <= sl_nr_linked_policies; i++) {
		const struct overhead_total *total = overhead_total(i);
		u32 n;

		if (!total->entries[OVERHEAD_SCHED])
			continue;
		n = sl_print_to(line, sizeof(line), "overhead %s", policy_name(i));
		for (u32 j = 0; j < NR_OVERHEADS; j++)
			n += sl_print_to(line + n, sizeof(line) - n, " %s=%llu/%llu",
					 overhead_name(j), total->instructions[j],
					 total->entries[j]);
		say(line);
	}
}

bool lab_print(const char *line)
{
	if (channel_is_open())
		job_say("print %s", line);
	return channel_is_open();
}

void lab_policy_ends(u32 idx)
{
	overhead_charge(idx);
}

void lab_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	job_say("failed %d %lld %d %s: %s", (int)info->kind, info->exit_code, pid, info->reason,
		info->msg);
}

void lab_poweroff(int status)
{
	u64 nr_switches = 0;

	for (u32 i = 0; i < nr_cpus; i++)
		nr_switches += sl_cpu_report((s32)i).nr_switches;
	/* The policy says its last words, which are its own instructions. */
	overhead_charge(policy_now());
	push_off();
	sl_policy_disable(true);
	pop_off();
	job_each_overhead(say_line);
	job_say("counted instructions=%llu ns=%llu switches=%llu lost=%llu", overhead_instret(),
		now_ns(), nr_switches, record_nr_lost());
	record_flush_all();
	channel_end(status);
	poweroff(status);
}

static void end_fires(struct timer *timer, void *arg)
{
	(void)timer;
	(void)arg;
	lab_poweroff(0);
}

void job_end_at(u64 at_ns)
{
	timer_start(&end_timer, at_ns, end_fires, NULL);
}

static bool forget_blocked(struct proc *p, void *arg)
{
	(void)arg;
	if (p->task.is_attached && smp_load_acquire(&p->task.state) == SL_TASK_BLOCKED)
		sl_task_detach(&p->task);
	return true;
}

static struct {
	struct timer timer;
	char policy[POLICY_TEXT_MAX];
	u64 start_ns;
	u64 end_ns;
} play;

/* ---- a deadlock ------------------------------------------------------------ */

#define LOOK_EVERY_NS 5000000000ULL

static struct {
	struct timer timer;
	u64 nr_switches; /* of all harts, at the last look */
	bool is_timed;	 /* time alone will let a task run */
	u32 nr_waiting;
	s32 pid; /* of the first that waits */
	u32 used;
	char text[LINE_MAX - 80];
} look;

static u64 nr_switches_now(void)
{
	u64 nr = 0;

	for (u32 i = 0; i < nr_cpus; i++)
		nr += sl_cpu_report((s32)i).nr_switches;
	return nr;
}

/* A task of the workload: does it wait for another one, and for what? */
static bool look_at(struct proc *p, void *arg)
{
	const char *what = READ_ONCE(p->task.wait_for);

	(void)arg;
	if (smp_load_acquire(&p->is_held))
		look.is_timed |= p->timer.cpu != NULL;
	if (!p->task.is_attached || smp_load_acquire(&p->is_held))
		return true;
	if (smp_load_acquire(&p->task.state) != SL_TASK_BLOCKED || !what ||
	    !strcmp(what, "sleep") || !strcmp(what, "device")) {
		look.is_timed = true;
		return true;
	}
	if (!look.nr_waiting++)
		look.pid = pid_of(p);
	if (look.used < sizeof(look.text) - 64)
		look.used += sl_print_to(look.text + look.used, sizeof(look.text) - look.used,
					 "%s%s[%d] for %s", look.used ? ", " : "", name_of(p),
					 pid_of(p), what);
	return true;
}

/*
 * If no task has run since the last look, nothing has changed since then, so what
 * is seen here is so at one time. Then a task waits either for time or
 * indefinitely.
 */
static void look_fires(struct timer *timer, void *arg)
{
	u64 nr = nr_switches_now();

	(void)arg;
	timer_start(timer, now_ns() + LOOK_EVERY_NS, look_fires, NULL);
	if (nr != look.nr_switches) {
		look.nr_switches = nr;
		return;
	}
	look.is_timed = false;
	look.nr_waiting = 0;
	look.used = 0;
	procs_for_each(look_at, NULL)
		;
	if (look.is_timed || !look.nr_waiting)
		return;
	job_say("deadlock %d nothing can happen any more, %u tasks wait: %s", look.pid,
		look.nr_waiting, look.text);
	lab_poweroff(0);
}

/* ---- playing a workload ---------------------------------------------------- */

static void play_fires(struct timer *timer, void *arg)
{
	char why[POLICY_TEXT_MAX] = "it took too long to start";
	int err;

	(void)timer;
	(void)arg;
	procs_for_each(forget_blocked, NULL)
		;
	/* By its clock it starts at that time, and its timers count from there. */
	clock_hold(play.start_ns);
	err = policy_start(play.policy, why);
	if (err || clock_running_ns() > play.start_ns) {
		job_say("refused %s", why);
		lab_poweroff(1);
	}
	if (play.end_ns)
		job_end_at(play.end_ns);
	timer_start(&look.timer, play.start_ns + LOOK_EVERY_NS, look_fires, NULL);
}

void job_play(const char *policy, u64 start_ns, u64 end_ns)
{
	copy_name(play.policy, policy, sizeof(play.policy));
	play.start_ns = start_ns;
	play.end_ns = end_ns;
	timer_start(&play.timer, start_ns - START_TAKES_NS, play_fires, NULL);
}
