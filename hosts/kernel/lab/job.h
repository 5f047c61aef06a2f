/* SPDX-License-Identifier: MIT */
/*
 * job.h - a boot that was made for one run: what it got, and how it ends.
 *
 * Read next: job.c; python/schedlab/hosts/kernel/host.py, which made it.
 */
#ifndef KERNEL_JOB_H
#define KERNEL_JOB_H

#include <scx/types.h>

/* For memstat(): pages that were free at boot. */
u64 job_pages_total(void);

/* One line to the host's side. Context: any. */
void job_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Call @say with a line about each policy that has been in force: what the
 * machine's instructions were spent on meanwhile. Context: as job_say(). */
void job_each_overhead(void (*say)(const char *line));
void job_print_line(const char *line); /* on the console */

/* lab_poweroff() at @at_ns, with status 0, whatever runs then. */
void job_end_at(u64 at_ns);

/**
 * job_play - have a policy see a workload, and nothing else
 * @policy: see policy.h
 * @start_ns: when the first task may be released
 * @end_ns: when the machine goes off; 0: when job_end_at() or poweroff() is
 * called
 *
 * Shortly before @start_ns every process that is blocked then is taken from the
 * core for good, and the policy starts at @start_ns by its clock. So the caller
 * has to block, and nothing but the workload may be left to run.
 */
void job_play(const char *policy, u64 start_ns, u64 end_ns);

#endif
