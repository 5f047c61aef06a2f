/* SPDX-License-Identifier: MIT */
/*
 * maps.c - BPF maps for natively compiled policies: hash, array, per-CPU array,
 * storage of tasks and cgroups, queue and stack; and what arenas and ring buffers have of it.
 *
 * maps_create() reads the map sites of a policy (include/scx/native.h) and
 * allocates every map once; nothing is allocated later. A pointer into a map
 * stays valid until the entry is deleted, as in Linux; the entry may then be
 * reused at once, as with Linux's preallocated maps. The lock guards the
 * chains, never the values: those are the policy's to synchronise.
 *
 *	hash:     buckets[hash(key)] -> entry -> entry -> 0   (numbers from 1)
 *	          entry = next | key | value
 *	array:    entries[key]                      = value
 *	per-CPU:  entries[cpu * max_entries + key]  = value
 *	storage:  entries[slot of task or cgroup]   = present | value
 *	queue:    entries[(first + i) % max_entries] = value; a stack takes the last
 *
 * Read next: storage.c.
 */
#include "../core/core.h"

struct sl_map {
	void *var; /* the policy's map variable */
	const char *name;
	u32 type;
	u32 key_bytes;
	u32 value_bytes;
	u32 max_entries;
	u32 key_off;   /* of a hash's key within an entry */
	u32 value_off; /* of the value */
	u32 entry_bytes;
	bool has_timers; /* in its values */
	u64 nr_slots;	 /* entries allocated */
	u8 *entries;
	sl_lock_t lock;
	/* lock protects, for hashes: */
	u32 *buckets;
	u32 nr_buckets; /* a power of two */
	u32 free_first; /* deleted entries, linked by `next` */
	u32 nr_touched; /* entries beyond this were never used */
	/* lock protects, for queues and stacks: */
	u32 first;
	u32 nr_queued;		   /* of an arena pages */
	u64 produced;		   /* bytes of a ring buffer until now; */
	u64 consumed;		   /* of these; see ring.c */
	u64 is_drained;		   /* atomic: by a CPU */
	struct extent *extents;	   /* of an arena; see arena.c */
	struct sl_map *inner;	   /* made by the user half, of an array of maps; */
	struct sl_map *next_inner; /* and of such a one the next */
};

#define RING_BYTES_MAX (1U << 30)

struct sl_bpf sl_bpf;

/* Context: once, before any other call. */
static void bpf_init(void)
{
	sl_lock_init(&sl_bpf.objects_lock);
	sl_lock_init(&sl_bpf.timers_lock);
}

/* Context: no policy is loaded, no CPU is in the core any more. */
static void bpf_exit(void)
{
	__builtin_memset(&sl_bpf, 0, sizeof(sl_bpf));
}

static u8 *entry_at(const struct sl_map *map, u64 idx)
{
	return map->entries + idx * map->entry_bytes;
}

static u32 *next_of(u8 *entry)
{
	return (u32 *)entry;
}

