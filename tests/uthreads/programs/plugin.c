/* SPDX-License-Identifier: MIT */
/* plugin.c - a library that knows nothing of user threads: for library.c. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counts[2];

static void work(long steps)
{
	for (long i = 0; i < steps; i++)
		__asm__ volatile("");
}

void plugin_compute(const int *must_end)
{
	while (!__atomic_load_n(must_end, __ATOMIC_RELAXED))
		work(1000);
}

/* Return: whether nobody else was inside. */
int plugin_count(long rounds)
{
	int is_alone = 1;

	for (long i = 0; i < rounds; i++) {
		pthread_mutex_lock(&lock);
		counts[0]++;
		work(5000000);
		counts[1]++;
		is_alone &= counts[0] == counts[1];
		pthread_mutex_unlock(&lock);
	}
	return is_alone;
}
