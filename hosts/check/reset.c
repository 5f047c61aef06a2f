/* SPDX-License-Identifier: MIT */
/*
 * reset.c - one process, many worlds: each finds all memory as the first has found it.
 *
 * What is reset is not listed variable by variable, so that none can be forgotten:
 *
 *	data of this program and of the policy	copied once, and copied back
 *	what is allocated while a world runs	lies in two areas, which are emptied
 *
 * What is to outlive a world is allocated before check_remember(), and reached by
 * a pointer that does not change.
 *
 * The linker sends malloc() and the like of hosts/sim and core/ here with --wrap; a policy
 * allocates nothing.
 *
 * Read next: worlds.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define RANGES_MAX 16
#define PAGE 4096ULL
/* An area is virtual: what is not touched costs nothing. What does not fit is leaked. */
#define SMALL_BYTES (64ULL << 20)
#define LARGE_BYTES (4ULL << 30)
#define LARGE_FROM_BYTES 16384

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t nr, size_t bytes);
void *__real_realloc(void *at, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *at);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t nr, size_t bytes);
void *__wrap_realloc(void *at, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *at);

extern char data_start[], end[]; /* of this program's data, by the linker */

/* Bytes that a world may change, and what they were. */
struct range {
	char *at;
	u64 nr_bytes;
	char *copy;
	bool is_constant; /* knobs: written by --set alone */
};

struct area {
	char *first, *next, *last;
};

/* Outlives a world, as it is allocated before it. NULL: nothing is reset. */
static struct kept {
	struct range ranges[RANGES_MAX];
	u32 nr_ranges;
	bool has_launch; /* it writes constants, too */
	struct area small, large;
} *kept;

/* ---- memory of a world ------------------------------------------------------------- */

static bool is_in(const struct area *area, const void *at)
{
	return (const char *)at >= area->first && (const char *)at < area->last;
}

static bool is_of_a_world(const void *at)
{
	return kept && (is_in(&kept->small, at) || is_in(&kept->large, at));
}

/* Return: zeroed memory of the area; NULL: it is full. */
static void *take(struct area *area, u64 bytes, u64 alignment)
{
	char *at = (char *)(((u64)area->next + alignment - 1) & ~(alignment - 1));

	if (bytes > (u64)(area->last - at))
		return NULL;
	area->next = at + bytes;
	return at;
}

/* The size stands before it, for realloc(). */
static void *allocate(u64 bytes, u64 alignment)
{
	u64 *at;

	if (!kept || alignment > 64)
		return NULL;
	at = take(bytes < LARGE_FROM_BYTES ? &kept->small : &kept->large, bytes + 64, 64);
	if (!at)
		return NULL;
	at[7] = bytes;
	return at + 8;
}

void *__wrap_malloc(size_t bytes)
{
	return allocate(bytes, 16) ?: __real_malloc(bytes);
}

void *__wrap_calloc(size_t nr, size_t bytes)
{
	return allocate(nr * bytes, 16) ?: __real_calloc(nr, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return allocate(bytes, alignment) ?: __real_aligned_alloc(alignment, bytes);
}

void *__wrap_realloc(void *at, size_t bytes)
{
	u64 before;
	void *to;

	if (!kept || (at && !is_of_a_world(at)))
		return __real_realloc(at, bytes);
	to = __wrap_malloc(bytes);
	before = at ? ((u64 *)at)[-1] : 0;
	if (to && before)
		memcpy(to, at, before < bytes ? before : bytes);
	return to;
}

void __wrap_free(void *at)
{
	if (!is_of_a_world(at))
		__real_free(at);
}

void *check_map_block(u64 bytes)
{
	return (kept ? take(&kept->large, bytes, PAGE) : NULL) ?: sim_map(bytes);
}

void check_unmap_block(void *at, u64 bytes)
{
	if (!is_of_a_world(at))
		sim_unmap(at, bytes);
}

static bool create_area(struct area *area, u64 bytes)
{
	area->first = sim_map(bytes);
	area->next = area->first;
	area->last = area->first + bytes;
	return area->first;
}

/* ---- data ---------------------------------------------------------------------------- */

static void add_range(struct kept *to, char *from, const char *until, bool is_constant)
{
	struct range *r = &to->ranges[to->nr_ranges];

	if (from >= until)
		return;
	SL_ASSERT(to->nr_ranges < RANGES_MAX);
	*r = (struct range){
		.at = from,
		.nr_bytes = (u64)(until - from),
		.copy = sim_map((u64)(until - from)),
		.is_constant = is_constant,
	};
	SL_ASSERT(r->copy);
	to->nr_ranges++;
}

struct search {
	const void *base;
	struct kept *kept;
};

static int add_policy(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct search *s = context;
	const char *relro_end = NULL;

	(void)bytes;
	if (info->dlpi_addr != (u64)s->base)
		return 0;
	for (u32 i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_GNU_RELRO)
			relro_end = (const char *)((info->dlpi_addr + h->p_vaddr + h->p_memsz) &
						   ~(PAGE - 1));
	}
	for (u32 i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		char *at = (char *)(info->dlpi_addr + h->p_vaddr);
		char *until = at + h->p_memsz;

		if (h->p_type != PT_LOAD || (h->p_flags & PF_X))
			continue;
		if ((h->p_flags & PF_W) && at < relro_end)
			at = (char *)relro_end;
		add_range(s->kept, at, until, !(h->p_flags & PF_W));
	}
	return 1;
}

