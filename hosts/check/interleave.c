/* SPDX-License-Identifier: MIT */
/*
 * interleave.c - several CPUs within their callbacks at once.
 *
 * An event (a tick, a kick, a wake-up) begins on its CPU, as a coroutine. At each point
 * the CPU continues, or one of these does:
 *
 *	a CPU that is in an event of its own
 *	a CPU that has an event at this instant, which begins
 *
 * An event of another time begins when all are over: what is tried is a part of what
 * Linux allows. On one CPU nothing interleaves, as interrupts are off in callbacks.
 *
 * Without a switch an event goes on to its end or to a lock that another CPU holds;
 * then comes the CPU in an event that has the lowest number. Each deviation is a switch,
 * "cpu.event.point>cpu": the n-th point in the n-th event of a CPU, and the CPU that
 * continues. A list of switches repeats a run; also when the world has changed
 * elsewhere, so that a world can be shrunk.
 *
 * --interleave SEED:MAX draws at most MAX switches: with an even seed, by random
 * priorities that are drawn anew at each point (POS; Yuan, Yang and Gu 2018), with an odd
 * one, rarely and evenly. --interleave SEED:pctDEPTH draws a priority for each event, and
 * at each instant DEPTH - 1 points at which the CPU that is there comes behind all others
 * (PCT; Burckhardt et al. 2010). --interleave LIST repeats a list.
 *
 * --interleave COST@FROM-TO:LIST repeats a list, which may be empty, and reports each
 * switch that could come next, from FROM to TO ns of virtual time: a preemption costs 1; where
 * a CPU has to stop, another one than the lowest costs 0. Repeated for each, it tries all
 * (CHESS; Musuvathi and Qadeer 2007).
 *
 * Read next: locks.c; updates.c, the points in the policy's own code.
 */
/* A CPU leaves its stack for another one by _longjmp(). */
#undef _FORTIFY_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "check.h"

#define SWITCHES_MAX 2048
#define SWITCH_BYTES_MAX 48
#define DEPTH_MAX 8
#define NEXT_MAX 4096
#define NEXT_BYTES_MAX (SWITCH_BYTES_MAX + 24)
/* Of each event's; those of changes are smaller. */
#define PRIORITY_MIN (1U << 31)
/* A CPU that gets no further, such as in a loop that waits, lets others continue. */
#define POINTS_IN_A_ROW_MAX 20000
/* So often in a row no CPU got any further. */
#define RELAXES_MAX 200000

enum cpu_state { CPU_OUTSIDE, CPU_READY, CPU_RELAXES, CPU_WAITS };

/* Where the events of a CPU are handled: until the end of the process, in all worlds. */
struct coroutine {
	void *stack;
	jmp_buf left_at;
};

struct cpu {
	enum cpu_state state;
	enum sim_class class; /* of its event; WAKE: the first of the heap */
	u64 nr_events;
	u64 nr_points; /* in this event */
	u32 priority;
	const u32 *lock; /* it waits for, */
	bool is_policys; /* and whose it is */
	const void *at;	 /* what it accesses next, */
	bool is_write;	 /* and how */
};

static struct cpu *cpus;
static struct coroutine *coroutines;
static jmp_buf loop; /* where events begin and end */
struct check_event check_event = { .cpu = -1 };
static s32 chosen = -1; /* that continues, where the point has decided it */
static u32 nr_in_a_row, nr_relaxes;

/* What decides. */
static bool is_random, is_by_priority;
static u64 random_state;
static u32 nr_random_max, rarity;
static u32 depth;      /* of PCT; 0: it is not */
static u32 nr_guessed; /* choices that an instant has */
static u32 nr_choices, change_at[DEPTH_MAX];
struct entry {
	u64 event, point;
	s32 from, to;
};
static struct entry *list; /* to be repeated */
static u32 nr_listed, nr_followed;

/* Switches that could follow on those of the list. */
static bool has_window;
static u64 window_from_ns, window_to_ns;
static u32 cost_max;
static struct next {
	struct entry entry;
	u64 t_ns;
	u32 cost;
} *nexts;
static u32 nr_nexts; /* those beyond NEXT_MAX are counted */
static char *nexts_text;

