/* SPDX-License-Identifier: MIT */
/*
 * result.c - what came of a run: a line of JSON per task, and one for all.
 *
 * Room for all lines is taken before the first task is made, so that whatever else
 * fills the disk does not take it. A task's line is written soon after it has ended, so that those that ended can
 * be read, should the runner be killed; the line for all comes last, so a file
 * without it is one of a run that was cut short.
 *
 * Read next: python/schedlab/hosts/linux/host.py, which reads it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "json_text.h"
#include "play.h"

/* Longest lines: numbers of 20 digits, names and messages as long as they get. */
#define LINE_BYTES_MAX 512
#define LAST_LINE_BYTES_MAX 4096

static FILE *file;

static void print_number(const char *key, u64 value)
{
	fprintf(file, "\"%s\":%llu,", key, value);
}

static void print_usage(const struct usage *u)
{
	print_number("user_us", u->user_us);
	print_number("system_us", u->system_us);
	print_number("voluntary_switches", u->nr_voluntary);
	print_number("involuntary_switches", u->nr_involuntary);
}

/* A time that has not come to pass is null. */
static void print_time(const char *key, bool is_known, u64 ns)
{
	if (is_known)
		print_number(key, ns);
	else
		fprintf(file, "\"%s\":null,", key);
}

static void print_task(u32 i)
{
	const struct sl_program_task *task = &sl_program_tasks(run.program)[i];
	const struct task *t = &run.shared->tasks[i];
	bool has_run = t->first_run_ns || t->state >= TASK_RUNNING;

	fprintf(file, "{\"task\":%u,", i + 1);
	sl_json_text(file, "name", sl_program_string(run.program, task->name));
	fprintf(file, "\"tid\":%d,", t->tid);
	print_time("arrival_ns", t->state >= TASK_RUNNING, t->arrival_ns);
	print_time("first_run_ns", has_run, t->first_run_ns);
	print_time("end_ns", t->state == TASK_ENDED && !t->signal, t->end_ns);
	print_usage(&t->used);
	print_number("run_ns", t->used.run_ns);
	print_number("wait_ns", t->used.wait_ns);
	print_time("read_ns", t->read_ns, t->read_ns);
	fprintf(file, "\"failed\":%d,\"signal\":%d}\n", t->failed, t->signal);
}

int result_open(void)
{
	file = fopen(run.options.result_path, "we");
	return file ? 0 : -errno;
}

int result_reserve(void)
{
	u64 bytes = LAST_LINE_BYTES_MAX + (u64)run.nr_tasks * LINE_BYTES_MAX;

	if (!fallocate(fileno(file), FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) || errno == EOPNOTSUPP)
		return 0;
	return -errno;
}

/* What is in the buffer goes out, or is known to be lost. */
static int flush(void)
{
	errno = 0;
	if (fflush(file) || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}

int result_tell_tasks(bool is_last)
{
	for (u32 i = 0; i < run.nr_tasks; i++) {
		struct task *t = &run.shared->tasks[i];
		u32 state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);

		if (t->is_told || (state != TASK_ENDED && !is_last))
			continue;
		t->is_told = true;
		print_task(i);
	}
	return flush();
}

int result_tell_run(void)
{
	u32 nr_ended = 0;

	for (u32 i = 0; run.shared && i < run.nr_tasks; i++)
		nr_ended += run.shared->tasks[i].state == TASK_ENDED &&
			    !run.shared->tasks[i].signal;
	fputc('{', file);
	sl_json_text(file, "error", run.error_kind ? run.error : NULL);
	sl_json_text(file, "error_kind", run.error_kind);
	if (run.fault_task)
		fprintf(file, "\"fault_task\":%d,", run.fault_task);
	else
		fputs("\"fault_task\":null,", file);
	print_number("start_ns", run.shared ? run.shared->start_ns : 0);
	print_number("end_ns", run.end_ns);
	print_usage(&run.used);
	sl_json_text(file, "file_system", files_system_name());
	print_number("spin_rounds_per_ms", run.rounds_per_ms);
	fprintf(file, "\"nr_tasks\":%u,\"nr_ended\":%u}\n", run.nr_tasks, nr_ended);
	/* What was kept for longer lines is given back. */
	return flush() || ftruncate(fileno(file), ftello(file)) ? -errno : 0;
}
