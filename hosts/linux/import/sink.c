/* SPDX-License-Identifier: MIT */
/*
 * sink.c - the events of an imported trace, written as the recorder writes them.
 *
 * The header is written last, when the number of CPUs and the begin are known. A CPU
 * whose first events were overwritten (a ring that kept the newest) is known from its
 * first event on; the trace begins when all CPUs are.
 *
 * Called by text.c, perfetto.c and main.c. Read next: record/record.h, the format.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "import.h"

#define SINK_EVENTS 32768

struct sink_cpu {
	bool has_events;
	uint64_t nr_switches;
	uint64_t nr_chosen;	 /* wake-ups that chose it */
	uint64_t nr_lost_before; /* its first event */
};

static struct {
	int fd;
	const char *path;
	uint32_t nr;
	struct event events[SINK_EVENTS];
	uint64_t counts[NR_EVENT_KINDS];
	uint64_t first_ns, last_ns, begin_ns;
	uint64_t nr_backward; /* events earlier than one before them on their CPU */
	uint32_t nr_cpus;
	bool has_any;
	struct sink_cpu cpus[RECORD_CPUS_MAX];
	uint64_t cpu_ns[RECORD_CPUS_MAX];
	char (*names)[NAME_BYTES]; /* by pid */
	/* anonymous: */
	uint64_t key[2];
	uint32_t *numbers; /* by pid; NULL: names and pids are kept */
	uint32_t nr_numbers;
	struct events_header header;
} sink;

static void write_all(const void *data, size_t bytes)
{
	int error = write_whole(sink.fd, data, bytes);

	if (error)
		refuse("%s: cannot be written: %s; make room and import again", sink.path,
		       strerror(error));
}

static void append(const struct event *e)
{
	if (sink.nr == SINK_EVENTS) {
		write_all(sink.events, sizeof(sink.events));
		sink.nr = 0;
	}
	sink.events[sink.nr++] = *e;
}

void sink_open(const char *path, bool is_anonymous)
{
	sink.path = path;
	sink.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (sink.fd < 0)
		refuse("%s: %s", path, strerror(errno));
	sink.header = (struct events_header){
		.magic = EVENTS_MAGIC,
		.version = EVENTS_VERSION,
		.header_bytes = sizeof(sink.header),
		.event_bytes = sizeof(struct event),
		.is_all = 1,
	};
	write_all(&sink.header, sizeof(sink.header));
	sink.names = reserve((size_t)PIDS_MAX * NAME_BYTES);
	if (!is_anonymous)
		return;
	sink.numbers = reserve(PIDS_MAX * sizeof(*sink.numbers));
	if (getrandom(sink.key, sizeof(sink.key), 0) != sizeof(sink.key))
		refuse("no random numbers: %s", strerror(errno));
}

static uint32_t number_of(uint32_t pid)
{
	if (!sink.numbers || !pid)
		return pid;
	if (!sink.numbers[pid])
		sink.numbers[pid] = ++sink.nr_numbers;
	return sink.numbers[pid];
}

static bool has_pid_in_other(uint8_t kind)
{
	return kind <= EVENT_NEW || kind == EVENT_FORK || kind == EVENT_EXEC ||
	       kind == EVENT_MEMBER;
}

static bool has_cpu_in_value(uint8_t kind)
{
	return kind == EVENT_WAKING || kind == EVENT_WAKEUP || kind == EVENT_NEW ||
	       kind == EVENT_MIGRATE;
}

