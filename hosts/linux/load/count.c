/* SPDX-License-Identifier: MIT */
/*
 * count.c - how often the callbacks of a loaded policy were called.
 *
 * The kernel itself counts the calls of BPF programs and their time while
 * a process holds the file that asks for it, and sched_ext counts what it had to
 * do beside the policy's wishes.
 *
 * Called by main.c, again and again. Read next: main.c.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>

#include "load.h"

#define EVENTS "/sys/kernel/sched_ext/root/events"
#define TEXT_BYTES 8000

void count_init(void)
{
	/* The file is closed with this process. Without it calls read as 0. */
	bpf_enable_stats(BPF_STATS_RUN_TIME);
}

/* Lines "event NAME COUNT" of a file of sched_ext. Return: bytes used. */
static u64 add_events(const char *path, char *text, u64 used)
{
	FILE *file = fopen(path, "r");
	char name[64];
	u64 count;

	if (!file)
		return used;
	while (used + 100 < TEXT_BYTES && fscanf(file, "%63s %llu", name, &count) == 2)
		used += snprintf(text + used, TEXT_BYTES - used, "event %s %llu\n", name, count);
	fclose(file);
	return used;
}

void count_send(struct bpf_object *object)
{
	char text[TEXT_BYTES] = "";
	struct bpf_program *program;
	u64 used = 0;

	bpf_object__for_each_program(program, object) {
		struct bpf_prog_info info = { 0 };
		u32 bytes = sizeof(info);

		if (used + 200 > sizeof(text) ||
		    bpf_prog_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
			break;
		used += snprintf(text + used, sizeof(text) - used, "call %.100s %llu %llu\n",
				 bpf_program__name(program), info.run_cnt, info.run_time_ns);
	}
	used = add_events(EVENTS, text, used);
	frame_bytes("counts", text, used);
}
