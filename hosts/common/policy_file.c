/* SPDX-License-Identifier: MIT */
/*
 * policy_file.c - loads a compiled policy and sets its knobs.
 *
 * A policy is a shared object with one symbol that matters, sl_policy, beside
 * its knobs: const volatile globals, found by name. They lie in read-only
 * memory; only the page that is written is made writable, and it is private, so
 * the file stays as it is for the next one to load it.
 *
 * Called by hosts/sim/load.c and hosts/uthreads/policy.c.
 * Read next: core/policy.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <scx/native.h>

#include "policy_file.h"

/*
 * Calls of SEC("syscall") programs, which a scheduler's user half makes between load
 * and attach. A process has one policy.
 */
#define CALLS_MAX 16
static struct {
	int (*program)(void *input);
	u64 input;	/* two s32, which is what those that are known take */
} calls[CALLS_MAX];
static u32 nr_calls;

static int run_calls(void)
{
	int err = 0;

	for (u32 i = 0; !err && i < nr_calls; i++)
		err = calls[i].program(&calls[i].input);
	return err;
}

/* @text: NUMBER.PROGRAM; the number keeps calls of one program apart. */
static int add_call(const struct sl_policy_file *file, const char *text,
		    const char *input, char *why, u32 why_bytes)
{
	const char *dot = strchr(text, '.');
	int (*program)(void *) = dot ? (int (*)(void *))dlsym(file->handle, dot + 1) : NULL;

	if (!program || nr_calls == CALLS_MAX) {
		snprintf(why, why_bytes, "call.%s: %s", text,
			 program ? "too many calls" : "the policy has no such program");
		return -EINVAL;
	}
	calls[nr_calls].program = program;
	calls[nr_calls++].input = strtoull(input, NULL, 0);
	file->policy->start = run_calls;
	return 0;
}

int sl_policy_file_open(struct sl_policy_file *file, const char *path,
			char *why, u32 why_bytes)
{
	struct sl_policy_file opened;
	char full[4096];

	/* A name without a slash would be searched for in the system. */
	if (!realpath(path, full)) {
		int err = -errno;

		snprintf(why, why_bytes, "policy %s: %s", path, strerror(-err));
		return err;
	}
	opened.handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!opened.handle) {
		snprintf(why, why_bytes, "policy %s: %s", path, dlerror());
		return -EINVAL;
	}
	opened.policy = dlsym(opened.handle, "sl_policy");
	if (!opened.policy) {
		snprintf(why, why_bytes, "policy %s: no SCX_OPS_DEFINE() in it",
			 path);
		sl_policy_file_close(&opened);
		return -EINVAL;
	}
	if (opened.policy->layout != SL_LAYOUT) {
		snprintf(why, why_bytes,
			 "policy %s: compiled with the headers of another version; compile it again",
			 path);
		sl_policy_file_close(&opened);
		return -EINVAL;
	}
	*file = opened;
	return 0;
}

void sl_policy_file_close(struct sl_policy_file *file)
{
	dlclose(file->handle);
	file->handle = NULL;
	file->policy = NULL;
}

static int make_writable(void *at, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)at & ~(page - 1);
	uintptr_t end = ((uintptr_t)at + bytes + page - 1) & ~(page - 1);

	return mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
}

/* Return: whether @text, read as signed or unsigned, fits @bytes. */
static bool parse_value(const char *text, size_t bytes, u64 *value)
{
	char *end;
	u64 max = bytes == 8 ? ~0ULL : (1ULL << (8 * bytes)) - 1;
	s64 min = bytes == 8 ? INT64_MIN : -(1LL << (8 * bytes - 1));

	errno = 0;
	if (text[0] == '-') {
		s64 v = strtoll(text, &end, 0);

		*value = (u64)v;
		return !errno && end != text && !*end && v >= min;
	}
	*value = strtoull(text, &end, 0);
	return !errno && end != text && !*end && *value <= max;
}

int sl_policy_file_set(const struct sl_policy_file *file, const char *assignment,
		       char *why, u32 why_bytes)
{
	const char *equals = strchr(assignment, '=');
	const ElfW(Sym) *symbol = NULL;
	char name[128];
	Dl_info info;
	void *at;
	u64 value;

	if (!equals || equals == assignment ||
	    (size_t)(equals - assignment) >= sizeof(name)) {
		snprintf(why, why_bytes, "%s: expected NAME=VALUE", assignment);
		return -EINVAL;
	}
	memcpy(name, assignment, (size_t)(equals - assignment));
	name[equals - assignment] = 0;
	if (!strncmp(name, "call.", 5))
		return add_call(file, name + 5, equals + 1, why, why_bytes);
	/* A scheduler's user half sets its flags, too. */
	if (!strcmp(name, "ops.flags")) {
		file->policy->ops->flags = strtoull(equals + 1, NULL, 0);
		return 0;
	}
	at = dlsym(file->handle, name);
	if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
	    !symbol || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) {
		snprintf(why, why_bytes, "%s: the policy has no knob '%s'",
			 assignment, name);
		return -EINVAL;
	}
	if (symbol->st_size > 8 || (symbol->st_size & (symbol->st_size - 1)) ||
	    !parse_value(equals + 1, symbol->st_size, &value)) {
		snprintf(why, why_bytes, "%s: '%s' is not a number of %llu bytes",
			 assignment, equals + 1,
			 (unsigned long long)symbol->st_size);
		return -EINVAL;
	}
	if (make_writable(at, symbol->st_size)) {
		int err = -errno;

		snprintf(why, why_bytes, "%s: %s", assignment, strerror(-err));
		return err;
	}
	memcpy(at, &value, symbol->st_size);	/* little-endian */
	return 0;
}
