/* SPDX-License-Identifier: MIT */
/*
 * gt.h - the names of GTThreads, so that its clients compile
 *
 * gt_include.h is this file, too. The number of kernel threads is that of the CPUs, the scheduler the policy that the
 * environment names: GT_CPUS=4 GT_POLICY=credit.
 *
 * Clients declare functions themselves, each its own way. So in C these have no
 * prototypes (they have with GT_HAS_PROTOTYPES), and the number of arguments says which uthread_create() is meant, in
 * calls and in declarations.
 */
#ifndef SCHEDLAB_GT_H
#define SCHEDLAB_GT_H

#include <schedlab/uthreads.h>
#include <stdint.h>

#if defined(__cplusplus) || defined(GT_HAS_PROTOTYPES)
#define GT_ARGS_(...) (__VA_ARGS__)
#else
#define GT_ARGS_(...) ()
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned int uthread_t; /* counts from 0, in order of creation */
typedef unsigned int uthread_group_t;

/* Ends the process with a message when the threads cannot be started. Arguments, which
 * some clients give it, say nothing. */
void gtthread_app_init GT_ARGS_(void);

/*
 * Also from a thread. The sixth and seventh argument say nothing: the policy is the
 * environment's. Return: 0; -1 when there is no memory or no room for another thread.
 */
int uthread_create_4 GT_ARGS_(uthread_t *tid, int (*fn)(void *arg), void *arg,
			      uthread_group_t group);
int uthread_create GT_ARGS_(uthread_t *tid, int (*fn)(void *arg), void *arg, uthread_group_t group,
			    int credits);
int uthread_create_6 GT_ARGS_(uthread_t *tid, int (*fn)(void *arg), void *arg,
			      uthread_group_t group, int credits, int mode);
int uthread_create_7 GT_ARGS_(uthread_t *tid, int (*fn)(void *arg), void *arg,
			      uthread_group_t group, int credits, int mode, int more);
#define uthread_create(...)							\
	GT_NAME_(__VA_ARGS__, uthread_create_7, uthread_create_6, uthread_create, \
		 uthread_create_4, , , , )(__VA_ARGS__)
#define GT_NAME_(a, b, c, d, e, f, g, name, ...) name

void gt_yield(void);

/*
 * Waits for all threads and stops. Return: CPU time of each in ns, by tid; the
 * caller frees it. NULL when there was none, or no memory.
 */
uint64_t *gtthread_app_exit(void);

/* A mutex: a thread that waits does not spin. Return: 0. */
typedef ut_mutex gt_spinlock_t;
int gt_spinlock_init(gt_spinlock_t *lock);
int gt_spin_lock(gt_spinlock_t *lock);
int gt_spin_unlock(gt_spinlock_t *lock);

/* kthread_cpu_map[kthread_apic_id()]->cpuid: where the caller runs, just now. */
typedef struct {
	unsigned int cpuid;
} kthread_context_t;

kthread_context_t **gt_cpu_map(void);
#define kthread_cpu_map (gt_cpu_map())
unsigned int kthread_apic_id(void);

#if !defined(__cplusplus) && !defined(GT_HAS_PROTOTYPES)
#pragma GCC diagnostic pop
#endif
#ifdef __cplusplus
}
#endif

#endif
