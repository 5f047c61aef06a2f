/* SPDX-License-Identifier: MIT */
/*
 * capture.c - copies what the kernel's rings hold into a file, while told to.
 *
 *	schedlab-record capture [--buffer KIB] [--yields] [--calls] < orders > answers
 *
 * Orders, a line each; the answer to each is a line of JSON:
 *
 *	all FILE                 record every task
 *	tree PID DEPTH FILE      process PID and what it forks, from that generation on
 *	comm NAME<tab>FILE       tasks that have that name or get it, and what they fork
 *	cgroup FOLDER<tab>FILE   processes of a cgroup, and what they fork
 *	stop                     end the file
 *
 * The end of the input stops, too, and ends the program. Tracepoints are opened
 * once, which takes the kernel milliseconds, and turned on for each file.
 *
 * Must stay true: what the kernel has lost, or the disk has refused, is counted
 * and said; the file is right up to its last SYNC whatever happens to us.
 * Read next: ring.c, which takes events off a ring.
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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record.h"

#define EVENTS_BUFFERED 8192
/* What a recorder that is killed loses at most. */
#define ROUND_MS 200
#define BUFFER_KIB_DEFAULT 8192
#define ORDER_BYTES_MAX 8192
/* By which the cost of recording a system call is measured. */
#define PROBE_CALLS 256
#define PROBE_BATCHES 6

struct capture {
	struct ring rings[RECORD_CPUS_MAX];
	int nr_rings;
	int nr_cpus;
	int fd;			/* of the file; -1: not recording */
	int error;		/* errno of the write that failed; 0 */
	uint64_t error_ns;	/* when that was */
	uint64_t nr_events;
	uint64_t nr_lost;
	uint64_t cpu_ns;	/* CPU time used up to the start of the file */
	bool is_realtime;
	int nr_buffered;
	struct event buffer[EVENTS_BUFFERED];
};

static struct capture capture = { .fd = -1 };
static volatile sig_atomic_t was_ended;

static void end_soon(int number)
{
	(void)number;
	was_ended = 1;
}

static void write_events(const void *data, size_t bytes)
{
	int error = write_whole(capture.fd, data, bytes);

	if (!error)
		return;
	capture.error = error;
	capture.error_ns = now_ns();
}

static void flush_events(void)
{
	size_t bytes = (size_t)capture.nr_buffered * sizeof(struct event);

	/* After a failure rings are still emptied, so that no task is held up. */
	if (!capture.error)
		write_events(capture.buffer, bytes);
	capture.nr_buffered = 0;
}

void event_put(const struct event *e)
{
	if (capture.nr_buffered == EVENTS_BUFFERED)
		flush_events();
	capture.buffer[capture.nr_buffered++] = *e;
	if (e->kind == EVENT_LOST)
		capture.nr_lost += e->other;
	else
		capture.nr_events++;
}

static void drain_all(void)
{
	struct event sync = { .kind = EVENT_SYNC, .t_ns = now_ns() };

	members_follow();
	for (int i = 0; i < capture.nr_rings; i++)
		ring_drain(&capture.rings[i]);
	event_put(&sync);
	flush_events();
}

/* ---- starting and ending a file --------------------------------------------- */

