/* SPDX-License-Identifier: MIT */
/*
 * program.c - refuses a workload program that a host could not run safely.
 *
 * Hosts index straight into a program's tables, some of them from a kernel, so
 * everything that is used as an index, a divisor or a shift is checked here,
 * once, before the first task starts. What can only be seen while the program
 * runs (a lock unlocked by a stranger, a loop that takes no time) is not.
 *
 * Freestanding: no libc, no memory of its own. Every host links this file.
 *
 * Read next: player.c, which relies on each line of this.
 */
#include "program.h"

/* The text of the first fault, built piece by piece into the caller's buffer. */
struct report {
	char *text;
	u64 bytes; /* of the buffer, with the NUL */
	u64 used;
};

static void put(struct report *r, const char *s)
{
	for (; *s && r->used + 1 < r->bytes; s++)
		r->text[r->used++] = *s;
	if (r->bytes)
		r->text[r->used] = '\0';
}

static void put_number(struct report *r, u64 n)
{
	char digits[21];
	char *d = digits + sizeof(digits) - 1;

	*d = '\0';
	do
		*--d = '0' + n % 10;
	while (n /= 10);
	put(r, d);
}

/* Text from @used on is now about @what, number @i. */
static void begin(struct report *r, u64 used, const char *what, u32 i)
{
	r->used = used;
	put(r, what);
	put_number(r, i);
	put(r, ": ");
}

/* "WHERE N: WHAT (got GOT, limit LIMIT)", and the check has failed. */
static int fail(struct report *r, const char *what, u64 got, u64 limit)
{
	put(r, what);
	put(r, " (got ");
	put_number(r, got);
	put(r, ", limit ");
	put_number(r, limit);
	put(r, ")");
	return -1;
}

static int fail_plain(struct report *r, const char *what)
{
	put(r, what);
	return -1;
}

/* Does a table of @nr entries of @entry bytes at @off lie behind the header? */
static bool table_fits(u64 off, u64 nr, u64 entry, u64 total)
{
	if (off % 8 || off < sizeof(struct sl_program_header) || off > total)
		return false;
	return nr <= (total - off) / entry;
}

static int check_header(const void *data, u64 bytes, struct report *r)
{
	static const char magic[8] = SL_PROGRAM_MAGIC;
	const struct sl_program_header *h = data;

	if (!data || (unsigned long)data % 8)
		return fail_plain(r, "program: not aligned to 8 bytes");
	if (bytes < sizeof(*h))
		return fail(r, "program: shorter than its header", bytes, sizeof(*h));
	for (u64 i = 0; i < sizeof(magic); i++)
		if (h->magic[i] != magic[i])
			return fail_plain(r, "program: not a workload program "
					     "(its first bytes are others)");
	if (h->version < SL_PROGRAM_VERSION_MIN || h->version > SL_PROGRAM_VERSION)
		return fail(r, "program: version this build cannot read", h->version,
			    SL_PROGRAM_VERSION);
	if (h->header_bytes != sizeof(*h))
		return fail(r, "program: header_bytes is wrong", h->header_bytes, sizeof(*h));
	if (h->total_bytes != bytes)
		return fail(r, "program: truncated or with bytes behind it", bytes, h->total_bytes);
	if (!h->nr_tasks || h->nr_tasks > SL_PROGRAM_TASKS_MAX)
		return fail(r, "program: number of tasks", h->nr_tasks, SL_PROGRAM_TASKS_MAX);
	if (!table_fits(h->tasks_off, h->nr_tasks, sizeof(struct sl_program_task), bytes))
		return fail(r, "program: tasks leave the file", h->tasks_off, bytes);
	if (!table_fits(h->ops_off, h->nr_ops, sizeof(struct sl_program_op), bytes))
		return fail(r, "program: ops leave the file", h->ops_off, bytes);
	if (!table_fits(h->objects_off, h->nr_objects, sizeof(struct sl_program_object), bytes))
		return fail(r, "program: objects leave the file", h->objects_off, bytes);
	if (!table_fits(h->values_off, h->nr_values, sizeof(u64), bytes))
		return fail(r, "program: values leave the file", h->values_off, bytes);
	if (!table_fits(h->strings_off, h->strings_bytes, 1, bytes))
		return fail(r, "program: strings leave the file", h->strings_off, bytes);
	if (h->strings_bytes && ((const char *)data)[h->strings_off + h->strings_bytes - 1])
		return fail_plain(r, "program: the last string has no end");
	return 0;
}

