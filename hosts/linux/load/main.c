/* SPDX-License-Identifier: MIT */
/*
 * main.c - schedlab-load: one policy in the kernel that this program runs on.
 *
 *	schedlab-load OBJECT [--set KNOB=VALUE]... [--image FILE] [--partial]
 *		[--every-ms N] [--heartbeat-ms N]
 *
 * FILE is what its launch() has left behind elsewhere, see launch.c.
 *
 * Loads and attaches the policy, sends frames to standard output (see load.h),
 * and unloads it on SIGINT or SIGTERM, or when standard input ends: what
 * started this is gone then. With a heartbeat it also unloads the policy when
 * nothing has come for so long: what started this may be stopped, or starved by the
 * policy. Should this program be killed itself, the kernel
 * sees the link closed and takes the CPUs back.
 *
 * Exit status: 0 when it was unloaded as asked, 1 when the kernel refused it or
 * threw it out, 2 for a wrong command line.
 *
 * Called by python/schedlab/hosts/linux/load.py. Read next: policy.c.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

#define EVERY_MS 1000

struct options {
	const char *object;
	const char *image; /* what the policy's launch() left behind; NULL: it has none */
	bool is_partial;
	int every_ms;
	int heartbeat_ms; /* 0: none is expected */
};

static int usage(const char *what)
{
	fprintf(stderr,
		"schedlab-load: %s\nusage: schedlab-load OBJECT "
		"[--set KNOB=VALUE]... [--image FILE] [--partial] "
		"[--every-ms N] [--heartbeat-ms N]\n",
		what);
	return 2;
}

/* A knob that is to be set comes once the object is open. */
static int read_options(int argc, char **argv, struct options *o)
{
	int i;

	if (argc < 2)
		return usage("no object");
	*o = (struct options){ .object = argv[1], .every_ms = EVERY_MS };
	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--partial")) {
			o->is_partial = true;
		} else if (!strcmp(argv[i], "--image") && i + 1 < argc) {
			o->image = argv[++i];
		} else if (!strcmp(argv[i], "--every-ms") && i + 1 < argc) {
			o->every_ms = atoi(argv[++i]);
			if (o->every_ms <= 0)
				return usage("--every-ms needs a positive number");
		} else if (!strcmp(argv[i], "--heartbeat-ms") && i + 1 < argc) {
			o->heartbeat_ms = atoi(argv[++i]);
			if (o->heartbeat_ms <= 0)
				return usage("--heartbeat-ms needs a positive number");
		} else if (!strcmp(argv[i], "--set") && i + 1 < argc) {
			if (!strchr(argv[++i], '='))
				return usage("--set needs KNOB=VALUE");
		} else {
			return usage(argv[i]);
		}
	}
	return 0;
}

static int set_knobs(struct policy *policy, int argc, char **argv)
{
	int i;

	for (i = 2; i < argc; i++) {
		char *equals;

		if (strcmp(argv[i], "--set"))
			continue;
		equals = strchr(argv[++i], '=');
		*equals = '\0';
		if (policy_set(policy, argv[i], strtoull(equals + 1, NULL, 0)))
			return -1;
	}
	return 0;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Return: whether standard input has ended. */
static bool input_ended(void)
{
	char rest[256];

	return read(STDIN_FILENO, rest, sizeof(rest)) <= 0;
}

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

/*
 * Until the end is asked for, the kernel throws the policy out, or nothing has come
 * for the length of a heartbeat.
 */
static void watch(struct policy *policy, int signals, const struct options *o)
{
	u64 counted_ms = now_ms(), heard_ms = counted_ms, t_ms;
	int wait_ms = o->every_ms;
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	while (policy_is_attached(policy)) {
		if (o->heartbeat_ms && o->heartbeat_ms < wait_ms)
			wait_ms = o->heartbeat_ms;
		if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
			break;
		t_ms = now_ms();
		/* A heartbeat is no reason to count again. */
		if (t_ms - counted_ms >= (u64)o->every_ms || fds[0].revents) {
			count_send(policy_object(policy));
			counted_ms = t_ms;
		}
		wait_ms = o->every_ms - (int)(t_ms - counted_ms);
		if (fds[0].revents || (fds[1].revents && input_ended()))
			break;
		if (fds[1].revents)
			heard_ms = t_ms;
		if (o->heartbeat_ms && t_ms - heard_ms >= (u64)o->heartbeat_ms) {
			frame_text("silent", "%llu", (unsigned long long)(t_ms - heard_ms));
			break;
		}
	}
}

/* So that the player of a workload can give its tasks attributes (../tasks/attrs.c). */
static void tell_attributes(struct policy *policy)
{
	struct bpf_map_info info = { 0 };
	u32 info_bytes = sizeof(info);
	u32 value_bytes;
	int fd = policy_map(policy, "task_attrs", &value_bytes);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &info_bytes))
		frame_text("attributes", "%u", info.id);
}

int main(int argc, char **argv)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct policy *policy;
	struct options o;
	bool is_well = false;
	int signals;

	if (read_options(argc, argv, &o))
		return 2;
	signals = open_signals();
	frame_to_file(STDOUT_FILENO);
	setrlimit(RLIMIT_MEMLOCK, &no_limit);
	policy = policy_open(o.object);
	if (!policy)
		return 1;
	if (!set_knobs(policy, argc, argv) && !(o.image && policy_image(policy, o.image)) &&
	    !(o.is_partial && policy_take_partly(policy)) && !policy_load(policy)) {
		count_init();
		tell_attributes(policy);
		if (!policy_attach(policy)) {
			watch(policy, signals, &o);
			is_well = policy_is_attached(policy);
		}
	}
	policy_close(policy);
	return !is_well;
}