static struct entry *made; /* of which there is room for SWITCHES_MAX */
static u32 nr_switches;
static char *switches; /* as text */

const char *check_switches(void)
{
	u32 used = 0;

	if (!cpus || nr_switches > SWITCHES_MAX)
		return NULL;
	switches[0] = 0;
	for (u32 i = 0; i < nr_switches; i++)
		used += (u32)snprintf(switches + used, SWITCH_BYTES_MAX, "%s%d.%llu.%llu>%d",
				      i ? "," : "", made[i].from, (unsigned long long)made[i].event,
				      (unsigned long long)made[i].point, made[i].to);
	return switches;
}

u32 check_nexts(const char **text)
{
	u32 used = 0;

	if (!cpus || !has_window)
		return 0;
	nexts_text[0] = 0;
	for (u32 i = 0; i < nr_nexts && i < NEXT_MAX; i++) {
		const struct next *n = &nexts[i];

		used += (u32)snprintf(nexts_text + used, NEXT_BYTES_MAX,
				      "%s%d.%llu.%llu>%d@%llu@%u", i ? "," : "", n->entry.from,
				      (unsigned long long)n->entry.event,
				      (unsigned long long)n->entry.point, n->entry.to,
				      (unsigned long long)n->t_ns, n->cost);
	}
	*text = nexts_text;
	return nr_nexts;
}

/* splitmix64, as in hosts/sim/host.c, with a state of its own: the policy draws there. */
static u32 draw(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (u32)((z ^ (z >> 31)) >> 32);
}

/* ---- switches ------------------------------------------------------------------ */

/* This CPU stands at a point, and another one continues. */
static void show_preemption(s32 to)
{
	char place[2 * CHECK_NAME_BYTES];

	check_does("switch", NULL, "to CPU %d%s", to, check_name_point(place, sizeof(place)));
}

static void note_switch(s32 from, s32 to)
{
	if (++nr_switches <= SWITCHES_MAX)
		made[nr_switches - 1] = (struct entry){
			.event = cpus[from].nr_events,
			.point = cpus[from].nr_points,
			.from = from,
			.to = to,
		};
}

/* Return: the CPU that the list names for this point of @from, or -1. */
static s32 listed(s32 from)
{
	const struct cpu *c = &cpus[from];

	for (u32 i = 0; i < nr_listed; i++) {
		const struct entry *e = &list[i];

		/* Of a larger machine, some may name CPUs that are not here. */
		if (e->from == from && e->event == c->nr_events && e->point == c->nr_points &&
		    e->to >= 0 && e->to < (s32)sim.options->nr_cpus) {
			nr_followed++;
			return e->to;
		}
	}
	return -1;
}

/* All of the list have been made: could one to @to be the next? */
static void note_next(s32 from, s32 to, u32 cost)
{
	if (nr_followed != nr_listed || cost > cost_max || sim_now_ns < window_from_ns ||
	    sim_now_ns > window_to_ns || nr_nexts++ >= NEXT_MAX)
		return;
	nexts[nr_nexts - 1] = (struct next){
		.entry = { .event = cpus[from].nr_events,
			   .point = cpus[from].nr_points,
			   .from = from,
			   .to = to },
		.t_ns = sim_now_ns,
		.cost = cost,
	};
}

/* Return: false if @text is no list of switches. */
static bool read_list(const char *text)
{
	while (*text) {
		struct entry *e = &list[nr_listed];
		unsigned long long event, point;
		int nr_bytes = 0;

		if (nr_listed == SWITCHES_MAX || sscanf(text, "%d.%llu.%llu>%d%n", &e->from, &event,
							&point, &e->to, &nr_bytes) != 4)
			return false;
		e->event = event;
		e->point = point;
		nr_listed++;
		text += nr_bytes;
		text += *text == ',';
	}
	return true;
}

