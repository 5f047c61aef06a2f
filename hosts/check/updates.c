/* SPDX-License-Identifier: MIT */
/*
 * updates.c - the policy's accesses to memory: points to interleave, and lost updates.
 *
 * The policy is compiled with -fsanitize=thread, without that sanitizer's runtime, as
 * Linux does for KCSAN: the compiler calls what is defined here before each access to
 * what is not a local variable.
 *
 *	CPU 0: reads 3		 writes 4	<- CPU 1's update is lost
 *	CPU 1:		writes 4
 *
 * A callback that reads a variable and then writes it, while another CPU has written it
 * in between, has lost that update, unless
 *
 *	it read the variable again after the other CPU had written it,
 *	the other CPU wrote what had been there before, or
 *	both changed 0 into 1, or 1 into 0: a flag.
 *
 * Whether the value written depends on the value read is not known. Memory of tasks is
 * left out: Linux has it under its own locks while it calls a policy. Of that it is seen
 * when a policy accesses a task that is gone.
 *
 * Read next: python/schedlab/check/races.py, which finds the source lines.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define READS_MAX 64
#define FRAMES_MAX 64
#define NR_PLACES_FIRST 4096	/* a power of two, as it is when doubled */

/* An access, by the callback that does it. */
struct access {
	const void *at;
	const void *pc;
	u64 value;
	u64 event;
	u64 version; /* how many writes there had been, of all variables */
	const char *callback;
	const struct sl_task *task;
};

/* Of each variable the last write. */
struct place {
	struct access write;
	s32 cpu;
	u32 run; /* of which it is */
};

/* Open addressing: a variable is at its hash, or after it. Outlives a world. */
static struct places {
	struct place *at;
	u32 nr;
	u32 nr_used; /* in this run */
	u32 run;
} *places;

static struct {
	struct access reads[READS_MAX]; /* of this event */
	u64 event;
	u32 nr_reads; /* the last of them, if they are more than there is room */
} *by_cpu;

/* A write that loses another one, which has still to happen. */
static struct {
	struct access read, write, lost;
	s32 cpu, lost_cpu;
	u64 value_lost;
	u32 nr_bytes;
} pending;
bool check_is_unsettled;

static u64 nr_writes;

static u64 value_at(const void *at, u32 nr_bytes)
{
	u64 value = 0;

	memcpy(&value, at, nr_bytes <= sizeof(value) ? nr_bytes : sizeof(value));
	return value;
}

/* Return: the place of @at; or, where it has not been written in this run, one that is free. */
static struct place *find_place(const void *at)
{
	u64 hash = ((u64)at * 0x9e3779b97f4a7c15ULL) >> 32;

	for (;; hash++) {
		struct place *place = &places->at[hash & (places->nr - 1)];

		if (place->write.at == at || place->run != places->run)
			return place;
	}
}

static sl_cold void double_places(void)
{
	struct places before = *places;

	places->nr *= 2;
	places->at = sim_map(places->nr * sizeof(*places->at));
	SL_ASSERT(places->at);
	for (u32 i = 0; i < before.nr; i++) {
		if (before.at[i].run == before.run)
			*find_place(before.at[i].write.at) = before.at[i];
	}
	sim_unmap(before.at, before.nr * sizeof(*before.at));
}

/* Return: the place of @at, to be written. */
static struct place *own_place(const void *at)
{
	struct place *place = find_place(at);

	if (place->run == places->run)
		return place;
	if (places->nr_used >= places->nr / 2) {
		double_places();
		place = find_place(at);
	}
	places->nr_used++;
	*place = (struct place){ .run = places->run };
	return place;
}

void check_prepare_updates(void)
{
	if (places)
		return;
	places = calloc(1, sizeof(*places));
	SL_ASSERT(places);
	places->nr = NR_PLACES_FIRST;
	places->at = sim_map(places->nr * sizeof(*places->at));
	SL_ASSERT(places->at);
}

void check_forget_accesses(void)
{
	places->run++;
	places->nr_used = 0;
	by_cpu = calloc(sim.options->nr_cpus, sizeof(*by_cpu));
	SL_ASSERT(by_cpu);
}

/* ---- what is said ------------------------------------------------------------- */

const char *check_name(const void *at, char *text, const char *else_text)
{
	Dl_info place, own;

	if (dladdr(at, &place) && dladdr(sim_policy_file.policy, &own) &&
	    place.dli_fbase == own.dli_fbase)
		snprintf(text, CHECK_NAME_BYTES, "<%#llx>",
			 (unsigned long long)at - (unsigned long long)place.dli_fbase);
	else
		snprintf(text, CHECK_NAME_BYTES, "%s", else_text);
	return text;
}

