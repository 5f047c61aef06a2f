/* SPDX-License-Identifier: MIT */
/*
 * wasm.c - the simulator's platform as a WebAssembly module.
 *
 * The module imports four functions of its caller and nothing else: no file, clock,
 * network or environment. A policy is a module of its own that shares this one's memory
 * and table of functions; the caller instantiates both anew for each run, so that there
 * is nothing to fork. What a policy does that the machine refuses is a trap, which ends
 * the call of sim_wasm_run(); sim_wasm_trapped() then says what was going on.
 *
 * Called by python/schedlab/hosts/wasm_run.py. Read next: worker.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy_file.h"
#include "program.h"
#include "sim.h"

/* What the formats and the policies rely on beside the sizes that record.h asserts. */
_Static_assert(sizeof(void *) == 4 && sizeof(u64) == 8 && _Alignof(u64) == 8,
	       "32-bit pointers, and 64-bit integers where they are on other hosts");
_Static_assert(sizeof(struct cpumask) == SCX_CPUS_MAX / 8, "a bit per CPU");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian");

#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("schedlab"), import_name(#name)))

enum stream { STREAM_RECORDS, STREAM_RESULT, STREAM_LOG };

/* Return: 0, or what Linux calls that error, negative. */
IMPORT(create) int host_create(const char *path);
IMPORT(write) int host_write(enum stream stream, const void *data, u32 bytes);
/* Address and size of a policy's variable; index of its function, size 0; or 0. */
IMPORT(symbol) void *host_symbol(const char *name, u32 *bytes);
IMPORT(error_text) void host_error_text(int err, char *text, u32 bytes);

#define PAGE_BYTES 65536ULL

static void *program;
static u64 program_bytes;
static struct sim_options options;
static const char *trapped_as; /* what this module ended itself for; NULL: the policy's */

/* New pages are zero. They are never given back: an instance is one run. */
void *sim_map(u64 bytes)
{
	u64 nr_pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	size_t first = nr_pages > 65536 ? (size_t)-1 :
					  __builtin_wasm_memory_grow(0, (size_t)nr_pages);

	return first == (size_t)-1 ? NULL : (void *)(first * PAGE_BYTES);
}

void sim_unmap(void *mem, u64 bytes)
{
	(void)mem;
	(void)bytes;
}

int sim_file_create(const char *path)
{
	int err = host_create(path);

	return err ? err : STREAM_RECORDS;
}

int sim_file_write(int fd, const void *data, u64 bytes)
{
	return host_write((enum stream)fd, data, (u32)bytes);
}

int sim_file_close(int fd)
{
	(void)fd;
	return 0;
}

const void *sim_program_open(const char *path, char *why, u32 why_bytes)
{
	char fault[256];

	if (!program || sl_program_check(program, program_bytes, fault, sizeof(fault))) {
		snprintf(why, why_bytes, "program %s: %s", path, program ? fault : "empty file");
		return NULL;
	}
	return program;
}

void sim_log(const char *fmt, ...)
{
	char text[4096];
	va_list args;
	u32 n;

	va_start(args, fmt);
	n = sl_format(text, sizeof(text), fmt, args);
	va_end(args);
	host_write(STREAM_LOG, text, n);
}

/* The C library's own would bring its streams, and with them files to import. */
int vsnprintf(char *to, size_t bytes, const char *fmt, va_list args)
{
	return (int)sl_format(to, (u32)bytes, fmt, args);
}

int snprintf(char *to, size_t bytes, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(to, bytes, fmt, args);
	va_end(args);
	return n;
}

const char *sim_error_text(int err)
{
	static char text[128];

	host_error_text(err, text, sizeof(text));
	return text;
}

/* The caller sees traps, and counts instructions. */
void sim_catch_policy(const struct sim_options *o)
{
	(void)o;
}

int sl_policy_object_open(struct sl_policy_file *file, const char *path, char *why, u32 why_bytes)
{
	(void)path;
	(void)why;
	(void)why_bytes;
	file->handle = NULL;
	return 0;
}

void sl_policy_file_close(struct sl_policy_file *file)
{
	file->policy = NULL;
}

void *sl_policy_object_symbol(const struct sl_policy_file *file, const char *name, u64 *bytes)
{
	u32 nr;
	void *at = host_symbol(name, &nr);

	(void)file;
	*bytes = nr;
	return at;
}

/* All memory is. */
int sl_policy_object_make_all_writable(void *of)
{
	(void)of;
	return 0;
}

int sl_policy_object_make_writable(void *at, u64 bytes)
{
	(void)at;
	(void)bytes;
	return 0;
}

/* Where the C library ends a process, an assertion for one. */
_Noreturn void abort(void)
{
	trapped_as = "aborted";
	__builtin_trap();
}

/* Room for @bytes that the caller fills: the request, or the program. */
EXPORT(sim_wasm_room) void *sim_wasm_room(u32 bytes)
{
	return malloc(bytes ? bytes : 1);
}

EXPORT(sim_wasm_program) void sim_wasm_program(void *data, u32 bytes)
{
	program = bytes ? data : NULL;
	program_bytes = bytes;
}

/* @request: TAB-separated options, as `schedlab-sim --serve` takes them. */
EXPORT(sim_wasm_run) void sim_wasm_run(char *request)
{
	char why[1024];

	options = sim_default_options;
	if (sim_parse_request(&options, request, why, sizeof(why)))
		sim_print_failure(STREAM_RESULT, &options, "usage", why);
	else if (sl_policy_file_open(&sim_policy_file, options.policy_path, why, sizeof(why)))
		sim_print_failure(STREAM_RESULT, &options, "policy", why);
	else if (!options.program_path)
		sim_print_failure(STREAM_RESULT, &options, "usage", "--program is missing");
	else
		sim_worker(&options, STREAM_RESULT);
}

/* After a trap: @what the policy did, as posix.c's signals have it. */
EXPORT(sim_wasm_trapped) void sim_wasm_trapped(char *kind, char *what)
{
	sim_worker_report(kind, trapped_as ? trapped_as : what, 0);
}
