/* SPDX-License-Identifier: MIT */
/*
 * launch.c - what the user half of a published scheduler does between opening and attaching it.
 *
 * Its constants `__SCX_NAME` get the number that NAME has in this kernel; its variables and maps get
 * what its launch() left in them elsewhere (hosts/sim/image.c); its SEC("syscall") programs run once
 * it is loaded.
 *
 * Read next: policy.c, which calls it; policies/launch/.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

#define PREFIX "__SCX_"
#define PREFIX_BYTES 2		/* what is before a name of the kernel's */

/* Return: whether the kernel has a constant of that name. */
static bool find_constant(const struct btf *kernel, const char *name, u64 *value)
{
	u32 id;
	int i;

	for (id = 1; id < btf__type_cnt(kernel); id++) {
		const struct btf_type *type = btf__type_by_id(kernel, id);
		bool is_wide = btf_is_enum64(type);

		if (!is_wide && !btf_is_enum(type))
			continue;
		for (i = 0; i < btf_vlen(type); i++) {
			const struct btf_enum64 *wide = btf_enum64(type) + i;
			const struct btf_enum *small = btf_enum(type) + i;
			u32 at = is_wide ? wide->name_off : small->name_off;

			if (strcmp(btf__name_by_offset(kernel, at), name))
				continue;
			*value = is_wide ? btf_enum64_value(wide) : (u64)small->val;
			return true;
		}
	}
	return false;
}

/* The name of variable @i of a section of data. */
static const char *name_of(const struct btf *btf, const struct btf_type *section, int i)
{
	const struct btf_var_secinfo *var = btf_var_secinfos(section) + i;

	return btf__name_by_offset(btf, btf__type_by_id(btf, var->type)->name_off);
}

void launch_constants(struct policy *policy)
{
	const struct btf *btf = bpf_object__btf(policy_object(policy));
	s32 id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, id) : NULL;
	struct btf *kernel = NULL;
	u64 value;
	int i;

	for (i = 0; section && i < btf_vlen(section); i++) {
		const char *name = name_of(btf, section, i);

		if (strncmp(name, PREFIX, strlen(PREFIX)))
			continue;
		kernel = kernel ? kernel : btf__load_vmlinux_btf();
		/* One that it does not have stays 0, by which a scheduler knows. */
		if (kernel && find_constant(kernel, name + PREFIX_BYTES, &value))
			policy_write(policy, name, value);
	}
	btf__free(kernel);
}

struct record {
	char kind[8];
	char name[128];
	int of; /* the variable's size; the CPU, -1: not of a per-CPU map */
	u32 key_bytes, value_bytes;
	char *key, *value;
};

/* Return: whether there was one; its bytes are to be freed, by its key. */
static bool read_record(FILE *file, struct record *r)
{
	u64 bytes;

	if (fscanf(file, "%7s %127s %d %u %u", r->kind, r->name, &r->of, &r->key_bytes,
		   &r->value_bytes) != 5 ||
	    fgetc(file) != '\n')
		return false;
	bytes = (u64)r->key_bytes + r->value_bytes;
	r->key = malloc(bytes + 1);
	if (r->key && fread(r->key, 1, bytes + 1, file) == bytes + 1) {
		r->value = r->key + r->key_bytes;
		return true;
	}
	free(r->key);
	return false;
}

/* One CPU's part of an entry: user space reads and writes those of all. */
static int update_percpu(struct bpf_map *map, const struct record *r)
{
	u32 stride = (r->value_bytes + 7) & ~7U;
	int fd = bpf_map__fd(map), nr_cpus = libbpf_num_possible_cpus(), failed;
	char *values = nr_cpus > r->of ? calloc(nr_cpus, stride) : NULL;

	if (!values)
		return -EINVAL;
	failed = bpf_map_lookup_elem(fd, r->key, values);
	memcpy(values + (u64)r->of * stride, r->value, r->value_bytes);
	failed = failed ? failed : bpf_map_update_elem(fd, r->key, values, BPF_ANY);
	free(values);
	return failed;
}

/* A map in an array of maps: its type, and sizes of key and value, and how many entries. */
static int create_inner(struct bpf_map *map, const struct record *r)
{
	u32 sizes[4];
	int fd, failed;

	if (r->value_bytes != sizeof(sizes))
		return -EINVAL;
	memcpy(sizes, r->value, sizeof(sizes));
	fd = bpf_map_create(sizes[0], NULL, sizes[1], sizes[2], sizes[3], NULL);
	if (fd < 0)
		return fd;
	failed = bpf_map_update_elem(bpf_map__fd(map), r->key, &fd, BPF_ANY);
	close(fd);
	return failed;
}

static int write_variable(struct policy *policy, const struct record *r)
{
	u32 bytes;
	u64 offset;
	char *at = policy_variable(policy, r->name, &bytes);

	if (!at || bytes != (u32)r->of || r->key_bytes != sizeof(offset))
		return -EINVAL;
	memcpy(&offset, r->key, sizeof(offset));
	memcpy(at + offset, r->value, r->value_bytes);
	return 0;
}

