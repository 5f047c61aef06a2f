/* SPDX-License-Identifier: MIT */
/*
 * page.c - physical pages: how many users each has, and which are free.
 *
 *	[kernel image | users, job | used once | never touched ..... | tables]
 *	                                       ^fresh                ^fresh_end
 *
 * Pages that were never used are handed out from the left; tables of several
 * pages come from the right, so that they find room in one piece. What is given
 * back goes onto a list, from which one page is taken first. Every page counts its
 * users, because copy-on-write shares them; 0 is free.
 *
 * Called from everywhere. Must stay true: a page is on the list if and only if it
 * has no users and is not fresh.
 *
 * Read next: vm.c.
 */
#include "mem.h"

#include <schedlab/host.h>

#include "bootargs.h"
#include "list.h"
#include "memlayout.h"
#include "print.h"
#include "spinlock.h"

static struct {
	struct spinlock lock;
	struct link free;     /* a link lies at the start of each */
	u64 fresh, fresh_end; /* page numbers: never used so far */
	u64 end;	      /* one past the last page of RAM */
	u64 nr_free;
	u32 *users; /* [page number]; atomic */
} ram;

static u64 number_of(const void *page)
{
	return (virt_to_phys(page) - KERNBASE) / PGSIZE;
}

static void *page_at(u64 number)
{
	return phys_to_virt(KERNBASE + number * PGSIZE);
}

void page_init(u64 start, u64 bytes)
{
	u64 first = (start - KERNBASE) / PGSIZE;
	u64 end = bytes / PGSIZE;
	u64 users_pages = (end * sizeof(u32) + PGSIZE - 1) / PGSIZE;
	u64 job_pages = (job_bytes + PGSIZE - 1) / PGSIZE;
	u8 *job_at = page_at(first + users_pages);

	initlock(&ram.lock, "pages");
	list_init(&ram.free);
	ram.end = end;
	ram.users = page_at(first);
	ram.fresh = first + users_pages + job_pages;
	ram.fresh_end = end;
	if (ram.fresh >= end || (job_bytes && job_start < job_at))
		panic("%llu MiB of memory are too few; start QEMU with -m 256M", bytes >> 20);
	/* QEMU put the job into the middle of what is to be one piece. */
	if (job_bytes)
		job_start = memmove(job_at, job_start, job_bytes);
	memset(ram.users, 0, users_pages * PGSIZE);
	/* Never given out and never free: firmware, kernel, this table, the job. */
	for (u64 i = 0; i < ram.fresh; i++)
		ram.users[i] = 1;
	ram.nr_free = ram.fresh_end - ram.fresh;
}

void *kalloc(void)
{
	struct link *page = NULL;

	acquire(&ram.lock);
	if (!list_is_empty(&ram.free)) {
		page = ram.free.next;
		list_remove(page);
	} else if (ram.fresh < ram.fresh_end) {
		page = page_at(ram.fresh++);
	}
	if (page) {
		ram.nr_free--;
		ram.users[number_of(page)] = 1;
	}
	release(&ram.lock);
	return page;
}

void *kalloc_zeroed(void)
{
	void *page = kalloc();

	if (page)
		memset(page, 0, PGSIZE);
	return page;
}

void kfree(void *page)
{
	u32 users;

	if (!page)
		return;
	SL_ASSERT((u64)page % PGSIZE == 0);
	acquire(&ram.lock);
	users = __atomic_fetch_sub(&ram.users[number_of(page)], 1, __ATOMIC_ACQ_REL);
	if (!users)
		panic("page %p freed twice", page);
	if (users == 1) {
		list_add(ram.free.next, page);
		ram.nr_free++;
	}
	release(&ram.lock);
}

void page_share(void *page)
{
	__atomic_fetch_add(&ram.users[number_of(page)], 1, __ATOMIC_RELAXED);
}

bool page_is_shared(const void *page)
{
	return __atomic_load_n(&ram.users[number_of(page)], __ATOMIC_ACQUIRE) > 1;
}

/* Find @nr adjoining pages on the list, looking at all of RAM from the end. */
static void *take_run(u64 nr)
{
	u64 found = 0;

	for (u64 i = ram.end; i-- > 0 && found < nr;) {
		bool is_free = !ram.users[i] && (i < ram.fresh || i >= ram.fresh_end);

		found = is_free ? found + 1 : 0;
		if (found < nr)
			continue;
		for (u64 k = i; k < i + nr; k++) {
			list_remove(page_at(k));
			ram.users[k] = 1;
		}
		return page_at(i);
	}
	return NULL;
}

void *kalloc_pages(u64 nr)
{
	void *first = NULL;

	acquire(&ram.lock);
	if (nr <= ram.fresh_end - ram.fresh) {
		ram.fresh_end -= nr;
		for (u64 i = 0; i < nr; i++)
			ram.users[ram.fresh_end + i] = 1;
		first = page_at(ram.fresh_end);
	} else {
		first = take_run(nr);
	}
	if (first)
		ram.nr_free -= nr;
	release(&ram.lock);
	return first;
}

void kfree_pages(void *first, u64 nr)
{
	for (u64 i = 0; i < nr; i++)
		kfree((char *)first + i * PGSIZE);
}

u64 nr_free_pages(void)
{
	return ram.nr_free;
}
