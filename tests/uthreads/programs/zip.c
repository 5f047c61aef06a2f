/* SPDX-License-Identifier: MIT */
/*
 * zip.c - threads compress with zlib, are preempted in it, and all come to the same as one
 * after the other.
 *
 *	zip POLICY CPUS MS [KNOB=VALUE]...
 */
#include "check.h"

#include <zlib.h>

#define NR 8
#define TEXT_BYTES 200000
#define ZIPPED_BYTES (TEXT_BYTES + 1024)

static unsigned char texts[NR][TEXT_BYTES];
static unsigned char wanted[NR][ZIPPED_BYTES];
static uLongf wanted_bytes[NR];
static uint64_t end_ns;
static uint64_t nr_preempted;

/* Words that come again, in another order for each. */
static void write_text(unsigned char *text, uint32_t draw)
{
	for (int i = 0; i < TEXT_BYTES; i++) {
		draw = draw * 1664525 + 1013904223;
		text[i] = i < 1000 || draw >> 29 == 0 ? (unsigned char)('a' + (draw >> 24) % 26) :
							text[i - 1 - (draw >> 8) % 997];
	}
}

static uLongf zip(int i, unsigned char *to)
{
	uLongf bytes = ZIPPED_BYTES;

	CHECK_IS(compress2(to, &bytes, texts[i], TEXT_BYTES, 1 + i % 9), Z_OK);
	return bytes;
}

static void *zip_and_back(void *arg)
{
	int i = (int)(intptr_t)arg;
	unsigned char *zipped = malloc(ZIPPED_BYTES), *text = malloc(TEXT_BYTES);
	struct ut_stats stats;
	uLongf bytes;

	do {
		bytes = zip(i, zipped);
		CHECK_IS(bytes, wanted_bytes[i]);
		CHECK_IS(memcmp(zipped, wanted[i], bytes), 0);
		bytes = TEXT_BYTES;
		CHECK_IS(uncompress(text, &bytes, zipped, wanted_bytes[i]), Z_OK);
		CHECK_IS(bytes, TEXT_BYTES);
		CHECK_IS(memcmp(text, texts[i], TEXT_BYTES), 0);
		CHECK_IS(crc32(0, text, TEXT_BYTES), crc32(0, texts[i], TEXT_BYTES));
	} while (ut_now_ns() < end_ns);
	free(zipped);
	free(text);
	CHECK_IS(ut_stats(ut_self(), &stats), 0);
	__atomic_add_fetch(&nr_preempted, stats.involuntary_switches, __ATOMIC_SEQ_CST);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id ids[NR];

	CHECK(argc > 3);
	for (int i = 0; i < NR; i++) {
		write_text(texts[i], (uint32_t)i);
		wanted_bytes[i] = zip(i, wanted[i]);
	}
	config.sets = (const char *const *)&argv[4];
	check_init(&config);
	end_ns = ut_now_ns() + (uint64_t)atoi(argv[3]) * 1000000;
	for (intptr_t i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, zip_and_back, (void *)i), 0);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	printf("%llu\n", (unsigned long long)nr_preempted);
	return 0;
}
