/* SPDX-License-Identifier: MIT */
/*
 * init.c - process 1 of the guest: reads the job and does it.
 *
 * When all that does not depend on the job is done, the guest has its machine
 * stopped; from then on every run starts from a copy of it, with another job.
 * The job has one command per line, words separated by single blanks:
 *
 *	policy PATH          the next policy; ends the one before
 *	loader COMMAND ENVIRONMENT   its own program in place of a policy; the next word is play
 *	set NAME VALUE       a knob of it
 *	hold MILLISECONDS    load and attach it, leave the CPUs to it so long
 *	device LATENCY PER_KIB CALL DEPTH    what `read` and `write` wait for, in ns
 *	above CPU START LENGTH   a real-time task then, in ns since time 0 of the next program
 *	offline CPU START LENGTH  that CPU is offline then
 *	weight OBJECT AT VALUE, quota OBJECT AT NS  of a group of the program, from then on
 *	lead MILLISECONDS    attach so long before time 0 of a program
 *	play PATH            load and attach it, run a workload program under it
 *	exec MILLISECONDS PATH WORDS   run a program, interrupt it after so long
 *	root COMMAND ENVIRONMENT    run a command on the files of the machine outside
 *
 * Any failure is a frame and the next command goes on, so that one bad policy
 * does not hide what the others do. When the job is done the guest powers off.
 *
 * Read next: ../load/policy.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

static void mount_or_die(const char *type, const char *place)
{
	mkdir(place, 0755);
	if (mount(type, place, type, 0, NULL)) {
		frame_text("fatal", "mount %s: %s", type, strerror(errno));
		reboot(RB_POWER_OFF);
	}
}

/* Attached and alone with the CPUs; less if the kernel throws it out. */
static void hold(struct policy *policy, u64 ms)
{
	const struct timespec step = { .tv_nsec = 10 * 1000 * 1000 };
	u64 waited_ms;

	if (policy_load(policy) || policy_attach(policy))
		return;
	for (waited_ms = 0; waited_ms < ms; waited_ms += 10) {
		if (!policy_is_attached(policy))
			return;
		nanosleep(&step, NULL);
	}
}

#define WORDS_MAX 32
#define OUTPUT_PATH "/output"

