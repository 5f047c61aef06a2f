/* SPDX-License-Identifier: MIT */
/*
 * job.h - a boot that was made for one run: what it got, and how it ends.
 *
 * Read next: job.c; python/schedlab/hosts/kernel.py, who made it.
 */
#ifndef KERNEL_JOB_H
#define KERNEL_JOB_H

#include <scx/types.h>

/* The device file `job`; at boot. */
void job_init(void);

/* One line to the host's side. Context: any. */
void job_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Call @say with a line about each policy that has been in force: what the
 * machine's instructions were spent on meanwhile. Context: as job_say(). */
void job_each_overhead(void (*say)(const char *line));
void job_print_line(const char *line);	/* on the console */

/*
 * Send what is left to send and power off; QEMU ends with @status, 0 to 127.
 * Context: any; nobody else should be running.
 */
_Noreturn void job_end(int status);

/* The same at @at_ns, with status 0, whoever has the CPU then. */
void job_end_at(u64 at_ns);

#endif
