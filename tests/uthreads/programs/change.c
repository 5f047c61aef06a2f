/* SPDX-License-Identifier: MIT */
/* change.c - the policy changes while threads run: arguments 3 and on, in turn. */
#include "check.h"

#include <errno.h>

#define NR 8

static int must_end;
static long rounds[NR];

static void *mixed(void *arg)
{
	long *own = arg;

	while (!__atomic_load_n(&must_end, __ATOMIC_RELAXED)) {
		__atomic_add_fetch(own, 1, __ATOMIC_RELAXED);
		if (*own % 1000 == 0)
			ut_sleep_ns(100000);
		else if (*own % 10 == 0)
			ut_yield();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	const char *const bad[] = { "no_such_knob=1", NULL };
	ut_id ids[NR];

	check_init(&config);
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_create(&ids[i], NULL, mixed, &rounds[i]), 0);
	for (int i = 0; i < 12; i++) {
		const char *policy = argv[3 + i % (argc - 3)];
		long before = __atomic_load_n(&rounds[i % NR], __ATOMIC_RELAXED);
		int err = ut_set_policy(strcmp(policy, "-") ? policy : NULL, NULL);

		if (err)
			fprintf(stderr, "%s: %s\n", policy, ut_error_text());
		CHECK_IS(err, 0);
		while (__atomic_load_n(&rounds[i % NR], __ATOMIC_RELAXED) == before)
			CHECK_IS(ut_sleep_ns(1000000), 0);
	}
	CHECK_IS(ut_set_policy("no/such/file.so", NULL), -ENOENT);
	CHECK_IS(ut_set_policy(argv[3], bad), -EINVAL);
	CHECK(strstr(ut_error_text(), "no knob 'no_such_knob'"));
	must_end = 1;
	for (int i = 0; i < NR; i++)
		CHECK_IS(ut_join(ids[i], NULL), 0);
	CHECK_IS(ut_exit(), 0);
	puts("good");
	return 0;
}
