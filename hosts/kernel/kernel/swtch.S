/* SPDX-License-Identifier: MIT */
/*
 * swtch.S - from one kernel stack to another; and floating-point registers.
 *
 * Read next: sched.c.
 */
#include "riscv.h"

/*
 * Called by switch_to() in sched.c: a0 = the process to leave, a1 = the next one, a2 and
 * a3 = their contexts. Only what the compiler cannot save is saved; it saves the rest around
 * the call. a0 stays, so that the new process learns which one was left.
 */
	.text
	.globl swtch
swtch:
	sd	ra, 0(a2)
	sd	sp, 8(a2)
	sd	s0, 16(a2)
	mv	tp, a1
	ld	ra, 0(a3)
	ld	sp, 8(a3)
	ld	s0, 16(a3)
	ret

/* void call_on_stack(void *sp, void (*fn)(void)): for good. */
	.globl call_on_stack
call_on_stack:
	mv	sp, a0
	li	s0, 0
	jr	a1

/*
 * void fp_save(struct fp_state *), void fp_restore(const struct fp_state *):
 * floating point is on only in here.
 */
	.macro for_each_f op
	.irp	n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	\op	f\n, 8*\n(a0)
	.endr
	.endm

	.globl fp_save, fp_restore
fp_save:
	li	t0, SSTATUS_FS_INITIAL
	csrs	sstatus, t0
	for_each_f fsd
	frcsr	t1
	sd	t1, 256(a0)
	j	fp_off

fp_restore:
	li	t0, SSTATUS_FS_INITIAL
	csrs	sstatus, t0
	for_each_f fld
	ld	t1, 256(a0)
	fscsr	t1
fp_off:
	li	t0, SSTATUS_FS
	csrc	sstatus, t0
	ret
