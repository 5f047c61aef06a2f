/* SPDX-License-Identifier: MIT */
/*
 * vm.h - address spaces: Sv39 tables, user memory, copy-on-write.
 *
 * One table per process. Its upper half is the kernel's and the same in all of
 * them, made once at boot and never changed, so no other hart ever needs to be
 * told to forget a translation: the lower half belongs to a process that runs on
 * one hart at a time, and every switch to it flushes.
 *
 * Read next: vm.c.
 */
#ifndef KERNEL_VM_H
#define KERNEL_VM_H

#include "mem.h"
#include "memlayout.h"

#define USER_END TRAPFRAME	/* what a process may grow to */

extern pagetable_t kernel_pages; /* no user half; what idle harts use */

/*
 * Boot hart: make the kernel's half, with @stacks kernel stacks, and use it. The
 * kernel's image goes up to @image_end.
 */
void vm_init(u64 ram_bytes, void *image_end, u32 stacks);

/* The end of kernel stack number @slot, where it begins to grow down from. */
void *kernel_stack_top(u32 slot);

void vm_load(pagetable_t pages); /* use @pages on this hart */
u64 vm_satp(pagetable_t pages);	 /* what that writes to satp */

/* A table without user pages; NULL when out of memory. */
pagetable_t vm_new(void);

/* Free the table and user memory [0, size). Must not be in use on any hart. */
void vm_free(pagetable_t pages, u64 size);

/*
 * Map fresh zeroed pages from @from to @to, both rounded up to pages. @perm:
 * PTE_R | PTE_W | PTE_X. Return: 0; -1 when out of memory, nothing mapped then.
 */
int vm_grow(pagetable_t pages, u64 from, u64 to, u64 perm);

/*
 * Unmap and free whole pages from @to up to @from, and the tables that only they
 * needed: nothing is mapped above @from.
 */
void vm_shrink(pagetable_t pages, u64 from, u64 to);

/*
 * Share user memory [0, size) of the running process with @child, copy-on-write.
 * Return: 0; -1 when out of memory, then vm_free(child, size) undoes it.
 */
int vm_fork(pagetable_t parent, pagetable_t child, u64 size);

/*
 * The kernel's address of user memory @at, if it is mapped for @perm. For exec(),
 * which fills a table that is not in use yet.
 */
void *vm_at(pagetable_t pages, u64 at, u64 perm);

/*
 * A store to @at by the current process has faulted. VM_MENDED: it was
 * copy-on-write, and may be tried again.
 */
enum vm_verdict { VM_MENDED, VM_FORBIDDEN, VM_NO_MEMORY };
enum vm_verdict vm_fault(u64 at);

/*
 * trap.S: copy where one side is a user's; any fault between begin and end goes
 * on at failed, and the result is -1.
 */
int user_copy(void *to, const void *from, u64 n);
int user_copy_string(char *to, const char *from, u64 max);
extern char user_copy_begin[], user_copy_end[], user_copy_failed[];

#endif
