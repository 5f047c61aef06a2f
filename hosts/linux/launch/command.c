/* SPDX-License-Identifier: MIT */
/*
 * command.c - a new process becomes a command under its scheduling class.
 *
 * Everything is set before it is let go, so that only the command itself is
 * measured; what is refused is reported with its errno instead.
 *
 * Called by keeper.c. Read next: keeper.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch.h"

/* As Linux defines it; the C library of Debian 12 does not. */
struct scheduling {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

_Noreturn static void refuse(int status_fd, enum failure failure)
{
	struct ready word = { failure, errno };

	/* No reader is left: nothing to tell. */
	(void)!write(status_fd, &word, sizeof(word));
	_exit(127);
}

static int set_scheduler(const struct command *c)
{
	struct scheduling s = {
		.size = sizeof(s),
		.policy = c->policy,
		.nice = c->nice,
		.priority = c->priority,
		.runtime_ns = c->runtime_ns,
		.deadline_ns = c->deadline_ns,
		.period_ns = c->period_ns,
	};

	return (int)syscall(SYS_sched_setattr, 0, &s, 0);
}

static int set_affinity(const struct command *c)
{
	cpu_set_t cpus;

	if (!c->has_cpus)
		return 0;
	CPU_ZERO(&cpus);
	for (int i = 0; i < LAUNCH_CPUS_MAX; i++) {
		if (c->cpus[i / 64] >> i % 64 & 1)
			CPU_SET(i, &cpus);
	}
	return sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int open_output(const char *path)
{
	return open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int set_output(const struct command *c)
{
	int in = open(c->input ? c->input : "/dev/null", O_RDONLY | O_CLOEXEC);
	int out = open_output(c->output);
	int errors = open_output(c->errors ? c->errors : c->output);

	if (in < 0 || out < 0 || errors < 0)
		return -1;
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(errors, STDERR_FILENO) < 0)
		return -1;
	return 0;
}

void become_command(const struct command *c, int go_fd, int status_fd)
{
	struct ready good = { FAILURE_NONE, 0 };
	sigset_t none;
	char go;

	/* A group of its own: Ctrl-C is for the shell's command. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (c->folder && chdir(c->folder))
		refuse(status_fd, FAILURE_FOLDER);
	if (set_output(c))
		refuse(status_fd, FAILURE_OUTPUT);
	if (set_affinity(c))
		refuse(status_fd, FAILURE_AFFINITY);
	if (c->priority && c->priority >= own_priority) {
		errno = EPERM;
		refuse(status_fd, own_priority ? FAILURE_WATCHDOG : FAILURE_SCHEDULER);
	}
	if (c->is_trial)
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (set_scheduler(c))
		refuse(status_fd, FAILURE_SCHEDULER);
	if (write(status_fd, &good, sizeof(good)) != sizeof(good) || read(go_fd, &go, 1) != 1)
		_exit(127);
	execvp(c->argv[0], c->argv);
	refuse(status_fd, FAILURE_EXEC);
}
