/* SPDX-License-Identifier: MIT */
/*
 * policy.c - loads a policy into the kernel with libbpf.
 *
 * The verifier's text is asked for at once, into a buffer of fixed size: left
 * alone, libbpf loads a refused program again and again with ever more detail,
 * which takes minutes for one with an endless loop. Only where the verifier came
 * to its verdict soon is it asked once more, with the lines of the source.
 *
 * Read next: main.c, or ../guest/play.c for what runs under the policy there.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

#define LOG_BYTES (64 * 1024)
#define LOG_STATS 4		/* BPF_LOG_STATS: errors and one line of counts */
#define LOG_LINES 1		/* BPF_LOG_LEVEL1: all it looks at, with sources */
#define LINES_INSNS_MAX 50000	/* beyond, writing them all takes minutes */
#define PROGRAMS_MAX 64
#define KNOBS_MAX 64
#define OPS "ops."
#define CALL "call."		/* as python/schedlab/policy/launch_file.py has it */
#define DETACH_TRIES 500	/* of 10 ms */

struct knob {
	char name[128];
	u64 value;
};

struct policy {
	char path[256];
	struct knob knobs[KNOBS_MAX]; /* set so far, to be set once more */
	u32 nr_knobs;
	char image[256]; /* what its launch() left behind; "": it has none */
	struct bpf_object *object;
	struct bpf_link *link;
	struct bpf_map *ops;
	int kmsg_fd; /* what the kernel says from attaching on */
	bool is_partial;
	bool is_loaded;
	bool was_attached;
};

/* What libbpf itself says; of use only when loading fails. */
static char said[16384];
static u64 said_bytes;

static int on_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	int n;

	if (level == LIBBPF_DEBUG)
		return 0;
	n = vsnprintf(said + said_bytes, sizeof(said) - said_bytes, fmt, args);
	if (n > 0)
		said_bytes += n;
	if (said_bytes >= sizeof(said))
		said_bytes = sizeof(said) - 1;
	return 0;
}

static int refuse(const char *what, int error)
{
	frame_text("refused", "%s: %s\n%.*s", what, strerror(abs(error)), (int)said_bytes, said);
	return -1;
}

struct policy *policy_open(const char *path)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	LIBBPF_OPTS(bpf_object_open_opts, opts,
		    .kconfig = kernel_has_config() ? NULL : kernel_config());
	struct bpf_map *map;

	said_bytes = 0;
	libbpf_set_print(on_print);
	snprintf(policy->path, sizeof(policy->path), "%s", path);
	policy->kmsg_fd = -1;
	policy->object = bpf_object__open_file(path, &opts);
	if (!policy->object) {
		refuse("the object file cannot be read", errno);
		free(policy);
		return NULL;
	}
	bpf_object__for_each_map(map, policy->object)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			policy->ops = map;
	if (!policy->ops) {
		frame_text("refused", "no SCX_OPS_DEFINE in the policy\n");
		policy_close(policy);
		return NULL;
	}
	launch_constants(policy);
	return policy;
}

/* Where a variable lies in a section of data, by the type information. */
static const struct btf_var_secinfo *find_variable(const struct bpf_object *object, const char *in,
						   const char *name)
{
	const struct btf *btf = bpf_object__btf(object);
	s32 id = btf ? btf__find_by_name_kind(btf, in, BTF_KIND_DATASEC) : -1;
	const struct btf_type *section;
	const struct btf_var_secinfo *var;
	int i;

	if (id < 0)
		return NULL;
	section = btf__type_by_id(btf, id);
	var = btf_var_secinfos(section);
	for (i = 0; i < btf_vlen(section); i++, var++) {
		const struct btf_type *type = btf__type_by_id(btf, var->type);

		if (!strcmp(btf__name_by_offset(btf, type->name_off), name))
			return var;
	}
	return NULL;
}

char *policy_variable(struct policy *policy, const char *name, u32 *variable_bytes)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, policy->object) {
		const char *section = strchr(bpf_map__name(map), '.');
		const struct btf_var_secinfo *var;
		size_t bytes = 0;
		char *data;

		if (!section || !bpf_map__is_internal(map))
			continue;
		var = find_variable(policy->object, section, name);
		data = var ? bpf_map__initial_value(map, &bytes) : NULL;
		if (!data || var->offset + var->size > bytes)
			continue;
		*variable_bytes = var->size;
		return data + var->offset;
	}
	return NULL;
}

