/* SPDX-License-Identifier: MIT */
/*
 * main.c - the recorder's jobs: record for itself; or, for schedlab, try what is
 * allowed, capture, sum up, convert, import.
 *
 *	schedlab-record record ...     (alone.c)
 *	schedlab-record probe
 *	schedlab-record capture ...    (capture.c)
 *	schedlab-record sums ...       (sums.c)
 *	schedlab-record convert ...    (lives.c)
 *	schedlab-record import ...     (../import/main.c)
 *
 * Read next: capture.c.
 */
#include <stdio.h>
#include <string.h>

#include "import.h"
#include "record.h"

static int probe(void)
{
	const char *failed = tracepoints_find(false, false);

	printf("{\"tracefs\":");
	if (failed)
		print_json(failed, strlen(failed));
	else
		printf("null");
	printf(",\"perf_event_open\":");
	if (!failed) {
		failed = tracepoints_try();
		if (failed)
			print_json(failed, strlen(failed));
		else
			printf("null");
	} else {
		printf("\"not tried, since tracefs names its events\"");
	}
	puts("}");
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "probe"))
		return probe();
	if (argc >= 2 && !strcmp(argv[1], "record"))
		return record_main(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "capture"))
		return capture_main(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "sums"))
		return sums_main(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "convert"))
		return convert_main(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "import"))
		return import_main(argc - 2, argv + 2);
	refuse("a job is record, probe, capture, sums, convert or import");
}
