/* SPDX-License-Identifier: MIT */
/*
 * context_aarch64.S - leave one stack, continue on another.
 *
 * A suspended context is a stack pointer; what it points to:
 *
 *	 0 x19 x20  16 x21 x22  32 x23 x24  48 x25 x26  64 x27 x28  80 x29 x30
 *	96 d8 d9  112 d10 d11  128 d12 d13  144 d14 d15  160 fpcr, unused
 *
 * x30 is where to go on. Everything else a caller of a function must not rely on
 * (AAPCS64).
 *
 * Read next: sched.c, the only caller.
 */
	.text

/* void ut_switch(void **save_sp, void *load_sp) */
	.globl	ut_switch
	.hidden	ut_switch
	.type	ut_switch, %function
	.p2align 5
ut_switch:
	.cfi_startproc
	sub	sp, sp, #176
	.cfi_adjust_cfa_offset 176
	stp	x19, x20, [sp]
	.cfi_rel_offset x19, 0
	.cfi_rel_offset x20, 8
	stp	x21, x22, [sp, #16]
	.cfi_rel_offset x21, 16
	.cfi_rel_offset x22, 24
	stp	x23, x24, [sp, #32]
	.cfi_rel_offset x23, 32
	.cfi_rel_offset x24, 40
	stp	x25, x26, [sp, #48]
	.cfi_rel_offset x25, 48
	.cfi_rel_offset x26, 56
	stp	x27, x28, [sp, #64]
	.cfi_rel_offset x27, 64
	.cfi_rel_offset x28, 72
	stp	x29, x30, [sp, #80]
	.cfi_rel_offset x29, 80
	.cfi_rel_offset x30, 88
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x9, fpcr
	str	x9, [sp, #160]
	mov	x10, sp
	str	x10, [x0]
.Lload:
	/* From here the frame is the other context's, of the same shape. */
	mov	sp, x1
	ldr	x10, [sp, #160]
	cmp	x9, x10
	b.eq	1f
	msr	fpcr, x10
1:
	ldp	x19, x20, [sp]
	ldp	x21, x22, [sp, #16]
	ldp	x23, x24, [sp, #32]
	ldp	x25, x26, [sp, #48]
	ldp	x27, x28, [sp, #64]
	ldp	x29, x30, [sp, #80]
	ldp	d8, d9, [sp, #96]
	ldp	d10, d11, [sp, #112]
	ldp	d12, d13, [sp, #128]
	ldp	d14, d15, [sp, #144]
	add	sp, sp, #176
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
	.type	ut_context_entry, %function
	.p2align 4
ut_context_entry:
	.cfi_startproc
	.cfi_personality 0x1b, ut_personality	/* relative, 4 bytes */
	.cfi_undefined x30
	mov	x0, x20
	blr	x19
	mov	x1, x0
	mrs	x9, fpcr
	b	.Lload
	.cfi_endproc
	.size	ut_context_entry, . - ut_context_entry

/* As in context_x86_64.S: struct ut_tls is 24 bytes. */
	.section .tbss, "awT", %nobits
	.globl	ut_tls
	.hidden	ut_tls
	.type	ut_tls, %object
	.size	ut_tls, 24
	.p2align 4
ut_tls:
	.zero	24

	.section .note.GNU-stack, "", %progbits
