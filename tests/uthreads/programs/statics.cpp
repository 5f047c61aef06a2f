/* SPDX-License-Identifier: MIT */
/*
 * statics.cpp - what is to be constructed once is, and no thread sees half of it.
 *
 *	statics POLICY CPUS statics|once|recursive|disabled
 */
#include "check.h"

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>

static const int nr_threads = 12;
static const int nr_fields = 1000;

static std::atomic<int> nr_begun, nr_thrown, nr_seen;
static std::atomic<bool> is_outside_inside;

/* Every thread runs while another one is in the middle of it. */
static void pause_in_the_middle()
{
	ut_yield();
	CHECK_IS(ut_sleep_ns(1000000), 0);
}

/* Outside of the machine there are neither yields nor sleeps of its. */
struct Whole {
	long fields[nr_fields];

	explicit Whole(long value)
	{
		nr_begun++;
		for (int i = 0; i < nr_fields; i++) {
			fields[i] = value;
			if (i == nr_fields / 2 && ut_self())
				pause_in_the_middle();
			else if (i == nr_fields / 2)
				std::this_thread::sleep_for(std::chrono::milliseconds(3));
		}
	}

	void check(long value) const
	{
		for (int i = 0; i < nr_fields; i++)
			CHECK_IS(fields[i], value);
		nr_seen++;
	}
};

/* The first two attempts fail, and another thread has to try. */
struct Stubborn : Whole {
	Stubborn() : Whole(3)
	{
		if (nr_thrown++ < 2)
			throw std::runtime_error("again");
	}
};

static void use_first()
{
	static const Whole whole(1);

	whole.check(1);
}

static void *construct(void *)
{
	use_first();
	/* A constructor that needs another static. */
	static const Whole outer = [] {
		static const Whole inner(2);

		inner.check(2);
		return inner;
	}();

	outer.check(2);
	for (;;) {
		try {
			static const Stubborn stubborn;

			stubborn.check(3);
			return nullptr;
		} catch (const std::runtime_error &) {
			ut_yield();
		}
	}
}

static void use_outside()
{
	static const Whole whole((is_outside_inside = true, 4));

	whole.check(4);
}

static void use_inside()
{
	static const Whole whole(5);

	whole.check(5);
}

static void *use_both(void *)
{
	while (!is_outside_inside)
		ut_yield();
	use_outside();
	use_inside();
	return nullptr;
}

static void run_all(ut_fn fn)
{
	ut_id ids[nr_threads];

	for (ut_id &id : ids)
		CHECK_IS(ut_create(&id, nullptr, fn, nullptr), 0);
	for (ut_id id : ids)
		CHECK_IS(ut_join(id, nullptr), 0);
}

static void test_statics()
{
	run_all(construct);
	/* The third is begun three times. */
	CHECK_IS(nr_begun, 5);
	CHECK_IS(nr_seen, 3 * nr_threads + 1);
	nr_begun = nr_seen = 0;
	/* A kernel thread of the program's waits for threads, and they for it. */
	std::thread outside([] {
		use_outside();
		use_inside();
	});
	run_all(use_both);
	while (nr_seen < 2 * (nr_threads + 1))
		CHECK_IS(ut_sleep_ns(1000000), 0);
	outside.join();
	CHECK_IS(nr_begun, 2);
}

static ut_once once = UT_ONCE_INIT, looped = UT_ONCE_INIT;
static Whole *made;

static void make(void *arg)
{
	made = new Whole(reinterpret_cast<long>(arg));
}

static void *use_once(void *)
{
	CHECK_IS(ut_once_call(&once, make, reinterpret_cast<void *>(6L)), 0);
	made->check(6);
	return nullptr;
}

static void loop(void *)
{
	CHECK_IS(ut_once_call(&looped, loop, nullptr), -EDEADLK);
}

static void test_once()
{
	std::thread outside([] { use_once(nullptr); });

	run_all(use_once);
	while (nr_seen < nr_threads + 1)
		CHECK_IS(ut_sleep_ns(1000000), 0);
	outside.join();
	CHECK_IS(nr_begun, 1);
	CHECK_IS(ut_once_call(&looped, loop, nullptr), 0);
	delete made;
}

static int recurse(int n)
{
	static const int value = n ? recurse(n - 1) : 0;

	return value;
}

static ut_sem is_needed = UT_SEM_INIT(0);

static void use_gated()
{
	static const int value = (nr_begun++, ut_sem_wait(&is_needed));

	CHECK_IS(value, 0);
}

static void *construct_gated(void *)
{
	use_gated();
	return nullptr;
}

/* It would wait for a thread that cannot go on. */
static void use_disabled()
{
	ut_id id;

	CHECK_IS(ut_create(&id, nullptr, construct_gated, nullptr), 0);
	while (!nr_begun)
		ut_yield();
	ut_preempt_disable();
	use_gated();
}

static void use_early()
{
	static const Whole whole(7);

	whole.check(7);
}

int main(int argc, char **argv)
{
	ut_config config = check_config(argc, argv);

	CHECK(argc > 3);
	/* Before there are threads. */
	use_early();
	CHECK_IS(nr_begun, 1);
	nr_begun = nr_seen = 0;
	check_init(&config);
	if (!strcmp(argv[3], "recursive"))
		return recurse(1);
	if (!strcmp(argv[3], "disabled"))
		use_disabled();
	else if (!strcmp(argv[3], "once"))
		test_once();
	else
		test_statics();
	CHECK_IS(ut_exit(), 0);
	use_early();
	return 0;
}
