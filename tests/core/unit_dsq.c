/* SPDX-License-Identifier: MIT */
/*
 * unit_dsq.c - one queue against a sorted array, walks included.
 *
 * Read next: core/dsq.c.
 */
#include "unit.h"

#define NR_TASKS 60
#define NR_WALKS 3
#define DSQ_ID 7

struct entry {
	struct sl_task *t;
	u64 key;
	u64 insertion; /* which insertion this is, ever */
};

/* A walk visits what was queued when it began and has stayed since. */
struct walk {
	struct bpf_iter_scx_dsq it;
	bool is_open;
	struct entry seen[NR_TASKS];
	u32 nr, at;
};

static struct sl_task tasks[NR_TASKS];
static struct entry array[NR_TASKS];
static u32 nr_queued;
static u64 nr_insertions;
static struct walk walks[NR_WALKS];

static s32 find(const struct sl_task *t)
{
	for (u32 i = 0; i < nr_queued; i++) {
		if (array[i].t == t)
			return (s32)i;
	}
	return -1;
}

static void put(u32 at, struct sl_task *t, u64 key)
{
	memmove(&array[at + 1], &array[at], (nr_queued - at) * sizeof(array[0]));
	array[at] = (struct entry){ t, key, ++nr_insertions };
	nr_queued++;
}

static void insert(struct sl_dsq *q, bool by_vtime)
{
	struct sl_task *t = &tasks[fake_below(NR_TASKS)];
	/* Around the point where a key wraps, with many equal ones. */
	u64 key = fake_below(20) - 10ULL;
	bool at_head = fake_below(2);
	u32 at = 0;

	if (find(t) >= 0)
		return;
	if (by_vtime) {
		while (at < nr_queued && (s64)(array[at].key - key) <= 0)
			at++;
		CHECK(inside_dsq_insert_vtime(q, t, key));
	} else {
		at = at_head ? 0 : nr_queued;
		inside_dsq_insert(q, t, at_head ? SCX_ENQ_HEAD : 0);
	}
	put(at, t, key);
}

static void take(struct sl_dsq *q)
{
	u32 at;

	if (!nr_queued)
		return;
	at = fake_below(nr_queued);
	inside_dsq_remove(q, array[at].t);
	nr_queued--;
	memmove(&array[at], &array[at + 1], (nr_queued - at) * sizeof(array[0]));
}

static void open_walk(struct walk *w)
{
	bool is_reverse = fake_below(2);

	CHECK(!bpf_iter_scx_dsq_new(&w->it, DSQ_ID, is_reverse ? SCX_DSQ_ITER_REV : 0));
	w->is_open = true;
	w->at = 0;
	w->nr = nr_queued;
	for (u32 i = 0; i < nr_queued; i++)
		w->seen[i] = array[is_reverse ? nr_queued - 1 - i : i];
}

static void step_walk(struct walk *w)
{
	struct task_struct *p = bpf_iter_scx_dsq_next(&w->it);
	struct task_struct *expected = NULL;

	while (w->at < w->nr && !expected) {
		struct entry *e = &w->seen[w->at++];
		s32 i = find(e->t);

		if (i >= 0 && array[i].insertion == e->insertion)
			expected = &e->t->p;
	}
	CHECK(p == expected, "the walk finds [%d], not [%d]", p ? p->pid : 0,
	      expected ? expected->pid : 0);
}

static void close_walk(struct walk *w)
{
	bpf_iter_scx_dsq_destroy(&w->it);
	w->is_open = false;
}

static void check_all(const struct sl_dsq *q)
{
	const struct sl_task *t = q->first;

	CHECK(q->nr == nr_queued);
	CHECK(scx_bpf_dsq_nr_queued(DSQ_ID) == (s32)nr_queued);
	CHECK(scx_bpf_dsq_peek(DSQ_ID) == (nr_queued ? &array[0].t->p : NULL));
	for (u32 i = 0; i < nr_queued; i++, t = t->next)
		CHECK(t == array[i].t, "place %u", i);
	CHECK(!t);
}

static void random_queue(bool by_vtime)
{
	struct sl_dsq *q;

	unit_machine(1);
	CHECK(!scx_bpf_create_dsq(DSQ_ID, -1));
	q = inside_find_dsq(sl_this_cpu(), DSQ_ID);
	for (u32 i = 0; i < NR_TASKS; i++) {
		sl_task_setup(&tasks[i], i, (s32)i + 1, "queued");
	}
	for (u32 i = 0; i < 40000; i++) {
		struct walk *w = &walks[fake_below(NR_WALKS)];
		u32 dice = fake_below(10);

		/* Now and then the queue runs empty, now and then full. */
		if (dice < (i / 500 % 2 ? 5U : 2U))
			insert(q, by_vtime);
		else if (dice < 6)
			take(q);
		else if (!w->is_open)
			open_walk(w);
		else if (fake_below(20))
			step_walk(w);
		else
			close_walk(w);
		check_all(q);
	}
	for (u32 i = 0; i < NR_WALKS; i++) {
		if (walks[i].is_open)
			close_walk(&walks[i]);
	}
	while (nr_queued)
		take(q);
	CHECK(!q->iterators && !q->root && !q->last);
}

