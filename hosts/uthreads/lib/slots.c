/* SPDX-License-Identifier: MIT */
/*
 * slots.c - thread-local slots: a value per thread under a key of the program.
 *
 * The compiler's own thread-local variables belong to kernel threads, and a
 * thread that moves finds another one's.
 *
 * A key is a place and, in ut.h's slots, which owner of that place a value is of: a
 * key that is deleted leaves its values where they are, and the next owner of the
 * place does not see them.
 *
 * Read next: thread.c, which ends them.
 */
#include <errno.h>
#include <stdlib.h>

#include "ut.h"

#define ROUNDS_MAX 4	/* an end may set slots again */

static struct key {
	u32 owner; /* odd: it has one; grows with each change; atomic */
	void (*end)(void *value);
} keys[UT_KEYS_MAX];
static sl_lock_t lock;

static int create(ut_key *key, void (*end)(void *value))
{
	int err = -EAGAIN;

	sl_lock(&lock);
	for (u32 i = 0; i < UT_KEYS_MAX && err; i++) {
		if (keys[i].owner & 1)
			continue;
		WRITE_ONCE(keys[i].end, end);
		smp_store_release(&keys[i].owner, keys[i].owner + 1);
		*key = i;
		err = 0;
	}
	sl_unlock(&lock);
	return err;
}

int ut_key_create(ut_key *key, void (*end)(void *value))
{
	return ut_inside(create(key, end));
}

static int delete(ut_key key)
{
	int err = -EINVAL;

	sl_lock(&lock);
	if (key < UT_KEYS_MAX && (keys[key].owner & 1)) {
		smp_store_release(&keys[key].owner, keys[key].owner + 1);
		err = 0;
	}
	sl_unlock(&lock);
	return err;
}

int ut_key_delete(ut_key key)
{
	return ut_inside(delete(key));
}

static int set(ut_key key, void *value)
{
	struct ut_thread *self = ut_this_cpu()->curr;
	u32 owner = key < UT_KEYS_MAX ? smp_load_acquire(&keys[key].owner) : 0;

	if (!(owner & 1))
		return -EINVAL;
	if (!self->slots)
		self->slots = calloc(UT_KEYS_MAX, sizeof(*self->slots));
	if (!self->slots)
		return -ENOMEM;
	self->slots[key] = (struct ut_slot){ value, owner };
	return 0;
}

int ut_setspecific(ut_key key, void *value)
{
	return ut_inside(set(key, value));
}

void *ut_getspecific(ut_key key)
{
	struct ut_thread *self;
	void *value = NULL;

	if (!ut_this_cpu() || key >= UT_KEYS_MAX)
		return NULL;
	ut_disable();
	self = ut_this_cpu()->curr;
	if (self->slots && self->slots[key].owner == smp_load_acquire(&keys[key].owner))
		value = self->slots[key].value;
	ut_enable();
	return value;
}

/* Context: the thread that ends; preemption enabled, since ends are the program's. */
void ut_slots_end(void)
{
	struct ut_thread *self;
	bool has_any = true;

	ut_disable();
	self = ut_this_cpu()->curr;
	ut_enable();
	if (!self->slots)
		return;
	for (u32 round = 0; round < ROUNDS_MAX && has_any; round++) {
		has_any = false;
		for (u32 i = 0; i < UT_KEYS_MAX; i++) {
			void *value = self->slots[i].value;
			void (*end)(void *) = READ_ONCE(keys[i].end);

			if (!value || !end ||
			    self->slots[i].owner != smp_load_acquire(&keys[i].owner))
				continue;
			self->slots[i].value = NULL;
			has_any = true;
			end(value);
		}
	}
	ut_disable();
	free(self->slots);
	self->slots = NULL;
	ut_enable();
}
