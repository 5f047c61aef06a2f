/* SPDX-License-Identifier: MIT */
/*
 * swtch.S - from one kernel stack to another; and floating-point registers.
 *
 * Read next: sched.c.
 */
#include "riscv.h"

/*
 * struct proc *swtch(prev, next, struct context *from, struct context *to)
 *
 * Only what a called function must keep is saved: the compiler saved the rest
 * around the call. a0 stays, so that the new one hears who was left.
 */
	.text
	.globl swtch
swtch:
	sd	ra, 0(a2)
	sd	sp, 8(a2)
	sd	s0, 16(a2)
	sd	s1, 24(a2)
	sd	s2, 32(a2)
	sd	s3, 40(a2)
	sd	s4, 48(a2)
	sd	s5, 56(a2)
	sd	s6, 64(a2)
	sd	s7, 72(a2)
	sd	s8, 80(a2)
	sd	s9, 88(a2)
	sd	s10, 96(a2)
	sd	s11, 104(a2)
	mv	tp, a1
	ld	ra, 0(a3)
	ld	sp, 8(a3)
	ld	s0, 16(a3)
	ld	s1, 24(a3)
	ld	s2, 32(a3)
	ld	s3, 40(a3)
	ld	s4, 48(a3)
	ld	s5, 56(a3)
	ld	s6, 64(a3)
	ld	s7, 72(a3)
	ld	s8, 80(a3)
	ld	s9, 88(a3)
	ld	s10, 96(a3)
	ld	s11, 104(a3)
	ret

/* void call_on_stack(void *sp, void (*fn)(void)): for good. */
	.globl call_on_stack
call_on_stack:
	mv	sp, a0
	li	s0, 0
	jr	a1

/* void fp_save(struct fp_state *): floating point is on only in here. */
	.globl fp_save
fp_save:
	li	t0, SSTATUS_FS_INITIAL
	csrs	sstatus, t0
	.irp	n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	fsd	f\n, 8*\n(a0)
	.endr
	frcsr	t1
	sd	t1, 256(a0)
	li	t0, SSTATUS_FS
	csrc	sstatus, t0
	ret

/* void fp_restore(const struct fp_state *) */
	.globl fp_restore
fp_restore:
	li	t0, SSTATUS_FS_INITIAL
	csrs	sstatus, t0
	.irp	n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	fld	f\n, 8*\n(a0)
	.endr
	ld	t1, 256(a0)
	fscsr	t1
	li	t0, SSTATUS_FS
	csrc	sstatus, t0
	ret
