/* SPDX-License-Identifier: MIT */
/*
 * keeper.c - stays with one command until the last of its tree has ended.
 *
 * Being a subreaper it inherits all that outlive their parents, so the tree is
 * counted whole, and can be ended whole: descendants are killed until there are
 * none, however they tried to get away.
 *
 *	fork command -> ready -> wait for `go` -> let it go -> reap -> report
 *
 * Must stay true: it ends. The timer, the launcher's word, the launcher's death
 * and the command's end each lead to finish().
 * Read next: main.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"
#include "launch.h"

struct keeper {
	const struct command *command;
	struct report report;
	pid_t pid;     /* of the command; 0: it has been reaped */
	bool has_tree; /* a process of it is left */
	int status_fd; /* the command's words before it is one */
	int go_fd;
	int launcher_fd;
	int signals_fd;
	int timer_fd;
};

static void add_usage(struct usage *to, const struct rusage *r)
{
	to->user_us += (uint64_t)r->ru_utime.tv_sec * 1000000 + (uint64_t)r->ru_utime.tv_usec;
	to->system_us += (uint64_t)r->ru_stime.tv_sec * 1000000 + (uint64_t)r->ru_stime.tv_usec;
	to->nr_voluntary += (uint64_t)r->ru_nvcsw;
	to->nr_involuntary += (uint64_t)r->ru_nivcsw;
	to->nr_major_faults += (uint64_t)r->ru_majflt;
	to->nr_minor_faults += (uint64_t)r->ru_minflt;
	to->nr_blocks_in += (uint64_t)r->ru_inblock;
	to->nr_blocks_out += (uint64_t)r->ru_oublock;
	if ((uint64_t)r->ru_maxrss > to->resident_kib_max)
		to->resident_kib_max = (uint64_t)r->ru_maxrss;
}

/* What a process that has ended, and is not yet reaped, has waited for CPUs. */
static uint64_t read_run_delay_ns(pid_t pid)
{
	unsigned long long ran_ns, delay_ns = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &ran_ns, &delay_ns) != 2)
		delay_ns = 0;
	fclose(file);
	return delay_ns;
}

static void note_end(struct keeper *k, int status)
{
	k->report.end_ns = now_ns();
	k->report.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	k->report.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	k->pid = 0;
}

/* A trial stops at each of these: it forks, and that is all that is asked. */
static bool is_fork_stop(int status)
{
	int event = status >> 16;

	return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	       event == PTRACE_EVENT_CLONE;
}

static void handle_stop(struct keeper *k, pid_t pid, int status)
{
	int sig = WSTOPSIG(status);

	if (is_fork_stop(status)) {
		k->report.forks = true;
		return;
	}
	/* The first stop is exec's; from here on forks are events. */
	ptrace(PTRACE_SETOPTIONS, pid, NULL,
	       PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE);
	ptrace(PTRACE_CONT, pid, NULL, sig == SIGTRAP ? 0 : sig);
}

/* Reap what has ended. Context: some child may have. */
static void reap(struct keeper *k)
{
	siginfo_t info = { 0 };
	struct rusage usage;
	int status;
	pid_t pid;

	for (;;) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT)) {
			k->has_tree = errno != ECHILD;
			return;
		}
		if (!info.si_pid)
			return;
		if (info.si_pid == k->pid && info.si_code != CLD_TRAPPED &&
		    info.si_code != CLD_STOPPED)
			k->report.run_delay_ns = read_run_delay_ns(k->pid);
		pid = wait4(info.si_pid, &status, WUNTRACED | WNOHANG, &usage);
		if (pid <= 0)
			continue;
		if (WIFSTOPPED(status)) {
			if (k->command->is_trial)
				handle_stop(k, pid, status);
			continue;
		}
		if (pid == k->pid) {
			add_usage(&k->report.own, &usage);
			note_end(k, status);
		} else {
			add_usage(&k->report.orphans, &usage);
			k->report.nr_orphans++;
		}
		k->report.tree_end_ns = now_ns();
	}
}

