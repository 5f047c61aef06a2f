/* SPDX-License-Identifier: MIT */
/*
 * virtual_inline.h - what is inline of virtual time: clock, current CPU, records.
 *
 * Of the simulator, and of hosts/check, where CPUs interleave.
 *
 * Read next: host_inline.h.
 */
#ifndef SIM_VIRTUAL_INLINE_H
#define SIM_VIRTUAL_INLINE_H

#include <schedlab/record.h>
#include <schedlab/task.h>

extern u64 sim_now_ns;
extern s32 sim_cpu_idx;		    /* the CPU on which something happens now, */
extern struct sl_cpu *sim_core_cpu; /* and what the core has of it */
#define sl_host_core_cpu() sim_core_cpu

sl_inline u64 sl_host_now_ns(void)
{
	return sim_now_ns;
}

sl_inline s32 sl_host_cpu(void)
{
	return sim_cpu_idx;
}

/* speed.c */
u32 sim_capacity(s32 cpu);
u32 sim_frequency(s32 cpu);
void sim_set_frequency(s32 cpu, u32 frequency);
#define sl_host_capacity(cpu) sim_capacity(cpu)
#define sl_host_frequency(cpu) sim_frequency(cpu)
#define sl_host_set_frequency(cpu, to) sim_set_frequency(cpu, to)

/* sched.c */
u64 sim_user_ns(s32 cpu);
#define sl_host_user_ns(cpu) sim_user_ns(cpu)

void sim_wait_for_kick(s32 cpu);
#define sl_host_wait_for(cpu) sim_wait_for_kick(cpu)

/* No other thread can end a wait here: to wait at all would be to hang. */
_Noreturn void sim_hang(void);

/* A task is data, and a CPU is off it as soon as it says so. */
#define SL_HOST_HAS_STACKS 0

/* So many tasks are in a near cache; of a longer queue those next are fetched. */
#define SIM_NEAR_TASKS 1000
void sim_prefetch(const struct sl_task *first);
#define sl_host_prefetch_queue(first, nr)				\
	do {								\
		if (unlikely((nr) > SIM_NEAR_TASKS))			\
			sim_prefetch(first);				\
	} while (0)

/* Where the next record goes; both NULL when records are off. */
extern struct sl_record *sim_record_at;
extern struct sl_record *sim_record_end;
void sim_records_flush(void);

sl_inline void sim_record(u8 kind, s32 task, s32 cpu, u8 flags, u64 arg)
{
	struct sl_record *r = sim_record_at;

	*r = (struct sl_record){
		.t_ns = sim_now_ns,
		.task = (u32)task,
		.cpu = (u16)cpu,
		.kind = kind,
		.flags = flags,
		.arg = arg,
	};
	sim_record_at = r + 1;
	if (sim_record_at == sim_record_end)
		sim_records_flush();
}

/* What a record is to say is only looked up where there are records. */
#define sl_host_record(...)						\
	do {								\
		if (sim_record_at)					\
			sim_record(__VA_ARGS__);			\
	} while (0)

/* No other process has a CPU here: all of its time is the task's. */
sl_inline u64 sl_host_stolen_ns(struct sl_task *t, u64 ran_ns)
{
	(void)t;
	(void)ran_ns;
	return 0;
}

#endif
