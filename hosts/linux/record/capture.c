/* SPDX-License-Identifier: MIT */
/*
 * capture.c - copies what the kernel's rings hold into a file, while told to.
 *
 *	schedlab-record capture [--buffer KIB] [--yields] [--calls] [--sums] < orders > answers
 *
 * Orders, a line each; the answer to each is a line of JSON:
 *
 *	all FILE                 record every task
 *	tree PID DEPTH FILE      process PID and what it forks, from that generation on
 *	comm NAME<tab>FILE       tasks that have that name or get it, and what they fork
 *	cgroup FOLDER<tab>FILE   processes of a cgroup, and what they fork
 *	stop                     end the file
 *	sums                     what was since the last time (sums.c), with --sums
 *	names                    put the name of each task that was seen once more
 *
 * The end of the input stops, too, and ends the program. Tracepoints are opened
 * once, which takes the kernel milliseconds, and turned on for each file.
 *
 * Must stay true: what the kernel has lost, or the disk has refused, is counted
 * and said; the file is right up to its last SYNC whatever happens to the program.
 * Read next: ring.c, which takes events off a ring; costs.c.
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

struct capture {
	struct ring rings[RECORD_CPUS_MAX];
	int nr_rings;
	int nr_cpus;
	int fd;		   /* of the file; -1: not recording */
	int error;	   /* errno of the write that failed; 0 */
	uint64_t error_ns; /* when that was */
	uint64_t nr_events;
	uint64_t nr_lost;
	uint64_t cpu_ns; /* CPU time used up to the start of the file */
	uint64_t drained_ns;
	uint32_t costs[NR_COSTS];
	bool is_realtime;
	bool is_summed;
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

bool capture_was_ended(void)
{
	return was_ended;
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
	if (capture.is_summed)
		sums_take(e);
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

/* The slice of the fair class (/proc/PID/sched, since Linux 6.12): of a process that is recorded, or the machine's. */
static void put_slice(const struct selection *selection)
{
	struct event e = { .kind = EVENT_SLICE, .t_ns = now_ns() };
	char path[32] = "/proc/self/sched", line[128];
	FILE *file;

	if (selection->by == TREE_OF)
		snprintf(path, sizeof(path), "/proc/%u/sched", selection->root);
	file = fopen(path, "re");
	while (file && !e.other && fgets(line, sizeof(line), file))
		sscanf(line, "se.slice : %u", &e.other);
	if (file)
		fclose(file);
	if (e.other)
		event_put(&e);
}

static void put_costs(void)
{
	for (int i = 0; i < NR_COSTS; i++) {
		struct event e = { .kind = EVENT_COST,
				   .flags = (uint8_t)i,
				   .other = capture.costs[i],
				   .t_ns = now_ns() };

		event_put(&e);
	}
}

int capture_begin(const char *path, const struct selection *selection, uint32_t depth,
		  uint64_t *begin_ns)
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
	if (capture.fd < 0)
		return errno;
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
	put_slice(selection);
	put_costs();
	members_put(selection);
	/* Only now is it known which tasks were there. */
	header.begin_ns = now_ns();
	header.begin_wall_ns = time_of(CLOCK_REALTIME);
	if (pwrite(capture.fd, &header, sizeof(header), 0) < 0)
		capture.error = errno;
	drain_all();
	*begin_ns = header.begin_ns;
	return 0;
}

/* Losses after which nothing more came are known to the counters only. */
static void put_last_losses(uint64_t t_ns)
{
	for (int i = 0; i < capture.nr_rings; i++) {
		struct ring *r = &capture.rings[i];
		uint64_t nr = ring_count_lost(r);
		struct event e = { .cpu = (uint16_t)r->cpu, .kind = EVENT_LOST, .t_ns = t_ns };

		if (nr <= r->nr_lost)
			continue;
		e.other = (uint32_t)(nr - r->nr_lost);
		r->nr_lost = nr;
		event_put(&e);
	}
}

