/* SPDX-License-Identifier: MIT */
/*
 * cpumask.c - Linux's cpumask functions, for policies.
 *
 * A mask that a policy creates comes from the host's memory, so create one only
 * where a callback may sleep (init, init_task), as on Linux.
 *
 * Read next: helpers.c.
 */
#include "../core/core.h"

#define WORD_BITS 64

static u32 nr_words(void)
{
	return (sl_core.nr_cpus + WORD_BITS - 1) / WORD_BITS;
}

struct bpf_cpumask *bpf_cpumask_create(void)
{
	struct bpf_cpumask *mask = alloc_for_policy(sizeof(*mask));

	if (mask)
		mask->usage = 1;
	return mask;
}

struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask)
{
	__atomic_fetch_add(&mask->usage, 1, __ATOMIC_RELAXED);
	return mask;
}

void bpf_cpumask_release(struct bpf_cpumask *mask)
{
	if (__atomic_sub_fetch(&mask->usage, 1, __ATOMIC_ACQ_REL) == 0)
		sl_host_free(mask, sizeof(*mask));
}

/* Return: the first CPU in both, or the number of CPUs. */
u32 bpf_cpumask_first_and(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 w = 0; w < nr_words(); w++) {
		u64 word = READ_ONCE(a->bits[w]) & READ_ONCE(b->bits[w]);

		if (word)
			return w * WORD_BITS + (u32)__builtin_ctzll(word);
	}
	return sl_core.nr_cpus;
}

u32 bpf_cpumask_first(const struct cpumask *mask)
{
	return bpf_cpumask_first_and(mask, mask);
}

u32 bpf_cpumask_first_zero(const struct cpumask *mask)
{
	for (u32 cpu = 0; cpu < sl_core.nr_cpus; cpu++) {
		if (!sl_mask_test(mask, cpu))
			return cpu;
	}
	return sl_core.nr_cpus;
}

/* Linux spreads its answers; here it is the first, so that runs repeat. */
u32 bpf_cpumask_any_distribute(const struct cpumask *mask)
{
	return bpf_cpumask_first(mask);
}

u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b)
{
	return bpf_cpumask_first_and(a, b);
}

u32 bpf_cpumask_weight(const struct cpumask *mask)
{
	u32 nr = 0;

	for (u32 w = 0; w < nr_words(); w++)
		nr += (u32)__builtin_popcountll(READ_ONCE(mask->bits[w]));
	return nr;
}

static bool is_cpu(u32 cpu)
{
	return cpu < sl_core.nr_cpus;
}

void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	if (is_cpu(cpu))
		sl_bit_test_and_set((u64 *)mask->cpumask.bits, cpu);
}

void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	if (is_cpu(cpu))
		sl_bit_test_and_clear((u64 *)mask->cpumask.bits, cpu);
}

bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	return is_cpu(cpu) && sl_mask_test(mask, cpu);
}

bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	return is_cpu(cpu) && sl_bit_test_and_set((u64 *)mask->cpumask.bits, cpu);
}

bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	return is_cpu(cpu) && sl_bit_test_and_clear((u64 *)mask->cpumask.bits, cpu);
}

void bpf_cpumask_setall(struct bpf_cpumask *mask)
{
	for (u32 w = 0; w < nr_words(); w++)
		mask->cpumask.bits[w] = sl_core.possible.bits[w];
}

void bpf_cpumask_clear(struct bpf_cpumask *mask)
{
	for (u32 w = 0; w < nr_words(); w++)
		mask->cpumask.bits[w] = 0;
}

bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b)
{
	u64 any = 0;

	for (u32 w = 0; w < nr_words(); w++)
		any |= dst->cpumask.bits[w] = READ_ONCE(a->bits[w]) & READ_ONCE(b->bits[w]);
	return any;
}

void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b)
{
	for (u32 w = 0; w < nr_words(); w++)
		dst->cpumask.bits[w] = READ_ONCE(a->bits[w]) | READ_ONCE(b->bits[w]);
}

void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b)
{
	for (u32 w = 0; w < nr_words(); w++)
		dst->cpumask.bits[w] = READ_ONCE(a->bits[w]) ^ READ_ONCE(b->bits[w]);
}

bool bpf_cpumask_intersects(const struct cpumask *a, const struct cpumask *b)
{
	return bpf_cpumask_first_and(a, b) < sl_core.nr_cpus;
}

bool bpf_cpumask_subset(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 w = 0; w < nr_words(); w++) {
		if (READ_ONCE(a->bits[w]) & ~READ_ONCE(b->bits[w]))
			return false;
	}
	return true;
}

bool bpf_cpumask_equal(const struct cpumask *a, const struct cpumask *b)
{
	return bpf_cpumask_subset(a, b) && bpf_cpumask_subset(b, a);
}

bool bpf_cpumask_empty(const struct cpumask *mask)
{
	return bpf_cpumask_first(mask) == sl_core.nr_cpus;
}

bool bpf_cpumask_full(const struct cpumask *mask)
{
	return bpf_cpumask_subset(&sl_core.possible, mask);
}

/* Return: 0, or -EACCES: @bytes are fewer than a mask of this machine has. */
int bpf_cpumask_populate(struct cpumask *dst, const void *src, size_t bytes)
{
	if (bytes < nr_words() * sizeof(u64))
		return -EACCES;
	__builtin_memcpy(dst, src, bytes < sizeof(*dst) ? bytes : sizeof(*dst));
	return 0;
}

void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src)
{
	for (u32 w = 0; w < nr_words(); w++)
		dst->cpumask.bits[w] = READ_ONCE(src->bits[w]);
}
