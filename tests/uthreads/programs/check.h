/* SPDX-License-Identifier: MIT */
/* check.h - what the test programs share: a condition that must hold. */
#ifndef CHECK_H
#define CHECK_H

#include <schedlab/uthreads.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #cond);		\
			exit(1);					\
		}							\
	} while (0)

#define CHECK_IS(value, wanted)						\
	do {								\
		long long is_ = (long long)(value);			\
		long long wanted_ = (long long)(wanted);		\
									\
		if (is_ != wanted_) {					\
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", \
				__FILE__, __LINE__, #value, is_, wanted_); \
			exit(1);					\
		}							\
	} while (0)

/* Arguments of every program: POLICY (or -) and the number of CPUs. */
static inline struct ut_config check_config(int argc, char **argv)
{
	struct ut_config config = UT_CONFIG_INIT;

	config.policy = argc > 1 && strcmp(argv[1], "-") ? argv[1] : NULL;
	config.nr_cpus = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
	return config;
}

static inline void check_init(const struct ut_config *config)
{
	int err = ut_init(config);

	if (err) {
		fprintf(stderr, "ut_init: %d: %s\n", err, ut_error_text());
		exit(1);
	}
}

#endif