static u32 name_callback(s32 cpu, const char *callback, const struct sl_task *task, char *text,
			 u32 nr_bytes)
{
	int nr = snprintf(text, nr_bytes, "CPU %d, in ops.%s() for %s[%d],", cpu, callback ?: "-",
			  task ? task->p.comm : "-", task ? task->p.pid : 0);

	return (u32)nr < nr_bytes ? (u32)nr : nr_bytes - 1;
}

u32 check_name_callback(s32 cpu, char *text, u32 nr_bytes)
{
	struct sl_cpu_report r = sl_cpu_report(cpu);

	return name_callback(cpu, r.callback, r.callback_task, text, nr_bytes);
}

static const char *name_line(const struct access *a, char *text)
{
	return check_name((const char *)a->pc - 1, text, "?");
}

/* What is called there: what the policy accesses by itself, or a function. */
static const char *name_called(const void *function)
{
	Dl_info info;

	if (!dladdr(function, &info) || !info.dli_sname)
		return "a call";
	if (strncmp(info.dli_sname, "__tsan_", 7))
		return info.dli_sname;
	return strstr(info.dli_sname, "read") || strstr(info.dli_sname, "load") ? "read" : "write";
}

const char *check_name_point(char *text, u32 nr_bytes)
{
	void *frames[FRAMES_MAX];
	int nr = backtrace(frames, FRAMES_MAX);
	char name[CHECK_NAME_BYTES];

	text[0] = 0;
	for (int i = 1; i < nr; i++) {
		check_name((const char *)frames[i] - 1, name, "");
		if (name[0]) {
			(void)snprintf(text, nr_bytes, " before %s, %s", name,
				       name_called(frames[i - 1]));
			break;
		}
	}
	return text;
}

static void report(u64 value)
{
	const struct access *read = &pending.read;
	const struct access *lost = &pending.lost;
	char variable[CHECK_NAME_BYTES], read_at[CHECK_NAME_BYTES];
	char write_at[CHECK_NAME_BYTES], lost_at[CHECK_NAME_BYTES];
	char reader[128], loser[128];

	name_callback(pending.cpu, read->callback, read->task, reader, sizeof(reader));
	name_callback(pending.lost_cpu, lost->callback, lost->task, loser, sizeof(loser));
	sim_fail("race", read->task ? read->task->p.pid : 0,
		 "an update of %s is lost: %s read %llu at %s; %s wrote %llu at %s; CPU %d wrote %llu at %s",
		 check_name(read->at, variable, "a map's value"), reader,
		 (unsigned long long)read->value, name_line(read, read_at), loser,
		 (unsigned long long)pending.value_lost, name_line(lost, lost_at), pending.cpu,
		 (unsigned long long)value, name_line(&pending.write, write_at));
}

static bool is_flag(u64 before, u64 after)
{
	return before <= 1 && after == !before;
}

/* The access that was announced last has happened. */
void check_settle_now(void)
{
	u64 value;

	check_is_unsettled = false;
	value = value_at(pending.write.at, pending.nr_bytes);
	if (pending.value_lost == pending.read.value ||
	    (value == pending.value_lost && is_flag(pending.read.value, value)))
		return;
	report(value);
}

/* ---- accesses ----------------------------------------------------------------- */

/* In its place, field by field: a copy would wait for stores of another width. */
static void fill(struct access *a, const void *at, u64 value, const void *pc,
		 const struct sl_cpu_report *cpu, u64 version)
{
	a->at = at;
	a->pc = pc;
	a->value = value;
	a->event = check_event.number;
	a->version = version;
	a->callback = cpu->callback;
	a->task = cpu->callback_task;
}

static bool is_of_a_task(const void *at)
{
	return at >= (const void *)sim.tasks && at < (const void *)(sim.tasks + sim.nr_tasks);
}

/*
 * The policy accesses a task: it has to be one of which it was not told that it is gone,
 * but for one that is at this instant: on Linux it exists until the callback is over.
 */
static void see_task(const void *at, const void *pc)
{
	u64 idx = (u64)((const char *)at - (const char *)sim.tasks) / sizeof(*sim.tasks);
	const struct sl_task *t = &sim.tasks[idx].core;
	char user[128], place[CHECK_NAME_BYTES];

	if (t->state != SL_TASK_DEAD || t->is_attached || t->exec_start_ns == sim_now_ns ||
	    sim.result->error_kind)
		return;
	check_name_callback(sim_cpu_idx, user, sizeof(user));
	sim_fail("use", t->p.pid,
		 "a task is used after its ops.exit_task(): %s accessed %s[%d] at %s", user,
		 t->p.comm, t->p.pid, check_name((const char *)pc - 1, place, "?"));
}

