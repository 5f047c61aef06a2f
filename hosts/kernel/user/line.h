/* SPDX-License-Identifier: MIT */
/*
 * line.h - a line typed by a person, with editing and history.
 *
 * Read next: line.c.
 */
#ifndef USER_LINE_H
#define USER_LINE_H

#define LINE_BYTES	256	/* of a line, its 0 included */
#define LINES_KEPT	50	/* of the history */

/*
 * Read one line from the device @keys, showing @prompt. Return: its length, or
 * -1 at ctrl-D on an empty line and when the device is gone. The newline is not
 * part of it; a line that is not empty goes into the history.
 */
int line_read(int keys, const char *prompt, char *line);

/* Line @idx of the history, 0 being the oldest one kept; 0 behind the last. */
const char *line_history(int idx);

#endif
