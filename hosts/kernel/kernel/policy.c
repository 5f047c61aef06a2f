/* SPDX-License-Identifier: MIT */
/*
 * policy.c - chooses among the policies that are linked into the kernel.
 *
 * The files of policies/ are in the kernel's image, each with its data as the
 * linker left it: policy_init() keeps a copy, and every start of a policy begins
 * from that (docs/design/0001). What a policy does wrong ends it, not the kernel:
 * the core falls back to its own FIFO, and here it is told.
 *
 * Called by main.c, syssched.c, and host.c. Must stay true: a policy's data is
 * only restored while it is not loaded.
 * Read next: core/policy.c, what the core does with it.
 */
#include "policy.h"

#include <schedlab/linked.h>

#include <core.h>

#include "bootargs.h"
#include "channel.h"
#include "overhead.h"
#include "print.h"
#include "proc.h"
#include "sched.h"

#define NAME_MAX 64

static struct sleeplock choosing;	/* one at a time */
static bool is_booted;			/* other harts are at work */
static u32 now_idx;			/* in force; sl_nr_linked_policies: built-in */

u32 policy_now(void)
{
	return sl_peek(&now_idx);
}

/* ---- texts ----------------------------------------------------------------- */

static bool is_equal(const char *a, const char *b)
{
	u64 n = strlen(a);

	return n == strlen(b) && !strncmp(a, b, n);
}

/* Copy the next word of @text, up to a blank. Return: what follows; NULL: none. */
static const char *next_word(const char *text, char *word, u32 bytes)
{
	u32 n = 0;

	while (*text == ' ')
		text++;
	if (!*text)
		return NULL;
	for (; *text && *text != ' '; text++)
		if (n < bytes - 1)
			word[n++] = *text;
	word[n] = 0;
	return text;
}

/* A whole number, maybe negative. Return: false if @text is anything else. */
static bool parse_number(const char *text, u64 *value)
{
	bool is_negative = *text == '-';
	u64 n = 0;

	text += is_negative;
	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > (~0ULL - 9) / 10)
			return false;
		n = n * 10 + (u64)(*text - '0');
	}
	*value = is_negative ? -n : n;
	return !is_negative || n <= 1ULL << 63;
}

/* ---- knobs ----------------------------------------------------------------- */

static const struct sl_linked_knob *find_knob(const struct sl_linked_policy *l,
					      const char *name)
{
	for (u32 i = 0; i < l->nr_knobs; i++)
		if (is_equal(l->knobs[i].name, name))
			return &l->knobs[i];
	return NULL;
}

static bool fits(u64 value, u32 bytes, bool is_negative)
{
	if (bytes == 8)
		return true;
	return is_negative ? (s64)value >= -(1LL << (8 * bytes - 1)) :
			     value < 1ULL << (8 * bytes);
}

/*
 * @assignment: NAME=VALUE, which is cut in two. @is_trial: only look whether it
 * is right. Return: 0, or -1 with @why.
 */
static int set_knob(const struct sl_linked_policy *l, char *assignment,
		    bool is_trial, char *why)
{
	const struct sl_linked_knob *knob;
	char *value_text = assignment;
	u64 value;

	while (*value_text && *value_text != '=')
		value_text++;
	if (!*value_text) {
		sl_print_to(why, POLICY_TEXT_MAX, "%s: should read KNOB=NUMBER",
			    assignment);
		return -1;
	}
	*value_text++ = 0;
	knob = find_knob(l, assignment);
	if (!knob) {
		sl_print_to(why, POLICY_TEXT_MAX, "policy '%s' has no knob '%s'",
			    l->name, assignment);
		return -1;
	}
	if (!parse_number(value_text, &value) ||
	    !fits(value, knob->value_bytes, value_text[0] == '-')) {
		sl_print_to(why, POLICY_TEXT_MAX,
			    "knob '%s' of policy '%s': '%s' is not a number of %u bytes",
			    knob->name, l->name, value_text, knob->value_bytes);
		return -1;
	}
	if (!is_trial)
		memcpy(knob->value, &value, knob->value_bytes);	/* little-endian */
	return 0;
}

static int set_knobs(const struct sl_linked_policy *l, const char *settings,
		     bool is_trial, char *why)
{
	char word[2 * NAME_MAX];

	while ((settings = next_word(settings, word, sizeof(word))))
		if (set_knob(l, word, is_trial, why))
			return -1;
	return 0;
}

/* ---- changing the policy --------------------------------------------------- */

