/* SPDX-License-Identifier: MIT */
/*
 * proc.c - the life of a process: fork, exit, wait, kill.
 *
 *	unused --kfork--> held --proc_release--> live --kexit--> ended --kwait--> unused
 *	                  (fork() releases at once)
 *
 * Two locks. family_lock guards parents, children, which processes are held and
 * which have ended; the core's locks are taken inside it. A process that is found
 * by its pid and is PROC_LIVE stays that process until family_lock is released;
 * without the lock its structure may become another process at any time.
 * pid_lock guards the table of pids and the list of unused processes; it is a
 * leaf, since policies ask the core for pids.
 *
 * Must stay true: a process is waited for only when its last hart has left its
 * stack, and has detached it from the core (sched.c); its memory always stays a struct
 * proc, and a stale pointer to it can do no worse than wake a process spuriously.
 *
 * Read next: exec.c, sysproc.c.
 */
#include <schedlab/change.h>

#include "proc.h"

#include "bootargs.h"
#include "file.h"
#include "inode.h"
#include "print.h"
#include "sched.h"
#include "vm.h"

#define NR_BUCKETS 1024
#define PID_MAX 0x7fffffff

_Static_assert(offsetof(struct proc, cpu) == sizeof(struct sl_task), "this_hart() finds it there");

struct spinlock family_lock;
u32 procs_max;

static struct spinlock pid_lock;
static struct {
	struct proc *all;    /* [procs_max] */
	u32 nr_made;	     /* of them, used at least once */
	struct proc *unused; /* list through hash_next */
	struct proc *bucket[NR_BUCKETS];
	struct link by_age; /* with a pid, the oldest first */
	u32 nr;		    /* with a pid */
	s32 last_pid;
} table;

static struct proc *first_proc; /* init: parent of orphans */

extern void proc_begin(void);

/* ---- pids ------------------------------------------------------------------ */

static struct proc **bucket_of(s32 pid)
{
	return &table.bucket[(u32)pid % NR_BUCKETS];
}

/* Context: pid_lock. */
static struct proc *find(s32 pid)
{
	struct proc *p = *bucket_of(pid);

	while (p && pid_of(p) != pid)
		p = p->hash_next;
	return p;
}

struct proc *proc_find(s32 pid)
{
	struct proc *p;

	acquire(&pid_lock);
	p = find(pid);
	release(&pid_lock);
	return p;
}

void procs_for_each(bool (*each)(struct proc *p, void *arg), void *arg)
{
	acquire(&pid_lock);
	for_each_link(at, &table.by_age)
		if (!each(thing_of(at, struct proc, by_age), arg))
			break;
	release(&pid_lock);
}

u32 nr_procs(void)
{
	return __atomic_load_n(&table.nr, __ATOMIC_RELAXED);
}

/* An unused process, and the pid that it will have. Return: NULL: none left. */
static struct proc *take_unused(s32 *pid)
{
	struct proc *p;

	acquire(&pid_lock);
	p = table.unused;
	if (p) {
		table.unused = p->hash_next;
	} else if (table.nr_made < procs_max) {
		p = &table.all[table.nr_made++];
		memset(p, 0, sizeof(*p));
	}
	if (p) {
		do {
			if (table.last_pid == PID_MAX)
				table.last_pid = 1;
			*pid = ++table.last_pid;
		} while (find(*pid));
	}
	release(&pid_lock);
	return p;
}

/* From now on its pid leads to @p. */
static void publish(struct proc *p)
{
	struct proc **bucket = bucket_of(pid_of(p));

	acquire(&pid_lock);
	p->hash_next = *bucket;
	*bucket = p;
	p->born_ns = now_ns(); /* here, so that it agrees with the list's order */
	list_add(&table.by_age, &p->by_age);
	table.nr++;
	release(&pid_lock);
}

/* No reference to @p is left. */
static void put_unused(struct proc *p)
{
	struct proc **at = bucket_of(pid_of(p));

	acquire(&pid_lock);
	while (*at != p)
		at = &(*at)->hash_next;
	*at = p->hash_next;
	list_remove(&p->by_age);
	table.nr--;
	p->hash_next = table.unused;
	table.unused = p;
	release(&pid_lock);
}

/* ---- families: all with family_lock held ---------------------------------- */

static struct proc *sibling_of(struct link *link)
{
	return thing_of(link, struct proc, sibling);
}

static void add_child(struct proc *parent, struct proc *p)
{
	p->parent = parent;
	list_add(&parent->children, &p->sibling);
}

static void add_ended(struct proc *parent, struct proc *p)
{
	p->parent = parent;
	list_add(&parent->ended, &p->sibling);
	wake_all(&parent->child_ended);
}

