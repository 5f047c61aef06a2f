/* SPDX-License-Identifier: MIT */
/*
 * say.c - the time, and answers: JSON on standard output; {"wrong": ...} says why
 * there is none.
 *
 * Called by all others here.
 *
 * Read next: main.c.
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

static bool is_in_text;

void refuse_in_text(void)
{
	is_in_text = true;
}

void refuse(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (is_in_text) {
		fprintf(stderr, "schedlab-record: %s\n", text);
		exit(1);
	}
	printf("{\"wrong\":");
	print_json(text, strlen(text));
	puts("}");
	fflush(stdout);
	exit(1);
}
