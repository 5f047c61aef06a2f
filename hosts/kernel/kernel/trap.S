/* SPDX-License-Identifier: MIT */
/*
 * trap.S - into the kernel and out again.
 *
 *	user_vec	from user mode; sscratch = the frame on the kernel stack
 *	user_return	to user mode; sp = that frame
 *	kernel_vec	from kernel mode, where sscratch is free
 *
 * No page table is changed: the kernel is in every one. The kernel runs with
 * floating point off, so that a stray use of it is a fault and not a corrupted
 * process.
 *
 * Read next: trap.c.
 */
#include "trap.h"
#include "memlayout.h"
#include "riscv.h"

/* Register x<n> lies at 8 * n of a frame: sp is x2, gp x3, tp x4, s0 x8, a0 x10. */
	.macro save regs:vararg
	.irp	n, \regs
	sd	x\n, 8*\n(sp)
	.endr
	.endm

	.macro restore regs:vararg
	.irp	n, \regs
	ld	x\n, 8*\n(sp)
	.endr
	.endm

	.macro save_all_but_sp
	save	1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	.endm

	/* What C code may have changed. */
	.macro restore_caller_saved
	restore	1,5,6,7,10,11,12,13,14,15,16,17,28,29,30,31
	.endm

	/* The rest of a frame: t0 is what sp was. */
	.macro save_where
	csrr	t1, sepc
	csrr	t2, sstatus
	sd	t0, 16(sp)
	sd	t1, 256(sp)
	sd	t2, 264(sp)
	.endm

	.macro restore_where
	ld	t0, 256(sp)
	ld	t1, 264(sp)
	csrw	sepc, t0
	csrw	sstatus, t1
	.endm

	.text
	.balign	4
	.globl user_vec
user_vec:
	csrrw	sp, sscratch, sp
	save_all_but_sp
	csrr	t0, sscratch
	save_where
	ld	tp, 0(sp)
	la	t0, kernel_vec
	csrw	stvec, t0
	li	t0, SSTATUS_FS
	csrc	sstatus, t0
	li	s0, 0			/* a backtrace ends here */
	mv	a0, sp
	call	user_trap

	.globl user_return
user_return:				/* interrupts are off */
	la	t0, user_vec
	csrw	stvec, t0
	restore_where
	csrw	sscratch, sp
	restore_caller_saved
	restore	3,4,8,9,18,19,20,21,22,23,24,25,26,27
	ld	sp, 16(sp)
	sret

	.balign	4
	.globl kernel_vec
kernel_vec:
	csrw	sscratch, t0
	addi	sp, sp, -FRAME_BYTES
	slli	t0, sp, 63 - STACK_BIT
	bgez	t0, stack_overflow
	csrr	t0, sscratch
save_kernel:
	save_all_but_sp
	addi	t0, sp, FRAME_BYTES
	save_where
	li	t0, SSTATUS_SUM
	csrc	sstatus, t0
	mv	a0, sp
	call	kernel_trap
	restore_where
	restore_caller_saved
	addi	sp, sp, FRAME_BYTES
	sret

/* No stack to save anything on: take another one, tell, and stop. */
stack_overflow:
	csrr	t0, sscratch
	csrw	sscratch, sp
	la	sp, emergency_stack_top - FRAME_BYTES
	save_all_but_sp
	csrr	t0, sscratch
	addi	t0, t0, FRAME_BYTES
	save_where
	mv	a0, sp
	call	kernel_stack_overflow
	unimp

/* A new process, entered from swtch() with a0 = the process that ran before. */
	.globl proc_begin
proc_begin:
	li	s0, 0
	call	sched_begin		/* returns the frame to go to user mode by */
	mv	sp, a0
	j	user_return

/*
 * int user_copy(void *to, const void *from, u64 n): one side is a user's.
 * int user_copy_string(char *to, const char *from, u64 max)
 *
 * Any fault between user_copy_begin and user_copy_end goes on at user_copy_failed,
 * see kernel_trap(). Only here may the kernel touch user pages.
 */
	.globl user_copy, user_copy_string
	.globl user_copy_begin, user_copy_end, user_copy_failed
user_copy:
	li	t0, SSTATUS_SUM
	csrs	sstatus, t0
user_copy_begin:
	or	t1, a0, a1
	andi	t1, t1, 7
	bnez	t1, 3f
	andi	t2, a2, -8
	add	t2, a1, t2		/* end of whole words */
	beq	a1, t2, 3f
1:	ld	t3, 0(a1)
	sd	t3, 0(a0)
	addi	a1, a1, 8
	addi	a0, a0, 8
	bne	a1, t2, 1b
	andi	a2, a2, 7
3:	add	t2, a1, a2
	beq	a1, t2, 5f
4:	lb	t3, 0(a1)
	sb	t3, 0(a0)
	addi	a1, a1, 1
	addi	a0, a0, 1
	bne	a1, t2, 4b
5:	csrc	sstatus, t0
	li	a0, 0
	ret

user_copy_string:
	li	t0, SSTATUS_SUM
	csrs	sstatus, t0
	mv	t1, a1
	add	t2, a1, a2
1:	beq	a1, t2, user_copy_failed
	lb	t3, 0(a1)
	sb	t3, 0(a0)
	addi	a1, a1, 1
	addi	a0, a0, 1
	bnez	t3, 1b
user_copy_end:
	csrc	sstatus, t0
	sub	a0, a1, t1
	addi	a0, a0, -1
	ret
user_copy_failed:
	li	t0, SSTATUS_SUM
	csrc	sstatus, t0
	li	a0, -1
	ret
