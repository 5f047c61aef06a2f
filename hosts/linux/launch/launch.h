/* SPDX-License-Identifier: MIT */
/*
 * launch.h - runs commands under a scheduling class and measures their trees.
 *
 *	python/schedlab  --request-->  launcher --fork--> keeper --fork--> command
 *	                 <--answer---           one keeper per command   and its tree
 *
 * The launcher reads requests and outlives no reader: when its input ends, so
 * does all that it started. A keeper is the reaper of one command's tree, so
 * that no process of it is lost, neither for the figures nor when it is to end;
 * should the launcher be killed, the keeper hears of it and ends the tree; should
 * the keeper be, its tree falls to the launcher, which ends it.
 *
 * Both run in the real-time class above all that may be measured: a command that
 * never sleeps cannot keep them from ending it. A real-time command is refused
 * where they may not rise above it.
 *
 * Read next: main.c, then keeper.c.
 */
#ifndef LAUNCH_LAUNCH_H
#define LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCH_COMMANDS_MAX 64
/* As many as the C library's cpu_set_t, and as the simulator. */
#define LAUNCH_CPUS_MAX 1024
#define LAUNCH_REQUEST_BYTES_MAX (4 << 20)
/* Real-time priority of launcher and keepers; a command's is lower. */
#define LAUNCH_PRIORITY 99

/* What is to be run. Strings lie in the request. */
struct command {
	uint32_t policy;   /* SCHED_* of Linux */
	uint32_t priority; /* 1..98 under SCHED_FIFO and SCHED_RR, else 0 */
	int32_t nice;
	uint64_t runtime_ns; /* SCHED_DEADLINE */
	uint64_t deadline_ns;
	uint64_t period_ns;
	bool has_cpus;			     /* false: those of the launcher */
	uint64_t cpus[LAUNCH_CPUS_MAX / 64]; /* a bit per CPU */
	bool is_trial;			     /* only find out whether it forks */
	bool is_whole;			     /* when it ends, so does its tree */
	const char *folder;		     /* NULL: here */
	const char *input;		     /* file for its stdin; NULL: empty */
	const char *output;		     /* file for its stdout and stderr */
	const char *errors;		     /* file for its stderr; NULL: as `output` */
	char **argv;			     /* NULL-ended */
};

struct request {
	struct command commands[LAUNCH_COMMANDS_MAX];
	uint32_t nr_commands; /* the first is measured, the others are beside it */
	uint64_t timeout_ns;  /* 0: none */
};

/* What came before a command's own end; `error` is an errno. */
enum failure {
	FAILURE_NONE,
	FAILURE_START,	   /* fork, pipe */
	FAILURE_KEEPER,	   /* it was killed: the command was not counted */
	FAILURE_SURVIVOR,  /* some of the tree go on: they are another user's */
	FAILURE_SCHEDULER, /* the class was refused */
	FAILURE_WATCHDOG,  /* nothing of higher priority could end it */
	FAILURE_AFFINITY,
	FAILURE_FOLDER,
	FAILURE_OUTPUT,
	FAILURE_EXEC,
};

/* A keeper's words to the launcher, in this order; fixed size, one write each. */
struct ready {
	uint32_t failure; /* enum failure */
	int32_t error;
};

struct usage {
	uint64_t user_us;
	uint64_t system_us;
	uint64_t nr_voluntary; /* context switches */
	uint64_t nr_involuntary;
	uint64_t nr_major_faults;
	uint64_t nr_minor_faults;
	uint64_t nr_blocks_in;
	uint64_t nr_blocks_out;
	uint64_t resident_kib_max;
};

struct report {
	uint32_t failure; /* enum failure: at exec */
	int32_t error;
	int32_t exit_code; /* -1: ended by a signal */
	int32_t signal;
	bool has_timed_out;
	bool was_ended;	       /* as the launcher asked */
	bool forks;	       /* a trial's answer */
	uint64_t start_ns;     /* CLOCK_MONOTONIC: it was let go */
	uint64_t end_ns;       /* it ended */
	uint64_t tree_end_ns;  /* the last of its tree ended */
	uint64_t run_delay_ns; /* its first thread waited for a CPU */
	struct usage own;      /* and of children that it waited for */
	struct usage orphans;  /* that outlived their parents */
	uint32_t nr_orphans;
};

/* request.c: NULL, or what is wrong with it. Changes @text. */
const char *parse_request(char *text, size_t bytes, struct request *request);

/* command.c: in a new process; does not return. @go_fd: a byte lets it start. */
_Noreturn void become_command(const struct command *c, int go_fd, int status_fd);

/* keeper.c: in a new process; does not return. @fd: to the launcher. */
_Noreturn void keep(const struct command *c, uint64_t timeout_ns, int fd);

/* main.c */
uint64_t now_ns(void);
/* Priority of launcher and keepers in SCHED_FIFO; 0: they are in no such class. */
extern uint32_t own_priority;

#endif
