/* SPDX-License-Identifier: MIT */
/*
 * pipeline.c - producers and consumers, with a channel between them.
 *
 *	./pipeline POLICY.so CPUS [ITEMS]
 *
 * Two producers send numbers, three consumers add them up. A channel of four places
 * keeps the producers from running ahead; closing it ends the consumers, each after
 * the last number that it got.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <schedlab/uthreads.h>

#define NR_PRODUCERS 2
#define NR_CONSUMERS 3

static ut_chan *numbers;
static long nr_items = 10000;	/* of each producer */

static ut_mutex total_lock = UT_MUTEX_INIT;
static long total;		/* under total_lock */

static void must(int answer, const char *what)
{
	if (answer >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-answer));
	exit(1);
}

static void *produce(void *arg)
{
	for (long i = 1; i <= nr_items; i++)
		must(ut_chan_send(numbers, &i), "ut_chan_send");
	return arg;
}

static void *consume(void *arg)
{
	long number, sum = 0;

	/* -EPIPE: closed, and empty. */
	while (!ut_chan_recv(numbers, &number))
		sum += number;
	ut_mutex_lock(&total_lock);
	total += sum;
	ut_mutex_unlock(&total_lock);
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = UT_CONFIG_INIT;
	ut_id producers[NR_PRODUCERS], consumers[NR_CONSUMERS];
	long expected;

	config.policy = argc > 1 ? argv[1] : NULL;
	config.nr_cpus = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	nr_items = argc > 3 ? atol(argv[3]) : nr_items;
	expected = NR_PRODUCERS * (nr_items * (nr_items + 1) / 2);

	must(ut_init(&config), "ut_init");
	must(ut_chan_create(&numbers, sizeof(long), 4), "ut_chan_create");
	for (int i = 0; i < NR_CONSUMERS; i++)
		must(ut_create(&consumers[i], NULL, consume, NULL), "ut_create");
	for (int i = 0; i < NR_PRODUCERS; i++)
		must(ut_create(&producers[i], NULL, produce, NULL), "ut_create");
	for (int i = 0; i < NR_PRODUCERS; i++)
		must(ut_join(producers[i], NULL), "ut_join");
	must(ut_chan_close(numbers), "ut_chan_close");
	for (int i = 0; i < NR_CONSUMERS; i++)
		must(ut_join(consumers[i], NULL), "ut_join");
	must(ut_chan_destroy(numbers), "ut_chan_destroy");
	must(ut_exit(), "ut_exit");
	printf("sum %ld, expected %ld\n", total, expected);
	return total != expected;
}
