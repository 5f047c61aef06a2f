/* SPDX-License-Identifier: MIT */
/*
 * record.h - what the scheduler of this machine does, recorded and made records.
 *
 *	kernel ring of a CPU --ring.c--> struct event --capture.c--> FILE.slev
 *	FILE.slev --merge.c--> events in order of time --lives.c--> what happened
 *	          --output.c--> records.slr
 *
 * Capturing only copies: 24 bytes for an event of the kernel, whichever task it is
 * about. Which tasks are meant, and what happened to each, is found out when
 * the file is converted, with all CPUs in view. Nothing in the file depends on
 * its being finished: one that is cut off anywhere can be converted up to the
 * last SYNC.
 *
 * Read next: capture.c, then lives.c.
 */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_MAGIC "SLEVTS\0\1"
#define EVENTS_VERSION 1
/* Linux has no more: PID_MAX_LIMIT of a 64-bit kernel. */
#define PIDS_MAX (4 << 20)
#define RECORD_CPUS_MAX 4096
/* Real-time priority of the recorder, as of the launcher: no task starves it. */
#define RECORD_PRIORITY 99
#define NAME_BYTES 16

struct events_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes;
	uint32_t event_bytes;
	uint32_t nr_cpus;
	uint64_t tick_ns;
	uint64_t begin_ns;	/* CLOCK_MONOTONIC: from here on all is recorded */
	uint64_t begin_wall_ns; /* the same instant, since 1970 */
	uint32_t is_all;	/* every task is meant, MEMBER or not */
	uint32_t depth_min;	/* members are meant from this generation on */
	uint32_t recorder_pid;	/* is not meant, even if all are */
	uint32_t unused;
};

/*
 * kind     pid       other         value            flags
 * SWITCH   from      to            prev_state       priority of `to`
 * WAKING   task      waker         chosen CPU       EVENT_IN_INTERRUPT
 * WAKEUP   task      waker         chosen CPU       EVENT_IN_INTERRUPT
 * NEW      task      waker         chosen CPU       0
 * MIGRATE  task      from CPU      to CPU           0
 * FORK     child     parent        0                0
 * EXIT     task      0             0                0
 * EXEC     task      its old pid   0                0
 * YIELD    task      0             0                0
 * RUNTIME  task      ns it has run  0               EVENT_ELSEWHERE
 *                    since its last; none where a switch has told of it
 * NAME     task      (16 bytes of name instead of time, other and value); the
 *                    event that follows on the same CPU had it
 * MEMBER   task      its parent,   generation       1: runnable or running,
 *                    or process                     EVENT_IS_THREAD
 * LOST     0         how many      0                0
 * SYNC     0         0             0                0; all of every CPU up to
 *                    this time stands before it
 * END      0         0             0                0; the recording ended well
 * CALL     task      descriptor,   0                SL_CALL_*
 *                    or address
 * RETURN   task      0             what it returned SL_CALL_*
 * THREAD   task      0             0                0; before the FORK of a thread
 * SLICE    0         its ns        0                0; of the fair class, where it is told
 * COST     0         its ns        0                enum cost
 * CALLS    task      how many      0                0; system calls of any kind, since it
 *                    it has made                    has the CPU: stands before its SWITCH
 */
enum event_kind {
	EVENT_SWITCH = 1,
	EVENT_WAKING,
	EVENT_WAKEUP,
	EVENT_NEW,
	EVENT_MIGRATE,
	EVENT_FORK,
	EVENT_EXIT,
	EVENT_EXEC,
	EVENT_YIELD,
	EVENT_RUNTIME,
	EVENT_NAME,
	EVENT_MEMBER,
	EVENT_LOST,
	EVENT_SYNC,
	EVENT_END,
	EVENT_CALL,
	EVENT_RETURN,
	EVENT_THREAD,
	EVENT_SLICE,
	EVENT_COST,
	EVENT_CALLS,
	NR_EVENT_KINDS,
};

/* What is CPU time of the recorded tasks: of recording, and of the machine without it. */
enum cost {
	COST_CALL,	 /* recording a system call adds to it */
	COST_OTHER_CALL, /* ... to one that is not recorded while others are */
	COST_SWITCH,
	COST_WAKEUP, /* ... to a block and the wake-up after it */
	COST_MACHINE_SWITCH,
	COST_MACHINE_LEAVE, /* a block and the wake-up after it, beyond their switch */
	NR_COSTS,
};

