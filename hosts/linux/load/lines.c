/* SPDX-License-Identifier: MIT */
/*
 * lines.c - which line of a policy's source an error of the kernel's came from.
 *
 * The kernel names functions of a stack as bpf_prog_TAG_NAME+0xOFFSET. With what
 * it tells about a loaded program (where each function lies, and which source
 * line each of its instructions came from) that is a line. Where the stack has no
 * function of the policy, since the kernel noticed later, the line is that of the
 * callback that was asked.
 *
 * Called by policy.c when a policy has ended. Read next: count.c.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

#define PREFIX "bpf_prog_"
#define TAG_CHARS 16
#define CHARS_MAX 200	/* of a line of source that is shown */

/* What the kernel tells about one program; arrays as its counts say. */
struct layout {
	struct bpf_prog_info info;
	struct bpf_prog_linfo *lines;
};

static void *array(u32 nr, u32 bytes)
{
	return calloc(nr ? nr : 1, bytes);
}

static void layout_free(struct layout *l)
{
	bpf_prog_linfo__free(l->lines);
	free((void *)l->info.jited_ksyms);
	free((void *)l->info.jited_func_lens);
	free((void *)l->info.func_info);
	free((void *)l->info.line_info);
	free((void *)l->info.jited_line_info);
}

static int layout_read(struct layout *l, int fd)
{
	struct bpf_prog_info counts = { 0 };
	u32 bytes = sizeof(counts);

	memset(l, 0, sizeof(*l));
	if (bpf_prog_get_info_by_fd(fd, &counts, &bytes))
		return -1;
	l->info.nr_jited_ksyms = counts.nr_jited_ksyms;
	l->info.nr_jited_func_lens = counts.nr_jited_func_lens;
	l->info.nr_func_info = counts.nr_func_info;
	l->info.func_info_rec_size = counts.func_info_rec_size;
	l->info.nr_line_info = counts.nr_line_info;
	l->info.line_info_rec_size = counts.line_info_rec_size;
	l->info.nr_jited_line_info = counts.nr_jited_line_info;
	l->info.jited_line_info_rec_size = counts.jited_line_info_rec_size;
	l->info.jited_ksyms = (u64)array(counts.nr_jited_ksyms, 8);
	l->info.jited_func_lens = (u64)array(counts.nr_jited_func_lens, 4);
	l->info.func_info = (u64)array(counts.nr_func_info, counts.func_info_rec_size);
	l->info.line_info = (u64)array(counts.nr_line_info, counts.line_info_rec_size);
	l->info.jited_line_info = (u64)array(counts.nr_jited_line_info,
					     counts.jited_line_info_rec_size);
	bytes = sizeof(l->info);
	if (!bpf_prog_get_info_by_fd(fd, &l->info, &bytes))
		l->lines = bpf_prog_linfo__new(&l->info);
	if (l->lines)
		return 0;
	layout_free(l);
	return -1;
}

static void write_line(const struct btf *btf, const struct bpf_line_info *at, char *text,
		       u64 text_bytes)
{
	const char *source = btf__name_by_offset(btf, at->line_off);
	const char *file = btf__name_by_offset(btf, at->file_name_off);
	const char *slash = strrchr(file, '/');

	source += strspn(source, " \t");
	/* As the verifier names it: folders are those of the compilation. */
	snprintf(text, text_bytes, "%s:%u: %.*s", slash ? slash + 1 : file,
		 BPF_LINE_INFO_LINE_NUM(at->line_col), CHARS_MAX, source);
}

/* Number of the function of that name (up to a '+') in a program, or -1. */
static int find_function(const struct layout *l, const struct btf *btf, const char *name)
{
	u64 name_bytes = strcspn(name, "+");
	u32 i;

	for (i = 0; i < l->info.nr_func_info && i < l->info.nr_jited_ksyms; i++) {
		const struct bpf_func_info *function = (void *)(l->info.func_info +
								i * l->info.func_info_rec_size);
		const struct btf_type *type = btf__type_by_id(btf, function->type_id);
		const char *its = btf__name_by_offset(btf, type->name_off);

		if (strlen(its) == name_bytes && !strncmp(its, name, name_bytes))
			return i;
	}
	return -1;
}

