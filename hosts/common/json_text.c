/* SPDX-License-Identifier: MIT */
/*
 * json_text.c - writes text that a policy or a workload brought as JSON.
 *
 * Called by the result.c of each host that is a program.
 * Read next: hosts/sim/result.c.
 */
#include "json_text.h"

#include <scx/types.h>

/* Return: bytes of the UTF-8 sequence that @s begins with, 0 if it is none. */
static u32 utf8_bytes(const unsigned char *s)
{
	u32 n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	/* Too long a form, a surrogate, or above the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (u32 i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

u32 sl_json_character(const char **text, char *to)
{
	const unsigned char *s = (const unsigned char *)*text;
	bool is_plain = *s >= 32 && *s <= 126 && *s != '"' && *s != '\\';
	u32 n = is_plain ? 1 : utf8_bytes(s);
	u32 code = *s > 127 ? 0xfffd : *s;

	*text += n ? n : 1;
	for (u32 i = 0; i < n; i++)
		to[i] = (char)s[i];
	if (n)
		return n;
	to[0] = '\\';
	if (*s == '"' || *s == '\\') {
		to[1] = (char)*s;
		return 2;
	}
	to[1] = 'u';
	for (u32 i = 0; i < 4; i++)
		to[2 + i] = "0123456789abcdef"[code >> (12 - 4 * i) & 15];
	return 6;
}
