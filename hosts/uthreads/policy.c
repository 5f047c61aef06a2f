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
#include <string.h>

#include "policy_file.h"
#include "ut.h"

static struct sl_policy_file file;

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
	char why[1024];
	int err;

	show_names();
	err = sl_policy_file_open(&file, path, why, sizeof(why));
	if (err)
		return ut_fail(err, "%s", why);
	for (; sets && *sets; sets++) {
		err = sl_policy_file_set(&file, *sets, why, sizeof(why));
		if (err) {
			sl_policy_file_close(&file);
			return ut_fail(err, "knob %s", why);
		}
	}
	ut.has_ticks = file.policy->ops->tick;
	return 0;
}

/*
 * The policy decides from now on. Context: preemption disabled.
 * Return: 0, or what its ops.init() said.
 */
int ut_policy_start(void)
{
	int err = sl_policy_enable(file.policy, false);

	if (err)
		return ut_fail(err, "policy '%s' could not be loaded: %s%s%.300s",
			       file.policy->ops->name, strerror(-err),
			       sl_report().why[0] ? ": " : "", sl_report().why);
	return 0;
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

static ut_mutex change_lock;	/* one change at a time */

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
	err = sl_policy_enable(file.policy, true);
	if (!err)
		return 0;
	ut_fail(err, "policy '%s' could not be loaded: %s: %.300s",
		file.policy->ops->name, strerror(-err), sl_report().why);
	smp_store_release(&ut.has_ticks, true);
	sl_policy_file_close(&file);
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

/* Called by the core, once; all threads run on under the built-in FIFO. */
void ut_policy_failed(const struct scx_exit_info *info, s32 pid)
{
	char line[256];

	if (info->kind == SCX_EXIT_UNREG_BPF)
		return;
	ut.failed_kind = info->kind;
	ut.failed_pid = pid;
	ut_fail(-EIO, "policy '%s' failed: %s: %s", sl_report().policy,
		info->reason, info->msg);
	if (ut.on_last)
		return;		/* the runner says it in its own way */
	sl_print_to(line, sizeof(line), "%s", ut.error);
	sl_host_print(line);
}
