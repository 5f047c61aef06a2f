/* SPDX-License-Identifier: MIT */
/*
 * gt.h - the names of report 3's GTThreads, so that its matrix client compiles.
 *
 * The number of kernel threads is that of the CPUs, the scheduler the compiled
 * policy that the environment names: GT_CPUS=4 GT_POLICY=credit.
 */
#ifndef SCHEDLAB_GT_H
#define SCHEDLAB_GT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned int uthread_t;		/* counts from 0, in order of creation */
typedef unsigned int uthread_group_t;

/* Ends the process with a message when the threads cannot be started. */
void gtthread_app_init(void);

/* Also from a thread. Return: 0; -1 when there is no memory or no room for another thread. */
int uthread_create(uthread_t *tid, int (*fn)(void *arg), void *arg,
		   uthread_group_t group, int credits);

void gt_yield(void);

/*
 * Waits for all threads and stops. Return: CPU time of each in ns, by tid; the
 * caller frees it. NULL when there was none, or no memory.
 */
uint64_t *gtthread_app_exit(void);

#ifdef __cplusplus
}
#endif

#endif
