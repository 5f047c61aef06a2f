/* SPDX-License-Identifier: MIT */
/*
 * stack.c - stacks, each above a guard: from a pool, and back into it.
 *
 *	[guard|stack][guard|stack]...   one mapping holds many
 *
 * A guard is memory whose use is a fault, UT_GUARD_BYTES of it. Linux 6.13 makes one inside a mapping
 * (MADV_GUARD_INSTALL); an older kernel has to split the mapping, of which a
 * process may have some 65,530.
 *
 * Read next: preempt.c, which names the thread that ran into one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ut.h"
#include "valgrind.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define CHUNK_BYTES (4U << 20)
/*
 * Four sizes from each power of two to the next: whatever sizes a program asks for,
 * there are few pools, and a stack that is free serves the next one.
 */
#define CLASSES_MAX 128

struct chunk {
	struct chunk *next;
	char *mem;
	size_t bytes;
	size_t nr;
	unsigned int valgrind[]; /* [nr] */
};

/*
 * Stacks of one size. The link of a free one is in its last word: that page was
 * used before, while the first may never have been.
 */
struct class {
	size_t stack_bytes; /* without guard */
	void *free_first;
	char *unused, *unused_end; /* of the newest chunk */
};

static sl_lock_t lock;
static struct class classes[CLASSES_MAX];
static u32 nr_classes;
static struct chunk *chunks;
static bool has_guard_install = true;

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t guard_bytes(void)
{
	return (UT_GUARD_BYTES + page_bytes() - 1) & ~(page_bytes() - 1);
}

/* What a handler and the kernel's frame for it need, above 16 KiB, wherever it begins. */
size_t ut_stack_bytes_min(void)
{
	size_t page = page_bytes();
	size_t signal_bytes = getauxval(AT_MINSIGSTKSZ);

	if (!signal_bytes)
		signal_bytes = 4096;
	return (16384 + UT_COLOURS_BYTES + signal_bytes + page - 1) & ~(page - 1);
}

/* The size of the pool that serves @bytes: up to a quarter more. */
size_t ut_stack_round(size_t bytes)
{
	size_t page = page_bytes();
	size_t step = page;

	while (8 * step < bytes)
		step *= 2;
	return (bytes + step - 1) & ~(step - 1);
}

static struct class *class_of(size_t bytes)
{
	for (u32 i = 0; i < nr_classes; i++) {
		if (classes[i].stack_bytes == bytes)
			return &classes[i];
	}
	if (nr_classes == CLASSES_MAX)
		return NULL;
	classes[nr_classes].stack_bytes = bytes;
	return &classes[nr_classes++];
}

static int add_chunk(struct class *class)
{
	size_t one = class->stack_bytes + guard_bytes();
	size_t nr = CHUNK_BYTES / one ? CHUNK_BYTES / one : 1;
	struct chunk *chunk = malloc(sizeof(*chunk) + nr * sizeof(chunk->valgrind[0]));

	if (!chunk)
		return -ENOMEM;
	chunk->nr = nr;
	chunk->bytes = nr * one;
	chunk->mem = mmap(NULL, chunk->bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (chunk->mem == MAP_FAILED) {
		free(chunk);
		return -ENOMEM;
	}
	/* A huge page would give every stack 2 MiB of memory. */
	madvise(chunk->mem, chunk->bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < nr; i++) {
		char *low = chunk->mem + i * one + guard_bytes();

		chunk->valgrind[i] = ut_valgrind_begin(low, low + class->stack_bytes);
	}
	chunk->next = chunks;
	chunks = chunk;
	class->unused = chunk->mem;
	class->unused_end = chunk->mem + chunk->bytes;
	return 0;
}

static int make_guard(char *at)
{
	if (has_guard_install) {
		if (!madvise(at, guard_bytes(), MADV_GUARD_INSTALL))
			return 0;
		if (errno != EINVAL)
			return -ENOMEM;
		has_guard_install = false;
	}
	return mprotect(at, guard_bytes(), PROT_NONE) ? -ENOMEM : 0;
}

static void **link_of(const struct ut_stack *stack)
{
	return (void **)(stack->low + stack->bytes) - 1;
}

static int take(struct class *class, struct ut_stack *stack)
{
	int err;

	if (class->free_first) {
		stack->low = class->free_first;
		class->free_first = *link_of(stack);
		return 0;
	}
	if (class->unused == class->unused_end) {
		err = add_chunk(class);
		if (err)
			return err;
	}
	err = make_guard(class->unused);
	if (err)
		return err;
	stack->low = class->unused + guard_bytes();
	class->unused = stack->low + class->stack_bytes;
	return 0;
}

/**
 * ut_stack_alloc - a stack above a guard
 * @stack: where to say which
 * @bytes: usable size, from ut_stack_round()
 *
 * Context: preemption disabled.
 * Return: 0; -ENOMEM.
 */
int ut_stack_alloc(struct ut_stack *stack, size_t bytes)
{
	struct class *class;
	int err = -ENOMEM;

	stack->bytes = bytes;
	sl_lock(&lock);
	class = class_of(stack->bytes);
	if (class)
		err = take(class, stack);
	sl_unlock(&lock);
	return err;
}

/* Back into the pool. Context: preemption disabled. */
void ut_stack_free(struct ut_stack *stack)
{
	struct class *class;

	sl_lock(&lock);
	class = class_of(stack->bytes);
	SL_ASSERT(class);
	*link_of(stack) = class->free_first;
	class->free_first = stack->low;
	sl_unlock(&lock);
}

/* The kernel thread's own, which is never given back. Return: 0 or -errno. */
int ut_stack_of_caller(struct ut_stack *stack)
{
	pthread_attr_t attr;
	void *low;
	int err = -pthread_getattr_np(pthread_self(), &attr);

	if (err)
		return err;
	err = -pthread_attr_getstack(&attr, &low, &stack->bytes);
	stack->low = low;
	pthread_attr_destroy(&attr);
	return err;
}

/* Context: no stack of the pool is in use. */
void ut_stacks_exit(void)
{
	while (chunks) {
		struct chunk *chunk = chunks;

		chunks = chunk->next;
		for (size_t i = 0; i < chunk->nr; i++)
			ut_valgrind_end(chunk->valgrind[i]);
		munmap(chunk->mem, chunk->bytes);
		free(chunk);
	}
	__builtin_memset(classes, 0, sizeof(classes));
	nr_classes = 0;
}
