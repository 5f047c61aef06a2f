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

extern pagetable_t kernel_pages;	/* no user half; what idle harts use */

void vm_init(u64 ram_bytes);		/* boot hart: make the kernel's half */
void vm_load(pagetable_t pages);	/* use @pages on this hart */

/* A table without user pages; NULL when out of memory. */
pagetable_t vm_new(void);

/* Free the table and all user pages in it. Must not be in use on any hart. */
void vm_free(pagetable_t pages);

/*
 * Map fresh zeroed pages from @from to @to, both rounded up to pages. @perm:
 * PTE_R | PTE_W | PTE_X. Return: 0; -1 when out of memory, nothing mapped then.
 */
int vm_grow(pagetable_t pages, u64 from, u64 to, u64 perm);

/* Unmap and free whole pages from @to up to @from, where @to <= @from. */
void vm_shrink(pagetable_t pages, u64 from, u64 to);

/* Take the user's access to one page away: the guard under the stack. */
void vm_guard(pagetable_t pages, u64 at);

/* Share all user pages of the running process with @child, copy-on-write. */
int vm_fork(pagetable_t parent, pagetable_t child);

/*
 * The kernel's address of user memory @at, if it is mapped for @perm. For exec(),
 * which fills a table that is not in use yet.
 */
void *vm_at(pagetable_t pages, u64 at, u64 perm);

/*
 * A store to @at by the current process has faulted. Return: whether that was
 * copy-on-write, and is now mended.
 */
bool vm_fault(u64 at);

#endif