/*
 * End the whole tree. A process in the kernel may take its time to die; one of
 * another user, as sudo starts it, cannot be ended here, and is told.
 */
static void end_tree(struct keeper *k)
{
	uint32_t nr_refusals = 0;

	/* Mostly all have ended already: looking for them takes a millisecond. */
	for (reap(k); k->has_tree; reap(k)) {
		if (sl_kill_descendants(&nr_refusals))
			continue;
		k->report.failure = FAILURE_SURVIVOR;
		k->report.error = EPERM;
		return;
	}
}

_Noreturn static void finish(struct keeper *k)
{
	end_tree(k);
	(void)!send(k->launcher_fd, &k->report, sizeof(k->report), MSG_NOSIGNAL);
	_exit(0);
}

static void start_command(struct keeper *k)
{
	int go[2], status[2];

	if (pipe2(go, O_CLOEXEC) || pipe2(status, O_CLOEXEC)) {
		struct ready bad = { FAILURE_START, errno };

		(void)!send(k->launcher_fd, &bad, sizeof(bad), MSG_NOSIGNAL);
		_exit(1);
	}
	k->pid = fork();
	if (k->pid == 0)
		become_command(k->command, go[0], status[1]);
	close(go[0]);
	close(status[1]);
	k->go_fd = go[1];
	k->status_fd = status[0];
	k->has_tree = k->pid > 0;
}

/* Wait until the command stands at its start. Return: whether it does. */
static bool await_ready(struct keeper *k)
{
	struct ready word = { FAILURE_START, EAGAIN };

	if (k->pid > 0 && read(k->status_fd, &word, sizeof(word)) != (ssize_t)sizeof(word))
		word = (struct ready){ FAILURE_START, ECHILD };
	(void)!send(k->launcher_fd, &word, sizeof(word), MSG_NOSIGNAL);
	return !word.failure;
}

static void set_timer(struct keeper *k, uint64_t timeout_ns)
{
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(timeout_ns / 1000000000),
			.tv_nsec = (long)(timeout_ns % 1000000000),
		},
	};

	timerfd_settime(k->timer_fd, 0, &at, NULL);
}

static void let_go(struct keeper *k, uint64_t timeout_ns)
{
	set_timer(k, timeout_ns);
	k->report.start_ns = now_ns();
	(void)!write(k->go_fd, "g", 1);
}

/* exec reports only failure; success closes the pipe. */
static void read_exec_failure(struct keeper *k)
{
	struct ready word;

	if (read(k->status_fd, &word, sizeof(word)) == (ssize_t)sizeof(word)) {
		k->report.failure = word.failure;
		k->report.error = word.error;
	}
}

static void watch(struct keeper *k, uint64_t timeout_ns)
{
	struct pollfd fds[] = {
		{ .fd = k->signals_fd, .events = POLLIN },
		{ .fd = k->timer_fd, .events = POLLIN },
		{ .fd = k->launcher_fd, .events = POLLIN },
	};
	struct signalfd_siginfo info;
	char word;

	for (;;) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return;
		if (fds[2].revents) {
			if (read(k->launcher_fd, &word, 1) != 1 || word != 'g') {
				k->report.was_ended = true;
				return;
			}
			let_go(k, timeout_ns);
		}
		if (fds[1].revents) {
			k->report.has_timed_out = true;
			return;
		}
		if (!fds[0].revents)
			continue;
		if (read(k->signals_fd, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo != SIGCHLD) {
			k->report.was_ended = true;
			return;
		}
		reap(k);
		if (!k->has_tree || k->report.forks || (k->command->is_whole && !k->pid))
			return;
	}
}

void keep(const struct command *c, uint64_t timeout_ns, int fd)
{
	struct keeper k = { .command = c, .launcher_fd = fd };
	sigset_t signals;

	prctl(PR_SET_NAME, "schedlab-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	/* Not SIGKILL: there is a tree to be ended first. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	k.signals_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	k.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	start_command(&k);
	if (!await_ready(&k)) {
		end_tree(&k);
		_exit(1);
	}
	watch(&k, timeout_ns);
	read_exec_failure(&k);
	finish(&k);
}
