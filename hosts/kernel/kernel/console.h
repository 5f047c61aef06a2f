/* SPDX-License-Identifier: MIT */
/*
 * console.h - the terminal: two device files for one serial line.
 *
 * `console` (CONSOLE) gives lines: the kernel echoes what is typed and lets it
 * be corrected until the line is finished. `keys` (KEYS) gives every key as it
 * comes, without echo; the shell uses it to edit lines itself. Which of the two
 * gets what is typed, the shell says by writing an int to `keys`:
 *
 *	0	keys go to `keys`
 *	PID	keys make lines for `console`; ctrl-C ends process PID and all
 *		that it has started
 *
 * ctrl-P shows the state of the scheduler at any time.
 *
 * Read next: console.c.
 */
#ifndef KERNEL_CONSOLE_H
#define KERNEL_CONSOLE_H

/* At boot, after plic_init() and file_init(). */
void console_init(void);

#endif
