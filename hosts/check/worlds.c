/* SPDX-License-Identifier: MIT */
/*
 * worlds.c - many worlds in one process: what `schedlab check` asks for.
 *
 *	stdin:  u32 bytes of words, u32 bytes of the program; words, program; ...
 *	stdout: a line of JSON for each, in order
 *
 * The words are TAB-separated options, as of --serve. Worlds run one after the other in
 * a child, which reset.c puts back into the state of its beginning. A policy that
 * crashes or does not return ends the child, which says so; the next one goes on
 * with the world after that.
 *
 * Started by schedlab-sim-check --worlds. Read next: reset.c, laws.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "descendants.h"
#include "program.h"

#define WORDS_BYTES_MAX 65536U
#define PROGRAM_BYTES_MAX (64U << 20)
#define RECORDS_MAX (1U << 20)	/* of a world; one that has more is suspect */

/* Both of these processes see it. */
struct progress {
	u64 nr_begun, nr_answered;
};

/* What outlives a world. */
struct room {
	struct progress *progress;
	char *words;
	char *program;
	struct sl_record *records;
};

/* Return: whether all of it came; false: the input has ended. */
static bool read_all(void *to, u64 nr_bytes)
{
	for (char *at = to; nr_bytes;) {
		ssize_t n = read(STDIN_FILENO, at, nr_bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		nr_bytes -= (u64)n;
	}
	return true;
}

static void answer(const struct sim_options *o, const struct sim_result *r,
		   const struct check_shown *shown)
{
	const char *nexts = NULL;
	u32 nr_nexts = check_nexts(&nexts);
	char line[280], course[80] = "";
	int nr;

	if (r->error_kind) {
		sim_print_result(dup(STDOUT_FILENO), o, r);
		return;
	}
	if (shown->course)
		(void)snprintf(course, sizeof(course), ",\"course\":\"%016llx\",\"end_ns\":%llu",
			       (unsigned long long)shown->course, (unsigned long long)r->end_ns);
	nr = snprintf(
		line, sizeof(line),
		"{\"status\":\"ok\",\"hash\":\"%016llx\",\"longest_wait_ns\":%llu,\"is_suspect\":%s,\"is_wasteful\":%s,\"near\":%u%s%s",
		(unsigned long long)shown->hash, (unsigned long long)shown->longest_wait_ns,
		shown->is_suspect ? "true" : "false", shown->is_wasteful ? "true" : "false",
		shown->near, course, nexts ? "" : "}\n");
	(void)sim_file_write(STDOUT_FILENO, line, (u64)nr);
	if (!nexts)
		return;
	nr = snprintf(line, sizeof(line), ",\"nr_next\":%u,\"next\":\"", nr_nexts);
	(void)sim_file_write(STDOUT_FILENO, line, (u64)nr);
	(void)sim_file_write(STDOUT_FILENO, nexts, strlen(nexts));
	(void)sim_file_write(STDOUT_FILENO, "\"}\n", 3);
}

static void run_world(struct room *room, struct sim_options *o, u64 program_bytes)
{
	struct sim_result failed = { .status = "failed", .error_kind = "usage" };
	struct check_shown shown = { 0 };
	const struct sim_result *r = &failed;

	if (sim_parse_request(o, room->words, failed.error, sizeof(failed.error)) ||
	    sl_program_check(room->program, program_bytes, failed.error, sizeof(failed.error))) {
		answer(o, r, &shown);
		return;
	}
	o->program = room->program;
	sim_records_keep(room->records, RECORDS_MAX);
	r = sim_simulate(o, STDOUT_FILENO);
	sim_record_at = NULL;
	if (!r->error_kind && r->nr_records < RECORDS_MAX)
		shown = check_laws(room->records, r->nr_records);
	else
		shown.is_suspect = true;
	if (o->promises && !shown.is_suspect)
		shown.near = check_promises(room->records, r->nr_records, &shown.course);
	answer(o, r, &shown);
}

/* Run worlds until the input ends. */
static void run_worlds(struct room *room, const struct sim_options *defaults)
{
	u32 nr_bytes[2];

	sim_catch_policy(defaults);
	check_prepare_cpus();
	check_prepare_updates();
	SL_ASSERT(!check_remember());
	while (read_all(nr_bytes, sizeof(nr_bytes))) {
		struct sim_options o = *defaults;

		if (nr_bytes[0] >= WORDS_BYTES_MAX || nr_bytes[1] > PROGRAM_BYTES_MAX ||
		    !read_all(room->words, nr_bytes[0]) || !read_all(room->program, nr_bytes[1]))
			return;
		room->words[nr_bytes[0]] = 0;
		room->progress->nr_begun++;
		run_world(room, &o, nr_bytes[1]);
		room->progress->nr_answered++;
		check_reset(o.sets[0]);
	}
}

/* The child has ended within a world: where it has not said why, its code does. */
static void report_end(const struct sim_options *o, int status)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status) != SIM_EXIT_REPORTED)
		sim_report_death(o, status);
}

static void load(const struct sim_options *o)
{
	char why[1024];
	bool has_failed = sl_policy_file_open(&sim_policy_file, o->policy_path, why, sizeof(why));

	for (const char *const *set = o->sets; !has_failed && *set; set++)
		has_failed = sim_policy_set(*set, why, sizeof(why));
	if (has_failed) {
		fprintf(stderr, "schedlab-sim-check: %s\n", why);
		exit(2);
	}
}

/* Return: false: that is not what was asked for. */
bool check_serve_worlds(struct sim_options *defaults)
{
	struct room room = { 0 };

	if (!defaults->serves_worlds)
		return false;
	load(defaults);
	if (defaults->coverage)
		check_open_coverage(defaults->coverage);
	defaults->sets[0] = NULL;
	room.words = malloc(WORDS_BYTES_MAX);
	room.program = sim_map(PROGRAM_BYTES_MAX);
	room.records = sim_map(RECORDS_MAX * sizeof(struct sl_record));
	room.progress = mmap(NULL, sizeof(*room.progress), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	SL_ASSERT(room.words && room.program && room.records && room.progress != MAP_FAILED);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (;;) {
		int status = 0;
		pid_t pid = fork();

		SL_ASSERT(pid >= 0);
		if (!pid) {
			run_worlds(&room, defaults);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		sl_end_descendants();
		if (room.progress->nr_begun == room.progress->nr_answered)
			return true;
		report_end(defaults, status);
		room.progress->nr_answered = room.progress->nr_begun;
	}
}
