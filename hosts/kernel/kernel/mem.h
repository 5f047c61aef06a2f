/* SPDX-License-Identifier: MIT */
/*
 * mem.h - pages of RAM, and the kernel's access to a user's memory.
 *
 * Read next: page.c, then vm.h.
 */
#ifndef KERNEL_MEM_H
#define KERNEL_MEM_H

#include <scx/types.h>

#include "types.h"
#include "riscv.h"

/*
 * One page, or NULL when memory is used up. kalloc() leaves in it what was
 * there. It is counted as used once; see page_share(). Context: any.
 */
void *kalloc(void);
void *kalloc_zeroed(void);

/* Give a page up; it is free when its last user has. NULL does nothing. */
void kfree(void *page);

/* One user more of a page that kalloc() gave: copy-on-write. */
void page_share(void *page);
bool page_is_shared(const void *page);

/*
 * @nr adjoining pages, never touched before nor zeroed; for tables made at boot,
 * and for the core's. Return: NULL if there are not as many in one piece.
 */
void *kalloc_pages(u64 nr);
void kfree_pages(void *first, u64 nr);

/*
 * At boot. @start: physical address of the first free page; @bytes: of RAM, from
 * KERNBASE. Moves the job to where it is not in the way.
 */
void page_init(u64 start, u64 bytes);

u64 nr_free_pages(void);

/*
 * Between the kernel's addresses and physical ones, which devices and page
 * tables need. A kernel stack has a physical address, too, but its two pages
 * need not adjoin what is next to them.
 */
u64 virt_to_phys(const void *at);
void *phys_to_virt(u64 phys);

/*
 * Copy from, or to, the memory of the current process. A page that is
 * copy-on-write is copied first. Return: 0; -1 if any of it may not be touched, in
 * which case part of it may have been copied. Context: any, locks may be held.
 */
int copyin(void *to, uint64 from, uint64 n);
int copyout(uint64 to, const void *from, uint64 n);

/*
 * Copy a string of at most @max bytes, its 0 included. Return: its length
 * without the 0; -1 for a bad address, or when no 0 was found.
 */
int copyinstr(char *to, uint64 from, uint64 max);

static inline u32 min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* As the compiler expects them, and no more of a C library than that. */
void *memset(void *to, int byte, unsigned long n);
void *memcpy(void *to, const void *from, unsigned long n);
void *memmove(void *to, const void *from, unsigned long n);
int memcmp(const void *a, const void *b, unsigned long n);
unsigned long strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, unsigned long n);
/*
 * Copy the next word of @text, up to a blank, cut to @bytes with its 0. Return:
 * what follows it; NULL: there is none.
 */
const char *next_word(const char *text, char *word, unsigned long bytes);
/* As strncpy(), but always ends with a 0. @bytes: room at @to. */
char *copy_name(char *to, const char *from, unsigned long bytes);

#endif