static void read_option(const char *text)
{
	unsigned long long seed, until_ns;
	u32 given = 0;
	int nr_bytes = 0;

	if (sscanf(text, "%llu:%u%n", &seed, &nr_random_max, &nr_bytes) == 2 && !text[nr_bytes]) {
		is_random = true;
		is_by_priority = seed % 2 == 0;
		random_state = seed;
		rarity = 2U << 2 * (draw() % 4); /* 2, 8, 32 or 128 */
	} else if (sscanf(text, "%llu:pct%u%n", &seed, &given, &nr_bytes) == 2 && !text[nr_bytes] &&
		   given && given <= DEPTH_MAX) {
		depth = given;
		is_random = true;
		random_state = seed;
		nr_random_max = SWITCHES_MAX;
		nr_guessed = 4U << draw() % 5; /* 4 to 64 */
		for (u32 i = 0; i < sim.options->nr_cpus; i++)
			cpus[i].priority = draw() | PRIORITY_MIN;
	} else if (sscanf(text, "%u@%llu-%llu:%n", &cost_max, &seed, &until_ns, &nr_bytes) == 3 &&
		   nr_bytes && read_list(text + nr_bytes)) {
		has_window = true;
		window_from_ns = seed;
		window_to_ns = until_ns;
	} else if (!read_list(text)) {
		sim_fail("usage", 0,
			 "--interleave: '%.80s' is none of SEED:MAX, SEED:pctDEPTH, [COST@FROM-TO:]LIST",
			 text);
	}
}

/* ---- which CPUs may continue -------------------------------------------------- */

/* The CPU on which the first event of the heap happens; -1: it is not due, or on none. */
static s32 heap_cpu(void)
{
	struct sim_task *task;

	if (sim_heap_first_key / 4 != sim_now_ns)
		return -1;
	switch (sim_heap_first(&task)) {
	case SIM_EVENT_POLL:
	case SIM_EVENT_WAKE:
	case SIM_EVENT_DEVICE:
		return sim_woken_on(task);
	case SIM_EVENT_ARRIVE:
	case SIM_EVENT_TIMER:
		return 0;
	default:
		return -1;
	}
}

/* @heap: what heap_cpu() says, which is asked once for all CPUs. */
static bool is_due(s32 cpu, s32 heap)
{
	return cpu == heap || sim_tree_keys[cpu] / 4 == sim_now_ns;
}

/* May @cpu continue, or begin an event that is due? */
static bool may_continue(s32 cpu)
{
	enum cpu_state state = cpus[cpu].state;

	return state == CPU_OUTSIDE ? !sim.is_over && is_due(cpu, heap_cpu()) : state != CPU_WAITS;
}

/* Of those other than @from that may continue, the one of the highest priority; -1: none. */
static s32 best_other(s32 from, bool only_begun)
{
	s32 nr_cpus = (s32)sim.options->nr_cpus;
	s32 heap = heap_cpu();
	s32 best = -1;

	only_begun |= sim.is_over;
	for (s32 cpu = 0; cpu < nr_cpus; cpu++) {
		enum cpu_state state = cpus[cpu].state;

		if (cpu == from || state == CPU_WAITS ||
		    (state == CPU_OUTSIDE && (only_begun || !is_due(cpu, heap))))
			continue;
		if (best < 0 || cpus[cpu].priority > cpus[best].priority)
			best = cpu;
	}
	return best;
}

/* What a CPU has accessed changes what those can see that are about to access the same. */
static void redraw_racing(const struct cpu *by)
{
	for (u32 i = 0; i < sim.options->nr_cpus; i++) {
		struct cpu *c = &cpus[i];

		if (c != by && c->state != CPU_OUTSIDE && c->at == by->at &&
		    (c->is_write || by->is_write))
			c->priority = draw();
	}
}

static void note_preemptions(s32 from)
{
	for (s32 to = 0; to < (s32)sim.options->nr_cpus; to++) {
		if (to != from && may_continue(to))
			note_next(from, to, 1);
	}
}

/* Return: the CPU that continues instead of @from, which could, or -1. */
static s32 choose_at_point(s32 from)
{
	struct cpu *c = &cpus[from];
	s32 other;

	if (unlikely(has_window))
		note_preemptions(from);
	if (nr_listed) {
		other = listed(from);
		return other >= 0 && other != from && may_continue(other) ? other : -1;
	}
	if (!is_random || nr_switches >= nr_random_max)
		return -1;
	other = best_other(from, false);
	if (other < 0)
		return -1;
	if (depth) {
		for (u32 i = 0; i + 1 < depth; i++)
			c->priority = change_at[i] == nr_choices ? i : c->priority;
		nr_choices++;
		return cpus[other].priority > c->priority ? other : -1;
	}
	if (!is_by_priority) {
		cpus[other].priority = draw();
		return draw() % rarity ? -1 : other;
	}
	c->priority = draw();
	if (cpus[other].priority > c->priority)
		return other;
	redraw_racing(c);
	return -1;
}