#define EVENT_IN_INTERRUPT 1
/* ... and in a soft one, which may be the task's own: loopback has no other. */
#define EVENT_IN_SOFTIRQ 4
#define EVENT_IS_THREAD 2
/* It runs on another CPU than the one that tells of it. */
#define EVENT_ELSEWHERE 2

/* prev_state of Linux 4.14 and later, as far as it matters. */
#define STATE_DEAD 0x30		/* EXIT_DEAD, EXIT_ZOMBIE */
#define STATE_BLOCKED 0xff	/* any bit: not runnable */

struct event {
	uint32_t pid;
	uint16_t cpu;
	uint8_t kind; /* enum event_kind */
	uint8_t flags;
	union {
		struct {
			uint64_t t_ns; /* CLOCK_MONOTONIC */
			uint32_t other;
			int32_t value;
		};
		char name[NAME_BYTES];
	};
};

_Static_assert(sizeof(struct event) == 24, "the format of events is fixed");
_Static_assert(sizeof(struct events_header) == 64, "so is its header");

/* ---- tracepoint.c: what the kernel offers ---------------------------------- */

/* Of each tracepoint, the fields that are read, in the order of its table. */
#define FIELDS_MAX 6

struct tracepoint {
	const char *name;
	uint8_t kind; /* of the event made from it */
	const char *fields[FIELDS_MAX + 1];
	/* found out: */
	int id; /* -1: not there */
	uint16_t offset[FIELDS_MAX];
	uint16_t size[FIELDS_MAX];
};

#define NR_TRACEPOINTS 13

extern struct tracepoint tracepoints[NR_TRACEPOINTS];

/*
 * Fill in what the kernel says. Return: NULL, or what is missing and the
 * remedy. Where tracefs is not mounted, it is, for this process alone.
 */
const char *tracepoints_find(bool with_yields, bool with_calls);

/* Whether one of them may be recorded on all CPUs; NULL or why not. */
const char *tracepoints_try(void);

/*
 * perf_event_open(2) of a tracepoint on a CPU, not enabled. Samples of one that leads
 * a group have the counts of all in it. Return: -errno.
 */
int tracepoint_open(int id, int cpu, uint32_t watermark_bytes, bool is_leader);
/* One that only counts, while its leader is enabled. Return: -1 with errno. */
int tracepoint_count(int id, int cpu, int leader);

/* ---- calls.c: system calls by which tasks wait for each other --------------- */

/* The filter of the calls that are recorded, for the kernel. */
const char *calls_filter(void);
/* What system call @id is; 0: none that is recorded. @args: NULL at its return. */
uint8_t call_of(uint64_t id, const uint64_t *args);
/* What @call is about: a descriptor, or an address made shorter. */
uint32_t call_object(uint8_t call, const uint64_t *args);

/* ---- costs.c: what recording costs ------------------------------------------ */

/* @set_events turns the recording of events on and off. What is not known is 0. */
void costs_measure(void (*set_events)(bool on), bool with_calls, uint32_t costs[NR_COSTS]);

/* ---- ring.c: one CPU's ring ------------------------------------------------ */

struct ring {
	int cpu;
	int fds[NR_TRACEPOINTS]; /* the first one's owns the memory; -1 */
	int calls_fd;	     /* counts system calls, of which the first one's samples tell; -1 */
	bool counts_losses;  /* so do its samples; since Linux 6.0 */
	uint64_t nr_calls;   /* as the last of these samples said */
	void *memory;	     /* a page for the kernel, then the data */
	uint64_t data_bytes; /* power of two */
	uint64_t nr_lost;    /* as LOST records said */
	uint32_t current;    /* pid, as the last switch said */
	bool is_current_known;
};

/* Return: NULL or what failed; @r is then closed. */
const char *ring_open(struct ring *r, int cpu, uint64_t data_bytes);
void ring_enable(struct ring *r, bool on);
/* From now on a task that gets this name becomes a MEMBER; NULL: none does. */
void ring_want_name(const char *name);
void ring_close(struct ring *r);
/* Hand all that is there to event_put(). */
void ring_drain(struct ring *r);
/* Events that the kernel has dropped since the ring was opened. */
uint64_t ring_count_lost(const struct ring *r);
/* NAME_BYTES that a task was last seen with; all 0: none. */
char *ring_name(uint32_t pid);

/* ---- capture.c ------------------------------------------------------------- */

/* Which tasks are recorded, and with each what it forks. */
struct selection {
	enum { EVERY_TASK, TREE_OF, NAMED, IN_GROUP } by;
	uint32_t root;	       /* TREE_OF: a process */
	char name[NAME_BYTES]; /* NAMED: of a process or thread */
	const char *group;     /* IN_GROUP: folder of a cgroup */
};

