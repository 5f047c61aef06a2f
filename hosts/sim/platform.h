/* SPDX-License-Identifier: MIT */
/*
 * platform.h - what the simulator asks of the system under it: one file each.
 *
 *	posix.c    a process per simulation; a policy is a shared object
 *	wasm.c     a WebAssembly module, which reaches nothing but its caller
 *
 * Everything else of hosts/sim but main.c and serve.c (processes) is the same on
 * both, and so is every record.
 *
 * Read next: posix.c.
 */
#ifndef SIM_PLATFORM_H
#define SIM_PLATFORM_H

#include <scx/types.h>

struct sim_options;

/* Zeroed memory; pages that are never touched cost nothing. NULL: there is none. */
void *sim_map(u64 bytes);
void sim_unmap(void *mem, u64 bytes);

/* Return: a descriptor of the emptied file, or -errno. */
int sim_file_create(const char *path);
/* Write all of it. Return: 0 or -errno. Context: also after a crash. */
int sim_file_write(int fd, const void *data, u64 bytes);
int sim_file_close(int fd);

/* A workload program, checked; NULL with @why filled in. */
const void *sim_program_open(const char *path, char *why, u32 why_bytes);

/* What the policy prints, and last words; to stderr. */
void sim_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What Linux calls the error @err > 0. */
const char *sim_error_text(int err);

/* From now on a policy that crashes or does not return is sim_worker_report()'s. */
void sim_catch_policy(const struct sim_options *options);

#endif