/* What runs on a CPU now is seen as it makes way for this process. */
static void visit_cpus(void)
{
	cpu_set_t before, one;

	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	for (int i = 0; i < capture.nr_rings; i++) {
		if (capture.rings[i].cpu >= CPU_SETSIZE)
			break;
		CPU_ZERO(&one);
		CPU_SET(capture.rings[i].cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(before), &before);
}

static uint64_t time_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t tick_ns(void)
{
	struct timespec t = { 0 };

	/* The coarse clock goes with the tick. */
	clock_getres(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_nsec;
}

static void begin(const char *path, const struct selection *selection,
		  uint32_t depth)
{
	struct events_header header = {
		.magic = EVENTS_MAGIC,
		.version = EVENTS_VERSION,
		.header_bytes = sizeof(struct events_header),
		.event_bytes = sizeof(struct event),
		.nr_cpus = (uint32_t)capture.nr_cpus,
		.tick_ns = tick_ns(),
		.is_all = selection->by == EVERY_TASK,
		.depth_min = depth,
		.recorder_pid = (uint32_t)getpid(),
	};

	capture.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (capture.fd < 0) {
		printf("{\"error\":");
		print_json(strerror(errno), strlen(strerror(errno)));
		puts("}");
		return;
	}
	capture.error = 0;
	capture.nr_events = capture.nr_lost = 0;
	capture.nr_buffered = 0;
	capture.cpu_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
	ring_want_name(selection->by == NAMED ? selection->name : NULL);
	for (int i = 0; i < capture.nr_rings; i++)
		ring_enable(&capture.rings[i], true);
	visit_cpus();
	header.begin_ns = now_ns();
	header.begin_wall_ns = time_of(CLOCK_REALTIME);
	write_events(&header, sizeof(header));
	members_put(selection);
	/* Only now is it known which tasks were there. */
	header.begin_ns = now_ns();
	header.begin_wall_ns = time_of(CLOCK_REALTIME);
	if (pwrite(capture.fd, &header, sizeof(header), 0) < 0)
		capture.error = errno;
	drain_all();
	printf("{\"begin_ns\":%llu,\"tick_ns\":%llu,\"is_realtime\":%s}\n",
	       (unsigned long long)header.begin_ns,
	       (unsigned long long)header.tick_ns,
	       capture.is_realtime ? "true" : "false");
}

/* Losses after which nothing more came are known to the counters only. */
static void put_last_losses(uint64_t t_ns)
{
	for (int i = 0; i < capture.nr_rings; i++) {
		struct ring *r = &capture.rings[i];
		uint64_t nr = ring_count_lost(r);
		struct event e = { .cpu = (uint16_t)r->cpu, .kind = EVENT_LOST,
				   .t_ns = t_ns };

		if (nr <= r->nr_lost)
			continue;
		e.other = (uint32_t)(nr - r->nr_lost);
		r->nr_lost = nr;
		event_put(&e);
	}
}

static void stop(void)
{
	struct event end = { .kind = EVENT_END };
	uint64_t cpu_ns;

	for (int i = 0; i < capture.nr_rings; i++)
		ring_enable(&capture.rings[i], false);
	end.t_ns = now_ns();
	for (int i = 0; i < capture.nr_rings; i++)
		ring_drain(&capture.rings[i]);
	put_last_losses(end.t_ns);
	event_put(&end);
	flush_events();
	if (close(capture.fd) && !capture.error)
		capture.error = errno;
	capture.fd = -1;
	cpu_ns = time_of(CLOCK_PROCESS_CPUTIME_ID) - capture.cpu_ns;
	printf("{\"end_ns\":%llu,\"events\":%llu,\"lost\":%llu,\"cpu_ns\":%llu,",
	       (unsigned long long)end.t_ns,
	       (unsigned long long)capture.nr_events,
	       (unsigned long long)capture.nr_lost, (unsigned long long)cpu_ns);
	printf("\"write_error\":");
	if (capture.error)
		print_json(strerror(capture.error),
			   strlen(strerror(capture.error)));
	else
		printf("null");
	printf(",\"write_error_ns\":%llu}\n",
	       (unsigned long long)(capture.error ? capture.error_ns : 0));
}

/* ---- orders -------------------------------------------------------------------- */

/* The file of `WORD WHAT<tab>FILE`; cuts off WHAT. NULL: there is none. */
static char *cut_file(char *order)
{
	char *tab = strchr(order, '\t');

	if (tab)
		*tab++ = '\0';
	return tab;
}

static void obey(char *order)
{
	struct selection selection = { .by = EVERY_TASK };
	uint32_t depth = 0;
	char *file = NULL;
	int at = 0;

	if (capture.fd >= 0) {
		if (strcmp(order, "stop"))
			puts("{\"error\":\"a recording is under way; stop it\"}");
		else
			stop();
		fflush(stdout);
		return;
	}
	if (!strncmp(order, "all ", 4)) {
		file = order + 4;
	} else if (sscanf(order, "tree %u %u %n", &selection.root, &depth, &at) == 2) {
		selection.by = TREE_OF;
		file = at ? order + at : NULL;
	} else if (!strncmp(order, "comm ", 5) && (file = cut_file(order))) {
		selection.by = NAMED;
		snprintf(selection.name, NAME_BYTES, "%.15s", order + 5);
	} else if (!strncmp(order, "cgroup ", 7) && (file = cut_file(order))) {
		selection.by = IN_GROUP;
		selection.group = order + 7;
	}
	if (file)
		begin(file, &selection, depth);
	else
		puts("{\"error\":\"an order is: all, tree, comm, cgroup or stop\"}");
	fflush(stdout);
}

/* Obey the lines that have come. Return: false at the end of the input. */
static bool read_orders(void)
{
	static char text[ORDER_BYTES_MAX];
	static size_t used;
	ssize_t n = read(STDIN_FILENO, text + used, sizeof(text) - 1 - used);
	char *end;

	if (n < 0)
		return errno == EINTR;
	if (n == 0 || used + (size_t)n == sizeof(text) - 1)
		return false;
	used += (size_t)n;
	text[used] = '\0';
	while ((end = strchr(text, '\n'))) {
		*end = '\0';
		obey(text);
		used -= (size_t)(end + 1 - text);
		memmove(text, end + 1, used + 1);
	}
	return true;
}

static void serve(void)
{
	static struct pollfd fds[RECORD_CPUS_MAX + 1];
	uint64_t last_ns = 0;

	fds[0] = (struct pollfd){ STDIN_FILENO, POLLIN, 0 };
	for (int i = 0; i < capture.nr_rings; i++)
		fds[i + 1] = (struct pollfd){ capture.rings[i].fds[0], POLLIN, 0 };
	while (!was_ended) {
		bool is_on = capture.fd >= 0;
		int n = poll(fds, is_on ? (nfds_t)capture.nr_rings + 1 : 1,
			     is_on ? ROUND_MS : -1);

		if (n < 0 && errno != EINTR)
			break;
		if (is_on && (n == 0 || !fds[0].revents ||
			      now_ns() - last_ns > ROUND_MS * 1000000ULL)) {
			last_ns = now_ns();
			drain_all();
		}
		if (n > 0 && fds[0].revents && !read_orders())
			break;
	}
	if (capture.fd >= 0)
		stop();
}

/* ---- the start ------------------------------------------------------------------ */

static void open_rings(uint64_t buffer_bytes)
{
	const char *failed = NULL;

	capture.nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	if (capture.nr_cpus > RECORD_CPUS_MAX)
		refuse("this machine has %d CPUs; at most %d are recorded",
		       capture.nr_cpus, RECORD_CPUS_MAX);
	for (int cpu = 0; cpu < capture.nr_cpus; cpu++) {
		struct ring *r = &capture.rings[capture.nr_rings];
		const char *wrong = ring_open(r, cpu, buffer_bytes);

		/* A CPU that is switched off runs nothing. */
		if (wrong)
			failed = wrong;
		else
			capture.nr_rings++;
	}
	if (!capture.nr_rings)
		refuse("%s", failed ? failed : "no CPU can be recorded");
}

static uint64_t batch_ns(void)
{
	uint64_t from_ns = now_ns();

	for (int i = 0; i < PROBE_CALLS; i++)
		syscall(SYS_read, -1, NULL, 0);
	return now_ns() - from_ns;
}

/*
 * What recording one system call adds to it: the fastest of some batches with
 * the events on, less the fastest without. What was seen meanwhile is dropped,
 * since there is no file yet.
 */
static uint64_t measure_call(void)
{
	uint64_t fastest[2] = { UINT64_MAX, UINT64_MAX };

	for (int i = 0; i < 2 * PROBE_BATCHES; i++) {
		bool is_on = i & 1;
		uint64_t ns;

		for (int r = 0; r < capture.nr_rings; r++)
			ring_enable(&capture.rings[r], is_on);
		ns = batch_ns();
		if (ns < fastest[is_on])
			fastest[is_on] = ns;
	}
	for (int r = 0; r < capture.nr_rings; r++) {
		ring_enable(&capture.rings[r], false);
		ring_drain(&capture.rings[r]);
	}
	return fastest[1] > fastest[0] ?
		       (fastest[1] - fastest[0]) / PROBE_CALLS : 0;
}

/* Several descriptors per CPU; the soft limit is often 1024. */
static void raise_limits(void)
{
	struct rlimit files;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

static uint64_t buffer_bytes(const char *kib)
{
	uint64_t wanted = strtoull(kib, NULL, 10) << 10;
	uint64_t bytes = 16384;

	if (wanted < bytes || wanted > 1ULL << 30)
		refuse("--buffer %s: from 16 to 1048576 KiB per CPU", kib);
	while (bytes < wanted)
		bytes <<= 1;
	return bytes;
}

int capture_main(int argc, char **argv)
{
	struct sigaction end = { .sa_handler = end_soon };
	struct sched_param highest = { .sched_priority = RECORD_PRIORITY };
	uint64_t bytes = (uint64_t)BUFFER_KIB_DEFAULT << 10;
	bool with_yields = false, with_calls = false;
	const char *failed;

	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--yields"))
			with_yields = true;
		else if (!strcmp(argv[i], "--calls"))
			with_yields = with_calls = true;
		else if (!strcmp(argv[i], "--buffer") && i + 1 < argc)
			bytes = buffer_bytes(argv[++i]);
		else
			refuse("capture: unknown word '%s'", argv[i]);
	}
	sigaction(SIGTERM, &end, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* A disk limit is an error to be told, not an end. */
	signal(SIGXFSZ, SIG_IGN);
	prctl(PR_SET_NAME, "schedlab-record");
	raise_limits();
	failed = tracepoints_find(with_yields, with_calls);
	if (!failed)
		failed = tracepoints_try();
	if (failed)
		refuse("%s", failed);
	open_rings(bytes);
	capture.is_realtime = !sched_setscheduler(0, SCHED_FIFO, &highest);
	printf("{\"cpus\":%d,\"is_realtime\":%s,\"call_ns\":%llu}\n",
	       capture.nr_rings, capture.is_realtime ? "true" : "false",
	       with_calls ? (unsigned long long)measure_call() : 0);
	fflush(stdout);
	serve();
	return 0;
}
