/* SPDX-License-Identifier: MIT */
/*
 * guest.h - the one program of the guest: init, policy loader and task runner.
 *
 * The guest is a distribution kernel in QEMU with this program as its whole
 * user space. It reads a job, does what each line says, and answers in frames.
 *
 *	init.c    mounts, does the job             -> ../load/policy.c, play.c
 *	input.c   where the job comes from
 *	play.c    real processes play a workload program under the policy
 *	loader.c  a scheduler's own program, which loads it
 *	verbs.c   what each verb is on Linux, with ../tasks
 *	handover.c  locks and pipes
 *	above.c   what takes CPUs, beside the program
 *	device.c  what `read` and `write` wait for
 *	groups.c  its cgroups
 *	trace.c   records what the scheduler did, through tracefs
 *	machine_root.c  a command on the files of the machine outside
 *
 * Read next: init.c.
 */
#ifndef GUEST_H
#define GUEST_H

#include "../load/load.h"
#include "../tasks/tasks.h"

/* ---- input.c: the job --------------------------------------------------- */

void input_init(void);
/* Have the machine stopped; returns when it goes on, from a saved state too. */
void input_stop_machine(void);
/* Make the files that came with the job; a frame says so if it cannot be. */
void input_read(void);
/* Those that @path is in: up to its last slash. */
void make_folders(char *path);

/* ---- machine_root.c: a command on the files of the machine outside ------- */

/* Runs it to its end, or says in a frame why not; both paths are of files of the job. */
void machine_root_exec(const char *argv_path, const char *env_path);

/* Return: the words of a file of the job, behind the last one NULL; NULL: there is none. */
char **read_words(const char *path);

/* ---- loader.c: a scheduler's own program --------------------------------- */

/* What a machine has mounted, below @root. Return: 0, or -errno after a frame. */
int mount_all(const char *root);

/* The kernel's configuration in /boot below @root, where a scheduler's own program looks for it. */
void write_config(const char *root);
/* Its folder and command, and its environment; both paths are of files of the job. Return: 0, or -1 after a frame. */
int loader_open(const char *argv_path, const char *env_path);
/* Returns when the kernel has a scheduler: 0, or -1 after frames. */
int loader_start(void);
/* Is it the scheduler that came with loader_start()? */
bool loader_is_attached(void);
/* As Ctrl-C does it; says what it printed, and what the kernel said. */
void loader_end(void);

/* ---- trace.c: what the scheduler did ----------------------------------- */

void trace_init(void);
/* Sends what is needed to read the events. */
void trace_send_formats(void);
void trace_start(void);
void trace_stop(void);
/* Sends the events, and how many were lost. */
void trace_send(void);

/* ---- play.c, verbs.c, handover.c, device.c: a workload program -------------------- */

/* State that all processes of a run share; one mapping, made before any. */
struct shared_task {
	s32 pid;
	s32 timer_fd;	    /* goes off at its arrival; -1: it sets its own */
	u32 may_arm;	    /* futex: 1 when it may set its arrival timer */
	u32 started;	    /* futex: 1 when its parent has spawned it */
	u32 children_ended; /* futex: counts up; woken at children_needed */
	u32 children_needed;
	u32 group;  /* 1 + the object of its cgroup; 0: the root */
	s32 result; /* what sl_player_run() returned */
	/* handover.c: */
	u32 is_served;	 /* futex: 1 when its lock or its bytes are its own */
	u32 next_waiter; /* number of the task behind it, from 1; 0: none */
	u64 needs_bytes; /* position in a pipe's stream that it waits for */
};

struct shared_device;
struct handover;

struct shared {
	u64 start_ns; /* CLOCK_MONOTONIC: time 0 of the program */
	u32 nr_armed; /* futex: tasks whose timer is set */
	u32 nr_left;  /* futex: tasks that have not ended */
	int attrs_fd; /* map of attributes, -1: the policy has none */
	struct shared_task *tasks;
	struct sync_object *objects;
	struct handover *handovers; /* one for each object */
	struct shared_device *device;
};

/* ---- groups.c: the cgroups of a program ---------------------------------- */

/* Return: 0, or -errno after a frame. */
int groups_make(const void *program);
/* When all tasks are gone. */
void groups_remove(const void *program);
/* Where @task begins: its own group or that of its parent, as 1 + an object; 0: the root. */
int groups_set_weight(const void *program, u32 object, u64 weight);
int groups_set_quota(const void *program, u32 object, u64 quota_us);
u32 groups_first(const void *program, u32 task);
/* Return: 0, or -errno, which may be what the policy says. */
int groups_join(const void *program, u32 group, s32 pid);

/* How much shared memory an object needs. */
u64 handover_bytes(void);
/* The verbs `lock`, `unlock`, `send` and `recv`. */
int handover_lock(struct sl_player *p, u32 object);
int handover_unlock(struct sl_player *p, u32 object);
int handover_send(struct sl_player *p, u32 object, u64 bytes);
int handover_recv(struct sl_player *p, u32 object, u64 bytes);

/* How much shared memory the device needs. */
u64 device_bytes(void);
/* What it costs, in ns; @at_once: requests. Return: 0, or -1: too many at once. */
int device_set(u64 latency, u64 per_kib, u64 call, u64 at_once);
/* The verbs `read` and `write`. */
int device_transfer(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags);

/* Of the process @pid, 0: itself; CPU n is bit n of @mask. Return: 0, or a negative errno. */
int bind_cpus(s32 pid, u64 mask);
/* The calling process begins with its program. */
void verbs_begin(void);
/* The calling process has done its program; @parent may wait for it. */
void verbs_end(struct shared_task *parent);
extern const struct sl_player_ops verbs;

/* ---- above.c: what takes CPUs, beside the program ------------------------ */

/*
 * A real-time task has @cpu then, since time 0 of the next program, or it is offline.
 * Return: 0, or -1: too many.
 */
enum above_kind { ABOVE_TASK, ABOVE_OFFLINE, ABOVE_WEIGHT, ABOVE_QUOTA };
int above_add(enum above_kind kind, u64 cpu, u64 start_ns, u64 length_ns);
/* Before there are tasks; returns when the CPUs can go. */
void above_prepare(void);
void above_begin(const void *program, u64 start_ns);
void above_end(void);

void sleep_until_ns(u64 at_ns);
/* Attach so long before time 0 from now on. */
void play_lead(u64 ms);
/* @policy: NULL: what loader.c starts. */
void play(struct policy *policy, const char *path);

#endif
