/* SPDX-License-Identifier: MIT */
/*
 * print.h - the kernel's words to the person at the console, and its last ones.
 *
 * Read next: print.c.
 */
#ifndef KERNEL_PRINT_H
#define KERNEL_PRINT_H

#include <scx/types.h>

struct frame;

/*
 * Formats as bpf/print.c does: d i u x X p s c %, with l, ll, a width, 0 and -.
 * At most 255 characters. Context: any.
 */
void printk(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Print why, where and through which calls; stop all harts; leave QEMU with an
 * error.
 */
_Noreturn void panic(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void panic_frame(const struct frame *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A hart that has heard of a panic elsewhere stops here. */
extern bool has_panicked;
_Noreturn void park(void);

/* Power off: QEMU ends with exit status @code, 0 to 127. */
_Noreturn void poweroff(int code);

#endif
