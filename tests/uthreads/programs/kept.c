/* SPDX-License-Identifier: MIT */
/*
 * kept.c - the timer goes off after the last look at it and before the switch.
 *
 * ThreadSanitizer keeps the signal for the thread that is left. The next one's slice ends
 * all the same. In its place the switch takes longer here than any slice.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LATE_NS 50000000

void __tsan_switch_to_fiber(void *fiber, unsigned int flags);

static typeof(__tsan_switch_to_fiber) *switch_fiber;
static bool must_be_late, must_end;

/* As the kernel tells it: the C library's call would deliver the signal. */
static uint64_t now_ns(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static __attribute__((noinline)) void be_late(void)
{
	uint64_t until_ns = now_ns() + LATE_NS;

	must_be_late = false;
	while (now_ns() < until_ns)
		;
}

/* It begins in one thread's calls and ends in another's: the sanitizer does not follow. */
__attribute__((disable_sanitizer_instrumentation)) void __tsan_switch_to_fiber(void *fiber,
									       unsigned int flags)
{
	if (must_be_late)
		be_late();
	switch_fiber(fiber, flags);
}

static void *compute(void *arg)
{
	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED))
		;
	return arg;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	ut_id id;

	switch_fiber = (typeof(switch_fiber))dlsym(RTLD_NEXT, "__tsan_switch_to_fiber");
	check_init(&config);
	CHECK_IS(ut_create(&id, NULL, compute, NULL), 0);
	must_be_late = true;
	CHECK_IS(ut_yield(), 0);
	CHECK(!must_be_late);
	__atomic_store_n(&must_end, true, __ATOMIC_RELAXED);
	CHECK_IS(ut_join(id, NULL), 0);
	CHECK_IS(ut_exit(), 0);
	return 0;
}
