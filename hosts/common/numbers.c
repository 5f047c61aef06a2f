/* SPDX-License-Identifier: MIT */
/*
 * numbers.c - reads options that are numbers; what is wrong is said in one line
 * that names the option. Called by the options.c of each host that is a program.
 *
 * Read next: policy_file.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

const struct sl_number *sl_number_find(const struct sl_number *table,
				       const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

int sl_number_set(const struct sl_number *n, const char *text, char *why,
		  u32 why_bytes)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || text[0] == '-' || value < n->min ||
	    value > n->max) {
		snprintf(why, why_bytes, "%s: '%.80s' is not a number from %llu to %llu",
			 n->name, text, n->min, n->max);
		return -1;
	}
	if (n->to64)
		*n->to64 = value;
	else
		*n->to32 = (u32)value;
	return 0;
}

int sl_numbers_set(const char *option, const struct sl_number *keys,
		   const char *text, char *why, u32 why_bytes)
{
	char copy[256];
	char *rest = copy;
	char *item;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, why_bytes, "%s: too long", option);
		return -1;
	}
	strcpy(copy, text);
	while ((item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');
		const struct sl_number *n;

		if (value)
			*value++ = 0;
		n = sl_number_find(keys, item);
		if (!value || !n) {
			snprintf(why, why_bytes, "%s %s: unknown key '%s'; known:",
				 option, text, item);
			for (n = keys; n->name; n++) {
				size_t used = strlen(why);

				snprintf(why + used, why_bytes - used, " %s",
					 n->name);
			}
			return -1;
		}
		if (sl_number_set(n, value, why, why_bytes))
			return -1;
	}
	return 0;
}
