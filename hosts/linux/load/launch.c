/* SPDX-License-Identifier: MIT */
/*
 * launch.c - what the user half of a published scheduler does between opening and attaching it.
 *
 * Its constants `__SCX_NAME` get the number that NAME has in this kernel; its SEC("syscall")
 * programs run once it is loaded.
 *
 * Read next: policy.c, which calls it; policies/launch/.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

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

int launch_call(struct bpf_object *object, const char *name, u64 input)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &input, .ctx_size_in = sizeof(input));
	int failed = program ? bpf_prog_test_run_opts(bpf_program__fd(program), &run) : -1;

	if (!failed && !(s32)run.retval)
		return 0;
	frame_text("refused", program ? "its program %s returned %d\n" :
		   "it has no program %s to call\n", name, failed ? failed : (s32)run.retval);
	return -1;
}
