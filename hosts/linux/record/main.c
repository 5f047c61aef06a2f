/* SPDX-License-Identifier: MIT */
/*
 * main.c - the recorder's three jobs: try what is allowed, capture, convert.
 *
 *	schedlab-record probe
 *	schedlab-record capture ...    (capture.c)
 *	schedlab-record convert ...    (lives.c)
 *
 * Answers are JSON on standard output; {"wrong": ...} says why there is none.
 * Read next: capture.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record.h"

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void print_json(const char *text, size_t bytes)
{
	putchar('"');
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c < 0x80 ? c : '?');
	}
	putchar('"');
}

void refuse(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("{\"wrong\":");
	print_json(text, strlen(text));
	puts("}");
	fflush(stdout);
	exit(1);
}

static int probe(void)
{
	const char *failed = tracepoints_find(false);

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
	if (argc >= 2 && !strcmp(argv[1], "capture"))
		return capture_main(argc - 2, argv + 2);
	if (argc >= 2 && !strcmp(argv[1], "convert"))
		return convert_main(argc - 2, argv + 2);
	refuse("a job is probe, capture or convert");
}