/* Return: what this CPU's callback has read there, or NULL. */
static struct access *own_read(const void *at, const struct sl_cpu_report *cpu)
{
	struct access *reads = by_cpu[sim_cpu_idx].reads;
	u32 nr = by_cpu[sim_cpu_idx].nr_reads;
	u64 event = check_event.number;

	if (by_cpu[sim_cpu_idx].event != event) {
		by_cpu[sim_cpu_idx].event = event;
		by_cpu[sim_cpu_idx].nr_reads = 0;
		return NULL;
	}
	for (u32 i = 0; i < nr && i < READS_MAX; i++) {
		if (reads[i].at == at && reads[i].callback == cpu->callback &&
		    reads[i].task == cpu->callback_task)
			return &reads[i];
	}
	return NULL;
}

static void note_read(const void *at, u32 nr_bytes, const void *pc)
{
	struct sl_cpu_report cpu = sl_cpu_report(sim_cpu_idx);
	struct access *read = own_read(at, &cpu);

	if (!read)
		read = &by_cpu[sim_cpu_idx].reads[by_cpu[sim_cpu_idx].nr_reads++ % READS_MAX];
	fill(read, at, value_at(at, nr_bytes), pc, &cpu, nr_writes);
}

/* What is atomic is never torn, but may lie between another CPU's read and write. */
static void note_write(const void *at, u32 nr_bytes, const void *pc, bool is_atomic)
{
	struct place *place = own_place(at);
	struct sl_cpu_report cpu = sl_cpu_report(sim_cpu_idx);
	struct access *read = own_read(at, &cpu);
	u64 value = value_at(at, nr_bytes);

	if (read && !is_atomic && place->write.at == at && place->write.version > read->version &&
	    place->cpu != sim_cpu_idx) {
		pending.read = *read;
		pending.write.at = at;
		pending.write.pc = pc;
		pending.lost = place->write;
		pending.cpu = sim_cpu_idx;
		pending.lost_cpu = place->cpu;
		pending.value_lost = value;
		pending.nr_bytes = nr_bytes;
		check_is_unsettled = true;
	}
	if (read)
		read->at = NULL;
	fill(&place->write, at, value, pc, &cpu, ++nr_writes);
	place->cpu = sim_cpu_idx;
}

static void access(const void *at, u32 nr_bytes, bool is_write, const void *pc)
{
	if (!check_is_in_event() || check_is_on_stack(at))
		return;
	check_point(at, is_write);
	if (is_of_a_task(at)) {
		see_task(at, pc);
		return;
	}
	if (is_write)
		note_write(at, nr_bytes, pc, false);
	else
		note_read(at, nr_bytes, pc);
}

static void access_atomically(const void *at, u32 nr_bytes, const void *pc)
{
	if (!check_is_in_event() || check_is_on_stack(at))
		return;
	check_point(at, true);
	note_write(at, nr_bytes, pc, true);
}

/* ---- what the compiler calls --------------------------------------------------- */

/* With -fsanitize gcc has built-in functions of these names, whose pointers are volatile void *. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#endif

#define CALLER __builtin_return_address(0)
#define EXPORT __attribute__((visibility("default")))

#define ACCESS(bytes)								\
	EXPORT void __tsan_read##bytes(void *at);				\
	EXPORT void __tsan_write##bytes(void *at);				\
	EXPORT void __tsan_unaligned_read##bytes(void *at);			\
	EXPORT void __tsan_unaligned_write##bytes(void *at);			\
	void __tsan_read##bytes(void *at) { access(at, bytes, false, CALLER); }	\
	void __tsan_write##bytes(void *at) { access(at, bytes, true, CALLER); }	\
	void __tsan_unaligned_read##bytes(void *at) { access(at, bytes, false, CALLER); } \
	void __tsan_unaligned_write##bytes(void *at) { access(at, bytes, true, CALLER); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

EXPORT void __tsan_init(void);
EXPORT void __tsan_func_entry(void *pc);
EXPORT void __tsan_func_exit(void);
EXPORT void __tsan_read_range(void *at, unsigned long nr_bytes);
EXPORT void __tsan_write_range(void *at, unsigned long nr_bytes);
EXPORT void *__tsan_memcpy(void *to, const void *from, unsigned long nr_bytes);
EXPORT void *__tsan_memmove(void *to, const void *from, unsigned long nr_bytes);
EXPORT void *__tsan_memset(void *to, int value, unsigned long nr_bytes);
EXPORT void __tsan_atomic_thread_fence(int order);
EXPORT void __tsan_atomic_signal_fence(int order);

void __tsan_init(void) { }

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void) { }

/* Several variables at once: a point, no update of one of them. */
static void access_range(const void *at, bool is_write)
{
	if (check_is_in_event() && !check_is_on_stack(at))
		check_point(at, is_write);
}