/* The children of @p become the first process's; those held back end. */
static void give_children_away(struct proc *p)
{
	while (!list_is_empty(&p->children)) {
		struct proc *child = sibling_of(p->children.next);

		list_remove(&child->sibling);
		add_child(first_proc, child);
		if (child->is_held)
			proc_kill(child);
	}
	while (!list_is_empty(&p->ended)) {
		struct proc *child = sibling_of(p->ended.next);

		list_remove(&child->sibling);
		add_ended(first_proc, child);
	}
}

/* ---- fork ------------------------------------------------------------------ */

/* All of a process but its memory, files and registers. */
static void set_up(struct proc *p, s32 pid, const char *name)
{
	u32 slot = NCPU + (u32)(p - table.all);

	p->frame = (struct frame *)kernel_stack_top(slot) - 1;
	p->frame->proc = p;
	p->nr_off = 1; /* as if it had called sched_block() */
	p->intr_was_on = true;
	memset(&p->context, 0, sizeof(p->context));
	p->context.ra = (u64)proc_begin;
	p->context.sp = (u64)p->frame;
	p->start = NULL;
	p->uses_fp = false;
	p->nice = 0;
	p->lab = (struct lab_proc){ };
	p->killed = false;
	p->kill_was_told = false;
	p->is_held = true;
	p->exit_status = 0;
	p->parent = NULL;
	list_init(&p->children);
	list_init(&p->ended);
	waitq_init(&p->child_ended, "child");
	sl_task_setup(&p->task, slot - NCPU, pid, name);
}

/* What a child gets of its parent besides memory and files. */
static void inherit(struct proc *p, struct proc *parent)
{
	*p->frame = *parent->frame;
	p->frame->proc = p;
	p->frame->a0 = 0;
	if (parent->uses_fp) {
		push_off();
		if ((parent->frame->status & SSTATUS_FS) == SSTATUS_FS_DIRTY)
			fp_save(&parent->fp);
		pop_off();
		p->fp = parent->fp;
		p->uses_fp = true;
		p->frame->status &= ~SSTATUS_FS;
		p->frame->status |= SSTATUS_FS_CLEAN;
	}
	p->nice = parent->nice;
	sl_task_inherit(&p->task, &parent->task);
	if (parent->task.p.nr_cpus_allowed < (s32)nr_cpus) {
		push_off();
		sl_task_set_affinity(&p->task, parent->task.p.cpus_ptr);
		pop_off();
	}
}

int kfork(bool is_held)
{
	struct proc *parent = myproc();
	pagetable_t pages = vm_new();
	struct proc *p = NULL;
	s32 pid;

	if (!pages)
		return -1;
	if (!vm_fork(parent->pages, pages, parent->size))
		p = take_unused(&pid);
	if (!p) {
		vm_free(pages, parent->size);
		return -1;
	}
	p->pages = pages;
	p->size = parent->size;
	set_up(p, pid, name_of(parent));
	inherit(p, parent);
	for (u32 i = 0; i < NOFILE; i++)
		p->ofile[i] = parent->ofile[i] ? filedup(parent->ofile[i]) : NULL;
	p->cwd = idup(parent->cwd);
	acquire(&family_lock);
	p->state = PROC_LIVE;
	add_child(parent, p);
	/* A kill of the parent's family meanwhile has not seen this one. */
	p->killed = killed(parent);
	publish(p);
	if (!is_held)
		proc_release(p);
	release(&family_lock);
	return pid;
}

void proc_release(struct proc *p)
{
	SL_ASSERT(holding(&family_lock) && p->is_held);
	smp_store_release(&p->is_held, false);
	sched_start(p);
}

/* ---- kill, exit, wait ------------------------------------------------------ */

void proc_kill(struct proc *p)
{
	push_off();
	__atomic_store_n(&p->killed, true, __ATOMIC_SEQ_CST);
	if (p->is_held)
		proc_release(p);
	else
		sched_wake(p, 0);
	pop_off();
}

/*
 * The process after @p in an iteration over @root and all its descendants; NULL:
 * none.
 */
static struct proc *next_in_family(const struct proc *p, const struct proc *root)
{
	if (!list_is_empty(&p->children))
		return sibling_of(p->children.next);
	while (p != root && p->sibling.next == &p->parent->children)
		p = p->parent;
	return p == root ? NULL : sibling_of(p->sibling.next);
}

void proc_kill_family(s32 pid)
{
	struct proc *root;

	acquire(&family_lock);
	root = proc_find(pid);
	for (struct proc *p = root; p; p = next_in_family(p, root))
		proc_kill(p);
	release(&family_lock);
}

