/* SPDX-License-Identifier: MIT */
/*
 * policy.c - loads a compiled policy, sets its knobs, and says why it failed.
 *
 * A policy is a shared object with one symbol that matters, sl_policy, beside its
 * knobs: const volatile globals, found by name. It calls back into this library,
 * so the library's names must be visible to it, however the program came by them.
 *
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

#include "ut.h"

static void *handle;
static const struct sl_policy *policy;

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

/* @assignment: NAME=VALUE. Return: 0 or -errno. */
static int set_knob(const char *assignment)
{
	const char *equals = strchr(assignment, '=');
	const ElfW(Sym) *symbol = NULL;
	char name[128];
	Dl_info info;
	void *at;
	u64 value;

	if (!equals || equals == assignment ||
	    (size_t)(equals - assignment) >= sizeof(name))
		return ut_fail(-EINVAL, "knob %s: expected NAME=VALUE", assignment);
	memcpy(name, assignment, (size_t)(equals - assignment));
	name[equals - assignment] = 0;
	at = dlsym(handle, name);
	if (!at || !dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
	    !symbol || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT)
		return ut_fail(-EINVAL, "knob %s: the policy has no knob '%s'",
			       assignment, name);
	if (symbol->st_size > 8 || (symbol->st_size & (symbol->st_size - 1)) ||
	    !parse_value(equals + 1, symbol->st_size, &value))
		return ut_fail(-EINVAL, "knob %s: '%s' is not a number of %llu bytes",
			       assignment, equals + 1,
			       (unsigned long long)symbol->st_size);
	if (make_writable(at, symbol->st_size))
		return ut_fail(-errno, "knob %s: %s", assignment, strerror(errno));
	memcpy(at, &value, symbol->st_size);	/* little-endian */
	return 0;
}

/* The library's names, for a program that opened it for itself alone. */
static void show_names(void)
{
	Dl_info info;

	if (dladdr((void *)ut_policy_open, &info) && info.dli_fname)
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

/**
 * ut_policy_open - load a policy from a file, without asking it anything yet
 * @path: a shared object
 * @sets: its knobs, "name=value", ends with NULL; may be NULL
 *
 * Context: no policy is loaded.
 * Return: 0; -ENOENT; -EINVAL. ut_error_text() says more.
 */
int ut_policy_open(const char *path, const char *const *sets)
{
	char full[4096];
	int err = 0;

	/* A name without a slash would be searched for in the system. */
	if (!realpath(path, full))
		return ut_fail(-errno, "policy %s: %s", path, strerror(errno));
	show_names();
	handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return ut_fail(-EINVAL, "policy %s: %s", path, dlerror());
	policy = dlsym(handle, "sl_policy");
	if (!policy || !policy->ops)
		err = ut_fail(-EINVAL, "policy %s: no SCX_OPS_DEFINE() in it", path);
	while (sets && *sets && !err)
		err = set_knob(*sets++);
	if (err) {
		dlclose(handle);
		handle = NULL;
	} else {
		ut.has_ticks = policy->ops->tick;
	}
	return err;
}

/*
 * The policy decides from now on. Context: preemption disabled.
 * Return: 0, or what its ops.init() said.
 */
int ut_policy_start(void)
{
	int err = sl_policy_enable(policy);

	if (err)
		return ut_fail(err, "policy '%s' could not be loaded: %s%s%.300s",
			       policy->ops->name, strerror(-err),
			       sl_core.exit_ready ? ": " : "",
			       sl_core.exit_ready ? sl_core.exit_msg : "");
	return 0;
}

/* Threads go on under the built-in FIFO. Context: preemption disabled. */
void ut_policy_close(void)
{
	if (!handle)
		return;
	sl_policy_disable();
	sl_store(&ut.has_ticks, true);
	dlclose(handle);
	handle = NULL;
	policy = NULL;
}

static ut_mutex change_lock;	/* one change at a time */

static int change(const char *path, const char *const *sets)
{
	int err;

	if (handle) {
		sl_policy_disable_live();
		dlclose(handle);
		handle = NULL;
	}
	sl_store(&ut.has_ticks, true);
	if (!path)
		return 0;
	err = ut_policy_open(path, sets);
	if (err)
		return err;
	err = sl_policy_enable_live(policy);
	if (!err)
		return 0;
	ut_fail(err, "policy '%s' could not be loaded: %s: %.300s",
		policy->ops->name, strerror(-err), sl_core.exit_msg);
	sl_store(&ut.has_ticks, true);
	dlclose(handle);
	handle = NULL;
	return err;
}

int ut_set_policy(const char *path, const char *const *sets)
{
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	err = ut_mutex_lock(&change_lock);
	if (err)
		return err;
	ut_disable();
	err = change(path, sets);
	ut_enable();
	ut_mutex_unlock(&change_lock);
	return err;
}

/* Called by the core, once; everybody runs on under the built-in FIFO. */
void ut_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	char line[256];

	if (info->kind == SCX_EXIT_UNREG_BPF)
		return;
	ut.failed_kind = info->kind;
	ut.failed_pid = pid;
	ut_fail(-EIO, "policy '%s' failed: %s: %s", sl_core.ops.name,
		info->reason, info->msg);
	if (ut.on_last)
		return;		/* the runner says it in its own way */
	sl_print_to(line, sizeof(line), "%s", ut.error);
	sl_host_print(line);
}
