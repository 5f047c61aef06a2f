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
#include "frame.h"
#include "layout.h"
#include "riscv.h"

	.macro save_all_but_sp
	sd	ra, 8(sp)
	sd	gp, 24(sp)
	sd	tp, 32(sp)
	sd	t0, 40(sp)
	sd	t1, 48(sp)
	sd	t2, 56(sp)
	sd	s0, 64(sp)
	sd	s1, 72(sp)
	sd	a0, 80(sp)
	sd	a1, 88(sp)
	sd	a2, 96(sp)
	sd	a3, 104(sp)
	sd	a4, 112(sp)
	sd	a5, 120(sp)
	sd	a6, 128(sp)
	sd	a7, 136(sp)
	sd	s2, 144(sp)
	sd	s3, 152(sp)
	sd	s4, 160(sp)
	sd	s5, 168(sp)
	sd	s6, 176(sp)
	sd	s7, 184(sp)
	sd	s8, 192(sp)
	sd	s9, 200(sp)
	sd	s10, 208(sp)
	sd	s11, 216(sp)
	sd	t3, 224(sp)
	sd	t4, 232(sp)
	sd	t5, 240(sp)
	sd	t6, 248(sp)
	.endm

	/* What C code may have changed. */
	.macro restore_caller_saved
	ld	ra, 8(sp)
	ld	t0, 40(sp)
	ld	t1, 48(sp)
	ld	t2, 56(sp)
	ld	a0, 80(sp)
	ld	a1, 88(sp)
	ld	a2, 96(sp)
	ld	a3, 104(sp)
	ld	a4, 112(sp)
	ld	a5, 120(sp)
	ld	a6, 128(sp)
	ld	a7, 136(sp)
	ld	t3, 224(sp)
	ld	t4, 232(sp)
	ld	t5, 240(sp)
	ld	t6, 248(sp)
	.endm

	.text
	.balign	4
	.globl user_vec
user_vec:
	csrrw	sp, sscratch, sp
	save_all_but_sp
	csrr	t0, sscratch
	csrr	t1, sepc
	csrr	t2, sstatus
	sd	t0, 16(sp)
	sd	t1, 256(sp)
	sd	t2, 264(sp)
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
	ld	t0, 256(sp)
	ld	t1, 264(sp)
	csrw	sepc, t0
	csrw	sstatus, t1
	csrw	sscratch, sp
	restore_caller_saved
	ld	gp, 24(sp)
	ld	tp, 32(sp)
	ld	s0, 64(sp)
	ld	s1, 72(sp)
	ld	s2, 144(sp)
	ld	s3, 152(sp)
	ld	s4, 160(sp)
	ld	s5, 168(sp)
	ld	s6, 176(sp)
	ld	s7, 184(sp)
	ld	s8, 192(sp)
	ld	s9, 200(sp)
	ld	s10, 208(sp)
	ld	s11, 216(sp)
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
	csrr	t1, sepc
	csrr	t2, sstatus
	sd	t0, 16(sp)
	sd	t1, 256(sp)
	sd	t2, 264(sp)
	li	t0, SSTATUS_SUM
	csrc	sstatus, t0
	mv	a0, sp
	call	kernel_trap
	ld	t1, 256(sp)
	ld	t2, 264(sp)
	csrw	sepc, t1
	csrw	sstatus, t2
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
	csrr	t1, sepc
	csrr	t2, sstatus
	sd	t0, 16(sp)
	sd	t1, 256(sp)
	sd	t2, 264(sp)
	mv	a0, sp
	call	kernel_stack_overflow
	unimp

/* A new process, entered from swtch() with a0 = who ran before. */
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
