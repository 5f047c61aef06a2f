/* SPDX-License-Identifier: MIT */
/*
 * matrix.c - report 3's client: products of matrices, by size and by credits.
 *
 *	SCHEDLAB_POLICY=credit.so SCHEDLAB_CPUS=2 ./matrix [SMALLEST]
 *
 * 128 threads multiply square matrices of SMALLEST (32 unless said otherwise), 2, 4
 * and 8 times as many rows, with 25, 50, 75 and 100 credits, eight of each; a yield
 * after every 64 rows. Every product is checked. Credits do not follow the order of
 * creation, as they did in the report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <schedlab/gtthread.h>

#define NR_SIZES 4
#define NR_CREDITS 4
#define NR_EACH 8
#define NR_THREADS (NR_SIZES * NR_CREDITS * NR_EACH)

struct product {
	int rows;
	int credits;
	uint32_t *a, *b, *c;
	uint64_t start_ns, wall_ns;
};

static void multiply(const struct product *p, int may_yield)
{
	for (int i = 0; i < p->rows; i++) {
		for (int j = 0; j < p->rows; j++) {
			uint32_t sum = 0;

			for (int k = 0; k < p->rows; k++)
				sum += p->a[i * p->rows + k] * p->b[k * p->rows + j];
			p->c[i * p->rows + j] = sum;
		}
		if (may_yield && i % 64 == 63)
			gt_yield();
	}
}

static int thread(void *arg)
{
	struct product *p = arg;

	multiply(p, 1);
	p->wall_ns = ut_now_ns() - p->start_ns;
	return 0;
}

/* malloc() by one thread after the other; what all of them need is there before. */
static void set_up(struct product *p, int rows, int credits)
{
	size_t elements = (size_t)rows * (size_t)rows;

	p->rows = rows;
	p->credits = credits;
	p->a = malloc(3 * elements * sizeof(*p->a));
	if (!p->a) {
		fprintf(stderr, "no memory for %d rows\n", rows);
		exit(1);
	}
	p->b = p->a + elements;
	p->c = p->b + elements;
	for (size_t i = 0; i < elements; i++) {
		p->a[i] = (uint32_t)(i * 7 + 1);
		p->b[i] = (uint32_t)(i * 3 + 2);
	}
}

int main(int argc, char **argv)
{
	static struct product products[NR_THREADS], right[NR_SIZES];
	int smallest = argc > 1 ? atoi(argv[1]) : 32;
	const uint64_t *cpu_ns;
	unsigned int nr_threads;
	uthread_t tid;
	int nr_wrong = 0;

	for (int size = 0; size < NR_SIZES; size++) {
		set_up(&right[size], smallest << size, 0);
		multiply(&right[size], 0);
	}
	for (int i = 0; i < NR_THREADS; i++)
		set_up(&products[i], smallest << i % NR_SIZES,
		       25 * (1 + i / NR_SIZES % NR_CREDITS));

	gtthread_app_init();
	for (int i = 0; i < NR_THREADS; i++) {
		products[i].start_ns = ut_now_ns();
		if (uthread_create(&tid, thread, &products[i], 0,
				   products[i].credits)) {
			fprintf(stderr, "thread %d cannot be made\n", i);
			return 1;
		}
	}
	cpu_ns = gtthread_app_exit(&nr_threads);

	for (int i = 0; i < NR_THREADS; i++) {
		const struct product *p = &products[i];

		nr_wrong += memcmp(p->c, right[i % NR_SIZES].c,
				   (size_t)p->rows * (size_t)p->rows *
					   sizeof(*p->c)) != 0;
	}
	printf("rows credits  CPU ms  wall ms (means of %d)\n", NR_EACH);
	for (int kind = 0; kind < NR_SIZES * NR_CREDITS; kind++) {
		double cpu_ms = 0, wall_ms = 0;

		for (int i = kind; i < NR_THREADS; i += NR_SIZES * NR_CREDITS) {
			cpu_ms += (double)cpu_ns[i] / 1e6 / NR_EACH;
			wall_ms += (double)products[i].wall_ns / 1e6 / NR_EACH;
		}
		printf("%4d %7d %7.2f %8.2f\n", products[kind].rows,
		       products[kind].credits, cpu_ms, wall_ms);
	}
	printf("%u threads, %d products wrong\n", nr_threads, nr_wrong);
	return nr_wrong != 0;
}
