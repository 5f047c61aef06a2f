/* SPDX-License-Identifier: MIT */
/*
 * main.c - the launcher: takes requests, starts keepers, answers in JSON.
 *
 *	schedlab-launch < requests > answers
 *
 * A request is a line `run BYTES` and as many bytes (request.c); its answer is
 * one line. The end of input, in the middle of a run too, ends what is running:
 * so nothing outlives the process that asked for it, however it ended.
 *
 * Read next: request.c, keeper.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "descendants.h"
#include "launch.h"

struct kept {
	pid_t pid;
	int fd; /* to the keeper; -1: it has reported */
	bool is_ready;
	struct report report;
};

uint32_t own_priority;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What ends a command must get a CPU before it does. */
static void rise_above(void)
{
	struct sched_param highest = { .sched_priority = LAUNCH_PRIORITY };
	struct rlimit limit;

	if (sched_setscheduler(0, SCHED_FIFO, &highest)) {
		/* An ordinary user may have been allowed less: ulimit -r. */
		if (getrlimit(RLIMIT_RTPRIO, &limit) || !limit.rlim_cur ||
		    limit.rlim_cur > LAUNCH_PRIORITY)
			return;
		highest.sched_priority = (int)limit.rlim_cur;
		if (sched_setscheduler(0, SCHED_FIFO, &highest))
			return;
	}
	own_priority = (uint32_t)highest.sched_priority;
	mlockall(MCL_CURRENT | MCL_FUTURE);
}

/* ---- answers --------------------------------------------------------------- */

static const char *const FAILURES[] = {
	[FAILURE_NONE] = "none",	   [FAILURE_START] = "start",
	[FAILURE_KEEPER] = "keeper",	   [FAILURE_SURVIVOR] = "survivor",
	[FAILURE_SCHEDULER] = "scheduler", [FAILURE_WATCHDOG] = "watchdog",
	[FAILURE_AFFINITY] = "affinity",   [FAILURE_FOLDER] = "folder",
	[FAILURE_OUTPUT] = "output",	   [FAILURE_EXEC] = "exec",
};

static void print_number(const char *name, uint64_t value)
{
	printf("\"%s\":%llu,", name, (unsigned long long)value);
}

static void print_usage(const char *name, const struct usage *u)
{
	printf("\"%s\":{", name);
	print_number("user_us", u->user_us);
	print_number("system_us", u->system_us);
	print_number("voluntary_switches", u->nr_voluntary);
	print_number("involuntary_switches", u->nr_involuntary);
	print_number("major_faults", u->nr_major_faults);
	print_number("minor_faults", u->nr_minor_faults);
	print_number("blocks_in", u->nr_blocks_in);
	print_number("blocks_out", u->nr_blocks_out);
	printf("\"resident_kib_max\":%llu},", (unsigned long long)u->resident_kib_max);
}

static void print_report(const struct report *r)
{
	printf("{\"failure\":\"%s\",\"error\":%d,", FAILURES[r->failure], r->error);
	printf("\"exit_code\":%d,\"signal\":%d,", r->exit_code, r->signal);
	printf("\"has_timed_out\":%s,\"was_ended\":%s,\"forks\":%s,",
	       r->has_timed_out ? "true" : "false", r->was_ended ? "true" : "false",
	       r->forks ? "true" : "false");
	print_number("start_ns", r->start_ns);
	print_number("end_ns", r->end_ns);
	print_number("tree_end_ns", r->tree_end_ns);
	print_number("run_delay_ns", r->run_delay_ns);
	print_usage("own", &r->own);
	print_usage("orphans", &r->orphans);
	printf("\"nr_orphans\":%u}", r->nr_orphans);
}

static void answer(const struct kept *kept, uint32_t nr)
{
	printf("{\"is_realtime\":%s,\"commands\":[", own_priority ? "true" : "false");
	for (uint32_t i = 0; i < nr; i++) {
		printf("%s", i ? "," : "");
		print_report(&kept[i].report);
	}
	puts("]}");
	fflush(stdout);
}

static void answer_wrong(const char *wrong)
{
	printf("{\"wrong\":\"%s\"}\n", wrong);
	fflush(stdout);
}

/* ---- keepers --------------------------------------------------------------- */

