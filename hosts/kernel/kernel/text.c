/* SPDX-License-Identifier: MIT */
/*
 * text.c - the few functions of a C library that the kernel needs, and those
 * that the compiler calls on its own. It is told (-ffreestanding) not to find
 * them in themselves.
 *
 * Read next: mem.h, which declares them.
 */
#include "mem.h"

/* Pages are copied and cleared with these: eight words in a turn. */
static void set_words(u64 *to, u64 word, unsigned long nr)
{
#pragma clang loop unroll_count(8)
	for (unsigned long i = 0; i < nr; i++)
		to[i] = word;
}

static void copy_words(u64 *restrict to, const u64 *restrict from, unsigned long nr)
{
#pragma clang loop unroll_count(8)
	for (unsigned long i = 0; i < nr; i++)
		to[i] = from[i];
}

void *memset(void *to, int byte, unsigned long n)
{
	unsigned long done = 0;

	if ((u64)to % 8 == 0) {
		set_words(to, (u8)byte * 0x0101010101010101ULL, n / 8);
		done = n & ~7UL;
	}
	for (; done < n; done++)
		((u8 *)to)[done] = (u8)byte;
	return to;
}

void *memcpy(void *to, const void *from, unsigned long n)
{
	unsigned long done = 0;

	if (((u64)to | (u64)from) % 8 == 0) {
		copy_words(to, from, n / 8);
		done = n & ~7UL;
	}
	for (; done < n; done++)
		((u8 *)to)[done] = ((const u8 *)from)[done];
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
