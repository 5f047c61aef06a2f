/* SPDX-License-Identifier: MIT */
/*
 * policy.c - chooses among the policies that are linked into the kernel.
 *
 * The files of policies/ are in the kernel's image, each with its data as the
 * linker left it: policy_init() keeps a copy, and every start of a policy begins
 * from that (docs/design/0001). What a policy does wrong ends it, not the kernel:
 * the core falls back to its own FIFO, and says so (host.c).
 *
 * Called by main.c and syssched.c. Must stay true: a policy's data is
 * only restored while it is not loaded.
 * Read next: core/policy.c, what the core does with it.
 */
#include "policy.h"

#include <schedlab/linked.h>
#include <schedlab/machine.h>

#include "bootargs.h"
#include "print.h"
#include "proc.h"
#include "sched.h"

#define NAME_MAX 64

struct sleeplock policy_lock;
static bool is_booted; /* other harts are at work */
static u32 now_idx;    /* in force; sl_nr_linked_policies: built-in */

u32 policy_now(void)
{
	return READ_ONCE(now_idx);
}

const char *policy_name(u32 idx)
{
	return idx < sl_nr_linked_policies ? sl_policy_table[idx].name : "builtin";
}

/* Context: interrupts off. Return: 0 or -errno; then the built-in one is in force. */
static int change_to(const struct sl_linked_policy *l, const char *settings, char *why)
{
	int err;

	sl_policy_disable(true);
	if (!l)
		return 0;
	sl_linked_restore(l);
	lab_set_knobs(l, settings, false, why);
	err = sl_policy_enable(l->policy, is_booted);
	if (err)
		sl_print_to(why, POLICY_TEXT_MAX, "policy '%s' did not start: error %d%s%s",
			    l->name, err, sl_report().why[0] ? ": " : "", sl_report().why);
	return err;
}

int policy_start(const char *text, char *why)
{
	const struct sl_linked_policy *l = NULL;
	char name[NAME_MAX] = "";
	const char *settings = next_word(text, name, sizeof(name));
	u32 idx = 0;
	int err;

	while (idx < sl_nr_linked_policies && strcmp(policy_name(idx), name))
		idx++;
	if (strcmp(policy_name(idx), name)) {
		sl_print_to(why, POLICY_TEXT_MAX, "there is no policy '%s'", name);
		return -1;
	}
	if (idx < sl_nr_linked_policies)
		l = &sl_policy_table[idx];
	if (lab_set_knobs(l, settings, true, why))
		return -1;
	lab_policy_ends(policy_now());
	push_off();
	err = change_to(l, settings, why);
	WRITE_ONCE(now_idx, err ? sl_nr_linked_policies : idx);
	pop_off();
	return err ? -1 : 0;
}

void policy_init(void)
{
	char text[POLICY_TEXT_MAX] = "builtin";
	char why[POLICY_TEXT_MAX];
	u32 used;

	initsleeplock(&policy_lock, "policy");
	now_idx = sl_nr_linked_policies;
	for (u32 i = 0; i < sl_nr_linked_policies; i++)
		sl_linked_keep(&sl_policy_table[i]);
	bootarg("policy", text, NAME_MAX);
	used = strlen(text);
	text[used] = ' ';
	if (!bootarg("set", text + used + 1, sizeof(text) - used - 1))
		text[used] = 0;
	for (char *c = text + used; *c; c++)
		if (*c == ',')
			*c = ' ';
	if (policy_start(text, why))
		printk("boot argument policy=: %s; going on with the built-in FIFO\n", why);
	is_booted = true;
}

int policy_describe(int which, char *to, u32 bytes)
{
	/* One that has failed is in force no more. */
	u32 now = sl_report().is_bypassed ? sl_nr_linked_policies : policy_now();
	u32 idx = which < 0 ? now : (u32)which;
	u32 used;

	if (idx > sl_nr_linked_policies)
		return -1;
	used = sl_print_to(to, bytes, "%s", policy_name(idx));
	if (idx < sl_nr_linked_policies)
		used += lab_describe_knobs(&sl_policy_table[idx], to + used, bytes - used);
	return (int)used;
}
