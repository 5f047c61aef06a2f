/* SPDX-License-Identifier: MIT */
/*
 * printf.c - formatted text, a line at a time.
 *
 * Text is collected and handed to write() in few pieces, so that the lines of
 * two processes seldom mix and a line costs one system call. No floating
 * point: a program that wants a fraction prints two whole numbers.
 *
 * Read next: umalloc.c.
 */
#include <stdarg.h>

#include "kernel/types.h"
#include "user/user.h"

#pragma weak printf
#pragma weak fprintf
#pragma weak snprintf
#pragma weak vsnprintf
#pragma weak fail

/* Where text goes: a file, or memory when fd is negative. */
struct sink {
	int fd;
	char *to;
	int room;   /* bytes in to[], the final 0 not counted */
	int held;   /* bytes in to[] */
	int length; /* bytes printed so far */
};

struct field {
	int is_left;
	int is_long;
	int width;
	char pad;
};

static void flush(struct sink *sink)
{
	if (sink->fd >= 0 && sink->held) {
		write(sink->fd, sink->to, sink->held);
		sink->held = 0;
	}
}

static void put(struct sink *sink, char c)
{
	if (sink->held == sink->room)
		flush(sink);
	if (sink->held < sink->room)
		sink->to[sink->held++] = c;
	sink->length++;
}

/* @text padded to the width of @field. */
static void put_field(struct sink *sink, const struct field *field, const char *text, int length)
{
	int padding = field->width - length;

	if (!field->is_left && field->pad == '0' && *text == '-') {
		put(sink, *text++);
		length--;
	}
	for (; !field->is_left && padding > 0; padding--)
		put(sink, field->pad);
	for (int i = 0; i < length; i++)
		put(sink, text[i]);
	for (; padding > 0; padding--)
		put(sink, ' ');
}

static void put_number(struct sink *sink, const struct field *field, unsigned long number,
		       uint base, int is_negative)
{
	char digits[24];
	char *at = digits + sizeof(digits);

	do {
		*--at = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	if (is_negative)
		*--at = '-';
	put_field(sink, field, at, digits + sizeof(digits) - at);
}

static void put_signed(struct sink *sink, const struct field *field, long number)
{
	if (number < 0)
		put_number(sink, field, -(unsigned long)number, 10, 1);
	else
		put_number(sink, field, number, 10, 0);
}

static const char *read_field(const char *format, struct field *field)
{
	*field = (struct field){ .pad = ' ' };
	for (;; format++) {
		if (*format == '-')
			field->is_left = 1;
		else if (*format == '0')
			field->pad = '0';
		else
			break;
	}
	for (; *format >= '0' && *format <= '9'; format++)
		field->width = field->width * 10 + (*format - '0');
	for (; *format == 'l'; format++)
		field->is_long = 1;
	return format;
}

static void put_text(struct sink *sink, const struct field *field, const char *text)
{
	if (!text)
		text = "(null)";
	put_field(sink, field, text, strlen(text));
}

static void put_format(struct sink *sink, const char *format, va_list values)
{
	struct field field;
	char c;

	for (; *format; format++) {
		if (*format != '%') {
			put(sink, *format);
			continue;
		}
		format = read_field(format + 1, &field);
		switch (*format) {
		case 'd':
		case 'i':
			put_signed(sink, &field,
				   field.is_long ? va_arg(values, long) : va_arg(values, int));
			break;
		case 'u':
		case 'x':
			put_number(sink, &field,
				   field.is_long ? va_arg(values, unsigned long) :
						   va_arg(values, uint),
				   *format == 'u' ? 10 : 16, 0);
			break;
		case 'p':
			put(sink, '0');
			put(sink, 'x');
			field.pad = '0';
			field.width = 16;
			put_number(sink, &field, va_arg(values, unsigned long), 16, 0);
			break;
		case 's':
			put_text(sink, &field, va_arg(values, const char *));
			break;
		case 'c':
			c = va_arg(values, int);
			put_field(sink, &field, &c, 1);
			break;
		default: /* "%%", and what is unknown, as it stands */
			if (field.is_long) {
				/* "%l" alone, as older programs of xv6 have it. */
				put_number(sink, &field, va_arg(values, unsigned long), 10, 0);
				format--;
				break;
			}
			if (*format != '%')
				put(sink, '%');
			if (!*format)
				return;
			put(sink, *format);
		}
	}
}

static void print(int fd, const char *format, va_list values)
{
	char line[128];
	struct sink sink = { .fd = fd, .to = line, .room = sizeof(line) };

	put_format(&sink, format, values);
	flush(&sink);
}

void fprintf(int fd, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print(fd, format, values);
	va_end(values);
}

void printf(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print(1, format, values);
	va_end(values);
}

int vsnprintf(char *to, int max, const char *format, va_list values)
{
	struct sink sink = { .fd = -1, .to = to, .room = max - 1 };

	if (max < 1)
		return 0;
	put_format(&sink, format, values);
	to[sink.held] = 0;
	return sink.length;
}

int snprintf(char *to, int max, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(to, max, format, values);
	va_end(values);
	return length;
}

void fail(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print(2, format, values);
	va_end(values);
	fprintf(2, "\n");
	exit(1);
}
