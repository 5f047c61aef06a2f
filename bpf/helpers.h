/* SPDX-License-Identifier: MIT */
/*
 * helpers.h - what BPF gives a policy, as far as core/ sees it: maps,
 * timers, spin locks, task attributes, formatted text.
 *
 * Policies call these by their names in Linux; include/scx/native.h lists them. Part of
 * core.h, which includes it.
 *
 * Read next: README.md.
 */
#ifndef SL_BPF_HELPERS_H
#define SL_BPF_HELPERS_H

/* Whether what a policy asks for now is refused, although there is room: hosts/check. */
#ifndef sl_host_helper_fails
#define sl_host_helper_fails() false
#endif

/* Zeroed memory for what a policy asks for; NULL: refused, or there is none. */
static inline void *alloc_for_policy(u64 bytes)
{
	return sl_host_helper_fails() ? NULL : sl_host_alloc(bytes);
}

#define SL_MAPS_MAX 64
#define SL_TIMERS_MAX 256
/* Of a timer that is not pinned. */
#define ANY_CPU (-1)

struct sl_bpf {
	/* sl_core.tables_lock, outside callbacks, protects: */
	struct sl_map *maps;
	u32 nr_maps;		 /* read without lock */
	struct sl_map *attr_map; /* task_attrs of the policy, or NULL */

	sl_lock_t objects_lock;
	struct sl_object *objects; /* objects_lock protects it */

	sl_lock_t timers_lock;
	struct sl_timer *timers; /* timers_lock protects it */
} ____cacheline_aligned;

extern struct sl_bpf sl_bpf;
extern __attribute__((visibility("default"))) u64 CONFIG_HZ;

#endif
