/* SPDX-License-Identifier: MIT */
/*
 * storage.c - what a policy keeps for a task or a cgroup, in maps of their kind.
 *
 * An entry is found by its owner's place in the core's table, and is forgotten with it.
 *
 * Read next: arena.c.
 */
#include "../core/core.h"

/* Whose storage it is: a task or a cgroup, by its place in the core's table. */
struct owner {
	u32 type; /* the map that has storage of such */
	const u32 *slot;
	const bool *exists;
};

static struct owner task_owner(struct task_struct *p)
{
	struct sl_task *t = sl_task_of(p);

	return (struct owner){ BPF_MAP_TYPE_TASK_STORAGE, &t->idx, &t->is_attached };
}

static struct owner cgroup_owner(struct cgroup *cgrp)
{
	struct sl_cgroup *g = cgroup_of(cgrp);

	return (struct owner){ BPF_MAP_TYPE_CGRP_STORAGE, &g->idx, &g->exists };
}

/*
 * Under the lock, because a policy's pointer may be stale: either the task is
 * still attached and its storage is forgotten after this, or there is none.
 */
static void *create_storage(struct sl_map *map, struct owner owner, const void *value)
{
	u8 *at = NULL;
	u8 *entry;

	sl_lock(&map->lock);
	if (smp_load_acquire(owner.exists)) {
		entry = entry_at(map, READ_ONCE(*owner.slot));
		at = entry + map->value_off;
		if (!READ_ONCE(*(next_of(entry)))) {
			if (value)
				__builtin_memcpy(at, value, map->value_bytes);
			else
				__builtin_memset(at, 0, map->value_bytes);
			smp_store_release(next_of(entry), 1);
		}
	}
	sl_unlock(&map->lock);
	return at;
}

sl_inline void *get_storage(struct sl_map *map, struct owner owner, const void *value, u64 flags)
{
	u8 *entry;

	SL_ASSERT(map);
	if (map->type != owner.type || !READ_ONCE(*owner.exists))
		return NULL;
	entry = entry_at(map, READ_ONCE(*owner.slot));
	if (smp_load_acquire(next_of(entry)))
		return entry + map->value_off;
	if (!(flags & BPF_LOCAL_STORAGE_GET_F_CREATE))
		return NULL;
	return sl_host_helper_fails() ? NULL : create_storage(map, owner, value);
}

void *sl_task_storage_get(struct sl_map *map, struct task_struct *p, const void *value, u64 flags)
{
	return p ? get_storage(map, task_owner(p), value, flags) : NULL;
}

void *sl_cgrp_storage_get(struct sl_map *map, struct cgroup *cgrp, const void *value, u64 flags)
{
	return cgrp ? get_storage(map, cgroup_owner(cgrp), value, flags) : NULL;
}

static long delete_storage(struct sl_map *map, struct owner owner)
{
	long err = -ENOENT;
	u32 *is_present;

	if (map->type != owner.type)
		return -EINVAL;
	sl_lock(&map->lock);
	is_present = next_of(entry_at(map, READ_ONCE(*owner.slot)));
	if (smp_load_acquire(owner.exists) && READ_ONCE(*is_present)) {
		smp_store_release(is_present, 0);
		err = 0;
	}
	sl_unlock(&map->lock);
	return err;
}

long sl_task_storage_delete(struct sl_map *map, struct task_struct *p)
{
	return delete_storage(map, task_owner(p));
}

long sl_cgrp_storage_delete(struct sl_map *map, struct cgroup *cgrp)
{
	return delete_storage(map, cgroup_owner(cgrp));
}

/* Context: tables_lock held. */
static void forget_storage(u32 type, u32 slot)
{
	for (u32 i = 0; i < sl_bpf.nr_maps; i++) {
		struct sl_map *map = &sl_bpf.maps[i];

		if (map->type != type)
			continue;
		sl_lock(&map->lock);
		smp_store_release(next_of(entry_at(map, slot)), 0);
		sl_unlock(&map->lock);
	}
}

/* The task's slot will be another task's: its storage must not be found. Other
 * CPUs may be loading a policy. */
static void maps_forget_task(struct sl_task *t)
{
	sl_lock(&sl_core.tables_lock);
	forget_storage(BPF_MAP_TYPE_TASK_STORAGE, t->idx);
	if (sl_bpf.attr_map)
		sl_map_delete(sl_bpf.attr_map, &t->p.pid);
	sl_unlock(&sl_core.tables_lock);
}