/* Return: the number of the policy called @name; one too many: built-in; -1. */
static int find_policy(const char *name)
{
	for (u32 i = 0; i < sl_nr_linked_policies; i++)
		if (is_equal(sl_policy_table[i].name, name))
			return (int)i;
	return is_equal(name, "builtin") ? (int)sl_nr_linked_policies : -1;
}

/* Context: interrupts off. Return: 0 or -errno; then the built-in one is in force. */
static int change_to(const struct sl_linked_policy *l, const char *settings,
		     char *why)
{
	int err;

	sl_policy_disable_live();
	if (!l)
		return 0;
	sl_linked_restore(l);
	set_knobs(l, settings, false, why);
	sl_core.exit_msg[0] = 0;
	err = is_booted ? sl_policy_enable_live(l->policy) :
			  sl_policy_enable(l->policy);
	if (err)
		sl_print_to(why, POLICY_TEXT_MAX, "policy '%s' did not start: error %d%s%s",
			    l->name, err, sl_core.exit_msg[0] ? ": " : "",
			    sl_core.exit_msg);
	return err;
}

/* Read @text. Return: 0, or -1 with @why. */
static int find(const char *text, const struct sl_linked_policy **l,
		const char **settings, char *why)
{
	char name[NAME_MAX];
	int idx;

	*l = NULL;
	*settings = next_word(text, name, sizeof(name));
	idx = *settings ? find_policy(name) : -1;
	if (idx < 0) {
		sl_print_to(why, POLICY_TEXT_MAX, "there is no policy '%s'",
			    *settings ? name : "");
		return -1;
	}
	if ((u32)idx == sl_nr_linked_policies)
		return 0;
	*l = &sl_policy_table[idx];
	return set_knobs(*l, *settings, true, why);
}

/* Context: nobody else is choosing. Return: 0, or -1 with @why. */
static int choose(const struct sl_linked_policy *l, const char *settings, char *why)
{
	int err;

	overhead_charge(policy_now());
	push_off();
	err = change_to(l, settings, why);
	sl_poke(&now_idx, err || !l ? sl_nr_linked_policies :
				      (u32)(l - sl_policy_table));
	sched_watch();
	pop_off();
	return err ? -1 : 0;
}

int policy_choose(const char *text, char *why)
{
	const struct sl_linked_policy *l;
	const char *settings;
	int err;

	if (find(text, &l, &settings, why))
		return -1;
	acquiresleep(&choosing);
	err = choose(l, settings, why);
	releasesleep(&choosing);
	return err;
}

int policy_choose_at(const char *text, u64 at_ns, char *why)
{
	const struct sl_linked_policy *l;
	const char *settings;

	clock_hold(at_ns);
	return find(text, &l, &settings, why) || choose(l, settings, why) ? -1 : 0;
}

void policy_end(void)
{
	overhead_charge(policy_now());
	push_off();
	sl_policy_disable_live();
	pop_off();
}

void policy_init(void)
{
	char text[POLICY_TEXT_MAX] = "builtin";
	char why[POLICY_TEXT_MAX];
	u32 used;

	initsleeplock(&choosing, "policy");
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
	if (policy_choose(text, why))
		printk("boot argument policy=: %s; going on with the built-in FIFO\n",
		       why);
	is_booted = true;
}

/* ---- what others want to know ---------------------------------------------- */

static u64 knob_value(const struct sl_linked_knob *knob)
{
	u64 value = 0;

	memcpy(&value, knob->value, knob->value_bytes);
	return value;
}

int policy_describe(int which, char *to, u32 bytes)
{
	u32 idx = which < 0 ? policy_now() : (u32)which;
	const struct sl_linked_policy *l = &sl_policy_table[idx];
	u32 used;

	if (idx > sl_nr_linked_policies)
		return -1;
	if (idx == sl_nr_linked_policies)
		return (int)sl_print_to(to, bytes, "builtin");
	used = sl_print_to(to, bytes, "%s", l->name);
	for (u32 i = 0; i < l->nr_knobs && used < bytes - 1; i++)
		used += sl_print_to(to + used, bytes - used, " %s=%llu",
				    l->knobs[i].name, knob_value(&l->knobs[i]));
	return (int)used;
}

void policy_failed(const struct scx_exit_info *info, s32 pid)
{
	char line[POLICY_TEXT_MAX];
	u32 n;

	printk("policy '%s' has ended: %s: %s; the built-in FIFO goes on\n",
	       sl_core.ops.name, info->reason, info->msg);
	n = sl_print_to(line, sizeof(line), "failed %d %lld %d %s: %s",
			(int)info->kind, info->exit_code, pid, info->reason,
			info->msg);
	channel_text(line, n);
}