/* Return: 0, or -errno. Context: the policy is loaded, no world has run. */
int check_remember(void)
{
	struct kept *k = __real_calloc(1, sizeof(*k));
	struct search s = { .kept = k };
	Dl_info info;

	if (!k || !create_area(&k->small, SMALL_BYTES) || !create_area(&k->large, LARGE_BYTES))
		return -ENOMEM;
	k->has_launch = sim_policy_file.policy->start;
	add_range(k, data_start, (char *)sim_records_buffer, false);
	add_range(k, (char *)(sim_records_buffer + SIM_RECORDS_BUFFER), end, false);
	if (!dladdr(sim_policy_file.policy, &info))
		return -ENOENT;
	s.base = info.dli_fbase;
	if (!dl_iterate_phdr(add_policy, &s))
		return -ENOENT;
	kept = k; /* before the copy: it is among what is copied */
	for (u32 i = 0; i < k->nr_ranges; i++)
		memcpy(k->ranges[i].copy, k->ranges[i].at, k->ranges[i].nr_bytes);
	return 0;
}

/* Of the world that runs, in memory that ends with it; from before its knobs are set. */
static struct kept *policy;

void check_remember_policy(void)
{
	struct search s = { .kept = policy = calloc(1, sizeof(*policy)) };
	Dl_info info;

	SL_ASSERT(policy && dladdr(sim_policy_file.policy, &info));
	s.base = info.dli_fbase;
	SL_ASSERT(dl_iterate_phdr(add_policy, &s));
	for (u32 i = 0; i < policy->nr_ranges; i++)
		memcpy(policy->ranges[i].copy, policy->ranges[i].at, policy->ranges[i].nr_bytes);
}

void check_restore_policy(void)
{
	for (u32 i = 0; i < policy->nr_ranges; i++) {
		const struct range *r = &policy->ranges[i];

		if (!r->is_constant)
			memcpy(r->at, r->copy, r->nr_bytes);
	}
}

static void restore_constants(const struct range *r)
{
	char *at = (char *)((u64)r->at & ~(PAGE - 1));
	u64 nr_bytes = (u64)(r->at + r->nr_bytes - at);

	SL_ASSERT(!mprotect(at, nr_bytes, PROT_READ | PROT_WRITE));
	memcpy(r->at, r->copy, r->nr_bytes);
	/* A policy that writes them crashes in the next world, too. */
	if (!kept->has_launch)
		SL_ASSERT(!mprotect(at, nr_bytes, PROT_READ));
}

static void empty(struct area *area, bool is_small)
{
	u64 nr_bytes = (u64)(area->next - area->first);

	if (is_small)
		memset(area->first, 0, nr_bytes);
	else if (nr_bytes)
		SL_ASSERT(!madvise(area->first, (nr_bytes + PAGE - 1) & ~(PAGE - 1), MADV_DONTNEED));
	area->next = area->first;
}

/* @has_settings: the world had knobs of its own. */
void check_reset(bool has_settings)
{
	const struct kept *k = kept;

	for (u32 i = 0; i < k->nr_ranges; i++) {
		const struct range *r = &k->ranges[i];

		if (!r->is_constant)
			memcpy(r->at, r->copy, r->nr_bytes);
		else if (has_settings || k->has_launch)
			restore_constants(r);
	}
	empty(&kept->small, true);
	empty(&kept->large, false);
}