static bool string_fits(const struct sl_program_header *h, u32 off)
{
	return off == SL_PROGRAM_NONE || off < h->strings_bytes;
}

/* The CPUs of a task or a group. */
static int check_mask(const void *data, u32 first, u32 nr_words, struct report *r)
{
	const struct sl_program_header *h = data;
	u64 any = 0;

	if (!nr_words || nr_words > SCX_CPUS_MAX / 64 || first > h->nr_values ||
	    nr_words > h->nr_values - first)
		return fail(r, "affinity leaves the values", first, h->nr_values);
	for (u32 i = 0; i < nr_words; i++)
		any |= sl_program_values(data)[first + i];
	if (!any)
		return fail_plain(r, "may run on no CPU at all");
	return 0;
}

static int check_group(const void *data, u32 i, struct report *r)
{
	const struct sl_program_header *h = data;
	const struct sl_program_object *objects = sl_program_objects(data);
	u64 first = objects[i].param;
	const u64 *group = sl_program_values(data) + first;
	u64 cpus;

	if (h->version < 2)
		return fail(r, "a group in a program of a version without", h->version, 2);
	if (first > h->nr_values || h->nr_values - first < sl_program_nr_group_values(data))
		return fail(r, "group leaves the values", first, h->nr_values);
	if (group[SL_GROUP_PARENT] > i)
		return fail(r, "parent must stand before its child", group[SL_GROUP_PARENT], i);
	if (group[SL_GROUP_PARENT] && objects[group[SL_GROUP_PARENT] - 1].kind != SL_OBJECT_GROUP)
		return fail_plain(r, "its parent is no group");
	if (!group[SL_GROUP_WEIGHT] || group[SL_GROUP_WEIGHT] > 10000)
		return fail(r, "weight", group[SL_GROUP_WEIGHT], 10000);
	if (!group[SL_GROUP_PERIOD_US] || !group[SL_GROUP_QUOTA_US])
		return fail_plain(r, "a period or quota of 0");
	cpus = sl_program_group_cpus(data, i);
	return cpus ? check_mask(data, cpus >> 32, (u32)cpus, r) : 0;
}

static int check_objects(const void *data, struct report *r)
{
	const struct sl_program_header *h = data;
	const struct sl_program_object *o = sl_program_objects(data);

	for (u32 i = 0; i < h->nr_objects; i++, o++) {
		begin(r, 0, "object ", i);
		if (!string_fits(h, o->name))
			return fail(r, "name leaves the strings", o->name, h->strings_bytes);
		if (o->kind < SL_OBJECT_LOCK || o->kind > SL_OBJECT_GROUP)
			return fail(r, "unknown kind", o->kind, SL_OBJECT_GROUP);
		if (o->kind == SL_OBJECT_GROUP && check_group(data, i, r))
			return -1;
		if (o->kind == SL_OBJECT_PIPE && !o->param)
			return fail_plain(r, "a pipe that holds 0 bytes");
		if (o->kind == SL_OBJECT_BARRIER && (!o->param || o->param > h->nr_tasks))
			return fail(r, "parties of the barrier", o->param, h->nr_tasks);
	}
	return 0;
}

#define TABLE	0x1	/* the op's b may come from a table of values */
#define PAUSE	0x2	/* it can take time or wait: a loop needs such an op, or never ends */