static void start_keeper(const struct request *request, uint32_t i, struct kept *kept)
{
	int pair[2];

	*kept = (struct kept){ .fd = -1 };
	kept->report.failure = FAILURE_START;
	kept->report.error = EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		kept->report.error = errno;
		return;
	}
	kept->pid = fork();
	if (kept->pid == 0) {
		close(pair[0]);
		keep(&request->commands[i], request->timeout_ns, pair[1]);
	}
	close(pair[1]);
	kept->fd = pair[0];
	if (kept->pid < 0) {
		kept->report.error = errno;
		close(kept->fd);
		kept->fd = -1;
	}
}

static void drop_keeper(struct kept *kept)
{
	close(kept->fd);
	kept->fd = -1;
	waitpid(kept->pid, NULL, 0);
}

/* Return: whether the keeper's command stands at its start. */
static bool hear_ready(struct kept *kept)
{
	struct ready word;

	if (kept->fd < 0)
		return false;
	if (recv(kept->fd, &word, sizeof(word), 0) == (ssize_t)sizeof(word)) {
		kept->report.failure = word.failure;
		kept->report.error = word.error;
		kept->is_ready = !word.failure;
	}
	if (!kept->is_ready)
		drop_keeper(kept);
	return kept->is_ready;
}

static void hear_report(struct kept *kept)
{
	struct report *report = &kept->report;

	if (recv(kept->fd, report, sizeof(*report), 0) == (ssize_t)sizeof(*report))
		return;
	report->failure = FAILURE_KEEPER;
	report->error = ECHILD;
}

static void tell_all(struct kept *kept, uint32_t nr, const char *word)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (kept[i].fd >= 0)
			(void)!send(kept[i].fd, word, 1, MSG_NOSIGNAL);
	}
}

/* Until every keeper has reported. Return: false once the input has ended. */
static bool collect(struct kept *kept, uint32_t nr)
{
	struct pollfd fds[LAUNCH_COMMANDS_MAX + 1];
	bool has_input = true;
	uint32_t left = 0;

	for (uint32_t i = 0; i < nr; i++)
		left += kept[i].fd >= 0;
	while (left) {
		for (uint32_t i = 0; i < nr; i++)
			fds[i] = (struct pollfd){ kept[i].fd, POLLIN, 0 };
		fds[nr] = (struct pollfd){ has_input ? STDIN_FILENO : -1, 0, 0 };
		if (poll(fds, nr + 1, -1) < 0)
			continue;
		if (has_input && fds[nr].revents) {
			has_input = false;
			tell_all(kept, nr, "k");
		}
		for (uint32_t i = 0; i < nr; i++) {
			if (kept[i].fd < 0 || !fds[i].revents)
				continue;
			hear_report(&kept[i]);
			drop_keeper(&kept[i]);
			left--;
			/* What ran beside the measured command ends with it. */
			if (i == 0)
				tell_all(kept, nr, "k");
		}
	}
	return has_input;
}

static bool run(const struct request *request)
{
	struct kept kept[LAUNCH_COMMANDS_MAX];
	uint32_t nr = request->nr_commands;
	bool are_ready = true;
	bool has_input;

	for (uint32_t i = 0; i < nr; i++)
		start_keeper(request, i, &kept[i]);
	for (uint32_t i = 0; i < nr; i++)
		are_ready &= hear_ready(&kept[i]);
	tell_all(kept, nr, are_ready ? "g" : "k");
	has_input = collect(kept, nr);
	/* What keepers that were killed have left behind: this program is a subreaper, too. */
	sl_end_descendants();
	answer(kept, nr);
	return has_input;
}

/* ---- requests -------------------------------------------------------------- */

static void free_request(struct request *request)
{
	for (uint32_t i = 0; i < request->nr_commands; i++)
		free(request->commands[i].argv);
}

/* Return: false when there is nothing more to be done. */
static bool serve_one(void)
{
	static struct request request;
	unsigned long bytes;
	const char *wrong;
	char line[64];
	char *text;
	bool goes_on = true;

	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (sscanf(line, "run %lu", &bytes) != 1 || bytes > LAUNCH_REQUEST_BYTES_MAX) {
		answer_wrong("a request begins with: run BYTES");
		return false;
	}
	text = malloc(bytes + 1);
	if (!text || fread(text, 1, bytes, stdin) != bytes) {
		free(text);
		return false;
	}
	wrong = parse_request(text, bytes, &request);
	if (wrong)
		answer_wrong(wrong);
	else
		goes_on = run(&request);
	free_request(&request);
	free(text);
	return goes_on;
}

int main(void)
{
	/* Whole requests are read at once, and poll() sees what is not. */
	setvbuf(stdin, NULL, _IONBF, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_NAME, "schedlab-launch");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	rise_above();
	while (serve_one())
		;
	return 0;
}
