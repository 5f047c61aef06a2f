/* SPDX-License-Identifier: MIT */
/*
 * options.c - reads a command line by a table; what is wrong is said in one line that
 * names the option. Called by the options.c of each host that is a program.
 *
 * Read next: policy_file.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const struct sl_option *find(const struct sl_option *table, const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

/* Decimal, or 0x... */
static int set_number(const struct sl_option *o, const char *text, char *why, u32 why_bytes)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || text[0] == '-' || value < o->min || value > o->max) {
		snprintf(why, why_bytes, "%s: '%.80s' is not a number from %llu to %llu", o->name,
			 text, o->min, o->max);
		return -1;
	}
	if (o->to64)
		*o->to64 = value;
	else
		*o->to32 = (u32)value;
	return 0;
}

static int set_keys(const struct sl_option *o, const char *text, char *why, u32 why_bytes)
{
	char copy[256];
	char *rest = copy;
	char *item;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_bytes, "%s: too long", o->name);
		return -1;
	}
	strcpy(copy, text);
	while ((item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');
		const struct sl_option *key;

		if (value)
			*value++ = 0;
		key = find(o->keys, item);
		if (!value || !key) {
			snprintf(why, why_bytes, "%s %s: unknown key '%s'; known:", o->name, text,
				 item);
			for (key = o->keys; key->name; key++) {
				size_t used = strlen(why);

				snprintf(why + used, why_bytes - used, " %s", key->name);
			}
			return -1;
		}
		if (set_number(key, value, why, why_bytes))
			return -1;
	}
	return 0;
}

static int add_word(const struct sl_option *o, const char *word, char *why, u32 why_bytes)
{
	u32 nr = 0;

	while (o->words[nr])
		nr++;
	if (nr == SL_WORDS_MAX) {
		snprintf(why, why_bytes, "%s: more than %u", o->name, nr);
		return -1;
	}
	o->words[nr] = word;
	o->words[nr + 1] = NULL;
	return 0;
}

static int set(const struct sl_option *o, const char *value, char *why, u32 why_bytes)
{
	if (o->words)
		return add_word(o, value, why, why_bytes);
	if (o->keys)
		return set_keys(o, value, why, why_bytes);
	if (!o->text)
		return set_number(o, value, why, why_bytes);
	*o->text = value;
	return 0;
}

int sl_options_parse(const struct sl_option *table, int argc, char **argv, char *why, u32 why_bytes)
{
	for (int i = 1; i < argc; i++) {
		const struct sl_option *o = find(table, argv[i]);

		if (o && o->flag) {
			*o->flag = true;
		} else if (i + 1 == argc) {
			snprintf(why, why_bytes, "'%.80s' is unknown or lacks a value", argv[i]);
			return -1;
		} else if (!o) {
			snprintf(why, why_bytes, "unknown option '%.80s'", argv[i]);
			return -1;
		} else if (set(o, argv[++i], why, why_bytes)) {
			return -1;
		}
	}
	return 0;
}