int policy_write(struct policy *policy, const char *name, u64 value)
{
	u32 bytes;
	char *at = policy_variable(policy, name, &bytes);

	if (!at || bytes > sizeof(value))
		return -1;
	memcpy(at, &value, bytes);
	return 0;
}

static void remember(struct policy *policy, const char *knob, u64 value)
{
	struct knob *k = &policy->knobs[policy->nr_knobs];

	if (policy->nr_knobs == KNOBS_MAX)
		return;
	snprintf(k->name, sizeof(k->name), "%s", knob);
	k->value = value;
	policy->nr_knobs++;
}

/* SCX_OPS_SWITCH_PARTIAL of the kernel. */
#define SWITCH_PARTIAL (1ULL << 3)

/* Where a number lies in the policy's own struct sched_ext_ops, or NULL. */
static char *find_member(const struct bpf_object *object, struct bpf_map *ops, const char *name,
			 u32 *member_bytes)
{
	const struct btf *btf = bpf_object__btf(object);
	s32 id = btf ? btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT) : -1;
	const struct btf_member *member;
	const struct btf_type *type;
	size_t bytes = 0;
	char *data = bpf_map__initial_value(ops, &bytes);
	int i;

	if (id < 0 || !data)
		return NULL;
	type = btf__type_by_id(btf, id);
	member = btf_members(type);
	for (i = 0; i < btf_vlen(type); i++, member++) {
		if (strcmp(btf__name_by_offset(btf, member->name_off), name))
			continue;
		*member_bytes = (u32)btf__resolve_size(btf, member->type);
		return data + btf_member_bit_offset(type, i) / 8;
	}
	return NULL;
}

static u64 *find_flags(const struct bpf_object *object, struct bpf_map *ops)
{
	u32 bytes;

	return (u64 *)find_member(object, ops, "flags", &bytes);
}

int policy_take_partly(struct policy *policy)
{
	u64 *flags = find_flags(policy->object, policy->ops);

	if (!flags) {
		frame_text("refused", "the policy's sched_ext_ops has no flags\n");
		return -1;
	}
	*flags |= SWITCH_PARTIAL;
	policy->is_partial = true;
	return 0;
}

static int write_member(struct policy *policy, const char *name, u64 value)
{
	u32 bytes = 0;
	char *at = find_member(policy->object, policy->ops, name, &bytes);

	if (!at || bytes > sizeof(value))
		return -1;
	memcpy(at, &value, bytes);
	return 0;
}

int policy_set(struct policy *policy, const char *knob, u64 value)
{
	bool is_flags = !strcmp(knob, OPS "flags");
	bool is_member = !strncmp(knob, OPS, strlen(OPS));
	u64 *flags = is_flags ? find_flags(policy->object, policy->ops) : NULL;

	if (flags) {
		*flags |= value;
	} else if (is_member) {
		if (is_flags || write_member(policy, knob + strlen(OPS), value)) {
			frame_text("refused", "the policy's sched_ext_ops has no %s\n", knob);
			return -1;
		}
	} else if (strncmp(knob, CALL, strlen(CALL)) && policy_write(policy, knob, value)) {
		frame_text("refused", "the policy has no knob %s\n", knob);
		return -1;
	}
	remember(policy, knob, value);
	return 0;
}

int policy_image(struct policy *policy, const char *path)
{
	snprintf(policy->image, sizeof(policy->image), "%s", path);
	return launch_image(policy, path, false);
}

/* SEC("syscall") programs, each as call.NUMBER.NAME with its input. */
static int make_calls(const struct policy *policy)
{
	u32 i;

	for (i = 0; i < policy->nr_knobs; i++) {
		const char *name = policy->knobs[i].name;

		if (strncmp(name, CALL, strlen(CALL)))
			continue;
		name = strchr(name + strlen(CALL), '.');
		if (name && launch_call(policy->object, name + 1, policy->knobs[i].value))
			return -1;
	}
	return 0;
}

static char logs[PROGRAMS_MAX][LOG_BYTES];

/* @nr_lines: of which program to have the lines; one that is accepted has too many. */
static int load_object(struct bpf_object *object, int nr_lines)
{
	struct bpf_program *program;
	int n = 0;

	bpf_object__for_each_program(program, object) {
		if (n == PROGRAMS_MAX)
			break;
		logs[n][0] = '\0';
		bpf_program__set_log_level(program, LOG_STATS | (n == nr_lines ? LOG_LINES : 0));
		bpf_program__set_log_buf(program, logs[n++], LOG_BYTES);
	}
	return bpf_object__load(object);
}