static const char *check(const struct event *e)
{
	static char wrong[80];
	uint32_t other = has_pid_in_other(e->kind) ? e->other : 0;
	uint32_t cpu = has_cpu_in_value(e->kind) ? (uint32_t)e->value : 0;

	if (e->pid >= PIDS_MAX || other >= PIDS_MAX)
		snprintf(wrong, sizeof(wrong), "pid %u is more than Linux has",
			 e->pid >= PIDS_MAX ? e->pid : other);
	else if (e->cpu >= RECORD_CPUS_MAX || cpu >= RECORD_CPUS_MAX ||
		 (e->kind == EVENT_MIGRATE && e->other >= RECORD_CPUS_MAX))
		snprintf(wrong, sizeof(wrong), "CPU %u: at most %d are known",
			 e->cpu >= RECORD_CPUS_MAX ? e->cpu :
			 cpu >= RECORD_CPUS_MAX	   ? cpu :
						     e->other,
			 RECORD_CPUS_MAX);
	else if (e->t_ns >> 63)
		snprintf(wrong, sizeof(wrong), "the time %llu s is too large",
			 (unsigned long long)(e->t_ns / 1000000000));
	else
		return NULL;
	return wrong;
}

static void see_cpu(uint32_t cpu)
{
	if (cpu >= sink.nr_cpus)
		sink.nr_cpus = cpu + 1;
}

/* What is known of the trace's times and CPUs with this event. */
static void see(const struct event *e)
{
	struct sink_cpu *cpu = &sink.cpus[e->cpu];

	if (!sink.has_any || e->t_ns < sink.first_ns)
		sink.first_ns = e->t_ns;
	if (!sink.has_any || e->t_ns > sink.last_ns)
		sink.last_ns = e->t_ns;
	sink.has_any = true;
	if (!cpu->has_events && cpu->nr_lost_before && e->t_ns > sink.begin_ns)
		sink.begin_ns = e->t_ns;
	cpu->has_events = true;
	cpu->nr_switches += e->kind == EVENT_SWITCH;
	if (e->t_ns < sink.cpu_ns[e->cpu])
		sink.nr_backward++;
	else
		sink.cpu_ns[e->cpu] = e->t_ns;
	see_cpu(e->cpu);
	if (has_cpu_in_value(e->kind)) {
		see_cpu((uint32_t)e->value);
		sink.cpus[e->value].nr_chosen += e->kind != EVENT_MIGRATE;
	}
	if (e->kind == EVENT_MIGRATE)
		see_cpu(e->other);
}

const char *sink_put(struct event e)
{
	const char *wrong = check(&e);

	if (wrong)
		return wrong;
	see(&e);
	sink.counts[e.kind]++;
	/* The next task with this number may have the same name, or its parent's. */
	if (e.kind == EVENT_FORK || (e.kind == EVENT_SWITCH && e.value & STATE_DEAD))
		sink.names[e.pid][0] = '\0';
	e.pid = number_of(e.pid);
	if (has_pid_in_other(e.kind))
		e.other = number_of(e.other);
	append(&e);
	return NULL;
}

void sink_name(uint32_t pid, uint16_t cpu, const char *name, size_t bytes)
{
	struct event named = { .cpu = cpu, .kind = EVENT_NAME };

	if (bytes >= NAME_BYTES)
		bytes = NAME_BYTES - 1;
	if (!pid || pid >= PIDS_MAX || cpu >= RECORD_CPUS_MAX ||
	    (!strncmp(sink.names[pid], name, bytes) && !sink.names[pid][bytes]))
		return;
	memset(sink.names[pid], 0, NAME_BYTES);
	memcpy(sink.names[pid], name, bytes);
	memcpy(named.name, sink.names[pid], NAME_BYTES);
	if (sink.numbers) {
		memset(named.name, 0, NAME_BYTES);
		snprintf(named.name, NAME_BYTES, "t-%010llx",
			 (unsigned long long)siphash(sink.key, name, bytes) >> 24);
	}
	named.pid = number_of(pid);
	append(&named);
}

