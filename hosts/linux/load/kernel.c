/* SPDX-License-Identifier: MIT */
/*
 * kernel.c - what the kernel says of sched_ext: its state, and its lines in the log.
 *
 * The scheduler may be one that policy.c has loaded, or in the guest one that a program has loaded itself.
 *
 * Read next: policy.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

#define FOLDER "/sys/kernel/sched_ext/"

bool kernel_read(const char *name, char *text, u64 text_bytes)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	fd = open(path, O_RDONLY);
	if (fd >= 0) {
		n = read(fd, text, text_bytes - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return n > 0;
}

bool kernel_state_is(const char *state)
{
	char text[32];

	return kernel_read("state", text, sizeof(text)) && !strcmp(text, state);
}

int kernel_listen(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* The lines of a stack, which are indented, follow the one that says what happened. */
void kernel_said(int fd, char *text, u64 text_bytes)
{
	char record[8192];
	bool is_ours = false;
	u64 used = 0;
	ssize_t n;

	text[0] = '\0';
	while ((n = read(fd, record, sizeof(record) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		char *said;

		if (n < 0)
			continue; /* overwritten: go on behind it */
		record[n] = '\0';
		said = strchr(record, ';');
		if (!said)
			continue;
		said[1 + strcspn(said + 1, "\n")] = '\0';
		is_ours = strstr(said, "sched_ext") || (is_ours && said[1] == ' ');
		if (!is_ours)
			continue;
		n = snprintf(text + used, text_bytes - used, "%s\n", said + 1);
		if (used + n >= text_bytes)
			break;
		used += n;
	}
}

/* The resolution of the clock that a tick moves on. */
u64 tick_ns(void)
{
	struct timespec tick = { 0 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return tick.tv_sec * 1000000000ULL + tick.tv_nsec;
}

const char *kernel_config(void)
{
	static char text[512];
	struct utsname name;
	u32 cpu_max = 0;
	bool has_idle_nohz;
	FILE *file = fopen("/sys/devices/system/cpu/kernel_max", "r");

	if (file && fscanf(file, "%u", &cpu_max) != 1)
		cpu_max = 0;
	if (file)
		fclose(file);
	uname(&name);
	/* Files that NO_HZ_COMMON brings, and NO_HZ_FULL. */
	has_idle_nohz = !access("/proc/sys/kernel/timer_migration", F_OK) &&
			access("/sys/devices/system/cpu/nohz_full", F_OK);
	/*
	 * Each kind of preemption makes RCU preemptible, and only then is migration disabled
	 * while a program runs. Two are texts about the build, which no scheduler decides by.
	 */
	snprintf(text, sizeof(text),
		 "CONFIG_X86_64=%c\nCONFIG_HZ=%llu\nCONFIG_NR_CPUS=%u\nCONFIG_PREEMPT_RT=%c\n"
		 "CONFIG_PREEMPT_RCU=%c\nCONFIG_NO_HZ_IDLE=%c\n"
		 "CONFIG_CC_VERSION_TEXT=\"\"\nCONFIG_LOCALVERSION=\"\"\n",
		 strcmp(name.machine, "x86_64") ? 'n' : 'y', 1000000000ULL / tick_ns(), cpu_max + 1,
		 strstr(name.version, "PREEMPT_RT") ? 'y' : 'n',
		 strstr(name.version, "PREEMPT") ? 'y' : 'n', has_idle_nohz ? 'y' : 'n');
	return text;
}

bool kernel_has_config(void)
{
	struct utsname name;
	char path[128];

	uname(&name);
	snprintf(path, sizeof(path), "/boot/config-%s", name.release);
	return !access(path, R_OK) || !access("/proc/config.gz", R_OK);
}
