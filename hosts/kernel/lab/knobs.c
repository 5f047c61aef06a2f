/* SPDX-License-Identifier: MIT */
/*
 * knobs.c - the parameters of a policy, set and shown by their names.
 *
 * tools/link-policies has put a table of them beside every policy
 * (include/schedlab/linked.h). A text is checked in whole before any of it is set.
 *
 * Called by kernel/policy.c through lab.h. Read next: lab.h.
 */
#include <schedlab/linked.h>

#include <schedlab/machine.h>

#include "mem.h"
#include "policy.h"

#define WORD_MAX 128

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

static const struct sl_linked_knob *find_knob(const struct sl_linked_policy *l, const char *name)
{
	for (u32 i = 0; i < l->nr_knobs; i++)
		if (!strcmp(l->knobs[i].name, name))
			return &l->knobs[i];
	return NULL;
}

static bool fits(u64 value, u32 bytes, bool is_negative)
{
	if (bytes == 8)
		return true;
	return is_negative ? (s64)value >= -(1LL << (8 * bytes - 1)) : value < 1ULL << (8 * bytes);
}

/*
 * @l: NULL: the built-in one, which has no knobs. @assignment: NAME=VALUE, which is
 * cut in two. @is_trial: only look whether it is right. Return: 0, or -1 with @why.
 */
static int set_knob(const struct sl_linked_policy *l, char *assignment, bool is_trial, char *why)
{
	const struct sl_linked_knob *knob;
	char *value_text = assignment;
	u64 value;

	while (*value_text && *value_text != '=')
		value_text++;
	if (!*value_text) {
		sl_print_to(why, POLICY_TEXT_MAX, "%s: should read KNOB=NUMBER", assignment);
		return -1;
	}
	*value_text++ = 0;
	knob = l ? find_knob(l, assignment) : NULL;
	if (!knob) {
		sl_print_to(why, POLICY_TEXT_MAX, "policy '%s' has no knob '%s'",
			    l ? l->name : "builtin", assignment);
		return -1;
	}
	if (!parse_number(value_text, &value) ||
	    !fits(value, knob->value_bytes, value_text[0] == '-')) {
		sl_print_to(why, POLICY_TEXT_MAX,
			    "knob '%s' of policy '%s': '%s' is not a number of %u bytes",
			    knob->name, l->name, value_text, knob->value_bytes);
		return -1;
	}
	if (knob->min <= knob->max && ((s64)value < knob->min || (s64)value > knob->max)) {
		sl_print_to(why, POLICY_TEXT_MAX,
			    "knob '%s' of policy '%s': %s is not in %lld..%lld", knob->name,
			    l->name, value_text, knob->min, knob->max);
		return -1;
	}
	if (!is_trial)
		memcpy(knob->value, &value, knob->value_bytes); /* little-endian */
	return 0;
}

int lab_set_knobs(const struct sl_linked_policy *l, const char *settings, bool is_trial, char *why)
{
	char word[WORD_MAX];

	while ((settings = next_word(settings, word, sizeof(word))))
		if (set_knob(l, word, is_trial, why))
			return -1;
	return 0;
}

u32 lab_describe_knobs(const struct sl_linked_policy *l, char *to, u32 bytes)
{
	u32 used = 0;

	for (u32 i = 0; i < l->nr_knobs && used < bytes - 1; i++) {
		u64 value = 0;

		memcpy(&value, l->knobs[i].value, l->knobs[i].value_bytes);
		used += sl_print_to(to + used, bytes - used, " %s=%llu", l->knobs[i].name, value);
	}
	return used;
}
