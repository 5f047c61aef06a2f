/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * bpf_arena_spin_lock.h - a lock in the memory of an arena, for published schedulers.
 *
 * Unlike a bpf_spin_lock it may be taken while another is held.
 */
#ifndef BPF_ARENA_SPIN_LOCK_H
#define BPF_ARENA_SPIN_LOCK_H

#include <scx/common.bpf.h>

#define arena_spinlock_t struct sl_arena_spin_lock
struct sl_arena_spin_lock {
	u32 holder;
};
/* Return: 0; -ETIMEDOUT where the holder has not dropped it for long. */
/* What waits for one in Linux. */
#define _Q_MAX_CPUS 1
#define _Q_MAX_NODES 1
struct arena_qnode {
	u32 unused;
};
extern struct arena_qnode qnodes[_Q_MAX_CPUS][_Q_MAX_NODES];
int sl_arena_spin_lock(u32 *holder);
void sl_arena_spin_unlock(u32 *holder);
#define arena_spin_lock(lock) sl_arena_spin_lock((u32 *)(void *)(lock))
#define arena_spin_unlock(lock) sl_arena_spin_unlock((u32 *)(void *)(lock))

#endif
