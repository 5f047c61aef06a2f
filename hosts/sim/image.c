/* SPDX-License-Identifier: MIT */
/*
 * image.c - what a scheduler's launch() leaves behind, for a kernel, which cannot run it.
 *
 * `--image FILE` ends the run after launch(). The file then has a record for each part of a
 * variable or an arena that launch() has changed, for each entry of a map that it has filled, and
 * for each program that it has called by SL_CALL():
 *
 *	data NAME SIZE 8 BYTES\n OFFSET VALUE \n
 *	arena NAME SIZE 8 BYTES\n OFFSET VALUE \n
 *	map NAME CPU KEY_BYTES VALUE_BYTES\n KEY VALUE \n	(CPU: -1, or of a per-CPU map)
 *	inner NAME -1 4 16\n KEY SIZES \n			(a map in an array of maps)
 *	call NAME -1 BYTES BYTES\n INPUT OUTPUT \n
 *
 * What a program changes is none of launch()'s: the kernel's copy does that. An address in
 * an arena is written as SL_ARENA_AT and its place in the arena, which the loader changes into
 * the kernel's.
 *
 * Standard input lists the variables: NAME ADDRESS BYTES, in hexadecimal, as in the policy's file.
 *
 * Called by core/load.c in place of launch(). Read next: hosts/linux/load/launch.c, which
 * reads the file; python/schedlab/hosts/user_half.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct variable {
	char name[128];
	char *at;
	u64 bytes;
	u8 *before;
	struct variable *next;
	struct sl_map *arena; /* it is pages of this one; NULL: it is a variable */
	u64 start;	      /* in the arena */
};

/* Parts of a variable that are nearer to each other are one record. */
#define GAP_BYTES 64
#define SL_ARENA_AT (1ULL << 44)

static const char *path;
static FILE *image; /* NULL: what has changed is none of launch()'s */
static struct variable *variables;
static u32 **seen; /* of each site of a map and entry: a hash of what was there; 0: nothing */

static struct variable *read_variables(void)
{
	const struct link_map *loaded = sim_policy_file.handle;
	struct variable *first = NULL, **end = &first, v = { .at = NULL };
	unsigned long address, bytes;

	while (scanf("%127s %lx %lx", v.name, &address, &bytes) == 3) {
		v.at = (char *)(loaded->l_addr + address);
		v.bytes = bytes;
		v.before = malloc(bytes);
		*end = malloc(sizeof(v));
		SL_ASSERT(*end && v.before);
		memcpy(v.before, v.at, bytes);
		**end = v;
		end = &(*end)->next;
	}
	return first;
}

/* @of: the variable's size, or the CPU. */
static void write_record(const char *kind, const char *name, s64 of, const void *key, u32 key_bytes,
			 const void *value, u64 value_bytes)
{
	if (!image)
		return;
	fprintf(image, "%s %s %lld %u %llu\n", kind, name, (long long)of, key_bytes,
		(unsigned long long)value_bytes);
	fwrite(key, 1, key_bytes, image);
	fwrite(value, 1, value_bytes, image);
	fputc('\n', image);
}

/* Words that are addresses in arenas get what the loader finds them by. */
static void translate(void *words, u64 bytes)
{
	const struct variable *v;
	u64 word, i;

	for (i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, (u8 *)words + i, sizeof(word));
		for (v = variables; v; v = v->next) {
			if (!v->arena || word - (u64)(uintptr_t)v->at >= v->bytes)
				continue;
			word += SL_ARENA_AT + v->start - (u64)(uintptr_t)v->at;
			memcpy((u8 *)words + i, &word, sizeof(word));
			break;
		}
	}
}

static void write_part(const struct variable *v, u64 start, u64 end)
{
	u64 bytes = end - start, at = v->start + start;
	u8 *value = malloc(bytes);

	SL_ASSERT(value);
	memcpy(value, v->at + start, bytes);
	if (v->arena)
		translate(value, bytes);
	write_record(v->arena ? "arena" : "data", v->name, (s64)v->bytes, &at, sizeof(at), value,
		     bytes);
	free(value);
}

/* Of an arena whole words, and nothing between them: that is a program's. */
static void write_variable(const struct variable *v)
{
	u64 start = 0, end = 0, unit = v->arena ? 8 : 1, gap = v->arena ? 0 : GAP_BYTES, i;

	for (i = 0; i <= v->bytes; i += unit) {
		if (end && (i == v->bytes || i - end > gap)) {
			write_part(v, start, end);
			end = 0;
		}
		if (i < v->bytes && memcmp(v->before + i, v->at + i, unit)) {
			start = end ? start : i;
			end = i + unit;
		}
	}
	memcpy(v->before, v->at, v->bytes);
}

/* Return: whether an entry is not what it was; NULL: there is none. */
static bool has_changed(u32 *before, const u8 *value, u64 bytes)
{
	u32 was = *before, hash = 0;

	/* Zeros, which are there from the start, are nothing. */
	while (value && bytes--)
		hash = (hash ^ *value++) * 0x01000193;
	*before = hash;
	return hash != was;
}

/* One that the policy's source declares lies in its file; the kernel's loader makes it. */
static bool is_declared(const void *inner)
{
	Dl_info info;

	return dladdr(inner, &info);
}

