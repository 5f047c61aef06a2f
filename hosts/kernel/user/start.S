/* SPDX-License-Identifier: MIT */
/*
 * start.S - the first instruction of every program. exec() has put argc into
 * a0, argv into a1, and both strings and pointers onto the stack.
 *
 * Read next: ulib.c.
 */
	.section .text.start, "ax"
	.globl _start
_start:
	mv	fp, zero		/* a backtrace ends here */
	call	main
	call	exit			/* with what main() returned */
