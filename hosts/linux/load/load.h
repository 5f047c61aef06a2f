/* SPDX-License-Identifier: MIT */
/*
 * load.h - loading a policy into the kernel that this program runs on.
 *
 * Two programs are made of this: schedlab-load, which loads one policy into a
 * machine's kernel and shows what it does, and the guest's init.
 *
 *	main.c     schedlab-load: loads, reports, unloads
 *	policy.c   one policy: its object, its knobs, its life in the kernel
 *	kernel.c   what the kernel says of sched_ext
 *	launch.c   what the user half of a published scheduler does
 *	lines.c    which line of the policy's source an error came from
 *	count.c    how often its callbacks were called
 *	frame.c    the answers
 *
 * Read next: policy.c.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdarg.h>

#include <scx/ops.h>

/* ---- frame.c: answers -------------------------------------------------- */

/*
 * A frame is "NAME BYTES\n", that many bytes, and "\n". python/schedlab/hosts/
 * guest_frames.py lists the names and what follows each.
 */
void frame_to_port(void);
void frame_to_file(int fd);
void frame_bytes(const char *name, const void *data, u64 bytes);
void frame_text(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sends what the file holds; nothing where it cannot be read. */
void frame_file(const char *name, const char *path);

/* ---- policy.c: one policy ---------------------------------------------- */

#define MAP_TYPE_ARENA 33 /* BPF_MAP_TYPE_ARENA, which older headers lack */

struct policy;
struct bpf_object;

/*
 * Open the object file of a policy; a frame says so if it cannot be.
 * Return: NULL then.
 */
struct policy *policy_open(const char *path);
/* The value of a global before it is loaded, and its size; NULL: there is none of that name. */
char *policy_variable(struct policy *policy, const char *name, u32 *variable_bytes);
/* Set a global before it is loaded. Return: 0, or -1: there is no number of that name. */
int policy_write(struct policy *policy, const char *name, u64 value);
/*
 * The same for a knob; `ops.flags` adds flags, another `ops.NAME` sets a number of the
 * operations, and call.NUMBER.NAME calls a program with that input when the policy is loaded.
 * Return: 0, or -1 after a frame.
 */
int policy_set(struct policy *policy, const char *knob, u64 value);
/*
 * Give it what its launch() left behind: variables now, maps when it is loaded.
 * Return: 0, or -1 after a frame.
 */
int policy_image(struct policy *policy, const char *path);
/*
 * Let it have only the tasks that ask for it (SCHED_EXT), not all.
 * Return: 0, or -1 after a frame.
 */
int policy_take_partly(struct policy *policy);
/* Have the verifier look at it and load it. Return: 0, or -1 after a frame. */
int policy_load(struct policy *policy);
/* Hand it the CPUs. Return: 0, or -1 after a frame. */
int policy_attach(struct policy *policy);
/* Has the kernel not thrown it out? */
bool policy_is_attached(const struct policy *policy);
/* The map of that name as a file descriptor and its value size, or -1. */
int policy_map(struct policy *policy, const char *name, u32 *value_bytes);
/* What libbpf knows of it. */
struct bpf_object *policy_object(struct policy *policy);
/* Detach, report what the kernel said meanwhile, and free everything. */
void policy_close(struct policy *policy);

/* ---- kernel.c: what the kernel says of sched_ext ------------------------ */

/* The first line of a file of /sys/kernel/sched_ext. Return: whether there is one. */
bool kernel_read(const char *name, char *text, u64 text_bytes);
/* "enabled", "disabled" and what is between. */
bool kernel_state_is(const char *state);
/* Return: what to read the kernel's messages from, from now on; -1: there is none. */
int kernel_listen(void);
/* Its lines about sched_ext since, without their heads. */
void kernel_said(int fd, char *text, u64 text_bytes);
/* Between two ticks of this kernel. */
u64 tick_ns(void);
/* Whether there is a file of its configuration, where libbpf looks for what policies ask (`__kconfig`), ... */
bool kernel_has_config(void);
/* ... and as much of it as schedulers ask for and the machine can tell. */
const char *kernel_config(void);

/* ---- launch.c: what published schedulers expect ------------------------ */

void launch_constants(struct policy *policy);
/* Of an image (hosts/sim/image.c) the variables, or when it is loaded the maps. Return: 0, or -1 after a frame. */
int launch_image(struct policy *policy, const char *path, bool is_loaded);
/* Return: 0, or -1 after a frame. */
int launch_call(struct bpf_object *object, const char *name, u64 input);

/* ---- lines.c, count.c: looks into a loaded policy ---------------------- */

/*
 * Writes "FILE:LINE: TEXT" for what the kernel said about the end of a policy: the
 * innermost function of the policy on its stack, or where the policy gets the
 * tasks that it then forgets or puts into the wrong queue.
 * Return: whether there is such a line.
 */
bool line_of(struct bpf_object *object, const char *said, char *text, u64 text_bytes);

/* From here on the kernel counts calls; it costs some 20 ns each. */
void count_init(void);
/* Sends a frame: calls and time of each callback, events of sched_ext. */
void count_send(struct bpf_object *object);

#endif