static u32 hash_key(const struct sl_map *map, const void *key)
{
	const u8 *bytes = key;
	u64 h = 0xcbf29ce484222325ULL;
	u32 word;

	if (map->key_bytes == 4) {
		__builtin_memcpy(&word, key, 4);
		h = word * 0x9e3779b97f4a7c15ULL;
		return (u32)(h >> 32) & (map->nr_buckets - 1);
	}
	for (u32 i = 0; i < map->key_bytes; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ULL;
	return (u32)(h ^ (h >> 32)) & (map->nr_buckets - 1);
}

/* Context: map->lock held. Return: where the number of the entry is, 0 there if there is none. */
static u32 *find_link(const struct sl_map *map, const void *key)
{
	u32 *link = &map->buckets[hash_key(map, key)];

	while (*link) {
		u8 *entry = entry_at(map, *link - 1);

		if (!__builtin_memcmp(entry + map->key_off, key, map->key_bytes))
			break;
		link = next_of(entry);
	}
	return link;
}

void *sl_map_lookup_percpu(struct sl_map *map, const void *key, u32 cpu)
{
	u32 idx;
	u32 nr;

	SL_ASSERT(map);
	if (map->type == BPF_MAP_TYPE_HASH) {
		sl_lock(&map->lock);
		nr = *find_link(map, key);
		sl_unlock(&map->lock);
		return nr ? entry_at(map, nr - 1) + map->value_off : NULL;
	}
	__builtin_memcpy(&idx, key, sizeof(idx));
	if (idx >= map->max_entries || cpu >= sl_core.nr_cpus)
		return NULL;
	if (map->type == BPF_MAP_TYPE_PERCPU_ARRAY)
		return entry_at(map, (u64)cpu * map->max_entries + idx);
	if (map->type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		return *(void **)entry_at(map, idx);
	return map->type == BPF_MAP_TYPE_ARRAY ? entry_at(map, idx) : NULL;
}

void *sl_map_lookup(struct sl_map *map, const void *key)
{
	return sl_map_lookup_percpu(map, key, (u32)sl_host_cpu());
}

static void map_has_timers(struct sl_map *map)
{
	WRITE_ONCE(map->has_timers, true);
}

/* Linux frees what a value holds when it is overwritten or deleted. */
static void free_fields(struct sl_map *map, const void *value)
{
	if (READ_ONCE(map->has_timers))
		timers_forget(value, map->value_bytes);
}

static void overwrite(struct sl_map *map, void *at, const void *value)
{
	__builtin_memcpy(at, value, map->value_bytes);
	free_fields(map, at);
}

/* Context: map->lock held, the key is not in the map, whose chain ends at @link. */
static long insert_entry(struct sl_map *map, u32 *link, const void *key, const void *value)
{
	u32 nr = map->free_first;
	u8 *entry;

	if (sl_host_helper_fails())
		return -ENOMEM;
	if (nr)
		map->free_first = *next_of(entry_at(map, nr - 1));
	else if (map->nr_touched < map->max_entries)
		nr = ++map->nr_touched;
	else
		return -E2BIG;
	entry = entry_at(map, nr - 1);
	__builtin_memcpy(entry + map->key_off, key, map->key_bytes);
	__builtin_memcpy(entry + map->value_off, value, map->value_bytes);
	*next_of(entry) = 0;
	*link = nr;
	return 0;
}

long sl_map_update(struct sl_map *map, const void *key, const void *value, u64 flags)
{
	long err = 0;
	u32 *link;
	void *at;

	SL_ASSERT(map);
	if (map->type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		return -EINVAL;
	if (map->type != BPF_MAP_TYPE_HASH) {
		at = sl_map_lookup(map, key);
		if (!at)
			return map->type == BPF_MAP_TYPE_TASK_STORAGE ||
					       map->type == BPF_MAP_TYPE_CGRP_STORAGE ?
				       -EOPNOTSUPP :
				       -E2BIG;
		if (flags & BPF_NOEXIST)
			return -EEXIST;
		overwrite(map, at, value);
		return 0;
	}
	sl_lock(&map->lock);
	link = find_link(map, key);
	if (*link && (flags & BPF_NOEXIST))
		err = -EEXIST;
	else if (*link)
		overwrite(map, entry_at(map, *link - 1) + map->value_off, value);
	else
		err = flags & BPF_EXIST ? -ENOENT : insert_entry(map, link, key, value);
	sl_unlock(&map->lock);
	return err;
}

void *sl_hash_entry(struct sl_map *map, u32 nr, const void **key)
{
	u8 *entry = entry_at(map, nr);

	if (nr >= map->nr_touched)
		return NULL;
	*key = entry + map->key_off;
	return *find_link(map, *key) == nr + 1 ? entry + map->value_off : NULL;
}

struct sl_map_info sl_map_info(const struct sl_map *map)
{
	u32 nr_in_ring = (u32)(map->produced - map->consumed);

	return (struct sl_map_info){ map->type, map->key_bytes, map->value_bytes, map->max_entries,
				     map->nr_queued + nr_in_ring };
}

static bool is_queue(const struct sl_map *map)
{
	return map->type == BPF_MAP_TYPE_QUEUE || map->type == BPF_MAP_TYPE_STACK;
}

static u8 *queued_at(const struct sl_map *map, u32 i)
{
	return entry_at(map, ((u64)map->first + i) % map->max_entries);
}

/* @flags: BPF_EXIST: of a full one the oldest makes room. */
long sl_map_push(struct sl_map *map, const void *value, u64 flags)
{
	long err = 0;

	SL_ASSERT(map);
	if (!is_queue(map) || (flags != BPF_ANY && flags != BPF_EXIST))
		return -EINVAL;
	/* On Linux where its lock is not got in time. */
	if (sl_host_helper_fails())
		return -EBUSY;
	sl_lock(&map->lock);
	if (map->nr_queued == map->max_entries) {
		err = flags == BPF_EXIST ? 0 : -E2BIG;
		if (!err) {
			map->first = (map->first + 1) % map->max_entries;
			map->nr_queued--;
		}
	}
	if (!err)
		__builtin_memcpy(queued_at(map, map->nr_queued++), value, map->value_bytes);
	sl_unlock(&map->lock);
	return err;
}

/* What an empty one gives is zero, as on Linux. */
static long take_or_see(struct sl_map *map, void *value, bool is_taken)
{
	bool is_stack;
	long err = 0;

	SL_ASSERT(map);
	if (!is_queue(map))
		return -EINVAL;
	is_stack = map->type == BPF_MAP_TYPE_STACK;
	sl_lock(&map->lock);
	if (!map->nr_queued) {
		__builtin_memset(value, 0, map->value_bytes);
		err = -ENOENT;
	} else {
		__builtin_memcpy(value, queued_at(map, is_stack ? map->nr_queued - 1 : 0),
				 map->value_bytes);
		if (is_taken) {
			map->first = (map->first + !is_stack) % map->max_entries;
			map->nr_queued--;
		}
	}
	sl_unlock(&map->lock);
	return err;
}

long sl_map_pop(struct sl_map *map, void *value)
{
	return take_or_see(map, value, true);
}

long sl_map_peek(struct sl_map *map, void *value)
{
	return take_or_see(map, value, false);
}

long sl_map_delete(struct sl_map *map, const void *key)
{
	u32 *link;
	u32 nr;

	SL_ASSERT(map);
	if (map->type != BPF_MAP_TYPE_HASH)
		return -EINVAL;
	sl_lock(&map->lock);
	link = find_link(map, key);
	nr = *link;
	if (nr) {
		u8 *entry = entry_at(map, nr - 1);

		free_fields(map, entry + map->value_off);
		*link = *next_of(entry);
		*next_of(entry) = map->free_first;
		map->free_first = nr;
	}
	sl_unlock(&map->lock);
	return nr ? 0 : -ENOENT;
}

static int set_sizes(struct sl_map *map)
{
	u32 head_bytes = 0;

	map->nr_slots = map->max_entries;
	switch (map->type) {
	case BPF_MAP_TYPE_HASH:
		/* A policy's timer callback gets a pointer to the key. */
		map->key_off = map->key_bytes > 4 ? 8 : 4;
		head_bytes = map->key_off + map->key_bytes;
		break;
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		break;
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		map->nr_slots *= sl_core.nr_cpus;
		break;
	case BPF_MAP_TYPE_ARENA:
		return map->max_entries ? 0 : -EINVAL;
	case BPF_MAP_TYPE_RINGBUF:
	case BPF_MAP_TYPE_USER_RINGBUF:
		if (!map->max_entries || map->max_entries > RING_BYTES_MAX)
			return -EINVAL;
		/* As libbpf: the next power of two, of whole pages. */
		map->max_entries = 4096U << (map->max_entries > 4096 ?
						     20 - __builtin_clz(map->max_entries - 1) :
						     0);
		map->nr_slots = 2; /* see ring.c */
		map->key_bytes = sizeof(u32);
		map->value_bytes = map->max_entries;
		break;
	case BPF_MAP_TYPE_TASK_STORAGE:
		head_bytes = sizeof(u32);
		map->nr_slots = sl_core.tasks_max;
		break;
	case BPF_MAP_TYPE_CGRP_STORAGE:
		head_bytes = sizeof(u32);
		map->nr_slots = SL_CGROUPS_MAX;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!map->nr_slots || !map->value_bytes)
		return -EINVAL;
	if (map->type != BPF_MAP_TYPE_HASH && map->key_bytes != (is_queue(map) ? 0 : sizeof(u32)))
		return -EINVAL;
	/* As on Linux: the number of buckets is a power of two that fits. */
	if (map->type == BPF_MAP_TYPE_HASH && map->max_entries > 1U << 31)
		return -E2BIG;
	map->value_off = (head_bytes + 7) & ~7U;
	map->entry_bytes = (map->value_off + map->value_bytes + 7) & ~7U;
	return 0;
}

static int create_map(struct sl_map *map, const struct sl_map_site *site)
{
	int err;

	*map = (struct sl_map){
		.var = site->map,
		.name = site->name[0] == '&' ? site->name + 1 : site->name,
		.type = site->type,
		.key_bytes = site->key_bytes,
		.value_bytes = (u32)site->value_bytes,
		.max_entries = site->max_entries,
	};
	sl_lock_init(&map->lock);
	err = set_sizes(map);
	if (err)
		return err;
	if (map->type == BPF_MAP_TYPE_ARENA)
		return 0;
	map->entries = sl_host_alloc(map->nr_slots * map->entry_bytes);
	if (!map->entries)
		return -ENOMEM;
	if (map->type != BPF_MAP_TYPE_HASH)
		return 0;
	map->nr_buckets = 1;
	while (map->nr_buckets < map->max_entries)
		map->nr_buckets *= 2;
	map->buckets = sl_host_alloc(map->nr_buckets * sizeof(u32));
	return map->buckets ? 0 : -ENOMEM;
}

/*
 * Create a map and, of an array of maps, those that its variable names. A site whose
 * map has been seen is skipped. Return: 0, or an error that maps_create() returns.
 */
static int add_map(struct sl_map *maps, u32 *nr, const struct sl_map_site *site)
{
	bool is_outer = site->type == BPF_MAP_TYPE_ARRAY_OF_MAPS;
	struct sl_map_site own = *site;
	struct sl_map *map;
	void **inner;
	int err;

	for (u32 i = 0; i < *nr; i++) {
		if (maps[i].var == site->map)
			return 0;
	}
	if (*nr == SL_MAPS_MAX)
		return -E2BIG;
	if (is_outer)
		own.value_bytes = sizeof(void *);
	map = &maps[(*nr)++];
	err = create_map(map, &own);
	if (err)
		return err;
	*(struct sl_map **)site->map = map;
	if (!is_outer)
		return 0;
	inner = (void **)((u8 *)site->map + site->var_bytes) - SL_INNER_MAX;
	for (u32 i = 0; !err && i < SL_INNER_MAX && inner[i]; i++) {
		if (i == map->max_entries)
			return -E2BIG;
		*(void **)entry_at(map, i) = inner[i];
		own = (struct sl_map_site){
			.map = inner[i],
			.name = site->name,
			.type = (u32)(site->value_bytes >> 56),
			.value_bytes = site->value_bytes >> 32 & 0xffffff,
			.max_entries = (u32)site->value_bytes,
		};
		err = add_map(maps, nr, &own);
	}
	return err;
}

/* A map of the policy's own that only has the name has no room for them. */
static bool is_attr_map(const struct sl_map *map)
{
	return __builtin_strcmp(map->name, "task_attrs") == 0 && map->type == BPF_MAP_TYPE_HASH &&
	       map->key_bytes == sizeof(s32) && map->value_bytes == sizeof(struct task_attr);
}

static void destroy_map(struct sl_map *map)
{
	*(struct sl_map **)map->var = NULL;
	arena_free(map);
	sl_host_free(map->entries, map->nr_slots * map->entry_bytes);
	sl_host_free(map->buckets, map->nr_buckets * sizeof(u32));
}

static void destroy_maps(struct sl_map *maps, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		struct sl_map *inner;

		while ((inner = maps[i].inner)) {
			maps[i].inner = inner->next_inner;
			destroy_map(inner);
			sl_host_free(inner, sizeof(*inner) + sizeof(inner));
		}
		destroy_map(&maps[i]);
	}
	sl_host_free(maps, SL_MAPS_MAX * sizeof(struct sl_map));
}

/* As a user half does. Return: 0; -EINVAL: not such an array, or an element that it has. */
int sl_map_create_inner(struct sl_map *outer, u32 element, u32 type, u32 value_bytes,
			u32 max_entries)
{
	struct sl_map_site site = {
		.name = outer->name,
		.type = type,
		.value_bytes = value_bytes,
		.max_entries = max_entries,
	};
	struct sl_map *inner;
	int err;

	if (outer->type != BPF_MAP_TYPE_ARRAY_OF_MAPS || element >= outer->max_entries ||
	    *(void **)entry_at(outer, element))
		return -EINVAL;
	/* Behind it the variable that a policy's pointer points to. */
	inner = sl_host_alloc(sizeof(*inner) + sizeof(inner));
	if (!inner)
		return -ENOMEM;
	site.map = inner + 1;
	err = create_map(inner, &site);
	if (err) {
		sl_host_free(inner, sizeof(*inner) + sizeof(inner));
		return err;
	}
	*(struct sl_map **)site.map = inner;
	*(void **)entry_at(outer, element) = site.map;
	inner->next_inner = outer->inner;
	outer->inner = inner;
	return 0;
}

/**
 * maps_create - allocate every map that a policy uses
 * @policy: its map variables must be pristine
 *
 * Return: 0; -E2BIG for too many maps; -EOPNOTSUPP for an unknown type; -EINVAL
 * for impossible sizes; -ENOMEM. On failure none is left.
 */
static int maps_create(const struct sl_policy *policy)
{
	struct sl_map *maps = sl_host_alloc(SL_MAPS_MAX * sizeof(struct sl_map));
	u32 nr = 0;
	int err = 0;

	if (!maps)
		return -ENOMEM;
	for (struct sl_map_site *s = policy->sites; !err && s && s < policy->sites_end; s++)
		err = s->map ? add_map(maps, &nr, s) : 0;
	if (err) {
		destroy_maps(maps, nr);
		return err;
	}
	sl_lock(&sl_core.tables_lock);
	sl_bpf.maps = maps;
	WRITE_ONCE(sl_bpf.nr_maps, nr);
	for (u32 i = 0; i < nr; i++) {
		if (is_attr_map(&maps[i]))
			sl_bpf.attr_map = &maps[i];
	}
	sl_unlock(&sl_core.tables_lock);
	return 0;
}

static void maps_destroy(void)
{
	struct sl_map *maps = sl_bpf.maps;
	u32 nr = sl_bpf.nr_maps;

	sl_lock(&sl_core.tables_lock);
	sl_bpf.maps = NULL;
	sl_bpf.attr_map = NULL;
	WRITE_ONCE(sl_bpf.nr_maps, 0);
	sl_unlock(&sl_core.tables_lock);
	destroy_maps(maps, nr);
}

/*
 * The map element that @value points into, for a timer's callback. An array's
 * key is the element's number, which @number has room for.
 * Return: the map, or NULL if @value is in none.
 */
static struct sl_map *map_of_value(const void *value, u32 *number, void **key, void **element)
{
	const u8 *at = value;

	for (u32 i = 0; i < sl_bpf.nr_maps; i++) {
		struct sl_map *map = &sl_bpf.maps[i];
		u64 off = (u64)(at - map->entries);
		u8 *entry;

		if (at < map->entries || off >= map->nr_slots * map->entry_bytes)
			continue;
		entry = entry_at(map, off / map->entry_bytes);
		*element = entry + map->value_off;
		if (map->type == BPF_MAP_TYPE_HASH) {
			*key = entry + map->key_off;
		} else {
			*number = (u32)(off / map->entry_bytes);
			*key = number;
		}
		return map;
	}
	return NULL;
}

/* @key of @map as a number: of its first eight bytes. */
static inline u64 key_number(const struct sl_map *map, const void *key)
{
	u64 number = 0;

	__builtin_memcpy(&number, key, map->key_bytes < 8 ? map->key_bytes : 8);
	return number;
}

/* The map that @value points into, for a message. */
static const char *map_name_of_value(const void *value)
{
	void *key, *element;
	u32 number;
	const struct sl_map *map = map_of_value(value, &number, &key, &element);

	return map ? map->name : "a global variable";
}