static const struct {
	u8 is;
	u8 kind; /* enum sl_object_kind of its object; 0: it has none */
} verbs[SL_NR_VERBS] = {
	[SL_VERB_RUN] = { TABLE | PAUSE, 0 },
	[SL_VERB_WORK] = { TABLE | PAUSE, 0 },
	[SL_VERB_SLEEP] = { TABLE | PAUSE, 0 },
	[SL_VERB_READ] = { TABLE | PAUSE, 0 },
	[SL_VERB_WRITE] = { TABLE | PAUSE, 0 },
	[SL_VERB_SET] = { TABLE, 0 },
	[SL_VERB_PERIOD] = { PAUSE, 0 },
	[SL_VERB_TIMER] = { PAUSE, 0 },
	[SL_VERB_YIELD] = { PAUSE, 0 },
	[SL_VERB_WAIT] = { PAUSE, 0 },
	[SL_VERB_SEND] = { TABLE | PAUSE, SL_OBJECT_PIPE },
	[SL_VERB_RECV] = { TABLE | PAUSE, SL_OBJECT_PIPE },
	[SL_VERB_LOCK] = { PAUSE, SL_OBJECT_LOCK },
	[SL_VERB_UNLOCK] = { 0, SL_OBJECT_LOCK },
	[SL_VERB_BARRIER] = { PAUSE, SL_OBJECT_BARRIER },
	[SL_VERB_AWAIT] = { PAUSE, SL_OBJECT_CONDITION },
	[SL_VERB_SIGNAL] = { 0, SL_OBJECT_CONDITION },
	[SL_VERB_JOIN] = { 0, SL_OBJECT_GROUP },
	[SL_VERB_CHANGE] = { 0, 0 },
};

/* The lock that an AWAIT lets go of. */
static int check_await(const void *data, const struct sl_program_op *op, struct report *r)
{
	const struct sl_program_header *h = data;

	if (!op->b)
		return 0;
	if (op->b > h->nr_objects)
		return fail(r, "lock of an await", op->b - 1, h->nr_objects);
	if (sl_program_objects(data)[op->b - 1].kind != SL_OBJECT_LOCK)
		return fail(r, "an await lets go of what is no lock",
			    sl_program_objects(data)[op->b - 1].kind, SL_OBJECT_LOCK);
	return 0;
}

/* Whose attribute or mask a CHANGE changes, and into what. */
static int check_change(const struct sl_program_header *h, const struct sl_program_op *op,
			struct report *r)
{
	u32 first = op->b >> 32;
	u32 count = (u32)op->b;

	if (op->a != SL_PROGRAM_NONE && op->a >= h->nr_tasks)
		return fail(r, "task that is changed", op->a, h->nr_tasks);
	if (op->slot != SL_CHANGE_AFFINITY)
		return op->slot < SL_PROGRAM_NR_ATTRS ?
			       0 :
			       fail(r, "unknown attribute", op->slot, SL_PROGRAM_NR_ATTRS - 1);
	if (!count || first > h->nr_values || count > h->nr_values - first)
		return fail(r, "a mask leaves the values", (u64)first + count, h->nr_values);
	return 0;
}

static int check_flags(const struct sl_program_header *h, const struct sl_program_op *op,
		       struct report *r)
{
	bool is_io = op->verb == SL_VERB_READ || op->verb == SL_VERB_WRITE;
	u32 first = op->b >> 32;
	u32 count = (u32)op->b;

	if (op->flags & ~(SL_OP_TABLE | SL_OP_SYNC | SL_OP_DIRECT))
		return fail(r, "unknown flags", op->flags, SL_OP_TABLE | SL_OP_SYNC | SL_OP_DIRECT);
	if (op->flags & (SL_OP_SYNC | SL_OP_DIRECT) && !is_io)
		return fail_plain(r, "a device flag on an op that is no I/O");
	if (op->slot >= SL_PROGRAM_SLOTS_MAX)
		return fail(r, "slot", op->slot, SL_PROGRAM_SLOTS_MAX - 1);
	if (!(op->flags & SL_OP_TABLE))
		return 0;
	if (!(verbs[op->verb].is & TABLE))
		return fail_plain(r, "a table on a verb that takes none");
	if (!count || first > h->nr_values || count > h->nr_values - first)
		return fail(r, "table leaves the values", (u64)first + count, h->nr_values);
	return 0;
}

