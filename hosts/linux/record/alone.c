/* SPDX-License-Identifier: MIT */
/*
 * alone.c - records into a file on a machine that has nothing of schedlab but this program.
 *
 *	schedlab-record record --system 30s --out FILE
 *	schedlab-record record --pid N | --comm NAME | --cgroup /X  [--for 10s]
 *	schedlab-record record -- COMMAND...
 *
 * The options are those of `schedlab record`; `schedlab import FILE` makes the run of it.
 * A recording ends after its time, with its process or command, or on Ctrl-C.
 *
 * Called by main.c. Read next: capture.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define SECOND_NS 1000000000ULL

struct request {
	struct capture_options capture;
	struct selection selection;
	const char *out;
	char **command;
	uint64_t for_ns;
	int nr_chosen; /* of --system, --pid, --comm, --cgroup and a command */
};

static uint64_t length_of(const char *option, const char *text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ms", 1e6 }, { "s", 1e9 }, { "min", 60e9 }, { "h", 3600e9 } };
	char *unit;
	double value = strtod(text, &unit);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double ns = value * units[i].ns;

		if (unit != text && !strcmp(unit, units[i].name) && ns >= 1 && ns < 1e18)
			return (uint64_t)ns;
	}
	refuse("%s %s: a number and one of ms, s, min, h, such as 30s", option, text);
}

/* As the kernel says where cgroups are: the unified hierarchy first, then that of cpu. */
static const char *folder_of_group(const char *name)
{
	static const char *const roots[] = {
		"/sys/fs/cgroup",
		"/sys/fs/cgroup/unified",
		"/sys/fs/cgroup/cpu",
		"/sys/fs/cgroup/cpu,cpuacct",
	};
	static char folder[4096];
	char procs[4200];

	while (*name == '/')
		name++;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(folder, sizeof(folder), "%s/%s", roots[i], name);
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", folder);
		if (!access(procs, R_OK))
			return folder;
	}
	refuse("--cgroup /%s: there is no such cgroup; /proc/PID/cgroup names that of a process",
	       name);
}

static void set_option(struct request *r, const char *option, const char *value)
{
	struct selection *s = &r->selection;

	if (!strcmp(option, "--out")) {
		r->out = value;
		return;
	}
	if (!strcmp(option, "--for") || !strcmp(option, "--system"))
		r->for_ns = length_of(option, value);
	if (!strcmp(option, "--for"))
		return;
	r->nr_chosen++;
	if (!strcmp(option, "--pid")) {
		s->by = TREE_OF;
		s->root = (uint32_t)strtoul(value, NULL, 10);
	} else if (!strcmp(option, "--comm")) {
		s->by = NAMED;
		snprintf(s->name, NAME_BYTES, "%.15s", value);
	} else if (!strcmp(option, "--cgroup")) {
		s->by = IN_GROUP;
		s->group = folder_of_group(value);
	} else if (strcmp(option, "--system")) {
		refuse("unknown option %s", option);
	}
}

static struct request parse(int argc, char **argv)
{
	struct request r = {
		.out = "events.slev",
	};

	for (int i = 0, n; i < argc; i += n) {
		if (!strcmp(argv[i], "--")) {
			r.command = argv + i + 1;
			r.selection.by = TREE_OF;
			r.nr_chosen++;
			break;
		}
		n = capture_option(&r.capture, argc - i, argv + i);
		if (!n && i + 1 == argc)
			refuse("%s: unknown, or its value is missing", argv[i]);
		if (!n) {
			set_option(&r, argv[i], argv[i + 1]);
			n = 2;
		}
	}
	if (r.nr_chosen != 1 || (r.command && !r.command[0]))
		refuse("record what? give one of --system TIME, --pid N, --comm NAME, "
		       "--cgroup /X and -- COMMAND; then --for TIME, --out FILE, --causes, "
		       "--yields, --buffer KIB");
	if (!r.for_ns)
		r.for_ns = r.command ? UINT64_MAX : 10 * SECOND_NS;
	return r;
}

/* A process that becomes the command when the other end of @go writes to it. */
static pid_t start_command(char **command, int *go)
{
	int ends[2];
	pid_t pid;
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		refuse("no pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		refuse("no process for the command: %s", strerror(errno));
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) != 1)
			_exit(127);
		execvp(command[0], command);
		fprintf(stderr, "schedlab-record: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

/* Readable once the process has ended. */
static int open_process(uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		refuse("process %u: %s%s", pid, strerror(errno),
		       errno == ENOSYS ? "; this needs Linux 5.3 or newer" : "");
	return fd;
}

static void wait_for_end(int process, uint64_t for_ns)
{
	uint64_t from_ns = now_ns(), passed_ns;

	while (!capture_was_ended() && (passed_ns = now_ns() - from_ns) < for_ns) {
		uint64_t left_ms = (for_ns - passed_ns) / 1000000 + 1;

		if (capture_wait(process, left_ms < 1000 ? (int)left_ms : 1000))
			break;
	}
}

/* Return: the status of the program. */
static int report(const struct request *r, const struct captured *c, uint64_t begin_ns)
{
	fprintf(stderr,
		"%s: %llu events of %.2f s, %llu lost; the recorder used %.2f s of CPU time\n",
		r->out, (unsigned long long)c->nr_events, (double)(c->end_ns - begin_ns) / 1e9,
		(unsigned long long)c->nr_lost, (double)c->cpu_ns / 1e9);
	if (c->error)
		fprintf(stderr, "after %.1f s the file could not be written any more: %s\n",
			(double)(c->error_ns - begin_ns) / 1e9, strerror(c->error));
	if (c->nr_lost)
		fprintf(stderr, "lost events found their ring full: give more with --buffer KIB\n");
	fprintf(stderr, "where schedlab is: schedlab import %s --out DIR\n", r->out);
	return c->error || c->nr_lost ? 1 : 0;
}

int record_main(int argc, char **argv)
{
	int process = -1, go = -1, status = 0, error;
	struct captured captured;
	struct request r;
	uint64_t begin_ns;
	pid_t child = 0;

	refuse_in_text();
	r = parse(argc, argv);
	/* Before this process gets the highest priority, which the command shall not have. */
	if (r.command)
		r.selection.root = (uint32_t)(child = start_command(r.command, &go));
	if (r.selection.by == TREE_OF)
		process = open_process(r.selection.root);
	capture_open(&r.capture);
	error = capture_begin(r.out, &r.selection, 0, &begin_ns);
	if (error)
		refuse("%s: cannot be written: %s", r.out, strerror(error));
	if (child && write(go, "", 1) != 1)
		refuse("the command has ended before it began");
	wait_for_end(process, r.for_ns);
	captured = capture_stop();
	if (child && waitpid(child, &status, WNOHANG) == child && status)
		fprintf(stderr, "the command ended with status %d\n",
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return report(&r, &captured, begin_ns);
}
