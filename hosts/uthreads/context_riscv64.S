/* SPDX-License-Identifier: MIT */
/*
 * context_riscv64.S - leave one stack, continue on another.
 *
 * A suspended context is a stack pointer; what it points to:
 *
 *	0 ra   8 s0 ... 96 s11   104 fcsr   112 fs0 ... 200 fs11
 *
 * ra is where to go on. Everything else a caller of a function must not rely on
 * (the psABI, LP64D).
 *
 * Read next: sched.c, the only caller.
 */
	.text

/* void ut_switch(void **save_sp, void *load_sp) */
	.globl	ut_switch
	.hidden	ut_switch
	.type	ut_switch, @function
	.p2align 4
ut_switch:
	.cfi_startproc
	addi	sp, sp, -208
	.cfi_adjust_cfa_offset 208
	sd	ra, 0(sp)
	.cfi_rel_offset ra, 0
	sd	s0, 8(sp)
	.cfi_rel_offset s0, 8
	sd	s1, 16(sp)
	.cfi_rel_offset s1, 16
	sd	s2, 24(sp)
	.cfi_rel_offset s2, 24
	sd	s3, 32(sp)
	.cfi_rel_offset s3, 32
	sd	s4, 40(sp)
	.cfi_rel_offset s4, 40
	sd	s5, 48(sp)
	.cfi_rel_offset s5, 48
	sd	s6, 56(sp)
	.cfi_rel_offset s6, 56
	sd	s7, 64(sp)
	.cfi_rel_offset s7, 64
	sd	s8, 72(sp)
	.cfi_rel_offset s8, 72
	sd	s9, 80(sp)
	.cfi_rel_offset s9, 80
	sd	s10, 88(sp)
	.cfi_rel_offset s10, 88
	sd	s11, 96(sp)
	.cfi_rel_offset s11, 96
	frcsr	t0
	sd	t0, 104(sp)
	fsd	fs0, 112(sp)
	fsd	fs1, 120(sp)
	fsd	fs2, 128(sp)
	fsd	fs3, 136(sp)
	fsd	fs4, 144(sp)
	fsd	fs5, 152(sp)
	fsd	fs6, 160(sp)
	fsd	fs7, 168(sp)
	fsd	fs8, 176(sp)
	fsd	fs9, 184(sp)
	fsd	fs10, 192(sp)
	fsd	fs11, 200(sp)
	sd	sp, 0(a0)
.Lload:
	/* From here the frame is the other context's, of the same shape. */
	mv	sp, a1
	ld	t1, 104(sp)
	beq	t0, t1, 1f
	fscsr	t1
1:
	ld	ra, 0(sp)
	ld	s0, 8(sp)
	ld	s1, 16(sp)
	ld	s2, 24(sp)
	ld	s3, 32(sp)
	ld	s4, 40(sp)
	ld	s5, 48(sp)
	ld	s6, 56(sp)
	ld	s7, 64(sp)
	ld	s8, 72(sp)
	ld	s9, 80(sp)
	ld	s10, 88(sp)
	ld	s11, 96(sp)
	fld	fs0, 112(sp)
	fld	fs1, 120(sp)
	fld	fs2, 128(sp)
	fld	fs3, 136(sp)
	fld	fs4, 144(sp)
	fld	fs5, 152(sp)
	fld	fs6, 160(sp)
	fld	fs7, 168(sp)
	fld	fs8, 176(sp)
	fld	fs9, 184(sp)
	fld	fs10, 192(sp)
	fld	fs11, 200(sp)
	addi	sp, sp, 208
	.cfi_def_cfa_offset 0
	/* Predicted: see context_x86_64.S. */
	ret
	.cfi_endproc
	.size	ut_switch, . - ut_switch

/*
 * Where a new context begins; its first frame, and so an unwinder's last. What its
 * function returns is the stack of the context that is next.
 */
	.globl	ut_context_entry
	.hidden	ut_context_entry
	.type	ut_context_entry, @function
	.p2align 4
ut_context_entry:
	.cfi_startproc
	.cfi_personality 0x1b, ut_personality	/* relative, 4 bytes */
	.cfi_undefined ra
	mv	a0, s1
	jalr	s0
	mv	a1, a0
	frcsr	t0
	j	.Lload
	.cfi_endproc
	.size	ut_context_entry, . - ut_context_entry

/* As in context_x86_64.S: struct ut_tls is 24 bytes. */
	.section .tbss, "awT", @nobits
	.globl	ut_tls
	.hidden	ut_tls
	.type	ut_tls, @object
	.size	ut_tls, 24
	.p2align 4
ut_tls:
	.zero	24

	.section .note.GNU-stack, "", @progbits
