/* SPDX-License-Identifier: MIT */
/*
 * policy_file.h - a compiled policy and its knobs.
 *
 * Read next: policy_file.c.
 */
#ifndef COMMON_POLICY_FILE_H
#define COMMON_POLICY_FILE_H

#include <scx/types.h>

struct sl_policy;

/* All 0: none is open. */
struct sl_policy_file {
	struct sl_policy *policy;
	void *handle;		   /* the platform's */
	bool is_published;	   /* its faults are BPF's; see bpf_faults.h */
	int (*launch)(void);	   /* what of the user half is in C, or NULL */
	void (*user_half)(void);   /* of its launch file, or NULL */
	const u64 *user_half_ns;   /* CPU time that a call stands for */
	void (*user_thread)(void); /* the same of another thread, ... */
	const u64 *user_thread_ns; /* ... its period and CPU time, shape (2,) */
};

/* What is done where launch() calls a program (include/scx/launch.h); NULL: that alone. */
extern int (*sl_policy_launch_call)(const char *name, int (*program)(void *input), void *input,
				    u32 bytes);

/**
 * sl_policy_file_open - load a policy
 * @file: gets it; untouched on failure
 * @path: a shared object, or in wasm.c its name
 * @why: what is wrong, with the path
 * @why_bytes: size of @why
 *
 * The policy calls back into the program that loads it: the names of core/ must be
 * visible to it.
 *
 * Return: 0, or -errno with @why filled in.
 */
int sl_policy_file_open(struct sl_policy_file *file, const char *path, char *why, u32 why_bytes);

/**
 * sl_policy_file_set - give one of its knobs a value
 * @file: an open one
 * @assignment: NAME=VALUE
 * @why: what is wrong, with the assignment
 * @why_bytes: size of @why
 *
 * Return: 0, or -errno with @why filled in.
 */
int sl_policy_file_set(const struct sl_policy_file *file, const char *assignment, char *why,
		       u32 why_bytes);

/* Nothing of it may be called any more. */
void sl_policy_file_close(struct sl_policy_file *file);

/* What a platform has its own way for, in policy_object.c or hosts/sim/wasm.c: */

/* Sets @file->handle. Return: 0, or -errno with @why filled in. */
int sl_policy_object_open(struct sl_policy_file *file, const char *path, char *why, u32 why_bytes);
/* Return: the variable @name and its size, or the function and 0; NULL: neither. */
void *sl_policy_object_symbol(const struct sl_policy_file *file, const char *name, u64 *bytes);
/* Return: 0 or -errno. */
int sl_policy_object_make_writable(void *at, u64 bytes);
/* The same for all data of the policy that has the function @of. */
int sl_policy_object_make_all_writable(void *of);

#endif