struct captured capture_stop(void)
{
	struct event end = { .kind = EVENT_END };

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
	return (struct captured){
		.end_ns = end.t_ns,
		.nr_events = capture.nr_events,
		.nr_lost = capture.nr_lost,
		.cpu_ns = time_of(CLOCK_PROCESS_CPUTIME_ID) - capture.cpu_ns,
		.error = capture.error,
		.error_ns = capture.error ? capture.error_ns : 0,
	};
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

static void begin(const char *file, const struct selection *selection, uint32_t depth)
{
	uint64_t begin_ns;
	int error = capture_begin(file, selection, depth, &begin_ns);

	if (error) {
		printf("{\"error\":");
		print_json(strerror(error), strlen(strerror(error)));
		puts("}");
	} else {
		printf("{\"begin_ns\":%llu}\n", (unsigned long long)begin_ns);
	}
}

static void stop(void)
{
	struct captured c = capture_stop();

	printf("{\"end_ns\":%llu,\"events\":%llu,\"lost\":%llu,\"cpu_ns\":%llu,",
	       (unsigned long long)c.end_ns, (unsigned long long)c.nr_events,
	       (unsigned long long)c.nr_lost, (unsigned long long)c.cpu_ns);
	printf("\"write_error\":");
	if (c.error)
		print_json(strerror(c.error), strlen(strerror(c.error)));
	else
		printf("null");
	printf(",\"write_error_ns\":%llu}\n", (unsigned long long)c.error_ns);
}

static void put_names(void)
{
	uint64_t nr = 0;

	for (uint32_t pid = 1; pid < PIDS_MAX; pid++) {
		struct event e = { .pid = pid, .kind = EVENT_NAME };

		memcpy(e.name, ring_name(pid), NAME_BYTES);
		if (!e.name[0])
			continue;
		event_put(&e);
		nr++;
	}
	flush_events();
	printf("{\"names\":%llu}\n", (unsigned long long)nr);
}

/* While a file is written. */
static void obey_now(const char *order)
{
	if (!strcmp(order, "stop")) {
		stop();
	} else if (!strcmp(order, "names")) {
		put_names();
	} else if (!strcmp(order, "sums") && capture.is_summed) {
		drain_all();
		sums_print(members_runs);
	} else {
		puts("{\"error\":\"a recording is under way; stop it\"}");
	}
}

static void obey(char *order)
{
	struct selection selection = { .by = EVERY_TASK };
	uint32_t depth = 0;
	char *file = NULL;
	int at = 0;

	if (capture.fd >= 0) {
		obey_now(order);
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

bool capture_wait(int fd, int ms)
{
	static struct pollfd fds[RECORD_CPUS_MAX + 1];
	bool is_on = capture.fd >= 0;
	int n;

	fds[0] = (struct pollfd){ fd, POLLIN, 0 };
	for (int i = 0; is_on && i < capture.nr_rings; i++)
		fds[i + 1] = (struct pollfd){ capture.rings[i].fds[0], POLLIN, 0 };
	if (is_on && (ms < 0 || ms > ROUND_MS))
		ms = ROUND_MS;
	n = poll(fds, is_on ? (nfds_t)capture.nr_rings + 1 : 1, ms);
	if (n < 0 && errno != EINTR)
		was_ended = 1;
	if (is_on &&
	    (n == 0 || !fds[0].revents || now_ns() - capture.drained_ns > ROUND_MS * 1000000ULL)) {
		capture.drained_ns = now_ns();
		drain_all();
	}
	return n > 0 && fds[0].revents;
}

static void serve(void)
{
	while (!was_ended) {
		if (capture_wait(STDIN_FILENO, -1) && !read_orders())
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
		refuse("this machine has %d CPUs; at most %d are recorded", capture.nr_cpus,
		       RECORD_CPUS_MAX);
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

static void set_events(bool on)
{
	for (int i = 0; i < capture.nr_rings; i++) {
		ring_enable(&capture.rings[i], on);
		/* There is no file yet: what was seen is dropped. */
		if (!on)
			ring_drain(&capture.rings[i]);
	}
}

/* Of what was seen before there is a file, the kernel's next event on each CPU would tell of the losses. */
static void forget_events(void)
{
	set_events(false);
	set_events(true);
	visit_cpus();
	set_events(false);
	for (int i = 0; i < capture.nr_rings; i++)
		capture.rings[i].nr_lost = ring_count_lost(&capture.rings[i]);
	capture.nr_buffered = 0;
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

int capture_option(struct capture_options *o, int argc, char **argv)
{
	if (!strcmp(argv[0], "--yields"))
		o->with_yields = true;
	else if (!strcmp(argv[0], "--calls") || !strcmp(argv[0], "--causes"))
		o->with_yields = o->with_calls = true;
	else if (!strcmp(argv[0], "--buffer") && argc > 1)
		o->buffer_bytes = buffer_bytes(argv[1]);
	else
		return 0;
	return 1 + !strcmp(argv[0], "--buffer");
}

void capture_open(const struct capture_options *o)
{
	struct sigaction end = { .sa_handler = end_soon }, before;
	struct sched_param highest = { .sched_priority = RECORD_PRIORITY };
	uint64_t bytes = o->buffer_bytes ? o->buffer_bytes : (uint64_t)BUFFER_KIB_DEFAULT << 10;
	const char *failed;

	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, NULL, &before);
	if (before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A disk limit is an error to be told, not an end. */
	signal(SIGXFSZ, SIG_IGN);
	prctl(PR_SET_NAME, "schedlab-record");
	raise_limits();
	failed = tracepoints_find(o->with_yields, o->with_calls);
	if (!failed)
		failed = tracepoints_try();
	if (failed)
		refuse("%s", failed);
	open_rings(bytes);
	capture.is_realtime = !sched_setscheduler(0, SCHED_FIFO, &highest);
	costs_measure(set_events, o->with_calls, capture.costs);
	forget_events();
}

int capture_main(int argc, char **argv)
{
	struct capture_options options = { 0 };
	bool is_summed = false;

	for (int i = 0, n; i < argc; i += n) {
		n = capture_option(&options, argc - i, argv + i);
		if (!n && !strcmp(argv[i], "--sums"))
			n = is_summed = true;
		if (!n)
			refuse("capture: unknown word '%s'", argv[i]);
	}
	/* Ctrl-C is for the program that gives the orders. */
	signal(SIGINT, SIG_IGN);
	capture_open(&options);
	if (is_summed)
		sums_open((uint32_t)capture.nr_cpus);
	capture.is_summed = is_summed;
	printf("{\"cpus\":%d,\"is_realtime\":%s}\n", capture.nr_rings,
	       capture.is_realtime ? "true" : "false");
	fflush(stdout);
	serve();
	return 0;
}
