/* SPDX-License-Identifier: MIT */
/*
 * ulib.c - strings, memory, and small things made of system calls.
 *
 * Called by every program; also by the compiler, which turns copies of
 * structures into memcpy() and memset(). Weak throughout, see user.h.
 *
 * Read next: printf.c.
 */
#include "kernel/types.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "user/user.h"

#pragma weak strcpy
#pragma weak strcmp
#pragma weak strlen
#pragma weak strchr
#pragma weak memset
#pragma weak memmove
#pragma weak memcpy
#pragma weak memcmp
#pragma weak gets
#pragma weak stat
#pragma weak atoi
#pragma weak parse_number

char *strcpy(char *to, const char *from)
{
	char *at = to;

	while ((*at++ = *from++))
		;
	return to;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (uchar)*a - (uchar)*b;
}

uint strlen(const char *text)
{
	uint length = 0;

	while (text[length])
		length++;
	return length;
}

char *strchr(const char *text, char c)
{
	for (; *text; text++)
		if (*text == c)
			return (char *)text;
	return 0;
}

void *memset(void *to, int c, uint bytes)
{
	char *at = to;

	while (bytes--)
		*at++ = c;
	return to;
}

/* The two may overlap. */
void *memmove(void *to, const void *from, int bytes)
{
	char *at = to;
	const char *source = from;

	if (source > at) {
		while (bytes-- > 0)
			*at++ = *source++;
	} else {
		while (bytes-- > 0)
			at[bytes] = source[bytes];
	}
	return to;
}

void *memcpy(void *to, const void *from, uint bytes)
{
	return memmove(to, from, bytes);
}

int memcmp(const void *a, const void *b, uint bytes)
{
	const uchar *x = a, *y = b;

	for (; bytes; bytes--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

/* One byte per read(): what follows the line belongs to the next reader. */
char *gets(char *to, int max)
{
	int length = 0;
	char c;

	while (length + 1 < max && read(0, &c, 1) == 1) {
		to[length++] = c;
		if (c == '\n' || c == '\r')
			break;
	}
	to[length] = 0;
	return to;
}

int stat(const char *path, struct stat *to)
{
	int fd = open(path, O_RDONLY), status;

	if (fd < 0)
		return -1;
	status = fstat(fd, to);
	close(fd);
	return status;
}

/* The digits that @digits starts with, as a number; none are 0. */
int atoi(const char *digits)
{
	int number = 0;

	while (*digits >= '0' && *digits <= '9')
		number = number * 10 + (*digits++ - '0');
	return number;
}

int parse_number(const char *text, long *to)
{
	int is_negative = *text == '-';
	unsigned long number = 0;

	text += is_negative;
	if (!*text)
		return 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || number > (1UL << 59))
			return 0;
		number = number * 10 + (*text - '0');
	}
	*to = is_negative ? -(long)number : (long)number;
	return 1;
}
