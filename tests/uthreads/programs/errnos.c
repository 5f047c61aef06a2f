/* SPDX-License-Identifier: MIT */
/*
 * errnos.c - errno is the thread's own, over calls that switch and preemptions, on the
 * kernel thread that it happens to be on. Compiled with -O2, which keeps addresses.
 */
#include "check.h"

#include <limits.h>

#define NR 8
#define NR_ROUNDS 20000

/* The idiom of strtol(3). */
static void *convert(void *arg)
{
	long missed = 0;

	for (int i = 0; i < NR_ROUNDS; i++) {
		ut_yield();
		errno = 0;
		if (strtol("99999999999999999999", NULL, 10) == LONG_MAX && errno != ERANGE)
			missed++;
	}
	CHECK_IS(missed, 0);
	return arg;
}

static void *keep(void *arg)
{
	int own = 1 + (int)(intptr_t)arg;

	CHECK_IS(errno, 0);
	errno = own;
	for (int i = 0; i < NR_ROUNDS; i++) {
		ut_yield();
		CHECK_IS(errno, own);
		if (i % (NR_ROUNDS / 10))
			continue;
		CHECK_IS(ut_sleep_ns(1000), 0);
		CHECK_IS(errno, own);
		for (int spin = 0; spin < 1000000; spin++)
			__asm__ volatile("");
		CHECK_IS(errno, own);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id ids[NR];

	check_init(&config);
	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, i % 2 ? convert : keep, (void *)i), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