int kkill(s32 pid)
{
	struct proc *p;

	acquire(&family_lock);
	p = proc_find(pid);
	/* Not the first process, which waits for the orphans. */
	if (p == first_proc)
		p = NULL;
	/* One that has ended may be another process at any time. */
	if (p && p->state == PROC_LIVE)
		proc_kill(p);
	release(&family_lock);
	return p ? 0 : -1;
}

static void close_all(struct proc *p)
{
	for (u32 i = 0; i < NOFILE; i++) {
		if (p->ofile[i])
			fileclose(p->ofile[i]);
		p->ofile[i] = NULL;
	}
	begin_op();
	iput(p->cwd);
	end_op();
	p->cwd = NULL;
}

void kexit(int status)
{
	struct proc *p = myproc();
	pagetable_t pages = p->pages;

	if (p == first_proc)
		panic("%s has ended with status %d", name_of(p), status);
	close_all(p);
	timer_stop(&p->timer);
	p->uses_fp = false;
	/* In this order: a switch in between loads p->pages. */
	p->pages = kernel_pages;
	vm_load(kernel_pages);
	vm_free(pages, p->size);
	p->size = 0;
	/*
	 * A process that learns of the end from here on finds that it has left:
	 * no switch comes in between.
	 */
	push_off();
	lab_proc_ends(&p->lab);
	acquire(&family_lock);
	give_children_away(p);
	p->exit_status = status;
	p->state = PROC_ENDED;
	list_remove(&p->sibling);
	add_ended(p->parent, p);
	/* The parent may have it as soon as it sees it, and waits until it has left. */
	release(&family_lock);
	sched_exit();
}

static int tell_int(u64 at, u64 value)
{
	int number = (int)value;

	return at ? copyout(at, &number, sizeof(number)) : 0;
}

/* Take the first child that has ended, unless it cannot be told about. */
static int take_ended(struct proc *p, u64 status_at, u64 wait_at, u64 run_at)
{
	struct proc *child = sibling_of(p->ended.next);
	struct sl_task *t = &child->task;

	/* It may still be on its way out: its times are not final before. */
	while (smp_load_acquire(&t->on_cpu))
		sl_host_relax();
	if (tell_int(status_at, (u64)child->exit_status) ||
	    tell_int(wait_at, t->wait_ns / tick_ns) ||
	    tell_int(run_at, t->p.se.sum_exec_runtime / tick_ns))
		return -1;
	list_remove(&child->sibling);
	return 0;
}

int kwait(u64 status_at, u64 wait_at, u64 run_at)
{
	struct proc *p = myproc();
	struct proc *child;
	int err;
	s32 pid;

	acquire(&family_lock);
	while (list_is_empty(&p->ended)) {
		if (list_is_empty(&p->children) || killed(p)) {
			release(&family_lock);
			return -1;
		}
		sleep_on(&p->child_ended, &family_lock);
	}
	child = sibling_of(p->ended.next);
	err = take_ended(p, status_at, wait_at, run_at);
	release(&family_lock);
	if (err)
		return -1;
	pid = pid_of(child);
	child->state = PROC_UNUSED;
	put_unused(child);
	return pid;
}

/* ---- memory ---------------------------------------------------------------- */

int kgrow(s64 bytes)
{
	struct proc *p = myproc();
	u64 size = p->size + (u64)bytes;

	if (bytes < 0) {
		if ((u64)-bytes > p->size)
			return -1;
		vm_shrink(p->pages, p->size, size);
	} else if (size > USER_END || vm_grow(p->pages, p->size, size, PTE_R | PTE_W)) {
		return -1;
	}
	p->size = size;
	return 0;
}

/* ---- boot ------------------------------------------------------------------ */

void procs_init(void)
{
	u64 pages;

	initlock(&family_lock, "family");
	initlock(&pid_lock, "pids");
	list_init(&table.by_age);
	pages = PGROUNDUP(procs_max * sizeof(struct proc)) / PGSIZE;
	table.all = kalloc_pages(pages);
	if (!table.all)
		panic("no memory for %u processes; make procs_max less", procs_max);
}

void proc_start_first(void (*start)(void))
{
	s32 pid;
	struct proc *p = take_unused(&pid);

	set_up(p, pid, "init");
	memset(p->frame, 0, sizeof(*p->frame));
	p->frame->proc = p;
	p->frame->status = SSTATUS_SPIE;
	p->pages = vm_new();
	if (!p->pages)
		panic("no memory for the first process");
	p->start = start;
	p->state = PROC_LIVE;
	first_proc = p;
	publish(p);
	acquire(&family_lock);
	proc_release(p);
	release(&family_lock);
}