static void write_array(struct sl_map *map, const struct sl_map_site *site, const char *name,
			u32 *before)
{
	bool is_percpu = site->type == BPF_MAP_TYPE_PERCPU_ARRAY;
	bool is_outer = site->type == BPF_MAP_TYPE_ARRAY_OF_MAPS;

	for (u32 cpu = 0; cpu < (is_percpu ? sim.options->nr_cpus : 1); cpu++) {
		for (u32 key = 0; key < site->max_entries; key++, before++) {
			void *value = sl_map_lookup_percpu(map, &key, cpu);
			bool is_new = has_changed(before, is_outer ? (u8 *)&value : value,
						  is_outer ? sizeof(value) : site->value_bytes);

			if (is_new && is_outer && !is_declared(value)) {
				struct sl_map_info of = sl_map_info(*(struct sl_map **)value);

				write_record("inner", name, -1, &key, sizeof(key), &of,
					     offsetof(struct sl_map_info, nr_queued));
			} else if (is_new && !is_outer) {
				write_record("map", name, is_percpu ? (s32)cpu : -1, &key,
					     sizeof(key), value, site->value_bytes);
			}
		}
	}
}

static void write_map(const struct sl_map_site *site, u32 *before)
{
	struct sl_map *map = *(struct sl_map **)site->map;
	const char *name = site->name + (site->name[0] == '&');
	const void *key;
	void *at;

	if (site->type == BPF_MAP_TYPE_ARRAY || site->type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	    site->type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		write_array(map, site, name, before);
	for (u32 nr = 0; site->type == BPF_MAP_TYPE_HASH && nr < site->max_entries; nr++) {
		at = sl_hash_entry(map, nr, &key);
		if (has_changed(&before[nr], at, site->value_bytes) && at)
			write_record("map", name, -1, key, site->key_bytes, at, site->value_bytes);
	}
	if (site->type != BPF_MAP_TYPE_ARENA && sl_map_info(map).nr_queued) {
		fprintf(stderr, "it fills %s, and queues are not sent to a kernel\n", name);
		exit(1);
	}
}

static bool is_taken(const struct variable *v)
{
	u64 bytes;
	void *at = NULL;

	for (u32 nr = 0; sl_arena_pages(v->arena, nr, &at, &bytes) != ~0ULL && at != v->at; nr++)
		;
	return at == v->at;
}

/* Pages that were taken since the last time are variables, too; those given back are none. */
static void read_arena(struct sl_map *map, const char *name)
{
	struct variable **link = &variables, *v;
	u64 bytes, start;
	void *at;

	while (*link) {
		if ((*link)->arena == map && !is_taken(*link))
			*link = (*link)->next;
		else
			link = &(*link)->next;
	}
	for (u32 nr = 0; (start = sl_arena_pages(map, nr, &at, &bytes)) != ~0ULL; nr++) {
		for (v = variables; v && v->at != at; v = v->next)
			;
		if (v)
			continue;
		v = malloc(sizeof(*v));
		SL_ASSERT(v);
		*v = (struct variable){ .at = at,
					.bytes = bytes,
					.before = calloc(1, bytes),
					.next = variables,
					.arena = map,
					.start = start };
		SL_ASSERT(v->before);
		snprintf(v->name, sizeof(v->name), "%s", name);
		variables = v;
	}
}

/* Writes what has changed since the last time; without a file it is known from now on. */
static void write_changes(void)
{
	const struct sl_policy *policy = sim_policy_file.policy;
	const struct sl_map_site *first = policy->sites, *s, *other;
	const struct variable *v;

	for (s = first; s < policy->sites_end; s++) {
		/* Each call on a map is a site. */
		for (other = first; other < s && other->map != s->map; other++)
			;
		if (!s->map || other < s)
			continue;
		if (s->type == BPF_MAP_TYPE_ARENA)
			read_arena(*(struct sl_map **)s->map, s->name + (s->name[0] == '&'));
		if (!seen[s - first])
			seen[s - first] = calloc((u64)s->max_entries + 1,
						 sizeof(u32) * sim.options->nr_cpus);
		SL_ASSERT(seen[s - first]);
		write_map(s, seen[s - first]);
	}
	for (v = variables; v; v = v->next)
		write_variable(v);
}

static int launch_call(const char *name, int (*program)(void *input), void *input, u32 bytes)
{
	u8 *both = calloc(2, bytes + 1);
	FILE *file = image;
	int err;

	SL_ASSERT(both);
	write_changes();
	memcpy(both, input, bytes);
	translate(both, bytes);
	image = NULL;
	err = program(input);
	write_changes();
	image = file;
	memcpy(both + bytes, input, bytes);
	translate(both + bytes, bytes);
	write_record("call", name, -1, both, bytes, both + bytes, bytes);
	free(both);
	return err;
}

static int start(void)
{
	const struct sl_policy *policy = sim_policy_file.policy;
	int (*launch)(void) = sim_policy_file.launch;
	int err;

	image = fopen(path, "wb");
	if (!image)
		return -errno;
	variables = read_variables();
	seen = calloc((u64)(policy->sites_end - policy->sites) + 1, sizeof(*seen));
	SL_ASSERT(seen);
	sl_policy_launch_call = launch_call;
	err = launch ? launch() : 0;
	if (!err)
		write_changes();
	if (fclose(image) && !err)
		err = -EIO;
	if (!err)
		exit(0);
	remove(path);
	return err;
}

int (*sim_image(const char *to))(void)
{
	path = to;
	return start;
}
