/* SPDX-License-Identifier: MIT */
/*
 * sched.c - show the scheduling policy, or switch to another one, live.
 *
 *	sched				the one in force, its knobs, the others
 *	sched POLICY [KNOB=NUMBER]...	from now on; every process is handed over
 *
 * Read next: policies/README.md, what a policy is; kernel/syssched.c.
 */
#include "kernel/types.h"
#include "user/user.h"

#define TEXT_BYTES 1024

/* The policy in force, "name knob=value ...": each knob on a line of its own. */
static void print_active(char *text)
{
	const char *indent = "* ";
	char *blank;

	do {
		blank = strchr(text, ' ');
		if (blank)
			*blank = 0;
		printf("%s%s\n", indent, text);
		text = blank + 1;
		indent = "      ";
	} while (blank);
}

/* Cut @text at its first blank. */
static void keep_name(char *text)
{
	char *blank = strchr(text, ' ');

	if (blank)
		*blank = 0;
}

static void show(void)
{
	static char active[TEXT_BYTES], text[TEXT_BYTES], name[TEXT_BYTES];

	if (getpolicy(-1, active, sizeof(active)) < 0)
		fail("sched: getpolicy() failed");
	strcpy(name, active);
	keep_name(name);
	for (int i = 0; getpolicy(i, text, sizeof(text)) >= 0; i++) {
		static char other[TEXT_BYTES];

		strcpy(other, text);
		keep_name(other);
		/* The one in force shows the knobs as they were set. */
		if (strcmp(other, name) == 0)
			print_active(active);
		else
			printf("  %s\n", text);
	}
}

int main(int argc, char **argv)
{
	static char wanted[TEXT_BYTES];
	int length = 0;

	if (argc < 2) {
		show();
		return 0;
	}
	for (int i = 1; i < argc && length < TEXT_BYTES; i++)
		length += snprintf(wanted + length, sizeof(wanted) - length, "%s%s",
				   i > 1 ? " " : "", argv[i]);
	if (length >= TEXT_BYTES)
		fail("sched: too many knobs");
	if (setpolicy(wanted) < 0)
		fail("sched: cannot switch to \"%s\"; `sched` lists policies and their knobs",
		     wanted);
	return 0;
}
