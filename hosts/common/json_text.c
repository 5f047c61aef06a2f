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

void sl_json_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\":", key);
	if (!text) {
		fputs("null,", out);
		return;
	}
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		u32 n = utf8_bytes((const unsigned char *)text);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (n) {
			fwrite(text, 1, n, out);
			text += n - 1;
		} else if (c < 32 || c > 126)
			fprintf(out, "\\u%04x", c > 127 ? 0xfffd : c);
		else
			fputc(c, out);
	}
	fputs("\",", out);
}
