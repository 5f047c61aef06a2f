/* SPDX-License-Identifier: MIT */
/*
 * sanitize.h - tells AddressSanitizer, ThreadSanitizer and Valgrind's users which
 * stack is in use. Empty in an ordinary build.
 *
 * Read next: sched.c.
 */
#ifndef UT_SANITIZE_H
#define UT_SANITIZE_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define UT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define UT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define UT_TSAN 1
#endif

#if defined(UT_ASAN) || defined(UT_TSAN)
#define UT_IS_SANITIZED 1
#else
#define UT_IS_SANITIZED 0
#endif

/* ThreadSanitizer keeps a signal for the thread that it met, until that one runs again. */
#if defined(UT_TSAN)
#define UT_KEEPS_SIGNALS 1
#else
#define UT_KEEPS_SIGNALS 0
#endif

/* What a sanitizer keeps of a stack that is not in use. */
struct ut_sanitized {
	void *fake;  /* ASan's own stack beside it */
	void *fiber; /* TSan's */
};

#if defined(UT_ASAN)
void __sanitizer_start_switch_fiber(void **fake, const void *low, size_t bytes);
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *bytes);
#endif
#if defined(UT_TSAN)
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned int flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned int flags);
#endif

/* A stack that exists begins to count, or a new one. */
static inline void ut_sanitize_begin(struct ut_sanitized *s, int is_current)
{
	(void)s;
	(void)is_current;
#if defined(UT_ASAN)
	s->fake = NULL;
#endif
#if defined(UT_TSAN)
	s->fiber = is_current ? __tsan_get_current_fiber() : __tsan_create_fiber(0);
#endif
}

/* Its stack is out of use for good. */
static inline void ut_sanitize_end(struct ut_sanitized *s)
{
	(void)s;
#if defined(UT_TSAN)
	__tsan_destroy_fiber(s->fiber);
	s->fiber = NULL;
#endif
}

/* Just before the switch to the stack of @bytes from @low. */
static inline void ut_sanitize_leave(struct ut_sanitized *from, struct ut_sanitized *to,
				     const void *low, size_t bytes)
{
	(void)from;
	(void)to;
	(void)low;
	(void)bytes;
#if defined(UT_ASAN)
	__sanitizer_start_switch_fiber(&from->fake, low, bytes);
#endif
#if defined(UT_TSAN)
	__tsan_switch_to_fiber(to->fiber, 0);
#endif
}

/* Just after it, on the new stack. */
static inline void ut_sanitize_arrive(struct ut_sanitized *to)
{
	(void)to;
#if defined(UT_ASAN)
	__sanitizer_finish_switch_fiber(to->fake, NULL, NULL);
#endif
}

#endif
