/* SPDX-License-Identifier: MIT */
/*
 * program.h - reading a workload program that may be damaged or hostile.
 *
 * The file format itself is include/schedlab/program.h. This header is what a
 * host uses on it: one check, after which the accessors below stay inside the
 * file whatever it says.
 *
 * Read next: program.c, then player.h.
 */
#ifndef PLAYER_PROGRAM_H
#define PLAYER_PROGRAM_H

#include <schedlab/program.h>

/* Deepest nesting of LOOPs in one task: one slot each. */
#define SL_PROGRAM_DEPTH_MAX SL_PROGRAM_SLOTS_MAX

/* NR_TASK_ATTRS of scx/task_attr.h, which only a policy can include. */
#define SL_PROGRAM_NR_ATTRS 8

/* No operand is larger, so that adding two cannot wrap; 146 years in ns. */
#define SL_PROGRAM_OPERAND_MAX ((1ULL << 62) - 1)

/**
 * sl_program_check - is this a program that a host may run?
 * @data: the file's bytes, aligned to 8
 * @bytes: how many there are
 * @why: what is wrong, NUL-ended; "" when nothing is
 * @why_bytes: size of @why; a text that does not fit is cut
 *
 * After a good check no index in the program leaves its table; a task has one
 * EXIT, its last op; loops nest, own their slot and contain an op that can take
 * time; a task that is spawned stands behind its parent, whose SPAWNs for it
 * count in one slot, and any other has an arrival time; no verb names an object of
 * the wrong kind; and no period, chunk, pipe or barrier is empty.
 *
 * Context: any; no memory is allocated and nothing is kept. Takes time linear
 * in tasks and ops, if tasks that share their ops stand together.
 *
 * Return: 0, or -1 with @why filled in.
 */
int sl_program_check(const void *data, u64 bytes, char *why, u64 why_bytes);

static inline const struct sl_program_header *sl_program_header(const void *data)
{
	return data;
}

/* A host that has no cgroups refuses such a program: its policy would see other ones. */
static inline bool sl_program_has_groups(const void *data)
{
	return sl_program_header(data)->version >= 2;
}

/* Does a group have CPUs of its own? */
static inline bool sl_program_has_cpusets(const void *data)
{
	return sl_program_header(data)->version >= 3;
}

static inline u32 sl_program_nr_group_values(const void *data)
{
	return sl_program_has_cpusets(data) ? SL_NR_GROUP_VALUES : SL_GROUP_CPUS;
}

static inline const struct sl_program_task *sl_program_tasks(const void *data)
{
	return (const void *)((const u8 *)data + sl_program_header(data)->tasks_off);
}

static inline const struct sl_program_op *sl_program_ops(const void *data)
{
	return (const void *)((const u8 *)data + sl_program_header(data)->ops_off);
}

/* How many slots @task needs: one more than the greatest that its ops name. */
static inline u32 sl_program_nr_slots(const void *data, u32 task)
{
	const struct sl_program_task *t = &sl_program_tasks(data)[task];
	const struct sl_program_op *ops = sl_program_ops(data) + t->op_first;
	u32 nr = 0;

	for (u32 i = 0; i < t->nr_ops; i++)
		nr = ops[i].slot >= nr ? ops[i].slot + 1U : nr;
	return nr;
}

static inline const struct sl_program_object *sl_program_objects(const void *data)
{
	return (const void *)((const u8 *)data + sl_program_header(data)->objects_off);
}

static inline const u64 *sl_program_values(const void *data)
{
	return (const void *)((const u8 *)data + sl_program_header(data)->values_off);
}

/* The string at @off of the string table; "" for SL_PROGRAM_NONE. */
static inline const char *sl_program_string(const void *data, u32 off)
{
	if (off == SL_PROGRAM_NONE)
		return "";
	return (const char *)data + sl_program_header(data)->strings_off + off;
}

/* The values of @object, a group. */
static inline const u64 *sl_program_group(const void *data, u32 object)
{
	return sl_program_values(data) + sl_program_objects(data)[object].param;
}

/* Where in values the mask of its CPUs is, as SL_GROUP_CPUS; 0: it has none. */
static inline u64 sl_program_group_cpus(const void *data, u32 object)
{
	return sl_program_has_cpusets(data) ? sl_program_group(data, object)[SL_GROUP_CPUS] : 0;
}

/**
 * sl_program_operand - the b of an op, drawn from its table if it has one
 * @data: a checked program
 * @op: one of its ops
 * @cursors: the task's slots; the table's is moved on
 *
 * Return: at most SL_PROGRAM_OPERAND_MAX; what the file says beyond that is cut.
 */
static inline u64 sl_program_operand(const void *data, const struct sl_program_op *op, u64 *cursors)
{
	u64 value = op->b;

	if (op->flags & SL_OP_TABLE) {
		u32 first = op->b >> 32;
		u32 count = (u32)op->b;

		value = sl_program_values(data)[first + cursors[op->slot]++ % count];
	}
	return value < SL_PROGRAM_OPERAND_MAX ? value : SL_PROGRAM_OPERAND_MAX;
}

#endif