/* ---- coroutines ------------------------------------------------------------------ */

static void handle_event(void)
{
	struct cpu *c = &cpus[check_event.cpu];

	sim_set_cpu(check_event.cpu);
	if (c->class == SIM_CLASS_WAKE)
		sim_handle_heap();
	else
		sim_cpu_handle(check_event.cpu, c->class);
	check_settle();
	check_end_callbacks(check_event.cpu);
	c->state = CPU_OUTSIDE;
	c->nr_points++;
	if (depth)
		c->priority = draw() | PRIORITY_MIN;
	chosen = -1;
}

static void handle_events(void)
{
	for (;;) {
		handle_event();
		if (!_setjmp(coroutines[check_event.cpu].left_at))
			_longjmp(loop, 1);
	}
}

/* Only this function is returned to twice: no variable of it may change meanwhile. */
static __noinline void enter(struct coroutine *c)
{
	static ucontext_t first;

	if (_setjmp(loop))
		return;
	if (c->stack)
		_longjmp(c->left_at, 1);
	c->stack = sim_map(CHECK_STACK_BYTES);
	SL_ASSERT(c->stack);
	check_event.stack = c->stack;
	getcontext(&first);
	first.uc_stack.ss_sp = c->stack;
	first.uc_stack.ss_size = CHECK_STACK_BYTES;
	makecontext(&first, handle_events, 0);
	setcontext(&first);
}

static __noinline void go_to_loop(struct coroutine *c)
{
	if (!_setjmp(c->left_at))
		_longjmp(loop, 1);
}

static void begin(s32 cpu)
{
	struct cpu *c = &cpus[cpu];

	SL_ASSERT(c->state == CPU_OUTSIDE);
	c->class = cpu == heap_cpu() ? SIM_CLASS_WAKE : sim_tree_keys[cpu] % 4;
	c->nr_events++;
	c->nr_points = 0;
	c->state = CPU_READY;
}

/* Leave the current CPU as it is; the loop decides, or @next continues. */
static void leave(s32 next)
{
	s32 from = check_event.cpu;

	chosen = next;
	nr_in_a_row = 0;
	go_to_loop(&coroutines[from]);
	sim_set_cpu(from);
	cpus[from].state = CPU_READY;
}

/* Return: the CPU that continues when @from has ended or waits; -1: all have ended. */
static s32 choose_next(s32 from)
{
	s32 next = -1;
	s32 usual = -1;
	bool is_any_left = false;

	/* A wait for a lock of a policy that has failed ends with an error. */
	if (unlikely(sim.result->error_kind))
		check_wake(NULL);
	for (s32 cpu = (s32)sim.options->nr_cpus - 1; cpu >= 0; cpu--) {
		enum cpu_state state = cpus[cpu].state;

		is_any_left |= state != CPU_OUTSIDE;
		if (state == CPU_READY || (state == CPU_RELAXES && usual < 0))
			usual = cpu;
	}
	if (!is_any_left)
		return -1;
	if (usual < 0)
		sl_host_panic(__FILE__, __LINE__, "a wait for a lock that no CPU holds");
	/* One that waits for what another one does comes after all others. */
	if (cpus[usual].state == CPU_RELAXES) {
		if (++nr_relaxes > RELAXES_MAX)
			sl_host_panic(__FILE__, __LINE__, "a wait that no CPU can end");
		for (u32 i = 1; i <= sim.options->nr_cpus; i++) {
			u32 cpu = ((u32)from + i) % sim.options->nr_cpus;

			if (cpus[cpu].state == CPU_RELAXES)
				return (s32)cpu;
		}
	}
	nr_relaxes = 0;
	for (s32 to = 0; has_window && to < (s32)sim.options->nr_cpus; to++) {
		if (to != usual && cpus[to].state == CPU_READY)
			note_next(from, to, 0);
	}
	if (nr_listed)
		next = listed(from);
	else if (is_random && nr_switches < nr_random_max)
		next = best_other(from, true);
	if (next < 0 || cpus[next].state != CPU_READY || next == usual)
		return usual;
	note_switch(from, next);
	return next;
}

