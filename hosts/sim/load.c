/* SPDX-License-Identifier: MIT */
/*
 * load.c - loads a compiled policy and sets its knobs.
 *
 * A policy is a shared object with one symbol that matters, sl_policy, beside
 * its knobs: const volatile globals, found by name. They lie in read-only
 * memory; only the page that is written is made writable, in the forked child,
 * so the parent's copy stays pristine for the next run.
 *
 * Read next: worker.c.
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

#include "sim.h"

static void *handle;
static const struct sl_policy *policy;

const struct sl_policy *sim_policy(void)
{
	return policy;
}

/* Return: 0, or -1 with @why filled in. */
int sim_policy_load(const char *path, char *why, u32 why_bytes)
{
	char full[4096];

	/* A name without a slash would be searched for in the system. */
	if (!realpath(path, full)) {
		snprintf(why, why_bytes, "policy %s: %s", path, strerror(errno));
		return -1;
	}
	handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(why, why_bytes, "policy %s: %s", path, dlerror());
		return -1;
	}
	policy = dlsym(handle, "sl_policy");
	if (!policy || !policy->ops) {
		snprintf(why, why_bytes,
			 "policy %s: no SCX_OPS_DEFINE() in it", path);
		return -1;
	}
	return 0;
}

static int make_writable(void *at, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)at & ~(page - 1);
	uintptr_t end = ((uintptr_t)at + bytes + page - 1) & ~(page - 1);

	return mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
}

/* Return: whether @value, read as signed or unsigned, fits @bytes. */
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

/* @assignment: NAME=VALUE. Return: 0, or -1 with @why filled in. */
int sim_policy_set(const char *assignment, char *why, u32 why_bytes)
{
	const char *equals = strchr(assignment, '=');
	const ElfW(Sym) *symbol = NULL;
	char name[128];
	Dl_info info;
	void *at;
	u64 value;

	if (!equals || equals == assignment ||
	    (size_t)(equals - assignment) >= sizeof(name)) {
		snprintf(why, why_bytes, "--set %s: expected NAME=VALUE", assignment);
		return -1;
	}
	memcpy(name, assignment, (size_t)(equals - assignment));
	name[equals - assignment] = 0;
	at = dlsym(handle, name);
	if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
	    !symbol || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) {
		snprintf(why, why_bytes, "--set %s: the policy has no knob '%s'",
			 assignment, name);
		return -1;
	}
	if (symbol->st_size > 8 || (symbol->st_size & (symbol->st_size - 1)) ||
	    !parse_value(equals + 1, symbol->st_size, &value)) {
		snprintf(why, why_bytes,
			 "--set %s: '%s' is not a number of %llu bytes",
			 assignment, equals + 1,
			 (unsigned long long)symbol->st_size);
		return -1;
	}
	if (make_writable(at, symbol->st_size)) {
		snprintf(why, why_bytes, "--set %s: %s", assignment,
			 strerror(errno));
		return -1;
	}
	memcpy(at, &value, symbol->st_size);	/* little-endian */
	return 0;
}