/* Its input stays open, and empty, as long as this process has the other end. */
static void be_program(char **argv, const int *input)
{
	int out = open(OUTPUT_PATH, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);

	dup2(input[0], STDIN_FILENO);
	close(input[1]);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execv(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Words of the line that strtok() is in the middle of. */
static void exec_program(u64 ms)
{
	const struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	char *argv[WORDS_MAX + 1] = { NULL };
	int input[2] = { -1, -1 };
	int status = 0;
	pid_t pid;
	int i;

	for (i = 0; i < WORDS_MAX && (argv[i] = strtok(NULL, " \n")); i++)
		;
	frame_text("next", "%s", argv[0] ? argv[0] : "nothing");
	signal(SIGCHLD, SIG_DFL);
	pid = argv[0] && !pipe(input) ? fork() : -1;
	if (!pid)
		be_program(argv, input);
	nanosleep(&wait, NULL);
	if (pid > 0) {
		kill(pid, SIGINT);
		waitpid(pid, &status, 0);
	}
	close(input[0]);
	close(input[1]);
	signal(SIGCHLD, SIG_IGN);
	frame_file("output", OUTPUT_PATH);
	frame_text("status", "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* Of the line that strtok() is in the middle of. */
static void set_device(const char *latency)
{
	u64 value[4] = { strtoull(latency, NULL, 0) };
	int i;

	for (i = 1; i < 4; i++) {
		const char *word = strtok(NULL, " \n");

		value[i] = word ? strtoull(word, NULL, 0) : 0;
	}
	if (device_set(value[0], value[1], value[2], value[3]))
		frame_text("fatal", "the device cannot work on %llu requests at once", value[3]);
}

/* Of the line that strtok() is in the middle of. */
static void add_above(enum above_kind kind, const char *cpu)
{
	const char *start = strtok(NULL, " \n");
	const char *length = strtok(NULL, " \n");

	if (!length || above_add(kind, strtoull(cpu, NULL, 0), strtoull(start, NULL, 0),
				 strtoull(length, NULL, 0)))
		frame_text("fatal", "more real-time tasks and events than the guest can have");
}

/* @is_loader: a program was given, which has the place of a policy. */
static const char *const above_words[] = { "above", "offline", "weight", "quota" };

static void do_line(char *line, struct policy **policy, bool *is_loader)
{
	char *verb = strtok(line, " \n");
	char *first = strtok(NULL, " \n");
	char *second;

	if (!verb || !first)
		return;
	if (!strcmp(verb, "exec")) {
		exec_program(strtoull(first, NULL, 0));
		return;
	}
	if (!strcmp(verb, "lead")) {
		play_lead(strtoull(first, NULL, 0));
		return;
	}
	for (enum above_kind kind = ABOVE_TASK; kind <= ABOVE_QUOTA; kind++) {
		if (!strcmp(verb, above_words[kind])) {
			add_above(kind, first);
			return;
		}
	}
	if (!strcmp(verb, "device")) {
		set_device(first);
		return;
	}
	second = strtok(NULL, " \n");
	if (!strcmp(verb, "root") && second) {
		machine_root_exec(first, second);
	} else if (!strcmp(verb, "policy")) {
		policy_close(*policy);
		frame_text("next", "%s", first);
		*policy = policy_open(first);
		*is_loader = false;
	} else if (!strcmp(verb, "loader") && second) {
		policy_close(*policy);
		*policy = NULL;
		frame_text("next", "%s", first);
		*is_loader = !loader_open(first, second);
	} else if (!strcmp(verb, "play") && *is_loader) {
		play(NULL, first);
	} else if (!*policy) {
		return; /* a frame has said why there is none */
	} else if (!strcmp(verb, "set") && second) {
		if (policy_set(*policy, first, strtoull(second, NULL, 0))) {
			policy_close(*policy);
			*policy = NULL;
		}
	} else if (!strcmp(verb, "image")) {
		if (policy_image(*policy, first)) {
			policy_close(*policy);
			*policy = NULL;
		}
	} else if (!strcmp(verb, "hold")) {
		hold(*policy, strtoull(first, NULL, 0));
	} else if (!strcmp(verb, "play")) {
		play(*policy, first);
	} else {
		frame_text("fatal", "job: unknown command %s", verb);
	}
}

/* So that the functions of a stack have names, whatever the kernel's default. */
static void name_bpf_functions(void)
{
	int fd = open("/proc/sys/net/core/bpf_jit_kallsyms", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, "1", 1) != 1)
		frame_text("fatal", "bpf_jit_kallsyms: %s", strerror(errno));
	close(fd);
}

int main(void)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct policy *policy = NULL;
	bool is_loader = false;
	struct utsname name;
	char line[512];
	FILE *job;

	frame_to_port();
	mount_or_die("proc", "/proc");
	mount_or_die("sysfs", "/sys");
	mount_or_die("tracefs", "/trace");
	mount_or_die("devtmpfs", "/dev");
	/* The kernel gives its first process no open files where there is no console. */
	while (open("/dev/null", O_RDWR) < STDERR_FILENO)
		;
	/* Nothing waits for the tasks: the kernel shall forget them at once. */
	signal(SIGCHLD, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 65536, 65536 });
	setrlimit(RLIMIT_MEMLOCK, &no_limit);
	uname(&name);
	write_config("");
	name_bpf_functions();
	input_init();
	trace_init();
	input_stop_machine();
	/* With the job, since what came before belongs to another run. */
	frame_text("boot", "%llu %s %s %s", tick_ns(), name.sysname, name.release, name.version);
	trace_send_formats();
	input_read();

	job = fopen("/job", "r");
	if (!job)
		frame_text("fatal", "/job: %s", strerror(errno));
	while (job && fgets(line, sizeof(line), job))
		do_line(line, &policy, &is_loader);
	policy_close(policy);
	frame_text("done", "%s", "");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
