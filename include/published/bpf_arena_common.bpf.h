/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bpf_arena_common.bpf.h - memory that a published scheduler shares with its user half.
 *
 * An arena is a map without elements: pages are taken from it and given back. Natively its
 * addresses are those of this process, so no pointer needs a cast.
 *
 * Read next: bpf/arena.c.
 */
#ifndef BPF_ARENA_COMMON_H
#define BPF_ARENA_COMMON_H

#include <scx/common.bpf.h>

#define PAGE_SIZE 4096
#define __arena
#define __arena_global
#define __arg_arena
#define cast_kern(ptr)
#define cast_user(ptr)
#define cond_break ((void)0)

/* Zeroed pages; NULL: the arena has no more, or the machine. @addr: no choice but NULL. */
void *sl_arena_alloc_pages(struct sl_map *arena, void *addr, u32 nr_pages);
/* What was taken in one piece is given back in one piece, and kept else. */
void sl_arena_free_pages(struct sl_map *arena, void *at, u32 nr_pages);
#define bpf_arena_alloc_pages(m, addr, nr_pages, node, flags) \
	((void)(node), sl_arena_alloc_pages(SL_MAP_AREA(m), (addr), (nr_pages)))
#define bpf_arena_free_pages(m, at, nr_pages) \
	sl_arena_free_pages(SL_MAP_AREA(m), (at), (nr_pages))
/* At the beginning, for pages that nothing else gets. */
#define bpf_arena_reserve_pages(m, addr, nr_pages) \
	((void)(addr), sl_arena_alloc_pages(SL_MAP_AREA(m), NULL, (nr_pages)) ? 0 : -ENOMEM)

/* Linux 7.2 has numbers for CPUs by which masks of a later version go round: a cache line for each CPU. */
#define cmask_distribute_init(m) \
	bpf_arena_reserve_pages((m), NULL, (scx_bpf_nr_cpu_ids() * 64 + PAGE_SIZE - 1) / PAGE_SIZE)

#endif