static const struct bpf_line_info *line_info(const struct layout *l, u32 i)
{
	return (void *)(l->info.line_info + i * l->info.line_info_rec_size);
}

/* The line of an instruction of the function that is number @function. */
static const struct bpf_line_info *line_at(const struct layout *l, int function, u64 offset)
{
	const u64 *starts = (void *)l->info.jited_ksyms;

	/* What stands on a stack is where a call returns to. */
	return bpf_prog_linfo__lfind_addr_func(l->lines, starts[function] + offset - (offset > 0),
					       function, 0);
}

/* The only line of a program with @call in its text; NULL: none, or several. */
static const struct bpf_line_info *line_with(const struct layout *l, const struct btf *btf,
					     const char *call)
{
	const struct bpf_line_info *found = NULL;
	u32 i;

	for (i = 0; i < l->info.nr_line_info; i++) {
		const struct bpf_line_info *at = line_info(l, i);
		const char *text = btf__name_by_offset(btf, at->line_off);

		if (!text || !strstr(text, call))
			continue;
		if (found &&
		    BPF_LINE_INFO_LINE_NUM(found->line_col) != BPF_LINE_INFO_LINE_NUM(at->line_col))
			return NULL;
		found = at;
	}
	return found;
}

/* Where function NAME of "NAME+0xOFFSET" of any program was. */
static bool line_of_symbol(struct bpf_object *object, const char *symbol, char *text, u64 text_bytes)
{
	const struct btf *btf = bpf_object__btf(object);
	const struct bpf_line_info *at = NULL;
	struct bpf_program *program;
	const char *plus = strchr(symbol, '+');
	struct layout l;
	int function;

	if (!plus)
		return false;
	bpf_object__for_each_program(program, object) {
		if (layout_read(&l, bpf_program__fd(program)))
			continue;
		function = find_function(&l, btf, symbol);
		if (function >= 0)
			at = line_at(&l, function, strtoull(plus + 1, NULL, 16));
		if (at)
			write_line(btf, at, text, text_bytes);
		layout_free(&l);
		if (at)
			return true;
	}
	return false;
}

static bool line_of_stack(struct bpf_object *object, const char *said, char *text, u64 text_bytes)
{
	while ((said = strstr(said, PREFIX))) {
		said += strlen(PREFIX);
		if (strnlen(said, TAG_CHARS + 1) <= TAG_CHARS)
			return false;
		if (line_of_symbol(object, said + TAG_CHARS + 1, text, text_bytes))
			return true;
	}
	return false;
}

/* In the callback @member: its only line with @call, or else its first line. */
static bool line_of_callback(struct bpf_object *object, const char *member, const char *call,
			     char *text, u64 text_bytes)
{
	const struct btf *btf = bpf_object__btf(object);
	u64 member_chars = strlen(member);
	struct bpf_program *program;
	struct layout l;

	bpf_object__for_each_program(program, object) {
		const char *name = bpf_program__name(program);
		const struct bpf_line_info *at = NULL;
		u64 chars = strlen(name);

		if (chars < member_chars || strcmp(name + chars - member_chars, member) ||
		    layout_read(&l, bpf_program__fd(program)))
			continue;
		if (call)
			at = line_with(&l, btf, call);
		if (!at && l.info.nr_line_info)
			at = line_info(&l, 0);
		if (at)
			write_line(btf, at, text, text_bytes);
		layout_free(&l);
		return at;
	}
	return false;
}

bool line_of(struct bpf_object *object, const char *said, char *text, u64 text_bytes)
{
	if (!bpf_object__btf(object))
		return false;
	if (line_of_stack(object, said, text, text_bytes))
		return true;
	if (strstr(said, "failed to run for"))
		return line_of_callback(object, "enqueue", NULL, text, text_bytes);
	if (!strstr(said, " DSQ "))
		return false;
	/* Noticed when the callback had returned: its caller is on the stack. */
	return line_of_callback(object, strstr(said, "do_enqueue_task") ? "enqueue" : "dispatch",
				"scx_bpf_dsq_", text, text_bytes);
}