TEST(dsq_fifo)
{
	random_queue(false);
}

TEST(dsq_vtime)
{
	random_queue(true);
}

TEST(dsq_no_vtime_among_fifo)
{
	struct sl_dsq q;

	inside_dsq_init(&q, 1, -1);
	inside_dsq_insert(&q, &tasks[0], 0);
	CHECK(!inside_dsq_insert_vtime(&q, &tasks[1], 5));
	CHECK(q.nr == 1 && !tasks[1].dsq);
	inside_dsq_remove(&q, &tasks[0]);
	CHECK(inside_dsq_insert_vtime(&q, &tasks[1], 5));
}

static u32 depth_of(const struct sl_task *t)
{
	u32 left, right;

	if (!t)
		return 0;
	left = depth_of(t->left);
	right = depth_of(t->right);
	return 1 + (left > right ? left : right);
}

/* Whatever the order of keys, the tree stays about 2 ln n deep. */
TEST(dsq_tree_is_shallow)
{
	u32 nr = 20000;
	struct sl_task *many = calloc(nr, sizeof(*many));

	for (u32 order = 0; order < 3; order++) {
		struct sl_dsq q;

		inside_dsq_init(&q, 1, -1);
		for (u32 i = 0; i < nr; i++) {
			u64 key = order == 0 ? i : order == 1 ? nr - i : 42;

			many[i].idx = i;
			CHECK(inside_dsq_insert_vtime(&q, &many[i], key));
		}
		CHECK(depth_of(q.root) < 60, "depth %u", depth_of(q.root));
		while (q.first)
			inside_dsq_remove(&q, q.first);
	}
	free(many);
}

TEST(dsq_create_destroy)
{
	unit_machine(1);
	CHECK(scx_bpf_create_dsq(SCX_DSQ_LOCAL, -1) == -22);
	for (u32 round = 0; round < 3; round++) {
		CHECK(!scx_bpf_create_dsq(5, -1));
		CHECK(scx_bpf_create_dsq(5, -1) == -17);
		CHECK(scx_bpf_dsq_nr_queued(5) == 0);
		scx_bpf_destroy_dsq(5);
		CHECK(scx_bpf_dsq_nr_queued(5) == -2);
		scx_bpf_destroy_dsq(5);
	}
	CHECK(!fake.nr_failures && !sl_core.exit_claimed);
}

/* Built-in queues are no policy's to destroy, and the global one's length is nobody's. */
TEST(dsq_builtin_stays)
{
	static const u64 ids[] = { SCX_DSQ_GLOBAL, SCX_DSQ_LOCAL, SCX_DSQ_LOCAL_ON };

	unit_machine(1);
	unit_attach(2);
	here_start(&unit_tasks[0].core, SCX_WAKE_FORK, 0);
	CHECK(sl_core.global.first == &unit_tasks[0].core);
	for (u32 i = 0; i < 3; i++)
		scx_bpf_destroy_dsq(ids[i]);
	CHECK(scx_bpf_dsq_nr_queued(SCX_DSQ_GLOBAL) == -2);
	CHECK(scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL) == 0);
	CHECK(!fake.nr_failures && !sl_core.exit_claimed);
	unit_run_to_end();
	for (u32 i = 0; i < 3; i++)
		scx_bpf_destroy_dsq(ids[i]);
	CHECK(!sl_core.global.is_dead && !sl_core.cpus[0].local.is_dead);
	unit_start(2);
	unit_run_to_end();
	unit_end();
}

/* A table that is as full as it may be, in which queues come and go. */
TEST(dsq_many)
{
	static u64 ids[SL_DSQS_MAX];
	u64 nr_ids = 0, bytes;

	unit_machine(1);
	for (u32 i = 0; i < SL_DSQS_MAX; i++) {
		ids[i] = 1000003 * ++nr_ids;
		CHECK(!scx_bpf_create_dsq(ids[i], -1));
	}
	CHECK(scx_bpf_create_dsq(6, -1) == -28);
	CHECK(scx_bpf_dsq_nr_queued(6) == -2);
	bytes = fake.alloc_bytes;
	for (u32 i = 0; i < 3 * SL_DSQS_MAX; i++) {
		u64 *id = &ids[fake_below(SL_DSQS_MAX)];

		scx_bpf_destroy_dsq(*id);
		CHECK(scx_bpf_dsq_nr_queued(*id) == -2);
		*id = 1000003 * ++nr_ids;
		CHECK(!scx_bpf_create_dsq(*id, -1));
	}
	CHECK(fake.alloc_bytes == bytes, "their memory is not used again");
	for (u32 i = 0; i < SL_DSQS_MAX; i++) {
		CHECK(!scx_bpf_dsq_nr_queued(ids[i]), "%llu is lost", ids[i]);
		CHECK(scx_bpf_create_dsq(ids[i], -1) == -17);
	}
	CHECK(!fake.nr_failures && !sl_core.exit_claimed);
}
