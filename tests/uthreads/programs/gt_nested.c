/* SPDX-License-Identifier: MIT */
/*
 * gt_nested.c - threads of report 3's names create threads of their own.
 *
 * Read next: hosts/uthreads/lib/gt.c.
 */
#include <stdio.h>
#include <stdlib.h>

#include <schedlab/gt.h>

#include "check.h"

#define PARENTS 8
#define CHILDREN 300

static unsigned int ran[PARENTS][CHILDREN];
static unsigned char is_tid[PARENTS * (1 + CHILDREN)];

static void create(int (*fn)(void *arg), void *arg)
{
	uthread_t tid;

	CHECK(!uthread_create(&tid, fn, arg, 0, 25));
	CHECK(tid < sizeof(is_tid) && !__atomic_exchange_n(&is_tid[tid], 1, __ATOMIC_RELAXED));
}

static int child(void *arg)
{
	__atomic_fetch_add((unsigned int *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

static int parent(void *arg)
{
	unsigned int *mine = arg;

	for (int i = 0; i < CHILDREN; i++)
		create(child, &mine[i]);
	return 0;
}

int main(void)
{
	uint64_t *times_ns;

	gtthread_app_init();
	for (int i = 0; i < PARENTS; i++)
		create(parent, ran[i]);
	times_ns = gtthread_app_exit();
	CHECK(times_ns);
	for (int i = 0; i < PARENTS; i++)
		for (int k = 0; k < CHILDREN; k++)
			CHECK(ran[i][k] == 1);
	free(times_ns);
	puts("good");
	return 0;
}
