/* SPDX-License-Identifier: MIT */
/*
 * json_text.h - text in the JSON with which a host answers.
 *
 * Read next: hosts/sim/result.c.
 */
#ifndef COMMON_JSON_TEXT_H
#define COMMON_JSON_TEXT_H

#include <stdio.h>

/**
 * sl_json_text - write a member of a JSON object, and a comma
 * @out: where to
 * @key: plain ASCII
 * @text: any bytes; what is no UTF-8, such as half a name, shows as U+FFFD.
 *	NULL: null
 *
 * Context: also from a signal handler of a process that ends with it.
 */
void sl_json_text(FILE *out, const char *key, const char *text);

#endif
