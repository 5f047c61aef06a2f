/* SPDX-License-Identifier: MIT */
/*
 * main.c - schedlab-play's command line.
 *
 * People use `schedlab run --host linux`; this program is what it starts, under
 * schedlab-launch. Started by itself it plays under the class that it has.
 *
 * Read next: run.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "play.h"

static const char usage_text[] =
	"usage: schedlab-play --program FILE --result FILE [OPTION...]\n"
	"\n"
	"  --program FILE   workload program (see include/schedlab/program.h)\n"
	"  --result FILE    gets a line of JSON per task, and a last one for all\n"
	"  --folder DIR     for the files that tasks read and write (default: .)\n"
	"  --threads        tasks are threads of one process\n"
	"  --weights        nice values of tasks are set, since the class heeds them\n"
	"  --attributes ID  map of the policy in the kernel that gets their attributes\n"
	"  --class TASK=POLICY/PRIORITY/NICE\n"
	"                   tasks of that name have this class (numbers of sched.h); repeatable\n";

/* Return: whether @text is TASK=POLICY/PRIORITY/NICE, and there is room for it. */
static bool read_class(struct options *o, const char *text)
{
	struct named_class *c = &o->classes[o->nr_classes];
	const char *equals = strrchr(text, '=');
	char end;

	if (o->nr_classes == NAMED_CLASSES_MAX || !equals ||
	    sscanf(equals + 1, "%u/%u/%d%c", &c->policy, &c->priority, &c->nice, &end) != 3)
		return false;
	c->task = text;
	c->name_bytes = (u32)(equals - text);
	o->nr_classes++;
	return true;
}

static int read_options(struct options *o, int argc, char **argv, char *why, u32 why_bytes)
{
	for (int i = 1; i < argc; i++) {
		const char **to = !strcmp(argv[i], "--program") ? &o->program_path :
				  !strcmp(argv[i], "--result")	? &o->result_path :
				  !strcmp(argv[i], "--folder")	? &o->folder :
								  NULL;

		if (!strcmp(argv[i], "--threads")) {
			o->are_threads = true;
		} else if (!strcmp(argv[i], "--weights")) {
			o->has_weights = true;
		} else if (!strcmp(argv[i], "--attributes") && i + 1 < argc) {
			o->attributes_map = (u32)strtoul(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--class") && i + 1 < argc) {
			if (!read_class(o, argv[++i])) {
				snprintf(why, why_bytes,
					 "--class %.80s is not TASK=POLICY/PRIORITY/NICE, or the ninth",
					 argv[i]);
				return -1;
			}
		} else if (to && i + 1 < argc) {
			*to = argv[++i];
		} else {
			snprintf(why, why_bytes, "'%.80s' is unknown or lacks a value", argv[i]);
			return -1;
		}
	}
	if (!o->program_path || !o->result_path) {
		snprintf(why, why_bytes, "%s is missing",
			 o->program_path ? "--result" : "--program");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char why[200];

	run.options.folder = ".";
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (read_options(&run.options, argc, argv, why, sizeof(why))) {
		fprintf(stderr, "error: %s\n\n%s", why, usage_text);
		return 2;
	}
	return play();
}