/* Run the event that begins on @cpu, and what interleaves with it, to the end. */
static void run(s32 cpu)
{
	nr_choices = 0;
	for (u32 i = 0; i + 1 < depth; i++)
		change_at[i] = draw() % nr_guessed;
	begin(cpu);
	while (cpu >= 0) {
		if (cpus[cpu].state == CPU_OUTSIDE)
			begin(cpu);
		check_event = (struct check_event){
			.cpu = cpu,
			.number = cpus[cpu].nr_events,
			.stack = coroutines[cpu].stack,
		};
		enter(&coroutines[cpu]);
		cpu = chosen >= 0 ? chosen : choose_next(check_event.cpu);
	}
	check_event.cpu = -1;
}

/* ---- what hosts/sim and the core call ------------------------------------------ */

void check_prepare_cpus(void)
{
	if (coroutines)
		return;
	coroutines = calloc(SCX_CPUS_MAX, sizeof(*coroutines));
	list = calloc(SWITCHES_MAX, sizeof(*list));
	made = calloc(SWITCHES_MAX, sizeof(*made));
	nexts = sim_map(NEXT_MAX * sizeof(*nexts));
	nexts_text = sim_map(NEXT_MAX * NEXT_BYTES_MAX);
	switches = calloc(SWITCHES_MAX, SWITCH_BYTES_MAX);
	SL_ASSERT(coroutines && list && made && switches && nexts && nexts_text);
}

/* Return: false: the CPUs do not interleave, as in hosts/sim. */
static bool set_up(void)
{
	if (!sim.options->interleave || cpus)
		return cpus;
	check_prepare_cpus();
	check_prepare_updates();
	cpus = calloc(sim.options->nr_cpus, sizeof(*cpus));
	SL_ASSERT(cpus);
	sim.has_ticks = true; /* see check_slice_changed() */
	check_forget_accesses();
	check_forget_locks();
	read_option(sim.options->interleave);
	return true;
}

/* Where CPUs interleave each tick comes, and finds what is left of the slice. */
void check_slice_changed(struct sl_task *t)
{
	if (!sim.options->interleave)
		sim_slice_changed(t);
}

void check_begin_cpu(s32 cpu, u32 class)
{
	if (set_up())
		run(cpu); /* begin() finds the same class */
	else
		sim_cpu_handle(cpu, class);
}

void check_begin_heap(void)
{
	s32 cpu = set_up() ? heap_cpu() : -1;

	if (cpu < 0)
		sim_handle_heap();
	else
		run(cpu);
}

void check_point(const void *at, bool is_write)
{
	struct cpu *c;
	s32 next;

	if (check_event.cpu < 0)
		return;
	check_settle();
	c = &cpus[check_event.cpu];
	c->nr_points++;
	c->at = at;
	c->is_write = is_write;
	next = choose_at_point(check_event.cpu);
	if (next < 0 && ++nr_in_a_row > POINTS_IN_A_ROW_MAX)
		next = best_other(check_event.cpu, false);
	if (next < 0)
		return;
	if (unlikely(check_shows_calls))
		show_preemption(next);
	note_switch(check_event.cpu, next);
	leave(next);
}

void check_wait(const u32 *lock, bool is_policys)
{
	struct cpu *c = &cpus[check_event.cpu];

	c->nr_points++;
	c->state = CPU_WAITS;
	c->lock = lock;
	c->is_policys = is_policys;
	leave(-1);
}

void check_wake(const u32 *lock)
{
	for (u32 i = 0; i < sim.options->nr_cpus; i++) {
		if (cpus[i].state == CPU_WAITS && (lock ? cpus[i].lock == lock : cpus[i].is_policys))
			cpus[i].state = CPU_READY;
	}
}

void check_relax(void)
{
	if (check_event.cpu < 0)
		sim_hang();
	check_settle();
	cpus[check_event.cpu].nr_points++;
	cpus[check_event.cpu].state = CPU_RELAXES;
	leave(-1);
}
