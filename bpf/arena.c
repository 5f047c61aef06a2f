/* SPDX-License-Identifier: MIT */
/*
 * arena.c - memory that a policy takes in pages.
 *
 * An arena's pages come from the host one allocation at a time, and stay until they are
 * given back or the policy goes. The record of an allocation is before its first page.
 *
 *	| .... | struct extent | page | page | ... |
 *	^ from the host        ^ aligned to a page, what the policy gets
 *
 * Read next: attr.c.
 */
#include "../core/core.h"

#define PAGE_BYTES 4096ULL

struct extent {
	struct extent *next;
	struct sl_map *arena;
	void *memory; /* of the host */
	u64 bytes;
	u32 nr_pages;
	u64 first_page; /* in Linux's arena, if none is given back */
};

static struct extent *extent_of(void *at)
{
	return (struct extent *)at - 1;
}

/* Return: zeroed pages; NULL: the arena is full, or no memory, or @addr is asked for. */
void *sl_arena_alloc_pages(struct sl_map *arena, void *addr, u32 nr_pages)
{
	u64 bytes = (nr_pages + 1ULL) * PAGE_BYTES + sizeof(struct extent);
	struct extent *e;
	u8 *memory;
	u64 start;

	SL_ASSERT(arena);
	if (arena->type != BPF_MAP_TYPE_ARENA || addr || !nr_pages)
		return NULL;
	memory = sl_host_alloc(bytes);
	if (!memory)
		return NULL;
	start = ((u64)(uintptr_t)memory + sizeof(*e) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	e = extent_of((void *)(uintptr_t)start);
	*e = (struct extent){
		.arena = arena,
		.memory = memory,
		.bytes = bytes,
		.nr_pages = nr_pages,
	};
	sl_lock(&arena->lock);
	if (nr_pages > arena->max_entries - arena->nr_queued) {
		sl_unlock(&arena->lock);
		sl_host_free(memory, bytes);
		return NULL;
	}
	arena->nr_queued += nr_pages;
	e->first_page = arena->extents ? arena->extents->first_page + arena->extents->nr_pages : 0;
	e->next = arena->extents;
	arena->extents = e;
	sl_unlock(&arena->lock);
	return e + 1;
}

/* What NULL is on Linux, where addresses count from an arena's start; NULL: no arena has any. */
void *sl_arena_first_page(void)
{
	struct extent *e = NULL;

	for (u32 i = 0; !e && i < sl_bpf.nr_maps; i++)
		e = sl_bpf.maps[i].extents;
	while (e && e->next)
		e = e->next;
	return e ? e + 1 : NULL;
}

u64 sl_arena_pages(const struct sl_map *map, u32 nr, void **at, u64 *bytes)
{
	struct extent *e = map->type == BPF_MAP_TYPE_ARENA ? map->extents : NULL;

	while (e && nr--)
		e = e->next;
	if (!e)
		return ~0ULL;
	*at = e + 1;
	*bytes = e->nr_pages * PAGE_BYTES;
	return e->first_page * PAGE_BYTES;
}

/* A part of an allocation, or what is none, stays as it is. */
void sl_arena_free_pages(struct sl_map *arena, void *at, u32 nr_pages)
{
	struct extent **link, *e = NULL;

	SL_ASSERT(arena);
	sl_lock(&arena->lock);
	for (link = &arena->extents; *link && *link + 1 != at; link = &(*link)->next)
		;
	if (*link && (*link)->nr_pages == nr_pages) {
		e = *link;
		*link = e->next;
		arena->nr_queued -= nr_pages;
	}
	sl_unlock(&arena->lock);
	if (e)
		sl_host_free(e->memory, e->bytes);
}

/* Context: nothing of the policy is in use. */
static void arena_free(struct sl_map *arena)
{
	while (arena->extents)
		sl_arena_free_pages(arena, arena->extents + 1, arena->extents->nr_pages);
}