/* A frame per program that was looked at. Return: how many; @insns of the last. */
static int report_programs(struct bpf_object *object, u32 *insns)
{
	struct bpf_program *program;
	int n = 0;

	*insns = 0;
	bpf_object__for_each_program(program, object) {
		char *counts = NULL;
		char *found = logs[n];

		if (!*found || n == PROGRAMS_MAX)
			break;
		while ((found = strstr(found, "processed ")))
			counts = found++;
		*insns = counts ? strtoul(counts + 10, NULL, 10) : 0;
		/* The end of a long text is where the fault is. */
		found = logs[n] + (strlen(logs[n]) > 6000 ? strlen(logs[n]) - 6000 : 0);
		frame_text("program", "%s %u\n%s", bpf_program__name(program), *insns, found);
		n++;
	}
	return n;
}

/* Once more, for the text alone; the object cannot be loaded twice itself. */
static void explain(const struct policy *policy, int nr)
{
	struct policy *again = policy_open(policy->path);
	u32 i, insns;

	if (again && policy->is_partial)
		policy_take_partly(again);
	for (i = 0; again && i < policy->nr_knobs; i++)
		policy_set(again, policy->knobs[i].name, policy->knobs[i].value);
	if (again && policy->image[0])
		policy_image(again, policy->image);
	if (again && load_object(again->object, nr))
		report_programs(again->object, &insns);
	policy_close(again);
}

/*
 * A child has no use for the policy's memory, and would take CPU time to give it back
 * as it ends: 10 ms of an emulated CPU for 165 MB.
 */
static void keep_from_children(struct bpf_object *object)
{
	u64 page_bytes = (u64)sysconf(_SC_PAGESIZE);
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		size_t bytes = 0; /* of an arena those of its variables, at its end */
		char *data = bpf_map__initial_value(map, &bytes);

		if (!data || (uintptr_t)data % page_bytes)
			continue;
		if (bpf_map__type(map) == MAP_TYPE_ARENA)
			bytes = bpf_map__max_entries(map) * page_bytes;
		madvise(data, bytes, MADV_DONTFORK);
	}
}

int policy_load(struct policy *policy)
{
	int failed, nr;
	u32 insns;

	if (policy->is_loaded)
		return 0;
	failed = load_object(policy->object, -1);
	nr = report_programs(policy->object, &insns);
	if (failed) {
		if (insns < LINES_INSNS_MAX)
			explain(policy, nr - 1);
		return refuse("the kernel refuses the policy", failed);
	}
	if ((policy->image[0] && launch_image(policy, policy->image, true)) || make_calls(policy))
		return -1;
	keep_from_children(policy->object);
	policy->is_loaded = true;
	frame_text("loaded", "%s", "");
	return 0;
}

int policy_attach(struct policy *policy)
{
	policy->kmsg_fd = kernel_listen();
	policy->link = bpf_map__attach_struct_ops(policy->ops);
	if (!policy->link)
		return refuse("the policy's init fails", errno);
	policy->was_attached = true;
	frame_text("attached", "%s", "");
	return 0;
}

bool policy_is_attached(const struct policy *policy)
{
	return policy->link && kernel_state_is("enabled");
}

int policy_map(struct policy *policy, const char *name, u32 *value_bytes)
{
	struct bpf_map *map = bpf_object__find_map_by_name(policy->object, name);

	if (!map)
		return -1;
	*value_bytes = bpf_map__value_size(map);
	return bpf_map__fd(map);
}

struct bpf_object *policy_object(struct policy *policy)
{
	return policy->object;
}

/* The kernel's lines about sched_ext since attaching. */
static void report_kernel(struct policy *policy)
{
	char text[8192];
	char line[512];

	kernel_said(policy->kmsg_fd, text, sizeof(text));
	frame_text("kernel", "%s", text);
	if (line_of(policy->object, text, line, sizeof(line)))
		frame_text("line", "%s", line);
}

void policy_close(struct policy *policy)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	int i;

	if (!policy)
		return;
	if (policy->was_attached) {
		frame_text("ended", "%s", policy_is_attached(policy) ? "by us" : "by the kernel");
		bpf_link__destroy(policy->link);
		for (i = 0; i < DETACH_TRIES && !kernel_state_is("disabled"); i++)
			nanosleep(&pause, NULL);
	}
	if (policy->kmsg_fd >= 0) {
		report_kernel(policy);
		close(policy->kmsg_fd);
	}
	bpf_object__close(policy->object);
	free(policy);
}
