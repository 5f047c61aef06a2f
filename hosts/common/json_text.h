/* SPDX-License-Identifier: MIT */
/*
 * json_text.h - text in the JSON with which a host answers.
 *
 * Read next: hosts/sim/result.c.
 */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <scx/types.h>
#include <stdio.h>

#define SL_JSON_CHARACTER_MAX 6

/**
 * sl_json_character - write one character as it stands in a JSON string
 * @text: not at its end; moved behind the character. What is no UTF-8, such as
 *	half a name, becomes U+FFFD
 * @to: room for SL_JSON_CHARACTER_MAX bytes
 *
 * Context: any, also a signal handler.
 * Return: how many bytes were written.
 */
u32 sl_json_character(const char **text, char *to);

/**
 * sl_json_text - write a member of a JSON object, and a comma
 * @out: where to
 * @key: plain ASCII
 * @text: any bytes, see sl_json_character(). NULL: null
 */
static inline void sl_json_text(FILE *out, const char *key, const char *text)
{
	char bytes[SL_JSON_CHARACTER_MAX];

	fprintf(out, "\"%s\":%s", key, text ? "\"" : "null,");
	if (!text)
		return;
	while (*text)
		fwrite(bytes, 1, sl_json_character(&text, bytes), out);
	fputs("\",", out);
}

#endif