static int write_map(struct policy *policy, const struct record *r)
{
	struct bpf_map *map = bpf_object__find_map_by_name(policy_object(policy), r->name);

	if (!map || bpf_map__key_size(map) != r->key_bytes)
		return -EINVAL;
	if (!strcmp(r->kind, "inner"))
		return create_inner(map, r);
	if (bpf_map__value_size(map) != r->value_bytes)
		return -EINVAL;
	return r->of >= 0 ? update_percpu(map, r) :
			    bpf_map_update_elem(bpf_map__fd(map), r->key, r->value, BPF_ANY);
}

#define ARENA_AT (1ULL << 44) /* as hosts/sim/image.c writes addresses */

/* Where an object's arena begins, which libbpf maps as it loads it; NULL: it has none. */
static char *find_arena(struct bpf_object *object, u64 *bytes)
{
	struct bpf_map *map;
	size_t nr_globals;

	bpf_object__for_each_map(map, object) {
		if (bpf_map__type(map) != MAP_TYPE_ARENA)
			continue;
		*bytes = bpf_map__max_entries(map) * (u64)sysconf(_SC_PAGESIZE);
		return bpf_map__initial_value(map, &nr_globals);
	}
	*bytes = 0;
	return NULL;
}

/* Words that are addresses in the arena, as the kernel has them. */
static void translate(struct bpf_object *object, char *words, u64 bytes)
{
	u64 arena_bytes, word, i;
	char *arena = find_arena(object, &arena_bytes);

	for (i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, words + i, sizeof(word));
		if (word - ARENA_AT >= arena_bytes)
			continue;
		word += (u64)arena - ARENA_AT;
		memcpy(words + i, &word, sizeof(word));
	}
}

/* The kernel has a page where one is written to. */
static int write_arena(struct bpf_object *object, const struct record *r)
{
	u64 bytes, offset;
	char *arena = find_arena(object, &bytes);

	if (!arena || r->key_bytes != sizeof(offset))
		return -EINVAL;
	memcpy(&offset, r->key, sizeof(offset));
	if (offset > bytes || r->value_bytes > bytes - offset)
		return -EINVAL;
	translate(object, r->value, r->value_bytes);
	memcpy(arena + offset, r->value, r->value_bytes);
	return 0;
}

/* Return: 0, or -1 after a frame. */
static int run_program(struct bpf_object *object, const char *name, void *input, u32 bytes)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = bytes ? input : NULL, .ctx_size_in = bytes);
	int failed = program ? bpf_prog_test_run_opts(bpf_program__fd(program), &run) : -1;

	if (!failed && !(s32)run.retval)
		return 0;
	frame_text("refused",
		   program ? "its program %s returned %d\n" : "it has no program %s to call\n",
		   name, failed ? failed : (s32)run.retval);
	return -1;
}

/* Return: 0, or 1 after a frame: what comes next holds for the simulator's answer alone. */
static int call_again(struct bpf_object *object, const struct record *r)
{
	unsigned long long here = 0, there = 0; /* the first words */

	translate(object, r->key, r->key_bytes);
	translate(object, r->value, r->value_bytes);
	if (run_program(object, r->name, r->key, r->key_bytes))
		return 1;
	if (!memcmp(r->key, r->value, r->value_bytes))
		return 0;
	memcpy(&here, r->key, r->value_bytes < 8 ? r->value_bytes : 8);
	memcpy(&there, r->value, r->value_bytes < 8 ? r->value_bytes : 8);
	frame_text("refused", "its program %s answers %#llx, and %#llx in the simulator\n", r->name,
		   here, there);
	return 1;
}

static int write_loaded(struct policy *policy, const struct record *r)
{
	struct bpf_object *object = policy_object(policy);

	return !strcmp(r->kind, "arena") ? write_arena(object, r) : write_map(policy, r);
}

int launch_image(struct policy *policy, const char *path, bool is_loaded)
{
	FILE *file = fopen(path, "rb");
	struct record r;
	int failed = file ? 0 : -errno;

	snprintf(r.name, sizeof(r.name), "%s", path);
	while (!failed && read_record(file, &r)) {
		if (is_loaded != !strcmp(r.kind, "data"))
			failed = !is_loaded		? write_variable(policy, &r) :
				 strcmp(r.kind, "call") ? write_loaded(policy, &r) :
							  call_again(policy_object(policy), &r);
		free(r.key);
	}
	if (file)
		fclose(file);
	if (failed < 0)
		frame_text("refused", "%s, which its launch() writes: %s\n", r.name,
			   failed == -EINVAL ? "there is none of that size" : strerror(-failed));
	return failed;
}

int launch_call(struct bpf_object *object, const char *name, u64 input)
{
	return run_program(object, name, &input, sizeof(input));
}