void event_put(const struct event *e);

struct capture_options {
	bool with_yields;
	bool with_calls;
	uint64_t buffer_bytes; /* of each CPU; 0: the default */
};

struct captured {
	uint64_t end_ns;
	uint64_t nr_events;
	uint64_t nr_lost;
	uint64_t cpu_ns;   /* of this process meanwhile */
	int error;	   /* errno of the write that failed; 0 */
	uint64_t error_ns; /* when that was */
};

/* Return: how many words of @argv are an option of a capture; 0: the first is none. */
int capture_option(struct capture_options *o, int argc, char **argv);
/* Opens the rings, or ends the program. */
void capture_open(const struct capture_options *o);
/* Return: 0, or errno of the file. */
int capture_begin(const char *path, const struct selection *selection, uint32_t depth,
		  uint64_t *begin_ns);
/* Empties rings until @fd can be read, or for @ms at most. Return: whether it can be. */
bool capture_wait(int fd, int ms);
/* Whether a signal has asked for the end. */
bool capture_was_ended(void);
struct captured capture_stop(void);
int capture_main(int argc, char **argv);

/* ---- alone.c: without schedlab --------------------------------------------------- */

int record_main(int argc, char **argv);

/* ---- members.c: tasks that exist already ------------------------------------------ */

/* Puts a MEMBER for every thread that exists and is selected. */
void members_put(const struct selection *selection);
/* ... for those that came into the group since; a few times a second at most. */
void members_follow(void);
/* A process of that number is new. */
void members_forget(uint32_t pid);
/* Whether another task than this one may run now. */
bool members_runs(uint32_t pid);

/* ---- sums.c: what the tasks do now ------------------------------------------------ */

void sums_open(uint32_t nr_cpus);
/* Take an event; after a SYNC all up to it is summed up. */
void sums_take(const struct event *e);
/* Print what was since the last call; tasks that are not @is_runnable have stopped. */
void sums_print(bool (*is_runnable)(uint32_t pid));
int sums_main(int argc, char **argv);

/* ---- merge.c: a file of events, in order of time ----------------------------- */

struct events {
	const struct events_header *header;
	const struct event *first;
	uint64_t nr;
	uint64_t end_ns; /* everything up to here is known */
	bool is_whole;	 /* it has its END */
};

/* Return: NULL, or what is wrong with the file. */
const char *events_open(struct events *events, const char *path);
/*
 * Calls @handle for each event up to @end_ns, in order of time; for a NAME with
 * the event it belongs to. Return: NULL, or what went wrong.
 */
const char *events_walk(const struct events *events, uint64_t end_ns,
			void (*handle)(const struct event *e));

/* ---- lives.c: from events to records ------------------------------------------ */

int convert_main(int argc, char **argv);

/* ---- clocks.c: whether the clocks of CPUs agree ---------------------------------- */

/* A waking on one CPU and its sleeper's block or run on another stand in the wrong order, @ns apart. */
void clocks_contradict(uint64_t ns);
/* Return: by how much clocks differ at least, 0 where nothing speaks for it. */
uint64_t clocks_differ_ns(uint64_t nr_wakeups);

/* ---- output.c: the file of records ------------------------------------------------ */

void output_open(const char *path, uint32_t nr_cpus, uint64_t tick_ns);
/* Append a record, or put one of the recent past where it belongs. */
void output_put(uint64_t t_ns, uint32_t task, uint16_t cpu, uint8_t kind, uint8_t flags,
		uint64_t arg);
/* The CPU that was chosen is known a little after the wake-up. */
void output_set_wake_cpu(uint32_t task, uint16_t cpu);
/* The last stop of a task was a block. Return: whether it could still be changed. */
bool output_set_blocked(uint32_t task);
/* Return: how many records there are, without the one that ends the file. */
uint64_t output_close(uint64_t end_ns);

/* ---- memory.c ------------------------------------------------------------------- */

/* Zeroed memory, or the end of the program; pages that are not touched cost nothing. */
void *reserve(size_t bytes);
/* Return: 0, or errno of what kept it from being written whole. */
int write_whole(int fd, const void *data, size_t bytes);

/* ---- say.c ---------------------------------------------------------------------- */

uint64_t now_ns(void);
/* Print the string as JSON has it, with quotes; bytes that are no UTF-8 as '?'. */
void print_json(const char *text, size_t bytes);
/* Ends the program; the reason goes to stdout as {"wrong": ...}, or to stderr. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on a reason is text on stderr. */
void refuse_in_text(void);

#endif
