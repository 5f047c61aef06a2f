/* SPDX-License-Identifier: MIT */
/*
 * supervise.c - run a command; end with it all that it has started.
 *
 *	schedlab-supervise CONTROL_FD COMMAND [ARGUMENT...]
 *
 * Policies are programs: one may fork, call setsid() and sleep, and would keep
 * a run's pipes open and a CPU busy after the run. The supervisor is a
 * subreaper, so that such a process stays its descendant.
 *
 *	command ends --------------------+
 *	CONTROL_FD is closed by the      |--> kill and reap all descendants,
 *	caller, or the caller has died --+    then end as the command did
 *	SIGTERM, SIGINT, SIGHUP ---------+
 *
 * COMMAND is a path. Exit: its code; its signal; 127 if it cannot be executed.
 *
 * Read next: descendants.c; python/schedlab/hosts/process.py, the caller.
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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"

#define EXIT_USAGE 2
#define EXIT_NO_EXEC 127

struct supervisor {
	pid_t command; /* 0: reaped */
	int status;    /* of the command; as waitpid() has it */
	int signals_fd;
	int control_fd;
};

_Noreturn static void fail(const char *what, int code)
{
	fprintf(stderr, "schedlab-supervise: %s: %s\n", what, strerror(errno));
	exit(code);
}

static void start_command(struct supervisor *s, char **argv)
{
	sigset_t none;
	int null_fd;

	s->command = fork();
	if (s->command < 0)
		fail("fork", EXIT_NO_EXEC);
	if (s->command == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv(argv[0], argv);
		fprintf(stderr, "%s cannot be started: %s\n", argv[0], strerror(errno));
		_exit(EXIT_NO_EXEC);
	}
	/* The pipes are the command's: their reader sees its end, not this program's. */
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
}

/* Reap what has ended. Return: whether the command is among it, now or before. */
static bool reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != s->command)
			continue;
		s->command = 0;
		s->status = status;
	}
	return !s->command;
}

/* Until the command has ended, or the caller wants its end. */
static void watch(struct supervisor *s)
{
	struct pollfd fds[] = {
		{ .fd = s->signals_fd, .events = POLLIN },
		{ .fd = s->control_fd, .events = POLLIN },
	};
	struct signalfd_siginfo info;

	while (!reap(s)) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			return;
		if (fds[0].revents && read(s->signals_fd, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo != SIGCHLD)
			return;
	}
}

/* A signal's end is repeated, so that the caller sees the command's own. */
_Noreturn static void end_like(int status)
{
	struct rlimit no_core = { 0 };
	sigset_t none;

	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(WTERMSIG(status), SIG_DFL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		raise(WTERMSIG(status));
	}
	exit(WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	/* A command that was ended before it ended by itself. */
	struct supervisor s = { .status = SIGKILL };
	sigset_t signals;

	if (argc < 3) {
		fprintf(stderr, "usage: schedlab-supervise CONTROL_FD COMMAND [ARGUMENT...]\n");
		return EXIT_USAGE;
	}
	s.control_fd = atoi(argv[1]);
	if (fcntl(s.control_fd, F_SETFD, FD_CLOEXEC))
		fail("CONTROL_FD", EXIT_USAGE);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* A caller may ignore it, and that is inherited: no end would be noticed. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	s.signals_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signals_fd < 0)
		fail("signalfd", EXIT_NO_EXEC);
	start_command(&s, argv + 2);
	watch(&s);
	if (sl_end_descendants() && !s.command)
		fprintf(stderr, "schedlab: processes that were left running have been ended\n");
	end_like(s.status);
}
