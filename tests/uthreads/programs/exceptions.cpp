/* SPDX-License-Identifier: MIT */
/*
 * exceptions.cpp - C++ threads: exceptions are their own, and none leaves a thread.
 *
 *	exceptions POLICY CPUS [leave|exit]
 */
#include "check.h"

#include <exception>
#include <pthread.h>
#include <stdexcept>

static const int rounds = 200;

static long deep(int depth)
{
	if (!depth)
		throw std::runtime_error("deep");
	return deep(depth - 1) + 1;
}

/* Whoever runs while this one handles an exception handles another. */
static void *handle(void *arg)
{
	long nr = reinterpret_cast<long>(arg);

	for (int i = 0; i < rounds; i++) {
		try {
			try {
				throw nr * rounds + i;
			} catch (long found) {
				ut_yield();
				CHECK_IS(found, nr * rounds + i);
				CHECK_IS(std::uncaught_exceptions(), 0);
				if (i % 2)
					ut_sleep_ns(1000);
				throw;
			}
		} catch (long again) {
			ut_yield();
			CHECK_IS(again, nr * rounds + i);
		}
		try {
			deep(static_cast<int>(nr));
		} catch (const std::exception &e) {
			ut_yield();
			CHECK_IS(strcmp(e.what(), "deep"), 0);
		}
		CHECK(!std::current_exception());
	}
	return arg;
}

static void *leave(void *)
{
	deep(3);
	return nullptr;
}

static void *end_kernel_thread(void *)
{
	pthread_exit(nullptr);
}

int main(int argc, char **argv)
{
	ut_config config = check_config(argc, argv);
	const char *what = argc > 3 ? argv[3] : "";
	ut_attr attr = UT_ATTR_INIT;
	ut_id ids[4];

	check_init(&config);
	attr.name = "careless";
	if (*what) {
		CHECK_IS(ut_create(&ids[0], &attr,
				   *what == 'l' ? leave : end_kernel_thread,
				   nullptr), 0);
		ut_join(ids[0], nullptr);
	}
	for (long i = 0; i < 4; i++)
		CHECK_IS(ut_create(&ids[i], nullptr, handle,
				   reinterpret_cast<void *>(i)), 0);
	for (int i = 0; i < 4; i++)
		CHECK_IS(ut_join(ids[i], nullptr), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
