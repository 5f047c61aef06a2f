/* SPDX-License-Identifier: MIT */
/*
 * serve.c - one process per simulation, forked from one that has the policy.
 *
 * The parent loads the policy and never runs it, so each child starts from
 * pristine data. A child that dies without a word is reported in its stead.
 * With --serve, requests come as lines of TAB-separated options, and each is
 * answered by one line of JSON, in order.
 *
 * Called by main.c. Read next: worker.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"
#include "sim.h"

/* 1,024 CPUs need a thirtieth; python/schedlab/hosts/process.py reads no more. */
#define ANSWER_BYTES_MAX (4U << 20)

/*
 * Collect what the worker @pid writes, until it has ended: a process that its
 * policy has started holds the same pipe and may keep it open for longer.
 * Return: whether that is all; false: it is more than a result can be.
 */
static bool collect(int fd, pid_t pid, FILE *to)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN },
	};
	char buffer[4096];
	u64 nr_bytes = 0;
	ssize_t n;

	while (nr_bytes <= ANSWER_BYTES_MAX) {
		if (poll(fds, 2, -1) < 0 && errno == EINTR)
			continue;
		if (!fds[0].revents)
			break;
		n = read(fd, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		fwrite(buffer, 1, (size_t)n, to);
		nr_bytes += (u64)n;
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return nr_bytes <= ANSWER_BYTES_MAX;
}

/* Wait for the worker, and end what its policy has left running. */
static int end_worker(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	if (sl_end_descendants())
		fprintf(stderr,
			"schedlab: processes that the policy left running have been ended\n");
	return status;
}

void sim_report_death(const struct sim_options *o, int status)
{
	struct sim_result r = { .status = "failed", .error_kind = "crash" };

	if (WIFSIGNALED(status))
		snprintf(r.error, sizeof(r.error), "the simulation was ended by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(r.error, sizeof(r.error),
			 "the simulation ended with code %d and no result", WEXITSTATUS(status));
	sim_print_result(dup(STDOUT_FILENO), o, &r);
}

/* Print a failure that comes before any worker. */
static void report_failure(const struct sim_options *o, const char *kind, const char *why)
{
	fflush(stdout);
	sim_print_failure(dup(STDOUT_FILENO), o, kind, why);
}

/*
 * Where memory runs out, Linux is to end this simulation, whose policy may well
 * be the reason, rather than anything else on the machine.
 */
static void be_first_to_go(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Without it everything works too. */
	if (write(fd, "1000", 4) != 4)
		errno = 0;
	close(fd);
}

/* Return: 0 if a result was printed; -errno if no process could be made. */
int sim_run_forked(struct sim_options *o)
{
	int fds[2];
	char *answer = NULL;
	size_t nr_bytes = 0;
	bool is_whole;
	FILE *to;
	int status;
	pid_t pid;

	if (o->no_fork)
		return sim_worker(o, dup(STDOUT_FILENO));
	if (pipe(fds))
		return -errno;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (pid == 0) {
		close(fds[0]);
		be_first_to_go();
		_exit(sim_worker(o, fds[1]));
	}
	close(fds[1]);
	to = open_memstream(&answer, &nr_bytes);
	SL_ASSERT(to);
	is_whole = collect(fds[0], pid, to);
	if (!is_whole)
		kill(pid, SIGKILL);
	fclose(to);
	close(fds[0]);
	/* Before the answer: what is printed after it belongs to the next run. */
	status = end_worker(pid);
	if (is_whole)
		fwrite(answer, 1, nr_bytes, stdout);
	fflush(stdout);
	free(answer);
	if (!is_whole)
		report_failure(o, "crash",
			       "the policy writes without end into the pipe that is for the result; "
			       "print with bpf_printk()");
	else if (!nr_bytes)
		sim_report_death(o, status);
	return 0;
}

static void serve_line(const struct sim_options *defaults, char *line, const char *load_error)
{
	struct sim_options o = *defaults;
	char why[512];

	if (sim_parse_request(&o, line, why, sizeof(why)))
		report_failure(&o, "usage", why);
	else if (load_error)
		report_failure(&o, "policy", load_error);
	else if (!o.program_path)
		report_failure(&o, "usage", "--program is missing");
	else if (sim_run_forked(&o))
		report_failure(&o, "crash", "no process for the simulation");
}

/* Answer requests until the input ends. Return: exit code. */
int sim_serve(const struct sim_options *defaults)
{
	char why[1024];
	const char *load_error = NULL;
	char *line = NULL;
	size_t allocated = 0;
	ssize_t n;

	signal(SIGPIPE, SIG_DFL);
	if (sl_policy_file_open(&sim_policy_file, defaults->policy_path, why, sizeof(why)))
		load_error = why;
	while ((n = getline(&line, &allocated, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = 0;
		if (line[0])
			serve_line(defaults, line, load_error);
	}
	free(line);
	return 0;
}