const char *sink_lost(uint64_t cpu, uint64_t nr)
{
	struct event e = { .kind = EVENT_LOST, .t_ns = sink.last_ns };

	if (cpu >= RECORD_CPUS_MAX) {
		e.kind = EVENT_MIGRATE;
		e.other = cpu < UINT32_MAX ? (uint32_t)cpu : UINT32_MAX;
		return check(&e);
	}
	see_cpu((uint32_t)cpu);
	if (!sink.cpus[cpu].has_events) {
		sink.cpus[cpu].nr_lost_before += nr ? nr : 1;
		return NULL;
	}
	e.cpu = (uint16_t)cpu;
	e.other = nr < UINT32_MAX ? (uint32_t)nr : UINT32_MAX;
	sink.counts[EVENT_LOST]++;
	append(&e);
	return NULL;
}

void sink_keep_header(const struct events_header *h)
{
	sink.header = *h;
	sink.header.recorder_pid = h->recorder_pid < PIDS_MAX ? number_of(h->recorder_pid) : 0;
	if (sink.numbers)
		sink.header.begin_wall_ns = 0;
	see_cpu(h->nr_cpus - 1);
}

/* CPUs of which something is known, but not what ran there. */
static void print_silent(void)
{
	const char *comma = "";

	printf(",\"silent_cpus\":[");
	for (uint32_t i = 0; i < sink.nr_cpus; i++) {
		const struct sink_cpu *cpu = &sink.cpus[i];

		if (cpu->nr_switches || !cpu->nr_chosen)
			continue;
		printf("%s[%u,%llu]", comma, i, (unsigned long long)cpu->nr_chosen);
		comma = ",";
	}
	printf("]");
}

static void print_counts(void)
{
	static const char *const names[NR_EVENT_KINDS] = {
		[EVENT_SWITCH] = "sched_switch",	[EVENT_WAKING] = "sched_waking",
		[EVENT_WAKEUP] = "sched_wakeup",	[EVENT_NEW] = "sched_wakeup_new",
		[EVENT_MIGRATE] = "sched_migrate_task", [EVENT_FORK] = "sched_process_fork",
		[EVENT_EXIT] = "sched_process_exit",	[EVENT_EXEC] = "sched_process_exec",
		[EVENT_YIELD] = "sched_yield",		[EVENT_RUNTIME] = "sched_stat_runtime",
	};
	const char *comma = "";

	printf(",\"events\":{");
	for (int kind = 0; kind < NR_EVENT_KINDS; kind++) {
		if (!names[kind])
			continue;
		printf("%s\"%s\":%llu", comma, names[kind], (unsigned long long)sink.counts[kind]);
		comma = ",";
	}
	printf("}");
}

void sink_close(bool is_whole, uint64_t end_ns)
{
	struct event end = {
		.kind = is_whole ? EVENT_END : EVENT_SYNC,
		.t_ns = end_ns ? end_ns : sink.last_ns,
	};
	struct events_header *h = &sink.header;

	for (uint32_t i = 0; i < sink.nr_cpus; i++) {
		struct sink_cpu *cpu = &sink.cpus[i];

		/* Of such a CPU nothing is left at all. */
		if (!cpu->has_events && cpu->nr_lost_before) {
			cpu->has_events = true;
			sink_lost(i, cpu->nr_lost_before);
		}
	}
	if (!h->begin_ns)
		h->begin_ns = sink.begin_ns > sink.first_ns ? sink.begin_ns : sink.first_ns;
	h->nr_cpus = sink.nr_cpus ? sink.nr_cpus : 1;
	append(&end);
	write_all(sink.events, sink.nr * sizeof(sink.events[0]));
	if (pwrite(sink.fd, h, sizeof(*h), 0) != sizeof(*h) || close(sink.fd))
		refuse("%s: cannot be written: %s", sink.path, strerror(errno));
	printf("\"cpus\":%u,\"begins_late_ns\":%llu,\"backward\":%llu", h->nr_cpus,
	       (unsigned long long)(sink.begin_ns > sink.first_ns ? sink.begin_ns - sink.first_ns :
								    0),
	       (unsigned long long)sink.nr_backward);
	print_counts();
	print_silent();
}