/* What can be said of an op without its neighbours. */
static int check_op(const void *data, const struct sl_program_op *op, struct report *r)
{
	const struct sl_program_header *h = data;
	u32 kind;

	if (op->verb >= SL_NR_VERBS)
		return fail(r, "unknown verb", op->verb, SL_NR_VERBS - 1);
	kind = verbs[op->verb].kind;
	if (check_flags(h, op, r))
		return -1;
	if (kind && op->a >= h->nr_objects)
		return fail(r, "object", op->a, h->nr_objects);
	if (kind && sl_program_objects(data)[op->a].kind != kind)
		return fail(r, "object is of another kind than the verb needs",
			    sl_program_objects(data)[op->a].kind, kind);
	if ((op->verb == SL_VERB_RUN || op->verb == SL_VERB_SLEEP) && !(op->flags & SL_OP_TABLE) &&
	    op->b > SL_PROGRAM_OPERAND_MAX)
		return fail(r, "time", op->b, SL_PROGRAM_OPERAND_MAX);
	if (op->verb == SL_VERB_WORK && op->a >= SL_NR_WORKS)
		return fail(r, "unknown work", op->a, SL_NR_WORKS - 1);
	if (op->verb == SL_VERB_SET && op->a >= SL_PROGRAM_NR_ATTRS)
		return fail(r, "unknown attribute", op->a, SL_PROGRAM_NR_ATTRS - 1);
	if (op->verb == SL_VERB_CHANGE && check_change(h, op, r))
		return -1;
	if ((op->verb == SL_VERB_PERIOD || op->verb == SL_VERB_TIMER) && !op->b)
		return fail_plain(r, "a period of 0 ns");
	if (op->verb == SL_VERB_TIMER && op->a > 1)
		return fail(r, "mode of a timer", op->a, 1);
	if (op->verb == SL_VERB_SIGNAL && op->b > 1)
		return fail(r, "how many a signal wakes", op->b, 1);
	if (op->verb == SL_VERB_AWAIT && check_await(data, op, r))
		return -1;
	if ((op->verb == SL_VERB_READ || op->verb == SL_VERB_WRITE) && !op->a)
		return fail_plain(r, "calls of 0 bytes each");
	return 0;
}

/* The children that a task's SPAWNs start, by the slot that counts them. */
struct spawns {
	struct {
		u32 first;
		u32 nr; /* 0: no SPAWN has this slot so far */
	} of_slot[SL_PROGRAM_SLOTS_MAX];
	u64 to; /* index behind the last child so far */
};

/*
 * The children of one SPAWN: @task's own, behind those of its earlier SPAWNs;
 * or just those of an earlier one, if both count them in the same slot.
 */
static int check_spawn(const void *data, u32 task, const struct sl_program_op *op,
		       struct spawns *spawns, struct report *r)
{
	const struct sl_program_header *h = data;
	const struct sl_program_task *tasks = sl_program_tasks(data);

	if (!op->b || op->b > h->nr_tasks || op->a > h->nr_tasks - op->b)
		return fail(r, "children leave the tasks", op->a, h->nr_tasks);
	if (spawns->of_slot[op->slot].nr) {
		if (spawns->of_slot[op->slot].first != op->a ||
		    spawns->of_slot[op->slot].nr != op->b)
			return fail(r, "slot of a spawn of other children", op->slot,
				    SL_PROGRAM_SLOTS_MAX - 1);
		return 0;
	}
	if (op->a < spawns->to)
		return fail(r, "a child that an earlier spawn starts", op->a, spawns->to);
	for (u64 i = op->a; i < op->a + op->b; i++)
		if (tasks[i].parent != task)
			return fail(r, "a child whose parent is another task", tasks[i].parent,
				    task);
	spawns->of_slot[op->slot].first = op->a;
	spawns->of_slot[op->slot].nr = op->b;
	spawns->to = op->a + op->b;
	return 0;
}

/* Loops that are open at the op being looked at. */
struct nest {
	u32 loop[SL_PROGRAM_DEPTH_MAX];	   /* index of the LOOP */
	bool pauses[SL_PROGRAM_DEPTH_MAX]; /* its body has such an op */
	u32 depth;
	u32 slots; /* bit per slot in use */
};

