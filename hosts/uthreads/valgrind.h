/* SPDX-License-Identifier: MIT */
/*
 * valgrind.h - tells Valgrind which memory is a stack.
 *
 * Without it a switch looks like a stack that grew by megabytes. Where Valgrind's
 * own header was not there when the library was compiled, all this is nothing; where
 * the program does not run under Valgrind, some ns per mapping.
 *
 * Called by stack.c and held.c.
 */
#ifndef UT_VALGRIND_H
#define UT_VALGRIND_H

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define UT_HAS_VALGRIND 1
#endif
#endif

/* Return: a number to end it with. */
static inline unsigned int ut_valgrind_begin(const char *low, const char *end)
{
	(void)low;
	(void)end;
#if defined(UT_HAS_VALGRIND)
	return (unsigned int)VALGRIND_STACK_REGISTER(low, end);
#else
	return 0;
#endif
}

static inline void ut_valgrind_end(unsigned int number)
{
	(void)number;
#if defined(UT_HAS_VALGRIND)
	VALGRIND_STACK_DEREGISTER(number);
#endif
}

/*
 * Between the two, what is read may never have been written. @known has: Valgrind
 * takes a handler's arguments for what their registers held before the signal.
 */
static inline void ut_valgrind_be_quiet(const void *known, unsigned long bytes)
{
	(void)known;
	(void)bytes;
#if defined(UT_HAS_VALGRIND)
	VALGRIND_MAKE_MEM_DEFINED(known, bytes);
	VALGRIND_DISABLE_ERROR_REPORTING;
#endif
}

static inline void ut_valgrind_listen(void)
{
#if defined(UT_HAS_VALGRIND)
	VALGRIND_ENABLE_ERROR_REPORTING;
#endif
}

#endif
