/* SPDX-License-Identifier: MIT */
/*
 * policy.c - the policy of this process: loaded, changed, and why it failed.
 *
 * It calls back into this library, so the library's names must be visible to it,
 * however the program came by them.
 *
 * Read next: hosts/common/policy_file.c, which loads it; core/policy.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy_file.h"
#include "ut.h"

#define PATH_BYTES 1024	/* of one that was found by name */

static struct sl_policy_file file;

/* The library's names, for a program that opened it for itself alone. */
static void show_names(const char *library)
{
	dlopen(library, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

/*
 * Where policy @name is: in UT_POLICIES, or beside the library, where it was installed.
 * Return: 0; -ENAMETOOLONG.
 */
static int find_policy(char path[PATH_BYTES], const char *name, const char *library)
{
	const char *folder = secure_getenv("UT_POLICIES"), *slash = strrchr(library, '/');
	int bytes;

	if (folder)
		bytes = snprintf(path, PATH_BYTES, "%s/%s.so", folder, name);
	else
		bytes = snprintf(path, PATH_BYTES, "%.*sschedlab-policies/%s.so",
				 slash ? (int)(slash + 1 - library) : 0, library, name);
	return bytes < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

/**
 * ut_policy_open - load a policy from a file, without asking it anything yet
 * @path: a shared object; a name without '/' and '.': one that was installed
 * @sets: its knobs, "name=value", ends with NULL; may be NULL
 *
 * Context: no policy is loaded.
 * Return: 0; -ENOENT; -EINVAL; -ENAMETOOLONG. ut_error_text() says more.
 */
int ut_policy_open(const char *path, const char *const *sets)
{
	bool is_name = !strpbrk(path, "/.");
	char why[1024], found[PATH_BYTES];
	Dl_info info = { 0 };
	int err = 0;

	dladdr((void *)ut_policy_open, &info);
	if (info.dli_fname)
		show_names(info.dli_fname);
	if (is_name)
		err = find_policy(found, path, info.dli_fname ? info.dli_fname : "");
	if (err)
		return ut_fail(err, "policy %s: %s", path, strerror(-err));
	err = sl_policy_file_open(&file, is_name ? found : path, why, sizeof(why));
	if (err)
		return ut_fail(
			err, "%s%s", why,
			is_name && err == -ENOENT ?
				"; a policy of your own is named with its path, or UT_POLICIES with its folder" :
				"");
	if (file.user_half) {
		sl_policy_file_close(&file);
		return ut_fail(-EOPNOTSUPP,
			       "policy %s: decides in a process of its own, which only the simulator has",
			       path);
	}
	for (; sets && *sets; sets++) {
		err = sl_policy_file_set(&file, *sets, why, sizeof(why));
		if (err) {
			sl_policy_file_close(&file);
			return ut_fail(err, "knob %s", why);
		}
	}
	if (file.user_thread)
		sl_host_print("the policy's user half has a thread, which only the simulator runs");
	smp_store_release(&ut.has_ticks, file.policy->ops->tick);
	return 0;
}

static int enable(bool has_threads)
{
	int err = sl_policy_enable(file.policy, has_threads);

	if (err)
		return ut_fail(err, "policy '%s' could not be loaded: %s%s%.300s",
			       file.policy->ops->name, strerror(-err),
			       sl_report().why[0] ? ": " : "", sl_report().why);
	return 0;
}

/*
 * The policy decides from now on. Context: preemption disabled.
 * Return: 0, or what its ops.init() said.
 */
int ut_policy_start(void)
{
	return enable(false);
}

/* Threads go on under the built-in FIFO. Context: preemption disabled. */
void ut_policy_close(void)
{
	if (!file.handle)
		return;
	sl_policy_disable(false);
	smp_store_release(&ut.has_ticks, true);
	sl_policy_file_close(&file);
}

/* Policy and groups: one change at a time. */
ut_mutex ut_policy_lock;

static int change(const char *path, const char *const *sets)
{
	int err;

	if (file.handle) {
		sl_policy_disable(true);
		sl_policy_file_close(&file);
	}
	smp_store_release(&ut.has_ticks, true);
	if (!path)
		return 0;
	err = ut_policy_open(path, sets);
	if (err)
		return err;
	err = enable(true);
	if (err) {
		smp_store_release(&ut.has_ticks, true);
		sl_policy_file_close(&file);
	}
	return err;
}

int ut_set_policy(const char *path, const char *const *sets)
{
	int err;

	if (!ut_this_cpu())
		return -EPERM;
	err = ut_mutex_lock(&ut_policy_lock);
	if (err)
		return err;
	ut_disable();
	err = change(path, sets);
	ut_enable();
	ut_mutex_unlock(&ut_policy_lock);
	return err;
}

/* Called by the core, once; all threads run on under the built-in FIFO. */
void ut_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	char line[256];

	if (info->kind == SCX_EXIT_UNREG_BPF)
		return;
	ut.failed_kind = info->kind;
	ut.failed_pid = pid;
	ut_fail(-EIO, "policy '%s' failed: %s: %s", sl_report().policy, info->reason, info->msg);
	if (ut.on_last)
		return; /* the runner says it in its own way */
	sl_print_to(line, sizeof(line), "%s", ut.error);
	sl_host_print(line);
}
