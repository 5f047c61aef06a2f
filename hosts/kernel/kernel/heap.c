/* SPDX-License-Identifier: MIT */
/*
 * heap.c - small pieces of pages, and runs of whole ones.
 *
 * A piece has 64, 128, 256 or 512 bytes. A page of such pieces begins with a
 * header, in the place of the first piece; pages with a free piece are on a ring,
 * and one that is empty again goes back.
 *
 * Called by host.c for the core: while it starts, when a policy is loaded, when a
 * policy makes a queue. Read next: page.c.
 */
#include "heap.h"

#include <schedlab/host.h>

#include "mem.h"
#include "spinlock.h"

#define NR_CLASSES 4
#define PIECE_MIN 64
#define PIECE_MAX (PIECE_MIN << (NR_CLASSES - 1))

struct piece {
	struct piece *next;
};

struct heap_page {
	struct heap_page *next;	/* on the ring of its class, or itself */
	struct heap_page *prev;
	struct piece *free;
	u32 nr_used;
};

static struct spinlock lock = { .name = "heap" };
static struct heap_page rings[NR_CLASSES];

static u32 class_of(u64 bytes)
{
	u32 class = 0;

	while ((u64)PIECE_MIN << class < bytes)
		class++;
	return class;
}

static void unlink_page(struct heap_page *page)
{
	page->next->prev = page->prev;
	page->prev->next = page->next;
	page->next = page;
	page->prev = page;
}

static void link_page(struct heap_page *ring, struct heap_page *page)
{
	page->next = ring->next;
	page->prev = ring;
	page->next->prev = page;
	ring->next = page;
}

static struct heap_page *new_page(u32 class)
{
	struct heap_page *page = kalloc();
	u64 bytes = (u64)PIECE_MIN << class;

	if (!page)
		return NULL;
	page->free = NULL;
	page->nr_used = 0;
	for (u64 at = PGSIZE - bytes; at >= bytes; at -= bytes) {
		struct piece *piece = (struct piece *)((char *)page + at);

		piece->next = page->free;
		page->free = piece;
	}
	return page;
}

static void *alloc_piece(u32 class)
{
	struct heap_page *ring = &rings[class];
	struct heap_page *page;
	struct piece *piece;

	if (!ring->next) {
		ring->next = ring;
		ring->prev = ring;
	}
	if (ring->next == ring) {
		page = new_page(class);
		if (!page)
			return NULL;
		link_page(ring, page);
	}
	page = ring->next;
	piece = page->free;
	page->free = piece->next;
	page->nr_used++;
	if (!page->free)
		unlink_page(page);
	return piece;
}

void *heap_alloc(u64 bytes)
{
	u64 pages = (bytes + PGSIZE - 1) / PGSIZE;
	void *mem;

	if (bytes > PIECE_MAX) {
		mem = pages == 1 ? kalloc() : kalloc_pages(pages);
	} else {
		acquire(&lock);
		mem = alloc_piece(class_of(bytes));
		release(&lock);
	}
	return mem ? memset(mem, 0, bytes) : NULL;
}

void heap_free(void *mem, u64 bytes)
{
	struct heap_page *page = (struct heap_page *)PGROUNDDOWN((u64)mem);
	struct piece *piece = mem;

	if (!mem)
		return;
	if (bytes > PIECE_MAX) {
		kfree_pages(mem, (bytes + PGSIZE - 1) / PGSIZE);
		return;
	}
	acquire(&lock);
	SL_ASSERT(page->nr_used);
	if (!page->free)
		link_page(&rings[class_of(bytes)], page);
	piece->next = page->free;
	page->free = piece;
	if (--page->nr_used == 0) {
		unlink_page(page);
		kfree(page);
	}
	release(&lock);
}