static int open_loop(struct nest *nest, const struct sl_program_op *ops, u32 i, u32 nr_ops,
		     struct report *r)
{
	const struct sl_program_op *op = &ops[i];

	if (op->a <= i || op->a >= nr_ops)
		return fail(r, "loop ends outside the task", op->a, nr_ops);
	if (ops[op->a].verb != SL_VERB_END || ops[op->a].a != i)
		return fail(r, "loop without an end of its own", op->a, i);
	if (nest->depth == SL_PROGRAM_DEPTH_MAX)
		return fail(r, "loops nested too deeply", nest->depth + 1, SL_PROGRAM_DEPTH_MAX);
	if (nest->slots & (1U << op->slot))
		return fail(r, "slot of a loop around this one", op->slot, SL_PROGRAM_SLOTS_MAX - 1);
	nest->slots |= 1U << op->slot;
	nest->pauses[nest->depth] = false;
	nest->loop[nest->depth++] = i;
	return 0;
}

static int close_loop(struct nest *nest, const struct sl_program_op *ops, u32 i, struct report *r)
{
	bool pauses;

	if (!nest->depth || nest->loop[nest->depth - 1] != ops[i].a)
		return fail(r, "end of a loop that is not the innermost", ops[i].a, i);
	if (ops[ops[i].a].a != i || ops[ops[i].a].slot != ops[i].slot)
		return fail_plain(r, "loop and end disagree");
	pauses = nest->pauses[--nest->depth];
	if (!pauses)
		return fail_plain(r, "a loop in which nothing takes time");
	if (nest->depth)
		nest->pauses[nest->depth - 1] = true;
	nest->slots &= ~(1U << ops[i].slot);
	return 0;
}

/* What counts loops, walks tables or children, or keeps a time is kept apart. */
static int check_slots(const struct sl_program_op *ops, u32 nr_ops, struct report *r)
{
	u32 counters = 0, cursors = 0, timers = 0;

	for (u32 i = 0; i < nr_ops; i++) {
		if (ops[i].verb == SL_VERB_LOOP)
			counters |= 1U << ops[i].slot;
		else if (ops[i].flags & SL_OP_TABLE || ops[i].verb == SL_VERB_SPAWN)
			cursors |= 1U << ops[i].slot;
		else if (ops[i].verb == SL_VERB_TIMER)
			timers |= 1U << ops[i].slot;
	}
	if (timers & (counters | cursors))
		return fail(r, "a slot both keeps a timer and counts",
			    timers & (counters | cursors), 0);
	if (counters & cursors)
		return fail(r, "a slot both counts a loop and walks a table", counters & cursors, 0);
	return 0;
}

/* Return: -1 with the fault, 1 if the ops spawn, 0 if they do not. */
static int check_ops(const void *data, u32 task, struct report *r)
{
	const struct sl_program_task *t = &sl_program_tasks(data)[task];
	const struct sl_program_op *ops = sl_program_ops(data) + t->op_first;
	struct nest nest = { .depth = 0 };
	u64 task_used = r->used;
	struct spawns spawns = { .to = 0 };
	int failed = 0;

	for (u32 i = 0; i < t->nr_ops && !failed; i++) {
		begin(r, task_used, "op ", i);
		failed = check_op(data, &ops[i], r);
		if (failed)
			break;
		if (nest.depth && (verbs[ops[i].verb].is & PAUSE))
			nest.pauses[nest.depth - 1] = true;
		if (ops[i].verb == SL_VERB_LOOP)
			failed = open_loop(&nest, ops, i, t->nr_ops, r);
		else if (ops[i].verb == SL_VERB_END)
			failed = close_loop(&nest, ops, i, r);
		else if (ops[i].verb == SL_VERB_SPAWN)
			failed = check_spawn(data, task, &ops[i], &spawns, r);
		else if (ops[i].verb == SL_VERB_EXIT && i + 1 < t->nr_ops)
			failed = fail_plain(r, "exit before the last op");
	}
	if (!failed && ops[t->nr_ops - 1].verb != SL_VERB_EXIT)
		failed = fail_plain(r, "the last op is not exit");
	if (failed)
		return -1;
	r->used = task_used;
	if (check_slots(ops, t->nr_ops, r))
		return -1;
	return spawns.to ? 1 : 0;
}

