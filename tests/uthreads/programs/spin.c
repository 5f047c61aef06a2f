/* SPDX-License-Identifier: MIT */
/*
 * spin.c - threads that never give way, some of them deep in malloc and printf,
 * share the CPUs because they are preempted.
 */
#include "check.h"

#include <stdatomic.h>

#define NR 6

static atomic_int must_end;
static struct {
	long rounds;
	char pad[64];
} counts[NR];

static void *spin(void *arg)
{
	long *rounds = arg;

	while (!atomic_load_explicit(&must_end, memory_order_relaxed))
		++*rounds;
	return NULL;
}

static void *use_libc(void *arg)
{
	long *rounds = arg;
	char text[64];

	while (!atomic_load_explicit(&must_end, memory_order_relaxed)) {
		char *mem = malloc(16 + *rounds % 5000);

		CHECK(mem);
		snprintf(text, sizeof(text), "%ld %f", *rounds, *rounds / 3.0);
		mem[0] = text[0];
		free(mem);
		++*rounds;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id ids[NR];

	check_init(&config);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, i % 2 ? spin : use_libc, &counts[i].rounds), 0);
	/* Turns of 30 ms on a machine that others use: it takes what it takes. */
	for (int i = 0; i < NR; i++) {
		while (!__atomic_load_n(&counts[i].rounds, __ATOMIC_RELAXED))
			CHECK_IS(ut_sleep_ns(20000000), 0);
	}
	CHECK_IS(ut_sleep_ns(50000000), 0);
	must_end = 1;
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
