/* SPDX-License-Identifier: MIT */
/*
 * context_x86_64.S - leave one stack, continue on another.
 *
 * A suspended context is a stack pointer; what it points to:
 *
 *	 0  mxcsr, 4 x87 control word	8 r15  16 r14  24 r13  32 r12
 *	40  rbx  48 rbp  56 where to go on
 *
 * Everything else a caller of a function must not rely on (System V ABI), nor
 * does a signal handler that switches: the kernel saved it all.
 *
 * Read next: sched.c, the only caller.
 */
	.text

/* void ut_switch(void **save_sp, void *load_sp) */
	.globl	ut_switch
	.hidden	ut_switch
	.type	ut_switch, @function
	.p2align 5
ut_switch:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movl	(%rsp), %eax
	movzwl	4(%rsp), %ecx
	movq	%rsp, (%rdi)
	/* From here the frame is the other context's, of the same shape. */
	movq	%rsi, %rsp
.Lload:
	leaq	ut_context_entry(%rip), %rdx
	/* Loading the control words is dear and hardly ever needed. */
	cmpl	%eax, (%rsp)
	jne	2f
	cmpw	%cx, 4(%rsp)
	jne	2f
1:
	movq	8(%rsp), %r15
	movq	16(%rsp), %r14
	movq	24(%rsp), %r13
	movq	32(%rsp), %r12
	movq	40(%rsp), %rbx
	movq	48(%rsp), %rbp
	.cfi_restore r15
	.cfi_restore r14
	.cfi_restore r13
	.cfi_restore r12
	.cfi_restore rbx
	.cfi_restore rbp
	addq	$56, %rsp
	.cfi_def_cfa rsp, 8
	/*
	 * All contexts but new ones were left by one call, switch_to()'s: the
	 * processor predicts this return, and those that follow. A jump would leave
	 * its stack of predictions one off, for 12 ns at every switch. A new one
	 * is jumped to, which leaves the predictions of the context it leaves in
	 * place: if that soon comes back (ut_context_entry), they are right.
	 */
	cmpq	%rdx, (%rsp)
	je	3f
	ret
3:
	addq	$8, %rsp
	.cfi_def_cfa_offset 0
	jmp	ut_context_entry
2:
	.cfi_def_cfa rsp, 64
	.cfi_rel_offset rbp, 48
	.cfi_rel_offset rbx, 40
	.cfi_rel_offset r12, 32
	.cfi_rel_offset r13, 24
	.cfi_rel_offset r14, 16
	.cfi_rel_offset r15, 8
	.cfi_rel_offset rip, 56
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	jmp	1b
	.cfi_endproc
	.size	ut_switch, . - ut_switch

/*
 * Where a new context begins; its first frame, and so an unwinder's last. Its
 * function returns at the end of the context: what it returns is the next one's
 * stack. So every call of a thread's life has returned, and the processor's stack of
 * predictions is as it was when the thread began.
 */
	.globl	ut_context_entry
	.hidden	ut_context_entry
	.type	ut_context_entry, @function
	.p2align 4
ut_context_entry:
	.cfi_startproc
	.cfi_personality 0x1b, ut_personality	/* relative, 4 bytes */
	.cfi_undefined rip
	movq	%rbx, %rdi
	call	*%r12
	movq	%rax, %rsi
	subq	$8, %rsp
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movl	(%rsp), %eax
	movzwl	4(%rsp), %ecx
	movq	%rsi, %rsp
	jmp	.Lload
	.cfi_endproc
	.size	ut_context_entry, . - ut_context_entry

/* Defined here, because a compiler that sees all of the library renames what it
 * does not know assembly to use; struct ut_tls is 24 bytes. */
	.section .tbss, "awT", @nobits
	.globl	ut_tls
	.hidden	ut_tls
	.type	ut_tls, @object
	.size	ut_tls, 24
	.p2align 4
ut_tls:
	.zero	24

	.section .note.GNU-stack, "", @progbits