/* The task's own fields; not its ops, and not those that any value fits. */
static int check_task(const void *data, u32 i, struct report *r)
{
	const struct sl_program_header *h = data;
	const struct sl_program_task *t = &sl_program_tasks(data)[i];
	bool is_spawned = t->parent != SL_PROGRAM_NONE;

	if (!string_fits(h, t->name))
		return fail(r, "name leaves the strings", t->name, h->strings_bytes);
	if (!t->nr_ops || t->op_first > h->nr_ops || t->nr_ops > h->nr_ops - t->op_first)
		return fail(r, "ops leave the table", t->op_first, h->nr_ops);
	if (is_spawned && t->parent >= i)
		return fail(r, "parent must stand before its child", t->parent, i);
	if (is_spawned != (t->arrival_ns == ~0ULL))
		return fail_plain(r, "must have either a parent or an arrival");
	if (!is_spawned && t->arrival_ns > SL_PROGRAM_OPERAND_MAX)
		return fail(r, "arrival", t->arrival_ns, SL_PROGRAM_OPERAND_MAX);
	if (t->attr_given >> SL_PROGRAM_NR_ATTRS)
		return fail(r, "unknown attributes", t->attr_given, (1U << SL_PROGRAM_NR_ATTRS) - 1);
	if (t->nice < -20 || t->nice > 19)
		return fail(r, "nice is outside -20..19; plus 20", t->nice + 20U, 39);
	if (!t->weight || t->weight > 10000)
		return fail(r, "weight", t->weight, 10000);
	if (t->group_object > h->nr_objects)
		return fail(r, "group", t->group_object, h->nr_objects);
	if (t->group_object &&
	    (is_spawned || sl_program_objects(data)[t->group_object - 1].kind != SL_OBJECT_GROUP))
		return fail_plain(r,
				  "is in what is no group, or spawned and in another than its parent");
	return t->affinity == SL_PROGRAM_NONE ? 0 :
						check_mask(data, t->affinity, t->affinity_words, r);
}

/* Every spawned task is among the children of a SPAWN of its parent. */
static int check_is_spawned(const void *data, u32 i, struct report *r)
{
	const struct sl_program_task *tasks = sl_program_tasks(data);
	const struct sl_program_task *parent = &tasks[tasks[i].parent];
	const struct sl_program_op *op = sl_program_ops(data) + parent->op_first;
	const struct sl_program_op *end = op + parent->nr_ops;

	for (; op < end; op++)
		if (op->verb == SL_VERB_SPAWN && op->a <= i && i < op->a + op->b)
			return 0;
	return fail(r, "its parent does not spawn it", tasks[i].parent, i);
}

int sl_program_check(const void *data, u64 bytes, char *why, u64 why_bytes)
{
	struct report r = { .text = why, .bytes = why ? why_bytes : 0 };
	const struct sl_program_header *h = data;
	const struct sl_program_task *tasks;
	int spawns = 0;

	if (check_header(data, bytes, &r))
		return -1;
	if (!string_fits(h, h->name))
		return fail(&r, "program: name leaves the strings", h->name, h->strings_bytes);
	if (check_objects(data, &r))
		return -1;
	tasks = sl_program_tasks(data);
	for (u32 i = 0; i < h->nr_tasks; i++) {
		begin(&r, 0, "task ", i);
		if (check_task(data, i, &r))
			return -1;
		/* Tasks of one kind share their ops: look at them once. */
		if (i && !spawns && tasks[i].op_first == tasks[i - 1].op_first &&
		    tasks[i].nr_ops == tasks[i - 1].nr_ops)
			continue;
		spawns = check_ops(data, i, &r);
		if (spawns < 0)
			return -1;
	}
	for (u32 i = 0; i < h->nr_tasks; i++) {
		begin(&r, 0, "task ", i);
		if (tasks[i].parent != SL_PROGRAM_NONE && check_is_spawned(data, i, &r))
			return -1;
	}
	r.used = 0;
	put(&r, "");
	return 0;
}
