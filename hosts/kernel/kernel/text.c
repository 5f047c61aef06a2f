/* SPDX-License-Identifier: MIT */
/*
 * text.c - the few functions of a C library that the kernel needs, and those
 * that the compiler calls on its own. It is told (-ffreestanding) not to find
 * them in themselves.
 *
 * Read next: mem.h, which declares them.
 */
#include "mem.h"

/* Eight bytes at a time where that is possible: pages are copied with these. */
static bool is_in_words(const void *a, const void *b, unsigned long n)
{
	return (((u64)a | (u64)b | n) & 63) == 0;
}

void *memset(void *to, int byte, unsigned long n)
{
	u64 word = (u8)byte * 0x0101010101010101ULL;
	u8 *at = to;

	if (is_in_words(to, to, n)) {
		for (u64 *w = to; w < (u64 *)(at + n); w += 8) {
			w[0] = word;
			w[1] = word;
			w[2] = word;
			w[3] = word;
			w[4] = word;
			w[5] = word;
			w[6] = word;
			w[7] = word;
		}
		return to;
	}
	for (; n && (u64)at % 8; n--)
		*at++ = (u8)byte;
	for (; n >= 8; n -= 8, at += 8)
		*(u64 *)at = word;
	for (; n; n--)
		*at++ = (u8)byte;
	return to;
}

static void copy_words(u64 *to, const u64 *from, unsigned long n)
{
	for (u64 *end = to + n / 8; to < end; to += 8, from += 8) {
		u64 a = from[0], b = from[1], c = from[2], d = from[3];
		u64 e = from[4], f = from[5], g = from[6], h = from[7];

		to[0] = a;
		to[1] = b;
		to[2] = c;
		to[3] = d;
		to[4] = e;
		to[5] = f;
		to[6] = g;
		to[7] = h;
	}
}

void *memcpy(void *to, const void *from, unsigned long n)
{
	u8 *at = to;
	const u8 *end = (const u8 *)from + n;
	const u8 *in = from;

	if (is_in_words(to, from, n)) {
		copy_words(to, from, n);
		return to;
	}
	if ((((u64)to | (u64)from) & 7) == 0)
		for (; end - in >= 8; in += 8, at += 8)
			*(u64 *)at = *(const u64 *)in;
	while (in < end)
		*at++ = *in++;
	return to;
}

void *memmove(void *to, const void *from, unsigned long n)
{
	u8 *at = (u8 *)to + n;
	const u8 *in = (const u8 *)from + n;

	if (to <= from || (const u8 *)to >= in)
		return memcpy(to, from, n);
	while (n--)
		*--at = *--in;
	return to;
}

int memcmp(const void *a, const void *b, unsigned long n)
{
	const u8 *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

unsigned long strlen(const char *s)
{
	const char *end = s;

	while (*end)
		end++;
	return (unsigned long)(end - s);
}

int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, unsigned long n)
{
	for (; n; n--, a++, b++)
		if (*a != *b || !*a)
			return (u8)*a - (u8)*b;
	return 0;
}

const char *next_word(const char *text, char *word, unsigned long bytes)
{
	unsigned long n = 0;

	while (*text == ' ')
		text++;
	if (!*text)
		return NULL;
	for (; *text && *text != ' '; text++)
		if (n < bytes - 1)
			word[n++] = *text;
	word[n] = 0;
	return text;
}

char *copy_name(char *to, const char *from, unsigned long bytes)
{
	unsigned long i = 0;

	for (; i + 1 < bytes && from[i]; i++)
		to[i] = from[i];
	for (; i < bytes; i++)
		to[i] = 0;
	return to;
}