void __tsan_read_range(void *at, unsigned long nr_bytes)
{
	(void)nr_bytes;
	access_range(at, false);
}

void __tsan_write_range(void *at, unsigned long nr_bytes)
{
	(void)nr_bytes;
	access_range(at, true);
}

void *__tsan_memcpy(void *to, const void *from, unsigned long nr_bytes)
{
	access_range(from, false);
	access_range(to, true);
	return memcpy(to, from, nr_bytes);
}

void *__tsan_memmove(void *to, const void *from, unsigned long nr_bytes)
{
	access_range(from, false);
	access_range(to, true);
	return memmove(to, from, nr_bytes);
}

void *__tsan_memset(void *to, int value, unsigned long nr_bytes)
{
	access_range(to, true);
	return memset(to, value, nr_bytes);
}

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* One thread: the plain operation is atomic, whatever its order. */
#define FETCH(bits, name, expression)						\
	EXPORT u##bits __tsan_atomic##bits##_##name(u##bits *at, u##bits value, int order); \
	u##bits __tsan_atomic##bits##_##name(u##bits *at, u##bits value, int order) \
	{									\
		u##bits was;							\
										\
		(void)order;							\
		access_atomically(at, bits / 8, CALLER);			\
		was = *at;							\
		*at = (u##bits)(expression);					\
		return was;							\
	}
#define ATOMIC(bits)								\
	FETCH(bits, exchange, value)						\
	FETCH(bits, fetch_add, was + value)					\
	FETCH(bits, fetch_sub, was - value)					\
	FETCH(bits, fetch_and, was & value)					\
	FETCH(bits, fetch_or, was | value)					\
	FETCH(bits, fetch_xor, was ^ value)					\
	FETCH(bits, fetch_nand, ~(was & value))					\
	EXPORT u##bits __tsan_atomic##bits##_load(u##bits *at, int order);	\
	EXPORT void __tsan_atomic##bits##_store(u##bits *at, u##bits value, int order); \
	EXPORT int __tsan_atomic##bits##_compare_exchange_strong(		\
		u##bits *at, u##bits *old, u##bits value, int order, int fails);	\
	EXPORT int __tsan_atomic##bits##_compare_exchange_weak(			\
		u##bits *at, u##bits *old, u##bits value, int order, int fails);	\
	EXPORT u##bits __tsan_atomic##bits##_compare_exchange_val(		\
		u##bits *at, u##bits old, u##bits value, int order, int fails);	\
	u##bits __tsan_atomic##bits##_load(u##bits *at, int order)		\
	{									\
		(void)order;							\
		access(at, bits / 8, false, CALLER);				\
		return *at;							\
	}									\
	void __tsan_atomic##bits##_store(u##bits *at, u##bits value, int order)	\
	{									\
		(void)order;							\
		access(at, bits / 8, true, CALLER);				\
		*at = value;							\
	}									\
	int __tsan_atomic##bits##_compare_exchange_strong(			\
		u##bits *at, u##bits *old, u##bits value, int order, int fails)	\
	{									\
		u##bits was;							\
										\
		(void)order;							\
		(void)fails;							\
		access_atomically(at, bits / 8, CALLER);			\
		was = *at;							\
		if (was == *old) {						\
			*at = value;						\
			return 1;						\
		}								\
		*old = was;							\
		return 0;							\
	}									\
	int __tsan_atomic##bits##_compare_exchange_weak(			\
		u##bits *at, u##bits *old, u##bits value, int order, int fails)	\
	{									\
		return __tsan_atomic##bits##_compare_exchange_strong(at, old, value, order, fails); \
	}									\
	u##bits __tsan_atomic##bits##_compare_exchange_val(			\
		u##bits *at, u##bits old, u##bits value, int order, int fails)	\
	{									\
		__tsan_atomic##bits##_compare_exchange_strong(at, &old, value, order, fails); \
		return old;							\
	}
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)
