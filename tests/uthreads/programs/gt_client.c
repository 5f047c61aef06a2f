/* SPDX-License-Identifier: MIT */
/*
 * gt_client.c - a client of GTThreads as published ones are: it declares what it creates
 * threads with itself, with untyped pointers.
 *
 * -DNR_ARGS=4, 5, 6 or 7: of uthread_create().
 */
#include "gt_include.h"

#define NR_THREADS 8
#define NR_ROUNDS 1000

#if NR_ARGS == 4
#define MORE_TYPES
#define MORE
#elif NR_ARGS == 5
#define MORE_TYPES , int
#define MORE , 25
#elif NR_ARGS == 6
#define MORE_TYPES , int, int
#define MORE , 25, 1
#else
#define MORE_TYPES , int, int, int
#define MORE , 25, 1, 2
#endif

extern int uthread_create(uthread_t *, void *, void *, uthread_group_t MORE_TYPES);

static gt_spinlock_t lock;
static long sum;

static void *add(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		long was;

		gt_spin_lock(&lock);
		was = sum;
		if (i % 100 == 0)
			gt_yield();
		sum = was + *(int *)arg;
		gt_spin_unlock(&lock);
	}
	if (kthread_cpu_map[kthread_apic_id()]->cpuid >= 2)
		exit(1);
	return NULL;
}

int main(void)
{
	uthread_t tids[NR_THREADS];
	int numbers[NR_THREADS];

	gt_spinlock_init(&lock);
	gtthread_app_init();
	for (int i = 0; i < NR_THREADS; i++) {
		numbers[i] = i;
		if (uthread_create(&tids[i], add, &numbers[i], i % 2 MORE) || (int)tids[i] != i)
			return 1;
	}
	free(gtthread_app_exit());
	printf("%ld\n", sum);
	return 0;
}
