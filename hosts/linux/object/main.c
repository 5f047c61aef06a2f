/* SPDX-License-Identifier: MIT */
/*
 * main.c - what compiling a published scheduler for Linux needs beside a compiler.
 *
 *	object types VMLINUX        its types, as the header vmlinux.h
 *	object link OUT IN...       one object of BPF made of several
 *
 * The types are those of the kernel that will load the scheduler, with its numbers, so
 * another kernel needs no other header. libbpf moves what is read of a structure to where the
 * running kernel has it, if the header says so; hence the pragma. Not of atomic_t, which
 * locks in arenas are made of: clang 19 casts their addresses wrongly if it is to be moved.
 *
 * Read next: python/schedlab/hosts/guest/build.py, the caller.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void print(void *context, const char *fmt, va_list args)
{
	(void)context;
	vprintf(fmt, args);
}

static int print_types(const char *path)
{
	struct btf *btf = btf__parse(path, NULL);
	struct btf_dump *dump = btf ? btf_dump__new(btf, print, NULL, NULL) : NULL;
	__s32 plain = dump ? btf__find_by_name_kind(btf, "atomic_t", BTF_KIND_TYPEDEF) : -1;
	__u32 id;

	if (!dump) {
		fprintf(stderr, "%s: it has no types (CONFIG_DEBUG_INFO_BTF)\n", path);
		return 1;
	}
	puts("#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n");
	if (plain > 0 && btf_dump__dump_type(dump, plain) < 0)
		return 1;
	puts("#pragma clang attribute push (__attribute__((preserve_access_index)), "
	     "apply_to = record)");
	for (id = 1; id < btf__type_cnt(btf); id++)
		if (btf_dump__dump_type(dump, id) < 0)
			return 1;
	puts("#pragma clang attribute pop\n#endif");
	btf_dump__free(dump);
	btf__free(btf);
	return fflush(stdout) != 0;
}

static int link_objects(const char *out, char **in, int nr)
{
	struct bpf_linker *linker = bpf_linker__new(out, NULL);
	int i;

	if (!linker)
		return 1;
	for (i = 0; i < nr; i++)
		if (bpf_linker__add_file(linker, in[i], NULL))
			return 1;
	i = bpf_linker__finalize(linker);
	bpf_linker__free(linker);
	return i != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "types"))
		return print_types(argv[2]);
	if (argc > 3 && !strcmp(argv[1], "link"))
		return link_objects(argv[2], argv + 3, argc - 3);
	fprintf(stderr, "usage: object types VMLINUX | object link OUT IN...\n");
	return 2;
}
