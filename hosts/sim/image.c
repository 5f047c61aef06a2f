/* SPDX-License-Identifier: MIT */
/*
 * image.c - what a scheduler's launch() leaves behind, for a kernel, which cannot run it.
 *
 * `--image FILE` ends the run after launch(). The file then has a record for each part of a
 * variable that launch() has changed, and for each entry of a map that it has filled:
 *
 *	data NAME SIZE 8 BYTES\n OFFSET VALUE \n
 *	map NAME CPU KEY_BYTES VALUE_BYTES\n KEY VALUE \n	(CPU: -1, or of a per-CPU map)
 *	inner NAME -1 4 16\n KEY SIZES \n			(a map in an array of maps)
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
	char *before;
	struct variable *next;
};

/* Parts of a variable that are nearer to each other are one record. */
#define GAP_BYTES 64

static const char *path;
static FILE *image;

static struct variable *read_variables(void)
{
	const struct link_map *loaded = sim_policy_file.handle;
	struct variable *first = NULL, **end = &first, v = { .next = NULL };
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
static void write_record(const char *kind, const char *name, s64 of, const void *key,
			 u32 key_bytes, const void *value, u64 value_bytes)
{
	fprintf(image, "%s %s %lld %u %llu\n", kind, name, (long long)of, key_bytes,
		(unsigned long long)value_bytes);
	fwrite(key, 1, key_bytes, image);
	fwrite(value, 1, value_bytes, image);
	fputc('\n', image);
}

static void write_variable(const struct variable *v)
{
	u64 start = 0, end = 0, i;

	for (i = 0; i <= v->bytes; i++) {
		if (end && (i == v->bytes || i - end > GAP_BYTES)) {
			write_record("data", v->name, (s64)v->bytes, &start, sizeof(start),
				     v->at + start, end - start);
			end = 0;
		}
		if (i < v->bytes && v->before[i] != v->at[i]) {
			start = end ? start : i;
			end = i + 1;
		}
	}
}

static bool is_zero(const u8 *bytes, u64 nr)
{
	while (nr && !*bytes) {
		bytes++;
		nr--;
	}
	return !nr;
}

/* One that the policy's source declares lies in its file; the kernel's loader makes it. */
static bool is_declared(const void *inner)
{
	Dl_info info;

	return dladdr(inner, &info);
}

static void write_array(struct sl_map *map, const struct sl_map_site *site, const char *name)
{
	bool is_percpu = site->type == BPF_MAP_TYPE_PERCPU_ARRAY;
	bool is_outer = site->type == BPF_MAP_TYPE_ARRAY_OF_MAPS;

	for (u32 cpu = 0; cpu < (is_percpu ? sim.options->nr_cpus : 1); cpu++) {
		for (u32 key = 0; key < site->max_entries; key++) {
			void *value = sl_map_lookup_percpu(map, &key, cpu);

			if (is_outer && value && !is_declared(value)) {
				struct sl_map_info of = sl_map_info(*(struct sl_map **)value);

				write_record("inner", name, -1, &key, sizeof(key), &of,
					     offsetof(struct sl_map_info, nr_queued));
			} else if (!is_outer && !is_zero(value, site->value_bytes)) {
				write_record("map", name, is_percpu ? (s32)cpu : -1, &key,
					     sizeof(key), value, site->value_bytes);
			}
		}
	}
}

static void write_map(const struct sl_map_site *site)
{
	struct sl_map *map = *(struct sl_map **)site->map;
	const char *name = site->name + (site->name[0] == '&');
	const void *key;
	void *at;

	if (site->type == BPF_MAP_TYPE_ARRAY || site->type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	    site->type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		write_array(map, site, name);
	for (u32 nr = 0; site->type == BPF_MAP_TYPE_HASH && nr < site->max_entries; nr++) {
		at = sl_hash_entry(map, nr, &key);
		if (at)
			write_record("map", name, -1, key, site->key_bytes, at, site->value_bytes);
	}
	if (sl_map_info(map).nr_queued) {
		fprintf(stderr, "it fills %s, and queues and arenas are not sent to a kernel\n",
			name);
		exit(1);
	}
}

static int start(void)
{
	const struct sl_policy *policy = sim_policy_file.policy;
	struct variable *v = read_variables();
	int (*launch)(void) = sim_policy_file.launch;
	int err = launch ? launch() : 0;

	if (err)
		return err;
	image = fopen(path, "wb");
	if (!image)
		return -errno;
	for (; v; v = v->next)
		write_variable(v);
	for (struct sl_map_site *s = policy->sites; s < policy->sites_end; s++) {
		struct sl_map_site *first = policy->sites;

		/* Each call on a map is a site. */
		while (first < s && first->map != s->map)
			first++;
		if (s->map && first == s)
			write_map(s);
	}
	if (fclose(image))
		return -EIO;
	exit(0);
}

int (*sim_image(const char *to))(void)
{
	path = to;
	return start;
}
