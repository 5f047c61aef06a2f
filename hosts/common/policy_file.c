/* SPDX-License-Identifier: MIT */
/*
 * policy_file.c - loads a compiled policy and sets its knobs.
 *
 * A policy is an object with one symbol that matters, sl_policy, beside its knobs:
 * const volatile globals, found by name.
 *
 * Called by hosts/sim/worker.c and hosts/uthreads/policy.c.
 * Read next: policy_object.c; core/policy.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <scx/launch.h>

#include "policy_file.h"

/*
 * Calls of SEC("syscall") programs, which a scheduler's user half makes between load
 * and attach. A process has one policy.
 */
#define CALLS_MAX 16
static struct {
	int (*program)(void *input);
	char name[64];
	u64 input; /* two s32, which is what those that are known take */
} calls[CALLS_MAX];
static u32 nr_calls;
static int (*launch)(void); /* of the policy that is open */

int (*sl_policy_launch_call)(const char *name, int (*program)(void *input), void *input, u32 bytes);

int sl_scx_launch_call(const char *name, int (*program)(void *input), void *input, u32 bytes)
{
	return sl_policy_launch_call ? sl_policy_launch_call(name, program, input, bytes) :
				       program(input);
}

static int run_calls(void)
{
	int err = launch ? launch() : 0;

	for (u32 i = 0; !err && i < nr_calls; i++) {
		err = calls[i].program(&calls[i].input);
		if (err)
			sl_scx_launch_refuse("its SEC(\"syscall\") program %s returned %d",
					     calls[i].name, err);
	}
	return err;
}

/* @text: NUMBER.PROGRAM; the number keeps calls of one program apart. */
static int add_call(const struct sl_policy_file *file, const char *text, const char *input,
		    char *why, u32 why_bytes)
{
	const char *dot = strchr(text, '.');
	u64 bytes;
	int (*program)(void *) = dot ? (int (*)(void *))sl_policy_object_symbol(file, dot + 1,
										&bytes) :
				       NULL;

	if (!program || nr_calls == CALLS_MAX) {
		snprintf(why, why_bytes, "call.%s: %s", text,
			 program ? "too many calls" : "the policy has no such program");
		return -EINVAL;
	}
	calls[nr_calls].program = program;
	snprintf(calls[nr_calls].name, sizeof(calls[nr_calls].name), "%s", dot + 1);
	calls[nr_calls++].input = strtoull(input, NULL, 0);
	file->policy->start = run_calls;
	return 0;
}

int sl_policy_file_open(struct sl_policy_file *file, const char *path, char *why, u32 why_bytes)
{
	struct sl_policy_file opened;
	u64 bytes;
	int err = sl_policy_object_open(&opened, path, why, why_bytes);

	if (err)
		return err;
	opened.policy = sl_policy_object_symbol(&opened, "sl_policy", &bytes);
	if (!opened.policy) {
		snprintf(why, why_bytes, "policy %s: no SCX_OPS_DEFINE() in it", path);
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
	opened.is_published = sl_policy_object_symbol(&opened, "sl_is_published", &bytes);
	launch = (int (*)(void))sl_policy_object_symbol(&opened, "sl_launch", &bytes);
	opened.launch = launch;
	if (launch) {
		/* It may write the policy's constants. */
		err = sl_policy_object_make_all_writable((void *)launch);
		if (err) {
			snprintf(why, why_bytes, "policy %s: its data cannot be written", path);
			sl_policy_file_close(&opened);
			return err;
		}
		opened.policy->start = run_calls;
	}
	opened.user_half = (void (*)(void))sl_policy_object_symbol(&opened, "sl_user_half", &bytes);
	opened.user_half_ns = sl_policy_object_symbol(&opened, "sl_user_half_ns", &bytes);
	opened.user_thread = (void (*)(void))sl_policy_object_symbol(&opened, "sl_user_thread",
								     &bytes);
	opened.user_thread_ns = sl_policy_object_symbol(&opened, "sl_user_thread_ns", &bytes);
	*file = opened;
	return 0;
}

/* Return: whether @text, read as signed or unsigned, fits @bytes. */
static bool parse_value(const char *text, u64 bytes, u64 *value)
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

int sl_policy_file_set(const struct sl_policy_file *file, const char *assignment, char *why,
		       u32 why_bytes)
{
	const char *equals = strchr(assignment, '=');
	char name[128];
	void *at;
	u64 value, bytes;
	int err;

	if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof(name)) {
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
	at = sl_policy_object_symbol(file, name, &bytes);
	if (!at || !bytes) {
		snprintf(why, why_bytes, "%s: the policy has no knob '%s'", assignment, name);
		return -EINVAL;
	}
	if (bytes > 8 || (bytes & (bytes - 1)) || !parse_value(equals + 1, bytes, &value)) {
		snprintf(why, why_bytes, "%s: '%s' is not a number of %llu bytes", assignment,
			 equals + 1, (unsigned long long)bytes);
		return -EINVAL;
	}
	err = sl_policy_object_make_writable(at, bytes);
	if (err) {
		snprintf(why, why_bytes, "%s: %s", assignment, strerror(-err));
		return err;
	}
	memcpy(at, &value, bytes); /* little-endian */
	return 0;
}
