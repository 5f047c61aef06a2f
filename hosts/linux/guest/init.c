/* SPDX-License-Identifier: MIT */
/*
 * init.c - process 1 of the guest: reads the job and does it.
 *
 * /job has one command per line, words separated by single blanks:
 *
 *	policy PATH          the next policy; ends the one before
 *	set NAME VALUE       a knob of it
 *	hold MILLISECONDS    load and attach it, leave the CPUs to it so long
 *	play PATH            load and attach it, run a workload program under it
 *
 * Any failure is a frame and the next command goes on, so that one bad policy
 * does not hide what the others do. When the job is done the guest powers off.
 *
 * Read next: load.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
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

static void do_line(char *line, struct policy **policy)
{
	char *verb = strtok(line, " \n");
	char *first = strtok(NULL, " \n");
	char *second = strtok(NULL, " \n");

	if (!verb || !first)
		return;
	if (!strcmp(verb, "policy")) {
		policy_close(*policy);
		frame_text("policy", "%s", first);
		*policy = policy_open(first);
	} else if (!*policy) {
		return;	/* a frame has said why there is none */
	} else if (!strcmp(verb, "set") && second) {
		if (policy_set(*policy, first, strtoull(second, NULL, 0))) {
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

int main(void)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct policy *policy = NULL;
	struct utsname name;
	char line[512];
	FILE *job;

	frame_init();
	mount_or_die("proc", "/proc");
	mount_or_die("sysfs", "/sys");
	mount_or_die("tracefs", "/trace");
	mount_or_die("devtmpfs", "/dev");
	/* Nobody waits for the tasks: the kernel shall forget them at once. */
	signal(SIGCHLD, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 65536, 65536 });
	setrlimit(RLIMIT_MEMLOCK, &no_limit);
	uname(&name);
	frame_text("boot", "%s", name.release);
	trace_init();

	job = fopen("/job", "r");
	if (!job)
		frame_text("fatal", "/job: %s", strerror(errno));
	while (job && fgets(line, sizeof(line), job))
		do_line(line, &policy);
	policy_close(policy);
	frame_text("done", "%s", "");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
